"""What comes out: a `Certificate` with an item for each question, and the findings in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Literal

from ..system.types import JsonMap

if TYPE_CHECKING:
    from rich.console import Group

#: What is known of an item's claim: it holds; it does not, and there is a witness; time or memory did not suffice, or
#: nothing decides it for this kind of definition; a number was measured.
Verdict = Literal["proved", "refuted", "undecided", "measured"]

#: How bad a finding is. A note is nothing to be mended.
Severity = Literal["error", "warning", "note"]

#: From the worst on.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

_STYLES = {"proved": "green", "refuted": "yellow", "undecided": "dim", "measured": "cyan"}
_SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}

#: Characters of a witness that a terminal or a page shows.
_SHOWN = 120


@dataclass(frozen=True)
class Finding:
    """Something that an author should know.

    Parameters
    ----------
    severity:
        ``"error"``: texts come out wrong, or do not come to an end. ``"warning"``: a part of the definition does
        nothing. ``"note"``: worth a look.
    says:
        What, in a sentence.
    where:
        A JSON pointer, a rule, a terminal or a column; empty for the whole.
    witness:
        A text that shows it, as a person reads it: bytes that are not UTF-8 are escaped. None where there is none.
    """

    severity: Severity
    says: str
    where: str = ""
    witness: str | None = None


@dataclass(frozen=True)
class CertificateItem:
    """One question about an index, and what was found.

    Parameters
    ----------
    name:
        Such as ``"no_dead_end"``; docs/guide/certificates.md has them all.
    verdict:
        See `Verdict`. ``"refuted"`` has a finding with a witness, or one for each place.
    says:
        The answer, in a sentence.
    facts:
        Numbers and texts behind it, as JSON.
    findings:
        What an author should know.
    seconds:
        What it took.
    """

    name: str
    verdict: Verdict
    says: str
    facts: JsonMap = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Certificate:
    """The verdicts of `certify` about an index.

    Parameters
    ----------
    kind, definition:
        The kind and the canonical text of the index.
    vocabulary:
        The fingerprint of its vocabulary.
    items:
        One for each question.
    """

    kind: str
    definition: str
    vocabulary: str
    items: tuple[CertificateItem, ...]

    def __getitem__(self, name: str) -> CertificateItem:
        """An item by its name. Raises `KeyError`."""
        for item in self.items:
            if item.name == name:
                return item
        raise KeyError(name)

    @property
    def findings(self) -> Iterator[tuple[CertificateItem, Finding]]:
        """All findings with their items, the most severe first."""
        found = [(item, each) for item in self.items for each in item.findings]
        return iter(sorted(found, key=lambda pair: SEVERITIES.index(pair[1].severity)))

    @property
    def worst(self) -> Severity | None:
        """The highest severity among the findings; None without findings."""
        return next((finding.severity for _, finding in self.findings), None)

    def to_json(self) -> JsonMap:
        """Return the certificate as a dict, for a log. `from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: str | JsonMap) -> Certificate:
        """Read the output of `to_json`, or its JSON text: ``data``."""
        found = dict(json.loads(data) if isinstance(data, str) else data)
        items = [
            CertificateItem(**{**each, "findings": tuple([Finding(**finding) for finding in each["findings"]])})
            for each in found["items"]
        ]
        return cls(**{**found, "items": tuple(items)})

    # -- to be looked at -------------------------------------------------------------------------------

    def __rich__(self) -> Group:
        """A line for each item, with its findings below."""
        from rich.console import Group
        from rich.text import Text

        lines = []
        for item in self.items:
            verdict = (f"{item.verdict:<10}", _STYLES[item.verdict])
            lines.append(Text.assemble(verdict, f"{item.name}: {printable(item.says)}"))
            for each in item.findings:
                where = f"{printable(each.where)}: " if each.where else ""
                severity = (f"  {each.severity:<8}", _SEVERITY_STYLES[each.severity])
                lines.append(Text.assemble(severity, f"{where}{printable(each.says)}"))
                if each.witness is not None:
                    lines.append(Text(f"          {abridged(each.witness)!r}", style="italic"))
        return Group(*lines)

    def _repr_html_(self) -> str:
        from rich.console import Console

        console = Console(record=True, file=StringIO(), width=160)
        console.print(self.__rich__())
        return console.export_html(code_format='<pre style="white-space:pre-wrap">{code}</pre>', inline_styles=True)


def readable(data: bytes) -> str:
    """Bytes as a person reads them."""
    return data.decode("utf-8", "backslashreplace")


def printable(text: str) -> str:
    """A text of which no terminal takes a part for a command: names in definitions may hold anything."""
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])


def abridged(text: str) -> str:
    """A text without its middle, where it is long."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"
