"""What comes out of correcting a text: `Correction`, with a `CorrectionEvent` for each mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import TYPE_CHECKING, Literal

from ..errors import StructgenError
from ..pages.page import Box, BoxChoice, BoxKind, Page, Pane, in_notebook, render
from ..storage import records
from ..system.types import JsonMap
from ..system.visible import visible

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

_ENDS: dict[End, str] = {
    "model": "the model", "definition": "the definition", "ending": "the shortest ending", "": "nobody, it goes on",
}  # fmt: skip

#: Candidates of a mistake that a page shows, and characters of what was dropped.
_MOST_CANDIDATES, _MOST_DROPPED = 50, 500

_KINDS: dict[Source, str] = {
    "model": "what the model wrote (line)",
    "draft": "chosen by the draft (line)",
    "forced": "nothing else was allowed (double line)",
    "nearest": "the nearest that was allowed (dashed line)",
    "ending": "the shortest ending (dashed line)",
    "dropped": "what the model wrote and was dropped (struck out)",
}


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
        The text, valid under the definition; if `complete` is False, the valid beginning of one.
    complete:
        Whether it is a whole text of the definition.
    ended_by:
        ``"model"``: the model ended it. ``"definition"``: nothing more may follow. ``"ending"``: a bound was
        reached, or the model wrote nothing more, and the shortest ending was appended. ``""``: the text is not
        complete.
    events:
        The mistakes.
    pieces:
        The text in pieces, with the parts that were dropped.
    replies:
        The replies of the model, call by call, as far as they were read.
    """

    text: str
    complete: bool
    ended_by: End
    events: tuple[CorrectionEvent, ...]
    pieces: tuple[Piece, ...] = field(repr=False)
    replies: tuple[str, ...] = field(repr=False)

    @property
    def calls(self) -> int:
        """Number of calls of the model."""
        return len(self.replies)

    def to_json(self) -> JsonMap:
        """Return the correction as a dict, for a log. `from_json` reads it."""
        return records.written(self)

    @classmethod
    def from_json(cls, data: str | bytes | JsonMap, *, where: str = "log") -> Correction:
        """Read the output of `to_json`, or its JSON text.

        Parameters
        ----------
        data:
            The dict or text.
        where:
            A name of the source, for errors.

        Raises
        ------
        FormatError
            For malformed data; names the field.
        """
        if isinstance(data, str | bytes):
            return records.read_text(cls, data, where)
        return records.read(cls, data, where)

    # -- to be looked at -------------------------------------------------------------------------------

    def __rich__(self) -> Text:
        """The text: what was dropped struck out, what was put there in colour."""
        from rich.text import Text

        return Text.assemble(*((each.text, _STYLES[each.source]) for each in self.pieces))

    def to_html(self) -> str:
        """Return the correction as an HTML page without external files, like that of a `Trace`."""
        return render(self._page())

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `to_html` to the file ``path``."""
        File(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return in_notebook(self._page())

    def _page(self) -> Page:
        there = {each.source for each in self.pieces}
        kinds = tuple(BoxKind(source, meaning) for source, meaning in _KINDS.items() if source in there)
        facts = (
            ("mistakes", f"{len(self.events):,}"),
            ("calls of the model", f"{self.calls:,}"),
            ("complete", "yes" if self.complete else "no"),
            ("ended by", _ENDS[self.ended_by]),
        )
        log = "\n".join("; ".join(f"{name}: {value}" for name, value in _facts(event)) for event in self.events)
        return Page("A corrected text", (), kinds, (Pane("The text", facts, tuple(self._boxes())),), text=log)

    def _boxes(self) -> Iterator[Box]:
        """The pieces; what was dropped has the mistakes at its place, and their candidates."""
        events: dict[int, list[CorrectionEvent]] = {}
        for event in self.events:
            events.setdefault(event.kept, []).append(event)
        written = 0
        for piece in self.pieces:
            is_dropped = piece.source == "dropped"
            mistakes = events.pop(written, []) if is_dropped else []
            facts = [("written by", _KINDS[piece.source].partition(" (")[0]), ("text", visible(piece.text))]
            facts += [fact for event in mistakes for fact in _facts(event)]
            names = dict.fromkeys(name for event in mistakes for name in event.candidates)
            choices = tuple(BoxChoice(visible(name), "allowed") for name in list(names)[:_MOST_CANDIDATES])
            yield Box(visible(piece.text), piece.source, tuple(facts), choices, is_dropped)
            written += 0 if is_dropped else len(piece.text.encode())


def _facts(event: CorrectionEvent) -> list[tuple[str, str]]:
    """What a page says of a mistake."""
    return [
        ("mistake", f"{event.number:,}"),
        ("dropped", visible(event.dropped[:_MOST_DROPPED])),
        ("valid up to", f"byte {event.broken_at:,}, kept up to {event.kept:,}"),
        ("put there", f"{visible(event.choice)}, by {event.chosen_by}"),
        ("calls so far", f"{event.calls:,}"),
        ("time", f"{event.milliseconds:.3g} ms"),
    ]


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
