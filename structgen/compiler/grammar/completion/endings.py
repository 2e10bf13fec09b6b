"""The endings of a grammar's lexemes, and which of them are loose; see
`structgen.runtime.grammar.completability.lexeme_ends`.

From the start of a text on, all borders are looked at that lexemes lead to, in each context in which the lexer may be
then: whatever terminal the parser may take is taken. Then *loose* is the largest set of endings such that

    (T, b) is loose  if  in each state that the parser can be in behind T, each terminal that it accepts there has an
                         ending that is loose and can be read behind b, ignored lexemes in between or not;
                         and if it accepts the end of the text, the text may end there.

So behind a loose ending any text of terminals that the parser takes can be written out. Where it is not proved that
there is one (`structgen.compiler.grammar.completion.completing`), none is called loose. LALR lookaheads are more than
what is accepted, so less may be called loose than is; nothing is called loose that is not.

Where that does not hold for all endings, and where there is a layout, others are loose behind which one such text can
be written out (`structgen.compiler.grammar.completion.writable`). With a layout in which brackets or blocks do not
nest none is: steps look some lexemes ahead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....budget import Meter
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
from .completing import Completing
from .writable import WritableWays

#: What the meter is told.
_DOING = "looking for what can follow lexemes"

#: Bytes that a lexer state takes up with what it is watched with, besides a set of endings.
_BYTES_OF_PLACE = 400

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
    search = _LooseEndings(tables, table, given, meter, is_contested=is_resolved and bool(table.conflicts))
    endings = search.run()
    return replace(tables, endings=endings, layout=tables.layout and replace(tables.layout, is_far=search.is_far))


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


class _LooseEndings:
    """Looks for all endings, then for those that are loose."""

    def __init__(
        self, tables: GrammarTables, table: Lalr, given: int, meter: Meter, *, is_contested: bool
    ) -> None:
        self._tables = tables
        self._table = table
        self._given = given
        self._meter = meter
        self._is_contested = is_contested
        self._needless = _needless(tables, table, given)
        self._ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._endings: list[tuple[int, Watched]] = []
        self._ending: dict[tuple[int, Watched], int] = {}
        self._futures: list[int] = []
        self._borders = self._boundaries(is_far=None)
        #: Whether what is watched is followed past the next lexeme.
        self.is_far = tables.layout is None

    def _boundaries(self, *, is_far: bool | None) -> Boundaries:
        return Boundaries(
            self._tables, lambda state: self._futures[state], self._number, is_far=is_far, check=self._check
        )

    def _check(self, states: int = 0) -> None:
        """Look at the time, and at the sets of endings that so many lexer states are kept with."""
        self._meter.check_time(_DOING)
        self._meter.check_states(states, _DOING)
        self._meter.check_memory(states * (_BYTES_OF_PLACE + len(self._endings) // 8), _DOING)

    def _number(self, terminal: int, border: Watched) -> int:
        key = terminal, border
        number = self._ending.get(key)
        if number is None:
            number = self._ending[key] = len(self._endings)
            self._endings.append(key)
            self._meter.check_states(number, _DOING)
        return number

    def run(self) -> Endings:
        tables, states = self._tables, len(self._tables.table)
        futures = [self._borders.here(state, ()) for state in range(states)]
        self._check(states)
        solve(futures, successors(tables.table, self._meter), self._check)
        self._futures = futures
        for terminal in bits(self._given):
            self._number(terminal, ())
        loose = self._loose() if tables.layout is None else self._loose_with_layout()
        if loose.bit_count() == len(self._endings):
            return Endings.all_loose()
        number: dict[Watched, int] = {}
        ends = [
            (terminal, number.setdefault(border, len(number)), loose >> ending & 1)
            for ending, (terminal, border) in enumerate(self._endings)
        ]
        most = max(1, *map(len, number))
        self._meter.check_memory(8 * most * len(number), _DOING)
        watched = [(*border, *[-1] * (most - len(border))) for border in number]
        return Endings(np.array(ends, np.int32), np.array(watched, np.int32), words_of(futures, len(ends)))

    # -- all endings ------------------------------------------------------------------------------------------

    def _explore(self, most: int) -> dict[tuple[int, Watched], int] | None:
        """By context and border that lexemes lead to: the endings that come next; None for more borders than that."""
        found: dict[tuple[int, Watched], int] = {(int(self._tables.context[0]), ()): 0}
        todo = list(found)
        borders: set[Watched] = set()
        known: dict[int, list[Watched]] = {}  # by what comes next: the borders behind what leaves the context

        def meet(context: int, border: Watched) -> None:
            if (context, border) not in found:
                found[context, border] = 0
                todo.append((context, border))

        for context, border in todo:  # grows as it goes
            self._check(len(todo))
            borders.add(border)
            if len(borders) > most:
                return None
            following = found[context, border] = self._borders.next(context, border)
            if following not in known:
                nexts = [self._endings[ending] for ending in bits(following)]
                known[following] = [there for terminal, there in nexts if self._stays >> terminal & 1]
                for steps, (terminal, there) in enumerate(nexts):
                    if steps % 256 == 0:
                        self._check(len(todo))
                    for after in self._contexts[terminal]:
                        meet(after, there)
            for there in known[following]:
                meet(context, there)
            # Within a definition bytes are read that are none of the lexer's.
            for left in self._outlived(border) if self._given else ():
                for terminal in bits(self._given):
                    for after in (context,) if self._ignored >> terminal & 1 else self._contexts[terminal]:
                        meet(after, left)
        return found

    @cached_property
    def _stays(self) -> int:
        """The terminals that may leave the context as it is: ignored ones, and line ends, which may be."""
        tables, layout = self._tables, self._tables.layout
        if layout is None:
            return self._ignored
        return self._ignored | 1 << layout.newline | (1 << tables.members) - (1 << tables.end + 1)

    @cached_property
    def _contexts(self) -> list[list[int]]:
        """By terminal: the contexts that the lexer can read on in where the parser takes it."""
        tables, layout = self._tables, self._tables.layout
        found: list[set[int]] = [set() for _ in range(tables.members)]
        for _, terminal, target in tables.shift.tolist():
            found[terminal].add(int(tables.context[target]))
        for terminal in bits(self._ignored):
            found[terminal] = set()
        if layout is not None:
            after = set().union(*(found[terminal] for terminal in (layout.newline, layout.indent, layout.dedent)))
            found[layout.newline] = set()
            found[tables.end + 1 :] = [after] * (tables.members - tables.end - 1)
        return [sorted(each) for each in found]

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

    # -- loose ones -------------------------------------------------------------------------------------------

    def _loose_with_layout(self) -> int:
        """The loose endings where there is a layout."""
        count = len(self._endings)
        self._borders = self._boundaries(is_far=True)
        lasting = sum(bool(self._borders.fate(border).stays) for border in {border for _, border in self._endings})
        self.is_far = lasting <= MOST_LASTING and self._explore(_MOST_BORDERS) is not None
        if not self.is_far:
            del self._endings[count:]
            self._ending = {ending: number for number, ending in enumerate(self._endings)}
            self._borders = self._boundaries(is_far=False)
        return self._writable(Nesting.find(self._tables, self._check))

    def _loose(self) -> int:
        """The loose endings where there is none."""
        pairs = self._explore(self._meter.budget.states + 1)
        assert pairs is not None
        loose = self._greatest(pairs)
        unproved = self._completing.unproved() if self._is_contested else set()
        unsure = self._ignored if unproved else 0
        for _, terminal, target in self._tables.shift.tolist():
            if target in unproved:
                unsure |= 1 << terminal
        loose &= ~set_of(ending for ending, (terminal, _) in enumerate(self._endings) if unsure >> terminal & 1)
        return loose if loose.bit_count() == len(self._endings) else loose | self._writable(None)

    def _writable(self, nesting: Nesting | None) -> int:
        """The endings behind which a way to complete any stack can be written out."""
        return WritableWays(
            self._tables, nesting, self._endings, self._borders, self._given, self._meter
        ).loose(self._completing.ways())

    @cached_property
    def _completing(self) -> Completing:
        """Ways to complete stacks, of terminals that little can forbid to come."""
        classes = self._tables.table.shape[1]
        least = dict.fromkeys(bits(self._given), 0)
        for terminal, border in self._endings:
            blocked = classes - self._borders.fate(border).ends.bit_count()
            least[terminal] = min(blocked, least.get(terminal, classes))
        weights = [1 + 8 * least.get(terminal, 0) // classes for terminal in range(self._tables.end + 1)]
        return Completing(self._table, self._needless, weights, self._meter, is_contested=self._is_contested)

    def _greatest(self, pairs: dict[tuple[int, Watched], int]) -> int:
        """The largest set of endings behind which each terminal that the parser accepts can be read and is in it."""
        end, needed, endings = self._tables.end, self._needed(), self._endings
        reads = self._past_ignored(pairs)
        of_terminal: dict[int, int] = {}
        for ending, (terminal, _) in enumerate(endings):
            of_terminal[terminal] = of_terminal.get(terminal, 0) | 1 << ending
        loose = (1 << len(endings)) - 1
        while True:
            terminals = set_of(terminal for terminal, there in of_terminal.items() if there & loose)
            readable: dict[int, int] = {}  # by what can be read: the terminals of which that is so
            left = []
            for ending in bits(loose):
                if ending % 64 == 0:
                    self._check()
                terminal, border = endings[ending]
                for context, wanted in needed[terminal].items():
                    read = reads.get((context, border))
                    if read is None:
                        continue  # what is ignored was never read there
                    if read not in readable:
                        self._check()
                        there = set_of({endings[each][0] for each in bits(read >> 2 & loose)}) & ~self._given
                        readable[read] = there | (read & 1) << end | (self._given & terminals if read & 2 else 0)
                    if wanted & ~readable[read]:
                        break
                else:
                    left.append(ending)
            if len(left) == loose.bit_count():
                return loose
            loose = set_of(left)

    def _past_ignored(self, pairs: dict[tuple[int, Watched], int]) -> dict[tuple[int, Watched], int]:
        """By context and border: what can be read, ignored lexemes in between or not.

        Two bits more: whether the text may end, and whether whatever byte comes, nothing is watched behind it.
        """
        everything = (1 << self._tables.table.shape[1]) - 1
        ignored = set_of(e for e, (terminal, _) in enumerate(self._endings) if self._ignored >> terminal & 1)
        number = {pair: i for i, pair in enumerate(pairs)}
        reads, related = [], []
        for (context, border), following in pairs.items():
            fate = self._borders.fate(border)
            reads.append(following << 2 | (fate.ends == everything) << 1 | fate.is_final)
            behind = {self._endings[ending][1] for ending in bits(following & ignored)}
            related.append(sorted(number[context, each] for each in behind))
        solve(reads, related, self._check)
        return dict(zip(pairs, reads, strict=True))

    def _needed(self) -> list[dict[int, int]]:
        """By terminal and context behind it: the terminals that the parser may accept then."""
        tables = self._tables
        accepted = [0] * len(tables.context)
        for state, terminal, _ in tables.shift.tolist():
            accepted[state] |= 1 << terminal
        for (state, _, _), terminals in zip(tables.reduce.tolist(), sets_of(tables.before), strict=True):
            accepted[state] |= terminals
        found: list[dict[int, int]] = [{} for _ in range(tables.members)]
        everywhere: dict[int, int] = {}
        for context, terminals in zip(tables.context.tolist(), accepted, strict=True):
            everywhere[context] = everywhere.get(context, 0) | terminals & ~self._needless
        for _, terminal, target in tables.shift.tolist():
            there, context = found[terminal], int(tables.context[target])
            there[context] = there.get(context, 0) | accepted[target] & ~self._needless
        for terminal in bits(self._ignored):
            found[terminal] = everywhere
        return found
