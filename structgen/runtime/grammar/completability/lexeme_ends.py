"""How lexemes can end: whether something can follow them at all, without making them longer.

Lexers take what is longer. After ``/a+/`` no terminal that begins with an ``a`` can be read: it would be part of the
lexeme. So it is not enough that the parser accepts a terminal; something must be able to come next, and after that,
up to the end of the text. An *ending* is a terminal with the boundary behind its lexeme
(`structgen.runtime.grammar.completability.boundaries`). Where the lexer can read all that any parser that took the
terminal may accept next, and so on, that is no question; such endings are *unconstrained*, and in most grammars all
are. Otherwise a lexeme counts as what the parser accepts only if the text can be completed
(`structgen.runtime.grammar.completability.completions`).

Endings are found when a grammar is compiled (`structgen.compiler.grammar.completion.endings`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from ....storage.container import smallest
from ....system.properties import cached_property
from ....system.types import Array
from ...core.bitsets import set_at
from ...core.lazy_table import LazyTable
from .obligations import Watched


@dataclass(frozen=True, eq=False)
class Endings:
    """The endings of a lexer's lexemes; of a grammar in which all are unconstrained, none is told apart.

    Parameters
    ----------
    ends:
        ``int32[endings, 3]``: terminal, boundary, and 1 where the ending is unconstrained.
    watched:
        ``int32[boundaries, *]``: the lexer states that are watched at each boundary, ascending; -1 behind the last.
    words:
        ``uint32[lexer states, words]``: the endings that a lexeme can come to without other obligations.
    """

    ends: NDArray[np.int32]
    watched: NDArray[np.int32]
    words: NDArray[np.uint32]

    @classmethod
    def all_unconstrained(cls) -> Endings:
        """Of a grammar in which all are."""
        return cls(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros((0, 1), np.uint32))

    @property
    def is_unconstrained(self) -> bool:
        """Whether all endings are unconstrained."""
        return not len(self.words)

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def terminal(self) -> list[int]:
        """By ending: the terminal."""
        found: list[int] = self.ends[:, 0].tolist()
        return found

    @cached_property
    def boundary(self) -> list[Watched]:
        """By ending: its boundary, the obligations behind it."""
        boundaries = [tuple(w for w in row if w >= 0) for row in self.watched.tolist()]
        return [boundaries[boundary] for boundary in self.ends[:, 1].tolist()]

    @cached_property
    def unconstrained(self) -> list[bool]:
        """By ending: whether all that the parser may accept next can be read, up to the end of the text."""
        return [bool(each) for each in self.ends[:, 2].tolist()]

    @cached_property
    def by_terminal(self) -> dict[int, tuple[int, list[int]]]:
        """By terminal that has any: its endings that are unconstrained, as a set, and the others."""
        found: dict[int, tuple[int, list[int]]] = {}
        for ending, (terminal, unconstrained) in enumerate(zip(self.terminal, self.unconstrained, strict=True)):
            there, others = found.setdefault(terminal, (0, []))
            if unconstrained:
                found[terminal] = there | 1 << ending, others
            else:
                others.append(ending)
        return found

    @cached_property
    def _number(self) -> dict[tuple[int, Watched], int]:
        return {each: i for i, each in enumerate(zip(self.terminal, self.boundary, strict=True))}

    def number(self, terminal: int, boundary: Watched) -> int:
        """The number of an ending; -1 for one that no text comes to."""
        return self._number.get((terminal, boundary), -1)

    def given(self, terminal: int) -> int:
        """The number of the ending of a terminal that is not lexed. Raises `FormatError`."""
        found = self.number(terminal, ())
        if found < 0:
            raise FormatError(f"the endings of lexemes lack the terminal {terminal}")
        return found

    @cached_property
    def future(self) -> LazyTable[int]:
        """`words` as sets."""
        return LazyTable(lambda state: set_at(self.words, state))

    def simplified(self, simplify: Callable[[Watched], Watched]) -> Endings:
        """With boundaries as lexers see them that know what makes no difference: stored ones may hold more."""
        watched = self.watched.copy()
        for row in watched[(self.watched >= 0).sum(axis=1) > 1]:
            left = simplify(tuple(w for w in row.tolist() if w >= 0))
            row[:] = -1
            row[: len(left)] = left
        return replace(self, watched=watched)

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md)."""
        return {"lex_ending": smallest(self.ends), "lex_border": smallest(self.watched + 1), "lex_endings": self.words}
