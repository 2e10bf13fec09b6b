"""Vocabularies from Hugging Face: a tokenizer object, a model's folder, or a name on the hub.

What a token's bytes are
------------------------
They are what the token adds to a text when it is appended after a prompt:

- a piece that begins with ``▁`` begins with a space, also where the tokenizer would drop that space at the
  very beginning of a text;
- an added token is special (no bytes) or text (its content), as the tokenizer marks it;
- the unknown token, and ids that the tokenizer does not have (padded logits), have no bytes;
- ``clean_up_tokenization_spaces``, which deletes spaces from a decoded text, is not taken into account:
  decode with it turned off.

Kinds of tokenizers where this cannot be known exactly, WordPiece among them, are refused.

EOS ids and width, by whichever door
------------------------------------
Where ``eos_ids`` is not given, a text ends at the tokenizer's EOS token and at ``eos_token_id`` of the model's
``generation_config.json``, or without that file of its ``config.json``. Where ``size`` is not given, it is
``vocab_size`` of ``config.json``, unless that leaves out an id that has bytes or ends a text. Both files are looked
for in the tokenizer's folder; of a tokenizer from the hub in the hub's cache on this machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from os.path import isdir, isfile, join

from ..errors import ArgumentError, VocabularyError
from ..system.arguments import integer
from ..system.types import Foreign, JsonMap
from . import tokenizer_json
from .roundtrip import check_roundtrip, faithful_texts
from .token_table import Encode, TokenTable, eos_ids_of, loaded_later

#: The loading options that say where a model is, which its generation config shares; others of AutoTokenizer's.
_HUB_OPTIONS = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")
_OPTIONS = (
    *_HUB_OPTIONS, "trust_remote_code", "use_fast", "tokenizer_type", "code_revision", "gguf_file", "proxies",
    "config", "legacy", "add_prefix_space", "tokenizer_file", "backend", "mode", "fix_mistral_regex",
)  # fmt: skip


def read_transformers(
    tokenizer: Foreign, *, eos_ids: Iterable[int] | None = None, size: int | None = None
) -> TokenTable:
    """Read a tokenizer object, and check on a few texts that its tokens spell what it encodes.

    Parameters
    ----------
    tokenizer:
        A transformers tokenizer: fast, slow with a SentencePiece model, or backed by mistral-common. Or a
        bare ``tokenizers.Tokenizer``, which needs ``eos_ids``.
    eos_ids:
        The ids that end a text; by default those that the module's page says.
    size:
        Width of the model's logits; by default as the module's page says. Ids from there on have no bytes.

    Raises
    ------
    VocabularyError
        For a kind of tokenizer whose bytes cannot be known exactly, and where there is no EOS id.
    """
    table = _read(tokenizer)
    model = _model_beside(str(getattr(tokenizer, "name_or_path", "")))
    own = eos_ids_of(getattr(tokenizer, "eos_token_id", None))
    encode, decode = _codec(tokenizer)
    table = _complete(table, own, model, eos_ids, size, encode, where=type(tokenizer).__name__)
    check_roundtrip(table.tokens.get, list(table.eos_ids), encode, faithful_texts(encode, decode))
    return table


def read_pretrained(
    name_or_path: str | os.PathLike[str],
    *,
    eos_ids: Iterable[int] | None = None,
    size: int | None = None,
    **options: Foreign,
) -> TokenTable:
    """Read a model's tokenizer by folder or name.

    A folder with a ``tokenizer.json`` or ``tekken.json`` is read without transformers, which is much faster; and so
    is one that asks for code of its own and holds a ``tokenizer.model``. Code from a folder or the hub runs only with
    ``trust_remote_code=True``; nobody is asked.

    Parameters
    ----------
    name_or_path:
        A folder, or a name on the model hub.
    eos_ids:
        The ids that end a text; by default those that the module's page says.
    size:
        Width of the model's logits; by default as the module's page says. Ids from there on have no bytes.
    options:
        For ``transformers.AutoTokenizer.from_pretrained``, which then reads folders as well.

    Raises
    ------
    ArgumentError
        For an option that is none of these.
    VocabularyError
        Where nothing can be loaded, for a kind of tokenizer whose bytes cannot be known exactly, and where
        there is no EOS id.
    """
    for name in options.keys() - {*_OPTIONS}:
        from difflib import get_close_matches

        likely = get_close_matches(name, ("eos_ids", "size", *_OPTIONS), 1)
        remedy = f"Is {likely[0]} meant?" if likely else "Load the tokenizer, and use Vocabulary.from_transformers."
        raise ArgumentError(f"there is no option {name!r}", remedy=remedy)
    folder = os.fspath(name_or_path)
    if isdir(folder) and not options:
        if isfile(join(folder, "tokenizer.json")):
            return _from_folder(folder, eos_ids, size)
        if files := [each for each in sorted(os.listdir(folder)) if "tekken" in each and each.endswith(".json")]:
            from .tekken import read_tekken

            return read_tekken(join(folder, files[-1]), eos_ids=eos_ids, size=size)
        if isfile(join(folder, "tokenizer.model")) and "auto_map" in _config(folder):
            return _from_folder(folder, eos_ids, size)
    elif not isdir(folder) and _is_path(folder):
        raise VocabularyError(
            "not a folder" if os.path.exists(folder) else "there is no such folder",
            where=folder,
            remedy="Pass the folder that holds the model's tokenizer.json, or its name on the hub.",
        )
    return _from_auto_tokenizer(folder, eos_ids, size, options)


# -- the kinds of tokenizer objects --------------------------------------------------------------------


def _read(tokenizer: Foreign) -> TokenTable:
    backend: Foreign = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        special_names = getattr(tokenizer, "all_special_tokens", ())
        return tokenizer_json.read(json.loads(backend.to_str()), special_names=special_names)
    if hasattr(tokenizer, "sp_model"):
        from .sentencepiece import read_slow

        return read_slow(tokenizer)
    mistral = getattr(getattr(tokenizer, "tokenizer", None), "instruct_tokenizer", None)
    if mistral is not None:
        return _read_mistral(mistral.tokenizer)
    raise VocabularyError(
        "this kind of tokenizer is not known",
        where=f"{type(tokenizer).__module__}.{type(tokenizer).__name__}",
        remedy="Pass its fast version, or the bytes of its tokens to Vocabulary.from_bytes.",
    )


def _read_mistral(tokenizer: Foreign) -> TokenTable:
    """Read what mistral-common has inside: a ``Tekkenizer`` or a ``SentencePieceTokenizer``."""
    if hasattr(tokenizer, "id_to_byte_piece") and hasattr(tokenizer, "num_special_tokens"):
        from .tekken import read_tekkenizer

        return read_tekkenizer(tokenizer)
    from .sentencepiece import read_processor

    # Its processor has no public name; transformers reads it in the same way.
    return read_processor(tokenizer._model)


def _codec(tokenizer: Foreign) -> tuple[Encode, Callable[[Sequence[int]], str]]:
    """The tokenizer's own ``encode`` and ``decode``, the former without special tokens."""
    if hasattr(tokenizer, "to_str"):
        return (
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
        )
    encode: Encode = partial(tokenizer.encode, add_special_tokens=False)
    if hasattr(tokenizer, "sp_model"):
        # The decode of slow tokenizers in transformers 5 prints byte pieces as they are spelled: ``<0x0A>``.
        return encode, lambda ids: tokenizer.sp_model.decode(tokenizer.convert_ids_to_tokens(ids))
    return encode, lambda ids: tokenizer.decode(ids, clean_up_tokenization_spaces=False)


@dataclass(frozen=True)
class _Model:
    """The EOS ids and the width of the logits that a model's files name; none, and None, where they don't."""

    eos_ids: tuple[int, ...] = ()
    size: int | None = None


def _model_beside(name_or_path: str) -> _Model:
    """The model whose files are in a folder, or in the hub's cache on this machine."""
    if not name_or_path:
        return _Model()
    folder = name_or_path if isdir(name_or_path) else _cached_on_hub(name_or_path)
    if folder is None:
        return _Model()
    config, generation = _load_json(folder, "config.json"), _load_json(folder, "generation_config.json")
    text = config.get("text_config")
    of_text: dict[str, Foreign] = text if isinstance(text, dict) else {}
    return _model(generation, config, of_text)


def _model(generation: JsonMap, config: JsonMap, of_text: JsonMap) -> _Model:
    """The model that has these configs; values of other types are passed over."""
    size = next((each for each in (config.get("vocab_size"), of_text.get("vocab_size")) if type(each) is int), None)
    named = next((each for each in (generation, config, of_text) if each.get("eos_token_id") is not None), {})
    found = named.get("eos_token_id")
    ids = [i for i in (found if isinstance(found, list) else [found]) if type(i) is int]
    return _Model(tuple(ids), size)


def _cached_on_hub(name: str) -> str | None:
    """The folder in the hub's cache that has a model's config; None where there is none. Nothing is fetched."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        paths = [try_to_load_from_cache(name, file) for file in ("generation_config.json", "config.json")]
    except (HFValidationError, OSError):
        return None
    return next((os.path.dirname(path) for path in paths if isinstance(path, str)), None)


def _complete(
    table: TokenTable, own: Sequence[int], model: _Model, eos_ids: Iterable[int] | None, size: int | None,
    encode: Encode | None, *, where: str,
) -> TokenTable:  # fmt: skip
    """The table with EOS ids and width: those that are given, else as the module's page says."""
    eos_ids = [*dict.fromkeys([*own, *model.eos_ids])] if eos_ids is None else list(eos_ids)
    if not eos_ids:
        raise VocabularyError(
            "the tokenizer has no EOS token", where=where, remedy="Pass the ids that end a text as eos_ids=."
        )
    if size is None:
        needed = 1 + max([-1, *table.tokens, *(i for i in eos_ids if type(i) is int)])
        size = model.size if model.size is not None and model.size >= needed else table.size
    else:
        size = integer(size, "size", VocabularyError)
        ends = [i for i in eos_ids if not (type(i) is int and i >= size)]
        if not ends:
            raise VocabularyError(
                f"logits of width {size} have none of the EOS ids {eos_ids}",
                where=where,
                remedy="Pass the width of the model's logits, and the ids at which it ends a text as eos_ids=.",
            )
        tokens = {i: token for i, token in table.tokens.items() if i < size}
        table, eos_ids = replace(table, tokens=tokens), ends
    return replace(table, eos_ids=eos_ids, size=size, encode=encode)


# -- a folder, without transformers --------------------------------------------------------------------


def _from_folder(folder: str, eos_ids: Iterable[int] | None, size: int | None) -> TokenTable:
    config = _config(folder)
    try:
        added = [{"id": int(i), **token} for i, token in config.get("added_tokens_decoder", {}).items()]
        special_names = _special_names(config)
    except (AttributeError, TypeError, ValueError) as error:
        raise VocabularyError(
            f"the tokenizer's config is malformed: {error}", where=folder, remedy="Fetch or save it again."
        ) from error
    if isfile(file := join(folder, "tokenizer.json")):
        table = tokenizer_json.read(_load_json(file), special_names=special_names, added_tokens=added)
        encode = loaded_later(partial(_encoder_of, file)) if find_spec("tokenizers") else None
    else:
        from .sentencepiece import read_file

        table = read_file(join(folder, "tokenizer.model"), special_names, added)
        encode = table.encode
    own = eos_ids_of(table.special_tokens.get(_content(config.get("eos_token")) or ""))
    return _complete(table, own, _model_beside(folder), eos_ids, size, encode, where=folder)


def _config(folder: str) -> dict[str, Foreign]:
    return _load_json(folder, "special_tokens_map.json") | _load_json(folder, "tokenizer_config.json")


def _encoder_of(file: str) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _codec(tokenizer)[0]


def _load_json(*path: str) -> dict[str, Foreign]:
    """The JSON object in a file; an empty one where there is no such file."""
    try:
        with open(join(*path), "rb") as file:
            document = json.loads(file.read())
    except FileNotFoundError:
        return {}
    except (OSError, RecursionError, ValueError) as error:
        raise VocabularyError(
            f"the file cannot be read: {error}", where=join(*path), remedy="Fetch or save it again."
        ) from error
    if not isinstance(document, dict):
        raise VocabularyError("expected a JSON object", where=join(*path), remedy="Fetch or save it again.")
    return document


def _special_names(config: JsonMap) -> set[str]:
    """Contents of the tokens that a tokenizer config names: ``eos_token``, ``image_token``, further ones."""
    named = [value for key, value in config.items() if key.endswith("_token")]
    for key in ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens"):
        further = config.get(key) or []
        named += further.values() if isinstance(further, dict) else further
    return {content for token in named if (content := _content(token))}


def _content(token: object) -> str | None:
    """The content of a token in a config: a string, or an object with a ``content``."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


# -- whatever transformers can load --------------------------------------------------------------------


def _is_path(name: str) -> bool:
    """Whether a name can only be meant as a path: names on the hub are ``name`` or ``owner/name``."""
    return os.path.isabs(name) or name.startswith((".", "~")) or name.count("/") > 1 or os.path.exists(name)


def _from_auto_tokenizer(name: str, eos_ids: Iterable[int] | None, size: int | None, options: JsonMap) -> TokenTable:
    try:
        from transformers import AutoTokenizer, GenerationConfig
    except ImportError as error:
        raise VocabularyError(
            "only transformers can load this tokenizer, and it is not installed",
            where=name,
            remedy="pip install structgen[transformers], or pass a folder with a tokenizer.json.",
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, **{"trust_remote_code": False, **options})
    except (ImportError, KeyError, OSError, TypeError, ValueError) as error:
        first, *more = str(error).split("\n")
        reason = " ".join([first, *more]) if first.rstrip().endswith(":") else first  # a list follows
        raise VocabularyError(
            f"transformers cannot load the tokenizer: {reason}",
            where=name,
            remedy="Check the name; where there is no network, pass a folder with a tokenizer.json. Code that comes"
            " with the tokenizer runs with trust_remote_code=True.",
        ) from error
    if eos_ids is None:
        hub_options = {key: value for key, value in options.items() if key in _HUB_OPTIONS}
        try:  # which fetches the file, where it is not in the hub's cache yet
            config = GenerationConfig.from_pretrained(name, **hub_options)
        except OSError:  # Not every tokenizer has a model beside it.
            config = None
        if found := getattr(config, "eos_token_id", None):
            eos_ids = eos_ids_of(tokenizer.eos_token_id, found)
    table = read_transformers(tokenizer, eos_ids=eos_ids, size=size)
    if not any(data.strip() for data in table.tokens.values()):  # transformers makes one of the settings alone
        raise VocabularyError(
            "no token has letters: the tokenizer itself is missing, and only its settings are there",
            where=name,
            remedy="Pass the folder that holds the model's tokenizer.json, tokenizer.model or tekken.json.",
        )
    return table
