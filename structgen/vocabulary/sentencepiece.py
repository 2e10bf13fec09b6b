"""Reads a SentencePiece model through its processor, bare or inside a slow transformers tokenizer.

The model itself says of each piece whether it is a byte, a control symbol, unknown, unused, or text; in text
``▁`` is a space. (``sentencepiece_model.proto``, ``ModelProto.SentencePiece.Type``.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ..errors import VocabularyError
from ..system.arguments import integer
from ..system.types import Foreign, JsonMap
from .token_table import SPECIAL_ANYWAY, TokenTable


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


def read_file(path: str, special_names: Collection[str], added_tokens: Iterable[JsonMap]) -> TokenTable:
    """Read a ``tokenizer.model`` as the ids of a tokenizer whose own code is not run.

    Its ids are taken for those of the pieces, which must be so for each token that both have, with some above.

    Parameters
    ----------
    special_names:
        Contents of tokens that are special.
    added_tokens:
        What its config adds: ``{"id": .., "content": .., "special": ..}`` each.

    Raises
    ------
    VocabularyError
        Where that cannot be, or nothing tells; and where the file can't be read.
    """
    try:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor(model_file=path)
    except (ImportError, OSError, RuntimeError) as error:
        raise VocabularyError(
            f"the model cannot be read: {error}",
            where=path,
            remedy="pip install sentencepiece, or fetch the file again.",
        ) from error
    table = read_processor(processor)
    size = processor.get_piece_size()
    common = 0
    for entry in added_tokens:
        i, content = integer(entry["id"], "an added token's id", VocabularyError), str(entry["content"])
        if i < size and processor.id_to_piece(i) != content:
            raise VocabularyError(
                f"token {i} is {content!r}, and {processor.id_to_piece(i)!r} in the model: its own code numbers them",
                where=path,
                remedy="Pass trust_remote_code=True to run that code, or a folder with a tokenizer.json.",
            )
        common += i < size
        table.tokens.pop(i, None)
        if entry.get("special") or content in special_names:
            table.special_tokens[content] = i
        else:
            table.tokens[i] = content.encode()
    if not common:
        raise VocabularyError(
            "the tokenizer has code of its own, and nothing says that it numbers tokens as its model does",
            where=path,
            remedy="Pass trust_remote_code=True to run that code, or a folder with a tokenizer.json.",
        )
    return replace(table, encode=processor.encode)


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
    if piece in SPECIAL_ANYWAY:
        return None
    return bytes([int(piece[3:5], 16)]) if processor.is_byte(piece_id) else piece.replace("▁", " ").encode()
