"""The engines on JSON Schemas: `peers`' engines with another front end, each on one thread.

Every engine is set to take any JSON that the schema allows, in the whitespace that `json.dumps` writes; where a
library has a stricter default of its own, this is the setting that MaskBench calls compliant.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import structgen as sg

from . import peers

#: A schema as `json.loads` gives it.
Schema = Any


class SchemaEngine(Protocol):
    """What the benchmark needs of a library."""

    def compile(self, schema: Schema) -> Any:
        """The library's compiled form of a schema, made afresh. Raises `peers.RefusedError`."""
        ...

    def stepper(self, compiled: Any, bitmask: peers.Bitmask) -> peers.Stepper:
        """A new sequence whose masks go to ``bitmask``, ``int32[words]``."""
        ...


class Structgen:
    """structgen, eager (every row worked out) or lazy (rows worked out when first touched).

    Parameters
    ----------
    vocabulary:
        The tokens.
    eager:
        As for `structgen.compile`.
    cache:
        Where compiled indexes are looked for; a schema that is not there is refused. None compiles.
    """

    def __init__(self, vocabulary: sg.Vocabulary, *, eager: bool = True, cache: sg.Cache | None = None) -> None:
        from structgen.api import compile_kernels

        compile_kernels()
        self._vocabulary, self._eager, self._cache = vocabulary, eager, cache
        # The rows that belong to the vocabulary and serve every schema, as a server that has started has them.
        sg.Guide(sg.compile(sg.JsonSchema({}), vocabulary)).fill_bitmask(np.zeros(vocabulary.words, np.int32))

    def compile(self, schema: Schema) -> sg.Index:
        """An index, under `compile`'s default budget."""
        try:
            index = sg.compile(
                sg.JsonSchema(schema), self._vocabulary, eager=self._eager, threads=1, cache=self._cache
            )  # fmt: skip
        except sg.Error as error:
            raise peers.RefusedError(f"{type(error).__name__}: {error}") from error
        if self._cache is not None and index.origin != "cache":
            raise peers.RefusedError("the schema was not in the cache")
        return index

    def stepper(self, compiled: sg.Index, bitmask: peers.Bitmask) -> peers.Stepper:
        """A new guide."""
        guide = sg.Guide(compiled)
        return peers.Stepper(guide.fill_bitmask, (bitmask,), guide.advance)

    def keep(self, schema: Schema, compiled: sg.Index, folder: Path) -> int:
        """Put an index into a cache, as `structgen.compile` does, and tell the bytes that it takes there."""
        from structgen.api import cache_key

        data = compiled.to_bytes(with_vocabulary=False)
        with sg.Cache(folder) as cache:
            cache.put(cache_key(sg.JsonSchema(schema), self._vocabulary), data, kind=compiled.kind)
        return len(data)


class LLGuidance(peers.LLGuidance):
    """llguidance: `LLMatcher.grammar_from_json_schema`, its own defaults."""

    def compile(self, schema: Schema) -> Any:
        """A matcher."""
        try:
            matcher = self._matcher(self._tokenizer, self._matcher.grammar_from_json_schema(schema), log_level=0)
        except ValueError as error:
            raise peers.RefusedError(str(error)) from error
        if matcher.is_error():
            raise peers.RefusedError(matcher.get_error())
        return matcher


class XGrammar(peers.XGrammar):
    """XGrammar: `compile_json_schema`, not strict (additional properties as the schema has them), any whitespace."""

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        super().__init__(vocabulary, threads=1)

    def compile(self, schema: Schema) -> Any:
        """A `CompiledGrammar`."""
        try:
            return self._compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)
        except (RuntimeError, ValueError) as error:
            raise peers.RefusedError(str(error)) from error


class OutlinesCore(peers.OutlinesCore):
    """outlines-core: `build_regex_from_schema`, then an `Index` for that regex."""

    def compile(self, schema: Schema) -> Any:
        """An `Index`."""
        from outlines_core.json_schema import build_regex_from_schema

        try:
            pattern = build_regex_from_schema(json.dumps(schema))
        except (TypeError, ValueError) as error:
            raise peers.RefusedError(str(error)) from error
        return super().compile(pattern)


#: By name: the module that must be there, and how to make the engine: of vocabulary, tokenizer file, cache folder.
ENGINES: dict[str, tuple[str, Callable[[sg.Vocabulary, Path, Path], SchemaEngine]]] = {
    "structgen": ("structgen", lambda vocabulary, _file, _cache: Structgen(vocabulary)),
    "structgen, lazy": ("structgen", lambda vocabulary, _file, _cache: Structgen(vocabulary, eager=False)),
    "structgen, cached": ("structgen", lambda vocabulary, _, cache: Structgen(vocabulary, cache=sg.Cache(cache))),
    "llguidance": ("llguidance", lambda vocabulary, file, _: LLGuidance(vocabulary, file)),
    "xgrammar": ("xgrammar", lambda vocabulary, _file, _cache: XGrammar(vocabulary)),
    "outlines-core": ("outlines_core", lambda vocabulary, _file, _cache: OutlinesCore(vocabulary)),
}


def available() -> list[str]:
    """The names of the engines that are installed."""
    return [name for name, (module, _) in ENGINES.items() if find_spec(module) is not None]
