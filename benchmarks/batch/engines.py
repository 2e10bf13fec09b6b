"""Engines under one interface for batches: all sequences are advanced and masked, each library its fastest way.

structgen: one `GuideBatch`. llguidance: `consume_token_par` and `fill_next_token_bitmask_par`, on an executor of as
many threads as asked for. XGrammar: `BatchGrammarMatcher`. All write into the same kind of buffer,
``int32[batch, words]``, but for structgen's own masks and row ids, which are timed as ways of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

import structgen as sg

from .. import engines as peers
from ..json_schema import engines
from ..json_schema.engines import Schema, Setting


class Batch(Protocol):
    """Sequences in one engine."""

    def step(self, tokens: Sequence[int]) -> None:
        """Append a token to each sequence and have all masks. Raises, or asserts, where one is refused."""
        ...

    def replace(self, row: int, compiled: Any) -> None:
        """Begin a new sequence in a row; not timed."""
        ...


class BatchEngine(Protocol):
    """One library."""

    def compile(self, schema: Schema) -> Any:
        """The library's compiled form of a schema. Raises `benchmarks.engines.RefusedError`."""
        ...

    def accepts(self, compiled: Any, tokens: Sequence[int]) -> bool:
        """Whether a text is allowed token by token, and may end."""
        ...

    def batch(self, compiled: Sequence[Any]) -> Batch:
        """A batch with a new sequence for each."""
        ...


class _StructgenBatch:
    def __init__(self, vocabulary: sg.Vocabulary, compiled: Sequence[sg.Index], way: str) -> None:
        self._batch = sg.GuideBatch(vocabulary, compiled)
        self._masks = np.zeros((len(compiled), vocabulary.words), np.int32)
        ways: dict[str, Callable[[], object]] = {
            "fill": lambda: self._batch.fill_bitmask(self._masks),
            "own": self._batch.bitmask,
            "rows": self._batch.row_ids,
        }
        self._mask = ways[way]
        self._mask()

    def step(self, tokens: Sequence[int]) -> None:
        """Advance and mask."""
        accepted = self._batch.advance(tokens)
        self._mask()
        assert accepted.all(), self._batch.errors

    def replace(self, row: int, compiled: sg.Index) -> None:
        """A new sequence takes the row's place."""
        order = list(range(len(self._batch)))
        order[row] = self._batch.add(compiled)
        self._batch.reorder(order)
        self._mask()


class Structgen:
    """structgen; ``way`` is ``fill`` (a caller's buffer), ``own`` (the batch's) or ``rows`` (row ids)."""

    def __init__(self, vocabulary: sg.Vocabulary, setting: Setting, way: str) -> None:
        self._engine = engines.Structgen(vocabulary, setting)
        self._vocabulary, self._way = vocabulary, way

    def compile(self, schema: Schema) -> sg.Index:
        """An index, eager."""
        return self._engine.compile(schema)

    def accepts(self, compiled: sg.Index, tokens: Sequence[int]) -> bool:
        """By a guide."""
        guide = sg.Guide(compiled)
        return all(map(guide.advance, tokens)) and guide.is_accepting()

    def batch(self, compiled: Sequence[sg.Index]) -> Batch:
        """A `GuideBatch`."""
        return _StructgenBatch(self._vocabulary, compiled, self._way)


class _LLGuidanceBatch:
    def __init__(self, compiled: Sequence[Any], words: int, threads: int) -> None:
        from llguidance import LLExecutor
        from llguidance.numpy import fill_next_token_bitmask_par

        self._executor = LLExecutor(num_threads=threads)
        self._fill = fill_next_token_bitmask_par
        self._rows = [(matcher.deep_copy(), row) for row, matcher in enumerate(compiled)]
        self._masks = np.zeros((len(compiled), words), np.int32)
        self._fill(self._executor, self._rows, self._masks)

    def step(self, tokens: Sequence[int]) -> None:
        """Advance and mask."""
        pairs = [(matcher, token) for (matcher, _), token in zip(self._rows, tokens, strict=True)]
        self._executor.consume_token_par(pairs)
        self._fill(self._executor, self._rows, self._masks)

    def replace(self, row: int, compiled: Any) -> None:
        """A new matcher takes the row's place."""
        self._rows[row] = (compiled.deep_copy(), row)


class LLGuidance:
    """llguidance."""

    def __init__(self, vocabulary: sg.Vocabulary, setting: Setting, threads: int) -> None:
        self._engine = engines.LLGuidance(vocabulary, setting.tokenizer_json)
        self._words, self._threads = vocabulary.words, threads

    def compile(self, schema: Schema) -> Any:
        """A matcher."""
        return self._engine.compile(schema)

    def accepts(self, compiled: Any, tokens: Sequence[int]) -> bool:
        """By a copy of the matcher."""
        matcher = compiled.deep_copy()
        return all(matcher.consume_token(token) for token in tokens) and matcher.is_accepting()

    def batch(self, compiled: Sequence[Any]) -> Batch:
        """Copies of the matchers."""
        return _LLGuidanceBatch(compiled, self._words, self._threads)


class _XGrammarBatch:
    def __init__(self, compiled: Sequence[Any], words: int, threads: int) -> None:
        import torch
        import xgrammar

        self._matchers = [xgrammar.GrammarMatcher(each) for each in compiled]
        self._batch = xgrammar.BatchGrammarMatcher(max_threads=threads)
        self._masks = torch.zeros((len(compiled), words), dtype=torch.int32)
        self._matcher = xgrammar.GrammarMatcher

    def step(self, tokens: Sequence[int]) -> None:
        """Advance and mask."""
        accepted = self._batch.batch_accept_token(self._matchers, list(tokens))
        self._batch.batch_fill_next_token_bitmask(self._matchers, self._masks)
        assert all(accepted)

    def replace(self, row: int, compiled: Any) -> None:
        """A new matcher takes the row's place."""
        self._matchers[row] = self._matcher(compiled)


class XGrammar:
    """XGrammar."""

    def __init__(self, vocabulary: sg.Vocabulary, setting: Setting, threads: int) -> None:
        self._engine = engines.XGrammar(vocabulary)
        self._words, self._threads = vocabulary.words, threads

    def compile(self, schema: Schema) -> Any:
        """A `CompiledGrammar`."""
        return self._engine.compile(schema)

    def accepts(self, compiled: Any, tokens: Sequence[int]) -> bool:
        """By a matcher."""
        import xgrammar

        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(token) for token in tokens) and not matcher.is_terminated()

    def batch(self, compiled: Sequence[Any]) -> Batch:
        """Matchers."""
        return _XGrammarBatch(compiled, self._words, self._threads)


#: By name: the module that must be there, and how to make the engine for so many threads.
ENGINES: dict[str, tuple[str, Callable[[sg.Vocabulary, Setting, int], BatchEngine]]] = {
    "structgen": ("structgen", lambda vocabulary, setting, _: Structgen(vocabulary, setting, "fill")),
    "structgen, own masks": ("structgen", lambda vocabulary, setting, _: Structgen(vocabulary, setting, "own")),
    "structgen, row ids": ("structgen", lambda vocabulary, setting, _: Structgen(vocabulary, setting, "rows")),
    "llguidance": ("llguidance", LLGuidance),
    "xgrammar": ("xgrammar", XGrammar),
}

available = partial(peers.available, ENGINES)


def make(name: str, vocabulary: sg.Vocabulary, setting: Setting, threads: int) -> BatchEngine:
    """An engine that is ready to compile."""
    return ENGINES[name][1](vocabulary, setting, threads)
