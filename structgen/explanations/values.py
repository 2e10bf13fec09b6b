"""What comes out of explaining: an `Explanation`, with a `Reason` for each thing that stands against a text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..system.types import Foreign, JsonMap

if TYPE_CHECKING:
    from rich.console import Group

#: What stands against a text: a schema's keyword; several that no value satisfies together; alternatives, none of
#: which is left; how a definition's options have JSON written; JSON's own syntax; a grammar's terminals; a pattern's
#: characters; a rule of GBNF; a format of a structural tag; a token as such; tokens that are left; that more must
#: follow; or nothing that could be told.
ReasonKind = Literal[
    "keyword", "conflict", "alternatives", "option", "json", "terminal", "pattern", "rule", "tag", "token",
    "max_tokens", "incomplete", "unknown",
]  # fmt: skip


@dataclass(frozen=True)
class Reason:
    """One thing that stands against a text.

    Parameters
    ----------
    kind:
        What it is.
    where:
        The places in the definition that say so: JSON pointers of keywords (``"/properties/age/maximum"``), columns
        of a pattern, a grammar's lines and columns, names of options. Of a conflict all of those that together
        refuse what each of them alone would take.
    what:
        What they say, for a person to read.
    path:
        JSON pointer of the value in the text that it is about.
    alternatives:
        Where there was a choice, for each branch all that stands against it; one branch would have been enough.
    """

    kind: ReasonKind
    where: tuple[str, ...]
    what: str
    path: str = ""
    alternatives: tuple[tuple[Reason, ...], ...] = ()


class Findings(NamedTuple):
    """What a reader of a definition finds: reasons, what was being written, what was left out."""

    reasons: tuple[Reason, ...] = ()
    writing: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The reasons why a token or a text is refused, or its acceptance.

    Parameters
    ----------
    accepted:
        For a token: whether the guide accepts it. For a text: whether it is a whole text of the definition.
    text:
        The text, including the text before it, as far as it is UTF-8.
    consumed:
        Bytes of the text that some whole text begins with. The next byte is the refused one.
    token_id:
        The token that was asked about; None for a text.
    died_at:
        The position of the refused byte within that token or text; None where no byte is refused.
    line, column:
        The place of that byte, from 1; columns are characters.
    writing:
        The value being written there, such as ``"the value of /age: an integer, maximum 120"``.
    reasons:
        The reasons; all of them apply.
    expected:
        Possible continuations: literal strings, and descriptions of characters such as ``"[1-9]"``.
    can_end:
        Whether the text may end there.
    completion:
        The shortest known ending behind the consumed text; None where none is known.
    completion_tokens:
        The same, split by the tokenizer; None where no tokenizer is known.
    other_tokens:
        Allowed tokens with the same text as the refused one. None where there are none.
    notes:
        Limits of the search that were reached.
    data:
        The bytes of the text.
    """

    accepted: bool
    text: str
    consumed: int
    token_id: int | None = None
    died_at: int | None = None
    line: int = 1
    column: int = 1
    writing: str = ""
    reasons: tuple[Reason, ...] = ()
    expected: tuple[str, ...] = ()
    can_end: bool = False
    completion: str | None = None
    completion_tokens: tuple[int, ...] | None = None
    other_tokens: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    data: bytes = field(default=b"", repr=False)

    def to_json(self) -> JsonMap:
        """Return the explanation as a dict, for a log or a reply. Bytes that are not UTF-8 are replaced."""
        found = asdict(self)
        del found["data"]
        return found

    @classmethod
    def from_json(cls, data: str | JsonMap) -> Explanation:
        """Read the output of `to_json`, or its JSON text: ``data``."""
        found = dict(json.loads(data) if isinstance(data, str) else data)
        for name in ("expected", "notes", "completion_tokens", "other_tokens"):
            found[name] = None if found.get(name) is None else tuple(found[name])
        reasons = tuple(_reason(each) for each in found["reasons"])
        return cls(**{**found, "reasons": reasons, "data": found["text"].encode("utf-8", "replace")})

    def summary(self) -> str:
        """Return one line, for a log or an error message."""
        return _summary(self)

    def because(self) -> list[str]:
        """The lines of `__str__` that say why."""
        return _because(self)

    def __str__(self) -> str:
        return _plain_lines(self)

    def __rich__(self) -> Group:
        return _rich(self)

    def _repr_html_(self) -> str:
        return _html(self)


def _reason(found: Foreign) -> Reason:
    """A reason from JSON, whose nesting is that of the definition's alternatives."""
    branches = tuple(tuple(map(_reason, branch)) for branch in found["alternatives"])
    return Reason(**{**found, "where": tuple(found["where"]), "alternatives": branches})


# -- what a person looks at, in which nothing of a text or a definition is run ------------------------------------

#: Characters that are shown around the place, of other texts; alternatives, and levels of them.
_CONTEXT, _LONGEST, _MOST_BRANCHES, _MOST_LEVELS = 36, 200, 12, 8


class _Line(NamedTuple):
    """A line: its indentation, its name, its text, and its style."""

    level: int
    name: str
    text: str
    style: str = ""


def _summary(explanation: Explanation) -> str:
    """One line, for a log or an error's message."""
    if explanation.accepted:
        return "accepted"
    reasons = "; ".join(_said(reason) for reason in explanation.reasons[:3])
    at = f"line {explanation.line}, column {explanation.column}"
    return _shown(f"{_what_died(explanation)} at {at}: {reasons}", 3 * _LONGEST)


def _plain_lines(explanation: Explanation) -> str:
    """Lines for a person, without colours."""
    return "\n".join(map(_plain, _lines(explanation)))


def _because(explanation: Explanation) -> list[str]:
    """The lines that say why, without colours."""
    return [_plain(line) for reason in explanation.reasons for line in _of(reason, 0)]


def _plain(line: _Line) -> str:
    return f"{'  ' * line.level}{line.name}{': ' if line.name else ''}{line.text}".rstrip()


def _rich(explanation: Explanation) -> Group:
    """The same in colours."""
    from rich.console import Group
    from rich.text import Text

    return Group(
        *(
            Text.assemble("  " * each.level, (each.name, "bold"), ": " if each.name else "", (each.text, each.style))
            for each in _lines(explanation)
        )
    )


def _html(explanation: Explanation) -> str:
    """The same as HTML, every character of a text or a definition escaped."""
    rows = [
        f'<div style="margin-left:{2 * each.level}ch;white-space:pre-wrap">'
        + (f"<b>{escape(each.name)}</b>: " if each.name else "")
        + f"<span{_COLOURS.get(each.style, '')}>{escape(each.text)}</span></div>"
        for each in _lines(explanation)
    ]
    return f'<div class="structgen-explanation" style="font-family:monospace">{"".join(rows)}</div>'


_COLOURS = {"red": ' style="color:#b00020"', "green": ' style="color:#1b7f3b"', "cyan": ' style="color:#0b6e8a"'}


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
    following = (repr(each) if each != each.strip() else each for each in explanation.expected)
    expected = [*map(_shown, following), *(["the end"] if explanation.can_end else [])]
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
