"""What keywords make of a piece of a text, read off the piece: as a validator does, but of pieces that break off.

Most questions are about types, names and counts, and are answered here in microseconds. The others, such as those
about patterns, are left to an automaton (`probes`): the answer is None then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from math import inf
from typing import NamedTuple

from ...compiler.json_schema.read.document import Schema
from .json_places import JsonPlace
from .probes import Atom

#: Fields that are read here, by the kind of the value.
_OF_ANY = {"types", "enum"}
_READ = {
    "string": {*_OF_ANY, "min_length", "max_length", "pattern", "format"},
    "word": _OF_ANY,
    "number": {*_OF_ANY, "minimum", "maximum", "exclusive_minimum", "exclusive_maximum"},
    "object": {
        *_OF_ANY, "properties", "required", "additional_properties", "min_properties", "max_properties",
        "dependent_required",
    },
    "array": {*_OF_ANY, "prefix_items", "items", "min_items", "max_items"},
}  # fmt: skip

_WORDS: dict[bytes, tuple[str, bool | None]] = {b"t": ("boolean", True), b"f": ("boolean", False), b"n": ("null", None)}
_PLAIN = re.compile(rb"-?[0-9]{1,300}(\.[0-9]{1,300})?")

#: Stands for a name that nothing is said of: no text in UTF-8 has such a one.
_FRESH = "\ud800"


class TextPiece(NamedTuple):
    """A value's place in a text, whether it is whole, and its bytes as far as they are there."""

    place: JsonPlace
    whole: bool
    data: bytes


class _Said(NamedTuple):
    """A keyword: its field, a part of it, and the subschema that it stands in."""

    field: str
    part: str
    schema: Schema


def verdict(piece: TextPiece, atoms: Collection[Atom], schemas: Sequence[Schema], *, ordered: bool) -> bool | None:
    """Whether some keywords together take a value, or where it breaks off, what it begins with.

    Values within it are not looked at. None where that takes more than is read here.

    Parameters
    ----------
    ordered:
        Whether declared members come in the schema's order, before others.
    """
    said = [_Said(atom.field, atom.part, schemas[atom.schema]) for atom in atoms if atom.schema >= 0]
    kind = piece.place.kind
    if any(each.field not in _READ[kind] for each in said) or len(said) < len(atoms):
        return None
    found = _of_type(piece, said)
    if found is False:
        return False
    rest = [each for each in said if each.field != "types"]
    if kind == "string":
        return _all(found, _string(piece, rest))
    if kind == "word":
        word = _WORDS[piece.data[:1]][1]
        return all(any(value is word for value in each.schema.enum or ()) for each in rest)
    if kind == "number":
        return _all(found, _number(piece, rest))
    return _all(found, _object(piece, rest, ordered) if kind == "object" else _array(piece, rest))


def _all(*verdicts: bool | None) -> bool | None:
    return False if False in verdicts else None if None in verdicts else True


def _of_type(piece: TextPiece, said: list[_Said]) -> bool | None:
    """What ``type`` says, and ``enum`` where no value in it is of that type."""
    kind, found = piece.place.kind, True
    types = [each.schema.types or frozenset() for each in said if each.field == "types"]
    if kind != "number":
        own = _WORDS[piece.data[:1]][0] if kind == "word" else kind
        return all(own in each for each in types)
    for each in types:
        if "number" not in each:
            if "integer" not in each:
                return False
            found = found and piece.data.lstrip(b"-").isdigit()
    return found or None


def _string(piece: TextPiece, said: list[_Said]) -> bool | None:
    if b"\\" in piece.data:
        return None
    try:
        text = piece.data[1:-1].decode() if piece.whole else piece.data[1:].decode()
    except UnicodeDecodeError:
        return None
    low = max((each.schema.min_length for each in said if each.field == "min_length"), default=0)
    high = min((inf if each.schema.max_length is None else each.schema.max_length
                for each in said if each.field == "max_length"), default=inf)  # fmt: skip
    enums = [each.schema.enum or () for each in said if each.field == "enum"]
    if enums:
        values = (value for value in enums[0] if isinstance(value, str) and low <= len(value) <= high)
        found = any(
            (value == text if piece.whole else value.startswith(text)) and all(value in other for other in enums)
            for value in values
        )
    elif piece.whole:
        found = low <= len(text) <= high
    else:
        found = max(low, len(text)) <= high
    return None if found and any(each.field in ("pattern", "format") for each in said) else found


def _number(piece: TextPiece, said: list[_Said]) -> bool | None:
    if not said:
        return True
    if not piece.whole or not _PLAIN.fullmatch(piece.data):
        return None
    value = Decimal(piece.data.decode())
    for field, _, schema in said:
        bound = getattr(schema, field)
        if not (
            any(isinstance(each, Decimal) and each == value for each in bound) if field == "enum"
            else value >= bound if field == "minimum"
            else value <= bound if field == "maximum"
            else value > bound if field == "exclusive_minimum"
            else value < bound
        ):  # fmt: skip
            return False
    return True


def _array(piece: TextPiece, said: list[_Said]) -> bool | None:
    if any(each.field == "enum" for each in said):
        return None if all(_has(each, list) for each in said if each.field == "enum") else False
    count = len(piece.place.children) + _is_pending(piece)
    low, high = 0, inf
    for field, part, schema in said:
        if field == "min_items":
            low = max(low, schema.min_items)
        else:
            bound = schema.max_items if field == "max_items" else int(part) if part else len(schema.prefix_items)
            high = high if bound is None else min(high, bound)
    return low <= count <= high if piece.whole else max(low, count) <= high


def _has(said: _Said, kind: type) -> bool:
    return any(isinstance(value, kind) for value in said.schema.enum or ())


def _is_pending(piece: TextPiece) -> bool:
    """Whether a comma was written that something must follow."""
    last = piece.place.children[-1:]
    return not piece.whole and bool(last) and last[0].end >= 0 and piece.data.rstrip(b" \t\n\r").endswith(b",")


# -- objects --------------------------------------------------------------------------------------------------


class _Members:
    """What keywords say of an object's members: which there may be, must be, and in which order."""

    def __init__(self, said: list[_Said], ordered: bool) -> None:
        self.required = {name for each in said if each.field == "required" for name in each.schema.required}
        self.dependent = [each.schema.dependent_required for each in said if each.field == "dependent_required"]
        self.forbidden = {each.part for each in said if each.field == "properties" and each.part}
        closing = [set(each.schema.properties) for each in said if each.field == "additional_properties"]
        self.allowed = set.intersection(*closing) if closing else None
        self.low = max((each.schema.min_properties for each in said if each.field == "min_properties"), default=0)
        self.high = min((inf if each.schema.max_properties is None else each.schema.max_properties
                         for each in said if each.field == "max_properties"), default=inf)  # fmt: skip
        in_order = {name: None for each in said if each.field in _DECLARING for name in each.schema.properties}
        in_order |= {name: None for each in said if each.field == "required" for name in each.schema.required}
        self.declared = {name: place for place, name in enumerate(in_order)} if ordered else {}

    def follow(self, names: Sequence[str]) -> bool | None:
        """Whether names in an order can be those that an object begins with."""
        found = set(names)
        todo = [name for name in self.required if name not in found]
        missing = set(todo)
        for each in self.dependent:
            todo += [name for has, needed in each.items() if has in found for name in needed]
        for name in todo:  # grows
            if name not in found:
                missing.add(name)
                found.add(name)
                todo += [needed for each in self.dependent for needed in each.get(name, ())]
        if len(found) > self.high or found & self.forbidden:
            return False
        if self.allowed is not None and not found <= self.allowed:
            return False
        places = [self.declared.get(name, len(self.declared)) for name in names] if self.declared else []
        if any(a > b for a, b in pairwise(places)):
            return False
        last = max(places, default=-1)
        if any(self.declared.get(name, len(self.declared)) < last for name in missing):
            return False
        if len(found) >= self.low:
            return True
        return self.low <= self.high if self.allowed is None else None

    def next_names(self, begun: str, names: Sequence[str]) -> Iterator[str]:
        """The names that can come with a beginning, of those that nothing is said of one for all."""
        if self.allowed is None:
            yield _FRESH
            known = {*self.required, *self.declared, *(name for each in self.dependent for name in each)}
        else:
            known = self.allowed
        yield from (name for name in known if name.startswith(begun) and name not in names)


#: Fields beside which ``properties`` is said, which orders members.
_DECLARING = frozenset({"properties", "required", "additional_properties"})


def _object(piece: TextPiece, said: list[_Said], ordered: bool) -> bool | None:
    if any(each.field == "enum" for each in said):
        return None if all(_has(each, dict) for each in said if each.field == "enum") else False
    if any(each.field == "additional_properties" and each.schema.pattern_properties for each in said):
        return None
    declaring = {id(each.schema) for each in said if each.field in _DECLARING}
    if ordered and (len(declaring) > 1 or any(each.field == "dependent_required" for each in said)):
        return None
    names, members = piece.place.names, _Members(said, ordered)
    if len(set(names)) < len(names):
        return None
    if piece.whole:
        complete = members.required.union(
            *(needed for each in members.dependent for has, needed in each.items() if has in names)
        )
        return complete <= set(names) and members.low <= len(names) and members.follow(names)
    begun = _begun(piece)
    if begun is None:
        return None
    is_begun = piece.place.name_start >= 0 and len(names) == len(piece.place.children)
    if not is_begun and not _is_pending(piece):
        return members.follow(names)
    verdicts = {members.follow([*names, name]) for name in members.next_names(begun, names)}
    return True if True in verdicts else None if None in verdicts else False


def _begun(piece: TextPiece) -> str | None:
    """The name that a piece ends within, as far as it is there; None where that can't be told."""
    start = piece.place.name_start
    if start < 0 or len(piece.place.names) > len(piece.place.children):
        return ""
    data = piece.data[start - piece.place.start :]
    try:
        return None if b"\\" in data else data[1:].decode()
    except UnicodeDecodeError:
        return None
