"""The bytes that must follow: what jump-forward decoding writes without asking the model.

A byte is forced where no other byte can follow and the text can neither end nor go on with a token that has no bytes.
That is up to the definition and the text so far: not to the vocabulary, and not to how the text was cut into tokens.
No mask is worked out for it. The machine names bytes one by one, so that two that can follow decide the question.
"""

from __future__ import annotations

from itertools import islice

from ..core.machine import ByteState, Config, Machine

#: So many bytes are looked ahead, unless the caller says how many.
MOST_BYTES = 1024


def forced_bytes(machine: Machine, config: Config, most: int = MOST_BYTES) -> bytes:
    """The bytes with which every text goes on that a configuration's text can become; at most ``most`` of them.

    They may begin or end within a character, as tokens may. ``b""`` where nothing is forced, and after an EOS id,
    where the configuration is None. (There is no byte then that can follow; an EOS id may be the one token that can.)
    """
    return b"" if config is None else follow_forced(machine, machine.byte_state(config), most)[0]


def follow_forced(machine: Machine, byte_state: ByteState, most: int = MOST_BYTES) -> tuple[bytes, ByteState]:
    """The bytes that must follow at a byte state, and the byte state behind them."""
    found = bytearray()
    while len(found) < most:
        following = list(islice(machine.following(byte_state), 2))
        if len(following) != 1 or machine.may_stop(byte_state):
            break
        [(byte, byte_state)] = following
        found.append(byte)
    return bytes(found), byte_state


def whole_characters(data: bytes) -> str | None:
    """The characters that lie within forced bytes, without one that is cut off at their end.

    None where the bytes begin within a character: no text can be appended there.
    """
    if data[:1] and 0x80 <= data[0] < 0xC0:
        return None
    end = len(data)
    for back in range(1, min(4, end) + 1):  # a character has up to four bytes
        byte = data[end - back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if back < length:
                end -= back
            break
        if byte < 0x80:
            break
    return data[:end].decode()
