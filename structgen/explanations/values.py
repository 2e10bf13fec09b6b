"""What comes out of explaining: an `Explanation`, with a `Reason` for each thing that stands against a text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..system.types import Foreign, JsonMap

if TYPE_CHECKING:
    from rich.console import Group

#: What stands against a text: a schema's keyword; several that no value satisfies together; alternatives, none of which
#: is left; how a definition's options have JSON written; JSON's own syntax; a grammar's terminals; a pattern's
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
    """Why a token or a text is refused, or that it is not.

    Parameters
    ----------
    accepted:
        Of a token: whether the guide accepts it. Of a text: whether it is a whole text of the definition.
    text:
        The text, what was written before included, as far as it is UTF-8.
    consumed:
        Bytes of it that some whole text begins with; the byte behind them is the one it dies at.
    token_id:
        The token that was asked about, None for a text.
    died_at:
        The byte within that token, or within the text that was asked about; None where no byte is refused.
    line, column:
        The place of that byte, from 1 on; columns are characters.
    writing:
        What was being written there, such as ``"the value of /age: an integer, maximum 120"``.
    reasons:
        What stands against it; all of them do.
    expected:
        What may come instead: literal strings, and descriptions of other characters, such as ``"[1-9]"``.
    can_end:
        Whether the text may end there.
    completion:
        The shortest ending that is known behind what was consumed; None where none is.
    completion_tokens:
        The same as the tokenizer splits it; None where no tokenizer is known.
    other_tokens:
        Tokens that are allowed and spell the same text as the token that is not: of a special token its name, of
        another one where only that token itself is refused. None where there are none.
    notes:
        What was left out, and why.
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
        """All of it, for a log or a reply; `from_json` reads it. Bytes that are not UTF-8 are replaced."""
        found = asdict(self)
        del found["data"]
        return found

    @classmethod
    def from_json(cls, data: str | JsonMap) -> Explanation:
        """Read what `to_json` gave, or its JSON text."""
        found: JsonMap = dict(json.loads(data) if isinstance(data, str) else data)
        for name in ("expected", "notes", "completion_tokens", "other_tokens"):
            found[name] = None if found.get(name) is None else tuple(found[name])
        reasons = tuple(_reason(each) for each in found["reasons"])
        return cls(**{**found, "reasons": reasons, "data": found["text"].encode("utf-8", "replace")})

    def summary(self) -> str:
        """One line, for a log or an error's message."""
        from .rendering import summary

        return summary(self)

    def because(self) -> list[str]:
        """The lines of `__str__` that say why."""
        from .rendering import because

        return because(self)

    def __str__(self) -> str:
        from .rendering import plain

        return plain(self)

    def __rich__(self) -> Group:
        from .rendering import rich

        return rich(self)

    def _repr_html_(self) -> str:
        from .rendering import html

        return html(self)


def _reason(found: Foreign) -> Reason:
    """A reason from JSON, whose nesting is that of the definition's alternatives."""
    branches = tuple(tuple(map(_reason, branch)) for branch in found["alternatives"])
    return Reason(**{**found, "where": tuple(found["where"]), "alternatives": branches})
