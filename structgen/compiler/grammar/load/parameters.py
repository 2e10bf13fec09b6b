"""Conditions and changes of the parameter of a rule: ``%if lt([0:3], 5)``, ``set_bit(2)``. A parameter has 64 bits.

``[x:y]`` is the number that its bits from ``x`` on make, before ``y``; ``_`` is all of it. (The notation is
llguidance's.)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ....errors import BudgetExceededError, DefinitionError

_ALL = (1 << 64) - 1

#: Conditions within conditions.
_DEEPEST = 64

_TOKEN = re.compile(r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+)|(?P<word>[A-Za-z_]\w*)|(?P<sign>[()\[\],:]))")


class Bits(NamedTuple):
    """The bits of a parameter from one on, before another one."""

    first: int
    end: int

    def of(self, parameter: int) -> int:
        """The number that they make."""
        return parameter >> self.first & self.ones

    @property
    def ones(self) -> int:
        """The number of which all are set."""
        return (1 << self.end - self.first) - 1


#: What is made of a parameter: another one, or whether something holds of it.
Change: TypeAlias = Callable[[int], int]
Condition: TypeAlias = Callable[[int], bool]

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


class ParameterReader:
    """Reads a condition or a change within a text.

    Parameters
    ----------
    text, at:
        The text, and where it begins there; afterwards where it has ended.
    fail:
        Makes an error of what is wrong and where.
    """

    def __init__(self, text: str, at: int, fail: Callable[[str, int], DefinitionError]) -> None:
        self._text = text
        self.at = at
        self._fail = fail

    def change(self) -> tuple[Change, bool]:
        """What a rule's parameter is, and whether that depends on the parameter where it is mentioned."""
        kind, word = self._next()
        if kind == "number":
            value = self._bounded(word, _ALL)
            return lambda _: value, False
        if word == "_":
            return lambda parameter: parameter, True
        if word in ("set_bit", "clear_bit", "bit_and", "bit_or"):
            self._expect("(")
            value = self._number(63 if word.endswith("bit") else _ALL)
            self._expect(")")
            if word == "set_bit":
                return lambda parameter: parameter | 1 << value, True
            if word == "clear_bit":
                return lambda parameter: parameter & ~(1 << value), True
            return (lambda p: p & value, True) if word == "bit_and" else (lambda p: p | value, True)
        if word in ("incr", "decr"):
            self._expect("(")
            bits = self._bits()
            self._expect(")")
            last, step = (bits.ones, 1 << bits.first) if word == "incr" else (0, -(1 << bits.first))
            return lambda parameter: parameter if bits.of(parameter) == last else parameter + step, True
        raise self._wrong(word, "a number, _, set_bit, clear_bit, bit_and, bit_or, incr or decr")

    def condition(self, depth: int = 0) -> Condition:
        """What is to hold of a parameter. Raises `DefinitionError`, and `BudgetExceededError` for nesting."""
        if depth > _DEEPEST:
            raise BudgetExceededError(f"conditions are nested more than {_DEEPEST} deep", where="%if")
        _, word = self._next()
        if word == "true":
            if self._peek() == "(":
                self._expect("(")
                self._expect(")")
            return lambda _: True
        self._expect("(")
        found = self._call(word, depth)
        self._expect(")")
        return found

    def _call(self, word: str, depth: int) -> Condition:
        if word in ("and", "or"):
            first = self.condition(depth + 1)
            self._expect(",")
            second = self.condition(depth + 1)
            return (lambda p: first(p) and second(p)) if word == "and" else (lambda p: first(p) or second(p))
        if word == "not":
            inner = self.condition(depth + 1)
            return lambda parameter: not inner(parameter)
        if word in ("bit_set", "bit_clear"):
            bit, wanted = self._number(63), int(word == "bit_set")
            return lambda parameter: parameter >> bit & 1 == wanted
        if word in ("is_ones", "is_zeros"):
            bits = self._bits()
            wanted = bits.ones if word == "is_ones" else 0
            return lambda parameter: bits.of(parameter) == wanted
        counts = word.startswith("bit_count_")
        compare = _COMPARISONS.get(word.removeprefix("bit_count_"))
        if compare is None:
            raise self._wrong(word, "a condition")
        bits = self._bits()
        self._expect(",")
        value = self._number(_ALL)
        if counts:
            return lambda parameter: compare(bits.of(parameter).bit_count(), value)
        return lambda parameter: compare(bits.of(parameter), value)

    def _bits(self) -> Bits:
        _, word = self._next()
        if word == "_":
            return Bits(0, 64)
        if word != "[":
            raise self._wrong(word, "bits, as [0:3], or _")
        begin = self.at
        first = self._number(63)
        self._expect(":")
        end = self._number(64)
        self._expect("]")
        if end <= first:
            raise self._fail(f"there are no bits [{first}:{end}]", begin)
        return Bits(first, end)

    def _number(self, most: int) -> int:
        kind, word = self._next()
        if kind != "number":
            raise self._wrong(word, "a number")
        return self._bounded(word, most)

    def _bounded(self, word: str, most: int) -> int:
        value = int(word, 16 if word[:2] in ("0x", "0X") else 10) if len(word) <= 40 else most + 1
        if value > most:
            raise self._fail(f"{word[:40]} is more than {most}", self.at - len(word))
        return value

    def _expect(self, sign: str) -> None:
        _, word = self._next()
        if word != sign:
            raise self._wrong(word, sign)

    def _peek(self) -> str:
        found = _TOKEN.match(self._text, self.at)
        return found[0].strip() if found else ""

    def _next(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self.at)
        if found is None:
            raise self._wrong(self._text[self.at : self.at + 10].strip() or "the end", "a condition or a parameter")
        self.at = found.end()
        return found.lastgroup or "", found[found.lastgroup or 0]

    def _wrong(self, found: str, wanted: str) -> DefinitionError:
        return self._fail(f"found {found!r} where {wanted} is to be", max(0, self.at - len(found)))
