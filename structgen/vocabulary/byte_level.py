"""The alphabet of byte-level BPE: one printable character for each of the 256 bytes.

GPT-2 (``bytes_to_unicode`` in its ``encoder.py``) lets the printable characters of Latin-1 stand for
themselves, and shifts the others to U+0100 and up, in order. So ``Ġ`` is a space, ``Ċ`` a newline, ``Ã©`` the
two bytes of an ``é``. Hugging Face's ``ByteLevel`` uses the same table.
"""

from __future__ import annotations

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_SHIFTED = tuple(byte for byte in range(256) if byte not in _PRINTABLE)

#: Byte of each character of the alphabet.
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(0x100 + n): byte for n, byte in enumerate(_SHIFTED)}

#: Maps the alphabet to Latin-1, and what else lies in Latin-1 to a character that Latin-1 cannot encode.
_TO_LATIN_1 = dict.fromkeys(range(256), 0xFFFF) | {ord(char): byte for char, byte in BYTE_OF.items()}


def piece_bytes(piece: str) -> bytes | None:
    """The bytes that a piece of a byte-level vocabulary stands for; ``None`` where a character is foreign."""
    try:
        return piece.translate(_TO_LATIN_1).encode("latin-1")
    except UnicodeEncodeError:
        return None
