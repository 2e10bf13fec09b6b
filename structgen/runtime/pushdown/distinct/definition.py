"""`DistinctInnerMachine`: a definition within a grammar whose items or names must differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ....system.types import JsonMap, Sections
from ....vocabulary.vocabulary import Vocabulary
from ...rows.row_pool import RowPool
from ..machine import PushdownMachine
from ..partial_masks import StateMasks
from ..store.configuration import StoredConfiguration
from . import distinct
from .containers import Place
from .items import COMMA
from .machine import DistinctMachine, are_over
from .store import without


class DistinctInnerMachine:
    """What a grammar asks of a definition in it (`structgen.runtime.grammar.embedded.InnerMachine`).

    Its threads are places. The automaton decides which tokens end in the definition, and at which nodes of the trie it
    may be over. Of these are left out what only texts with a repeated item or name come to.

    Parameters
    ----------
    inner:
        The machine, which nobody else uses.
    """

    #: How many tokens have a byte of a text at most: as many as it takes.
    max_tokens: int | None = None

    def __init__(self, inner: DistinctMachine) -> None:
        self.inner = inner
        self.rows: StateMasks = inner.rows
        self.pool: RowPool = inner.pool
        self._places, self._vocabulary = inner.places, inner.vocabulary
        self._begun_in = inner.stepper()
        # What a grammar asks of the automaton.
        self.belong_to, self.fill = inner.belong_to, inner.fill
        self.to_meta, self.to_sections = inner.to_meta, inner.to_sections

    @property
    def start_threads(self) -> tuple[Place, ...]:
        """Where a text begins."""
        return ((self.inner.start, None),)

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return self.inner.known_rows

    def step(self, threads: tuple[Place, ...], byte: int) -> tuple[Place, ...]:
        """Where a byte leads, if the text can be completed then."""
        return self._places.followed(self._gathered(threads), bytes((byte,)))

    def _gathered(self, threads: tuple[Place, ...]) -> tuple[Place, ...]:
        """Places in the store that texts begin in."""
        store = self.inner.stepper()
        if all(config.store is store for config, _ in threads):
            return threads
        _, numbers = self.inner.gathered([config for config, _ in threads])
        known = [seen for _, seen in threads]
        return tuple([(StoredConfiguration(store, n or 0), seen) for n, seen in zip(numbers, known, strict=True)])

    def after_token(self, threads: tuple[Place, ...]) -> tuple[Place, ...]:
        """Where a text is when a token ends in it."""
        return threads

    def may_end(self, threads: tuple[Place, ...]) -> bool:
        """Whether the text is complete."""
        return are_over(threads)

    def candidates(self, threads: tuple[Place, ...]) -> Iterator[int]:
        """A superset of the bytes that can follow."""
        return iter(self._places.candidates(threads))

    def is_crowded(self) -> bool:
        """Whether so much is remembered of texts that it is time to `forget`."""
        return self.inner.is_crowded() or self.inner.stepper() is not self._begun_in

    def forget(self) -> None:
        """Forget what is remembered of texts."""
        self.inner.forget()
        self._begun_in = self.inner.stepper()

    # -- masks -----------------------------------------------------------------------------------------

    def decide(self, threads: tuple[Place, ...], residual: int) -> tuple[set[int], set[int]]:
        """The rows of what goes on from a residual list, and the residual lists left to what follows the text."""
        rows: set[int] = set()
        left: set[int] = set()
        for place in self._gathered(threads):
            own, after = self._decide(place, residual)
            rows |= own
            left |= after
        return rows, left

    def _decide(self, place: Place, residual: int) -> tuple[set[int], set[int]]:
        rows, left = self.inner.decide(place[0].threads, residual)
        residuals, text_of = self.rows.residuals, self._vocabulary.token
        roots = residuals[residual].tolist()
        ids = self.inner.ids_below(node for root in roots for node in self.inner.refusals.nodes((place,), root))
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
        trie = self._vocabulary.trie
        node: int | None = 0
        for at, byte in enumerate(text):
            if node in roots and self._places.followed((place,), text[at:]):
                return True
            node = None if node is None else trie.child(node, byte)
        return False

    def _is_over(self, place: Place, node: int, roots: Collection[int]) -> bool:
        """Whether the text, begun behind some node on the way, is over at a node where it is if items may be equal."""
        trie = self._vocabulary.trie
        text = (self._vocabulary.token(int(trie.token_ids[trie.first_token[node]])) or b"")[: trie.depth[node]]
        if place[1] is None and COMMA not in text:
            return True
        above = [text[trie.depth[root] :] for root in roots if root <= node < trie.skip[root]]
        return any(are_over(self._places.followed((place,), rest)) for rest in above)


def within_grammar(inner: PushdownMachine) -> PushdownMachine | DistinctInnerMachine:
    """The machine of a definition within a grammar: one around it, where it has items or names that must differ."""
    machine = distinct(inner)
    return DistinctInnerMachine(machine) if isinstance(machine, DistinctMachine) else machine


def from_sections(
    meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str
) -> PushdownMachine | DistinctInnerMachine:
    """Read what either machine wrote. Raises `FormatError`."""
    return within_grammar(PushdownMachine.from_sections(meta, sections, vocabulary, where))
