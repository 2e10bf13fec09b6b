"""Definitions that begin while a lexeme before them could go on, and undo what was read of them.

The lexer takes what is longer, so behind ``a`` that ``abcd`` may still become, a definition has the texts that do not
begin with ``bcd``. Steps drop what is undone byte by byte. Here it is proved of each beginning that some text of the
definition is always left, or that the lexeme may go on as the terminal that it was taken for; else it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...budget import Meter
from ...errors import UnsupportedError
from ...runtime.core.bitsets import set_at, sets_of
from ...runtime.core.digraph import bits
from ...runtime.grammar.completability.obligations import Watched
from ...runtime.grammar.embedded import Embedded, Inner, InnerMachine
from ...runtime.grammar.tables import GrammarTables

#: Bytes of a place that a lexeme comes to while others are watched.
_BYTES_OF_PLACE = 300

#: Places within a definition that are followed while a lexeme before it is watched.
_MOST_PLACES = 1 << 12

_DOING = "following what may be undone"


def check_beginnings(tables: GrammarTables, embedded: Embedded, meter: Meter) -> None:
    """Refuse definitions that begin while a lexeme before them could go on, where that may leave a text without end.

    One with a budget is followed as far as its first byte, so that is where the lexeme has to come to nothing, unless
    it may go on as what it is: a comment up to the end of its line, within a character.

    Raises `UnsupportedError` and `BudgetExceededError`.
    """
    number = {terminal: k for k, (terminal, _) in enumerate(embedded.definitions)}
    behind, proved = _Behind(tables), set[tuple[int, int, Watched]]()
    for last, watched, is_own in _watched(tables, behind, meter) if number else ():
        for terminal, k in number.items():
            if not behind(last)[0] >> terminal & 1 or (k, last if is_own else -1, watched) in proved:
                continue
            proved.add((k, last if is_own else -1, watched))
            is_last = not behind(terminal)[0] & ~(1 << tables.end)
            proof = _Proof(tables, embedded.definitions[k][1], last if is_own else -1, meter, is_last=is_last)
            if not proof.holds(watched, 1 if k in embedded.budgeted else _MOST_PLACES):
                raise UnsupportedError(
                    "a lexeme before it may go on for several bytes with what it begins with",
                    where=f"terminal {tables.name(terminal)}",
                    remedy=f"{_longer(tables, watched)} Have a string come before it with which no other terminal"
                    " begins, or use max_chars.",
                )


def _longer(tables: GrammarTables, watched: Watched) -> str:
    """The terminals that are in the way."""
    longer = (tables.futures[state] for w in watched for state in tables.rows[w] if state >= 0)
    names = sorted({tables.name(t) for future in longer for t in bits(future)})
    return f"What may go on is {', '.join(names)}."


class _Proof:
    """Whether a definition that begins while lexemes before it are watched leaves no text without end.

    Parameters
    ----------
    tables, machine:
        The lexer, and the definition.
    last:
        The terminal right before it, if it alone is watched; else -1.
    is_last:
        Whether nothing follows the definition.
    """

    def __init__(self, tables: GrammarTables, machine: InnerMachine, last: int, meter: Meter, *, is_last: bool) -> None:
        self._tables = tables
        self._machine = machine
        self._last = last
        self._meter = meter
        self._is_last = is_last

    def holds(self, watched: Watched, most: int) -> bool:
        """Whether it is so; False where that takes more than ``most`` places to see."""
        todo: list[tuple[Inner, Watched]] = [(self._machine.start_threads, watched)]
        number = {todo[0]: 0}
        before: list[list[int]] = [[]]
        sure = {0}  # where all is undone at once, the definition does not begin at all
        for here, place in enumerate(todo):  # grows as it goes
            self._meter.check_time(_DOING)
            if here and self._goes_on(place[1]):
                sure.add(here)
                continue
            if here >= most:
                return False
            if here and self._machine.may_end(place[0]):
                if not self._is_last:
                    return False
                sure |= set() if self._tables.obligations.lapses(place[1]) else {here}
            for after in self._after(*place):
                if not after[1]:
                    sure.add(here)
                    continue
                there = number.setdefault(after, len(todo))
                if there == len(todo):
                    todo.append(after)
                    before.append([])
                before[there].append(here)
        for each in (queue := [*sure]):  # grows as it goes
            more = {*before[each]} - sure
            sure |= more
            queue += more
        return len(sure) == len(todo)

    def _after(self, inner: Inner, left: Watched) -> Iterator[tuple[Inner, Watched]]:
        """Where bytes of the definition lead, and what is still watched there."""
        for byte in self._machine.candidates(inner):
            still = self._tables.obligations.after(left, int(self._tables.class_of[byte]))
            after = () if still is None else self._machine.after_token(self._machine.step(inner, byte))
            if after and still is not None:
                yield after, still

    def _goes_on(self, watched: Watched) -> bool:
        """Whether the lexeme before may still become what it was taken for, so that all goes on from there."""
        return self._last >= 0 and all(self._tables.futures[each] >> self._last & 1 for each in watched)


class _Behind:
    """What may come behind terminals, as far as the parser's states tell, and in which contexts."""

    def __init__(self, tables: GrammarTables) -> None:
        accepted = [set_at(tables.shifted, state) for state in range(len(tables.context))]
        for (state, *_), before in zip(tables.reduce.tolist(), sets_of(tables.before), strict=True):
            accepted[state] |= before
        self._everything = -1, set(tables.starts.tolist())
        self._behind: dict[int, tuple[int, set[int]]] = {}
        for _, terminal, state in tables.shift.tolist():
            followers, starts = self._behind.get(terminal, (0, set()))
            starts.add(int(tables.starts[tables.context[state]]))
            self._behind[terminal] = followers | accepted[state], starts

    def __call__(self, terminal: int) -> tuple[int, set[int]]:
        """The terminals, and the lexer's states in which what comes behind is read; all where that is not known."""
        return self._behind.get(terminal, self._everything)


def _watched(tables: GrammarTables, behind: _Behind, meter: Meter) -> Iterator[tuple[int, Watched, bool]]:
    """All that may be watched where a lexeme begins, with the terminal before it, and whether it alone is."""
    obligations, seen = tables.obligations, set[tuple[int, int, Watched]]()
    todo: list[tuple[int, int, Watched]] = []

    def begin(terminal: int, watched: Watched, *, is_own: bool) -> tuple[int, Watched, bool]:
        _, starts = behind(terminal)
        new = {(terminal, start, watched) for start in starts} - seen
        seen.update(new)
        todo.extend(new)
        return terminal, watched, is_own

    for _, terminal, watch in tables.ends[tables.ends[:, 2] >= 0].tolist():
        yield begin(terminal, (watch,), is_own=True)
    for last, state, watched in meter.each(todo, _DOING):  # grows as it goes
        meter.check_memory(len(todo) * _BYTES_OF_PLACE, _DOING)
        for target, *others in {*zip(*(tables.rows[each] for each in (state, *watched)), strict=True)}:
            left = obligations.left(others) if target >= 0 else None
            if left and (last, target, left) not in seen:
                seen.add((last, target, left))
                todo.append((last, target, left))
        for terminal, watch in tables.ends_of[state]:
            yield begin(terminal, obligations.with_state(watch, watched), is_own=False)
