"""JSON texts for guides and from them: values in an order that a guide takes, and random walks to the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import structgen as sg
from judges.guides import EOS, allowed

#: How often a guide may be asked while an order is looked for; n members without a place of their own have n! orders.
_ENOUGH = 10_000

#: Orders of one item that are followed through the rest of an array: all of four members. After most items they lead
#: to the same, but not where an array differs from a constant in one of its items.
_KEPT = 24


# -- values to texts -----------------------------------------------------------------------------------------


def accepts(
    index: sg.Index,
    value: Any,
    *,
    integral: bool = True,
    separators: tuple[str, str] = (", ", ": "),
    ensure_ascii: bool = False,
    indent: int | None = None,
) -> bool:
    """Whether a guide takes a value as `json.dumps` writes it, with its members in some order.

    The given order is tried first. Where nothing is found among some thousand attempts, the answer is no. As guides
    write integers without a fraction, 1.0 is tried as 1 too, if ``integral`` (in Draft 4 they are not the same).
    """
    guide, writer = sg.Guide(index), _Writer(integral, separators, ensure_ascii, indent)
    if all(map(guide.advance, writer.dumps(value, indent))) and guide.is_accepting():
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

    def __init__(
        self, integral: bool, separators: tuple[str, str], ensure_ascii: bool, indent: int | None = None
    ) -> None:
        self._integral, self._indent = integral, indent
        self._separators, self._ensure_ascii = separators, ensure_ascii
        self._comma, self._colon = (each.encode() for each in separators)
        self._attempts = 0

    def dumps(self, value: Any, indent: int | None = None) -> bytes:
        """The text of a value, its members in their order."""
        options: dict[str, Any] = {"ensure_ascii": self._ensure_ascii, "separators": self._separators}
        return json.dumps(value, indent=indent, **options).encode()

    def _line(self, level: int) -> bytes:
        return b"" if self._indent is None else b"\n" + b" " * (level * self._indent)

    def _opening(self, before: bytes, name: str, level: int) -> bytes:
        return before + self._line(level) + self.dumps(name) + self._colon

    def after(self, guide: sg.Guide, value: Any, level: int = 0) -> Iterator[sg.Guide]:
        """Guides that have taken the value after ``guide``, one for each order that works."""
        if isinstance(value, dict) and value:
            yield from self._members(guide, tuple(value.items()), b"{", level + 1)
        elif isinstance(value, list) and value:
            yield from self._items(guide, value, level + 1)
        else:
            yield from self._fed(guide, self.dumps(value))
            if self._integral and isinstance(value, float) and value.is_integer():
                yield from self._fed(guide, self.dumps(int(value)))

    def _members(
        self, guide: sg.Guide, members: tuple[tuple[str, Any], ...], before: bytes, level: int
    ) -> Iterator[sg.Guide]:
        """What could stand here and could not after a member comes before that member, unless nothing else works."""
        named = {
            name: [value, *fed]
            for name, value in members
            if (fed := list(self._fed(guide, self._opening(before, name, level))))
        }
        postponed, comma = [], self._comma
        for name, (value, opened) in named.items():
            rest = tuple(member for member in members if member[0] != name)
            for after in self.after(opened, value, level):
                if not rest:
                    yield from self._fed(after, self._line(level - 1) + b"}")
                elif all(any(self._fed(after, self._opening(comma, each, level))) for each in named if each != name):
                    yield from self._members(after, rest, comma, level)
                else:
                    postponed.append((after, rest))
        for after, rest in postponed:
            yield from self._members(after, rest, comma, level)

    def _items(self, guide: sg.Guide, items: list[Any], level: int) -> Iterator[sg.Guide]:
        guides = [guide]
        for position, item in enumerate(items):
            before = (self._comma if position else b"[") + self._line(level)
            opened = [fed for guide in guides for fed in self._fed(guide, before)]
            guides = [after for guide in opened for after in islice(self.after(guide, item, level), _KEPT)][:_KEPT]
        for guide in guides:
            yield from self._fed(guide, self._line(level - 1) + b"]")

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
        if _LONG_EXPONENT.search(text):  # no judge could tell what such a number is
            ids = [token for token in ids if token not in _DIGITS] or ids
        token = _closing(ids, random) if len(text) >= length else _any(ids, random)
        if token == EOS:
            assert guide.is_accepting()
            return bytes(text)
        assert guide.advance(token), f"the mask allows {token} after {bytes(text)!r}"
        text.append(token)
    return None


_DIGITS, _LONG_EXPONENT = {*b"0123456789"}, re.compile(rb"[0-9][eE][+-]?[0-9]{2}$")

#: What ends things, in the order of preference.
_CLOSING = (EOS, *b'"}]')


def _closing(allowed: list[int], random: Random) -> int:
    return next((token for token in _CLOSING if token in allowed), None) or _any(allowed, random)


def _any(allowed: list[int], random: Random) -> int:
    """One of the ids, mostly ASCII: a byte beyond it opens a character that is like any other."""
    ascii_only = [token for token in allowed if token < 0x80 or token == EOS]
    return random.choice(ascii_only if ascii_only and random.random() < 0.95 else allowed)
