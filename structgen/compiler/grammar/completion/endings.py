"""The endings of a grammar's lexemes, and which of them are unconstrained; see
`structgen.runtime.grammar.completability.lexeme_ends`.

From the start of a text on, all borders are looked at that lexemes lead to, in each context in which the lexer may be
then: whatever terminal the parser may take is taken. Then *unconstrained* is the largest set of endings such that

    (T, b) is unconstrained  if  in each state that the parser can be in behind T, each terminal that it accepts there
                                 has an ending that is unconstrained and can be read behind b, ignored lexemes in
                                 between or not; and if it accepts the end of the text, the text may end there.

So behind an unconstrained ending any text of terminals that the parser takes can be written out. Where it is not
proved that there is one (`structgen.compiler.grammar.completion.completing`), none is called unconstrained. LALR
lookaheads are more than what is accepted, so less may be called so than is; nothing is called so that is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np

from ....budget import Meter
from ....errors import BudgetExceededError
from ....runtime.core.bitsets import set_at, sets_of, words_of
from ....runtime.core.digraph import bits, set_of, solve
from ....runtime.grammar.completability.boundaries import Boundaries
from ....runtime.grammar.completability.lexeme_ends import Endings
from ....runtime.grammar.completability.nesting import Nesting
from ....runtime.grammar.completability.obligations import Watched
from ....runtime.grammar.tables import GrammarTables
from ....system.properties import cached_property
from ..lexer.minimise import successors
from ..parser.conflicts import unproductive
from ..parser.lalr import Lalr
from .completing import Alternative, Completing, Way, are_good
from .lines import LineEnds
from .separators import separated

#: What the meter is told.
_DOING = "looking for what can follow lexemes"

#: Bytes that a lexer state takes up with what it is watched with, besides a set of endings.
_BYTES_OF_PLACE = 400

#: Lexer states with what is watched there that are looked at before it is tried to prove that all endings are
#: unconstrained.
_MOST_EXACT = 1 << 12

#: So many borders of one terminal are what takes over a budget.
_MANY_BORDERS = 1 << 8

#: With a layout, so many borders are looked at; and none where more than so many of those behind one lexeme outlive
#: the next byte. Past that only the next byte is held against what is watched.
_MOST_BORDERS, MOST_LASTING = 1 << 7, 24


def with_endings(
    tables: GrammarTables, table: Lalr, given: int, meter: Meter, *, is_resolved: bool = True
) -> GrammarTables:
    """The tables with the endings of lexemes. Raises `BudgetExceededError`.

    Parameters
    ----------
    tables, table:
        The grammar, and its parser as it can be read.
    given:
        The terminals that are not lexed, definitions and special tokens.
    is_resolved:
        Whether of actions that compete one was taken.
    """
    needless = _needless(tables, table, given)

    def completing(weights: list[int]) -> Completing:
        return Completing(table, needless, weights, meter, is_resolved=is_resolved)

    explorer = _Explorer(tables, given, needless, completing, meter)
    endings = explorer.run()
    layout = tables.layout and replace(tables.layout, is_far=explorer.is_far, room=explorer.room)
    return replace(tables, endings=endings, layout=layout)


def _needless(tables: GrammarTables, table: Lalr, given: int) -> int:
    """Terminals that the lexer never finds and no text needs: rules with one begin with it, or with such a rule.

    So no text comes to a state in which such a rule has begun, and in all others there is another way on.
    """
    symbols, read = table.symbols, given
    for future in sets_of(np.unique(tables.future, axis=0)):
        read |= future
    never = ((1 << tables.end) - 1) & ~read
    if not never:
        return 0
    names = {symbols.names[terminal] for terminal in bits(never)}
    names |= unproductive(symbols, names)
    dead = {symbol for symbol, name in enumerate(symbols.names) if name in names}
    root = len(symbols.names) - 1
    if root in dead or any(dead & {*expansion} and expansion[0] not in dead for _, expansion in symbols.rules):
        return 0
    return never


class _Met:
    """Endings as they are met; by ending its terminal and border, and by lexer state what a lexeme can become."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.known: dict[tuple[int, Watched], int] = {}
        self.terminal: list[int] = []
        self.border: list[Watched] = []
        self.futures: list[int] = []
        self.places = 0  # that were looked at

    def future(self, state: int) -> int:
        """The endings that a lexeme can come to."""
        return self.futures[state]

    def check(self, states: int = 0) -> None:
        """Look at the time, and at the sets of endings that so many lexer states are kept with."""
        self.places += 1
        self._meter.check_time(_DOING)
        self._meter.check_states(states, _DOING)
        self._meter.check_memory(states * (_BYTES_OF_PLACE + len(self.terminal) // 8), _DOING)

    def number(self, terminal: int, border: Watched) -> int:
        """The number of an ending."""
        key = terminal, border
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.terminal)
            self.terminal.append(terminal)
            self.border.append(border)
            self._meter.check_states(found, _DOING)
        return found


class _Explorer:
    def __init__(
        self,
        tables: GrammarTables,
        given: int,
        needless: int,
        completing: Callable[[list[int]], Completing],
        meter: Meter,
        *,
        is_wide: bool = False,
    ) -> None:
        self._is_wide = is_wide
        self._tables = tables
        self._given = given
        self._needless = needless
        self._completing = completing
        self._meter = meter
        self._ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._met = _Met(meter)
        self._terminal, self._border, self._check = self._met.terminal, self._met.border, self._met.check
        self._borders = self._boundaries()
        #: What can be read by context and border, and where ignored lexemes lead to from there.
        self._pairs: dict[tuple[int, Watched], int] = {}
        self._contexts = _contexts_behind(tables, self._ignored)
        #: Whether what is watched is followed past the next lexeme.
        self.is_far = tables.layout is None
        #: Columns: see `structgen.runtime.grammar.indentation.IndentationTerminals`.
        self.room = 0

    def _boundaries(self, is_far: bool | None = None) -> Boundaries:
        met = self._met
        number = (lambda t, border: met.number(t, self._widened(border))) if self._is_wide else met.number
        return Boundaries(self._tables, met.future, number, is_far=is_far, check=met.check)

    def _widened(self, border: Watched) -> Watched:
        """A border with all that is watched at one of its own whatever is read: it forbids more."""
        found = {*border}
        for state in (todo := [*border]):  # grows as it goes
            more = {after for after in self._tables.rows[state] if after >= 0 and not self._tables.beats[after]}
            todo += more - found
            found |= more
        return self._tables.obligations.simplified(tuple(sorted(found)), partial(self._meter.check_time, _DOING))

    def _begin(self) -> None:
        states = len(self._tables.table)
        futures = [self._borders.here(state, ()) for state in range(states)]
        self._check(states)
        solve(futures, successors(self._tables.table, self._meter), self._check)
        self._met.futures = futures
        for terminal in bits(self._given):
            self._met.number(terminal, ())

    def run(self) -> Endings:
        self._begin()
        tables, futures = self._tables, self._met.futures
        in_lines = tables.layout is not None
        unconstrained = self._unconstrained_in_lines() if in_lines else self._unconstrained_alone()
        if all(unconstrained):
            return Endings.all_unconstrained()
        number: dict[Watched, int] = {}
        ends = [
            (terminal, number.setdefault(border, len(number)), is_unconstrained)
            for terminal, border, is_unconstrained in zip(self._terminal, self._border, unconstrained, strict=True)
        ]
        most = max(1, *map(len, number))
        self._meter.check_memory(8 * most * len(number), _DOING)
        watched = [(*border, *[-1] * (most - len(border))) for border in number]
        return Endings(np.array(ends, np.int32), np.array(watched, np.int32), words_of(futures, len(ends)))

    def _unconstrained_alone(self) -> list[bool]:
        """By ending, where there is no layout; none where all are.

        Lexemes that pile up can have any number of borders. Wider ones are few, and what is unconstrained behind one
        is so behind all that it was made of.
        """
        nexts = self._explore(_MOST_EXACT)
        if nexts is None and self._is_proved():
            return []
        try:
            return self._unconstrained(self._explore(None) or [] if nexts is None else nexts)
        except BudgetExceededError as error:
            if nexts is None:
                raise self._piled_up(error) from error
            raise

    def _piled_up(self, error: BudgetExceededError) -> BudgetExceededError:
        """The error that says which terminal's lexemes have too many borders."""
        tables, most = self._tables, Counter[int]()
        for border in dict.fromkeys(self._border):
            most.update(bits(reduce(or_, (tables.futures[state] for state in border), 0)))
        terminal, count = max(most.items(), key=lambda each: each[1], default=(0, 0))
        if count < _MANY_BORDERS:
            return error
        return BudgetExceededError(
            f"behind its short matches longer ones stay open, in {count:,} ways so far, which must be told apart"
            f" ({error.what})",
            where=f"terminal {tables.name(terminal)}",
            remedy="Begin its long matches with what no short match has, or leave one of the two out. sg.Gbnf has no"
            " lexer, and reads such texts in all ways.",
        )

    def _is_proved(self) -> bool:
        """Whether all endings are unconstrained behind borders that are wider."""
        wide = _Explorer(self._tables, self._given, self._needless, self._completing, self._meter, is_wide=True)
        wide._begin()
        nexts = wide._explore(_MOST_EXACT)
        return nexts is not None and all(wide._unconstrained(nexts))

    def _unconstrained_in_lines(self) -> list[bool]:
        """By ending, where there is a layout."""
        count = len(self._terminal)
        self.is_far = self._explore_lines()
        if not self.is_far:
            del self._terminal[count:], self._border[count:]
            self._met.known = {key: ending for key, ending in self._met.known.items() if ending < count}
            self._borders = self._boundaries()
        nesting = Nesting.find(self._tables, self._check)
        if nesting is None:
            return separated(self._tables, self._terminal, self._border, self._contexts, self._meter)
        lines = LineEnds(self._tables, nesting, self._terminal, self._border, self._borders, self._given, self._meter)
        found, self.room = lines.unconstrained(self._completing)
        return found

    def _explore_lines(self) -> bool:
        """Look at all borders, as `_explore` does; whether there are not too many."""
        tables, end = self._tables, self._tables.end
        self._borders = self._boundaries(is_far=True)
        if sum(bool(self._borders.fate(border).stays) for border in {*self._border}) > MOST_LASTING:
            return False
        todo: list[tuple[int, Watched]] = [(int(tables.context[0]), ())]
        seen = dict.fromkeys(todo)
        borders: set[Watched] = set()
        known: dict[int, set[Watched]] = {}  # by what comes next: the borders behind what leaves the context
        for context, border in todo:  # grows as it goes
            borders.add(border)
            if len(borders) > _MOST_BORDERS:
                return False
            following = self._borders.next(context, border)
            more: set[tuple[int, Watched]] = set()
            if following not in known:
                staying = known[following] = set()
                for ending in bits(following):
                    terminal, there = self._terminal[ending], self._border[ending]
                    if terminal > end or self._stays >> terminal & 1:
                        staying.add(there)
                    if terminal > end:
                        more.update((after, there) for after in self._behind_lines)
                    elif not self._stays >> terminal & 1:
                        more.update((after, there) for after in self._contexts[terminal])
            more.update((context, there) for there in known[following])
            if self._given:
                left = self._outlived(border)
                more.update((c, b) for t in bits(self._given) for c in self._contexts[t] for b in left)
            for each in more:
                if each not in seen:
                    seen[each] = None
                    todo.append(each)
        return True

    @cached_property
    def _stays(self) -> int:
        """The terminals that may leave the context as it is."""
        assert self._tables.layout is not None
        return self._ignored | 1 << self._tables.layout.newline

    @cached_property
    def _behind_lines(self) -> list[int]:
        """The contexts that the lexer reads on in behind line ends that mean something."""
        layout = self._tables.layout
        assert layout is not None
        lines = {layout.newline, layout.indent, layout.dedent}
        found = {target for _, terminal, target in self._tables.shift.tolist() if terminal in lines}
        return sorted({int(self._tables.context[target]) for target in found})

    def _explore(self, most: int | None) -> list[int] | None:
        """By pair of a context and a border, in the order of `_pairs`: the endings that come next.

        None where it takes more than ``most`` places of the lexer.
        """
        most = None if most is None else self._met.places + most
        todo: list[tuple[int, Watched]] = [(int(self._tables.context[0]), ())]
        seen = self._pairs = {todo[0]: 0}
        nexts: list[int] = []
        known: dict[int, tuple[int, list[Watched]]] = {}  # by what comes next: itself, and the borders behind ignored

        def meet(context: int, border: Watched) -> None:
            if (context, border) not in seen:
                seen[context, border] = len(todo)
                todo.append((context, border))

        for context, border in todo:  # grows as it goes
            self._check(len(todo))
            if most is not None and self._met.places > most:
                return None
            following = self._borders.next(context, border)
            if following in known:  # all that leaves the context was met before
                following, staying = known[following]
                for there in staying:
                    meet(context, there)
            else:
                staying = known.setdefault(following, (following, []))[1]
                for steps, ending in enumerate(bits(following)):
                    if steps % 256 == 0:
                        self._check(len(todo))
                    terminal, there = self._terminal[ending], self._border[ending]
                    if self._ignored >> terminal & 1:
                        staying.append(there)
                        meet(context, there)
                    else:
                        for after in self._contexts[terminal]:
                            meet(after, there)
            nexts.append(following)
            # Within a definition bytes are read that are none of the lexer's.
            for left in self._outlived(border) if self._given else ():
                for terminal in bits(self._given):
                    for after in (context,) if self._ignored >> terminal & 1 else self._contexts[terminal]:
                        meet(after, left)
        return nexts

    def _outlived(self, border: Watched) -> list[Watched]:
        """What can be watched when bytes were read that no lexeme has, nothing among it."""
        found: dict[Watched, None] = {border: None, (): None}
        todo = list(found)
        for each in todo:  # grows as it goes
            for _, left in self._borders.fate(each).stays:
                if left not in found:
                    self._check(len(todo))
                    found[left] = None
                    todo.append(left)
        return todo

    def _unconstrained(self, nexts: list[int]) -> list[bool]:
        """By ending; the greatest solution."""
        # Two bits more: whether the text may end, and whether whatever byte comes, nothing is watched behind it.
        fates = [self._borders.fate(border) for _, border in self._pairs]
        everything = (1 << self._tables.table.shape[1]) - 1
        reads = [
            each << 2 | (fate.ends == everything) << 1 | fate.is_final for each, fate in zip(nexts, fates, strict=True)
        ]
        ignored = set_of(e for e, terminal in enumerate(self._terminal) if self._ignored >> terminal & 1)
        solve(reads, [
            sorted({self._pairs[context, self._border[ending]] for ending in bits(each & ignored)})
            for (context, _), each in zip(self._pairs, nexts, strict=True)
        ], self._check)  # fmt: skip
        with_terminal = [0] * self._tables.members
        for ending, terminal in enumerate(self._terminal):
            with_terminal[terminal] |= 1 << ending
        unconstrained = self._greatest(reads)
        completing = self._completing(self._weights(reads))
        unproved = completing.unproved()
        unsure = self._ignored if unproved else 0
        for _, terminal, target in self._tables.shift.tolist():
            if target in unproved:
                unsure |= 1 << terminal
        unconstrained &= ~sum(with_terminal[terminal] for terminal in bits(unsure))
        if unconstrained != (1 << len(self._terminal)) - 1:
            unconstrained |= self._planned(reads, unconstrained, with_terminal, completing.ways())
        return [bool(unconstrained >> ending & 1) for ending in range(len(self._terminal))]

    def _weights(self, reads: list[int]) -> list[int]:
        """By terminal its cost in texts that complete others, of which cheap ones are preferred.

        Cheap are terminals that can be read behind many borders, and those behind which much can be read: of Java's
        two terminals for `>` not the one that stands before another `>`.
        """
        read_behind: Counter[int] = Counter()
        readable: dict[int, int] = {}  # by what can be read: of how many terminals
        for read, count in Counter(reads).items():
            self._check()
            terminals = self._terminals_of(read >> 2)
            readable[read] = terminals.bit_count()
            for terminal in bits(terminals):
                read_behind[terminal] += count
        behind: dict[Watched, int] = {}
        for (_, border), read in zip(self._pairs, reads, strict=True):
            behind[border] = max(behind.get(border, 0), readable[read])
        most = [0] * self._tables.members
        for terminal, border in zip(self._terminal, self._border, strict=True):
            most[terminal] = max(most[terminal], behind.get(border, 0))
        lacking = [len(reads) - read_behind[terminal] + max(most) - count for terminal, count in enumerate(most)]
        return [1 + 8 * each for each in lacking[: self._tables.end + 1]]

    def _terminals_of(self, endings: int) -> int:
        return set_of({self._terminal[ending] for ending in bits(endings)})

    def _greatest(self, reads: list[int]) -> int:
        """The largest set of endings behind which each terminal that the parser accepts can be read and is in it."""
        needed, end = self._needed(), self._tables.end
        unconstrained = (1 << len(self._terminal)) - 1
        while True:
            given = self._given & self._terminals_of(unconstrained)
            readable: dict[int, int] = {}  # by what can be read: the terminals of which that is so
            left = []
            for ending in bits(unconstrained):
                if ending % 64 == 0:
                    self._check()
                for context, wanted in needed[self._terminal[ending]].items():
                    pair = self._pairs.get((context, self._border[ending]))
                    if pair is None:
                        continue  # what is ignored was never read there
                    read = reads[pair]
                    if read not in readable:
                        self._check()
                        there = self._terminals_of(read >> 2 & unconstrained) & ~self._given
                        readable[read] = there | (read & 1) << end | (given if read & 2 else 0)
                    if wanted & ~readable[read]:
                        break
                else:
                    left.append(ending)
            if len(left) == unconstrained.bit_count():
                return unconstrained
            unconstrained = set_of(left)

    def _planned(
        self, reads: list[int], unconstrained: int, with_terminal: list[int], ways: dict[int, list[Way]]
    ) -> int:
        """The endings behind which some way to complete any stack can be written out, if not all that is accepted.

        Behind each border some way of the state on top can be read, and again for the states that are on top then.
        """
        context, end = self._tables.context.tolist(), self._tables.end
        number: dict[tuple[int, int, Watched], int] = {}
        todo: list[tuple[int, int, Watched]] = []

        def node(*key: Any) -> int:
            known = number.get(key)
            if known is None:
                known = number[key] = len(todo)
                todo.append(key)
            return known

        def read(here: set[tuple[int, Watched]], terminal: int, target: int) -> set[tuple[int, Watched]] | None:
            """What is behind a terminal; None where nothing more is asked."""
            found: set[tuple[int, Watched]] = set()
            for place in here:
                there = reads[self._pairs[place]] if place in self._pairs else 0
                if terminal == end:
                    if there & 1:
                        return None
                elif self._given >> terminal & 1:
                    if there & 2:
                        found.add((context[target], ()))
                else:
                    endings = there >> 2 & with_terminal[terminal]
                    if endings & unconstrained:
                        return None
                    found |= {(context[target], self._border[ending]) for ending in bits(endings)}
            return found

        roots = {
            (self._border[ending], target): ending
            for _, terminal, target in self._tables.shift.tolist()
            if target in ways
            for ending in bits(with_terminal[terminal] & ~unconstrained)
        }
        for border, target in roots:
            node(target, context[target], border)
        options: list[list[Alternative]] = []
        for state, where, border in todo:  # grows as it goes
            self._check(len(todo))
            found: list[Alternative] = []
            for way in ways.get(state, ()):
                here: set[tuple[int, Watched]] | None = {(where, border)}
                for terminal, target in way.text:
                    here = read(here, terminal, target) if here else here
                if here is None:
                    found = [Alternative([], True)]
                    break
                if here:
                    after = [[node(each, *place) for place in here] for each in way.after]
                    found.append(Alternative(after, way.is_lower))
            options.append(found)
        good = are_good(options, self._meter)
        failed = 0
        for _, terminal, target in self._tables.shift.tolist():
            for ending in bits(with_terminal[terminal] & ~unconstrained):
                key = target, context[target], self._border[ending]
                if key not in number or not good[number[key]]:
                    failed |= 1 << ending
        lexed = set_of(e for e, terminal in enumerate(self._terminal) if not self._ignored >> terminal & 1)
        return lexed & ~failed

    def _needed(self) -> list[dict[int, int]]:
        """By terminal and context behind it: the terminals that the parser may accept then."""
        tables = self._tables
        accepted = [0] * len(tables.context)
        for state, terminal, _ in tables.shift.tolist():
            accepted[state] |= 1 << terminal
        for (state, _, _), terminals in zip(tables.reduce.tolist(), sets_of(tables.before), strict=True):
            accepted[state] |= terminals
        accepted = [terminals & ~self._needless for terminals in accepted]
        found: list[dict[int, int]] = [{} for _ in range(tables.members)]
        for _, terminal, target in tables.shift.tolist():
            there, context = found[terminal], int(tables.context[target])
            there[context] = there.get(context, 0) | accepted[target]
        everywhere: dict[int, int] = {}
        for context, terminals in zip(tables.context.tolist(), accepted, strict=True):
            everywhere[context] = everywhere.get(context, 0) | terminals
        for terminal in bits(self._ignored):
            found[terminal] = dict(everywhere)
        return found


def _contexts_behind(tables: GrammarTables, ignored: int) -> list[list[int]]:
    """By terminal: the contexts that the lexer can read on in.

    What is ignored leaves the context as it is. So does a line end within brackets, of which one was opened before.
    """
    found: list[set[int]] = [set() for _ in range(tables.members)]
    for _, terminal, target in tables.shift.tolist():
        found[terminal].add(int(tables.context[target]))
    for terminal in bits(ignored):
        found[terminal] = set(range(len(tables.starts)))
    if tables.layout is not None:
        later = set(tables.context[1:].tolist())  # no terminal leads back to the parser's first state
        for terminal in (tables.layout.newline, *range(tables.end + 1, tables.members)):
            found[terminal] = later
    return [sorted(each) for each in found]
