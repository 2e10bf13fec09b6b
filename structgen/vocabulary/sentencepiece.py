"""Reads a SentencePiece model through its processor, bare or inside a slow transformers tokenizer.

The model itself says of each piece whether it is a byte, a control symbol, unknown, unused, or text; in text
``▁`` is a space. (``sentencepiece_model.proto``, ``ModelProto.SentencePiece.Type``.)
"""

from __future__ import annotations

from ..errors import VocabularyError
from ..system.types import Foreign
from .token_table import TokenTable


def read_processor(processor: Foreign) -> TokenTable:
    """Read a ``sentencepiece.SentencePieceProcessor``; token ids are its piece ids."""
    tokens: dict[int, bytes] = {}
    special_tokens: dict[str, int] = {}
    for i in range(processor.get_piece_size()):
        token = _piece_bytes(processor, i)
        if token is None:
            special_tokens[processor.id_to_piece(i)] = i
        else:
            tokens[i] = token
    return TokenTable(tokens, special_tokens)


def read_slow(tokenizer: Foreign) -> TokenTable:
    """Read a slow transformers tokenizer that has an ``sp_model``.

    Its ids need not be those of the model: XLM-RoBERTa shifts them by one. So pieces are matched by name.
    """
    processor, added = tokenizer.sp_model, tokenizer.added_tokens_decoder
    tokens: dict[int, bytes] = {}
    special_tokens = {str(token): i for i, token in added.items() if token.special}
    for piece, i in tokenizer.get_vocab().items():
        if i in added:
            if not added[i].special:
                tokens[i] = piece.encode()
            continue
        piece_id = processor.piece_to_id(piece)
        if processor.id_to_piece(piece_id) != piece:
            raise VocabularyError(
                f"token {i} is {piece!r}, which the tokenizer's SentencePiece model does not know",
                where=type(tokenizer).__name__,
                remedy="Use the fast version of this tokenizer, or Vocabulary.from_bytes.",
            )
        token = _piece_bytes(processor, piece_id)
        if token is None:
            special_tokens[piece] = i
        else:
            tokens[i] = token
    return TokenTable(tokens, special_tokens)


def _piece_bytes(processor: Foreign, piece_id: int) -> bytes | None:
    """Bytes of one piece, ``None`` for a control symbol, the unknown piece and unused ones."""
    if processor.is_control(piece_id) or processor.is_unknown(piece_id) or processor.is_unused(piece_id):
        return None
    piece: str = processor.id_to_piece(piece_id)
    return bytes([int(piece[3:5], 16)]) if processor.is_byte(piece_id) else piece.replace("▁", " ").encode()
