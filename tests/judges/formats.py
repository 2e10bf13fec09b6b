"""The package jsonschema as a judge of formats, which is told what it misses of their RFCs."""

from __future__ import annotations

import datetime
import ipaddress
import re
import uuid
from collections.abc import Callable

import pytest

jsonschema = pytest.importorskip("jsonschema", reason="the judge is not installed: pip install 'jsonschema[format]'")

#: What the judge refuses, and RFC 6570 has: operators that are reserved, names that begin with ``%``, long prefixes.
SLIPS_OF_TEMPLATES = (r"\{[=,!@|]", "{"), (r"([{,+#./;?&])%[0-9A-Fa-f]{2}", r"\1a"), (r"(:[0-9]{3})[0-9]", r"\1")

_SECONDS = re.compile(r"([0-9-]*)[Tt]?([0-9]{2}):([0-9]{2}):60(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))")


#: Offsets of the tz database.
ZONES = (
    *(f"-{hour:02}:00" for hour in range(13)), "-09:30", "-03:30", "-02:30",
    *(f"+{hour:02}:00" for hour in range(15)), "+03:30", "+04:30", "+05:30", "+06:30", "+09:30", "+10:30",
)  # fmt: skip


def is_leap_second(text: str) -> bool:
    """RFC 3339, 5.7: whether a text is the last minute of a day in UTC, if it has a date that of June or December."""
    found = _SECONDS.fullmatch(text)
    if found is None:
        return False
    date, hour, minute, sign, *offset = found.groups(default="0")
    year = "2000" if date.startswith("0000-") else date[:4]
    try:
        day = datetime.date.fromisoformat(year + date[4:] if date else "2000-12-31")
    except ValueError:
        return False
    if int(hour) > 23 or int(minute) > 59 or int(offset[0]) > 23 or int(offset[1]) > 59 or day.year in (1, 9999):
        return False
    there = datetime.datetime.combine(day, datetime.time(int(hour), int(minute)))
    shift = datetime.timedelta(hours=int(offset[0]), minutes=int(offset[1]))
    utc = there + shift if sign == "-" else there - shift
    return (utc.hour, utc.minute) == (23, 59) and (not date or (utc.month, utc.day) in ((6, 30), (12, 31)))


def has_zone(text: str) -> bool:
    """Whether a time's offset is one that a time zone had in 2024, but for those with quarters of an hour."""
    offset = "+00:00" if text[-1:] in ("Z", "z") else text[-6:]
    return offset in ZONES


def as_judged(name: str, text: str) -> str:
    """A text that the judge takes if it is right in taking this one by the RFC."""
    if name in ("time", "date-time") and is_leap_second(text):
        text = text.replace(":60", ":59", 1)
    if name in ("date", "date-time") and text.startswith("0000-"):
        text = "2000" + text[4:]  # whose days are the same
    if name == "uri-template":
        for pattern, instead in SLIPS_OF_TEMPLATES:
            text = re.sub(pattern, instead, text)
    return text


class _Formats(jsonschema.FormatChecker):  # type: ignore[misc, name-defined]
    def check(self, instance: object, format: str) -> None:
        super().check(as_judged(format, instance) if isinstance(instance, str) else instance, format)


def _of_python(read: Callable[[str], object]) -> tuple[Callable[[object], bool], type[Exception]]:
    return lambda text: not isinstance(text, str) or read(text) is not None, ValueError


def _of_version(version: int) -> Callable[[str], object]:
    return lambda text: True if uuid.UUID(text).version == version else uuid.UUID("")


#: The formats of the latest draft, and Pydantic's, as the standard library reads them.
FORMATS = _Formats()
FORMATS.checkers = {
    **jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers,
    **{f"uuid{version}": _of_python(_of_version(version)) for version in (1, *range(3, 9))},
    **{f"ipv4{kind.lower()}": _of_python(getattr(ipaddress, f"IPv4{kind}")) for kind in ("Network", "Interface")},
    **{f"ipv6{kind.lower()}": _of_python(getattr(ipaddress, f"IPv6{kind}")) for kind in ("Network", "Interface")},
    **{f"ipvany{kind}": _of_python(getattr(ipaddress, f"ip_{kind}")) for kind in ("address", "network", "interface")},
}
