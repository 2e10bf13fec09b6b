"""Formats as they were read: few kinds, of which all others are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ...system.types import Foreign

#: A token by its id, or by its name.
TokenName: TypeAlias = "int | str"


@dataclass(frozen=True, eq=False)
class Format:
    """What all formats have: the JSON pointer of where they stand, and what their texts are called, if anything."""

    where: str
    label: str = field(kw_only=True, default="")

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return ()

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts, where that is ``known`` of the formats within."""
        return False


@dataclass(frozen=True, eq=False)
class ConstText(Format):
    """A text; where a special token's name stands in it, the token may stand in its place."""

    value: str

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return not self.value


@dataclass(frozen=True, eq=False)
class OneToken(Format):
    """One of some tokens, or any but these."""

    names: tuple[TokenName, ...]
    complement: bool = False


@dataclass(frozen=True, eq=False)
class Inner(Format):
    """A definition of another kind: `regex`, `gbnf`, `lark` or `json_schema`, its value, and its options."""

    kind: str
    value: Foreign
    options: dict[str, Foreign] = field(default_factory=dict)

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return known[self]


@dataclass(frozen=True, eq=False)
class InRow(Format):
    """One part after the other; at least one."""

    parts: tuple[Format, ...]

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return self.parts

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return all(known[part] for part in self.parts)


@dataclass(frozen=True, eq=False)
class OneOf(Format):
    """Any of some options; at least one."""

    options: tuple[Format, ...]

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return self.options

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return any(known[option] for option in self.options)


@dataclass(frozen=True, eq=False)
class Later(Format):
    """A format that is lowered by itself, when a text comes to it."""

    inner: Format

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return (self.inner,)

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return known[self.inner]


@dataclass(frozen=True, eq=False)
class Repeated(Format):
    """A format ``min`` to ``max`` times; None is unbounded."""

    item: Format
    min: int
    max: int | None

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return (self.item,)

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return self.min == 0 or known[self.item]


@dataclass(frozen=True, eq=False)
class Tagged(Format):
    """``begin content end``, with one of some ends."""

    begin: ConstText | OneToken
    content: Format
    ends: tuple[ConstText | OneToken, ...]

    def without(self, begin: str) -> Tagged:
        """What is left of a tag behind a text that it begins with."""
        assert isinstance(self.begin, ConstText)
        return replace(self, begin=ConstText(self.begin.where, self.begin.value[len(begin) :]))

    @property
    def is_bounded(self) -> bool:
        """Whether it has free text with a bound alone, which is lowered together with the ends."""
        return isinstance(self.content, AnyText) and self.content.is_bounded

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return self.begin, self.content, *self.ends

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return known[self.begin] and known[self.content] and any(known[end] for end in self.ends)


@dataclass(frozen=True, eq=False)
class PlainTag(Format):
    """A tag with the text that it begins with, which is read when a text comes to it.

    ``value`` is its JSON, marshalled, ``depth`` how deep that stands. Of what is behind the beginning it is known
    whether it may be empty (``is_rest_nullable``) and how much ``work`` it is; of all the ``texts``, and the
    ``styles`` of schemas.
    """

    begin: ConstText
    value: bytes
    depth: int
    is_rest_nullable: bool
    work: int
    texts: str
    styles: frozenset[str]

    def without(self, begin: str) -> PlainTag:
        """What is left of a tag behind a text that it begins with."""
        left = ConstText(self.begin.where, self.begin.value[len(begin) :])
        known = self.is_rest_nullable, self.work, self.texts, self.styles
        return PlainTag(self.where, left, self.value, self.depth, *known)

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return not self.begin.value and self.is_rest_nullable


@dataclass(frozen=True, eq=False)
class AnyText(Format):
    """Any text without some strings, of so many characters and tokens at most; within it triggers, if there are any.

    What stands behind a trigger follows it at once; then the text goes on, if ``again``. A *dispatch* may hold what
    ends the tag around it.
    """

    excludes: tuple[str, ...] = ()
    max_chars: int | None = None
    max_tokens: int | None = None
    triggers: tuple[tuple[str, Format], ...] = ()
    again: bool = True
    is_dispatch: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether something is counted in it."""
        return self.max_chars is not None or self.max_tokens is not None

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return tuple(behind for _, behind in self.triggers)

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return True


@dataclass(frozen=True, eq=False)
class Ended(Format):
    """Free text with a bound, and one of some ends."""

    text: AnyText
    ends: tuple[ConstText | OneToken, ...]


@dataclass(frozen=True, eq=False)
class AnyTokens(Format):
    """Any tokens but some, so many at most; within them triggers, as in `AnyText`."""

    excludes: tuple[TokenName, ...] = ()
    max_tokens: int | None = None
    triggers: tuple[tuple[TokenName, Format], ...] = ()
    again: bool = True
    is_dispatch: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether something is counted in it."""
        return self.max_tokens is not None

    @property
    def children(self) -> tuple[Format, ...]:
        """The formats directly within."""
        return tuple(behind for _, behind in self.triggers)

    def is_nullable(self, known: Mapping[Format, bool]) -> bool:
        """Whether the empty text is among its texts."""
        return True
