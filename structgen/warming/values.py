"""What became of definitions that were to be in a cache: `Outcome` and `Report`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import StructgenError

if TYPE_CHECKING:
    from ..system.types import JsonMap

Status = Literal["present", "compiled", "failed", "lost"]

#: What XML 1.0 cannot hold, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one definition for one vocabulary.

    Parameters
    ----------
    position:
        The position of the definition among the given ones, from 0; -1 for a file that could not be read.
    name:
        The name of a `NamedDefinition`; otherwise the beginning of the definition.
    vocabulary:
        The vocabulary's fingerprint.
    status:
        ``"present"``: it was in the cache. ``"compiled"``: it is now in the cache. ``"failed"``: it does not
        compile, or the cache does not keep it. ``"lost"``: the worker died or failed with an unexpected error.
    key:
        The key of the index in the cache; empty where the definition has none.
    kind, states, rows:
        Properties of the index: its kind, the number of automaton states and of distinct masks.
    nbytes:
        Bytes in the cache, without rows shared with other indexes.
    seconds:
        Wall-clock seconds of compiling or opening it.
    attempts:
        Number of attempts that counted against it.
    what, where, remedy:
        The parts of the error, as in `StructgenError`.
    """

    position: int
    name: str
    vocabulary: str
    status: Status
    key: str = ""
    kind: str = ""
    states: int = 0
    rows: int = 0
    nbytes: int = 0
    seconds: float = 0.0
    attempts: int = 0
    what: str = ""
    where: str = ""
    remedy: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the cache has the index."""
        return self.status in ("present", "compiled")

    def __str__(self) -> str:
        if self.is_kept:
            return f"{self.name}: {self.status}"
        return f"{self.name}: {StructgenError(self.what, where=self.where, remedy=self.remedy)}"


@dataclass(frozen=True)
class Report:
    """The result of `structgen.warm`.

    Parameters
    ----------
    outcomes:
        One `Outcome` for each vocabulary and definition, in the given order; with ``shard``, those of that part
        only.
    seconds:
        Wall-clock seconds in all.
    """

    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def kept(self) -> list[Outcome]:
        """The outcomes of definitions that the cache now has."""
        return [each for each in self.outcomes if each.is_kept]

    @property
    def failed(self) -> list[Outcome]:
        """The outcomes of definitions that the cache does not have."""
        return [each for each in self.outcomes if not each.is_kept]

    def to_json(self) -> JsonMap:
        """Return the report as a dict for `json.dumps`."""
        return dataclasses.asdict(self)

    def to_junit(self) -> str:
        """Return the report as a JUnit XML document: a suite for each vocabulary, a case for each definition.

        A failed definition is a ``failure``, a lost one an ``error``.
        """
        from xml.etree import ElementTree as XML

        root = XML.Element("testsuites", name="structgen warm", time=f"{self.seconds:.3f}")
        for vocabulary in dict.fromkeys(each.vocabulary for each in self.outcomes):
            cases = [each for each in self.outcomes if each.vocabulary == vocabulary]
            suite = XML.SubElement(
                root, "testsuite",
                name=vocabulary or "files", tests=str(len(cases)), time=f"{sum(each.seconds for each in cases):.3f}",
                failures=str(sum(each.status == "failed" for each in cases)),
                errors=str(sum(each.status == "lost" for each in cases)),
            )  # fmt: skip
            for each in cases:
                case = XML.SubElement(
                    suite, "testcase", name=_in_xml(each.name), classname=vocabulary or "files",
                    time=f"{each.seconds:.3f}",
                )  # fmt: skip
                if not each.is_kept:
                    element = XML.SubElement(case, "error" if each.status == "lost" else "failure")
                    element.set("message", _in_xml(each.what))
                    element.text = _in_xml(str(each))
        XML.indent(root)
        return XML.tostring(root, encoding="unicode", xml_declaration=True) + "\n"

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)


def _in_xml(text: str) -> str:
    """A text with what XML cannot hold written as Python would."""
    return _NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
