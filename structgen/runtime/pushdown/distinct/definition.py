"""`DistinctInnerMachine`: a definition within a grammar whose items or names must differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ....budget import StepMeter
from ....system.locks import Lock
from ....system.types import JsonMap, Sections
from ....vocabulary.vocabulary import Vocabulary
from ...rows.residuals import ROOT
from ..machine import PushdownMachine
from ..partial_masks import StateMasks
from .item_tokens import is_allowed
from .machine import DistinctMachine, Place


class DistinctInnerMachine(DistinctMachine):
    """What a grammar asks of a definition in it (`structgen.runtime.grammar.embedded.InnerMachine`).

    The automaton decides which tokens end in the definition, and at which nodes of the trie it may be over. Of these
    are left out what only texts with a repeated item or name come to.
    """

    #: How many tokens have a byte of a text at most: as many as it takes.
    max_tokens: int | None = None

    @property
    def start_threads(self) -> tuple[Place, ...]:
        """Where a text begins."""
        return self.start.threads

    @property
    def rows(self) -> StateMasks:
        """What was decided of masks."""
        return self.inner.rows

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """See `PushdownMachine`."""
        self._lock = lock
        self.inner.belong_to(lock, steps)

    def step(self, threads: tuple[Place, ...], byte: int) -> tuple[Place, ...]:
        """Where a byte leads, if the text can be completed then."""
        return self._follow(threads, bytes((byte,)))

    def after_token(self, threads: tuple[Place, ...]) -> tuple[Place, ...]:
        """Where a text is when a token ends in it."""
        return threads

    def candidates(self, threads: tuple[Place, ...]) -> Iterator[int]:
        """A superset of the bytes that can follow."""
        return (byte for (byte,) in self._candidates(threads))

    def is_crowded(self) -> bool:
        """Whether so much is remembered of texts that it is time to `forget`."""
        return self._is_full()

    def forget(self) -> None:
        """Forget what is remembered of texts."""
        self._forget()

    # -- masks -----------------------------------------------------------------------------------------

    def decide(self, threads: tuple[Place, ...], residual: int) -> tuple[set[int], set[int]]:
        """The rows of what goes on from a residual list, and the residual lists left to what follows the text."""
        rows: set[int] = set()
        left: set[int] = set()
        for place in threads:
            own, after = self._decide(place, residual)
            rows |= own
            left |= after
        return rows, left

    def _decide(self, place: Place, residual: int) -> tuple[set[int], set[int]]:
        rows, left = self.inner.decide(place[0], residual)
        residuals = self.rows.residuals
        roots = residuals[residual]
        row = np.zeros(self.pool.words, np.int32)
        for number in rows:
            self.pool.add_to(row, number)
        again = [node for root in roots.tolist() for node, _ in self._repeating_now(place, root)]
        ids = self._forbidden(place, row) if residual == ROOT else self._forbidden_behind(place, row, roots, again)
        if len(ids):
            np.bitwise_and.at(row.view(np.uint32), ids >> 5, ~(np.uint32(1) << (ids & 31).astype(np.uint32)))
            rows = {self.pool.add_dense(row.view(np.uint32))} if row.any() else set()
        kept = {number: self._over(place, residuals[number], roots, again) for number in left}
        return rows, {residuals.add(nodes) for nodes in kept.values() if len(nodes)}

    def _forbidden_behind(
        self, place: Place, row: NDArray[np.int32], roots: NDArray[np.int32], again: Iterable[int]
    ) -> NDArray[np.int64]:
        """`_forbidden` where the definition is come to within a token, at some nodes of the trie.

        Few tokens have a comma or a colon behind such a node, so all of these are followed.
        """
        trie, text_of = self.vocabulary.trie, self.vocabulary.token
        below = [trie.token_ids[trie.first_token[node] : trie.first_token[trie.skip[node]]] for node in again]
        ids = np.unique(np.concatenate([self._item_tokens.marked, *below]).astype(np.int64))
        ids = ids[is_allowed(ids, row)]
        texts = ((token, text_of(token) or b"") for token in ids.tolist())
        return np.array([token for token, text in texts if not self._goes_on(place, text, roots)], np.int64)

    def _goes_on(self, place: Place, text: bytes, roots: NDArray[np.int32]) -> bool:
        """Whether a token's text leads on in the definition, begun behind some node on the way."""
        trie, known = self.vocabulary.trie, {*roots.tolist()}
        node: int | None = 0
        for at, byte in enumerate(text):
            if node in known and self._follow((place,), text[at:]):
                return True
            node = None if node is None else trie.child(node, byte)
        return False

    def _over(
        self, place: Place, nodes: NDArray[np.int32], roots: NDArray[np.int32], again: Iterable[int]
    ) -> NDArray[np.int32]:
        """The nodes where the text may be over, of those where it may be if its items may be equal."""
        is_doubtful = self._item_tokens.is_behind_mark[nodes]
        for node in again:
            is_doubtful |= (nodes >= node) & (nodes < self.vocabulary.trie.skip[node])
        for at in np.flatnonzero(is_doubtful).tolist():
            is_doubtful[at] = not self._is_over(place, int(nodes[at]), roots)
        return nodes[~is_doubtful]

    def _is_over(self, place: Place, node: int, roots: NDArray[np.int32]) -> bool:
        """Whether the text may be over at a node, begun behind one of some nodes on the way, or there."""
        trie = self.vocabulary.trie
        token = int(trie.token_ids[trie.first_token[node]])
        text = (self.vocabulary.token(token) or b"")[: trie.depth[node]]
        above = roots[(roots <= node) & (trie.skip[roots] > node)]
        return any(self.may_end(self._follow((place,), text[trie.depth[root] :])) for root in above)


def within_grammar(inner: PushdownMachine) -> PushdownMachine | DistinctInnerMachine:
    """The machine of a definition within a grammar: one around it, where it has items or names that must differ."""
    return DistinctInnerMachine(inner) if len(inner.tables.distinct) else inner


def from_sections(
    meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str
) -> PushdownMachine | DistinctInnerMachine:
    """Read what either machine wrote. Raises `FormatError`."""
    return within_grammar(PushdownMachine.from_sections(meta, sections, vocabulary, where))
