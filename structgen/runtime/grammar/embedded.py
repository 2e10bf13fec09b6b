"""Definitions and special tokens within a grammar, as terminals that the lexer does not read.

A *definition* in a grammar, a JSON Schema say, stands for any of its texts. It is an automaton with a stack of its
own, over the same vocabulary, that begins where the parser accepts its terminal and no lexeme is in progress, and may
end wherever its text is complete. It is not lexed: where it could go on as well as end, or where a lexeme could begin
as well, both are followed.

A *lexeme with a budget* is such a definition, too: so many tokens have a byte of it at most. Threads count what is
left to it. Where a token ends, it must be possible to complete the lexeme by tokens that are left and end no later.
A definition with a budget is the same (`structgen.runtime.pushdown.distances.budgeted`). The first thread of either
has as its count how many tokens are left.
So is a *part of a text* that is too long for the lexer (`structgen.runtime.grammar.substrings`).

A *special token* has no bytes. It is one token, where the parser accepts its terminal and the lexeme before it is
complete. A *token by its id* is the same, and may have bytes: then it is one token whatever they are, and is read as
text besides. (The EOS ids are in no range: they end a text.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter, StepMeter
from ...errors import FormatError
from ...progress import Progress, silent
from ...storage import columns
from ...storage.columns import Column, Columns, Field
from ...storage.container import pack, unpack
from ...system.locks import Lock, Rank
from ...system.properties import cached_property
from ...system.types import Array, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.digraph import set_of
from ..core.machine import ByteState
from ..rows.residuals import ROOT, Residuals
from ..rows.row_pool import RowPool
from .lexeme_futures import LexemeFutures
from .partial_masks import KnownMasks, LexemeMasks
from .storage import from_sections, to_sections
from .tables import GrammarTables

#: Where a text is in a definition: a tuple of all its threads, of whichever kind its machine has.
Inner: TypeAlias = ByteState

#: The fields of the meta section.
FIELDS = (
    Field("definitions", list, of=int, below="terminals"),
    Field("tokens", list, of=list, below=["size", "terminals"]),
    Field("token_ranges", list, of=list, below=["size", "size", "terminals"]),
    Field("token_sets", list, of=int, below="terminals"),
)


#: The fields of the meta section of a lexeme with a budget.
_BUDGET = Field("max_tokens", int, least=1)

#: Partial masks that are decided at once.
_FEW = 16


class Grown(Protocol):
    """What grows as rows are worked out, and can forget that."""

    def is_full(self) -> bool:
        """Whether it is time to `forget`."""

    def forget(self) -> None:
        """Forget what came last."""


class InnerRows(Grown, Protocol):
    """Residual lists, and what grows with rows."""

    @property
    def residuals(self) -> Residuals:
        """Lists of nodes of the trie, by number."""


class InnerMachine(Protocol):
    """What a grammar asks of a definition in it."""

    @property
    def start_threads(self) -> Inner:
        """Where a text begins."""

    @property
    def rows(self) -> InnerRows:
        """What was decided of masks."""

    @property
    def pool(self) -> RowPool:
        """The rows that `decide` tells the numbers of."""

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""

    @property
    def max_tokens(self) -> int | None:
        """How many tokens have a byte of the text at most, if that is bounded."""

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """Be part of another machine: its lock is held wherever this one's would be, its steps pay for work here."""

    def step(self, threads: Inner, byte: int) -> Inner:
        """Where a byte leads; nothing where it leads nowhere."""

    def after_token(self, threads: Inner) -> Inner:
        """Where a text is when a token ends within it; nothing where it can't be completed any more."""

    def may_end(self, threads: Inner) -> bool:
        """Whether the text is complete."""

    def candidates(self, threads: Inner) -> Iterator[int]:
        """A superset of the bytes that can follow."""

    def decide(self, threads: Inner, residual: int) -> tuple[set[int], set[int]]:
        """The rows of what goes on from a residual list, and the residual lists left to what follows the text."""

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Decide what is decided ahead of time."""

    def is_crowded(self) -> bool:
        """Whether much is remembered of texts."""

    def forget(self) -> None:
        """Forget what is remembered of texts."""

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format."""


class BudgetedLexeme:
    """A lexeme of which so many tokens have a byte at most. Where it is: a state, and how many tokens are left.

    Parameters
    ----------
    tables:
        Its automaton, as that of a lexer in which a state can become terminal ``d`` where ``d`` tokens lead to an end
        of the lexeme and no further. Nothing leads to its start. (There is no parser.)
    max_tokens:
        How many tokens there may be.
    vocabulary:
        The tokens.
    stored:
        What states decide, as far as it is known.
    """

    def __init__(
        self, tables: GrammarTables, max_tokens: int, vocabulary: Vocabulary, stored: KnownMasks | None = None
    ) -> None:
        self.max_tokens: int | None = max_tokens
        self.start_threads: Inner = ((0, max_tokens, None),)
        self._tables = tables
        self._lock = Lock(Rank.MACHINE)
        self.rows = LexemeMasks(tables, vocabulary, LexemeFutures(tables, _nothing), stored, self._give_way)
        self.pool = self.rows.pool

    def _give_way(self) -> None:
        self._lock.give_way()

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """Be part of another machine, whose lock is held wherever this one's would be; a step here is a look-up."""
        self._lock = lock

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return len(self.rows)

    def _is_within(self, state: int, left: int) -> bool:
        """Whether so many tokens lead to an end."""
        return bool(self._tables.futures[state] >> min(left, self._tables.end - 1) & 1)

    def step(self, threads: Inner, byte: int) -> Inner:
        """Where a byte leads; nothing where it leads nowhere."""
        ((state, left, _),) = threads
        after = self._tables.rows[state][self._tables.class_of[byte]] if left else -1
        return ((after, left, None),) if after >= 0 else ()

    def after_token(self, threads: Inner) -> Inner:
        """Where a text is when a token ends within it; nothing where it can't be completed any more."""
        return tuple((state, left - 1, None) for state, left, _ in threads if self._is_within(state, left - 1))

    def may_end(self, threads: Inner) -> bool:
        """Whether the text is complete."""
        return bool(self._tables.ends_of[threads[0][0]])

    def candidates(self, threads: Inner) -> Iterator[int]:
        """The bytes that can follow."""
        return (byte for byte in range(256) if self.step(threads, byte))

    def decide(self, threads: Inner, residual: int) -> tuple[set[int], set[int]]:
        """The rows of what goes on from a residual list, and the residual lists left to what follows the text."""
        ((state, left, _),) = threads
        if not left:
            return set(), {residual} if self.may_end(threads) else set()
        groups, ends = self.rows.decide(residual, state, ())
        last = min(left - 1, self._tables.end - 1)
        return {row for within, row in groups if within >> last & 1}, {end.residual for end in ends}

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Decide masks of tokens that begin in each state."""
        states = range(len(self._tables.table))
        for first in range(0, len(states), _FEW):
            if meter:
                meter.check_time("token maps")
                meter.check_memory(self.pool.nbytes, "token rows")
            with self._lock:
                self.rows.decide_all([(ROOT, state, ()) for state in states[first : first + _FEW]])
        with self._lock:
            self.rows.mark()

    def is_crowded(self) -> bool:
        """Whether much is remembered of texts: nothing is."""
        return False

    def forget(self) -> None:
        """Forget what is remembered of texts: nothing is."""

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        return {_BUDGET.name: self.max_tokens}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format: those of a grammar's lexer."""
        return self._tables.to_sections() | to_sections(self.rows)

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> BudgetedLexeme:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        most = columns.read_meta(meta, (_BUDGET,), {}, where)[_BUDGET.name]
        tables = GrammarTables.from_sections(sections, where)
        if not tables.endings.is_unconstrained or len(tables.starts) > 1 or (tables.table == 0).any():
            raise FormatError("a lexeme with a budget has lexemes behind it", where=where)
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        return cls(tables, most, vocabulary, from_sections(tables, vocabulary, sections, sizes, where))

    @classmethod
    def is_meta(cls, meta: JsonMap) -> bool:
        """Whether a meta section is one of `to_meta`."""
        return _BUDGET.name in meta


def _nothing(_: int) -> None:
    """There is no long work in finding what a lexeme can become that nothing is watched beside."""


class TokenRange(NamedTuple):
    """The tokens from one id to another, both among them, that a terminal stands for."""

    first: int
    last: int
    terminal: int


@dataclass(frozen=True, eq=False)
class Embedded:
    """What a grammar holds besides terminals that are lexed.

    Parameters
    ----------
    definitions:
        Terminals, each with the machine of its definition.
    tokens:
        Special tokens, and others by their ids. The ranges of a terminal have no id in common.
    sets:
        The terminals that stand for sets of tokens, which have none of the EOS ids.
    eos_ids:
        The ids that end a text.
    """

    definitions: tuple[tuple[int, InnerMachine], ...] = ()
    tokens: tuple[TokenRange, ...] = ()
    sets: tuple[int, ...] = ()
    eos_ids: tuple[int, ...] = ()

    @property
    def terminals(self) -> int:
        """All terminals that are not lexed, as a set."""
        return set_of(terminal for terminal, _ in self.definitions) | self.token_terminals

    @cached_property
    def budgeted(self) -> frozenset[int]:
        """The numbers of the definitions that have a budget of tokens."""
        return frozenset(k for k, (_, machine) in enumerate(self.definitions) if machine.max_tokens is not None)

    @cached_property
    def token_terminals(self) -> int:
        """The terminals that are tokens, as a set."""
        return set_of({each.terminal for each in self.tokens})

    @cached_property
    def _runs(self) -> tuple[list[int], list[int]]:
        """Where ids begin that are of other terminals than those before them, ascending; the sets of terminals."""
        begins, found, terminals = [0], [0], 0
        changes = [(each.first, each.terminal) for each in self.tokens]
        changes += [(each.last + 1, each.terminal) for each in self.tokens]
        sets = [each for each in self.tokens if each.terminal in self.sets]
        for token_id in self.eos_ids:
            without = [each.terminal for each in sets if each.first <= token_id <= each.last]
            changes += [(at, terminal) for terminal in without for at in (token_id, token_id + 1)]
        for at, terminal in sorted(changes):  # the ranges of a terminal lie apart
            terminals ^= 1 << terminal
            if at > begins[-1]:
                begins.append(at)
                found.append(0)
            found[-1] = terminals
        return begins, found

    def terminals_of(self, token_id: int) -> int:
        """The terminals that a token is one of, as a set."""
        begins, sets = self._runs
        return sets[bisect_right(begins, token_id) - 1]

    @cached_property
    def groups(self) -> list[int]:
        """The sets of terminals that tokens are of, each once."""
        return sorted({*self._runs[1]} - {0})

    def rows(self, groups: Iterable[int], words: int) -> NDArray[np.int32]:
        """The tokens of some of the groups, given by number, as a row: ``int32[words]``."""
        wanted = {self.groups[number] for number in groups}
        begins, sets = self._runs
        found = np.zeros(32 * words, np.uint8)
        for begin, end, terminals in zip(begins, [*begins[1:], len(found)], sets, strict=True):
            if terminals in wanted:
                found[begin:end] = 1
        return np.packbits(found, bitorder="little").view(np.int32)

    def step(self, number: int, inner: Inner, byte: int) -> tuple[Inner, ...]:
        """Where a byte leads in a definition, by its number; nothing where it leads nowhere."""
        after = self.definitions[number][1].step(inner, byte)
        return (after,) if after else ()

    def begin(self, accepted: int) -> Iterator[tuple[int, Inner]]:
        """The beginnings of the definitions whose terminals are accepted."""
        for number, (terminal, machine) in enumerate(self.definitions):
            if accepted >> terminal & 1:
                yield number, machine.start_threads

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        return {
            "definitions": [terminal for terminal, _ in self.definitions],
            "tokens": sorted([first, terminal] for first, last, terminal in self.tokens if first == last),
            "token_ranges": sorted(list(each) for each in self.tokens if each.first != each.last),
            "token_sets": sorted(self.sets),
        }

    def to_sections(self) -> dict[str, Array]:
        """A section for each definition: a file within the file (see docs/internals/format.md)."""
        return {
            f"inner_{number}": np.frombuffer(
                pack(machine.to_meta(), machine.to_sections(self_contained=True)), np.uint8
            )
            for number, (_, machine) in enumerate(self.definitions)
        }

    @classmethod
    def read(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, terminals: int, where: str) -> Embedded:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled, "terminals": terminals}
        found = columns.read_meta({"token_ranges": [], "token_sets": [], **meta}, FIELDS, sizes, where)
        if found["definitions"]:
            from ..pushdown.distances.budgeted import BudgetedDefinition
            from ..pushdown.distinct import definition
            from .substrings.machine import SubstringMachine
        machines: list[tuple[int, InnerMachine]] = []
        for number, terminal in enumerate(found["definitions"]):
            name = f"inner_{number}"
            (stored,) = columns.read(sections, Columns(Column(name, "u1", mapped=True)), {}, where).values()
            inner, own = unpack(stored.data, f"{where}, {name}")
            kinds = BudgetedLexeme, BudgetedDefinition, SubstringMachine
            read = next((each.from_sections for each in kinds if each.is_meta(inner)), definition.from_sections)
            machines.append((terminal, read(inner, own, vocabulary, where)))
        tokens = [TokenRange(token_id, token_id, terminal) for token_id, terminal in found["tokens"]]
        tokens += [TokenRange(*each) for each in found["token_ranges"]]
        if any(first > last for first, last, _ in tokens) or _meet(tokens):
            raise FormatError("ranges of tokens end before they begin, or have tokens in common", where=where)
        return cls(tuple(machines), tuple(tokens), tuple(found["token_sets"]), vocabulary.eos_ids)


def _meet(tokens: Iterable[TokenRange]) -> bool:
    """Whether ranges of the same terminal have a token in common."""
    ordered = sorted(tokens, key=lambda each: (each.terminal, each.first))
    return any(one.terminal == next_.terminal and one.last >= next_.first for one, next_ in pairwise(ordered))
