"""Where a text is in a reply: behind a preface, in a fence, up to a stop string. Read piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeAlias

from ..errors import ArgumentError

#: Characters of a preface, behind which a part is no longer looked for.
_MOST_PREFACE = 1 << 16

#: How a part is found: in a fence of Markdown; from the first brace or bracket on; by a function of a whole reply.
Extract: TypeAlias = "Literal['fence', 'json'] | Callable[[str], str] | None"

_OPENING = re.compile(r"^[ \t]*(?:```+|~~~+)[^\n`]*\n", re.MULTILINE)
_JSON = re.compile(r"[{\[]")


class Part(Protocol):
    """Finds a part of one reply."""

    @property
    def is_over(self) -> bool:
        """Whether what follows is no part of it."""

    def feed(self, text: str) -> str:
        """What is certain to be of the part, of a piece of the reply and what was held back before it."""

    def finish(self) -> str:
        """The rest of it, when the reply has ended."""


class Until:
    """What stands before the first of some strings, all of it where there is none of them."""

    def __init__(self, stops: Iterable[str]) -> None:
        stops = sorted(stops, key=len, reverse=True)
        begins = "|".join("(?:".join(map(re.escape, stop)) + ")?" * (len(stop) - 1) for stop in stops)
        self._stop = re.compile("|".join(map(re.escape, stops))) if stops else None
        self._begun = re.compile(rf"(?:{begins})\Z")
        self._held = ""
        self.is_over = False

    def feed(self, text: str) -> str:
        """What stands before a stop string, or before what can become one."""
        if self.is_over or self._stop is None:
            return "" if self.is_over else text
        text = self._held + text
        if found := self._stop.search(text):
            self.is_over, self._held = True, ""
            return text[: found.start()]
        begun = self._begun.search(text)
        end = begun.start() if begun else len(text)
        self._held = text[end:]
        return text[:end]

    def finish(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return held


class Behind:
    """What stands behind the first match of a pattern; all of a reply where there is none.

    Parameters
    ----------
    opening:
        The pattern.
    within:
        What ends the part.
    keeps:
        Whether the match is of the part.
    at_once:
        Whether the reply goes on with the part where it does not begin with a match: a reply that continues one.
    """

    def __init__(self, opening: re.Pattern[str], within: Part, *, keeps: bool, at_once: bool) -> None:
        self._opening, self._within, self._keeps, self._at_once = opening, within, keeps, at_once
        self._held = ""
        self._is_open = False

    @property
    def is_over(self) -> bool:
        """Whether what follows is no part of it."""
        return self._within.is_over

    def feed(self, text: str) -> str:
        """What is certain to be of the part."""
        if self._is_open:
            return self._within.feed(text)
        # An opening ends with the new text, or with a line break in it.
        start = self._held.rfind("\n") + 1 if "\n" in text else len(self._held)
        self._held += text
        found = self._opening.match(self._held) if self._at_once else self._opening.search(self._held, start)
        is_part = self._at_once and self._held.lstrip()[:1] not in ("", "`", "~")
        if found is None and not is_part and len(self._held) < _MOST_PREFACE:
            return ""
        self._is_open = True
        start = 0 if found is None else found.start() if self._keeps else found.end()
        return self._within.feed(self._held[start:])

    def finish(self) -> str:
        """The rest of it, when the reply has ended; all of the reply where nothing opened the part."""
        return self._within.finish() if self._is_open else self._within.feed(self._held) + self._within.finish()


class Extracted:
    """What a function makes of a whole reply."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function
        self._pieces: list[str] = []
        self.is_over = False

    def feed(self, text: str) -> str:
        """Nothing: the reply has not ended."""
        self._pieces.append(text)
        return ""

    def finish(self) -> str:
        """What the function says."""
        return self._function("".join(self._pieces))


def part_of(extract: Extract, stop: Iterable[str], *, continues: bool) -> Part:
    """What finds the part in a reply, which ``continues`` what was kept of earlier ones. Raises `ArgumentError`."""
    if callable(extract):
        return Extracted(extract)
    if extract == "fence":
        return Behind(_OPENING, Until(["\n```", "\n~~~", *stop]), keeps=False, at_once=continues)
    if extract == "json":
        return Until(stop) if continues else Behind(_JSON, Until(stop), keeps=True, at_once=False)
    if extract is not None:
        raise ArgumentError(f"there is no extract {extract!r}", remedy="Use 'fence', 'json', a function, or None.")
    return Until(stop)
