"""What a person looks at: an `Explanation` as lines, for a terminal, and as HTML.

Whatever a definition or a text holds is shown as it is and never run: Rich's markup is not read, HTML is escaped, and
what no terminal should be sent is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from .values import Explanation, Reason

if TYPE_CHECKING:
    from rich.console import Group

#: Characters that are shown around the place, of other texts; alternatives, and levels of them.
_CONTEXT, _LONGEST, _MOST_BRANCHES, _MOST_LEVELS = 36, 200, 12, 8


class _Line(NamedTuple):
    """A line: its indentation, its name, its text, and its style."""

    level: int
    name: str
    text: str
    style: str = ""


def summary(explanation: Explanation) -> str:
    """One line, for a log or an error's message."""
    if explanation.accepted:
        return "accepted"
    reasons = "; ".join(_said(reason) for reason in explanation.reasons[:3])
    at = f"line {explanation.line}, column {explanation.column}"
    return _shown(f"{_what_died(explanation)} at {at}: {reasons}", 3 * _LONGEST)


def plain(explanation: Explanation) -> str:
    """Lines for a person, without colours."""
    return "\n".join(map(_plain, _lines(explanation)))


def because(explanation: Explanation) -> list[str]:
    """The lines that say why, without colours."""
    return [_plain(line) for reason in explanation.reasons for line in _of(reason, 0)]


def _plain(line: _Line) -> str:
    return f"{'  ' * line.level}{line.name}{': ' if line.name else ''}{line.text}".rstrip()


def rich(explanation: Explanation) -> Group:
    """The same in colours."""
    from rich.console import Group
    from rich.text import Text

    return Group(*(
        Text.assemble("  " * each.level, (each.name, "bold"), ": " if each.name else "", (each.text, each.style))
        for each in _lines(explanation)
    ))  # fmt: skip


def html(explanation: Explanation) -> str:
    """The same as HTML, every character of a text or a definition escaped."""
    rows = [
        f'<div style="margin-left:{2 * each.level}ch;white-space:pre-wrap">'
        + (f"<b>{escape(each.name)}</b>: " if each.name else "")
        + f"<span{_COLOURS.get(each.style, '')}>{escape(each.text)}</span></div>"
        for each in _lines(explanation)
    ]
    return f'<div class="structgen-explanation" style="font-family:monospace">{"".join(rows)}</div>'


_COLOURS = {
    "red": ' style="color:#b00020"', "green": ' style="color:#1b7f3b"', "cyan": ' style="color:#0b6e8a"',
}  # fmt: skip


def _lines(explanation: Explanation) -> Iterator[_Line]:
    if explanation.accepted:
        yield _Line(0, "accepted", _shown(explanation.text[-_CONTEXT:]), "green")
        return
    at = f"byte {explanation.consumed}, line {explanation.line}, column {explanation.column}"
    yield _Line(0, "refused", f"{_what_died(explanation)} ({at})", "red")
    before, after = _around(explanation)
    yield _Line(2, "", before + after)
    yield _Line(2, "", " " * len(before) + "^", "red")
    if explanation.writing:
        yield _Line(0, "writing", _shown(explanation.writing))
    for reason in explanation.reasons:
        yield from _of(reason, 0)
    expected = [*map(_shown, explanation.expected), *(["the end"] if explanation.can_end else [])]
    if expected:
        yield _Line(0, "expected", "  ".join(expected), "green")
    if explanation.completion:
        yield _Line(0, "shortest ending", _shown(explanation.completion), "green")
    if explanation.completion_tokens:
        yield _Line(0, "in tokens", " ".join(map(str, explanation.completion_tokens[:32])))
    for note in explanation.notes:
        yield _Line(0, "note", _shown(note))


def _of(reason: Reason, level: int) -> Iterator[_Line]:
    yield _Line(level, "because", _said(reason), "cyan")
    if level >= _MOST_LEVELS and reason.alternatives:
        yield _Line(level + 1, "", "…")
        return
    for number, branch in enumerate(reason.alternatives[:_MOST_BRANCHES]):
        yield _Line(level + 1, f"alternative {number + 1}", "")
        for each in branch:
            yield from _of(each, level + 2)
    if len(reason.alternatives) > _MOST_BRANCHES:
        yield _Line(level + 1, "", f"… {len(reason.alternatives) - _MOST_BRANCHES} more alternatives")


def _said(reason: Reason) -> str:
    where = ", ".join(reason.where[:8]) + (f", and {len(reason.where) - 8} more" if len(reason.where) > 8 else "")
    of = f" (value of {reason.path})" if reason.path and reason.kind != "alternatives" else ""
    return _shown(f"{where}: {reason.what}{of}" if where else f"{reason.what}{of}", 4 * _LONGEST)


def _what_died(explanation: Explanation) -> str:
    if explanation.died_at is None:
        if explanation.token_id is None:
            return "the text ends too early"
        return f"token {explanation.token_id} is not allowed"
    character = explanation.data[explanation.consumed : explanation.consumed + 4].decode("utf-8", "ignore")[:1]
    whole = character and explanation.data.startswith(character.encode(), explanation.consumed)
    byte = explanation.data[explanation.consumed]
    found = f"{_shown(repr(character))} does not fit" if whole else f"the byte {byte:#04x} does not fit"
    of = "" if explanation.token_id is None else f" in token {explanation.token_id}, at its byte {explanation.died_at}"
    return found + of


def _around(explanation: Explanation) -> tuple[str, str]:
    """The line that the place is in, before and behind it, as far as it is shown."""
    before = explanation.data[: explanation.consumed].decode("utf-8", "replace").rpartition("\n")[2]
    after = explanation.data[explanation.consumed :][: 4 * _CONTEXT].decode("utf-8", "replace").partition("\n")[0]
    return _clean(before[-_CONTEXT:]), _clean(after[:_CONTEXT])


def _shown(text: str, most: int = _LONGEST) -> str:
    text = _clean(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _clean(text: str) -> str:
    """A text without what moves cursors: control characters take a cell each."""
    return "".join(c if c.isprintable() else "�" for c in text)
