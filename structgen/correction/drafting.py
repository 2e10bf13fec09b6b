"""A draft that writes under a guide what stands in the place of a mistake, up to the definition's next choice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

from ..runtime.core.machine import ByteState, Config, Machine
from ..runtime.index.index import Index
from ..vocabulary.vocabulary import Vocabulary

#: Bytes that may follow, beyond which it is open what does; and bytes that stand for one alternative, in either case.
_FEW, _ALIKE = 40, 2

_BLANK = frozenset(b" \t\n\r\f")


@runtime_checkable
class GuidedDraft(Protocol):
    """A model that continues texts of a definition; `structgen.integrations.local.draft` has one."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""
        ...

    def write(
        self, prompt: str, text: str, index: Index, config: Config, *, temperature: float, seed: int | None
    ) -> Iterator[bytes]:
        """What comes behind a text, whose configuration is given: the bytes of each token."""
        ...


class Drafted(NamedTuple):
    """What a draft wrote, and in how many tokens."""

    data: bytes
    tokens: int


def until_choice(machine: Machine, config: Config, pieces: Iterator[bytes], most: int) -> Drafted:
    """What some pieces write behind a configuration before the definition leaves a choice; ``most`` bytes at most.

    Their first byte that is no blank makes a choice already: pieces go on from there as long as a word does, or
    something open, such as a string or a name, or as one thing alone may follow, blanks aside.
    """
    found, state, tokens, is_chosen = bytearray(), machine.byte_state(config), 0, False
    for piece in pieces:
        tokens += 1
        for byte in piece:
            after = machine.after(state, byte)
            is_over = after is None or len(found) == most
            if is_over or (is_chosen and _is_choice(machine, state, bytes(found[-1:]), byte)):
                return Drafted(bytes(found), tokens)
            is_chosen |= byte not in _BLANK
            found.append(byte)
            state = after
        if is_chosen and machine.may_stop(state) and next(machine.following(state), None) is None:
            break
    return Drafted(bytes(found), tokens)


def _is_choice(machine: Machine, state: ByteState, before: bytes, byte: int) -> bool:
    """Whether a byte is one of several alternatives, and no part of what is open, nor of the word behind it."""
    said = list(islice((each for each in machine.following(state) if each[0] not in _BLANK), _FEW + 1))
    if byte in _BLANK or len(said) > _FEW:
        return False
    alike: dict[ByteState, list[int]] = {}
    for each, after in said:
        alike.setdefault(after, []).append(each)
    if any(byte in members and len(members) > _ALIKE for members in alike.values()):
        return False
    ends = machine.may_stop(state)
    is_within_word = not ends and _are_letters(before) and _are_letters(bytes(each for each, _ in said))
    return len(alike) + ends > 1 and not is_within_word


def _are_letters(data: bytes) -> bool:
    return bool(data) and all(byte >= 0x80 or chr(byte).isalnum() or byte == 0x5F for byte in data)
