"""What may follow a text: literal strings, and descriptions of what is open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ..runtime.core.machine import ByteState, CompiledMachine, Config, Machine, ranges_of
from ..runtime.index.index import Index
from ..system.byteranges import describe
from .path import Path

#: Bytes that may follow, beyond which it is open what does; and alternatives that are told apart at one place.
FEW, MOST_ALIKE = 40, 2

#: Literals that are listed, byte states that are looked at for them, and bytes of one.
_MOST_LITERALS, _MOST_STATES, _LONGEST = 64, 1 << 10, 120

#: Bytes that say nothing; and those that no character begins with.
BLANK, CONTINUATION = frozenset(b" \t\n\r\f"), bytes(range(0x80, 0xC0))

#: Bytes that must follow, at most.
_MOST_FORCED = 1 << 10

#: The word that a text ends in.
_WORD = re.compile(rb"[\w\x80-\xff]{1,64}\Z")

_LETTER = re.compile(rb"[\w\x80-\xff]")


@dataclass(frozen=True)
class Candidates:
    """The possible continuations of a valid prefix.

    Parameters
    ----------
    prefix:
        The longest prefix that some complete text continues, without its last word where another may replace it.
    dropped:
        The rest of the text.
    literals:
        Strings that may follow, each up to the next open choice.
    open:
        Descriptions of other characters that may follow, such as ``"[1-9]"``.
    can_end:
        Whether the text may end behind the prefix.
    """

    prefix: str
    dropped: str
    literals: tuple[str, ...]
    open: tuple[str, ...]
    can_end: bool


class Following(NamedTuple):
    """What may follow a byte state: literals, whole characters each, and inclusive ranges of other first bytes."""

    literals: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]

    @property
    def is_few(self) -> bool:
        """Whether the text can't go on just anyhow."""
        return sum(last - first + 1 for first, last in self.ranges) <= FEW


def candidates_of(path: Path, rest: bytes = b"") -> tuple[int, Candidates]:
    """What may stand in the place of a mistake, and from which byte of a path's text on.

    That is where the word begins that the text ends in, if another may stand there and it can't go on just anyhow,
    so that a name of a member, or a keyword, is chosen whole; else the end of the text.

    Parameters
    ----------
    rest:
        What was refused behind the text.
    """
    index, data = path.index, path.data
    end = len(data)
    found = following(index, path.config)
    word = (_WORD.search(data[-_LONGEST:]) or [b""])[0].lstrip(CONTINUATION)
    others = following(index, path.config_at(end - len(word)))
    begun = [each for each in others.literals if _begins(each, word)]
    if begun or (others.literals and found.is_few):
        end -= len(word)
        found = Following((*begun, *(each for each in others.literals if each not in begun)), others.ranges)
    return end, Candidates(
        data[:end].decode("utf-8", "ignore"),
        (data[end:] + rest).decode("utf-8", "replace"),
        found.literals,
        (describe(found.ranges),) if found.ranges else (),
        path.machine.is_accepting(path.config_at(end)),
    )


def _begins(literal: str, word: bytes) -> bool:
    """Whether a literal goes on with a word, of two letters at least; whatever the case."""
    return 1 < len(word) < len(literal) and literal.casefold().startswith(word.decode("utf-8", "ignore").casefold())


def said_next(machine: Machine, config: Config) -> list[tuple[int, ByteState]]:
    """Bytes that may follow and are no blanks, with the byte states after them: two where there are more."""
    return list(islice(said(machine, machine.byte_state(config)), 2))


def said(machine: Machine, state: ByteState) -> Iterator[tuple[int, ByteState]]:
    """Bytes that may follow and are no blanks, with the byte states after them."""
    return ((byte, after) for byte, after in machine.following(state) if byte not in BLANK)


def must_follow(machine: Machine, config: Config) -> bytes:
    """What must follow, where blanks may be left out."""
    state, found = machine.byte_state(config), bytearray()
    while len(found) < _MOST_FORCED and not machine.may_stop(state):
        next_ = list(islice(said(machine, state), 2))
        if len(next_) != 1:
            break
        byte, state = next_[0]
        found.append(byte)
    return whole(bytes(found))


def whole(data: bytes) -> bytes:
    """Bytes without a character that is cut off at their end."""
    return data.decode("utf-8", "ignore").encode()


def following(index: Index, config: Config) -> Following:
    """What may follow a configuration; the index remembers it."""
    found = index.continuations.get(config)
    if found is None:
        found = index.continuations[config] = _following(index.machine, index.machine.byte_state(config))
    return Following(*found)


def _following(machine: CompiledMachine, start: ByteState) -> Following:
    """What may follow a byte state.

    Literals go on as long as one byte must follow, and branch while they are within a word. Beside them are the
    keywords that the machine knows to be expected, where names may stand as well, or other keywords go on from them.
    """
    literals: list[str] = []
    ranges: tuple[tuple[int, int], ...] = ()
    todo: list[tuple[bytes, ByteState]] = [(b"", start)]
    for _ in range(_MOST_STATES):
        if not todo or len(literals) >= _MOST_LITERALS:
            break
        text, state = todo.pop()
        if text:
            letters, state = machine.letters(state, _LONGEST - len(text))
            text += letters
        branches, rest = _branches(machine, state, is_first=not text)
        goes_on = branches and not rest and not machine.may_stop(state) and len(text) < _LONGEST
        if not text:
            ranges = ranges_of(rest)
        if text and not (goes_on and (len(branches) == 1 or _is_word(text, branches))):
            literals.append(text.decode("utf-8", "ignore"))
        else:
            todo += [(text + bytes([byte]), after) for byte, after in reversed(branches)]
    plain = {literal.casefold() for literal in literals if literal.isascii()}
    known = [literal.encode() for literal in literals]
    words = (word.decode() for word in islice(machine.keywords(start, known), _MOST_LITERALS))
    literals += [word for word in words if not any(literal.startswith(word) for literal in literals)]
    distinct = (each for each in literals if each and (each.isascii() or _folded(each) not in plain))
    return Following(tuple(dict.fromkeys(distinct)), ranges)


def _folded(text: str) -> str:
    """How a text is spelled in ASCII that stands for it where case is ignored: the long s, and I with a dot."""
    return text.casefold().replace("i\u0307", "i")


def _is_word(text: bytes, branches: list[tuple[int, ByteState]]) -> bool:
    """Whether a text goes on within a word, whichever byte follows."""
    return all(_LETTER.match(each) for each in (text[-1:], *(bytes([byte]) for byte, _ in branches)))


def _branches(machine: Machine, state: ByteState, *, is_first: bool) -> tuple[list[tuple[int, ByteState]], list[int]]:
    """Bytes that lead each to a byte state of its own, or with one other, ascending; and all others.

    Where too many may follow, those are all of them. Unless ``is_first``, one other stands for all.
    """
    alike: dict[ByteState, list[int]] = {}
    count = 0
    for count, (byte, after) in enumerate(machine.following(state), 1):
        bytes_ = alike.setdefault(after, [])
        bytes_.append(byte)
        if not is_first and (count > FEW or len(bytes_) > MOST_ALIKE):
            return [], [byte]
    most = MOST_ALIKE if count <= FEW else 0
    branches = [(min(bytes_), after) for after, bytes_ in alike.items() if len(bytes_) <= most]
    branches.sort(key=lambda each: each[0])
    return branches, sorted(byte for bytes_ in alike.values() if len(bytes_) > most for byte in bytes_)
