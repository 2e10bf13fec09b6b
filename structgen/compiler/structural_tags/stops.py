"""What stops free text: the ends of the nearest tag around it, wherever in the tag it stands; but for a dispatch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ...budget import Meter
from ...errors import DefinitionError
from .formats import AnyText, AnyTokens, ConstText, Format, OneToken, PlainTag, Tagged

#: The ends of the nearest tag around a format that are not empty.
Stops: TypeAlias = "tuple[ConstText | OneToken, ...]"

_DOING = "looking for triggers that nothing can come to"


def stops_of(root: Format, meter: Meter) -> dict[Format, Stops]:
    """The stops of all formats, but for tags that are not read: in these is no free text.

    Raises `DefinitionError` for triggers that free text never completes.
    """
    stops: dict[Format, Stops] = {}
    todo: list[tuple[Format, Stops]] = [(root, ())]
    while todo:
        format_, around = todo.pop()
        is_dispatch = isinstance(format_, AnyText | AnyTokens) and format_.is_dispatch
        stops[format_] = () if is_dispatch else around
        if isinstance(format_, AnyText):
            _check_triggers(format_, stops[format_], meter)
        if isinstance(format_, Tagged):
            around = tuple(end for end in format_.ends if not isinstance(end, ConstText) or end.value)
        todo += ((child, around) for child in format_.children if not isinstance(child, PlainTag))
    return stops


def texts_of(stops: Stops) -> tuple[str, ...]:
    """Those of them that are texts."""
    return tuple(stop.value for stop in stops if isinstance(stop, ConstText))


def _check_triggers(text: AnyText, stops: Stops, meter: Meter) -> None:
    triggers = [trigger for trigger, _ in text.triggers]
    over, others = _by_length([*text.excludes, *texts_of(stops)]), _by_length(triggers)
    for trigger in triggers:
        hidden = _held(trigger, over, meter) or _held(trigger[:-1], others, meter)
        if hidden:
            raise DefinitionError(
                f"free text never comes to the end of the trigger {trigger!r}, as {hidden!r} stands in it",
                where=text.where or "/",
                remedy="Leave one of the two out.",
            )


def _held(text: str, strings: dict[int, set[str]], meter: Meter) -> str:
    """One of some strings that a text holds, "" where it holds none."""
    for length, known in strings.items():
        meter.check_time(_DOING)
        for at in range(len(text) - length + 1):
            if text[at : at + length] in known:
                return text[at : at + length]
    return ""


def _by_length(strings: Iterable[str]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for each in strings:
        found.setdefault(len(each), set()).add(each)
    return found
