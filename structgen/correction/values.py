"""What comes out of correcting a text: `Correction`, with a `CorrectionEvent` for each mistake."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from io import StringIO
from pathlib import Path as File
from typing import TYPE_CHECKING, Literal

from ..errors import StructgenError
from ..system.types import JsonMap

if TYPE_CHECKING:
    from rich.text import Text

#: Who wrote a piece: the model; the draft; the definition, as one thing alone may follow, or as the nearest candidate
#: or the shortest ending; nobody, for what was dropped.
Source = Literal["model", "draft", "forced", "nearest", "ending", "dropped"]

#: Who ended a text; see `Correction`.
End = Literal["model", "definition", "ending", ""]

_STYLES: dict[Source, str] = {
    "model": "", "draft": "green", "forced": "cyan", "nearest": "green", "ending": "green", "dropped": "red strike",
}  # fmt: skip

_PAGE = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A corrected text</title></head>'
    '<body><pre style="white-space:pre-wrap">{code}</pre></body></html>\n'
)


@dataclass(frozen=True)
class Piece:
    """A piece of a text, and who wrote it."""

    source: Source
    text: str


@dataclass(frozen=True)
class CorrectionEvent:
    """A mistake, and what was done about it.

    Parameters
    ----------
    number:
        From 1 on.
    broken_at:
        Bytes of the longest valid prefix.
    kept:
        Bytes of it that were kept: it may be gone back to the beginning of the word that it ends in.
    dropped:
        What was written behind, as far as it was read.
    candidates:
        Literals that may stand there.
    choice:
        What was put there instead, with what must follow it.
    chosen_by:
        ``"draft"``; ``"nearest"``: the candidate that is most like what was dropped; ``"ending"``: the begin of the
        shortest ending.
    calls:
        Calls of the model so far.
    milliseconds:
        What finding it took, the draft included.
    tokens:
        What a local draft wrote for it, and for looking beyond.
    """

    number: int
    broken_at: int
    kept: int
    dropped: str
    candidates: tuple[str, ...]
    choice: str
    chosen_by: Source
    calls: int
    milliseconds: float
    tokens: int = 0


@dataclass(frozen=True)
class Correction:
    """A text that was corrected while it was written.

    Parameters
    ----------
    text:
        Valid under the definition; where `complete` is False, as the beginning of a text.
    complete:
        Whether it is a whole text of the definition.
    ended_by:
        ``"model"``: it ended there. ``"definition"``: nothing more may follow. ``"ending"``: its corrections, calls
        or time ran out, or the model said nothing more, and the shortest ending was put behind its text. ``""``: the
        text is not complete.
    events:
        The mistakes.
    pieces:
        The text in pieces, with what was dropped from it.
    replies:
        What the model said, call by call, as far as it was read.
    """

    text: str
    complete: bool
    ended_by: End
    events: tuple[CorrectionEvent, ...]
    pieces: tuple[Piece, ...] = field(repr=False)
    replies: tuple[str, ...] = field(repr=False)

    @property
    def calls(self) -> int:
        """Calls of the model."""
        return len(self.replies)

    def to_json(self) -> JsonMap:
        """All of it, for a log; `from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: str | JsonMap) -> Correction:
        """Read what `to_json` gave, or its JSON text."""
        found = dict(json.loads(data) if isinstance(data, str) else data)
        events = (CorrectionEvent(**{**each, "candidates": tuple(each["candidates"])}) for each in found["events"])
        pieces = (Piece(**each) for each in found["pieces"])
        return cls(**{**found, "events": (*events,), "pieces": (*pieces,), "replies": (*found["replies"],)})

    # -- to be looked at -------------------------------------------------------------------------------

    def __rich__(self) -> Text:
        """The text: what was dropped struck out, what was put there in colour."""
        from rich.text import Text

        return Text.assemble(*((each.text, _STYLES[each.source]) for each in self.pieces))

    def to_html(self, page: str = _PAGE) -> str:
        """The same as a page of its own, or as what has ``{code}`` in it."""
        from rich.console import Console

        console = Console(record=True, file=StringIO(), width=120)
        console.print(self.__rich__())
        return console.export_html(code_format=page, inline_styles=True)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `to_html` to a file."""
        File(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.to_html('<pre style="white-space:pre-wrap">{code}</pre>')


class CorrectionError(StructgenError):
    """A text that could not be completed, or whose model failed.

    Parameters
    ----------
    correction:
        What there was so far, which `structgen.correct` can go on with (``resume=``).
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "", correction: Correction) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.correction = correction
