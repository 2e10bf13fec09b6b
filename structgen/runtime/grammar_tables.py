"""`GrammarTables`: a lexer and an LALR(1) parser in the compact form that is stored and followed at run time.

The readable forms are `structgen.compiler.grammar.lalr.Lalr` and `structgen.compiler.grammar.scanner.Lexer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .container import smallest
from .endings import Endings, endings


@dataclass(frozen=True, eq=False)
class GrammarTables:
    """A lexer and a parser over ``terminals`` terminals; the end of the text is the terminal after the last.

    Parameters
    ----------
    class_of:
        ``uint8[256]``: the class of each byte.
    table:
        ``int32[lexer states, classes]``: the next lexer state, -1 where the lexeme cannot go on.
    label:
        ``int32[lexer states]``: the terminal that the lexeme is if it ends here, -1 for none.
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
    terminals:
        Names, for people.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    label: NDArray[np.int32]
    future: NDArray[np.uint32]
    starts: NDArray[np.int32]
    context: NDArray[np.int32]
    ignored: NDArray[np.uint32]
    shift: NDArray[np.int32]
    goto: NDArray[np.int32]
    reduce: NDArray[np.int32]
    before: NDArray[np.uint32]
    certain: NDArray[np.uint8]
    terminals: tuple[str, ...]

    #: The parser's first state.
    start = 0

    @property
    def states(self) -> int:
        """Number of lexer and parser states together."""
        return len(self.label) + len(self.context)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.to_sections().values())

    @cached_property
    def contexts(self) -> NDArray[np.int32]:
        """``int32[lexer states]``: the context of each; those of one context lie together, the start first."""
        return (np.searchsorted(self.starts, np.arange(len(self.label)), "right") - 1).astype(np.int32)

    @cached_property
    def futures(self) -> list[int]:
        """`future` as integers."""
        return sets_of(self.future)

    @cached_property
    def endings(self) -> Endings:
        """How lexemes can end; see `structgen.runtime.endings`."""
        return endings(self)

    @property
    def end(self) -> int:
        """The number of the end of the text, as a terminal."""
        return len(self.terminals)

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md)."""
        names = "\n".join(self.terminals).encode()
        return {
            "lex_class": self.class_of,
            "lex_table": smallest(self.table + 1),
            "lex_label": smallest(self.label + 1),
            "lex_future": self.future,
            "lex_start": smallest(self.starts),
            "lr_context": smallest(self.context),
            "lr_ignored": self.ignored,
            "lr_shift": self.shift,
            "lr_goto": self.goto,
            "lr_reduce": self.reduce,
            "lr_before": self.before,
            "lr_certain": self.certain,
            "terminals": np.frombuffer(names, np.uint8),
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
            label=found["lex_label"].astype(np.int32) - 1,
            future=found["lex_future"].astype(np.uint32),
            starts=found["lex_start"].astype(np.int32),
            context=found["lr_context"].astype(np.int32),
            ignored=found["lr_ignored"].astype(np.uint32),
            shift=found["lr_shift"].astype(np.int32),
            goto=found["lr_goto"].astype(np.int32),
            reduce=found["lr_reduce"].astype(np.int32),
            before=found["lr_before"].astype(np.uint32),
            certain=found["lr_certain"].astype(np.uint8),
            terminals=terminals,
        )
        if not tables._is_sound():
            raise FormatError("the grammar's tables point outside themselves", where=where)
        return tables

    def _is_sound(self) -> bool:
        lexer, parser, words = len(self.label), len(self.context), -(-(self.end + 1) // 32)
        return bool(
            lexer and parser and len(self.starts)
            and len(self.class_of) == 256 and self.table.shape == (lexer, int(self.class_of.max()) + 1)
            and self.table.max() < lexer and self.label.max() < self.end
            and self.future.shape == (lexer, words) and self.before.shape == (len(self.reduce), words)
            and len(self.ignored) == words
            and _within(self.starts, lexer) and self.starts[0] == 0 and (np.diff(self.starts) > 0).all() and _within(self.context, len(self.starts))
            and self.shift.shape[1] == self.goto.shape[1] == self.reduce.shape[1] == 3
            and _within(self.shift[:, [0, 2]], parser) and _within(self.shift[:, 1], self.end + 1)
            and _within(self.goto[:, [0, 2]], parser) and _within(self.goto[:, 1], 1 << 31)
            and len(self.certain) == parser and (np.diff(self.reduce[:, 0]) >= 0).all()
            and (np.bincount(self.reduce[:, 0], minlength=parser)[self.certain > 0] == 1).all()
            and _within(self.reduce[:, 0], parser) and _within(self.reduce[:, 1:], 1 << 31)
        )  # fmt: skip


#: The sections of a grammar's tables, and their dimensions.
_SECTIONS = {
    "lex_class": 1, "lex_table": 2, "lex_label": 1, "lex_future": 2, "lex_start": 1, "lr_context": 1, "lr_ignored": 1,
    "lr_shift": 2, "lr_goto": 2, "lr_reduce": 2, "lr_before": 2, "lr_certain": 1, "terminals": 1,
}  # fmt: skip


def _within(values: NDArray[Any], bound: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < bound)


def words_of(sets: list[int], members: int) -> NDArray[np.uint32]:
    """Sets of integers below ``members`` as ``uint32[sets, words]``."""
    words = -(-members // 32)
    data = b"".join(each.to_bytes(4 * words, "little") for each in sets)
    return np.frombuffer(data, "<u4").reshape(len(sets), words).astype(np.uint32)


def sets_of(words: NDArray[np.uint32]) -> list[int]:
    """The inverse of `words_of`."""
    data = np.ascontiguousarray(words, "<u4")
    return [int.from_bytes(row.tobytes(), "little") for row in data]
