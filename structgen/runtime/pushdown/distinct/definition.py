"""`DistinctInnerMachine`: a definition within a grammar whose items or names must differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ....budget import StepMeter
from ....system.locks import Lock
from ....system.types import JsonMap, Sections
from ....vocabulary.vocabulary import Vocabulary
from ..machine import PushdownMachine
from ..partial_masks import StateMasks
from .containers import Place
from .items import COMMA
from .machine import DistinctMachine, without


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
        rows, left = self.inner.decide(place[0].threads, residual)
        residuals, text_of = self.rows.residuals, self.vocabulary.token
        roots = residuals[residual].tolist()
        ids = self.ids_below(node for root in roots for node in self.refusals.nodes((place,), root))
        if len(roots) > 1:
            ids = ids[[not self._goes_on(place, text_of(token) or b"", roots) for token in ids.tolist()]]
        if len(ids):
            row = np.zeros(self.pool.words, np.int32)
            for number in rows:
                self.pool.add_to(row, number)
            without(row, ids)
            rows = {self.pool.add_dense(row.view(np.uint32))} if row.any() else set()
        kept = {
            number: [node for node in residuals[number].tolist() if self._is_over(place, node, roots)]
            for number in left
        }
        return rows, {residuals.add(np.array(nodes, np.int32)) for nodes in kept.values() if nodes}

    def _goes_on(self, place: Place, text: bytes, roots: Collection[int]) -> bool:
        """Whether a token's text leads on in the definition, begun behind some node on the way."""
        trie = self.vocabulary.trie
        node: int | None = 0
        for at, byte in enumerate(text):
            if node in roots and self._follow((place,), text[at:]):
                return True
            node = None if node is None else trie.child(node, byte)
        return False

    def _is_over(self, place: Place, node: int, roots: Collection[int]) -> bool:
        """Whether the text, begun behind some node on the way, is over at a node where it is if items may be equal."""
        trie = self.vocabulary.trie
        text = (self.vocabulary.token(int(trie.token_ids[trie.first_token[node]])) or b"")[: trie.depth[node]]
        if place[1] is None and COMMA not in text:
            return True
        above = [text[trie.depth[root] :] for root in roots if root <= node < trie.skip[root]]
        return any(self.may_end(self._follow((place,), rest)) for rest in above)


def within_grammar(inner: PushdownMachine) -> PushdownMachine | DistinctInnerMachine:
    """The machine of a definition within a grammar: one around it, where it has items or names that must differ."""
    return DistinctInnerMachine(inner) if len(inner.tables.distinct) else inner


def from_sections(
    meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str
) -> PushdownMachine | DistinctInnerMachine:
    """Read what either machine wrote. Raises `FormatError`."""
    return within_grammar(PushdownMachine.from_sections(meta, sections, vocabulary, where))
