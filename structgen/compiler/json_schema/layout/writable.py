"""The values that can be written: the drafts of a schema, narrowed to them.

No string and no name holds what a `TextOptions` excludes. In the tags of a style only objects can be written. Their
members' values end where the closing tag first stands, so no string in them holds it. Names that the schema does not
declare are of characters that mean nothing in any tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ....budget import Budget, Meter
from ....definitions.styles import Style
from ....errors import UnsupportedError
from ..normal_form.shapes import Choice, KeyClass, ObjectShape, Option, Value
from ..strings.strings import StringSet
from .options import TextOptions


@cache
def _plain_names() -> StringSet:
    """Names of members that are not declared."""
    return StringSet.pattern(r'^[^<>"&\x00-\x1f]+$', Meter(Budget()), "")


def writable(drafts: Sequence[Value], layout: TextOptions, meter: Meter) -> Sequence[Value]:
    """Drafts whose first is the root, narrowed; some may have no values then. Raises `UnsupportedError`."""
    if not layout.forbidden:
        return drafts
    narrowing = _Narrowing(drafts, layout.forbidden, meter)
    return narrowing.plain() if layout.style is None else _Tagging(narrowing, layout.style).run()


class _Narrowing:
    """Values without the strings and names that hold one of some texts."""

    def __init__(self, drafts: Sequence[Value], forbidden: tuple[str, ...], meter: Meter) -> None:
        self.meter = meter
        self._drafts = drafts
        self._forbidden = forbidden
        self._known: dict[StringSet, StringSet] = {}

    def plain(self) -> list[Value]:
        """All drafts, narrowed."""
        return [self._narrowed(draft) for draft in self.meter.each(self._drafts, "narrowing values", every=1)]

    def _narrowed(self, draft: Value) -> Value:
        strings = draft.strings and self._without(draft.strings)
        draft = draft._replace(strings=None if strings is None or strings.is_empty() else strings)
        return draft._replace(objects=tuple(map(self._shape, draft.objects))) if draft.objects else draft

    def _shape(self, shape: ObjectShape) -> ObjectShape:
        properties = tuple(
            p._replace(choice=()) if any(text in p.name for text in self._forbidden) else p
            for p in self.meter.each(shape.properties, "narrowing values")
        )
        others = [KeyClass(self._without(keys), choice) for keys, choice in shape.others]
        return shape._replace(properties=properties, others=_inhabited(others))

    def _without(self, strings: StringSet) -> StringSet:
        known = self._known.get(strings)
        if known is None:
            known = self._known[strings] = strings.without(self._forbidden, self.meter)
        return known


class _Tagging:
    """Values whose objects can be written in tags: those of the root, or, where items have tags too, all."""

    def __init__(self, narrowing: _Narrowing, style: Style) -> None:
        self._within = [draft.mapped(_moved) for draft in narrowing.plain()]
        self._style = style
        self._meter = narrowing.meter

    def run(self) -> list[Value]:
        """The root, of objects only, and then all drafts as they are written within a member's value."""
        root = self._tagged(self._within[0])
        within = map(self._tagged, self._within) if self._style.item else self._within
        return [Value(objects=root.objects, pointer=root.pointer), *within]

    def _tagged(self, draft: Value) -> Value:
        if not draft.objects:
            return draft
        return draft._replace(objects=tuple(self._shape(shape, draft.pointer) for shape in draft.objects))

    def _shape(self, shape: ObjectShape, pointer: str) -> ObjectShape:
        for p in shape.properties:
            if p.choice and self._style.spelled(p.name) is None:
                raise UnsupportedError(
                    f"the name {p.name!r} cannot be written in tags",
                    where=pointer or "#",
                    remedy="Name the property by letters, digits, hyphens and underscores.",
                )
        if not shape.others or self._style.again is not None:
            return shape._replace(others=())
        # Lowering forbids declared names at closing quotes only.
        declared = StringSet.literal(p.name for p in shape.properties).complement(self._meter)
        names = _plain_names().intersect(declared, self._meter)
        others = [KeyClass(keys.intersect(names, self._meter), choice) for keys, choice in shape.others]
        return shape._replace(others=_inhabited(others))


def _inhabited(others: list[KeyClass]) -> tuple[KeyClass, ...]:
    return tuple(key_class for key_class in others if not key_class.keys.is_empty())


def _moved(choice: Choice) -> Choice:
    return tuple([Option(value + 1, marks) for value, marks in choice])
