"""Outlines: logits processors for its generators, and a backend that makes them from its output types.

Follows Outlines 1.3, which is imported when something is made here. `register` is what makes
``Generator(model, output_type, backend="structgen")`` work, as Outlines has no list of backends to add one to.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..api import compile as compile_definition
from ..budget import Budget
from ..definitions import Definition
from ..errors import CacheError, UnsupportedError
from ..system.types import Foreign
from ..vocabulary.token_table import eos_ids_of
from ..vocabulary.vocabulary import Vocabulary
from .checks import index_of_model
from .engine_names import check_engine
from .engines import door
from .settings import settings_for

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..runtime.index.index import Index
    from .outlines_classes import StructgenBackend, StructgenLogitsProcessor

#: The vocabulary of each Outlines model, read once.
_vocabularies: weakref.WeakKeyDictionary[Foreign, Vocabulary] = weakref.WeakKeyDictionary()


def logits_processor(
    indexes: Index | Definition | Sequence[Index | Definition | None], model: Foreign
) -> StructgenLogitsProcessor:
    """Return an ``OutlinesLogitsProcessor`` for ``Generator(model, processor=...)``.

    Parameters
    ----------
    indexes:
        One index, or a definition such as the result of `structgen.tool_calls`, which is compiled lazily. For
        models of transformers also a sequence with one for each prompt of ``generator.batch(prompts)``; None leaves
        a prompt unconstrained.
    model:
        The Outlines model: of transformers, llama-cpp-python or mlx-lm.

    Raises
    ------
    VocabularyMismatchError
        For an index compiled for other tokens than this model's.
    UnsupportedError
        For another kind of model, or several indexes for a model that generates one text at a time.
    """
    from .outlines_classes import StructgenLogitsProcessor

    own = vocabulary(model)
    several = isinstance(indexes, Sequence)
    remedy = "Compile it with structgen.integrations.outlines.vocabulary(model)."
    found = [
        compile_definition(each, own, eager=False) if isinstance(each, Definition)
        else index_of_model(each, own, remedy=remedy) if each is not None else None
        for each in (indexes if isinstance(indexes, Sequence) else (indexes,))
    ]  # fmt: skip
    library = model.tensor_library_name
    if several and library != "torch":
        raise UnsupportedError(f"a model over {library} generates one text at a time", remedy="Pass one index.")
    _, processor = _engine_of(model)
    return StructgenLogitsProcessor(processor(found if several else found[0]), library)


def backend(
    model: Foreign,
    *,
    cache: Cache | None = None,
    budget: Budget | None = None,
    eager: bool = False,
    compile_missing: bool = True,
    **options: Foreign,
) -> StructgenBackend:
    """Return an Outlines ``BaseBackend`` for JSON Schemas, regexes, and grammars in Lark's syntax.

    Parameters
    ----------
    model:
        The Outlines model.
    cache:
        Where compiled definitions are looked for and kept.
    budget:
        Bounds on each compile; use ``Budget.request`` for definitions from strangers.
    eager:
        Whether all masks are computed when a definition is compiled. False: each when it is first needed.
    compile_missing:
        As in `structgen.compile`.
    options:
        Settings of `structgen.integrations.settings`, such as ``property_order="any"``. They override those of the
        environment and of the operator's file. Whitespace is as Outlines asks, by default one space or none.
    """
    from .outlines_classes import StructgenBackend

    settings = settings_for("outlines", options)
    if settings.on_miss == "refuse":
        compile_missing, cache = False, cache or settings.open_cache()
    if cache is None and not compile_missing:
        raise CacheError("compile_missing=False needs a cache to take definitions from", remedy="Pass cache=.")

    def make(definition: Definition) -> StructgenLogitsProcessor:
        index = compile_definition(
            definition, vocabulary(model), cache=cache, budget=budget, eager=eager, compile_missing=compile_missing
        )
        return logits_processor(index, model)

    return StructgenBackend(make, door("outlines", settings, 1))


def register(name: str = "structgen", **options: Foreign) -> None:
    """Register structgen in Outlines: ``Generator(model, output_type, backend="structgen")``.

    Registering a name again replaces its options.

    Parameters
    ----------
    name:
        The name of the backend.
    options:
        Options of `backend`.
    """
    from outlines import backends

    check_engine("outlines")
    known = getattr(backends._get_backend, "structgen_names", None)
    if known is None:
        others, known = backends._get_backend, {}

        def get_backend(backend_name: str, model: Foreign) -> Foreign:
            if backend_name in known:
                return backend(model, **known[backend_name])
            return others(backend_name, model)

        get_backend.structgen_names = known  # type: ignore[attr-defined]
        backends._get_backend = get_backend
    known[name] = options


def vocabulary(model: Foreign, *, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """Return the vocabulary of an Outlines model, with the EOS ids of the engine behind it.

    Parameters
    ----------
    model:
        A model of transformers, llama-cpp-python or mlx-lm.
    eos_ids:
        The ids that end a text. Default: those at which the engine stops.

    Raises
    ------
    UnsupportedError
        For another kind of model.
    VocabularyError
        For a tokenizer whose bytes cannot be known exactly.
    """
    if eos_ids is None and model in _vocabularies:
        return _vocabularies[model]
    read, _ = _engine_of(model)
    found = read(eos_ids=eos_ids)
    if eos_ids is None:
        _vocabularies[model] = found
    return found


def _engine_of(model: Foreign) -> tuple[Callable[..., Vocabulary], Callable[..., Foreign]]:
    """Of the engine behind a model: what reads its vocabulary, and makes its processor of an index, or several."""
    library = getattr(model, "tensor_library_name", None)
    if library == "torch" and hasattr(model, "hf_tokenizer"):
        from .transformers import LogitsProcessor

        return partial(_transformers_vocabulary, model), LogitsProcessor
    if library == "numpy" and hasattr(model.model, "n_vocab"):
        from . import llama_cpp

        return partial(llama_cpp.vocabulary, model.model), partial(llama_cpp.LogitsProcessor, llama=model.model)
    if library == "mlx":
        from . import mlx_lm

        return partial(mlx_lm.vocabulary, model.mlx_tokenizer), mlx_lm.LogitsProcessor
    raise UnsupportedError(
        f"how an Outlines model of the type {type(model).__name__} is masked is not known",
        remedy="Known are transformers, llama-cpp-python and mlx-lm.",
    )


def _transformers_vocabulary(model: Foreign, *, eos_ids: Iterable[int] | None) -> Vocabulary:
    if eos_ids is None:
        config = getattr(model.model, "generation_config", None)
        eos_ids = eos_ids_of(getattr(config, "eos_token_id", None)) or [model.hf_tokenizer.eos_token_id]
    return Vocabulary.from_transformers(model.hf_tokenizer, eos_ids=eos_ids)
