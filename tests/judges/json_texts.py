"""JSON texts for guides and from them: values in an order that a guide takes, and random walks to the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import structgen as sg
from judges.guides import EOS, allowed

#: How often a guide may be asked while an order is looked for; n members without a place of their own have n! orders.
_ENOUGH = 10_000

#: Orders of one item that are followed through the rest of an array; after most items they all lead to the same.
_KEPT = 4


# -- values to texts -----------------------------------------------------------------------------------------


def accepts(
    index: sg.Index,
    value: Any,
    *,
    integral: bool = True,
    separators: tuple[str, str] = (", ", ": "),
    ensure_ascii: bool = False,
) -> bool:
    """Whether a guide takes a value as `json.dumps` writes it, with its members in some order.

    The given order is tried first. Where nothing is found among some thousand attempts, the answer is no. As guides
    write integers without a fraction, 1.0 is tried as 1 too, if ``integral`` (in Draft 4 they are not the same).
    """
    guide, writer = sg.Guide(index), _Writer(integral, separators, ensure_ascii)
    if all(map(guide.advance, writer.dumps(value))) and guide.is_accepting():
        return True
    return any(guide.is_accepting() for guide in writer.after(sg.Guide(index), value))


def is_text(value: Any) -> bool:
    """Whether a value can be written in UTF-8 at all: lone surrogates cannot."""
    try:
        dumps(value)
    except UnicodeEncodeError:
        return False
    return True


def dumps(value: Any) -> bytes:
    """The text of a value, as most programs write it."""
    return json.dumps(value, ensure_ascii=False).encode()


class _Writer:
    """A search for an order, by trying; a guide that refuses a member's name or value ends an attempt early."""

    def __init__(self, integral: bool, separators: tuple[str, str], ensure_ascii: bool) -> None:
        self._integral = integral
        self._separators, self._ensure_ascii = separators, ensure_ascii
        self._comma, self._colon = (each.encode() for each in separators)
        self._attempts = 0

    def dumps(self, value: Any) -> bytes:
        """The text of a value, its members in their order."""
        return json.dumps(value, ensure_ascii=self._ensure_ascii, separators=self._separators).encode()

    def _opening(self, before: bytes, name: str) -> bytes:
        return before + self.dumps(name) + self._colon

    def after(self, guide: sg.Guide, value: Any) -> Iterator[sg.Guide]:
        """Guides that have taken the value after ``guide``, one for each order that works."""
        if isinstance(value, dict) and value:
            yield from self._members(guide, tuple(value.items()), b"{")
        elif isinstance(value, list) and value:
            yield from self._items(guide, value)
        else:
            yield from self._fed(guide, self.dumps(value))
            if self._integral and isinstance(value, float) and value.is_integer():
                yield from self._fed(guide, self.dumps(int(value)))

    def _members(self, guide: sg.Guide, members: tuple[tuple[str, Any], ...], before: bytes) -> Iterator[sg.Guide]:
        """What could stand here and could not after a member comes before that member, unless nothing else works."""
        named = {
            name: [value, *fed]
            for name, value in members
            if (fed := list(self._fed(guide, self._opening(before, name))))
        }
        postponed, comma = [], self._comma
        for name, (value, opened) in named.items():
            rest = tuple(member for member in members if member[0] != name)
            for after in self.after(opened, value):
                if not rest:
                    yield from self._fed(after, b"}")
                elif all(any(self._fed(after, self._opening(comma, other))) for other in named if other != name):
                    yield from self._members(after, rest, comma)
                else:
                    postponed.append((after, rest))
        for after, rest in postponed:
            yield from self._members(after, rest, comma)

    def _items(self, guide: sg.Guide, items: list[Any]) -> Iterator[sg.Guide]:
        guides = [guide]
        for position, item in enumerate(items):
            opened = [fed for guide in guides for fed in self._fed(guide, self._comma if position else b"[")]
            guides = [after for guide in opened for after in islice(self.after(guide, item), _KEPT)][:_KEPT]
        for guide in guides:
            yield from self._fed(guide, b"]")

    def _fed(self, guide: sg.Guide, text: bytes) -> Iterator[sg.Guide]:
        """The guide after a text, once or not at all."""
        self._attempts += 1
        fork = guide.fork()
        if self._attempts <= _ENOUGH and all(map(fork.advance, text)):
            yield fork


# -- random texts -------------------------------------------------------------------------------------------


def random_text(index: sg.Index, random: Random, length: int = 40) -> bytes | None:
    """What an index over `BYTES` lets through from beginning to end, drawn byte by byte.

    After ``length`` bytes whatever ends strings, arrays and objects is preferred; None where that leads nowhere in
    ten times as many. Raises `AssertionError` where mask and `advance` disagree, or nothing at all is allowed.
    """
    guide, text = sg.Guide(index), bytearray()
    while len(text) < 10 * length:
        ids = allowed(guide)
        assert ids, f"nothing may follow {bytes(text)!r}"
        token = _closing(ids, random) if len(text) >= length else _any(ids, random)
        if token == EOS:
            assert guide.is_accepting()
            return bytes(text)
        assert guide.advance(token), f"the mask allows {token} after {bytes(text)!r}"
        text.append(token)
    return None


#: What ends things, in the order of preference.
_CLOSING = (EOS, *b'"}]')


def _closing(allowed: list[int], random: Random) -> int:
    return next((token for token in _CLOSING if token in allowed), None) or _any(allowed, random)


def _any(allowed: list[int], random: Random) -> int:
    """One of the ids, mostly ASCII: a byte beyond it opens a character that is like any other."""
    ascii_only = [token for token in allowed if token < 0x80 or token == EOS]
    return random.choice(ascii_only if ascii_only and random.random() < 0.95 else allowed)
