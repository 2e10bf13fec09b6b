"""The check that no text makes ever more stacks of a parser whose conflicts are kept.

Where actions compete all of them are followed. Mostly their stacks soon come to the same, or one subsumes another
(`structgen.runtime.grammar.parser.subsumption`), or few states stay on top of all of them. Not so in a palindrome,
where each letter may be the middle one: below one state there are as many stacks as letters, and what a step costs
grows with the text. No algorithm decides that for all grammars. So growth is looked for:

1. From the conflicts. Each is brought about by a shortest text, in contexts in which its rules may end there.
2. Along terminals that two stacks take, which are held apart by nothing but their topmost states: a
   graph-structured stack in its plainest form (Tomita 1986). A piece of text behind which there are more stacks than
   before it, with the same states on top among others, is repeated.
3. Where each turn makes more of them, the piece is spelled in bytes and read as at run time, by the lexer and with
   subsumption. If `_TURNS` turns still make ever more stacks the grammar is refused, with that text.

Steps are bounded (`_STEPS`), so what lies deep in a large grammar may not be found; it is followed, at a cost that is
polynomial in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple, TypeAlias, TypeVar

from ....budget import Meter
from ....errors import UnsupportedError
from ....runtime.core.bitsets import set_at
from ....runtime.core.digraph import bits
from ....runtime.grammar.embedded import Embedded, TokenRange
from ....runtime.grammar.lexeme_futures import LexemeFutures
from ....runtime.grammar.lexer_threads import LexerThreads, Thread
from ....runtime.grammar.parser.gss import GraphParser
from ....runtime.grammar.parser.parser_driver import ParserDriver
from ....runtime.grammar.parser.stack import Stack
from ....runtime.grammar.tables import GrammarTables
from ....system.properties import cached_property
from .conflicts import Descriptions
from .lalr import Conflict, Lalr

#: Terminals read while pieces are looked for; contexts of a rule in each conflict; pieces spelled in bytes at most.
_STEPS, _CONTEXTS, _SPELLED = 1 << 9, 4, 8

#: Turns of a piece: in which it has to make more stacks to be spelled, and to be refused; at these it is looked at.
_FEW_TURNS, _TURNS = 8, 128
_DOUBLED = (4, 8, 16, 32, 64, 128)

#: Nodes of stacks that are gone through for one terminal, for some turns of a piece, and for all turns.
_STEP_WORK, _FEW_WORK, _WORK = 1 << 12, 1 << 14, 1 << 18

#: So many nodes it counts as to compare a stack with others.
_COMPARING = 64

_DOING = "looking for texts that can be read in ever more ways"

#: Stacks, each with the context in which the lexer reads on.
_Stacks: TypeAlias = tuple[tuple[Stack, int], ...]

#: A lexeme, or a terminal that nothing lexes.
_Word: TypeAlias = bytes | int

_Key = TypeVar("_Key")


class _Place(NamedTuple):
    """Where a text leads, and the places that it came by since the conflict of a rule."""

    rule: str
    text: tuple[int, ...]
    stacks: _Stacks
    before: _Place | None


class _TooMuchWork(Exception):
    """More nodes were gone through than `_PlainParser.limit`."""


class _PlainParser(GraphParser):
    """Stacks with the same state on top become one node, and what lies below stays apart.

    Parameters
    ----------
    is_thinned:
        Whether stacks that others subsume are left out, and a few kept apart, as at run time.
    """

    def __init__(self, tables: GrammarTables, *, is_thinned: bool) -> None:
        super().__init__(tables)
        self._is_thinned = is_thinned
        self.limit = _STEP_WORK

    def _over(self, state: int, belows: frozenset[Stack]) -> Stack:
        self.work += len(belows)
        return self._node(state, list(belows))

    def few(self, stacks: Iterable[tuple[Stack, _Key]]) -> tuple[list[tuple[Stack, _Key]], int]:
        """As at run time, or all merged that can be."""
        stacks = list(stacks)
        if self._is_thinned:
            self.limit -= _COMPARING * len(stacks)
            return super().few(stacks)
        return self._together(stacks, {(stack.state, key) for stack, key in stacks}), 0

    def replaced(self, stack: Stack, length: int, origin: int) -> list[Stack]:
        """As `GraphParser.replaced`; raises `_TooMuchWork`."""
        if self.work > self.limit:
            raise _TooMuchWork
        return super().replaced(stack, length, origin)


def check_ambiguity(table: Lalr, tables: GrammarTables, given: int, meter: Meter) -> None:
    """Raise `UnsupportedError` where a text is found whose stacks become ever more.

    ``given`` are the terminals that nothing lexes. Raises `BudgetExceededError`.
    """
    if not tables.is_deterministic:
        _GrowthSearch(table, tables, given, meter).run()


class _GrowthSearch:
    """Walks of one parser from its conflicts on."""

    def __init__(self, table: Lalr, tables: GrammarTables, given: int, meter: Meter) -> None:
        self._table, self._tables, self._given, self._meter = table, tables, given, meter
        self._parser = _PlainParser(tables, is_thinned=False)
        self._paths = Descriptions(table, meter)
        self._steps = self._spelled = 0
        self._contested = [0] * table.states
        for conflict in table.conflicts:
            self._contested[conflict.state] |= conflict.terminals
        self._into: list[list[int]] = [[] for _ in range(table.states)]
        for state, moves in enumerate(table.automaton.moves):
            for target in moves.values():
                self._into[target].append(state)

    def run(self) -> None:
        """Follow stacks that stay apart; raise where a piece of text makes ever more."""
        seen: set[frozenset[int]] = set()
        todo = list(self._conflicts())
        for place in todo:  # grows as it goes
            for terminal in self._shared(place.stacks):
                after = self._after(place.stacks, terminal)
                if not _are_apart(after):
                    continue
                here = _Place(place.rule, (*place.text, terminal), after, place)
                tops = _tops(after)
                self._compare(here, tops)
                if tops not in seen:
                    seen.add(tops)
                    todo.append(here)

    def _conflicts(self) -> Iterator[_Place]:
        """Behind the terminals of conflicts, where their actions keep stacks apart."""
        for conflict in self._table.conflicts:
            rule = self._table.symbols.names[self._table.symbols.rules[conflict.rules[0]][0]]
            for text in self._texts(conflict):
                stacks: _Stacks = ((self._parser.start, 0),)
                for terminal in text:
                    stacks = self._after(stacks, terminal)
                before = _Place(rule, text, stacks, None)
                for terminal in bits(conflict.terminals) if stacks else ():
                    after = self._after(stacks, terminal)
                    if _are_apart(after):
                        yield _Place(rule, (*text, terminal), after, before)

    def _texts(self, conflict: Conflict) -> Iterator[tuple[int, ...]]:
        """Texts that lead to a conflict, in contexts in which its terminals can follow its rules."""
        table, found = self._table, set()
        for rule in conflict.rules:
            origin, expansion = table.symbols.rules[rule]
            begins = {conflict.state}
            for _ in expansion:
                begins = {before for state in begins for before in self._into[state]}
            ranked = []
            for begin in begins:
                after = table.gotos[begin].get(origin)
                if after is not None:
                    shifted = sum(terminal in table.shifts[after] for terminal in bits(conflict.terminals))
                    ranked.append((-shifted, len(list(self._paths.way_to(begin))), begin))
            found |= {(begin, expansion) for *_, begin in sorted(ranked)[:_CONTEXTS]}
        for begin, expansion in sorted(found):
            yield (*self._paths.way_to(begin), *(t for symbol in expansion for t in self._paths.words[symbol] or ()))

    def _after(self, stacks: _Stacks, terminal: int) -> _Stacks:
        """The stacks after a terminal; none where there are too many, and when enough was looked at."""
        self._meter.check_time(_DOING)
        if self._steps == _STEPS:
            return ()
        self._steps += 1
        self._parser.limit = self._parser.work + _STEP_WORK
        try:
            return self._read(stacks, (terminal,))
        except _TooMuchWork:
            return ()

    def _read(self, stacks: _Stacks, text: tuple[int, ...]) -> _Stacks:
        for terminal in text:
            found = {each: None for stack, _ in stacks for each in self._parser.after(stack, terminal).stacks}
            stacks = tuple(self._parser.few(found)[0])
        return stacks

    def _shared(self, stacks: _Stacks) -> Iterator[int]:
        """The terminals that two stacks accept, or one, in whose topmost state actions compete; none of too many."""
        once = twice = 0
        self._parser.limit = self._parser.work + _STEP_WORK
        for stack, _ in stacks:
            try:
                accepted = self._parser.accepted(stack).terminals
            except _TooMuchWork:
                return iter(())
            twice |= accepted & self._contested[stack.state] if len(stack.belows) < 2 else accepted
            twice |= accepted & once
            once |= accepted
        return bits(twice)

    def _compare(self, here: _Place, tops: frozenset[int]) -> None:
        """Repeat the pieces of text between places with the same states on top among others, and fewer stacks."""
        size, place = _size_of(stack for stack, _ in here.stacks), here.before
        while place is not None:
            if _size_of(stack for stack, _ in place.stacks) < size and _tops(place.stacks) <= tops:
                piece = here.text[len(place.text) :]
                self._parser.limit = self._parser.work + _FEW_WORK
                if _is_growing(self._turns(place.stacks, piece), _FEW_TURNS) and self._spelled < _SPELLED:
                    self._spelled += 1
                    self._spell(place, piece)
            place = place.before

    def _turns(self, stacks: _Stacks, piece: tuple[int, ...]) -> Iterator[int]:
        while stacks:
            stacks = self._read(stacks, piece)
            yield _size_of(stack for stack, _ in stacks)

    def _spell(self, place: _Place, piece: tuple[int, ...]) -> None:
        """Raise where a piece makes ever more stacks when it is read as bytes."""
        spaces = self._words.get(next(bits(self._ignored), -1))
        for between in ([], [spaces]) if spaces else ([],):
            begin, again = self._spelled_out(place.text, between), self._spelled_out(piece, between)
            if begin is not None and again is not None and _is_growing(self._turns_of_words(begin, again), _TURNS):
                raise UnsupportedError(
                    "a text can be read in ever more ways at once, the longer it gets",
                    where=f"rule {place.rule}, after {self._shown(begin)} and {_TURNS} times {self._shown(again)}",
                    remedy="Have its alternatives differ in how they begin, or mark where its parts begin and end; "
                    'or let the parser choose, with ambiguity="resolve".',
                )

    def _spelled_out(self, text: tuple[int, ...], between: list[bytes]) -> list[_Word] | None:
        """Words for terminals; None where the lexer never finds one of them."""
        found: list[_Word] = []
        for terminal in text:
            word = terminal if self._given >> terminal & 1 else self._words.get(terminal)
            if word is None:
                return None
            found += (word, *between)
        return found

    def _shown(self, words: list[_Word]) -> str:
        texts = (self._tables.name(word).encode() if isinstance(word, int) else word for word in words)
        return repr(b"".join(texts)[:40])

    def _turns_of_words(self, begin: list[_Word], piece: list[_Word]) -> Iterator[int]:
        parser = _PlainParser(self._tables, is_thinned=True)
        parser.limit = _WORK
        given = tuple(TokenRange(terminal, terminal, terminal) for terminal in bits(self._given))
        tables, embedded = self._tables, Embedded(tokens=given)
        reader = LexerThreads(
            ParserDriver(tables, parser), tables, LexemeFutures(tables, self._pause), embedded, self._pause
        )
        threads: tuple[Thread, ...] = (reader.start,)
        for turn in count():
            for word in piece if turn else begin:
                self._meter.check_time(_DOING)
                threads = reader.take(threads, word) if isinstance(word, int) else reader.read(threads, word)
            if not threads:
                return
            if turn:
                yield _size_of(parse.stack for parse, _, _ in threads)

    def _pause(self, _: int) -> None:
        self._meter.check_time(_DOING)

    @cached_property
    def _ignored(self) -> int:
        return set_at(self._tables.ignored.reshape(1, -1), 0)

    @cached_property
    def _words(self) -> dict[int, bytes]:
        """By terminal that is lexed: a text that is as short as one can be."""
        class_of = self._tables.class_of.tolist()
        letter = {class_of[byte]: bytes([byte]) for byte in (*range(256), *range(32, 127))}
        found: dict[int, bytes] = {}
        texts = dict.fromkeys(self._tables.starts.tolist(), b"")
        for state in (todo := list(texts)):  # grows as it goes
            self._meter.check_time(_DOING)
            for terminal, _ in self._tables.ends_of[state]:
                found.setdefault(terminal, texts[state])
            for c, target in enumerate(self._tables.rows[state]):
                if target >= 0 and target not in texts:
                    texts[target] = texts[state] + letter[c]
                    todo.append(target)
        return found


def _is_growing(sizes: Iterator[int], most: int) -> bool:
    """Whether there are so many turns, or as many as may be gone through, and with each doubling more stacks."""
    found: list[int] = []
    try:
        for size in sizes:
            found.append(size)
            turns = len(found)
            if turns in _DOUBLED and max(found[turns // 2 :]) <= max(found[: turns // 2]):
                return False
            if turns == most:
                return True
    except _TooMuchWork:
        return len(found) >= _DOUBLED[0]
    return False


def _size_of(stacks: Iterable[Stack]) -> int:
    """How many stacks there are, told apart by what lies below their topmost states."""
    return sum(max(1, len(stack.belows)) for stack in stacks)


def _are_apart(stacks: _Stacks) -> bool:
    return len(stacks) > 1 or any(len(stack.belows) > 1 for stack, _ in stacks)


def _tops(stacks: _Stacks) -> frozenset[int]:
    return frozenset(stack.state for stack, _ in stacks)
