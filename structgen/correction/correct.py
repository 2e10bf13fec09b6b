"""`correct` and `acorrect`: the calls of a model whose text is corrected."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict, runtime_checkable

from ..api import compile
from ..budget import Budget
from ..errors import ArgumentError, StructgenError
from ..runtime.index.index import Index
from ..system.arguments import integer
from ..vocabulary.vocabulary import Vocabulary
from .asking import ask
from .candidates import Candidates, candidates_of
from .corrector import CorrectionLimits, Corrector
from .extracts import Extract
from .path import Path
from .values import Correction, CorrectionEvent

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..cache.cache import Cache

#: What a model says: a text, or pieces of one as they come.
Said: TypeAlias = "str | Iterable[str]"
SaidLater: TypeAlias = "Awaitable[str] | AsyncIterable[str]"


@runtime_checkable
class Model(Protocol):
    """A model that is told apart what it is asked and how far its answer has come, as chats need it."""

    def reply(self, prompt: str, text: str) -> Said | SaidLater:
        """What comes behind ``text`` in the answer to ``prompt``."""


#: A function from a prompt, with the text so far behind it, to what comes then; or a `Model`.
Generate: TypeAlias = "Callable[[str], Said | SaidLater] | Model"

#: Says what stands in the place of a mistake: from the prompt, and what may stand there behind what.
Draft: TypeAlias = "Callable[[str, Candidates], str | Awaitable[str]] | Literal['ask'] | None"


class Options(TypedDict, total=False):
    """What `correct` takes besides."""

    draft: Draft
    extract: Extract
    stop: str | Sequence[str]
    max_corrections: int
    max_calls: int | None
    max_bytes: int
    timeout: float | None
    on_correction: Callable[[CorrectionEvent], None] | None
    resume: Correction | None
    cache: Cache | None
    budget: Budget | None


def correct(
    generate: Generate,
    definition: object,
    prompt: str = "",
    *,
    draft: Draft = None,
    extract: Extract = None,
    stop: str | Sequence[str] = (),
    max_corrections: int = 16,
    max_calls: int | None = None,
    max_bytes: int = 1 << 20,
    timeout: float | None = None,
    on_correction: Callable[[CorrectionEvent], None] | None = None,
    resume: Correction | None = None,
    cache: Cache | None = None,
    budget: Budget | None = None,
) -> Correction:
    """Have a model write a text of a definition, where its logits can't be masked.

    The model writes freely. With the first byte that no text of the definition has there, the reply is cut off, the
    longest valid prefix is kept, a valid continuation is put behind it, and the model is called again to go on from
    there (speculative grammar backtracking; Wang et al. 2023, "Grammar Prompting", Section 3.2).

    Parameters
    ----------
    generate:
        Called with ``prompt`` and the text so far behind it; returns what comes then: a str, or an iterator of
        pieces, which is closed at the first mistake. Or an object with ``reply(prompt, text)``, for chats, which are
        told apart what is asked and how the answer begins: `structgen.integrations.apis.openai`, `.anthropic`.
    definition:
        As for `structgen.compile`; or an `Index`, of any vocabulary, which saves compiling it for each call.
    prompt:
        What the model is asked.
    draft:
        Who says what stands in the place of a mistake. A function of the prompt and `Candidates`: as much of what it
        returns as is valid is taken. ``"ask"``: the model itself, which is shown the candidates. None: the candidate
        that is most like what was written, or the beginning of the shortest ending.
    extract:
        Where the text is in a chatty reply. ``"fence"``: in its first fence of Markdown. ``"json"``: from its first
        brace or bracket on. A function: what it returns for a whole reply. What comes behind a text that is complete
        and can't go on is dropped in any case.
    stop:
        Strings at whose first occurrence a reply ends.
    max_corrections, max_calls, max_bytes, timeout:
        Mistakes; calls of ``generate`` (None: two for each mistake, and two); bytes of the text; seconds, looked at
        between pieces and calls. When one of the bounds is reached, the shortest ending completes the text.
    on_correction:
        Called with each `CorrectionEvent`. They are logged, too, as ``structgen.correct``.
    resume:
        What an earlier call came to: of a `CorrectionError`, as a rule.
    cache, budget:
        For compiling the definition.

    Raises
    ------
    CorrectionError
        Where the model fails, or the text can't be completed; what there was so far is its ``correction``.
    ArgumentError
        For arguments that mean nothing, such as ``generate`` functions that have to be awaited.
    StructgenError
        Whatever compiling the definition raises.
    """
    corrector = _corrector(
        definition, draft=draft, extract=extract, stop=stop, max_corrections=max_corrections, max_calls=max_calls,
        max_bytes=max_bytes, timeout=timeout, on_correction=on_correction, resume=resume, cache=cache, budget=budget,
    )  # fmt: skip
    while not corrector.is_done:
        with _kept(corrector):
            candidates = corrector.candidates
            if candidates is None:
                _listen(corrector, _reply(generate, prompt, corrector.text))
            elif draft is None:
                corrector.choose()
            elif draft == "ask":
                asked = ask(prompt, candidates)
                corrector.choose(asked.chosen("".join(_pieces(_reply(generate, asked.prompt, "")))))
            else:
                corrector.choose("".join(_pieces(draft(prompt, candidates))))
    return corrector.result()


async def acorrect(
    generate: Generate, definition: object, prompt: str = "", **options: Unpack[Options]
) -> Correction:
    """`correct`, where ``generate`` and ``draft`` may be awaited, or iterated asynchronously.

    Finding mistakes takes microseconds a piece and happens in the event loop; compile the definition before
    (``definition`` can be an `Index`) where that would take too long there.
    """
    corrector = _corrector(definition, **options)
    draft = options.get("draft")
    while not corrector.is_done:
        with _kept(corrector):
            candidates = corrector.candidates
            if candidates is None:
                await _listen_later(corrector, _reply(generate, prompt, corrector.text))
            elif draft is None:
                corrector.choose()
            elif draft == "ask":
                asked = ask(prompt, candidates)
                corrector.choose(asked.chosen(await _joined(_reply(generate, asked.prompt, ""))))
            else:
                corrector.choose(await _joined(draft(prompt, candidates)))
    return corrector.result()


def candidates(definition: object, text: str) -> Candidates:
    """The longest valid prefix of a text, and what may follow it: literal strings, and what else.

    Parameters
    ----------
    definition:
        An `Index`, or what `structgen.compile` takes.
    text:
        Any text.
    """
    path = Path(_index(definition, None, None))
    data = text.encode("utf-8", "replace")
    rest = data[path.extend(data) :]
    return candidates_of(path, path.cut_to_character() + rest)[1]


def replay(log: Correction, definition: object) -> Correction:
    """Correct again what a model said once, as a log has it: the same text comes of it, drafts included."""
    replies = iter(log.replies)
    drafts = iter([event.choice if event.chosen_by == "draft" else "" for event in log.events])
    return correct(
        lambda _: next(replies), definition, draft=lambda _, __: next(drafts),
        max_corrections=len(log.events), max_calls=max(1, log.calls),
    )  # fmt: skip


# -- arguments ---------------------------------------------------------------------------------------------


def _corrector(
    definition: object,
    *,
    draft: Draft = None,
    extract: Extract = None,
    stop: str | Sequence[str] = (),
    max_corrections: int = 16,
    max_calls: int | None = None,
    max_bytes: int = 1 << 20,
    timeout: float | None = None,
    on_correction: Callable[[CorrectionEvent], None] | None = None,
    resume: Correction | None = None,
    cache: Cache | None = None,
    budget: Budget | None = None,
) -> Corrector:
    """What both go by. Raises as `correct` does."""
    corrections = integer(max_corrections, "max_corrections", ArgumentError, least=0)
    calls = 2 * corrections + 2 if max_calls is None else integer(max_calls, "max_calls", ArgumentError, least=1)
    nbytes = integer(max_bytes, "max_bytes", ArgumentError, least=1)
    if not (draft is None or draft == "ask" or callable(draft)):
        raise ArgumentError(f"there is no draft {draft!r}", remedy="Use 'ask', a function, or None.")
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    return Corrector(
        _index(definition, cache, budget),
        CorrectionLimits(corrections, calls, nbytes, deadline),
        extract=extract,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        on_correction=on_correction,
        resume=resume,
    )


def _index(definition: object, cache: Cache | None, budget: Budget | None) -> Index:
    if isinstance(definition, Index):
        return definition
    return compile(definition, Vocabulary.bytewise(), cache=cache, eager=False, budget=budget, base_rows=False)


# -- calls -------------------------------------------------------------------------------------------------


def _reply(generate: Generate, prompt: str, text: str) -> Said | SaidLater:
    return generate.reply(prompt, text) if isinstance(generate, Model) else generate(prompt + text)


@contextmanager
def _kept(corrector: Corrector) -> Iterator[None]:
    """Errors of a model come as a `CorrectionError`, with what there was so far."""
    try:
        yield
    except StructgenError:
        raise
    except Exception as error:
        corrector.interrupt()
        what = f"the model failed: {type(error).__name__}: {error}"
        raise corrector.error(what, "Call again, with resume=error.correction.") from error


def _listen(corrector: Corrector, said: Said | SaidLater) -> None:
    """Hear a reply as far as it is of use."""
    pieces = _pieces(said)
    try:
        for piece in pieces:
            if not corrector.feed(piece):
                break
    finally:
        if hasattr(pieces, "close"):
            pieces.close()
    corrector.end_reply()


def _pieces(said: Said | SaidLater) -> Iterable[str]:
    if isinstance(said, Awaitable | AsyncIterable):
        if inspect.iscoroutine(said):
            said.close()
        raise ArgumentError("what the model says has to be awaited", remedy="Use structgen.acorrect.")
    return [said] if isinstance(said, str) else said


async def _listen_later(corrector: Corrector, said: Said | SaidLater) -> None:
    """`_listen`, where pieces may be awaited."""
    if isinstance(said, Awaitable):
        said = await said
    if not isinstance(said, AsyncIterable):
        _listen(corrector, said)
        return
    try:
        async for piece in said:
            if not corrector.feed(piece):
                break
    finally:
        if hasattr(said, "aclose"):
            await said.aclose()
    corrector.end_reply()


async def _joined(said: Said | SaidLater) -> str:
    if isinstance(said, Awaitable):
        said = await said
    if isinstance(said, AsyncIterable):
        return "".join([piece async for piece in said])
    return "".join(_pieces(said))
