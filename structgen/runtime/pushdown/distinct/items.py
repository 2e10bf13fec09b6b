"""The item of an array that is being written: byte by byte, what its value can be.

Values that are equal as JSON Schema has it have one *canonical* form, in which values that share a beginning do so as
their texts do:

| value | is |
|---|---|
| string | a quote and its UTF-8, decoded |
| number | its sign, its significant digits, ``e``, and the exponent of the last of them, in hexadecimal |
| null, true, false | itself |

So whether some value of a set can still come of a text is a search for a prefix.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import NamedTuple, Protocol

from .value_set import ValuesAsked

QUOTE, BACKSLASH, COMMA = b'"\\,'

#: What may stand in a number, and what ends one.
NUMERIC, DELIMITERS = frozenset(b"0123456789.eE+-"), b",]} \t\n\r"

#: Bytes of escapes behind the backslash.
_ESCAPED = b'"\\/bfnrtu0123456789abcdefABCDEF'

_DIGITS = frozenset(b"0123456789")

#: What may follow in any number, whatever its digits are, and in an exponent.
_NOT_DIGITS, _IN_EXPONENT = b"0.eE+-", b"0123456789+-"


class ItemInProgress(Protocol):
    """An item in progress."""

    def after(self, byte: int) -> ItemInProgress:
        """The item and one more byte, of those that can follow in JSON."""

    def ends(self) -> bool:
        """Whether the item is over; a number never is, before something else follows."""

    def value(self) -> bytes | None:
        """The canonical value, None while the text is none."""

    def can_be_in(self, values: ValuesAsked) -> bool:
        """Whether it can turn into one of some values; at times True where it can't."""

    def bytes_towards(self, values: ValuesAsked) -> Iterable[int]:
        """The bytes after which it can turn into one of some values, or ends as one; perhaps others as well."""

    def beginning(self) -> bytes:
        """How the canonical forms begin of what it can turn into, in a number before the exponent."""

    def key(self, values: ValuesAsked) -> Hashable:
        """Equal for items of which the same follows, as far as values are concerned that are not among some."""


class Word(NamedTuple):
    """``null``, ``true`` or ``false``."""

    text: bytes

    def after(self, byte: int) -> Word:
        """See `ItemInProgress`."""
        return Word(self.text + bytes((byte,)))

    def ends(self) -> bool:
        """See `ItemInProgress`."""
        return self.text in (b"null", b"true", b"false")

    def value(self) -> bytes | None:
        """See `ItemInProgress`."""
        return self.text if self.ends() else None

    def can_be_in(self, values: ValuesAsked) -> bool:
        """See `ItemInProgress`."""
        return values.has_prefix(self.text)

    def bytes_towards(self, values: ValuesAsked) -> Iterable[int]:
        """See `ItemInProgress`."""
        return values.following(self.text)

    def beginning(self) -> bytes:
        """See `ItemInProgress`."""
        return self.text

    def key(self, values: ValuesAsked) -> Hashable:
        """See `ItemInProgress`."""
        return self


class Rope:
    """Bytes behind others, which texts that go on from them share."""

    __slots__ = ("_before", "_data")

    def __init__(self, before: Rope | None, data: bytes) -> None:
        self._before, self._data = before, data

    def __add__(self, data: bytes) -> Rope:
        return Rope(self._before, self._data + data) if len(self._data) < 64 else Rope(self, data)

    def whole(self) -> bytes:
        """All of them."""
        parts: list[bytes] = []
        here: Rope | None = self
        while here is not None:
            parts.append(here._data)
            here = here._before
        return b"".join(reversed(parts))


class String(NamedTuple):
    """A string.

    Parameters
    ----------
    text:
        The quote, and what was decoded, while that is within some other value; then all of it as a `Rope`.
    escape:
        Of an escape that is not complete, its bytes.
    """

    text: bytes | Rope
    escape: bytes = b""
    is_over: bool = False

    def after(self, byte: int) -> String:
        """See `ItemInProgress`."""
        if not self.escape:
            if byte == QUOTE:
                return String(self.text, b"", True)
            if byte != BACKSLASH:
                return String(self.text + bytes((byte,)))
        escape = self.escape + bytes((byte,))
        decoded = _decoded(escape)
        return String(self.text, escape) if decoded is None else String(self.text + decoded)

    def longer(self, data: bytes) -> String:
        """The string and more bytes, none of which is a quote or a backslash, where no escape is begun."""
        return String(self.text + data)

    def apart(self) -> String:
        """The same where it is no longer within another value: a long text is not copied with each byte."""
        return self if isinstance(self.text, Rope) else String(Rope(None, self.text), self.escape, self.is_over)

    def ends(self) -> bool:
        """See `ItemInProgress`."""
        return self.is_over

    def value(self) -> bytes | None:
        """See `ItemInProgress`."""
        if not self.is_over:
            return None
        return self.text.whole() if isinstance(self.text, Rope) else self.text

    def can_be_in(self, values: ValuesAsked) -> bool:
        """See `ItemInProgress`."""
        return not isinstance(self.text, Rope) and values.has_prefix(self.text)

    def bytes_towards(self, values: ValuesAsked) -> Iterable[int]:
        """See `ItemInProgress`."""
        if self.escape or isinstance(self.text, Rope):
            return _ESCAPED + b"\\"
        ends = (QUOTE,) if self.text in values else ()
        return (*ends, BACKSLASH, *values.following(self.text))

    def beginning(self) -> bytes:
        """See `ItemInProgress`."""
        return self.text if isinstance(self.text, bytes) else b'"'

    def key(self, values: ValuesAsked) -> Hashable:
        """See `ItemInProgress`."""
        return self


def _decoded(escape: bytes) -> bytes | None:
    """What an escape stands for; None while it is not complete, itself where it is none, as of a damaged file."""
    is_unicode = escape[1:2] == b"u"
    if len(escape) < (6 if is_unicode else 2):
        return None
    try:
        if is_unicode and 0xD800 <= int(escape[2:6], 16) < 0xDC00 and len(escape) < 12:  # the other half follows
            return None
        text: str = json.loads(b'"%b"' % escape)
    except ValueError:
        return escape
    return text.encode(errors="surrogatepass")


class Number(NamedTuple):
    """A number.

    Parameters
    ----------
    is_negative:
        Whether it has a sign.
    digits:
        Those of the mantissa, without zeros at the beginning.
    decimals:
        How many of them, or zeros before them, stand behind the point; -1 where there is no point.
    exponent:
        None before an ``e``; then its digits as a number.
    is_down:
        Whether the exponent has a minus.
    is_whole:
        Whether the text so far is a number.
    """

    is_negative: bool = False
    digits: bytes = b""
    decimals: int = -1
    exponent: int | None = None
    is_down: bool = False
    is_whole: bool = False

    def after(self, byte: int) -> Number:
        """See `ItemInProgress`."""
        if byte in _DIGITS:
            if self.exponent is not None:
                return self._replace(exponent=10 * self.exponent + byte - 0x30, is_whole=True)
            digits = self.digits + bytes((byte,)) if self.digits or byte != 0x30 else b""
            decimals = self.decimals + 1 if self.decimals >= 0 else -1
            return Number(self.is_negative, digits, decimals, None, False, True)
        if byte == 0x2E:
            return self._replace(decimals=0, is_whole=False)
        if byte in b"eE":
            return self._replace(exponent=0, is_whole=False)
        if self.exponent is not None:
            return self._replace(is_down=byte == 0x2D)
        return self._replace(is_negative=True)

    def ends(self) -> bool:
        """See `ItemInProgress`."""
        return False

    def _significant(self) -> tuple[bytes, int]:
        """The beginning of the canonical form, the sign and the significant digits; and their exponent."""
        digits = self.digits.rstrip(b"0")
        zeros = len(self.digits) - len(digits)
        exponent = -(self.exponent or 0) if self.is_down else self.exponent or 0
        sign = b"-" if self.is_negative and digits else b"+"
        return sign + digits, exponent + zeros - max(0, self.decimals) if digits else 0

    def beginning(self) -> bytes:
        """See `ItemInProgress`."""
        return self._significant()[0]

    def value(self) -> bytes | None:
        """See `ItemInProgress`."""
        begin, exponent = self._significant()
        return b"%be%x" % (begin, exponent) if self.is_whole else None

    def can_be_in(self, values: ValuesAsked) -> bool:
        """See `ItemInProgress`."""
        begin, _ = self._significant()
        if values.has_prefix(begin + b"e"):  # zeros may follow
            return True
        if self.exponent is not None:
            return False
        return values.has_prefix(self._begin() + self.digits)

    def bytes_towards(self, values: ValuesAsked) -> Iterable[int]:
        """See `ItemInProgress`."""
        value = self.value()
        ends = DELIMITERS if value is not None and value in values else b""
        if self.exponent is not None:
            return (*_IN_EXPONENT, *ends)
        more = [byte for byte in values.following(self._begin() + self.digits) if byte in _DIGITS]
        return (*_NOT_DIGITS, *more, *ends)

    def _begin(self) -> bytes:
        return b"-" if self.is_negative else b"+"

    def key(self, values: ValuesAsked) -> Hashable:
        """See `ItemInProgress`: of many zeros behind the point it does not matter how many there are."""
        if self.decimals < 0 and self.exponent is None:
            return self
        begin, exponent = self._significant()
        if self.exponent is not None:
            return begin, exponent, self.exponent == 0 and self.is_down, self.is_whole
        most = values.longest + 1
        zeros = min(1 + len(self.digits) - len(begin), most) if self.digits else min(self.decimals, 2 * most)
        return begin, exponent, zeros, self.is_negative, self.is_whole


def begun(byte: int) -> ItemInProgress:
    """The item that a byte begins, in JSON; one that is no container."""
    if byte == QUOTE:
        return String(b'"')
    return Number().after(byte) if byte in NUMERIC else Word(bytes((byte,)))
