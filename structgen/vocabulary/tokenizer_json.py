"""Reads Hugging Face's ``tokenizer.json``, as parsed JSON: the bytes and names of its ids.

The file is the truth about a fast tokenizer: a model with a vocabulary of pieces, a decoder that says what
the pieces mean (`decoders`), and added tokens on top, which win where an id has both.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Collection, Iterable

from ..errors import VocabularyError, VocabularyWarning
from ..system.arguments import integer
from ..system.types import JsonMap
from .decoders import REASONS, PieceDecoder, flatten, piece_decoder, refused
from .token_table import MAX_TOKEN_BYTES, SPECIAL_ANYWAY, TokenTable

_WELL_DEFINED_MODELS = ("BPE", "Unigram", "WordLevel")


def read(document: JsonMap, *, special_names: Collection[str] = (), added_tokens: Iterable[JsonMap] = ()) -> TokenTable:
    """Read a parsed ``tokenizer.json``.

    Parameters
    ----------
    document:
        The JSON object.
    special_names:
        Contents of further tokens that are special, as ``tokenizer_config.json`` names them.
    added_tokens:
        Further added tokens in the document's form (``{"id": .., "content": .., "special": ..}``), which
        override its own.

    Raises
    ------
    VocabularyError
        Where the bytes cannot be known exactly, or the document is malformed.
    """
    try:
        return _read(document, special_names, added_tokens)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise VocabularyError(
            f"the tokenizer is malformed: {type(error).__name__}: {error}",
            where="tokenizer.json",
            remedy="Save it again with the tokenizers library.",
        ) from error


def _read(document: JsonMap, special_names: Collection[str], added_tokens: Iterable[JsonMap]) -> TokenTable:
    model = document["model"]
    _check_model(model)
    decoder = piece_decoder(document)
    entries = [*(document.get("added_tokens") or ()), *added_tokens]
    added = {integer(entry["id"], "an added token's id", VocabularyError): entry for entry in entries}
    names = {*special_names, *SPECIAL_ANYWAY, _unknown_piece(model)}
    special_tokens: dict[str, int] = {}
    left_out: dict[int, str] = {}
    pieces: list[str] = []
    ids: list[int] = []
    for piece, i in _pieces(model):
        if i in added:
            continue
        if piece in names:
            special_tokens[piece] = i
        else:
            pieces.append(piece)
            ids.append(i)
    tokens = dict(zip(ids, decoder.pieces(pieces), strict=True))
    for i, entry in added.items():
        content = entry["content"]
        if entry.get("special") or content in names:
            special_tokens[content] = i
        else:
            found = _added_bytes(entry, document.get("normalizer"), decoder)
            if found is None and i < 0:
                raise VocabularyError(f"a token has the id {i}", where="tokenizer.json")
            if found is None:
                left_out[i] = content
            else:
                tokens[i] = found
    if not left_out:
        return TokenTable(tokens, special_tokens)
    warnings.warn(
        f"{len(left_out):,} of {len(tokens) + len(left_out):,} tokens are left out of masks: what the normalizer"
        f" makes of {next(iter(left_out.values()))!r} is not known",
        VocabularyWarning,
        stacklevel=2,
    )
    return TokenTable(tokens, special_tokens, size=max(*tokens, *special_tokens.values(), *left_out) + 1)


def _pieces(model: JsonMap) -> Iterable[tuple[str, int]]:
    """Each piece of the model and its id. A Unigram vocabulary is a list of ``[piece, log probability]``."""
    vocab = model["vocab"]
    if isinstance(vocab, dict):
        return vocab.items()
    return ((piece, i) for i, (piece, _) in enumerate(vocab))


def _unknown_piece(model: JsonMap) -> str | None:
    """The piece that stands for what the model cannot spell."""
    if model.get("unk_id") is not None:
        return str(model["vocab"][model["unk_id"]][0])
    return model.get("unk_token")


def _check_model(model: JsonMap) -> None:
    # Old files leave the type out, and were only written for BPE.
    kind = model.get("type") or ("BPE" if "merges" in model else None)
    if kind not in _WELL_DEFINED_MODELS:
        raise refused(REASONS.get(str(kind), f"its model {kind} is not known"))
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(affix):
            raise refused(f"its {affix} {model[affix]!r} stands for spaces that cannot be known exactly")


def _added_bytes(entry: JsonMap, normalizer: JsonMap | None, decoder: PieceDecoder) -> bytes | None:
    """Bytes of an added token that is text: its content, normalized first where the text around it is.

    None where a normalizer is none whose doing is known.
    """
    content = entry["content"]
    for step in flatten(normalizer, "normalizers") if entry.get("normalized") else ():
        normalized = _normalize(content, step)
        if normalized is None:
            return None
        content = normalized
        if len(content) > MAX_TOKEN_BYTES:  # each step may double it
            raise VocabularyError(f"an added token has more than {MAX_TOKEN_BYTES:,} bytes when normalized")
    return decoder.added(content)


def _normalize(content: str, step: JsonMap) -> str | None:
    kind = step["type"]
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return unicodedata.normalize(kind, content)
    if kind == "Prepend":
        return str(step["prepend"]) + content
    if kind == "Replace" and "String" in step["pattern"]:
        return content.replace(step["pattern"]["String"], step["content"])
    return None
