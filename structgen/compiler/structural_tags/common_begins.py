"""Tags that begin alike: what they have in common once, and then their rests, lowered when a text comes to them.

So tags are a radix tree. Of its branches those are lowered that a text takes, or that one token can come to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from .formats import ConstText, Format, InRow, Later, OneOf, PlainTag, Tagged
from .tokens import TokenNames

#: Fewer tags are lowered together; so are the first branches, where there are more.
_FEW, _MANY_BRANCHES = 8, 4

#: Tags with what they begin with: characters, and names of special tokens.
_Begins: TypeAlias = dict["Tagged | PlainTag", list[str]]


def by_begins(options: Sequence[Format], names: TokenNames) -> Iterator[Format]:
    """Formats that have the texts of some options, fewer of them to be lowered at once."""
    begins: _Begins = {}
    branches: dict[str, _Begins] = {}
    for option in options:
        if len(options) < _FEW or not isinstance(option, Tagged | PlainTag) or not (units := _units(option, names)):
            yield option
        else:
            begins[option] = branches.setdefault(units[0], {})[option] = units
    if len(branches) > _MANY_BRANCHES:
        yield from _apart(begins)
        return
    for tags in branches.values():
        if len(tags) < _FEW:
            yield from tags
        else:
            yield _together(tags)


def _units(tag: Tagged | PlainTag, names: TokenNames) -> list[str]:
    """What a tag begins with; nothing, if that is a token."""
    if not isinstance(tag.begin, ConstText):
        return []
    return [unit for text, token in names.split(tag.begin.value) for unit in ([*text] if token is None else [text])]


def _together(tags: _Begins) -> Format:
    """The longest text that all tags begin with, and one of their rests behind it."""
    where = next(iter(tags)).where
    begin = "".join(_common(min(tags.values()), max(tags.values())))
    rests = OneOf(where, tuple(tag.without(begin) for tag in tags))
    return InRow(where, (ConstText(where, begin), Later(where, rests)))


def _apart(tags: _Begins) -> Iterator[Format]:
    """Each tag's text to one character behind where no other is like it, for tokens that end there; and its rest."""
    ordered = sorted(tags, key=lambda tag: tags[tag])
    shared = [len(_common(tags[one], tags[other])) for one, other in pairwise(ordered)]
    for tag, before, after in zip(ordered, [0, *shared], [*shared, 0], strict=True):
        begin = "".join(tags[tag][: max(before, after) + 2])
        yield InRow(tag.where, (ConstText(tag.where, begin), Later(tag.where, tag.without(begin))))


def _common(one: list[str], other: list[str]) -> list[str]:
    """What both begin with."""
    same = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
    return one[: min(same, len(other))]
