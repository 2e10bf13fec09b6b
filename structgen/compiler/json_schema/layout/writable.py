"""The values that can be written in the tags of a style: the drafts of a schema, narrowed to them.

Only objects can. Their members' values end where the closing tag first stands, so no string in them holds it. Names
that the schema does not declare are of characters that mean nothing in any tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ....budget import Budget, Meter
from ....errors import UnsupportedError
from ..normal_form.shapes import Choice, KeyClass, ObjectShape, Option, Value
from ..strings.strings import StringSet
from .styles import Style


@cache
def _plain_names() -> StringSet:
    """Names of members that are not declared."""
    return StringSet.pattern(r'^[^<>"&\x00-\x1f]+$', Meter(Budget()), "")


def writable(drafts: Sequence[Value], style: Style, meter: Meter) -> list[Value]:
    """Drafts whose first is the root, narrowed; some may have no values then. Raises `UnsupportedError`."""
    return _Narrowing(drafts, style, meter).run()


class _Narrowing:
    def __init__(self, drafts: Sequence[Value], style: Style, meter: Meter) -> None:
        self.drafts = drafts
        self.style = style
        self.meter = meter
        self.closing = style.closing.decode()
        self._known: dict[StringSet, StringSet] = {}

    def run(self) -> list[Value]:
        """The root as it is written in tags, and then all drafts as they are written within a member's value."""
        within = [self._within(draft) for draft in self.meter.each(self.drafts, "narrowing values to what tags hold")]
        root = within[0]
        shapes = tuple(self._tagged(shape, root.pointer) for shape in root.objects)
        return [Value(objects=shapes, pointer=root.pointer), *within]

    def _within(self, draft: Value) -> Value:
        """A draft, by its number plus one."""
        strings = draft.strings and self._without(draft.strings)
        draft = draft._replace(strings=None if strings is None or strings.is_empty() else strings).mapped(_moved)
        if not draft.objects:
            return draft
        return draft._replace(objects=tuple(self._shape(shape, draft.pointer) for shape in draft.objects))

    def _shape(self, shape: ObjectShape, pointer: str) -> ObjectShape:
        properties = [p._replace(choice=()) if self.closing in p.name else p for p in shape.properties]
        others = [KeyClass(self._without(keys), choice) for keys, choice in shape.others]
        shape = shape._replace(properties=tuple(properties), others=_inhabited(others))
        return self._tagged(shape, pointer) if self.style.item else shape

    def _without(self, strings: StringSet) -> StringSet:
        known = self._known.get(strings)
        if known is None:
            known = self._known[strings] = strings.without(self.closing, self.meter)
        return known

    def _tagged(self, shape: ObjectShape, pointer: str) -> ObjectShape:
        for p in shape.properties:
            if p.choice and self.style.spelled(p.name) is None:
                raise UnsupportedError(
                    f"the name {p.name!r} cannot be written in tags",
                    where=pointer or "#",
                    remedy="Name the property by letters, digits, hyphens and underscores.",
                )
        if not shape.others:
            return shape
        # Lowering forbids declared names at closing quotes only.
        declared = StringSet.literal(p.name for p in shape.properties).complement(self.meter)
        names = _plain_names().intersect(declared, self.meter)
        others = [KeyClass(keys.intersect(names, self.meter), choice) for keys, choice in shape.others]
        return shape._replace(others=_inhabited(others))


def _inhabited(others: list[KeyClass]) -> tuple[KeyClass, ...]:
    return tuple(key_class for key_class in others if not key_class.keys.is_empty())


def _moved(choice: Choice) -> Choice:
    return tuple([Option(value + 1, marks) for value, marks in choice])


