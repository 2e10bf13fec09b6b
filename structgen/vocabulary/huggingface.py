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
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ..errors import VocabularyError
from ..system.types import Foreign, JsonMap
from . import sentencepiece, tekken, tokenizer_json
from .roundtrip import check_roundtrip, faithful_texts
from .token_table import Encode, TokenTable, eos_ids_of, loaded_later

#: The loading options that say where a model is, which its generation config shares.
_HUB_OPTIONS = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")


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
        The ids that end a text; by default the tokenizer's ``eos_token_id``. A model's generation config
        often has more (``generation_config.eos_token_id``).
    size:
        Width of the model's logits where it is padded; by default the largest id plus one.

    Raises
    ------
    VocabularyError
        For a kind of tokenizer whose bytes cannot be known exactly, and where there is no EOS id.
    """
    table = _read(tokenizer)
    if eos_ids is None:
        eos_ids = eos_ids_of(getattr(tokenizer, "eos_token_id", None))
    encode, decode = _codec(tokenizer)
    table = _complete(table, eos_ids, size, encode, where=type(tokenizer).__name__)
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
        The ids that end a text; by default the EOS token of the tokenizer and those of the generation config.
    size:
        Width of the model's logits where it is padded; by default the largest id plus one.
    options:
        For ``transformers.AutoTokenizer.from_pretrained``, which then reads folders as well.

    Raises
    ------
    VocabularyError
        Where nothing can be loaded, for a kind of tokenizer whose bytes cannot be known exactly, and where
        there is no EOS id.
    """
    folder = Path(name_or_path)
    if folder.is_dir() and not options:
        if (folder / "tokenizer.json").is_file():
            return _from_folder(folder, eos_ids, size)
        if files := sorted(folder.glob("*tekken*.json")):
            return tekken.read_tekken(files[-1], eos_ids=eos_ids, size=size)
        if (folder / "tokenizer.model").is_file() and "auto_map" in _config(folder):
            return _from_folder(folder, eos_ids, size)
    elif not folder.is_dir() and _is_path(os.fspath(name_or_path)):
        raise VocabularyError(
            "not a folder" if folder.exists() else "there is no such folder",
            where=str(folder),
            remedy="Pass the folder that holds the model's tokenizer.json, or its name on the hub.",
        )
    return _from_auto_tokenizer(os.fspath(name_or_path), eos_ids, size, options)


# -- the kinds of tokenizer objects --------------------------------------------------------------------


def _read(tokenizer: Foreign) -> TokenTable:
    backend: Foreign = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        special_names = getattr(tokenizer, "all_special_tokens", ())
        return tokenizer_json.read(json.loads(backend.to_str()), special_names=special_names)
    if hasattr(tokenizer, "sp_model"):
        return sentencepiece.read_slow(tokenizer)
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
        return tekken.read_tekkenizer(tokenizer)
    # Its processor has no public name; transformers reads it in the same way.
    return sentencepiece.read_processor(tokenizer._model)


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


def _complete(
    table: TokenTable, eos_ids: Iterable[int], size: int | None, encode: Encode | None, *, where: str
) -> TokenTable:
    eos_ids = list(eos_ids)
    if not eos_ids:
        raise VocabularyError(
            "the tokenizer has no EOS token",
            where=where,
            remedy="Pass the ids that end a text as eos_ids=.",
        )
    if size is not None and size < (table.size or 0):  # of tokens without bytes nothing else says that they are there
        raise VocabularyError(
            f"size={size} leaves out token id {(table.size or 0) - 1}",
            where=where,
            remedy="Pass the width of the model's logits, or leave size= out.",
        )
    return replace(table, eos_ids=eos_ids, size=table.size if size is None else size, encode=encode)


# -- a folder, without transformers --------------------------------------------------------------------


def _from_folder(folder: Path, eos_ids: Iterable[int] | None, size: int | None) -> TokenTable:
    config = _config(folder)
    try:
        added = [{"id": int(i), **token} for i, token in config.get("added_tokens_decoder", {}).items()]
        special_names = _special_names(config)
    except (AttributeError, TypeError, ValueError) as error:
        raise VocabularyError(
            f"the tokenizer's config is malformed: {error}", where=str(folder), remedy="Fetch or save it again."
        ) from error
    if (file := folder / "tokenizer.json").is_file():
        table = tokenizer_json.read(_load_json(file), special_names=special_names, added_tokens=added)
        encode = loaded_later(partial(_encoder_of, file)) if find_spec("tokenizers") else None
    else:
        table = sentencepiece.read_file(folder / "tokenizer.model", special_names, added)
        encode = table.encode
    if eos_ids is None:
        eos_ids = eos_ids_of(_load_json(folder / "generation_config.json").get("eos_token_id"))
        if eos_token := _content(config.get("eos_token")):
            eos_ids += eos_ids_of(table.special_tokens.get(eos_token))
    return _complete(table, eos_ids, size, encode, where=str(folder))


def _config(folder: Path) -> dict[str, Foreign]:
    return _load_json(folder / "special_tokens_map.json") | _load_json(folder / "tokenizer_config.json")


def _encoder_of(file: Path) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _codec(tokenizer)[0]


def _load_json(file: Path) -> dict[str, Foreign]:
    """The JSON object in a file; an empty one where there is no such file."""
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, RecursionError, ValueError) as error:
        raise VocabularyError(
            f"the file cannot be read: {error}", where=str(file), remedy="Fetch or save it again."
        ) from error
    if not isinstance(document, dict):
        raise VocabularyError("expected a JSON object", where=str(file), remedy="Fetch or save it again.")
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
    return os.path.isabs(name) or name.startswith((".", "~")) or name.count("/") > 1 or Path(name).exists()


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
        try:
            config = GenerationConfig.from_pretrained(name, **hub_options)
        except OSError:  # Not every tokenizer has a model beside it.
            config = None
        eos_ids = eos_ids_of(tokenizer.eos_token_id, getattr(config, "eos_token_id", None))
    return read_transformers(tokenizer, eos_ids=eos_ids, size=size)
