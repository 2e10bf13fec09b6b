"""The values that a text is made of, and what keywords make of the text of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .json_places import JsonPlace, UnfinishedJson, segment, segments
from .probes import DEEP, Atom, SchemaProbes
from .verdicts import TextPiece, verdict


@dataclass(frozen=True)
class _Text:
    """A piece of the text; whether it is a whole value; in how many values it lies."""

    data: bytes
    whole: bool
    depth: int


class TextPieces:
    """A text that breaks off, value by value.

    Parameters
    ----------
    probes:
        The schema.
    data:
        The text, the byte included that it dies at.
    ended:
        Whether it is not a byte that it dies at, but its end.
    """

    def __init__(self, probes: SchemaProbes, data: bytes, *, ended: bool) -> None:
        self._probes, self._data, self._ended = probes, data, ended
        self.json = UnfinishedJson(data)
        path = self.json.path
        #: By the identity of a value: what it lies in, which piece of a JSON pointer leads there, how deep it lies.
        self._places: dict[int, tuple[JsonPlace | None, str, int]] = {id(path[0]): (None, "", 0)} if path else {}
        for depth, (outer, place, piece) in enumerate(zip(path, path[1:], segments(path), strict=False), 1):
            self._places[id(place)] = outer, piece, depth
        self._broken = set(self._places)  # the values that the text breaks off within, or just behind

    def path(self, place: JsonPlace) -> str:
        """The JSON pointer of a value."""
        pieces, here = list[str](), place
        while (found := self._places[id(here)])[0] is not None:
            here = found[0]
            pieces.append(f"/{found[1]}")
        return "".join(reversed(pieces))

    def innermost(self) -> str:
        """The JSON pointer of the value that the text breaks off in."""
        return self.path(self.json.path[-1]) if self.json.path else ""

    def enter(self, place: JsonPlace, at: int) -> None:
        """Note where a value's member or item stands."""
        depth = self._places[id(place)][2]
        self._places.setdefault(id(place.children[at]), (place, segment(place, at), depth + 1))

    def is_broken(self, place: JsonPlace) -> bool:
        """Whether the text breaks off within a value, or just behind it."""
        return id(place) in self._broken

    def text(self, place: JsonPlace) -> bytes:
        """A value's text, as far as it goes."""
        return self._data[place.start : self._end(place)]

    def takes(self, atoms: Iterable[Atom], place: JsonPlace, *, ordered: bool = False) -> bool:
        """Whether some keywords together take a value's text so far; ``ordered`` with the order of members."""
        asked = frozenset(atoms)
        known = self._read(asked, place, ordered)
        return self._asked(asked, place, ordered) if known is None else known

    def _read(self, atoms: frozenset[Atom], place: JsonPlace, ordered: bool) -> bool | None:
        """What can be read off the text."""
        if self._probes.definition.excludes:
            return None
        piece = TextPiece(place, self._is_whole(place), self.text(place))
        ordered = ordered and self._probes.definition.property_order != "any"
        return verdict(piece, atoms, self._probes.schemas, ordered=ordered)

    def _asked(self, atoms: frozenset[Atom], place: JsonPlace, ordered: bool) -> bool:
        """What an automaton says."""
        is_deep = any(atom.field in DEEP for atom in atoms)
        text, option = self._piece(place, deep=is_deep), ""
        if place.kind == "object" and not ordered:
            option = "property_order"
        elif place.kind not in ("object", "array"):
            option = "whitespace"  # there is none in it, and an indentation would need a bound of the nesting
        deepest = self.json.deepest if is_deep else 1
        whole, depth = text.whole, text.depth
        return self._probes.alive(atoms, text.data, whole=whole, depth=depth, deepest=deepest, option=option)

    def _is_whole(self, place: JsonPlace) -> bool:
        return place.end >= 0 or (self._ended and self.json.is_whole and place is self.json.root)

    def _end(self, place: JsonPlace) -> int:
        return place.end if place.end >= 0 else len(self._data)

    def _piece(self, place: JsonPlace, *, deep: bool) -> _Text:
        """A value's text; unless it is ``deep``, a 0 stands for each value in it, also for one that breaks off."""
        whole, end = self._is_whole(place), self._end(place)
        depth = self._places[id(place)][2]
        if deep or not place.children:
            return _Text(self._data[place.start : end], whole, depth)
        parts: list[bytes] = []
        at = place.start
        for child in place.children:
            parts += self._data[at : child.start], b"0"
            at = self._end(child)
        parts.append(self._data[at:end])
        return _Text(b"".join(parts), whole, depth)
