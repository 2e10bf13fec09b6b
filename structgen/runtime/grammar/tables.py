"""`GrammarTables`: a lexer and an LALR(1) parser in the compact form that is stored and followed at run time.

The readable forms are `structgen.compiler.grammar.parser.lalr.Lalr` and
`structgen.compiler.grammar.lexer.scanner.Lexer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import MOST, Column, Columns, Sizes
from ...storage.container import smallest
from ...system.properties import cached_property
from ...system.types import Array, Sections
from ..core.bitsets import from_bits, set_at
from ..core.lazy_table import LazyTable
from .captures.attributes import SECTION, GrammarAttributes
from .completability.lexeme_ends import Endings
from .completability.obligations import Obligations
from .indentation import IndentationTerminals
from .parser.provenance import SECTION as NAMES_SECTION

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
    defaults:
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
        How lexemes can end; see `structgen.runtime.grammar.completability.lexeme_ends`.
    attributes:
        What is captured, and at which temperatures terminals are sampled.
    names:
        ``uint8[*]``: what the grammar's text calls all this (`structgen.runtime.grammar.parser.provenance`), or
        nothing. It is not looked at before somebody asks.
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
    defaults: NDArray[np.uint8]
    same: NDArray[np.int32]
    terminals: tuple[str, ...]
    layout: IndentationTerminals | None = None
    endings: Endings = field(default_factory=Endings.all_unconstrained)
    attributes: GrammarAttributes = field(default_factory=GrammarAttributes)
    names: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    notes: tuple[str, ...] = ()

    #: The parser's first state.
    start = 0

    @property
    def states(self) -> int:
        """Number of lexer and parser states together."""
        return len(self.table) + len(self.context)

    @cached_property
    def obligations(self) -> Obligations:
        """What watched states forbid."""
        return Obligations(self.rows, self.beats, self.lapses, self.table)

    @cached_property
    def rows(self) -> LazyTable[list[int]]:
        """`table` as lists, by lexer state."""
        return LazyTable(lambda state: self.table[state].tolist())

    @cached_property
    def end_starts(self) -> NDArray[np.int32]:
        """``int32[lexer states + 1]``: where the ends of each lexer state begin."""
        return np.searchsorted(self.ends[:, 0], np.arange(len(self.table) + 1)).astype(np.int32)

    @cached_property
    def ends_of(self) -> LazyTable[list[tuple[int, int]]]:
        """By lexer state: its ends, a terminal and the state that watches each."""
        starts = self.end_starts.tolist()

        def of(state: int) -> list[tuple[int, int]]:
            ends = self.ends[starts[state] : starts[state + 1], 1:].tolist()
            return [(terminal, watch) for terminal, watch in ends]

        return LazyTable(of)

    @cached_property
    def goes_on(self) -> NDArray[np.uint8]:
        """``uint8[lexer states, classes]``: 1 where a byte of the class may follow a lexeme that ends there."""
        states, first = np.unique(self.ends[:, 0], return_index=True)
        watch = self.ends[:, 2]
        after = self.table[watch]
        follows = (watch < 0)[:, None] | (after < 0) | (self.beats[after] == 0)
        found = np.zeros(self.table.shape, np.uint8)
        if len(first):
            found[states] = np.logical_or.reduceat(follows, first)
        return found

    @cached_property
    def distinct_futures(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """What lexer states can become, each set once (terminals if all are unconstrained, else endings).

        The sets, ``uint32[sets, words]``, and by lexer state which is its own.
        """
        words = np.ascontiguousarray(self.future if self.endings.is_unconstrained else self.endings.words)
        rows = words.view(np.dtype((np.void, words.itemsize * words.shape[1]))).reshape(-1)
        _, first, number = np.unique(rows, return_index=True, return_inverse=True)
        return words[first], number.reshape(-1).astype(np.int32)

    @cached_property
    def futures(self) -> LazyTable[int]:
        """`future` as integers, by lexer state."""
        return LazyTable(lambda state: set_at(self.future, state))

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
    def shifted(self) -> NDArray[np.uint32]:
        """``uint32[states, words]``: the sets of terminals that the parser's states shift."""
        found = np.zeros((len(self.context), 32 * self.before.shape[1]), np.bool_)
        found[self.shift[:, 0], self.shift[:, 1]] = True
        return from_bits(found)

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether no two actions of the parser compete."""
        claimed, of = self.shifted.copy(), self.reduce[:, 0]
        turn = np.arange(len(of)) - np.searchsorted(of, of)  # the first, second, ... reduction of its state
        for k in range(int(turn.max(initial=-1)) + 1):
            here = turn == k
            if (claimed[of[here]] & self.before[here]).any():
                return False
            claimed[of[here]] |= self.before[here]
        return True

    @property
    def members(self) -> int:
        """See `members_of`."""
        return members_of(self.end, self.layout)

    @property
    def set_members(self) -> int:
        """What the members of sets of partial masks are below: terminals if all are unconstrained, else endings."""
        return self.members if self.endings.is_unconstrained else max(1, len(self.endings))

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md)."""
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
            "lr_certain": self.defaults,
            "lr_same": smallest(self.same + 1),
            "terminals": np.frombuffer(names, np.uint8),
            "layout": self.layout.to_section() if self.layout else np.zeros(0, np.uint32),
            **self.attributes.to_sections(),
            **({NAMES_SECTION: self.names} if len(self.names) else {}),
        }

    @classmethod
    def from_sections(cls, sections: Sections, where: str) -> GrammarTables:
        """Read `to_sections`. Raises `FormatError`."""
        sizes: Sizes = {}
        try:
            text, numbers = columns.read(sections, NAMES, sizes, where).values()
            names = tuple(text.tobytes().decode().split("\n"))
        except UnicodeDecodeError as error:
            raise FormatError("section 'terminals' is no text", where=where) from error
        layout = IndentationTerminals.from_numbers(numbers.tolist(), len(names), where)
        sizes |= {"terminals": len(names), "members": members_of(len(names), layout)}
        attributes = GrammarAttributes()
        if SECTION in sections:
            text = columns.read(sections, Columns(Column(SECTION, "u1")), sizes, where)[SECTION]
            attributes = GrammarAttributes.from_section(text.tobytes(), len(names), where)
        called = np.zeros(0, np.uint8)
        if NAMES_SECTION in sections:
            called = columns.read(sections, Columns(Column(NAMES_SECTION, "u1")), sizes, where)[NAMES_SECTION]
        found = columns.read(sections, LEXER, sizes, where)
        sizes |= {"classes": int(found["lex_class"].max()) + 1, "ending members": max(1, sizes["endings"])}
        found |= columns.read(sections, PARSER, sizes, where)
        for name in ("lex_table", "lex_end", "lex_border", "lr_same"):
            found[name] -= 1
        tables = cls(
            class_of=found["lex_class"],
            table=found["lex_table"],
            ends=found["lex_end"],
            beats=found["lex_beats"],
            lapses=found["lex_lapses"],
            future=found["lex_future"],
            starts=found["lex_start"],
            context=found["lr_context"],
            ignored=found["lr_ignored"],
            shift=found["lr_shift"],
            goto=found["lr_goto"],
            reduce=found["lr_reduce"],
            before=found["lr_before"],
            defaults=found["lr_certain"],
            same=found["lr_same"],
            terminals=names,
            layout=layout,
            endings=Endings(found["lex_ending"], found["lex_border"], found["lex_endings"]),
            attributes=attributes,
            names=called,
        )
        tables._check(where)
        return replace(tables, endings=tables.endings.simplified(tables.obligations.simplified))

    def _check(self, where: str) -> None:
        """What sections have to do with one another."""
        defaults = self.reduce[self.defaults[self.reduce[:, 0]] > 0, 0]
        for wrong, what in (
            (not len(self.context), "section 'lr_context' is empty"),
            (set_at(self.ignored.reshape(1, -1), 0) >> self.end, "section 'lr_ignored' has what is no terminal"),
            (self.starts[0] != 0, "section 'lex_start' does not begin at 0"),
            ((self.ends[:, 1] == self.end).any(), "section 'lex_end' has the end of the text as a terminal"),
            (np.isin(self.ends[:, 0], self.starts).any(), "section 'lex_end' has an end in a start state"),
            (
                len(defaults) != np.count_nonzero(self.defaults) or (defaults[1:] == defaults[:-1]).any(),
                "section 'lr_certain' has a state without its one reduction",
            ),
            (not self._are_same_sound(), "section 'lr_same' has a stack that is no simpler"),
            (len(self.endings.words) not in (0, len(self.table)), "section 'lex_endings' has too few rows"),
            (bool(len(self.endings.words)) != bool(len(self.endings)), "section 'lex_endings' fits no endings"),
        ):
            if wrong:  # circles, among them
                raise FormatError(what, where=where)

    def _are_same_sound(self) -> bool:
        """Whether each of `same` takes away something, of what it asks for."""
        states = self.same[:, 2 + SYMBOLS :]
        there = states >= 0
        kept, popped, symbols = self.same[:, 0], self.same[:, 1], (self.same[:, 2 : 2 + SYMBOLS] >= 0).sum(axis=1)
        return bool(
            states.shape[1] and (states < len(self.context)).all() and (there[:, 1:] <= there[:, :-1]).all()
            and (kept >= 0).all() and (kept < 2).all() and (popped > 0).all() and (popped >= symbols).all()
            and (kept + popped <= there.sum(axis=1)).all()
        )  # fmt: skip


def members_of(terminals: int, layout: IndentationTerminals | None) -> int:
    """Number of terminals that sets may hold.

    Those of the grammar, the end, and one for each column of a line's beginning.
    """
    return terminals + 1 + (layout.columns + 2 if layout else 0)


#: The sections of the file format (see docs/internals/format.md), in the order in which they are read; "lexer" and
#: "parser" are numbers of states.
NAMES = Columns(Column("terminals", "u1"), Column("layout", "u4"))
LEXER = Columns(
    Column("lex_class", "u1", rows=256),
    Column("lex_beats", "u1", rows="lexer", below=2),
    Column("lex_lapses", "u1", rows="lexer", below=2),
    Column("lex_future", "u4", rows="lexer", members="members"),
    Column("lex_start", rows=("more contexts", 1), below="lexer", order="rises", cast="i4"),
    Column(
        "lex_end", fields=((1, ("lexer", 1)), (1, ("members", 1)), (0, ("lexer", 1))), order="never falls", cast="i4"
    ),
    Column("lex_border", rows="boundaries", columns="widest boundary", below=("lexer", 1), cast="i4"),
    Column("lex_ending", rows="endings", fields=((0, "members"), (0, "boundaries"), (0, 2)), cast="i4"),
)
PARSER = Columns(
    Column("lex_endings", "u4", rows="lexer with endings", members="ending members"),
    Column("lex_table", rows="lexer", columns="classes", below=("lexer", 1), cast="i4"),
    Column("lr_context", rows="parser", below=("more contexts", 1), cast="i4"),
    Column("lr_ignored", "u4", members="members"),
    Column("lr_certain", "u1", rows="parser", below=2),
    Column("lr_shift", "i4", fields=((0, "parser"), (0, ("terminals", 1)), (0, "parser")), order="never falls"),
    Column("lr_goto", "i4", fields=((0, "parser"), (0, MOST), (0, "parser")), order="never falls"),
    Column("lr_reduce", "i4", rows="reductions", fields=((0, "parser"), (0, "parser"), (0, MOST)), order="never falls"),
    Column("lr_before", "u4", rows="reductions", members="members"),
    Column("lr_same", columns=("states below", 2 + SYMBOLS), cast="i4"),
)
