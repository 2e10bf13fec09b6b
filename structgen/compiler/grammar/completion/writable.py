"""Which endings of lexemes are loose because a way to complete any stack can be written out behind them.

Behind an ending's border, what is ignored maybe in between, some way of the state on top
(`structgen.compiler.grammar.completion.completing`) can be read, and again for the states that are on top then. With
a layout, line ends within the texts of such ways lie outside of brackets, indents come right behind them, and dedents
too or behind other dedents. It is supposed that there is room for an indent; and where brackets or blocks do not
nest, so that masks look three lexemes ahead only, that no bracket is open.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ....budget import Meter
from ....runtime.core.bitsets import set_at
from ....runtime.core.digraph import bits, set_of, solve
from ....runtime.grammar.completability.boundaries import Boundaries
from ....runtime.grammar.completability.nesting import Nesting
from ....runtime.grammar.completability.obligations import Watched
from ....runtime.grammar.tables import GrammarTables
from .completing import Way

#: What the meter is told.
_DOING = "looking for what can follow lexemes"

#: What may come besides, right behind a line end: any of both, or dedents only.
_BLOCK, _DEDENTS = 1, 2

#: Nodes that are looked at between two looks at the clock.
_STEPS = 4096

#: A terminal, one for all columns of a line end, and the border behind it.
_Key: TypeAlias = tuple[int, Watched]


class _Place(NamedTuple):
    """Where the lexer is: its context, what is watched, what may still come of a line end."""

    context: int
    border: Watched
    line: int = 0


class _Follow(NamedTuple):
    """What can be read, past what is ignored; whether any byte may come; whether the text may end."""

    endings: int
    is_free: bool
    is_final: bool


class _Option(NamedTuple):
    """A way that can be read: the nodes that must be good then; whether the stack is lower."""

    after: list[int]
    is_lower: bool


class WritableWays:
    """Looks for endings behind which ways can be written out.

    Parameters
    ----------
    tables:
        The grammar.
    nesting:
        How it nests, where it has a layout and does.
    endings:
        All of them, terminals with the borders behind them.
    reads:
        What the lexer can read.
    given:
        The terminals that are not lexed.
    """

    def __init__(
        self,
        tables: GrammarTables,
        nesting: Nesting | None,
        endings: list[tuple[int, Watched]],
        reads: Boundaries,
        given: int,
        meter: Meter,
    ) -> None:
        layout, states = tables.layout, len(tables.context)
        self._tables, self._meter = tables, meter
        self._all = endings
        self._reads = reads
        self._given = given
        self._lines_as = (layout.newline, layout.indent, layout.dedent) if layout is not None else (-1, -1, -1)
        self._net = nesting.net if nesting is not None else [0] * states
        self._depths = nesting.depths(tables) if nesting is not None else [{0}] * states
        self._context: list[int] = tables.context.tolist()
        self._everything = (1 << tables.table.shape[1]) - 1
        blocked = {border: (self._everything & ~reads.fate(border).ends).bit_count() for _, border in endings}
        #: By border how many classes of bytes it forbids, or has watched further.
        self._blocked = blocked | {(): 0}
        #: By terminal its endings, those behind which most can come first; line ends, which come with every column.
        self._endings: dict[int, list[int]] = {}
        self._lines: dict[Watched, int] = {}
        for ending in sorted(range(len(endings)), key=lambda ending: blocked[endings[ending][1]]):
            terminal, border = endings[ending]
            if terminal > tables.end:
                self._lines[border] = self._lines.get(border, 0) | 1 << ending
            elif terminal != self._lines_as[0]:
                self._endings.setdefault(terminal, []).append(ending)
        columns = layout.columns if layout is not None else 0
        self._lines = {border: ends for border, ends in self._lines.items() if ends.bit_count() > columns}
        ignored = bits(set_at(tables.ignored.reshape(1, -1), 0))
        self._ignored = [ending for terminal in ignored for ending in self._endings.get(terminal, ())]
        self._ignored.sort(key=lambda ending: blocked[endings[ending][1]])
        self._ignored_set = set_of(self._ignored)
        self._known: dict[tuple[int, Watched], _Follow] = {}
        self._simplest: dict[tuple[int, Watched], Watched] = {}

    def loose(self, ways: dict[int, list[Way]]) -> int:
        """The endings that are loose, as a set; ``ways`` are by state on top. Raises `BudgetExceededError`."""
        firsts = self._firsts(ways)
        number: dict[tuple[int, _Follow, _Place | None], int] = {}
        todo: list[tuple[int, _Place]] = []

        def node(state: int, place: _Place) -> int:
            # Places are the same to a state if the same can be read of what its ways begin with.
            follow = self._follow(place.context, place.border)
            follow = follow._replace(endings=follow.endings & firsts.get(state, 0))
            known = number.setdefault((state, follow, place if place.line else None), len(todo))
            if known == len(todo):
                todo.append((state, place))
            return known

        roots = {
            key: [node(state, self._simple(context, key[1])) for state, context in there]
            for key, there in self._roots().items()
        }
        options: list[list[_Option]] = []
        for state, place in todo:  # grows as it goes
            self._meter.check_time(_DOING)
            read = [(way, self._read(state, way, place)) for way in ways.get(state, ())]
            options.append(
                [_Option([node(each, after) for each in way.after], way.is_lower) for way, after in read if after]
            )
        good = self._good(options)
        keys = enumerate(map(self._key, self._all))
        return set_of(ending for ending, key in keys if all(good[each] for each in roots.get(key, ())))

    def _good(self, options: list[list[_Option]]) -> list[bool]:
        """By node: whether some option leads to the end, supposed of what comes then while the stack gets lower."""
        good = [True] * len(options)
        steps = 0
        while True:
            proved = [False] * len(options)
            # Nodes come after those that led to them, so the last ones are looked at first.
            left = [node for node in reversed(range(len(options))) if good[node]]
            count = -1
            while count != len(left):
                count = len(left)
                for node in left:
                    for after, is_lower in options[node]:
                        steps += 1 + len(after)
                        if steps > _STEPS:
                            steps = 0
                            self._meter.check_time(_DOING)
                        known = good if is_lower else proved
                        if all(known[each] for each in after):
                            proved[node] = True
                            break
                left = [node for node in left if not proved[node]]
            if proved == good:
                return good
            good = proved

    def _firsts(self, ways: dict[int, list[Way]]) -> dict[int, int]:
        """By state: the endings that its ways can begin with, as a set."""
        of = {terminal: set_of(endings) for terminal, endings in self._endings.items()}
        of[self._lines_as[0]] = sum(self._lines.values())
        number = {state: i for i, state in enumerate(ways)}
        values, related = [], []
        for there in ways.values():
            values.append(0)
            related.append([number[n] for way in there if not way.text for n in way.after if n in number])
            for way in there:
                values[-1] |= of.get(way.text[0][0], 0) if way.text else 0
        solve(values, related, lambda: self._meter.check_time(_DOING))
        return dict(zip(number, values, strict=True))

    def _key(self, ending: tuple[int, Watched]) -> _Key:
        return min(ending[0], self._tables.end + 1), ending[1]

    def _roots(self) -> dict[_Key, dict[tuple[int, int], None]]:
        """The states that can be on top behind endings, with their contexts."""
        (newline, indent, dedent), line = self._lines_as, self._tables.end + 1
        borders: dict[int, dict[Watched, None]] = {}
        for terminal, border in map(self._key, self._all):
            borders.setdefault(terminal, {})[border] = None
        found: dict[_Key, dict[tuple[int, int], None]] = {}

        def enter(state: int, border: Watched) -> None:
            context = self._context[state]
            for ending in bits(self._follow(context, border).endings & self._ignored_set):
                found.setdefault(self._all[ending], {})[state, context] = None

        enter(0, ())
        for terminal, target in dict.fromkeys((t, target) for _, t, target in self._tables.shift.tolist()):
            behind = [line if terminal in (newline, indent, dedent) else terminal]
            if any(self._depths[target]):  # within brackets, where a line end changes nothing
                behind += [newline, line]
            for each in behind if terminal != self._tables.end else ():
                for border in borders.get(each, ()):
                    self._meter.check_time(_DOING)
                    found.setdefault((each, border), {})[target, self._context[target]] = None
                    enter(target, border)
        return found

    # -- reading ----------------------------------------------------------------------------------------------

    def _simple(self, context: int, border: Watched) -> _Place:
        """A place, or the one behind something ignored that can be read there."""
        key = context, border
        found = self._simplest.get(key)
        if found is None:
            there = self._reads.next(context, border) & self._ignored_set
            behind = (self._all[ending][1] for ending in self._ignored if there >> ending & 1)
            found = next((each for each in behind if self._blocked[each] <= self._blocked[border]), border)
            self._simplest[key] = found
        return _Place(context, found)

    def _follow(self, context: int, border: Watched) -> _Follow:
        known = self._known.get((context, border))
        if known is None:
            self._meter.check_time(_DOING)
            endings, is_free, is_final = 0, False, False
            seen = {border}
            for each in (todo := [border]):  # grows as it goes
                there, fate = self._reads.next(context, each), self._reads.fate(each)
                endings |= there
                is_free |= fate.ends == self._everything
                is_final |= fate.is_final
                after = {self._all[ending][1] for ending in bits(there & self._ignored_set)} - seen
                seen |= after
                todo += after
            known = self._known[context, border] = _Follow(endings, is_free, is_final)
        return known

    def _read(self, state: int, way: Way, place: _Place) -> _Place | None:
        """Where the lexer is behind the text of a way; None where it can't read that."""
        (newline, indent, dedent), depth = self._lines_as, 0
        for terminal, target in way.text:
            context = self._context[target]
            if terminal in (indent, dedent):
                if not place.line or (terminal == indent and place.line != _BLOCK):
                    return None
                place = _Place(context, place.border, 0 if terminal == indent else _DEDENTS)
                continue
            endings, is_free, is_final = self._follow(place.context, place.border)
            if terminal == self._tables.end:
                return place if is_final else None
            if terminal == newline:
                border = next((b for b, ends in self._lines.items() if not ends & ~endings), None)
                if border is None or any(each + depth for each in self._depths[state]):
                    return None
                place = _Place(context, border, _BLOCK)
                continue
            depth += self._net[target]
            if self._given >> terminal & 1:
                if not is_free:
                    return None
                place = _Place(context, ())
                continue
            ending = next((e for e in self._endings.get(terminal, ()) if endings >> e & 1), None)
            if ending is None:
                return None
            place = self._simple(context, self._all[ending][1])
        return place
