"""Findings in SARIF 2.1.0 (OASIS 2020), which code scanning of forges reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import quote

from ..certificates.values import Certificate, printable
from ..errors import StructgenError
from ..system.types import JsonMap

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

#: The rule of definitions that do not compile.
_COMPILE = "compile"


@dataclass(frozen=True)
class Certified:
    """What a definition came to: a certificate, or the error for which it has none.

    Parameters
    ----------
    name, path, line:
        As in `NamedDefinition`; line 0 for what has no lines.
    certificate, failure:
        One of them is None.
    """

    name: str
    path: str
    line: int
    certificate: Certificate | None
    failure: StructgenError | None = None

    def to_json(self) -> JsonMap:
        """All of it, for scripts."""
        return {
            "name": self.name,
            "path": self.path,
            "line": self.line,
            "certificate": None if self.certificate is None else self.certificate.to_json(),
            "failure": None if self.failure is None else str(self.failure),
        }


def sarif(found: Sequence[Certified]) -> JsonMap:
    """A log with one run, and a result for each finding and each definition that does not compile."""
    from .. import __version__
    from ..certificates.certify import ITEMS

    rules: list[JsonMap] = [
        {"id": name, "shortDescription": {"text": (item.__doc__ or name).split("\n")[0]}}
        for name, item in ITEMS.items()
    ]
    rules.append({"id": _COMPILE, "shortDescription": {"text": "The definition can be read and compiled."}})
    driver = {"name": "structgen", "semanticVersion": __version__, "rules": rules}
    results = [result for each in found for result in _results(each)]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(each: Certified) -> Iterator[JsonMap]:
    if each.certificate is None:
        yield _result(each, _COMPILE, "error", str(each.failure), "")
        return
    for item, finding in each.certificate.findings:
        says = finding.says if finding.witness is None else f"{finding.says}, as in {finding.witness!r}"
        yield _result(each, item.name, finding.severity, says, finding.where)


def _result(each: Certified, rule: str, level: str, says: str, where: str) -> JsonMap:
    """A result; SARIF's levels are called as the severities are."""
    logical: JsonMap = {"name": each.name, "fullyQualifiedName": printable(f"{each.name} {where}".rstrip())}
    location: dict[str, JsonMap | list[JsonMap]] = {"logicalLocations": [logical]}
    if each.line or not _is_object(each.path):
        region = {"region": {"startLine": each.line}} if each.line else {}
        uri = quote(PurePath(each.path).as_posix())
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, **region}
    text = printable(f"{each.name}: {where}: {says}" if where else f"{each.name}: {says}")
    return {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [location]}


def _is_object(path: str) -> bool:
    """Whether it is no path but MODULE:NAME."""
    return ":" in PurePath(path).name
