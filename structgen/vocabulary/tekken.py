"""Reads Mistral's ``tekken.json``: base64 token bytes, with the special tokens at the front.

Ids are those of mistral-common's ``Tekkenizer``: the first ``default_num_special_tokens`` ids are special,
token ``i`` of the file has id ``i + default_num_special_tokens``, and the file's list is cut off where
``default_vocab_size`` is reached. (The wheel's files hold 150,000 tokens, of which 130,072 are used.)
"""

from __future__ import annotations

import json
import os
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ..errors import VocabularyError
from ..system.types import Foreign, JsonMap
from .token_table import MAX_SIZE, Encode, TokenTable, loaded_later

_EOS = "</s>"

#: What files up to version v7 leave out: ``Tekkenizer.DEPRECATED_SPECIAL_TOKENS``, in order of id.
_DEFAULT_SPECIAL_TOKENS = (
    "<unk>", "<s>", _EOS, "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
    "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip


def read_tekken(
    path: str | os.PathLike[str] | None = None, *, eos_ids: Iterable[int] | None = None, size: int | None = None
) -> TokenTable:
    """Read a ``tekken.json``, without mistral-common.

    Parameters
    ----------
    path:
        The file; ``None`` means the newest that the installed mistral-common wheel ships.
    eos_ids:
        The ids that end a text; by default ``</s>``.
    size:
        Number of ids, see `Vocabulary.from_bytes`.

    Raises
    ------
    VocabularyError
        Where there is no such file, or it is not a tekken file.
    """
    file = _newest_shipped() if path is None else Path(path)
    try:
        document = json.loads(file.read_bytes())
        table = _read(document)
    except OSError as error:
        raise VocabularyError(
            f"the tekken file cannot be read: {error.strerror}",
            where=str(file),
            remedy="Pass the path of a tekken.json.",
        ) from error
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise VocabularyError(
            f"not a tekken file: {type(error).__name__}: {error}",
            where=str(file),
            remedy="Pass a tekken.json as Mistral publishes it.",
        ) from error
    if eos_ids is None:
        eos_ids = [table.special_tokens[_EOS]]
    encode = loaded_later(partial(_encoder_of, file)) if find_spec("mistral_common") else None
    return replace(table, eos_ids=eos_ids, size=size, encode=encode)


def _encoder_of(file: Path) -> Encode:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return partial(Tekkenizer.from_file(file).encode, bos=False, eos=False)


def read_tekkenizer(tekkenizer: Foreign) -> TokenTable:
    """Read mistral-common's ``Tekkenizer`` object."""
    specials = range(tekkenizer.num_special_tokens)
    return TokenTable(
        {i: tekkenizer.id_to_byte_piece(i) for i in range(len(specials), tekkenizer.n_words)},
        {tekkenizer.id_to_piece(i): i for i in specials},
    )


def _read(document: JsonMap) -> TokenTable:
    config = document["config"]
    first_id = config["default_num_special_tokens"]
    used = config["default_vocab_size"] - first_id
    if not 0 <= first_id <= first_id + used <= MAX_SIZE:
        raise ValueError(f"{first_id} special tokens and {used} others")
    entries = document["vocab"][:used]
    if len(entries) < used or any(entry["rank"] != i for i, entry in enumerate(entries)):
        raise ValueError(f"expected the ranks 0 to {used - 1} in order")
    tokens = {first_id + i: b64decode(entry["token_bytes"]) for i, entry in enumerate(entries)}
    special_tokens = _special_tokens(document, first_id)
    if _EOS not in special_tokens or not all(0 <= i < first_id for i in special_tokens.values()):
        raise ValueError(f"special tokens take the ids 0 to {first_id - 1}, {_EOS} among them")
    return TokenTable(tokens, special_tokens)


def _special_tokens(document: JsonMap, count: int) -> dict[str, int]:
    """Names of the special ids; those that the file does not name are ``<SPECIAL_i>``."""
    defined = document.get("special_tokens")
    if defined is not None:
        names = {entry["token_str"]: entry["rank"] for entry in defined}
    elif int(document["config"]["version"].removeprefix("v")) > 7:
        raise ValueError("files of versions after v7 list their special tokens")
    else:
        names = {name: i for i, name in enumerate(_DEFAULT_SPECIAL_TOKENS)}
    return names | {f"<SPECIAL_{i}>": i for i in range(len(names), count)}


def _newest_shipped() -> Path:
    """The ``tekken_YYMMDD.json`` of the latest date in mistral-common's wheel, which is not imported."""
    spec = find_spec("mistral_common")
    folders = (spec.submodule_search_locations if spec else None) or ()
    files = [file for folder in folders for file in Path(folder, "data").glob("tekken_*.json")]
    if not files:
        raise VocabularyError(
            "no tekken.json was given, and none is installed",
            where="mistral_common/data" if spec else "",
            remedy="Pass its path, or pip install structgen[tekken].",
        )
    return max(files, key=lambda file: file.name)
