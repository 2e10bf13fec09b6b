"""Reads a tiktoken ``Encoding``, whose tokens are bytes to begin with."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import VocabularyError
from ..system.types import Foreign
from .token_table import TokenTable

_EOS = "<|endoftext|>"


def read_tiktoken(encoding: Foreign, *, eos_ids: Iterable[int] | None = None, size: int | None = None) -> TokenTable:
    """Read a tiktoken encoding.

    Parameters
    ----------
    encoding:
        A ``tiktoken.Encoding``, or the name of one (``"o200k_base"``), which tiktoken downloads once.
    eos_ids:
        The ids that end a text; by default ``<|endoftext|>``. Chat models end a turn with others as well.
    size:
        Number of ids, see `Vocabulary.from_bytes`.

    Raises
    ------
    VocabularyError
        For an unknown name, and where no EOS id is given or found.
    """
    if isinstance(encoding, str):
        encoding = _named(encoding)
    special_tokens = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    if eos_ids is None:
        if _EOS not in special_tokens:
            raise VocabularyError(
                f"the encoding has no {_EOS}", where=encoding.name, remedy="Pass the ids that end a text as eos_ids=."
            )
        eos_ids = [special_tokens[_EOS]]
    specials = set(special_tokens.values())
    tokens = {i: _token(encoding, i) for i in range(encoding.n_vocab) if i not in specials}
    found = {i: token for i, token in tokens.items() if token}
    return TokenTable(found, special_tokens, eos_ids, size, encoding.encode_ordinary)


def _token(encoding: Foreign, i: int) -> bytes | None:
    try:
        token: bytes = encoding.decode_single_token_bytes(i)
    except KeyError:  # An id that the encoding leaves out, as cl100k_base does with 100256.
        return None
    return token


def _named(name: str) -> Foreign:
    try:
        import tiktoken
    except ImportError as error:
        raise VocabularyError(
            "tiktoken is not installed", where=f"encoding {name!r}", remedy="pip install structgen[tiktoken]"
        ) from error
    try:
        return tiktoken.get_encoding(name)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise VocabularyError(
            f"tiktoken cannot load the encoding: {reason}",
            where=f"encoding {name!r}",
            remedy="Check its name and the network, or set TIKTOKEN_CACHE_DIR to a folder that holds it.",
        ) from error
