"""How much work it is to lower formats: what takes long is lowered when they are compiled, so no step refuses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from .formats import AnyText, AnyTokens, ConstText, Format, Inner, InRow, OneOf, PlainTag, Repeated, Tagged
from .stops import Stops, texts_of

#: Work that is left to a step: letters of texts, about, each some microseconds.
MOST_LATE = 50_000

#: What a state of a regex or a grammar takes; what a bound takes; parts in a row that may all be empty.
_OF_STATE, _OF_BOUND, _EMPTY = 5, 20, 10

#: More is not told apart.
_HUGE = 1 << 40


def work_of(
    formats: list[Format],
    nullable: Mapping[Format, bool],
    stops: Mapping[Format, Stops],
    states: Mapping[Format, int],
    options: Callable[[OneOf, Mapping[Format, int]], Iterable[Format]],
) -> dict[Format, int]:
    """The work of each format, those within before those that they are in, but for what is behind triggers.

    ``states`` are those of the automata of regexes and grammars; schemas say by themselves what they take. Of
    ``options`` that are made of others, only what these begin with is lowered with them.
    """
    work: dict[Format, int] = {}
    for format_ in formats:
        if isinstance(format_, ConstText):
            found = len(format_.value)
        elif isinstance(format_, Inner):
            found = _OF_STATE * states.get(format_, 0)
        elif isinstance(format_, InRow):
            empty = sum(nullable[part] for part in format_.parts)
            found = sum(work[part] for part in format_.parts) * (1 + empty // _EMPTY)
        elif isinstance(format_, Repeated):
            found = work[format_.item] * max(1, format_.min + 1 if format_.max is None else format_.max)
        elif isinstance(format_, AnyText):
            texts = (*format_.excludes, *texts_of(stops[format_]), *(trigger for trigger, _ in format_.triggers))
            found = sum(map(len, texts))
            if format_.is_bounded:
                found = found**2 + _OF_BOUND  # each place in an end may stand beside each place in the text
        elif isinstance(format_, OneOf):
            found = sum(work[option] for option in format_.options)
            if found > MOST_LATE:
                found = sum(work.get(option, _of_begin(option)) for option in options(format_, work))
        elif isinstance(format_, PlainTag):
            found = len(format_.begin.value) + format_.work
        elif isinstance(format_, Tagged):
            found = sum(work[part] for part in format_.children)
        else:
            found = 1
        work[format_] = min(found, _HUGE)
    return work


def _of_begin(format_: Format) -> int:
    return sum(len(part.value) for part in format_.children if isinstance(part, ConstText))


def parts_within(root: Format) -> Iterator[Format]:
    """What is lowered by itself in a format, but not behind triggers: tags whose content counts as such."""
    todo = [root]
    while todo:
        format_ = todo.pop()
        if isinstance(format_, AnyText | AnyTokens):
            if format_.is_bounded:
                yield format_
        elif isinstance(format_, Inner) or (isinstance(format_, Tagged) and format_.is_bounded):
            yield format_
        else:
            todo += format_.children
