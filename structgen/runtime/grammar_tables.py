"""`GrammarTables`: a lexer and an LALR(1) parser in the compact form that is stored and followed at run time.

The readable forms are `structgen.compiler.grammar.lalr.Lalr` and `structgen.compiler.grammar.scanner.Lexer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


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
    terminals: tuple[str, ...]

    @property
    def states(self) -> int:
        """Number of lexer and parser states together."""
        return len(self.label) + len(self.context)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.class_of, self.table, self.label, self.future, self.starts, self.context, self.ignored,
                  self.shift, self.goto, self.reduce, self.before)  # fmt: skip
        return sum(array.nbytes for array in arrays)

    @cached_property
    def futures(self) -> list[int]:
        """`future` as integers."""
        return sets_of(self.future)

    @property
    def end(self) -> int:
        """The number of the end of the text, as a terminal."""
        return len(self.terminals)


def words_of(sets: list[int], members: int) -> NDArray[np.uint32]:
    """Sets of integers below ``members`` as ``uint32[sets, words]``."""
    words = -(-members // 32)
    data = b"".join(each.to_bytes(4 * words, "little") for each in sets)
    return np.frombuffer(data, "<u4").reshape(len(sets), words).astype(np.uint32)


def sets_of(words: NDArray[np.uint32]) -> list[int]:
    """The inverse of `words_of`."""
    data = np.ascontiguousarray(words, "<u4")
    return [int.from_bytes(row.tobytes(), "little") for row in data]
