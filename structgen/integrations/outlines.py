"""Outlines: logits processors for its generators, and a backend that makes them from its output types.

Follows Outlines 1.3. Outlines is imported when something is made here; `register` is what makes
``Generator(model, output_type, backend="structgen")`` work, as Outlines has no list of backends to add one to.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import cache as remembered
from typing import TYPE_CHECKING, Any

from ..api import compile as compile_definition
from ..budget import Budget
from ..definitions import Definition, Grammar, JsonSchema, Regex
from ..errors import BitmaskError, CacheError, UnsupportedError
from ..vocabulary.vocabulary import Vocabulary
from .checks import check_vocabulary

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..runtime.index.index import Index

#: The vocabulary of each Outlines model, read once.
_vocabularies: weakref.WeakKeyDictionary[Any, Vocabulary] = weakref.WeakKeyDictionary()


def logits_processor(indexes: Index | Sequence[Index | None], model: Any) -> Any:
    """An ``OutlinesLogitsProcessor`` for ``Generator(model, processor=...)``.

    Parameters
    ----------
    indexes:
        One index. For models of transformers also a sequence with one for each prompt of
        ``generator.batch(prompts)``, where ``None`` leaves a prompt's text alone.
    model:
        The Outlines model: of transformers, llama-cpp-python or mlx-lm.

    Raises
    ------
    VocabularyMismatchError
        Where an index was compiled for tokens other than this model's.
    UnsupportedError
        For another kind of model, or several indexes for a model that generates one text at a time.
    """
    own = vocabulary(model)
    several = isinstance(indexes, Sequence)
    for index in indexes if isinstance(indexes, Sequence) else (indexes,):
        if index is not None:
            remedy = "Compile it with structgen.integrations.outlines.vocabulary(model)."
            check_vocabulary(index.vocabulary, own, remedy=remedy)
    library = model.tensor_library_name
    if several and library != "torch":
        raise UnsupportedError(f"a model over {library} generates one text at a time", remedy="Pass one index.")
    return _processor_class()(_masker(indexes, model), library)


def backend(
    model: Any,
    *,
    cache: Cache | None = None,
    budget: Budget | None = None,
    eager: bool = False,
    compile_missing: bool = True,
    **options: Any,
) -> Any:
    """A ``BaseBackend``: makes a logits processor of a JSON Schema, a regex, or a grammar in Lark's syntax.

    Parameters
    ----------
    model:
        The Outlines model.
    cache:
        Where compiled definitions are looked for and kept.
    budget:
        Bounds on each compile; definitions may come from strangers.
    eager:
        Whether all masks are worked out when a definition is compiled, or each when it is first needed.
    compile_missing:
        As for `structgen.compile`: False where only what is in the cache may be served.
    options:
        For `JsonSchema`, such as ``property_order="any"``. Whitespace is what Outlines asks for, by default one
        space or none.
    """

    if cache is None and not compile_missing:
        raise CacheError("compile_missing=False needs a cache to take definitions from", remedy="Pass cache=.")

    def make(definition: Definition) -> Any:
        index = compile_definition(
            definition, vocabulary(model), cache=cache, budget=budget, eager=eager, compile_missing=compile_missing
        )
        return logits_processor(index, model)

    return _backend_class()(make, options)


def register(name: str = "structgen", **options: Any) -> None:
    """Make ``backend=name`` known to Outlines: ``Generator(model, output_type, backend="structgen")``.

    ``options`` are those of `backend`. Registering a name again replaces its options.
    """
    from outlines import backends

    known = getattr(backends._get_backend, "structgen_names", None)
    if known is None:
        others, known = backends._get_backend, {}

        def get_backend(backend_name: str, model: Any) -> Any:
            if backend_name in known:
                return backend(model, **known[backend_name])
            return others(backend_name, model)

        get_backend.structgen_names = known  # type: ignore[attr-defined]
        backends._get_backend = get_backend
    known[name] = options


def vocabulary(model: Any, *, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """The vocabulary of an Outlines model, whose texts end where the engine behind it ends them.

    Parameters
    ----------
    model:
        Of transformers, llama-cpp-python or mlx-lm.
    eos_ids:
        The ids that end a text; by default those at which the engine stops.

    Raises
    ------
    UnsupportedError
        For another kind of model.
    VocabularyError
        For a kind of tokenizer whose bytes cannot be known exactly.
    """
    if eos_ids is None and model in _vocabularies:
        return _vocabularies[model]
    found = _read_vocabulary(model, eos_ids)
    if eos_ids is None:
        _vocabularies[model] = found
    return found


def _read_vocabulary(model: Any, eos_ids: Iterable[int] | None) -> Vocabulary:
    library = getattr(model, "tensor_library_name", None)
    if library == "torch" and hasattr(model, "hf_tokenizer"):
        if eos_ids is None:
            config = getattr(model.model, "generation_config", None)
            ends = getattr(config, "eos_token_id", None)
            ends = [ends] if isinstance(ends, int) else ends
            eos_ids = ends or [model.hf_tokenizer.eos_token_id]
        return Vocabulary.from_transformers(model.hf_tokenizer, eos_ids=eos_ids)
    if library == "numpy" and hasattr(model.model, "n_vocab"):
        from .llama_cpp import vocabulary as of_llama

        return of_llama(model.model, eos_ids=eos_ids)
    if library == "mlx":
        from .mlx_lm import vocabulary as of_mlx

        return of_mlx(model.mlx_tokenizer, eos_ids=eos_ids)
    raise UnsupportedError(
        f"how an Outlines model of the type {type(model).__name__} is masked is not known",
        remedy="Known are transformers, llama-cpp-python and mlx-lm.",
    )


def _masker(indexes: Any, model: Any) -> Any:
    """The processor of the engine behind a model."""
    if model.tensor_library_name == "torch":
        from .transformers import LogitsProcessor as OfTransformers

        return OfTransformers(indexes)
    if model.tensor_library_name == "numpy":
        from .llama_cpp import LogitsProcessor as OfLlama

        return OfLlama(indexes, model.model)
    from .mlx_lm import LogitsProcessor as OfMlx

    return OfMlx(indexes)


@remembered
def _processor_class() -> Any:
    """The subclass of Outlines' processor; made when it is first needed, as its base has to be imported."""
    from outlines.processors import OutlinesLogitsProcessor

    class StructgenLogitsProcessor(OutlinesLogitsProcessor):  # type: ignore[misc]
        """Masks with the processor of the engine behind the model."""

        supports_continuous_batching = False

        def __init__(self, masker: Any, library: str) -> None:
            super().__init__(library)
            self._masker = masker
            self._by_rows = library == "torch"

        def reset(self) -> None:
            """Begin a new generation; Outlines calls it before each."""
            self._masker.reset()

        def check(self) -> None:
            """With llama-cpp-python: raise what went wrong in the last generation, see its `LogitsProcessor`."""
            if hasattr(self._masker, "check"):
                self._masker.check()

        def process_logits(self, input_ids: Any, logits: Any) -> Any:
            """Mask ``[rows, width]`` logits, by the ``[rows, length]`` ids before them."""
            if self._by_rows:
                return self._masker(input_ids, logits)
            if len(logits) != 1:
                raise BitmaskError(f"this model generates one text at a time, got {len(logits)} rows of logits")
            return self._masker(input_ids[0], logits[0])[None]

    return StructgenLogitsProcessor


@remembered
def _backend_class() -> Any:
    """The subclass of Outlines' backend; made when it is first needed."""
    from outlines.backends.base import BaseBackend

    class StructgenBackend(BaseBackend):  # type: ignore[misc]
        """Compiles definitions and makes logits processors of them."""

        def __init__(self, make: Callable[[Definition], Any], options: dict[str, Any]) -> None:
            self._make = make
            self._options = options

        def get_json_schema_logits_processor(self, json_schema: str, whitespace_pattern: str | None = None) -> Any:
            """A processor for the JSON texts valid under a schema."""
            whitespace = {} if whitespace_pattern is None else {"whitespace": whitespace_pattern}
            return self._make(JsonSchema(json_schema, **(self._options | whitespace)))

        def get_regex_logits_processor(self, regex: str) -> Any:
            """A processor for the texts that a regex matches from end to end."""
            return self._make(Regex(regex))

        def get_cfg_logits_processor(self, grammar: str) -> Any:
            """A processor for the texts of a grammar in Lark's syntax."""
            return self._make(Grammar(grammar))

    return StructgenBackend
