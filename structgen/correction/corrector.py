"""`Corrector`: the state of one text that is corrected. It makes no calls: replies come in, piece by piece.

A reply is followed as far as it is valid, which is found out with its first wrong byte. Then the longest valid prefix
is kept, a valid continuation is put behind it, perhaps in the place of its last words (see `candidates` and
`nearest`), and what must follow that. When a reply has ended, either the text is complete, or the
model is to go on from there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..errors import ArgumentError
from ..runtime.core.machine import Config
from ..runtime.index.index import Index
from .candidates import CONTINUATION, Candidates, candidates_of, must_follow, whole
from .endings import shortest_ending
from .extracts import Extract, Part, part_of
from .limits import CorrectionLimits
from .manuscript import Manuscript
from .nearest import last_words, nearest
from .path import Path
from .values import Correction, CorrectionError, CorrectionEvent, End, Source

_log = logging.getLogger("structgen.correct")

#: Bytes of what was refused that a repair is looked for, and of which it has to make sense.
_WINDOW, _ENOUGH = 32, 8

#: Bytes of what was dropped that an event keeps.
_MOST_DROPPED = 1 << 12

_LARGER = "Allow more corrections or calls, or start from another text."


class _Mistake(NamedTuple):
    """A mistake that nothing stands in the place of yet: where it was made, where the text goes on."""

    broken_at: int
    at: int
    candidates: Candidates
    rest: bytes
    began: float


class _Repair(NamedTuple):
    """What is put in the place of a mistake, from which byte of the text on, and for how much of what was refused."""

    at: int
    source: Source
    data: bytes
    used: int


class Corrector:
    """One text.

    Parameters
    ----------
    index:
        The definition.
    limits:
        What it may take.
    extract, stop:
        Where the text is in a reply; see `structgen.correct`.
    on_correction:
        Called with each event.
    resume:
        What to go on with.
    """

    def __init__(
        self,
        index: Index,
        limits: CorrectionLimits,
        *,
        extract: Extract = None,
        stop: Sequence[str] = (),
        on_correction: Callable[[CorrectionEvent], None] | None = None,
        resume: Correction | None = None,
    ) -> None:
        #: The definition, and what the text may take.
        self.index, self.limits = index, limits
        self._extract, self._stop = extract, stop
        self._on_correction = on_correction
        self._text = Manuscript(Path(index))
        self._events: list[CorrectionEvent] = []
        self._replies: list[list[str]] = []
        self._fed = 0
        self._mistake: _Mistake | None = None
        self._ended_by: End = ""
        self._reply: _Reply | None = None
        if resume is not None:
            self._resume(resume)

    def _resume(self, before: Correction) -> None:
        """Go on with a text. Raises `ArgumentError` where it is none of the definition."""
        for piece in before.pieces:
            self._text.write(piece.source, piece.text.encode("utf-8", "replace"))
        if self.text != before.text or (before.ended_by and not self._text.path.is_complete):
            raise ArgumentError(
                "the text that is to be gone on with is none of this definition",
                remedy="Pass the definition that it was written for.",
            )
        self._events, self._replies = [*before.events], [[reply] for reply in before.replies]
        self._ended_by = before.ended_by

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text.path.text

    @property
    def is_done(self) -> bool:
        """Whether the text is complete."""
        return self._ended_by != ""

    @property
    def candidates(self) -> Candidates | None:
        """What may stand in the place of a mistake, where a draft is to say what does."""
        return None if self._mistake is None else self._mistake.candidates

    @property
    def mistakes(self) -> int:
        """Mistakes in whose place something stands."""
        return len(self._events)

    @property
    def place(self) -> tuple[str, Config]:
        """The text that a draft goes on with, and its configuration."""
        assert self._mistake is not None
        path, at = self._text.path, self._mistake.at
        return path.data[:at].decode(), path.config_at(at)

    def result(self) -> Correction:
        """What there is so far."""
        replies = tuple(map("".join, self._replies))
        return Correction(self.text, self.is_done, self._ended_by, (*self._events,), self._text.pieces(), replies)

    def error(self, what: str, remedy: str = "") -> CorrectionError:
        """An error with what there is so far."""
        return CorrectionError(what, remedy=remedy, correction=self.result())

    # -- replies ---------------------------------------------------------------------------------------

    def feed(self, piece: str) -> bool:
        """A piece of a reply. False where no more of it is of use."""
        if self._reply is None:
            part = part_of(self._extract, self._stop, continues=len(self._text.path) > 0)
            self._reply = _Reply(self.index, self._text, part, self.limits.nbytes)
            self._replies.append([])
            self._fed = 0
        piece = piece[: self.limits.nbytes - self._fed]
        self._fed += len(piece)
        self._replies[-1].append(piece)
        more = self._reply.feed(piece) and self._fed < self.limits.nbytes and not self.limits.is_late
        return more and self.limits.kept(self._text.path) == len(self._text.path)

    def end_reply(self) -> None:
        """The reply has ended, or what follows of it is of no use."""
        self.feed("")
        assert self._reply is not None
        rest, self._reply = self._reply.finish(), None
        rest = self._text.path.cut_to_character() + rest
        self._go_on(self._text.sign("model"), rest)

    def _go_on(self, said: int, rest: bytes) -> None:
        """What comes next, when the model has said so many bytes more, and something that was refused."""
        if self._is_cut():
            self._text.drop(rest)
            self._complete()
        elif self._text.is_over or (self._text.path.is_complete and not rest):
            self._text.drop(rest)
            self._ended_by = "model"
        elif rest and len(self._events) < self.limits.corrections and not self.limits.is_late:
            at, found = candidates_of(self._text.path, rest[:_MOST_DROPPED])
            self._mistake = _Mistake(len(self._text.path), at, found, rest, time.perf_counter())
        elif rest or not said or len(self._replies) >= self.limits.calls or self.limits.is_late:
            self._text.drop(rest)
            self._complete()

    def _is_cut(self) -> bool:
        """Whether the text had too many tokens, and was cut."""
        length = self.limits.kept(self._text.path)
        is_cut = length < len(self._text.path)
        if is_cut:
            self._text.cut(length)
        return is_cut

    def interrupt(self) -> None:
        """A reply broke off: what was heard of it so far is kept, and no more."""
        if self._reply is not None:
            self._reply = None
            self._text.path.cut_to_character()
            self._text.sign("model")

    # -- mistakes --------------------------------------------------------------------------------------

    def choose(self, text: str = "", tokens: int = 0) -> None:
        """Put something in the place of a mistake: as much of ``text`` as is valid, or what is nearest.

        Parameters
        ----------
        tokens:
            What a draft took to write it.
        """
        assert self._mistake is not None
        mistake, self._mistake = self._mistake, None
        repair = self._draft(mistake, text) or self._nearest(mistake) or self._ending(mistake)
        self._text.cut(repair.at)
        self._text.drop(mistake.rest[: repair.used])
        path = self._text.path
        self._text.write(repair.source, repair.data)
        rest = mistake.rest[repair.used :]
        said = path.extend(rest)
        if repair.data and not said:
            self._text.write("forced", must_follow(path.machine, path.config))
        self._tell(mistake, repair, path.data[repair.at : len(path) - said], tokens)
        self._text.sign("model")
        if said:
            self._go_on(said, path.cut_to_character() + rest[said:])
        elif self._is_cut():
            self._complete()
        elif self._text.is_over or (path.is_complete and not repair.data):
            self._ended_by = "definition" if repair.data else "model"
        elif not repair.data:
            raise self.error("nothing is known that may follow the text", _LARGER)

    def _draft(self, mistake: _Mistake, text: str) -> _Repair | None:
        data = whole(self._text.path.valid(mistake.at, text.encode("utf-8", "replace")))
        return _Repair(mistake.at, "draft", data, len(mistake.rest)) if data else None

    def _nearest(self, mistake: _Mistake) -> _Repair | None:
        """What few edits make of the last two words of the text and what comes behind."""
        path = self._text.path
        at = last_words(path.data)
        written = path.data[at:] + mistake.rest[:_WINDOW]
        kept = len(path) - at
        enough = kept + min(len(mistake.rest), _ENOUGH)
        enough += len(written[enough:]) - len(written[enough:].lstrip(CONTINUATION))  # to the end of a character
        found = nearest(path.machine, path.config_at(at), written, kept, enough)
        if found is None or whole(found.data) != found.data or found.used < kept:
            return None
        if found.data == written[:kept] and not path.valid(len(path), written[found.used : found.used + 1]):
            return None  # the model would be asked what it was asked before
        return _Repair(at, "nearest", found.data, found.used - kept)

    def _ending(self, mistake: _Mistake) -> _Repair:
        """The first character of the shortest ending; nothing where the text is complete, or none is known."""
        path = self._text.path
        ending = shortest_ending(path.index, path.config) or b""
        first = next((ending[:i] for i in range(1, len(ending) + 1) if whole(ending[:i])), b"")
        return _Repair(len(path), "ending", first, len(mistake.rest))

    def _tell(self, mistake: _Mistake, repair: _Repair, choice: bytes, tokens: int) -> None:
        kept, source = repair.at, repair.source
        event = CorrectionEvent(
            number=len(self._events) + 1,
            broken_at=mistake.broken_at,
            kept=kept,
            dropped=mistake.candidates.dropped,
            candidates=mistake.candidates.literals,
            choice=choice.decode("utf-8", "replace"),
            chosen_by=source,
            calls=len(self._replies),
            tokens=tokens,
            milliseconds=1e3 * (time.perf_counter() - mistake.began),
        )
        self._events.append(event)
        _log.info("%d: %r for %r at byte %d, by %s", event.number, event.choice, event.dropped[:80], kept, source)
        if self._on_correction is not None:
            self._on_correction(event)

    def _complete(self) -> None:
        """Put the shortest ending behind the text. Raises `CorrectionError` where none is known."""
        ending = shortest_ending(self.index, self._text.path.config)
        if ending is None:
            raise self.error("no ending of the text is known", _LARGER)
        self._text.write("ending", ending)
        self._ended_by = "ending"


class _Reply:
    """One reply, as it is followed.

    A model that is to go on with a text may begin anew instead. So from its first mistake on a reply is also read as
    a text of its own, which takes the place of what was kept when it has come farther.
    """

    def __init__(self, index: Index, text: Manuscript, part: Part, most: int) -> None:
        self._text, self._part = text, part
        self._room = most - len(text.path)
        self._heard = bytearray()
        self._followed = 0
        self._anew = Path(index) if len(text.path) else None

    def feed(self, piece: str) -> bool:
        """A piece of the reply. False where no more of it is of use."""
        self._hear(self._part.feed(piece))
        return self._is_open and not self._part.is_over and not self._text.is_over

    def finish(self) -> bytes:
        """The reply has ended. Returns what was refused of it."""
        self._hear(self._part.finish())
        return bytes(self._heard[self._followed :])

    @property
    def _is_open(self) -> bool:
        return (self._followed == len(self._heard) or self._anew is not None) and len(self._heard) < self._room

    def _hear(self, text: str) -> None:
        if not self._is_open:
            return
        data = text.encode("utf-8", "replace")[: self._room - len(self._heard)]
        is_valid = self._followed == len(self._heard)
        self._heard += data
        if is_valid:
            self._followed += self._text.path.extend(data)
        if self._followed < len(self._heard) and self._anew is not None:
            self._begin_anew(self._anew)

    def _begin_anew(self, anew: Path) -> None:
        heard = self._heard
        anew.extend(bytes(heard[len(anew) :]))
        if len(anew) > len(self._text.path):
            self._text.replace(anew)
            self._followed = len(anew)
            self._anew = None
        elif len(anew) < len(heard):
            self._anew = None
