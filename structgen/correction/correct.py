"""`correct` and `acorrect`: the calls of a model whose text is corrected."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict, runtime_checkable

from ..api import compile
from ..budget import Budget
from ..errors import ArgumentError, VocabularyMismatchError
from ..runtime.index.index import Index
from ..system.arguments import integer
from ..vocabulary.vocabulary import Vocabulary
from .asking import ask
from .candidates import Candidates, candidates_of, whole
from .corrector import Corrector
from .drafting import GuidedDraft, until_choice
from .extracts import Extract
from .limits import CorrectionLimits, TokenLimit
from .path import Path
from .values import Correction, CorrectionError, CorrectionEvent

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


@runtime_checkable
class SampledModel(Model, Protocol):
    """A model whose requests can say how it chooses its tokens."""

    #: What they can say: of ``"temperature"`` and ``"seed"``.
    takes: frozenset[str]

    def sampled(self, **options: float) -> Model:
        """The same model with those in each request."""


#: Says what stands in the place of a mistake: from the prompt, and what may stand there behind what; or writes it.
Draft: TypeAlias = "Callable[[str, Candidates], str | Awaitable[str]] | GuidedDraft | Literal['ask'] | None"


class Options(TypedDict, total=False):
    """What `correct` takes besides."""

    draft: Draft
    extract: Extract
    stop: str | Sequence[str]
    max_corrections: int
    max_calls: int | None
    max_bytes: int
    max_new_tokens: int | None
    timeout: float | None
    temperature: float | None
    seed: int | None
    on_correction: Callable[[CorrectionEvent], None] | None
    resume: Correction | None
    cache: Cache | None
    budget: Budget | None


def correct(generate: Generate, definition: object, prompt: str = "", **options: Unpack[Options]) -> Correction:
    """Let a model without accessible logits write a text of a definition.

    The model writes freely. At the first byte that no text of the definition continues with, the reply is cut off.
    The longest valid prefix is kept, a valid continuation is appended, and the model is called again to continue
    from there (Wang et al. 2023, "Grammar Prompting", Section 3.2).

    Parameters
    ----------
    generate:
        A function, called with ``prompt`` followed by the text so far; it returns the continuation, a str or an
        iterator of pieces, which is closed at the first mistake. Or an object with ``reply(prompt, text)``, for
        chats: see `structgen.integrations.apis`.
    definition:
        As in `structgen.compile`; or an `Index` of any vocabulary, which saves compiling for each call.
    prompt:
        The prompt.

    Other Parameters
    ----------------
    draft:
        The source of continuations. A function of the prompt and `Candidates`: the valid prefix of its result is
        taken. ``"ask"``: the model itself, which is shown the candidates. None (default): the candidate that is
        closest to the model's text, or the beginning of the shortest ending. A model on this machine, such as
        `structgen.integrations.transformers.drafts.TransformersDraft` or
        `structgen.integrations.llama_cpp.LlamaDraft`, which writes up to the definition's next choice; the
        definition is then compiled for its vocabulary, and an `Index` must belong to it.
    extract:
        The position of the text in a chatty reply. ``"fence"``: in its first Markdown fence. ``"json"``: from its
        first brace or bracket. A function: its result for a whole reply. None (default): the whole reply. Text
        behind a complete text that cannot continue is dropped in any case.
    stop:
        Strings at whose first occurrence a reply ends.
    max_corrections:
        The most mistakes. Default: 16. When this or another bound is reached, the shortest ending completes the
        text.
    max_calls:
        The most calls of ``generate``. None: two for each mistake, and two.
    max_bytes:
        The most bytes of the text. Default: 1 MiB.
    max_new_tokens:
        The most tokens of the text before the ending, split by the tokenizer of the draft or the index. Without
        either, tokens are bytes.
    timeout:
        Seconds, checked between pieces and calls. None: unbounded.
    temperature, seed:
        The sampling of a draft on this machine: draft ``n``, from 0, is sampled with ``seed + n``. None: it takes
        the best token. Adapters of APIs send them with each request.
    on_correction:
        A function, called with each `CorrectionEvent`. Events are also logged as ``structgen.correct``.
    resume:
        An earlier `Correction` to continue, usually of a `CorrectionError`.
    cache, budget:
        For compiling the definition, as in `structgen.compile`.

    Returns
    -------
    Correction
        The text, and the mistakes that were corrected.

    Raises
    ------
    CorrectionError
        Where the model fails, or the text cannot be completed. Its ``correction`` is the text so far.
    ArgumentError
        For invalid arguments, such as ``generate`` functions that must be awaited.
    StructgenError
        The errors of `structgen.compile`.
    """
    corrector, draft = _corrector(definition, **options), options.get("draft")
    generate = _sampled(generate, options)
    while not corrector.is_done:
        with _kept(corrector):
            candidates = corrector.candidates
            if candidates is None:
                _hear(_reply(generate, prompt, corrector.text), corrector.feed)
                corrector.end_reply()
            elif isinstance(draft, GuidedDraft):
                _write(corrector, draft, prompt, options)
            else:
                said, chosen = _asked(generate, draft, prompt, candidates)
                answer = _Answer(corrector.limits)
                _hear(said, answer.takes)
                corrector.choose(chosen(answer.text))
    return corrector.result()


async def acorrect(generate: Generate, definition: object, prompt: str = "", **options: Unpack[Options]) -> Correction:
    """Run `correct` with a ``generate`` and a ``draft`` that may be awaited or iterated asynchronously.

    Finding mistakes takes microseconds a piece and runs in the event loop; a draft on this machine writes in a
    thread. Where compiling the definition would block the loop for too long, pass an `Index`.

    Parameters
    ----------
    generate:
        As in `correct`; it may be asynchronous.
    definition:
        As in `correct`.
    prompt:
        As in `correct`.
    options:
        As in `correct`.
    """
    corrector, draft = _corrector(definition, **options), options.get("draft")
    generate = _sampled(generate, options)
    while not corrector.is_done:
        with _kept(corrector):
            candidates = corrector.candidates
            if candidates is None:
                await _hear_later(_reply(generate, prompt, corrector.text), corrector.feed)
                corrector.end_reply()
            elif isinstance(draft, GuidedDraft):
                await asyncio.to_thread(_write, corrector, draft, prompt, options)
            else:
                said, chosen = _asked(generate, draft, prompt, candidates)
                answer = _Answer(corrector.limits)
                await _hear_later(said, answer.takes)
                corrector.choose(chosen(answer.text))
    return corrector.result()


def candidates(definition: object, text: str) -> Candidates:
    """Return the longest valid prefix of a text, and the literal strings and characters that may follow it.

    Parameters
    ----------
    definition:
        An `Index`, or a definition as `structgen.compile` takes it.
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
    max_new_tokens: int | None = None,
    timeout: float | None = None,
    temperature: float | None = None,
    seed: int | None = None,
    on_correction: Callable[[CorrectionEvent], None] | None = None,
    resume: Correction | None = None,
    cache: Cache | None = None,
    budget: Budget | None = None,
) -> Corrector:
    """What both go by. Raises as `correct` does."""
    corrections = integer(max_corrections, "max_corrections", ArgumentError, least=0)
    calls = 2 * corrections + 2 if max_calls is None else integer(max_calls, "max_calls", ArgumentError, least=1)
    nbytes = integer(max_bytes, "max_bytes", ArgumentError, least=1)
    if not (draft is None or draft == "ask" or callable(draft) or isinstance(draft, GuidedDraft)):
        raise ArgumentError(f"there is no draft {draft!r}", remedy="Use 'ask', a function, an adapter, or None.")
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if not all(isinstance(each, str) and each for each in stops):
        raise ArgumentError(f"stop has strings that are not empty, got {stop!r}")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout >= 0):
        raise ArgumentError(f"timeout is a number of seconds that is not negative, got {timeout!r}")
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    index = _index(definition, cache, budget, draft.vocabulary if isinstance(draft, GuidedDraft) else None)
    tokens = None
    if max_new_tokens is not None:
        tokens = TokenLimit(integer(max_new_tokens, "max_new_tokens", ArgumentError, least=1), index.vocabulary)
    return Corrector(
        index,
        CorrectionLimits(corrections, calls, nbytes, deadline, tokens),
        extract=extract,
        stop=stops,
        on_correction=on_correction,
        resume=resume,
    )


def _index(
    definition: object, cache: Cache | None, budget: Budget | None, vocabulary: Vocabulary | None = None
) -> Index:
    """The definition for the vocabulary of a draft, or any. Raises `VocabularyMismatchError` for another index."""
    if isinstance(definition, Index):
        if vocabulary is not None and definition.vocabulary.fingerprint != vocabulary.fingerprint:
            raise VocabularyMismatchError(
                f"the index belongs to {definition.vocabulary!r}, the draft to {vocabulary!r}",
                remedy="Compile the definition with the draft's vocabulary, or pass the definition itself.",
            )
        return definition
    own = vocabulary or Vocabulary.bytewise()
    return compile(definition, own, cache=cache, eager=False, budget=budget, base_rows=vocabulary is not None)


def _sampled(generate: Generate, options: Options) -> Generate:
    """A model whose requests say how it chooses tokens. Raises `ArgumentError` where nobody would hear of that."""
    given = {"temperature": options.get("temperature"), "seed": options.get("seed")}
    takes = generate.takes if isinstance(generate, SampledModel) else frozenset[str]()
    for name, value in given.items():
        if value is not None and name not in takes and not isinstance(options.get("draft"), GuidedDraft):
            raise ArgumentError(
                f"{name} means nothing to this model, and there is no draft on this machine",
                remedy="Leave it out, or have the function that calls the model pass it on.",
            )
    passed = {name: value for name, value in given.items() if value is not None and name in takes}
    return generate.sampled(**passed) if passed and isinstance(generate, SampledModel) else generate


# -- calls -------------------------------------------------------------------------------------------------


def _reply(generate: Generate, prompt: str, text: str) -> Said | SaidLater:
    return generate.reply(prompt, text) if isinstance(generate, Model) else generate(prompt + text)


def _asked(
    generate: Generate, draft: Draft, prompt: str, candidates: Candidates
) -> tuple[Said | SaidLater, Callable[[str], str]]:
    """Who says what stands in the place of a mistake: the answer, and what is made of it."""
    if draft is None or isinstance(draft, GuidedDraft):
        return "", str
    if draft == "ask":
        asked = ask(prompt, candidates)
        return _reply(generate, asked.prompt, ""), asked.chosen
    return draft(prompt, candidates), str


@contextmanager
def _kept(corrector: Corrector) -> Iterator[None]:
    """Errors of a model come as a `CorrectionError`, with what there was so far."""
    try:
        yield
    except (ArgumentError, CorrectionError):
        raise
    except Exception as error:
        corrector.interrupt()
        what = f"the model failed: {type(error).__name__}: {error}"
        raise corrector.error(what, "Call again, with resume=error.correction.") from error


def _write(corrector: Corrector, draft: GuidedDraft, prompt: str, options: Options) -> None:
    """Have a draft write what stands in the place of a mistake."""
    text, config = corrector.place
    seed = options.get("seed")
    pieces = draft.write(
        prompt, text, corrector.index, config, temperature=options.get("temperature") or 0.0,
        seed=None if seed is None else seed + corrector.mistakes,
    )  # fmt: skip
    limits = corrector.limits
    in_time = takewhile(lambda _: not limits.is_late, pieces)
    room = max(0, limits.nbytes - len(text.encode()))
    data, tokens = until_choice(corrector.index.machine, config, in_time, room)
    corrector.choose(whole(data).decode(), tokens)


class _Answer:
    """What is said of a mistake, as far as it is of use: who says it may never come to an end."""

    def __init__(self, limits: CorrectionLimits) -> None:
        self._limits, self._room = limits, limits.nbytes
        self._heard: list[str] = []

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._heard)

    def takes(self, piece: str) -> bool:
        """Hear a piece. False where no more is of use."""
        self._heard.append(piece[: self._room])
        self._room -= len(self._heard[-1])
        return self._room > 0 and not self._limits.is_late


def _hear(said: Said | SaidLater, takes: Callable[[str], bool]) -> None:
    """Hear pieces until no more are taken."""
    pieces = _pieces(said)
    try:
        for piece in pieces:
            if not takes(piece):
                break
    finally:
        if hasattr(pieces, "close"):
            pieces.close()


def _pieces(said: Said | SaidLater) -> Iterable[str]:
    if isinstance(said, Awaitable | AsyncIterable):
        if inspect.iscoroutine(said):
            said.close()
        raise ArgumentError("what the model says has to be awaited", remedy="Use structgen.acorrect.")
    return [said] if isinstance(said, str) else said


async def _hear_later(said: Said | SaidLater, takes: Callable[[str], bool]) -> None:
    """`_hear`, where pieces may be awaited."""
    if isinstance(said, Awaitable):
        said = await said
    if not isinstance(said, AsyncIterable):
        _hear(said, takes)
        return
    try:
        async for piece in said:
            if not takes(piece):
                break
    finally:
        if hasattr(said, "aclose"):
            await said.aclose()
