"""`GrammarTables`: a lexer and an LALR(1) parser in the compact form that is stored and followed at run time.

The readable forms are `structgen.compiler.grammar.lalr.Lalr` and `structgen.compiler.grammar.scanner.Lexer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .container import smallest
from .endings import Endings
from .layout import Layout
from .obligations import Obligations
from .on_demand import OnDemand
from .words import are_below, set_at

#: So many symbols at most are read where a stack is replaced by one that accepts the same; see `GrammarTables.same`.
SYMBOLS = 4


@dataclass(frozen=True, eq=False)
class GrammarTables:
    """A lexer and a parser over ``terminals`` terminals; the end of the text is the terminal after the last.

    Parameters
    ----------
    class_of:
        ``uint8[256]``: the class of each byte.
    table:
        ``int32[lexer states, classes]``: the next lexer state, -1 where the lexeme cannot go on.
    ends:
        ``int32[*, 3]``: lexer state, the terminal that the lexeme can be if it ends here, and the state that watches
        from then on or -1; ascending by state. Where the watching state comes to one that beats, the lexeme was
        something else.
    beats:
        ``uint8[lexer states]``: 1 where a lexeme is certain, so that none that is watched from here counts.
    lapses:
        ``uint8[lexer states]``: 1 where a lexeme that is watched would not count if the text ended here.
    future:
        ``uint32[lexer states, words]``: the terminals that the lexeme can become, a bit each.
    starts:
        ``int32[contexts]``: the lexer state before a lexeme. No byte leads to one.
    context:
        ``int32[parser states]``: in which context the lexer reads on.
    ignored:
        ``uint32[words]``: terminals that the parser does not see.
    shift:
        ``int32[*, 3]``: parser state, terminal, next state; ascending.
    goto:
        ``int32[*, 3]``: parser state, nonterminal, next state; ascending.
    reduce:
        ``int32[*, 3]``: parser state, number of states that are popped, nonterminal; ascending by state.
    before:
        ``uint32[reductions, words]``: the terminals before which each reduction is made.
    certain:
        ``uint8[parser states]``: 1 where the state does nothing but make its one reduction, and no conflict took a
        terminal from it.
    same:
        ``int32[*, 2 + SYMBOLS + longest]``: stacks that accept the same as simpler ones. The states on top of the
        stack, the uppermost first, -1 behind the last, come after: 1 where the uppermost is taken away and its symbol
        read again in the end, else 0; how many states are taken away (besides that one); and the symbols that are
        read in their place, -1 behind the last. The other states only have to be there.
    terminals:
        Names, for people.
    layout:
        How indentation works, where it matters.
    endings:
        How lexemes can end; see `structgen.runtime.endings`.
    notes:
        What the grammar's author may not expect. They are not stored.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    ends: NDArray[np.int32]
    beats: NDArray[np.uint8]
    lapses: NDArray[np.uint8]
    future: NDArray[np.uint32]
    starts: NDArray[np.int32]
    context: NDArray[np.int32]
    ignored: NDArray[np.uint32]
    shift: NDArray[np.int32]
    goto: NDArray[np.int32]
    reduce: NDArray[np.int32]
    before: NDArray[np.uint32]
    certain: NDArray[np.uint8]
    same: NDArray[np.int32]
    terminals: tuple[str, ...]
    layout: Layout | None = None
    endings: Endings = field(default_factory=Endings.all_loose)
    notes: tuple[str, ...] = ()

    #: The parser's first state.
    start = 0

    @property
    def states(self) -> int:
        """Number of lexer and parser states together."""
        return len(self.table) + len(self.context)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.to_sections().values())

    @cached_property
    def obligations(self) -> Obligations:
        """What watched states forbid."""
        return Obligations(self)

    @cached_property
    def rows(self) -> OnDemand[list[int]]:
        """`table` as lists, by lexer state."""
        return OnDemand(lambda state: self.table[state].tolist())

    @cached_property
    def ends_of(self) -> OnDemand[list[tuple[int, int]]]:
        """By lexer state: its ends, a terminal and the state that watches each."""
        starts = np.searchsorted(self.ends[:, 0], np.arange(len(self.table) + 1)).tolist()

        def of(state: int) -> list[tuple[int, int]]:
            ends = self.ends[starts[state] : starts[state + 1], 1:].tolist()
            return [(terminal, watch) for terminal, watch in ends]

        return OnDemand(of)

    @cached_property
    def goes_on(self) -> NDArray[np.uint8]:
        """``uint8[lexer states, classes]``: 1 where a byte of the class may follow a lexeme that ends there."""
        state, watch = self.ends[:, 0], self.ends[:, 2]
        after = self.table[watch]
        found = np.zeros(self.table.shape, np.uint8)
        np.bitwise_or.at(found, state, (watch < 0)[:, None] | (after < 0) | (self.beats[after] == 0))
        return found

    @cached_property
    def futures(self) -> OnDemand[int]:
        """`future` as integers, by lexer state."""
        return OnDemand(lambda state: set_at(self.future, state))

    @property
    def end(self) -> int:
        """The number of the end of the text, as a terminal."""
        return len(self.terminals)

    def name(self, terminal: int) -> str:
        """The name of a terminal, also of one that stands for a column."""
        if terminal > self.end and self.layout is not None:
            return self.terminals[self.layout.newline]
        return self.terminals[terminal] if terminal < self.end else "$END"

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether no two actions of the parser compete."""
        claimed = np.zeros((len(self.context), self.before.shape[1]), np.uint32)
        bits = np.uint32(1) << (self.shift[:, 1] & 31).astype(np.uint32)
        np.bitwise_or.at(claimed, (self.shift[:, 0], self.shift[:, 1] >> 5), bits)
        of = self.reduce[:, 0]
        turn = np.arange(len(of)) - np.searchsorted(of, of)  # the first, second, ... reduction of its state
        for k in range(int(turn.max(initial=-1)) + 1):
            here = turn == k
            if (claimed[of[here]] & self.before[here]).any():
                return False
            claimed[of[here]] |= self.before[here]
        return True

    @property
    def members(self) -> int:
        """Number of terminals that sets may hold.

        Those of the grammar, the end, and one for each column of a line's beginning.
        """
        return self.end + 1 + (self.layout.columns + 2 if self.layout else 0)

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md)."""
        names = "\n".join(self.terminals).encode()
        return {
            "lex_class": self.class_of,
            "lex_table": smallest(self.table + 1),
            "lex_end": smallest(self.ends + 1),
            "lex_beats": self.beats,
            "lex_lapses": self.lapses,
            "lex_future": self.future,
            **self.endings.to_sections(),
            "lex_start": smallest(self.starts),
            "lr_context": smallest(self.context),
            "lr_ignored": self.ignored,
            "lr_shift": self.shift,
            "lr_goto": self.goto,
            "lr_reduce": self.reduce,
            "lr_before": self.before,
            "lr_certain": self.certain,
            "lr_same": smallest(self.same + 1),
            "terminals": np.frombuffer(names, np.uint8),
            "layout": self.layout.to_section() if self.layout else np.zeros(0, np.uint32),
        }

    @classmethod
    def from_sections(cls, sections: Mapping[str, NDArray[Any]], where: str) -> GrammarTables:
        """Read `to_sections`, after a check of every index in them. Raises `FormatError`."""
        own = {name: sections.get(name) for name in _SECTIONS}
        if any(section is None or section.dtype.kind not in "ui" for section in own.values()):
            raise FormatError("a section of the grammar's tables is missing", where=where)
        found = {name: section for name, section in own.items() if section is not None}
        if any(found[name].ndim != dimensions for name, dimensions in _SECTIONS.items()):
            raise FormatError("the grammar's tables have another shape", where=where)
        try:
            terminals = tuple(found["terminals"].tobytes().decode().split("\n"))
        except UnicodeDecodeError as error:
            raise FormatError("the names of the terminals are damaged", where=where) from error
        tables = cls(
            class_of=found["lex_class"].astype(np.uint8),
            table=found["lex_table"].astype(np.int32) - 1,
            ends=found["lex_end"].astype(np.int32) - 1,
            beats=found["lex_beats"].astype(np.uint8),
            lapses=found["lex_lapses"].astype(np.uint8),
            future=found["lex_future"].astype(np.uint32),
            starts=found["lex_start"].astype(np.int32),
            context=found["lr_context"].astype(np.int32),
            ignored=found["lr_ignored"].astype(np.uint32),
            shift=found["lr_shift"].astype(np.int32),
            goto=found["lr_goto"].astype(np.int32),
            reduce=found["lr_reduce"].astype(np.int32),
            before=found["lr_before"].astype(np.uint32),
            certain=found["lr_certain"].astype(np.uint8),
            same=found["lr_same"].astype(np.int32) - 1,
            terminals=terminals,
            layout=Layout.from_section(found["layout"], len(terminals), where),
        )
        if not tables._is_sound():
            raise FormatError("the grammar's tables point outside themselves", where=where)
        endings = Endings.from_sections(found, len(tables.table), tables.members, where)
        return replace(tables, endings=endings.simplified(tables.obligations.simplified))

    def _is_sound(self) -> bool:
        return self._fits_together() and self._points_inside()

    def _fits_together(self) -> bool:
        lexer, parser, words = len(self.table), len(self.context), -(-self.members // 32)
        return bool(
            lexer and parser and len(self.starts) and len(self.class_of) == 256
            and self.table.shape == (lexer, int(self.class_of.max()) + 1)
            and self.ends.shape[1] == self.shift.shape[1] == self.goto.shape[1] == self.reduce.shape[1] == 3
            and len(self.beats) == len(self.lapses) == lexer and len(self.certain) == parser
            and self.future.shape == (lexer, words) and self.before.shape == (len(self.reduce), words)
            and len(self.ignored) == words
            and all(are_below(sets, self.members) for sets in (self.future, self.before, self.ignored.reshape(1, -1)))
        )  # fmt: skip

    def _points_inside(self) -> bool:
        lexer, parser = len(self.table), len(self.context)
        return bool(
            self.table.max() < lexer
            and all(_ascending(each[:, 0]) for each in (self.ends, self.shift, self.goto, self.reduce))
            and _within(self.ends[:, 0], lexer) and _within(self.ends[:, 2] + 1, lexer + 1)
            and _within(self.ends[:, 1], self.members) and (self.ends[:, 1] != self.end).all()
            and _within(self.starts, lexer) and self.starts[0] == 0 and (np.diff(self.starts) > 0).all()
            and not np.isin(self.ends[:, 0], self.starts).any()  # no mask goes round in circles
            and _within(self.context, len(self.starts))
            and _within(self.shift[:, [0, 2]], parser) and _within(self.shift[:, 1], self.end + 1)
            and _within(self.goto[:, [0, 2]], parser) and _within(self.goto[:, 1], 1 << 31)
            and self._are_same_sound() and _within(self.reduce[:, 0], parser) and _within(self.reduce[:, 1], parser)
            and _within(self.reduce[:, 2], 1 << 31)  # a rule is shorter than a way through the states
            and (np.bincount(self.reduce[:, 0], minlength=parser)[self.certain > 0] == 1).all()
        )  # fmt: skip

    def _are_same_sound(self) -> bool:
        """Whether each of `same` takes away something, of what it asks for."""
        if self.same.shape[1] <= 2 + SYMBOLS:
            return False
        states = self.same[:, 2 + SYMBOLS :]
        there = states >= 0
        kept, popped, symbols = self.same[:, 0], self.same[:, 1], (self.same[:, 2 : 2 + SYMBOLS] >= 0).sum(axis=1)
        return bool(
            _within(states + 1, len(self.context) + 1) and (there[:, 1:] <= there[:, :-1]).all()
            and _within(kept, 2) and (popped > 0).all() and (popped >= symbols).all()
            and (kept + popped <= there.sum(axis=1)).all()
        )  # fmt: skip


#: The sections of a grammar's tables, and their dimensions.
_SECTIONS = {
    "lex_class": 1, "lex_table": 2, "lex_end": 2, "lex_beats": 1, "lex_lapses": 1, "lex_future": 2, "lex_ending": 2,
    "lex_border": 2, "lex_endings": 2, "lex_start": 1, "lr_context": 1, "lr_ignored": 1, "lr_shift": 2, "lr_goto": 2,
    "lr_reduce": 2, "lr_before": 2, "lr_certain": 1, "lr_same": 2, "terminals": 1, "layout": 1,
}  # fmt: skip


def _within(values: NDArray[Any], bound: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < bound)


def _ascending(values: NDArray[Any]) -> bool:
    return bool((values[1:] >= values[:-1]).all())
