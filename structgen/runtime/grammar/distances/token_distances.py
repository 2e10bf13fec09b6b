"""Distances of grammars with a lexer to the end of a text, in tokens: upper bounds, each with a text to show for it.

Every thread has a cheap text that completes it (`structgen.runtime.grammar.distances.texts`), and the rest of it is
the text of where its beginning leads. A configuration's distance is the number of tokens of the best way to split
such a text, of the thread for which that is least; it is at most one more than that behind the first of these tokens.
(A text of more bytes may take fewer tokens; so this is a bound.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....errors import UnsupportedError
from ....system.locks import Lock, Rank
from ....system.memo import Memo
from ...automaton.distances import MEMO_ENTRIES, NEVER
from ...core.lazy_table import LazyTable
from ...pushdown.distances.cheapest_texts import by_class
from ...pushdown.distances.token_distances import by_runs
from ...rows.row_pool import row_of
from ..interned_machine import Configuration
from ..lexer_threads import Thread
from .potential import Potential, find_potential
from .successors import GrammarSuccessors, LexedMachine
from .texts import GrammarTexts, Stuck

#: Bytes of a cheap text at most; longer ones count as none.
_MOST_BYTES = 1 << 20


class GrammarDistances:
    """Distances of one grammar.

    Parameters
    ----------
    machine:
        The lexer, the parser and the vocabulary.

    Raises
    ------
    UnsupportedError
        Where there is indentation, something that is not lexed, a conflict that was kept, or a lexeme that what
        follows must be chosen for; where bytes are needed that are no tokens; and where no text is found.
    BudgetExceededError
        Where the parser has too many conflicts.
    """

    def __init__(self, machine: LexedMachine) -> None:
        tables, vocabulary = machine.tables, machine.vocabulary
        _check(machine)
        self._trie = trie = vocabulary.trie
        chosen = by_class(by_runs(vocabulary), tables.class_of)
        read = np.flatnonzero((tables.table >= 0).any(axis=0))
        if len(np.setdiff1d(read, tables.class_of[chosen])):
            raise UnsupportedError(
                "max_tokens is not supported for a vocabulary without a token for each single byte",
                remedy="Use a vocabulary with all single bytes, or leave max_tokens out.",
            )
        self._children = LazyTable(lambda node: dict(trie.children(node)))
        self._ends = np.diff(self._trie.first_token).astype(np.bool_).tobytes()
        self._words = vocabulary.words
        self._lock = Lock(Rank.DISTANCES)
        self._end = int(bool(vocabulary.eos_ids))
        self._texts = GrammarTexts(tables, machine.parses, chosen)
        self._moves: dict[Thread, tuple[int, Thread | None] | None] = {}  # None for a thread that is stuck
        self._tokens: dict[Thread | None, int] = {None: 0}
        self._known: Memo[Configuration, int] = Memo(MEMO_ENTRIES)
        self._farthest: Memo[Configuration, int] = Memo(MEMO_ENTRIES)
        self._reached = GrammarSuccessors(machine, self.of_thread)
        self._potential: Potential | None = None
        try:
            self._potential = find_potential(tables, self._texts, self._trie)
        except Stuck:
            raise _unsupported("grammars some of whose terminals cannot follow each other") from None
        if self.distance(machine.start) >= NEVER:
            raise _unsupported("this grammar")

    def _follow(self, thread: Thread) -> tuple[int, Thread | None] | None:
        """The first byte of a thread's text and where it leads, None for what ends there; None if it is stuck."""
        if thread not in self._moves:
            try:
                move = self._texts.follow(thread)
                self._moves[thread] = (-1, None) if move is None else move
            except Stuck:
                self._moves[thread] = None
        return self._moves[thread]

    def of_thread(self, thread: Thread) -> int:
        """The fewest tokens that a thread's text can be split into, with the EOS token; `NEVER` if there is none."""
        tokens = self._tokens
        chain: list[tuple[Thread, int]] = []
        here: Thread | None = thread
        while here not in tokens:
            assert here is not None
            move = self._follow(here)
            if move is None or move[1] is None:
                tokens[here] = NEVER if move is None else self._end
                break
            chain.append((here, move[0]))
            here = move[1]
            if len(chain) > _MOST_BYTES:  # too far for any budget, and no error at a step
                tokens[thread] = NEVER
                return NEVER
        children, ends = self._children, self._ends
        for start, _ in reversed(chain):
            node, best = 0, NEVER
            here = start
            while (move := self._moves[here]) is not None and move[1] is not None:
                node = children[node].get(move[0], 0)
                if not node:
                    break
                here = move[1]
                if ends[node]:
                    best = min(best, tokens[here] + 1)
            tokens[start] = best
        return tokens[thread]

    # -- what guides ask for ---------------------------------------------------------------------------

    def distance(self, config: Configuration) -> int:
        """So many tokens, the EOS token included, complete a text."""
        found = self._known.get(config)
        if found is None:
            with self._lock:
                self._trim()
                found = self._known[config] = min(map(self.of_thread, config.threads))
        return found

    def _trim(self) -> None:
        """Forget, where much is remembered."""
        if max(len(self._moves), len(self._tokens), self._texts.remembered) >= MEMO_ENTRIES:
            self._moves, self._tokens = {}, {None: 0}
            self._texts.forget()
        if self._potential is not None and self._potential.remembered >= MEMO_ENTRIES:
            self._potential.forget()

    def near(self, config: Configuration, left: int) -> int:
        """A number of tokens left above which every token leaves enough of them to complete the text."""
        potential = self._potential
        if potential is None:
            return left
        with self._lock:
            self._trim()
            enough = max(potential.bound(parse.stack) for parse, _, _ in config.threads)
        return left - max(0, (left - enough) // (potential.most + 1))

    def farthest(self, config: Configuration) -> int:
        """The largest distance that a single token leads to."""
        found = self._farthest.get(config)
        if found is None:
            with self._lock:
                self._trim()
                found = self._farthest[config] = int(self._reached.find(config)[1].max(initial=0))
        return found

    def row(self, config: Configuration, most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``, without EOS ids; read-only ``int32[words]``."""
        with self._lock:
            tokens, far = self._reached.find(config)
        row = row_of(tokens[far <= most], self._words).view(np.int32)
        row.flags.writeable = False
        return row


def _check(machine: LexedMachine) -> None:
    """Raise `UnsupportedError` for grammars of which no bound is known."""
    tables = machine.tables
    for is_there, what in (
        (tables.layout is not None, "grammars with indentation"),
        (bool(machine.embedded.definitions), "grammars with definitions in them"),
        (bool(machine.embedded.tokens), "grammars with special tokens"),
        (not tables.is_deterministic, 'grammars with ambiguity="all" and conflicts'),
        (not tables.endings.is_unconstrained, "grammars some of whose terminals cannot follow each other"),
    ):
        if is_there:
            raise _unsupported(what)


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"max_tokens is not supported for {what}: no bound on the tokens that a text needs is known",
        remedy="Leave max_tokens out.",
    )
