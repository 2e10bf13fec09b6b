"""Patterns of the strings that Python's types are read from, in the syntax that ECMA-262 and `re` share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

# -- numbers --------------------------------------------------------------------------------------------------

_DIGIT = "[0-9]"

#: The largest exponent that is written; what `decimal` takes is a good deal more.
_EXPONENT = "[Ee][+-]?[0-9]{1,4}"

#: Any finite decimal number, and any that `float` reads.
DECIMAL = rf"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:{_EXPONENT})?$"

#: Those that are finite as a `float`.
WHOLE = "[0-9]{1,200}"
LARGE = r"^[1-9](?:\.[0-9]*)?[Ee]\+?(?:[0-9]{1,2}|[12][0-9]{2}|30[0-7])$"
FINITE = (
    rf"^[+-]?(?:{WHOLE}(?:\.[0-9]*)?(?:[Ee]\+?[0-9]{{1,2}})?|{WHOLE}(?:\.[0-9]*)?[Ee]-[0-9]{{1,3}}"
    r"|[0-9](?:\.[0-9]*)?[Ee]\+?(?:[12][0-9]{2}|30[0-7]))$"
)


class Bounds:
    """The bounds of a number; each may be missing, or be left out itself (``gt``, ``lt``)."""

    def __init__(self, schema: dict[str, object]) -> None:
        given = {name: schema.get(name) for name in ("ge", "gt", "le", "lt")}
        found = {name: Decimal(str(bound)) for name, bound in given.items() if bound is not None}
        found = {name: bound for name, bound in found.items() if bound.is_finite()}
        self.low, self.low_is_open = _tighter(found.get("ge"), found.get("gt"), max)
        self.high, self.high_is_open = _tighter(found.get("le"), found.get("lt"), min)

    def __bool__(self) -> bool:
        return self.low is not None or self.high is not None


def _tighter(closed: Decimal | None, opened: Decimal | None, choose: object) -> tuple[Decimal | None, bool]:
    assert callable(choose)
    if closed is None or opened is None:
        return (opened, True) if closed is None else (closed, False)
    bound = choose(closed, opened)
    return bound, bound == opened


def number(bounds: Bounds, magnitude: str) -> str:
    """Decimal numbers without an exponent within bounds, whose digits match ``magnitude``."""
    low, high = bounds.low, bounds.high
    signs = []
    if high is None or high > 0 or (high == 0 and not bounds.high_is_open):
        least = (low, bounds.low_is_open) if low is not None and low >= 0 else (None, False)
        signs.append(_within(least, (high, bounds.high_is_open), magnitude))
    if low is None or low < 0:
        least = (-high, bounds.high_is_open) if high is not None and high <= 0 else (None, False)
        most = (None if low is None else -low, bounds.low_is_open)
        signs.append("-" + _within(least, most, magnitude))
    return f"^(?:{'|'.join(signs)})$" if signs else "[^\\s\\S]"


def _within(least: tuple[Decimal | None, bool], most: tuple[Decimal | None, bool], magnitude: str) -> str:
    (low, low_is_open), (high, high_is_open) = least, most
    looks = [] if low is None or (low == 0 and not low_is_open) else [_compared(low, is_open=low_is_open, more=True)]
    looks += [] if high is None else [_compared(high, is_open=high_is_open, more=False)]
    return "".join(f"(?=(?:{look})$)" for look in looks) + f"(?:{magnitude})"


def _compared(bound: Decimal, *, is_open: bool, more: bool) -> str:
    """Digits of the numbers above a bound that is not negative, or below it; and of itself unless it is open."""
    whole, _, fraction = f"{bound:f}".partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    rest = rf"(?:\.{_DIGIT}*)?"
    size = len(whole)
    other = f"[1-9]{_DIGIT}{{{size},}}" if more else (f"{_DIGIT}{{0,{size - 1}}}" if size else "[^\\s\\S]")
    found = [f"{each}{rest}" for each in (other, *_differing(whole, "", more=more))]
    for each in _differing(fraction, f"{_DIGIT}*", more=more):
        found.append(rf"{whole}\.{each}")
    if more and (fraction or is_open):
        found.append(rf"{whole}\.{fraction}{_DIGIT}*{'[1-9]' if is_open else ''}{_DIGIT}*")
    elif more:
        found.append(f"{whole}{rest}")
    else:
        found += [
            whole + (rf"(?:\.{fraction[:size]})?" if not size else rf"\.{fraction[:size]}")
            for size in range(len(fraction))
        ]
        found += [] if is_open else [whole + (rf"\.{fraction}0*" if fraction else r"(?:\.0*)?")]
    return f"0*(?:{'|'.join(found)})"


def _differing(digits: str, rest: str, *, more: bool) -> Iterable[str]:
    """Texts as long as ``digits``, or with ``rest`` behind the first that differs, which is larger, or smaller."""
    for at, digit in enumerate(digits):
        low, high = (int(digit) + 1, 9) if more else (0, int(digit) - 1)
        if low <= high:
            yield f"{digits[:at]}[{low}-{high}]{rest or f'{_DIGIT}{{{len(digits) - at - 1}}}'}"


def digits(most: int | None, places: int | None, whole: str = f"{_DIGIT}+") -> str:
    """Digits of numbers with at most so many of them, and of their fractions; zeros at the ends don't count."""

    def shape(whole: str, fraction: int | None) -> str:
        part = f"{_DIGIT}*" if fraction is None else f"{_DIGIT}{{0,{fraction}}}0*"
        return rf"0*{whole}(?:\.{part})?"

    if most is None:
        return shape(whole, places)
    if places is not None:
        return rf"(?=[0-9]){shape(f'{_DIGIT}{{0,{max(0, most - places)}}}', min(most, places))}"
    return "(?=[0-9])(?:" + "|".join(shape(f"{_DIGIT}{{0,{most - size}}}", size) for size in range(most + 1)) + ")"


def scientific(most: int | None, places: int | None, *, is_small: bool) -> str:
    """Those that `decimal` writes with an exponent: ``1E-7``, and zeros, and unless ``is_small``, ``1.5E+3``."""
    found = [r"0(?:\.0*)?E[+-][0-9]{1,4}"]
    whole = None if most is None else most - (places or 0)
    if most is places is None:
        found.append(r"[0-9](?:\.[0-9]*)?E-(?:[7-9]|[1-9][0-9]{1,3})")
    if is_small:
        whole = 1
    elif whole is None:
        found.append(rf"[0-9](?:\.[0-9]{{1,{places or 0}}})?E\+[0-9]{{1,4}}" if places else r"[0-9]E\+[0-9]{1,4}")
    largest = 40 if whole is None else min(whole, 40)
    found += [rf"[0-9](?:\.[0-9]{{1,{size}}})?E\+{size}" for size in range(1, largest)]
    below = places if places is not None else most or 0
    found += [
        rf"[0-9](?:\.[0-9]{{1,{below - size}}})?E-{size}" if size < below else f"[0-9]E-{size}"
        for size in range(7, min(below, 40) + 1)
    ]
    return "|".join(found)


INTEGER = "0|[1-9][0-9]*"

#: `complex`, and `fractions.Fraction`.
_REAL = r"(?:[0-9]+(?:\.[0-9]*)?(?:[Ee][+-]?[0-9]{1,3})?)"
COMPLEX = rf"^(?:[+-]?{_REAL}(?:[+-]{_REAL}j)?|[+-]?{_REAL}j)$"
DENOMINATOR = "(?:/0*[1-9][0-9]*)?"

# -- dates and times ------------------------------------------------------------------------------------------

_SIXTY, _HOUR = "[0-5][0-9]", "(?:[01][0-9]|2[0-3])"
_FOURTH = "(?:0[48]|[2468][048]|[13579][26])"
_DATE = (
    "(?:(?!0000)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    f"|(?:0[13578]|1[02])-31)|(?:[0-9]{{2}}{_FOURTH}|{_FOURTH}00)-02-29)"
)
_CLOCK = rf"{_HOUR}:{_SIXTY}:{_SIXTY}(?:\.[0-9]{{1,6}})?"
NAIVE = f"^{_DATE}T{_CLOCK}$"
NAIVE_TIME = f"^{_CLOCK}$"

#: Years are of 365 days, months of 30, and there are at most 999,999,999 days.
_LATE = rf"(?:T(?=[0-9])(?:{_HOUR}H|[0-9]H)?(?:{_SIXTY}M|[0-9]M)?(?:(?:{_SIXTY}|[0-9])(?:\.[0-9]{{1,6}})?S)?)?"
_DAY_OF_YEAR = "(?:(?:[1-9]|[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-4])D)?"
_SHORT = (
    r"(?=[0-9T])(?:[0-9]{1,6}W|(?:[0-9]{1,6}Y)?(?:[0-9]{1,6}M)?(?:[0-9]{1,8}D)?"
    r"(?:T(?=[0-9])(?:[0-9]{1,5}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,8}(?:\.[0-9]{1,6})?S)?)?)"
)
_LONG = (
    f"(?:1[0-9]{{6}}|2[0-6][0-9]{{5}}|27[0-2][0-9]{{4}}|273[0-8][0-9]{{3}}|2739[0-6][0-9]{{2}}|27397[01][0-9]"
    f"|273972[0-5])Y{_DAY_OF_YEAR}{_LATE}|2739726Y(?:[1-8]D)?{_LATE}|2739726Y9D"
)


def duration(*, is_positive: bool) -> str:
    """Durations that fit into a `timedelta`, as ISO 8601 writes them."""
    return f"^(?:{'' if is_positive else '-?'}P(?:{_SHORT}|{_LONG})|P2739726Y9D{_LATE})$"


def dates(bounds: dict[str, str]) -> str:
    """Dates within bounds, by the names of `Bounds`; each as it is written, all as long."""
    looks = []
    for name, text in bounds.items():
        found = [] if name in ("gt", "lt") else [text]
        for at, char in enumerate(text):
            if char.isdigit():
                low, high = (int(char) + 1, 9) if name in ("ge", "gt") else (0, int(char) - 1)
                found += [f"{text[:at]}[{low}-{high}]"] if low <= high else []
        looks.append(f"(?={'|'.join(found)})")
    return f"^{''.join(looks)}(?!0000)"


# -- bytes ----------------------------------------------------------------------------------------------------


def base64(letters: str, least: int, most: int | None, gap: str = "") -> str:
    """Base64 of so many bytes, padded; ``letters``: the last two of the alphabet, ``gap``: what may stand between."""
    letter = f"[A-Za-z0-9{letters}]"
    group = f"(?:{letter}{{4}}{gap})"
    # Bits that stand for nothing are 0.
    ends = "", f"{letter}[AQgw]==", f"{letter}{{2}}[AEIMQUYcgkosw048]="
    found = []
    for extra, end in enumerate(ends):
        low = max(0, -(-(least - extra) // 3))
        high = "" if most is None else (most - extra) // 3
        if high == "" or low <= int(high):
            found.append(f"{group}{{{low},{high}}}{end}")
    return f"^(?:{'|'.join(found)}){gap}$" if found else "[^\\s\\S]"


def hexadecimal(least: int, most: int | None) -> str:
    """Two digits a byte."""
    return f"^(?:[0-9A-Fa-f]{{2}}){{{least},{'' if most is None else most}}}$"


# -- addresses ------------------------------------------------------------------------------------------------

_PORT = "(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_PERCENT = "%[0-9A-Fa-f]{2}"
_CHARS = f"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|{_PERCENT})*"
_QUERY = f"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{_PERCENT})*"
_USER = f"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|{_PERCENT})+@"
_TAIL = rf"(?:/{_CHARS})?(?:\?{_QUERY})?(?:#{_QUERY})?"
_GROUP = "[0-9A-Fa-f]{1,4}"
_SHORTENED = "|".join(f"(?:{_GROUP}:){{1,{before}}}(?::{_GROUP}){{1,{7 - before}}}" for before in range(1, 7))
_IPV6 = rf"\[(?:(?:{_GROUP}:){{7}}{_GROUP}|(?:{_GROUP}:){{1,7}}:|{_SHORTENED}|:(?:(?::{_GROUP}){{1,7}}|:))\]"

#: A label that is not Punycode; the last one of a name begins with a letter, so that it is no number.
_LABEL = "(?![Xx][Nn]--)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_TOP = "(?![Xx][Nn]--)[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?:(?:{_LABEL}\.)*{_TOP}|{_OCTET}(?:\.{_OCTET}){{3}}|{_IPV6})"
_PLACE = f"{_HOST}(?::{_PORT})?"

#: The schemes whose hosts are names of the internet.
_SPECIAL = ("http", "https", "ws", "wss", "ftp", "file")


def urls(schemes: Iterable[str] | None, *, several: bool = False) -> str:
    """URLs that WHATWG's rules and RFC 3986 both take, with a host unless the scheme is ``file`` or any."""
    user = f"(?:{_USER.replace(',', '')})?"
    places = user + _PLACE + (f"(?:,{_PLACE})*" if several else "") + _TAIL
    if schemes is not None:
        named = "|".join(scheme.replace("+", r"\+").replace(".", r"\.") for scheme in schemes)
        return f"^(?:{named})://{f'/{_CHARS}' if set(schemes) == {'file'} else places}$"
    named = "|".join("".join(f"[{letter.upper()}{letter}]" for letter in scheme) for scheme in _SPECIAL)
    scheme = "[A-Za-z][A-Za-z0-9+.-]*:"
    other = rf"(?!(?:{named}):){scheme}(?:(?!//)|///){_CHARS}(?:\?{_QUERY})?(?:#{_QUERY})?"
    return f"^(?:(?![Ff][Ii][Ll][Ee]:){scheme}//{places}|file:///{_CHARS}|{other})$"


_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_RESERVED = ("arpa", "invalid", "local", "localhost", "onion", "test")
_MAIL_LABEL = "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,31}"
_NOT_RESERVED = "|".join("".join(f"[{letter.upper()}{letter}]" for letter in name) for name in _RESERVED)
_MAIL = rf"{_ATOM}(?:\.{_ATOM})*@(?:{_MAIL_LABEL}\.)+(?!(?:{_NOT_RESERVED})(?:>|$))[A-Za-z]{{2,63}}"

#: E-mail addresses as `email_validator` takes them, in ASCII; with a name before them.
EMAIL = f"^{_MAIL}$"
NAMED_EMAIL = rf"^(?:{_MAIL}|(?:[A-Za-z0-9_.!#$%&'*+/=?^`{{|}}~-]+ )+<{_MAIL}>)$"

# -- text -----------------------------------------------------------------------------------------------------

_SPACE = r"\s\x1c-\x1f\x85"

#: Strings that stripping leaves as they are.
STRIPPED = rf"^(?:[^{_SPACE}](?:[\s\S]*[^{_SPACE}])?)?$"

#: `pydantic.ByteSize`: a number and a unit.
_BITS = "[Bb](?:[Ii][Tt])?"
SIZE = rf"^\s*[0-9]*\.?[0-9]+\s*(?:[KMGTPEkmgtpe](?:[Ii]?{_BITS})?|{_BITS})?\s*$"

#: What Unicode's classes of Rust and Python have beyond those of ECMA-262.
_MORE = {
    "d": r"\p{Nd}",
    "s": r"\x1c-\x1f\x85",
    "w": r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\u200c\u200d\u24b6-\u24e9"
    "\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189",
}

#: White space of all three.
_SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_TOKEN = re.compile(r"\\[xu]\{([0-9A-Fa-f]+)\}|\\[pP][A-Z]|\\.|\[\^?|\]|\(\?P<(?=[^=])|&&|--|~~|\[:|.", re.DOTALL)
_FLAGS = re.compile(r"\(\?([ims]+)\)")


def portable(pattern: str) -> tuple[str, str]:
    """A pattern of Rust or Python in the syntax of ECMA-262, and what of it may be read otherwise there.

    It matches no text that the pattern does not: negated classes leave out what either language leaves out.
    """
    flags = _FLAGS.match(pattern)
    if flags:
        pattern = pattern[flags.end() :]
    out: list[str] = []
    unsure, opened = "", -1
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        letter = text[1:] if text[0] == "\\" else ""
        if token[1]:
            code = int(token[1], 16)
            text = chr(code) if code > 0xFFFF else f"\\u{code:04x}"
        elif text[:2] in (r"\p", r"\P") and len(text) == 3:
            text = f"{text[:2]}{{{text[2]}}}"
        elif opened >= 0:
            if text == "]":
                text, opened = (text, -1) if len(out) > opened + 1 else (r"\]", opened)
            elif text in ("[", "[:", "&&", "--", "~~", r"\S", r"\D", r"\W", r"\b"):
                unsure = f"what {text} is in a set"
            elif letter in _MORE and out[opened] == "[^":
                text += _MORE[letter]
            elif letter == "s":
                text = _SPACES
        elif text in ("[", "[^"):
            opened = len(out)
        elif letter.lower() in _MORE and letter.isupper():
            text = f"[^\\{letter.lower()}{_MORE[letter.lower()]}]"
        elif letter == "s":
            text = f"[{_SPACES}]"
        elif letter in ("b", "B"):
            unsure = "its word boundaries"
        elif letter in ("A", "z", "Z"):
            text = "^" if letter == "A" else "$"
        elif text == "(?P<":
            text = "(?<"
        out.append(text)
    found = "".join(out)
    return (f"(?{flags[1]}:{found})" if flags else found), unsure
