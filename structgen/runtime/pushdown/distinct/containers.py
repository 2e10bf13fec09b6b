"""Items that are arrays and objects: what is known of a value while it is being written.

Two arrays are equal where their items are, two objects where their members are, in whatever order (of members of one
name the last counts). So a value that is over is a `Compound`, whose members are in order of their names.

Whether a value in progress can still turn into one that has been there is seen from its *leaves*: the scalars and
names in it, each under its path. As soon as one of them is at its path in no value that has been there, it can't.
Paths are hashes, and combinations of leaves are not looked at, so this says at times that it can where it can't; what
is over is compared whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple, TypeAlias

from ..store.configuration import StoredConfiguration
from .items import ItemInProgress, Rope, String, begun
from .value_set import Values, ValuesAsked, ValueSet, with_value

OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE, COLON = b"[]{}:"

SPACES = frozenset(b" \t\n\r")

#: The bytes that an item can begin with, or that may stand before it.
_BEGINNINGS = b' \t\n\r"-0123456789tfn[{'

_STRUCTURE = _BEGINNINGS + b"]},:"

#: Of a member its name, of an item its number; None for the names themselves.
_Key: TypeAlias = "bytes | int | None"

#: A value that is over: of a scalar the canonical form (`ItemInProgress.value`).
Value: TypeAlias = "bytes | Compound"


class Compound:
    """An array or an object that is over, ``members`` in canonical order. Equal ones have one ``digest``."""

    __slots__ = ("digest", "kind", "members")

    def __init__(self, kind: int, members: tuple[tuple[bytes | int, Value], ...]) -> None:
        self.kind, self.members = kind, members
        digests = tuple([(key, hash(value) if isinstance(value, bytes) else value.digest) for key, value in members])
        self.digest: int = hash((kind, digests))

    def flat(self) -> bytes:
        """Bytes that are the same for equal values, and no others."""
        found: list[bytes] = []
        todo: list[Value] = [self]
        while todo:
            here = todo.pop()
            if isinstance(here, bytes):
                found.append(b"%d:%b" % (len(here), here))
                continue
            found.append(b"%c%d:" % (here.kind, len(here.members)))
            for key, value in reversed(here.members):
                todo += (value,) if isinstance(key, int) else (value, key)
        return b"".join(found)

    def leaves(self) -> Iterator[bytes]:
        """The leaves, each behind its path, and what says which containers there are."""
        todo: list[tuple[bytes, Value]] = [(b"", self)]
        while todo:
            path, here = todo.pop()
            yield path + _entry(here)
            if isinstance(here, bytes):
                continue
            if here.kind == OPEN_BRACE:
                names = _path(path, None)
                yield from (names + key for key, _ in here.members if isinstance(key, bytes))
            todo += ((_path(path, key), value) for key, value in here.members)


def _path(path: bytes, key: _Key) -> bytes:
    return hash((path, key)).to_bytes(8, "big", signed=True)


def _entry(value: Value) -> bytes:
    """What a value is at its path."""
    if isinstance(value, bytes):
        return value
    return bytes((value.kind,)) + value.digest.to_bytes(8, "big", signed=True)


def _flat(value: Value) -> bytes:
    return value if isinstance(value, bytes) else value.flat()


class LeavesAt(NamedTuple):
    """What stands at some path in the items of an array, so far."""

    leaves: ValueSet
    path: bytes = b""

    @property
    def longest(self) -> int:
        """See `ValuesAsked`."""
        return self.leaves.longest

    def __contains__(self, value: object) -> bool:
        return isinstance(value, bytes) and self.path + value in self.leaves

    def has_prefix(self, prefix: bytes) -> bool:
        """See `ValuesAsked`."""
        return self.leaves.has_prefix(self.path + prefix)

    def following(self, prefix: bytes) -> Iterator[int]:
        """See `ValuesAsked`."""
        return self.leaves.following(self.path + prefix)

    def count(self, prefix: bytes) -> int:
        """See `ValuesAsked`."""
        return self.leaves.count(self.path + prefix)

    def at(self, key: _Key) -> LeavesAt:
        """The same of a member."""
        return LeavesAt(self.leaves, _path(self.path, key))


class Known(NamedTuple):
    """The items of an array so far, and the leaves of those that are containers; or the names of an object."""

    values: Values = None
    leaves: Values = None

    def with_item(self, item: Value) -> Known:
        """With one more; the same where it is among them."""
        values = with_value(self.values, _flat(item))
        if values is self.values:
            return self
        leaves = self.leaves
        for leaf in () if isinstance(item, bytes) else item.leaves():
            leaves = with_value(leaves, leaf)
        return Known(values, leaves)


class ContainerPart:
    """What is over of a container: a list from its end, whose members are never changed."""

    __slots__ = ("before", "count", "key", "value")

    def __init__(self, before: ContainerPart | None, key: bytes | int, value: Value) -> None:
        self.before, self.key, self.value = before, key, value
        self.count: int = before.count + 1 if before else 1


def _parts(last: ContainerPart | None) -> Iterator[ContainerPart]:
    while last is not None:
        yield last
        last = last.before


class Around:
    """What is around a container.

    Parameters
    ----------
    seen:
        What was known before it began; None for the outermost container of which something is known.
    kind:
        Its bracket.
    levels:
        The sets that it may be in.
    """

    __slots__ = ("is_item", "kind", "levels", "seen")

    def __init__(self, seen: Seen | None, kind: int, levels: tuple[LeavesAt, ...] = ()) -> None:
        self.seen, self.kind, self.levels = seen, kind, levels
        #: Whether its value matters, being or being within an item that is told apart.
        self.is_item: bool = seen is not None and (
            seen.around.is_item or (seen.known is not None and seen.around.kind == OPEN_BRACKET)
        )


class Seen(NamedTuple):
    """The innermost container, if its items or names are told apart, or those of one around it.

    Parameters
    ----------
    around:
        What is around it.
    known:
        Its items or names; None where they may be equal.
    item:
        The scalar in progress, be it an item, a name, or the value of a member; None between two.
    is_due:
        Whether an item or a member must follow, since there was a comma.
    parts:
        What is over of it, within another item.
    name:
        Of the member whose value is in progress or due.
    levels:
        Of all arrays around it the leaves, in so far as the items in progress there can turn into such as have been.
    names:
        Of an object within an item its names so far, if it can be one that has been: a name that comes again takes
        back what its member was.
    """

    around: Around
    known: Known | None
    item: ItemInProgress | None = None
    is_due: bool = False
    parts: ContainerPart | None = None
    name: bytes | None = None
    levels: tuple[LeavesAt, ...] = ()
    names: Values = None

    @property
    def is_object(self) -> bool:
        """Whether it is an object."""
        return self.around.kind == OPEN_BRACE

    @property
    def _here(self) -> _Key:
        if self.is_object:
            return self.name
        return self.parts.count if self.parts else 0

    # -- following a text ------------------------------------------------------------------------------

    def begun(self, byte: int) -> Seen:
        """With a scalar that begins."""
        return self.with_scalar(begun(byte))

    def with_scalar(self, item: ItemInProgress) -> Seen:
        """With a scalar in progress."""
        levels = self.levels
        if levels:
            here = self._here
            levels = tuple([level for level in levels if item.can_be_in(level.at(here))])
        found = Seen(self.around, self.known, item, False, self.parts, self.name, levels, self.names)
        if not isinstance(item, String) or isinstance(item.text, Rope) or not found.is_other():
            return found
        return Seen(self.around, self.known, item.apart(), False, self.parts, self.name, levels, self.names)

    def due(self) -> Seen:
        """Behind a comma."""
        return Seen(self.around, self.known, None, True, self.parts, self.name, self.levels, self.names)

    def ended(self, value: Value) -> Seen:
        """With the item or member in progress over, or its name."""
        known, around, here = self.known, self.around, self._here
        if known is not None and self.name is None:
            known = known.with_item(value)
        levels = self.levels
        if levels:
            entry = _entry(value)
            levels = tuple([level for level in levels if entry in level.at(here)])
        if here is None:  # a name
            name, names = _flat(value), self.names
            if around.levels:
                names = with_value(names, name)
                levels = around.levels if names is self.names else levels
            return Seen(around, known, None, False, self.parts, name, levels, names)
        parts = ContainerPart(self.parts, here, value) if around.is_item else None
        return Seen(around, known, None, False, parts, None, levels, self.names)

    def opened(self, kind: int, *, is_distinct: bool) -> Seen:
        """What is within a container that begins."""
        bracket, here = bytes((kind,)), self._here
        levels = [level.at(here) for level in self.levels]
        if self.known is not None and self.known.leaves is not None:
            levels.append(LeavesAt(self.known.leaves))
        around = Around(self, kind, tuple([level for level in levels if level.has_prefix(bracket)]))
        return Seen(around, Known() if is_distinct else None, levels=around.levels)

    def closed(self) -> Compound:
        """The value of the container, which is over; without its members where they don't matter."""
        return Compound(self.around.kind, self._members())

    def _members(self) -> tuple[tuple[bytes | int, Value], ...]:
        last: dict[bytes | int, Value] = {}
        for part in _parts(self.parts):
            last.setdefault(part.key, part.value)
        return tuple(sorted(last.items(), key=_by_key))

    def without_set(self) -> Seen | None:
        """The same where the items may be equal after all; None where that leaves nothing to be known."""
        return self._replace(known=None) if self.around.seen is not None else None

    # -- what may have been there ----------------------------------------------------------------------

    def is_other(self) -> bool:
        """Whether all items in progress are seen to differ from those before them, and none is due."""
        if self.levels:
            return False
        if self.item is None:
            return not (self.is_due and self.finite())
        return not any(self.item.can_be_in(each) for each in self.finite())

    def distinct_around(self) -> int:
        """How many arrays and objects there are, this one and those around it, whose items or names are told apart."""
        found = 0
        here: Seen | None = self
        while here is not None:
            found += here.known is not None
            here = here.around.seen
        return found

    def finite(self) -> list[ValueSet]:
        """The sets that the next scalar, or the one in progress, is at least not to be in, whatever follows it."""
        if self.name is not None:
            return []
        return [each for each in (self.known and self.known.values, self.names) if each is not None]

    def sets(self) -> list[ValuesAsked]:
        """Of the scalar in progress, what can make it equal."""
        here = self._here
        return [*(level.at(here) for level in self.levels), *self.finite()]

    def bytes_towards(self) -> frozenset[int]:
        """The bytes after which items in progress can turn into such as have been there, and perhaps others."""
        if self.item is None:
            if self.levels:
                return frozenset(_STRUCTURE)
            return frozenset(_BEGINNINGS if self.is_due and self.finite() else b"")
        found = [self.item.bytes_towards(each) for each in self.sets() if self.item.can_be_in(each)]
        return frozenset().union(*found)

    def crowd(self, byte: int) -> int:
        """How many values one more byte can lead towards: fewer have more room beside them."""
        item = begun(byte) if self.item is None else self.item.after(byte)
        return sum(each.count(item.beginning()) for each in self.sets())

    def key(self) -> Hashable:
        """Equal where the same follows, within an item of the outermost array that can have been there."""
        found: list[Hashable] = []
        if self.item is not None:
            found += [self.item.key(each) for each in self.sets()]
        here = self
        while here.around.seen is not None:
            members = tuple([(key, _flat(value)) for key, value in here._members()])
            found.append((here.item is None, here.is_due, here.name, here.around.kind, members, here.levels))
            here = here.around.seen
        return tuple(found), here.is_due, here.item is None, here.name


#: The threads, and the innermost container if items are told apart in it or around it.
Place: TypeAlias = "tuple[StoredConfiguration, Seen | None]"


def _by_key(member: tuple[bytes | int, Value]) -> tuple[int, bytes]:
    key = member[0]
    return (key, b"") if isinstance(key, int) else (0, key)
