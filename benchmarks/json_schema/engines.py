"""The engines on JSON Schemas: `benchmarks.engines` with another front end, each on one thread.

Every engine is set to take any JSON that the schema allows, in the whitespace that `json.dumps` writes; where a
library has a stricter default of its own, this is the setting that MaskBench calls compliant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import structgen as sg

from .. import engines as peers

#: A schema as `json.loads` gives it.
Schema = Any


@dataclass(frozen=True)
class Setting:
    """What engines are made of, besides the vocabulary.

    Parameters
    ----------
    tokenizer_json:
        The tokenizer's own file, for an engine that also encodes.
    cache:
        A folder for structgen's cache: the eager engine fills it, the cached one reads it.
    options:
        Options of `structgen.JsonSchema`.
    """

    tokenizer_json: Path
    cache: Path
    options: Mapping[str, Any] = field(default_factory=dict)


class SchemaEngine(Protocol):
    """What the benchmark needs of a library."""

    def compile(self, schema: Schema) -> Any:
        """The library's compiled form of a schema, made afresh. Raises `peers.RefusedError`."""
        ...

    def stepper(self, compiled: Any, bitmask: peers.Bitmask) -> peers.Stepper:
        """A new sequence whose masks go to ``bitmask``, ``int32[words]``."""
        ...


class Structgen:
    """structgen, eager (every row worked out), lazy (rows worked out when first touched) or from the cache.

    Parameters
    ----------
    vocabulary:
        The tokens.
    setting:
        Where the cache is, and options of the definition.
    eager:
        As for `structgen.compile`.
    cached:
        Whether to take indexes from the cache; a schema that is not there is refused.
    base_rows:
        Whether `structgen.compile_base_rows` is called before the first schema.
    """

    def __init__(
        self,
        vocabulary: sg.Vocabulary,
        setting: Setting,
        *,
        eager: bool = True,
        cached: bool = False,
        base_rows: bool = False,
    ) -> None:
        self._vocabulary, self._setting, self._eager = vocabulary, setting, eager
        self._cache = sg.Cache(setting.cache) if cached else None
        if base_rows:
            sg.compile_base_rows(vocabulary)

    def compile(self, schema: Schema) -> sg.Index:
        """An index, under `compile`'s default budget."""
        try:
            index = sg.compile(
                self._definition(schema), self._vocabulary, eager=self._eager, threads=1, cache=self._cache
            )
        except sg.Error as error:
            raise peers.RefusedError(f"{type(error).__name__}: {error}") from error
        if self._cache is not None and index.origin != "cache":
            raise peers.RefusedError("the schema was not in the cache")
        return index

    def stepper(self, compiled: sg.Index, bitmask: peers.Bitmask) -> peers.Stepper:
        """A new guide."""
        guide = sg.Guide(compiled)
        return peers.Stepper(guide.fill_bitmask, (bitmask,), guide.advance)

    def keep(self, schema: Schema, compiled: sg.Index) -> int:
        """Put an index into the cache, as `structgen.compile` does, and tell the bytes that it takes there."""
        from structgen import index_store

        with sg.Cache(self._setting.cache) as cache:
            index_store.share_rows(cache, compiled)
            index_store.keep(cache, index_store.cache_key(self._definition(schema), self._vocabulary), compiled)
        return len(compiled.to_bytes(with_vocabulary=False))

    def _definition(self, schema: Schema) -> sg.JsonSchema:
        return sg.JsonSchema(schema, **self._setting.options)


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


#: By name: the module that must be there, and how to make the engine.
ENGINES: dict[str, tuple[str, Callable[[sg.Vocabulary, Setting], SchemaEngine]]] = {
    "structgen": ("structgen", Structgen),
    "structgen, lazy": ("structgen", lambda vocabulary, setting: Structgen(vocabulary, setting, eager=False)),
    "structgen, cached": ("structgen", lambda vocabulary, setting: Structgen(vocabulary, setting, cached=True)),
    # The collector is a matter of the process: see `UNCOLLECTED`.
    "structgen, lazy, collector off": (
        "structgen",
        lambda vocabulary, setting: Structgen(vocabulary, setting, eager=False),
    ),
    "structgen, lazy, base rows first": (
        "structgen",
        lambda vocabulary, setting: Structgen(vocabulary, setting, eager=False, base_rows=True),
    ),
    "llguidance": ("llguidance", lambda vocabulary, setting: LLGuidance(vocabulary, setting.tokenizer_json)),
    "xgrammar": ("xgrammar", lambda vocabulary, _: XGrammar(vocabulary)),
    "outlines-core": ("outlines_core", lambda vocabulary, _: OutlinesCore(vocabulary)),
}

#: Engines in whose processes garbage is collected between calls only (`benchmarks.worker.Process`).
UNCOLLECTED = frozenset({"structgen, lazy, collector off"})

available = partial(peers.available, ENGINES)
