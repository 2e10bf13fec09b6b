"""`Recorder`: the steps of one text, while it is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..definitions.canonical import as_written
from ..errors import ArgumentError, BitmaskError, JsonTextError
from ..runtime.events.events import JsonEvents
from ..runtime.index.index import Index
from ..runtime.rows.bitmask import unpack
from ..system.arguments import describe, integer
from ..system.types import Foreign
from ..vocabulary.vocabulary import Vocabulary
from .steps import TokenKind, TraceCandidate, TraceRollback, TraceStep
from .trace import Trace

#: Steps of a text, and candidates of a step, that are recorded if nothing else is said.
MAX_STEPS, CANDIDATES = 10_000, 8

#: Characters of a definition that a trace keeps.
_MOST_DEFINITION = 10_000

#: Decimal digits of probabilities: files are read by people, too.
_DIGITS = 9

#: ``int32[words]``, None where every id is allowed.
_Row: TypeAlias = "NDArray[np.int32] | None"

_Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True)
class _Seen:
    """What the model made of a step: its probabilities ``[width]``, without the mask and with it, and their ids by
    which candidates are named."""

    before: _Floats
    after: _Floats
    kept: float
    is_steered: bool
    best: tuple[int, ...]


class Recorder:
    """Collects the steps of one text, and makes a `Trace` of them.

    Parameters
    ----------
    vocabulary:
        The tokens.
    index:
        The definition; None for a text without one.
    max_steps:
        So many are recorded; of others only the number is known.
    candidates:
        So many tokens are kept of those that are most likely, without the mask and with it each.
    """

    def __init__(
        self, vocabulary: Vocabulary, index: Index | None, *, max_steps: int = MAX_STEPS, candidates: int = CANDIDATES
    ) -> None:
        self._vocabulary, self._index = vocabulary, index
        self._most = integer(max_steps, "max_steps", ArgumentError, least=0)
        self._width = integer(candidates, "candidates", ArgumentError, least=0)
        self._names = {number: name for name, number in vocabulary.special_tokens.items()}
        self.reset()

    def reset(self) -> None:
        """Forget the text."""
        self._steps: list[TraceStep] = []
        self._rollbacks: list[TraceRollback] = []
        self._standing = 0  # of the steps
        self._behind = 0  # tokens that stand behind them, past the bound
        self._omitted = 0
        self._seen: _Seen | None = None
        self._asked = False
        self._mask_seconds = 0.0
        is_json = self._index is not None and self._index.kind == "json_schema"
        self._reader = JsonEvents(keep_text=False) if is_json else None
        self._since = time.perf_counter()

    def fork(self) -> Recorder:
        """An independent one that has seen the same."""
        twin = Recorder.__new__(Recorder)
        twin.__dict__ = {
            **self.__dict__,
            "_steps": self._steps.copy(),
            "_rollbacks": self._rollbacks.copy(),
            "_reader": self._reader and self._reader.fork(),
        }
        return twin

    # -- what happens ----------------------------------------------------------------------------------

    def ask(self, mask_seconds: float) -> None:
        """A mask was asked for, which took so long."""
        self._asked = True
        self._mask_seconds += mask_seconds

    def see(self, scores: Foreign, row: _Row) -> None:
        """What the model says of the next token, before the mask.

        Parameters
        ----------
        scores:
            ``float[width]``, logits or logarithms of probabilities: an array or a tensor.
        row:
            The mask.
        """
        begun = time.perf_counter()
        self._asked = True
        if len(self._steps) < self._most:
            self._seen = self._look(_floats(scores), row)
        self._since += time.perf_counter() - begun  # what recording takes is no part of the step

    def add(self, token_id: int, row: _Row) -> None:
        """The next token, and its mask."""
        self._append(token_id, row, is_refused=False)
        self._seen, self._asked, self._mask_seconds = None, False, 0.0

    def refuse(self, token_id: int, row: _Row) -> None:
        """A token that was chosen without the mask, and is not allowed: it is taken back, and another one comes."""
        self._append(token_id, row, is_refused=True)
        seen = self._seen
        self.rollback(1)
        self._seen, self._asked = seen, True

    def _append(self, token_id: int, row: _Row, *, is_refused: bool) -> None:
        if len(self._steps) >= self._most:
            self._behind += 1
            self._omitted += 1
        else:
            self._steps.append(self._step(token_id, row, is_refused))
            self._standing += 1
        self._since = time.perf_counter()

    def rollback(self, n: int) -> None:
        """The last ``n`` tokens were taken back."""
        self._seen, self._asked, self._mask_seconds = None, False, 0.0
        behind = min(n, self._behind)
        self._behind -= behind
        n -= behind
        if not n:
            return
        if self._rollbacks and self._rollbacks[-1].after == len(self._steps):
            last = self._rollbacks.pop()
            self._rollbacks.append(TraceRollback(last.after, last.tokens + n))
        else:
            self._rollbacks.append(TraceRollback(len(self._steps), n))
        self._standing -= n
        if self._reader is not None:
            self._reader.rollback(n)

    def trace(self, prompt: str = "", unconstrained: Trace | None = None) -> Trace:
        """What was recorded so far."""
        definition = "" if self._index is None else as_written(self._index.kind, self._index.definition)
        return Trace(
            self._vocabulary.size, tuple(self._steps), tuple(self._rollbacks), self._omitted,
            definition[:_MOST_DEFINITION], prompt, unconstrained,
        )  # fmt: skip

    # -- one step --------------------------------------------------------------------------------------

    def _step(self, token_id: int, row: _Row, is_refused: bool) -> TraceStep:
        now, seen = time.perf_counter(), self._seen
        allowed = self._vocabulary.size if row is None else int.from_bytes(row.tobytes(), "little").bit_count()
        data = self._data(token_id)
        return TraceStep(
            token_id=token_id,
            data=data,
            name=self._names.get(token_id, ""),
            kind="refused" if is_refused else self._kind(row, allowed),
            asked=self._asked,
            allowed=allowed,
            path=self._path(None if is_refused else data),
            seconds=now - self._since,
            mask_seconds=self._mask_seconds,
            kept=None if seen is None else seen.kept,
            entropy_before=None if seen is None else _entropy(seen.before),
            entropy_after=None if seen is None else _entropy(seen.after),
            candidates=() if seen is None else self._candidates(seen, token_id, row),
        )

    def _kind(self, row: _Row, allowed: int) -> TokenKind:
        if row is None:
            return "unconstrained"
        if allowed == 1 or not self._asked:
            return "forced"
        if self._seen is None:
            return "chosen"
        return "steered" if self._seen.is_steered else "free"

    def _path(self, data: bytes | None) -> str | None:
        """Where a token begins; the reader goes on behind it."""
        if self._reader is None:
            return None
        pointer = self._reader.pointer
        try:
            self._reader.feed(data or b"")
        except JsonTextError:  # members in tags, as some models write them
            self._reader = None
            return None
        return pointer

    def _data(self, token_id: int) -> bytes | None:
        return self._vocabulary.token(token_id) if token_id < self._vocabulary.size else None

    def _candidates(self, seen: _Seen, token_id: int, row: _Row) -> tuple[TraceCandidate, ...]:
        ids = {*seen.best, token_id} if token_id < len(seen.before) else set(seen.best)
        allowed = _allowed(row, self._vocabulary.size, len(seen.before))
        order = sorted(ids, key=lambda each: (-seen.before[each], each))
        return tuple(
            TraceCandidate(
                each, self._data(each), self._names.get(each, ""), round(float(seen.before[each]), _DIGITS),
                round(float(seen.after[each]), _DIGITS), bool(allowed[each]),
            )
            for each in order
        )  # fmt: skip

    def _look(self, scores: _Floats, row: _Row) -> _Seen | None:
        if len(scores) < self._vocabulary.size:
            raise BitmaskError(f"scores of width {len(scores)} for a vocabulary of {self._vocabulary.size} ids")
        allowed = _allowed(row, self._vocabulary.size, len(scores))
        before, after = _softmax(scores), _softmax(np.where(allowed, scores, -np.inf))
        if before is None or after is None:
            return None
        best = {*_top(before, self._width), *_top(after, self._width)}
        kept = min(1.0, float(before[allowed].sum()))
        is_steered = not before[allowed].max() >= before.max()
        return _Seen(before, after, round(kept, _DIGITS), is_steered, tuple(best))


def _floats(scores: Foreign) -> _Floats:
    """``float64[width]`` of an array, or of a tensor on any device."""
    if hasattr(scores, "detach"):
        scores = scores.detach().float().cpu()
    array = np.asarray(scores, np.float64)
    if array.ndim != 1:
        raise BitmaskError(f"the scores of a token are [width], got {describe(scores)}")
    return array


def _allowed(row: _Row, size: int, width: int) -> NDArray[np.bool_]:
    """``bool[width]``: ids behind the vocabulary are not, where there is a mask."""
    if row is None:
        return np.ones(width, np.bool_)
    allowed = np.zeros(width, np.bool_)
    allowed[:size] = unpack(row, size)
    return allowed


def _softmax(scores: _Floats) -> _Floats | None:
    """Probabilities, what is NaN without any; None where nothing has one."""
    finite = np.where(np.isnan(scores), -np.inf, scores)
    top = finite.max(initial=-np.inf)
    if not np.isfinite(top):
        return None
    weights = np.exp(finite - top)
    found: _Floats = weights / weights.sum()
    return found


def _entropy(probabilities: _Floats) -> float:
    """In bits."""
    some = probabilities[probabilities > 0]
    return round(max(0.0, float(-(some * np.log2(some)).sum())), _DIGITS)


def _top(probabilities: _Floats, count: int) -> list[int]:
    """The ids with the largest, at most so many, none without any."""
    count = min(count, len(probabilities))
    if not count:
        return []
    ids = np.argpartition(-probabilities, count - 1)[:count]
    found: list[int] = ids[probabilities[ids] > 0].tolist()
    return found
