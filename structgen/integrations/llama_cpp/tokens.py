"""The vocabulary of a model that llama-cpp-python has loaded."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable

from ...errors import VocabularyError
from ...system.types import Foreign
from ...vocabulary.token_table import SPECIAL_ANYWAY
from ...vocabulary.vocabulary import Vocabulary

#: ``enum llama_vocab_type`` of the kinds whose tokens have bytes of their own: SentencePiece, byte-level BPE.
_KNOWN_KINDS = (1, 2)

#: ``enum llama_token_attr``: unknown, unused, control.
_WITHOUT_TEXT = 1 << 0 | 1 << 1 | 1 << 3

#: The vocabulary of each `Llama`, read once.
_vocabularies: weakref.WeakKeyDictionary[Foreign, Vocabulary] = weakref.WeakKeyDictionary()


def vocabulary(llama: Foreign, *, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """Return the vocabulary of a loaded model, with the bytes that llama.cpp prints for each token.

    Parameters
    ----------
    llama:
        A ``llama_cpp.Llama``; ``vocab_only=True`` is enough.
    eos_ids:
        The ids that end a text. Default: all ids at which llama.cpp ends one.

    Raises
    ------
    VocabularyError
        For a tokenizer other than SentencePiece and byte-level BPE.
    """
    if eos_ids is None and llama in _vocabularies:
        return _vocabularies[llama]
    import llama_cpp

    handle = llama_cpp.llama_model_get_vocab(llama.model)
    kind = llama_cpp.llama_vocab_type(handle)
    if kind not in _KNOWN_KINDS:
        raise VocabularyError(
            f"the token bytes of a tokenizer of llama.cpp's type {kind} are not known",
            remedy="Known are SPM (1) and BPE (2). If you know the bytes of its tokens, use Vocabulary.from_bytes.",
        )
    tokens: dict[int, bytes] = {}
    specials: dict[str, int] = {}
    ends: list[int] = []
    size = llama_cpp.llama_vocab_n_tokens(handle)
    for i in range(size):
        name = (llama_cpp.llama_vocab_get_text(handle, i) or b"").decode("utf-8", "replace")
        is_end = llama_cpp.llama_vocab_is_eog(handle, i)
        if is_end:
            ends.append(i)
        has_text = not llama_cpp.llama_vocab_get_attr(handle, i) & _WITHOUT_TEXT
        if is_end or not has_text or name in SPECIAL_ANYWAY:
            specials.setdefault(name, i)
        else:
            tokens[i] = _piece(llama_cpp, handle, i)
    found = Vocabulary.from_bytes(
        tokens, ends if eos_ids is None else eos_ids, special_tokens=specials, size=size, encode=_Encode(llama)
    )
    if eos_ids is None:
        _vocabularies[llama] = found
    return found


class _Encode:
    """How a model splits a text, without special tokens. It keeps no model alive."""

    def __init__(self, llama: Foreign) -> None:
        self._llama = weakref.ref(llama)

    def __call__(self, text: str) -> list[int]:
        llama = self._llama()
        if llama is None:
            raise VocabularyError("the model that splits texts is gone", remedy="Keep the Llama.")
        ids: list[int] = llama.tokenize(text.encode(), add_bos=False)
        return ids


def _piece(llama_cpp: Foreign, handle: Foreign, token: int) -> bytes:
    """What llama.cpp prints for a token."""
    room = 64
    buffer = ctypes.create_string_buffer(room)
    count = llama_cpp.llama_token_to_piece(handle, token, buffer, room, 0, False)
    if count < 0:  # the room it needs
        buffer = ctypes.create_string_buffer(-count)
        count = llama_cpp.llama_token_to_piece(handle, token, buffer, -count, 0, False)
    return buffer.raw[:count]
