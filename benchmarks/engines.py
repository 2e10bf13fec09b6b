"""The engines under one interface: structgen and its peers, each by its fastest documented way from Python.

All of them get the same token bytes, the same EOS ids and the same int32 buffer to write masks into. Arguments
that stay the same (the buffer, its address, its size) are prepared outside the clock for everybody.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import structgen as sg

Bitmask = NDArray[np.int32]


class RefusedError(Exception):
    """An engine does not take a regex, or a token that the walk has."""


@dataclass(frozen=True)
class Stepper:
    """One sequence in one engine, at its beginning.

    A step is ``fill(*fill_arguments)``, then ``advance(token, *advance_arguments)``, which returns False or
    raises for a token that is not allowed.
    """

    fill: Callable[..., object]
    fill_arguments: tuple[Any, ...]
    advance: Callable[..., object]
    advance_arguments: tuple[Any, ...] = ()


class Engine(Protocol):
    """What the benchmark needs of a library."""

    #: Whether `compile` does the work that grows with the vocabulary; then the size of its result means something.
    precomputes: bool

    def compile(self, pattern: str) -> Any:
        """The library's compiled form of a regex, made afresh. Raises `RefusedError`."""
        ...

    def stepper(self, compiled: Any, bitmask: Bitmask) -> Stepper:
        """A new sequence whose masks go to ``bitmask``, ``int32[words]``."""
        ...

    def another(self, pattern: str, compiled: Any) -> Any:
        """A further compiled object that shares nothing with this one, to measure the size of many."""
        ...

    def nbytes(self, compiled: Any) -> int | None:
        """The size that the library itself reports, if it does."""
        ...


class Structgen:
    """structgen, with `compile`'s own options."""

    precomputes = True

    def __init__(self, vocabulary: sg.Vocabulary, *, threads: int | None = None, eager: bool = True) -> None:
        _ = vocabulary.trie  # built once for each vocabulary, as the peers' tries are
        self._vocabulary, self._threads, self._eager = vocabulary, threads, eager

    def compile(self, pattern: str) -> sg.Index:
        """An index, eager unless the engine was made lazy."""
        try:
            return sg.compile(
                sg.Regex(pattern), self._vocabulary, eager=self._eager, threads=self._threads,
                budget=sg.Budget(seconds=600),
            )  # fmt: skip
        except sg.Error as error:
            raise RefusedError(str(error)) from error

    def stepper(self, compiled: sg.Index, bitmask: Bitmask) -> Stepper:
        """A new guide."""
        guide = sg.Guide(compiled)
        return Stepper(guide.fill_bitmask, (bitmask,), guide.advance)

    def another(self, pattern: str, compiled: sg.Index) -> sg.Index:
        """Compiled afresh."""
        return self.compile(pattern)

    def nbytes(self, compiled: sg.Index) -> int:
        """`Index.nbytes`."""
        return compiled.nbytes


class OutlinesCore:
    """outlines-core: `Index`, and a `Guide` that writes masks to an address and returns no lists of tokens.

    ``outlines_core.kernels.numpy.fill_next_token_bitmask`` does the same after checks, which are left out.
    """

    precomputes = True

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        from outlines_core import Guide, Index, Vocabulary

        ids: dict[bytes, list[int]] = {}
        for token_id in range(vocabulary.size):
            token = vocabulary.token(token_id)
            if token is not None:
                ids.setdefault(token, []).append(token_id)
        self._vocabulary = Vocabulary(vocabulary.eos_ids[0], ids)  # it knows one EOS id only
        self._index, self._guide = Index, Guide

    def compile(self, pattern: str) -> Any:
        """An `Index`."""
        try:
            return self._index(pattern, self._vocabulary)
        except ValueError as error:
            raise RefusedError(str(error)) from error

    def stepper(self, compiled: Any, bitmask: Bitmask) -> Stepper:
        """A new guide; ``advance(token, False)`` asks for no list of tokens."""
        guide = self._guide(compiled)
        address = (bitmask.ctypes.data, bitmask.size, bitmask.itemsize)
        return Stepper(guide.write_mask_into, address, guide.advance, (False,))

    def another(self, pattern: str, compiled: Any) -> Any:
        """A deep copy, which keeps its tables as large as they were built and takes no seconds."""
        return copy.deepcopy(compiled)

    def nbytes(self, compiled: Any) -> None:
        """It reports no size."""
        return


class LLGuidance:
    """llguidance: its regex grammar, and a copy of one `LLMatcher` for each sequence; copies share a warm lexer.

    ``llguidance.numpy.fill_next_token_bitmask`` does the same after checks, which are left out. Where only one text
    can follow, its mask allows just the token that the tokenizer would choose, so it gets the real tokenizer.
    """

    precomputes = False

    def __init__(self, vocabulary: sg.Vocabulary, tokenizer_json: Path | None) -> None:
        from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

        tokenizer = TokenizerWrapper(TokenBytes(vocabulary)) if tokenizer_json is None else str(tokenizer_json)
        self._matcher = LLMatcher
        self._tokenizer = LLTokenizer(tokenizer, n_vocab=vocabulary.size, eos_token=list(vocabulary.eos_ids))

    def compile(self, pattern: str) -> Any:
        """A matcher, which walks the vocabulary when asked for a mask."""
        matcher = self._matcher(self._tokenizer, self._matcher.grammar_from_regex(pattern), log_level=0)
        if matcher.is_error():
            raise RefusedError(matcher.get_error())
        return matcher

    def stepper(self, compiled: Any, bitmask: Bitmask) -> Stepper:
        """A copy of the matcher, as fast as one that is reset; an error in one doesn't spoil the others."""
        matcher = compiled.deep_copy()
        address = (bitmask.ctypes.data, bitmask.nbytes)
        return Stepper(matcher.unsafe_compute_mask_ptr, address, matcher.consume_token)

    def another(self, pattern: str, compiled: Any) -> Any:
        """Compiled afresh."""
        return self.compile(pattern)

    def nbytes(self, compiled: Any) -> None:
        """It reports no size."""
        return


class TokenBytes:
    """What llguidance's `TokenizerWrapper` asks of a tokenizer, for a vocabulary that comes without one."""

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_ids[0]
        self.bos_token_id = None
        tokens = [vocabulary.token(i) for i in range(vocabulary.size)]
        self.special_token_ids = [i for i, token in enumerate(tokens) if token is None]
        self.tokens = [f"<special {i}>".encode() if token is None else token for i, token in enumerate(tokens)]
        self._id_of = {token: i for i, token in enumerate(tokens) if token is not None}
        self._longest = max(map(len, self._id_of))

    def __call__(self, text: bytes) -> list[int]:
        """The longest token that fits, again and again; the vocabularies here have a token for every byte."""
        ids, start = [], 0
        while start < len(text):
            end = min(len(text), start + self._longest)
            while text[start:end] not in self._id_of:
                end -= 1
            ids.append(self._id_of[text[start:end]])
            start = end
        return ids


class XGrammar:
    """XGrammar: `GrammarCompiler`, without its cache unless asked for, so that compiling again is compiling."""

    precomputes = True

    def __init__(self, vocabulary: sg.Vocabulary, *, threads: int = 8, cached: bool = False) -> None:
        import xgrammar

        tokens = [vocabulary.token(i) or b"" for i in range(vocabulary.size)]
        info = xgrammar.TokenizerInfo(tokens, vocab_size=vocabulary.size, stop_token_ids=list(vocabulary.eos_ids))
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=threads, cache_enabled=cached)
        self._matcher = xgrammar.GrammarMatcher

    def compile(self, pattern: str) -> Any:
        """A `CompiledGrammar`."""
        try:
            return self._compiler.compile_regex(pattern)
        except (RuntimeError, ValueError) as error:
            raise RefusedError(str(error)) from error

    def stepper(self, compiled: Any, bitmask: Bitmask) -> Stepper:
        """A new matcher."""
        matcher = self._matcher(compiled)
        return Stepper(matcher.fill_next_token_bitmask, (bitmask.reshape(1, -1),), matcher.accept_token)

    def another(self, pattern: str, compiled: Any) -> Any:
        """Compiled afresh."""
        return self.compile(pattern)

    def nbytes(self, compiled: Any) -> int:
        """`CompiledGrammar.memory_size_bytes`."""
        return int(compiled.memory_size_bytes)


#: By name: the module that must be there, and how to make the engine.
ENGINES: dict[str, tuple[str, Callable[[sg.Vocabulary, Path | None], Engine]]] = {
    "structgen": ("structgen", lambda vocabulary, _: Structgen(vocabulary)),
    "structgen, 1 thread": ("structgen", lambda vocabulary, _: Structgen(vocabulary, threads=1)),
    "structgen, lazy": ("structgen", lambda vocabulary, _: Structgen(vocabulary, eager=False)),
    "outlines-core": ("outlines_core", lambda vocabulary, _: OutlinesCore(vocabulary)),
    "llguidance": ("llguidance", LLGuidance),
    "xgrammar": ("xgrammar", lambda vocabulary, _: XGrammar(vocabulary)),
}


def available(engines: Mapping[str, tuple[str, object]] = ENGINES) -> list[str]:
    """The names of the engines that are installed, of a table like `ENGINES`."""
    return [name for name, (module, _) in engines.items() if find_spec(module) is not None]


def make(name: str, vocabulary: sg.Vocabulary, tokenizer_json: Path | None = None) -> Engine:
    """An engine with its tokenizer built, so that only regexes are left to compile.

    ``tokenizer_json`` is the tokenizer's own file, for an engine that also encodes.
    """
    return ENGINES[name][1](vocabulary, tokenizer_json)
