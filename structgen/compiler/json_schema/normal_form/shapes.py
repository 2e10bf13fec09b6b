"""The normal form of a schema: for every JSON type, what is allowed of it.

A schema is a set of JSON values, and a set of JSON values is the union of its nulls, booleans, numbers, strings,
arrays and objects. `Value` is that union. Its scalars are sets with an algebra of their own (`NumberSet`,
`StringSet`); arrays and objects are alternatives, each described by its *shape*: which items or members may come,
in which number. Shapes refer to other values by their index in `Values`, so that recursion needs no special case.

This is the seam between the algebra, which brings a schema into this form, and the lowering, which turns it into
a pushdown program. Everything is immutable, and everything in `Values` is *trimmed*: a `Ref` never leads to a value
without members, and no shape is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet

#: Index of a value in `Values.values`.
Ref: TypeAlias = int


class Option(NamedTuple):
    """One kind of value for an item or a member, and the marks that it earns.

    Parameters
    ----------
    value:
        What it may be. The options of one `Choice` have no value in common wherever their marks differ.
    marks:
        Bit ``k`` is set where such an item counts for ``ArrayShape.contains[k]``, such a member for the ``k``-th of
        ``ObjectShape.exists``.
    """

    value: Ref
    marks: int = 0


#: What may stand at a place: any one of the options; never empty, except where a field says so.
Choice: TypeAlias = tuple[Option, ...]


class Count(NamedTuple):
    """How many items must earn a mark: ``min`` to ``max``, None for no upper bound."""

    min: int
    max: int | None = None


class ArrayShape(NamedTuple):
    """Arrays whose first items follow ``prefix``, and all later ones ``rest``.

    Parameters
    ----------
    prefix:
        What the first items may be, by position. (An array may end before all of these are there.)
    rest:
        What any further item may be; ``()`` where there can be none.
    min_items, max_items:
        Bounds on the length; ``max_items`` is None where there is none. Consistent with ``prefix`` and ``rest``.
    contains:
        Bounds on how many items earn mark ``k``.
    unique:
        No two items are equal, as JSON values.
    """

    prefix: tuple[Choice, ...] = ()
    rest: Choice = ()
    min_items: int = 0
    max_items: int | None = None
    contains: tuple[Count, ...] = ()
    unique: bool = False

    def choices(self) -> Iterator[Choice]:
        """What its items may be."""
        yield from self.prefix
        yield self.rest

    def mapped(self, change: Callable[[Choice], Choice]) -> ArrayShape:
        """The shape with other choices."""
        return self._replace(prefix=tuple(map(change, self.prefix)), rest=change(self.rest))


class Property(NamedTuple):
    """A member with a known name.

    Parameters
    ----------
    name:
        The decoded name.
    choice:
        What its value may be; ``()`` where the name is forbidden, which a declared name has to say, since the
        classes of other names don't exclude it.
    required:
        Whether it must be there.
    """

    name: str
    choice: Choice
    required: bool = False


class KeyClass(NamedTuple):
    """Members whose names are not among the shape's properties.

    Parameters
    ----------
    keys:
        The decoded names. Names listed as properties do not count, even where this set contains them. The
        classes of one shape are pairwise disjoint.
    choice:
        What their values may be.
    """

    keys: StringSet
    choice: Choice


class ObjectShape(NamedTuple):
    """Objects with these members.

    Parameters
    ----------
    properties:
        Members with known names, in canonical order: the order in which they are written.
    others:
        Members with other names; they come after the properties, any number of them, in any order.
    min_properties, max_properties:
        Bounds on the number of members, None for no upper bound.
    exists:
        Number of marks, each of which at least one member must earn.
    """

    properties: tuple[Property, ...] = ()
    others: tuple[KeyClass, ...] = ()
    min_properties: int = 0
    max_properties: int | None = None
    exists: int = 0

    def choices(self) -> Iterator[Choice]:
        """What its members may be."""
        for _, choice, _ in self.properties:
            yield choice
        for _, choice in self.others:
            yield choice

    def mapped(self, change: Callable[[Choice], Choice]) -> ObjectShape:
        """The shape with other choices."""
        return ObjectShape(
            tuple([Property(name, change(choice), must) for name, choice, must in self.properties]),
            tuple([KeyClass(keys, change(choice)) for keys, choice in self.others]),
            *self[2:],
        )


class Value(NamedTuple):
    """A set of JSON values, type by type; at least one of the fields is not empty.

    Parameters
    ----------
    null:
        Whether null is one.
    booleans:
        Which of False and True are.
    numbers, strings:
        Never an empty set: None instead.
    arrays, objects:
        Alternatives; they may overlap.
    pointer:
        A JSON pointer into the schema, for messages.
    """

    null: bool = False
    booleans: frozenset[bool] = frozenset()
    numbers: NumberSet | None = None
    strings: StringSet | None = None
    arrays: tuple[ArrayShape, ...] = ()
    objects: tuple[ObjectShape, ...] = ()
    pointer: str = ""

    def children(self) -> list[Ref]:
        """What its items and members may be, each perhaps several times."""
        refs = [ref for array in self.arrays for choice in (*array.prefix, array.rest) for ref, _ in choice]
        for shape in self.objects:
            refs += [ref for _, choice, _ in shape.properties for ref, _ in choice]
            refs += [ref for _, choice in shape.others for ref, _ in choice]
        return refs

    def mapped(self, change: Callable[[Choice], Choice]) -> Value:
        """The value with other choices."""
        if not self.arrays and not self.objects:
            return self
        arrays = tuple([shape.mapped(change) for shape in self.arrays])
        objects = tuple([shape.mapped(change) for shape in self.objects])
        return Value(self.null, self.booleans, self.numbers, self.strings, arrays, objects, self.pointer)


@dataclass(frozen=True)
class Values:
    """A closed system of values: every `Ref` is an index into ``values``; ``root`` is the whole schema's.

    Only those values are finished that the root leads to.
    """

    values: tuple[Value, ...]
    root: Ref
    relaxations: tuple[str, ...] = ()
    #: Members that no value satisfies, so that no text has them: a line each, with the reason and its JSON pointer.
    impossible: tuple[str, ...] = ()
