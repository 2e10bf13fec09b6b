"""A draft that writes under a guide what stands in the place of a mistake, up to the definition's next choice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

from ..runtime.core.machine import ByteState, Config, Machine
from ..runtime.index.index import Index
from ..vocabulary.vocabulary import Vocabulary
from .candidates import BLANK, FEW, MOST_ALIKE, said

_WORD = re.compile(rb"[\w\x80-\xff]{2}")


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

    The first choice is theirs: pieces go on from there as long as a word does, or something open, such as a string or
    a name, or as one thing alone may follow, blanks aside.
    """
    found, state, tokens = bytearray(), machine.byte_state(config), 0
    is_chosen = is_within = False
    for piece in pieces:
        tokens += 1
        for byte in piece:
            after = machine.after(state, byte)
            if after is None or len(found) == most:
                return Drafted(bytes(found), tokens)
            if byte in BLANK:
                is_within = False
            else:
                is_open, alternatives = _alternatives(machine, state, byte)
                is_choice = alternatives - is_within > 1 and not (is_open and is_within)
                if is_chosen and is_choice and not _WORD.fullmatch(bytes([*found[-1:], byte])):
                    return Drafted(bytes(found), tokens)
                is_chosen, is_within = is_chosen or is_choice or is_open, is_open
            found.append(byte)
            state = after
        if is_chosen and machine.may_stop(state) and next(machine.following(state), None) is None:
            break
    return Drafted(bytes(found), tokens)


def _alternatives(machine: Machine, state: ByteState, byte: int) -> tuple[bool, int]:
    """Whether a byte is one of many that lead on in the same way, and how many alternatives there are.

    They are single bytes in either case, all such many together, and the end of the text; blanks are none.
    """
    found = list(islice(said(machine, state), FEW + 1))
    if len(found) > FEW:
        return True, 1
    alike: dict[ByteState, set[int]] = {}
    for each, after in found:
        alike.setdefault(after, set()).add(each)
    open_ = {each for members in alike.values() if len(members) > MOST_ALIKE for each in members}
    few = {bytes([each]).lower() for each, _ in found if each not in open_}
    return byte in open_, len(few) + bool(open_) + machine.may_stop(state)
