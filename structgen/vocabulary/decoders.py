"""How the pieces of a ``tokenizer.json`` become bytes, read from its ``decoder`` and nothing else.

Two families are exact token by token, and only they are accepted:

- *byte-level*: ``ByteLevel``; each character of a piece is a byte (`byte_level`), and a piece with any other is text;
- *SentencePiece*: ``Metaspace``, or a ``Sequence`` of ``Replace``, ``ByteFallback``, ``Fuse`` and ``Strip``
  in this order; ``▁`` is a space, ``<0x0A>`` is a single byte, and the rest is text.

``Strip`` after ``Fuse``, like ``Metaspace``, takes a space off the beginning of the *whole* text. A mask is
about text that is appended after a prompt, where that space stays, so it belongs to the token's bytes here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..errors import VocabularyError
from ..system.types import JsonMap
from . import byte_level

_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")

#: The steps of a SentencePiece decoder, in the only order in which they act on each token alone.
_STEPS = ("Replace", "ByteFallback", "Fuse", "Strip")

#: Why some well-known components are refused.
REASONS = {
    "WordPiece": "WordPiece does not keep the spaces between words",
    "BPEDecoder": "an end-of-word suffix is a space, except where the text ends",
    "CTC": "CTC merges repeated tokens",
}


@dataclass(frozen=True)
class PieceDecoder:
    """Turns the pieces of one vocabulary into bytes.

    Parameters
    ----------
    byte_level:
        The pieces are spelled in the alphabet of `byte_level`.
    replacements:
        Otherwise, what to replace by what, in order: ``(("▁", " "),)``.
    byte_fallback:
        Whether ``<0xNN>`` is the byte ``NN``.
    """

    byte_level: bool = False
    replacements: tuple[tuple[str, str], ...] = ()
    byte_fallback: bool = False

    def piece(self, piece: str) -> bytes:
        """Bytes of a piece of the model's own vocabulary.

        One that is not spelled in the byte-level alphabet is text, as the tokenizers library's ``ByteLevel`` has it.
        """
        if self.byte_level:
            found = byte_level.piece_bytes(piece)
            return piece.encode() if found is None else found
        for pattern, content in self.replacements:
            piece = piece.replace(pattern, content)
        if self.byte_fallback and len(piece) == 6 and (match := _BYTE_PIECE.fullmatch(piece)):
            return bytes([int(match[1], 16)])
        return piece.encode()

    def pieces(self, pieces: Sequence[str]) -> list[bytes]:
        """Bytes of many pieces; where all are spelled in the byte-level alphabet, they are translated as one text."""
        blob = byte_level.piece_bytes("".join(pieces)) if self.byte_level else None
        if blob is None:
            return [self.piece(each) for each in pieces]
        return [blob[begin:end] for begin, end in pairwise(accumulate(map(len, pieces), initial=0))]

    def added(self, content: str) -> bytes:
        """Bytes of an added token, which is text even in a byte-level vocabulary."""
        return content.encode() if self.byte_level else self.piece(content)


def piece_decoder(document: JsonMap) -> PieceDecoder:
    """Read the decoder of a parsed ``tokenizer.json``; raises `VocabularyError` with the reason."""
    if document.get("decoder") is None:
        if "ByteLevel" in _kinds(document.get("pre_tokenizer"), "pretokenizers"):
            return PieceDecoder(byte_level=True)
        raise refused("it has no decoder, so whether spaces stand between tokens cannot be known")
    steps = list(flatten(document["decoder"], "decoders"))
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return PieceDecoder(byte_level=True)
    if kinds == ["Metaspace"]:
        decoder = PieceDecoder(replacements=((steps[0]["replacement"], " "),))
    else:
        _check_steps(steps, kinds)
        replaces = [step for step in steps if step["type"] == "Replace"]
        decoder = PieceDecoder(
            replacements=tuple((step["pattern"]["String"], step["content"]) for step in replaces),
            byte_fallback="ByteFallback" in kinds,
        )
    if document["model"].get("byte_fallback") and not decoder.byte_fallback:
        raise refused("its model falls back to bytes, but its decoder does not know of them")
    return decoder


def _check_steps(steps: list[JsonMap], kinds: list[str]) -> None:
    """Refuse what is not ``Replace* ByteFallback? Fuse? Strip?``, with ``Strip`` only after ``Fuse``."""
    for kind in kinds:
        if kind not in _STEPS:
            raise refused(REASONS.get(kind, f"its decoder {'+'.join(kinds)} is not known"))
    if kinds != sorted(kinds, key=_STEPS.index) or ("Strip" in kinds and "Fuse" not in kinds):
        raise refused(f"its decoder steps {'+'.join(kinds)} stand in an order that is not known")
    for step in steps:
        if step["type"] == "Replace" and "String" not in step["pattern"]:
            raise refused("its decoder replaces by a regex")
        if step["type"] == "Strip" and (step["content"] != " " or step["stop"] != 0):
            raise refused("its decoder strips more than spaces at the beginning")


def flatten(component: JsonMap | None, key: str) -> Iterator[JsonMap]:
    """The steps of a component, ``Sequence``s taken apart; ``key`` names their list."""
    if component is None:
        return
    if component["type"] == "Sequence":
        for step in component[key]:
            yield from flatten(step, key)
    else:
        yield component


def _kinds(component: JsonMap | None, key: str) -> list[str]:
    return [step["type"] for step in flatten(component, key)]


def refused(reason: str) -> VocabularyError:
    """The error for a tokenizer whose bytes could only be guessed."""
    return VocabularyError(
        f"the tokenizer's token bytes cannot be known: {reason}",
        where="tokenizer.json",
        remedy="If you know them, use Vocabulary.from_bytes.",
    )
