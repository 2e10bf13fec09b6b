"""`ToolCallReader`: what a reply with tool calls says, while it is generated."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from copy import copy
from string import ascii_letters, digits

from ..budget import Budget, Meter
from ..compiler.structural_tags.marks import Label
from ..definitions import StructuralTag
from ..definitions.labels import ARGUMENTS, CALL, CONTENT, GEMMA, ID, REASONING
from ..errors import ArgumentError, DefinitionError, ReplyTextError, TokenIdError
from ..system.arguments import checked_token, is_scalar
from ..system.types import JsonMap
from ..vocabulary.vocabulary import Vocabulary
from .compiled import Compiled, is_id
from .events import ReplyEvent
from .parts import Call, OpenPart
from .spans import Piece


class ToolCallReader:
    """An incremental reader of replies with tool calls: feed it tokens or text, and it returns reasoning, content and
    calls.

    It follows the automaton that enforces the definition. The labels of the formats, which `tool_calls` sets, name
    the parts. Each piece of text is returned as soon as its meaning is certain. Whitespace before, between and
    behind calls and around reasoning is layout, and is dropped.

    Forks share the compiled tables. A reader is for one thread at a time.

    Parameters
    ----------
    definition:
        The result of `tool_calls`, or another structural tag whose formats have labels.
    vocabulary:
        The tokens. None for a reader of text only, in which special tokens are written by their names.
    budget:
        Bounds of the compile. None: the defaults of `Budget`.
    new_id:
        A function that makes an id for a call to which the model gives none. Default: 9 letters and digits, as
        Mistral's chat templates require.

    Raises
    ------
    DefinitionError
        For anything but a structural tag, and for missing or unknown labels.
    StructgenError
        The errors of `structgen.compile`.
    """

    def __init__(
        self,
        definition: StructuralTag,
        vocabulary: Vocabulary | None = None,
        *,
        budget: Budget | None = None,
        new_id: Callable[[], str] = lambda: "".join(map(secrets.choice, [ascii_letters + digits] * 9)),
    ) -> None:
        if not isinstance(definition, StructuralTag):
            raise DefinitionError(
                f"replies are read by a StructuralTag, got {type(definition).__name__}",
                remedy="Pass what structgen.tool_calls returns.",
            )
        self._vocabulary = vocabulary
        self._compiled = Compiled(definition, vocabulary or Vocabulary.bytewise(), Meter(budget or Budget()))
        self._new_id = new_id
        self._place = self._compiled.spans.start
        self._parts: list[OpenPart] = []  # that are open, the innermost last
        self._call: Call | None = None  # that is open
        self._id_before = ""  # of the call that comes next
        self._calls: list[Call] = []
        self._texts: dict[str, list[str]] = {CONTENT: [], REASONING: []}
        self._closed = False

    # -- moves -----------------------------------------------------------------------------------------

    def feed(self, text: int | Iterable[int] | bytes | str) -> list[ReplyEvent]:
        """Append to the reply and return the events that are now certain, in order.

        Parameters
        ----------
        text:
            A token id (also of NumPy or a tensor), several ids, or text, which may be cut anywhere, also within a
            character. An EOS id ends the reply, as `close` does; further ones change nothing.

        Raises
        ------
        ReplyTextError
            For text that no reply continues with, or after the end. Everything before it was read.
        TokenIdError
            For an id outside the vocabulary.
        """
        if isinstance(text, str):
            text = text.encode()
        if isinstance(text, bytes | bytearray | memoryview):
            self._check_open(bool(text))
            self._place, pieces = self._compiled.spans.read(self._place, bytes(text))
            return self._said(pieces)
        if not isinstance(text, Iterable) or is_scalar(text):
            return self._token(text)
        return [event for token in text for event in self._token(token)]

    def _token(self, token_id: object) -> list[ReplyEvent]:
        vocabulary = self._vocabulary
        if vocabulary is None:
            raise TokenIdError(
                "a reader without a vocabulary takes text", remedy="Use ToolCallReader(definition, vocabulary)."
            )
        token_id = checked_token(token_id, vocabulary.size)
        if token_id in vocabulary.eos_ids and (self._closed or not self._compiled.spans.takes(self._place, token_id)):
            return self.close()
        self._check_open(True)
        self._place, pieces = self._compiled.spans.read_token(self._place, token_id)
        return self._said(pieces)

    def _check_open(self, more: bool) -> None:
        if self._closed and more:
            raise ReplyTextError("the reply has ended")

    def close(self, *, cut_off: bool = False) -> list[ReplyEvent]:
        """End the reply and return the events that were not certain before. Closing again does nothing.

        Parameters
        ----------
        cut_off:
            The reply may have ended anywhere, as by a limit on its tokens: open parts stay open, and pending text
            counts as text.

        Raises
        ------
        ReplyTextError
            For an incomplete reply, without ``cut_off``.
        """
        if self._closed:
            return []
        spans = self._compiled.spans
        events = self._said(spans.cut_off(self._place) if cut_off else spans.finish(self._place))
        self._closed = True
        for part in reversed(self._parts):
            events += self._text(part.name, part.rest())
        return events

    def fork(self) -> ToolCallReader:
        """Return an independent reader at the same place."""
        twin = ToolCallReader.__new__(ToolCallReader)
        vars(twin).update(vars(self))
        twin._parts = [*map(copy, self._parts)]
        twin._call = None if self._call is None else self._call.copy()
        twin._calls = [*self._calls]
        twin._texts = {name: [*pieces] for name, pieces in self._texts.items()}
        return twin

    __copy__ = fork

    def __deepcopy__(self, _: object) -> ToolCallReader:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        raise ArgumentError(
            "a ToolCallReader is not pickled, as what it is made of is of this process",
            remedy="Pickle the tokens or the text that it was fed, and feed them to a new one.",
        )

    # -- questions -------------------------------------------------------------------------------------

    def is_complete(self) -> bool:
        """Return whether the reply could end here."""
        return self._closed or self._compiled.spans.may_finish(self._place)

    def message(self, *, parsed: bool = False) -> JsonMap:
        """Return the reply so far as a message of the Chat Completions API, with all complete calls.

        Append it to the history of the chat. Missing content is an empty text, or null for models whose templates
        expect that.

        Parameters
        ----------
        parsed:
            Return arguments as objects instead of JSON texts, as most chat templates expect.

        Raises
        ------
        BudgetExceededError
            For arguments that are nested too deeply to be parsed.
        """
        content, reasoning = ("".join(self._texts[name]) for name in (CONTENT, REASONING))
        message: dict[str, object] = {"role": "assistant", "content": content or self._compiled.no_content}
        if reasoning:
            message["reasoning_content"] = reasoning
        if self._calls:
            message["tool_calls"] = [call.as_json(parsed=parsed) for call in self._calls]
        return message

    @property
    def offset(self) -> int:
        """Bytes of the reply so far, with special tokens counted by their names."""
        return self._place.offset

    def __repr__(self) -> str:
        state = "closed" if self._closed else "complete" if self.is_complete() else "open"
        return f"<ToolCallReader {state} at byte {self.offset}, {len(self._calls)} calls>"

    # -- what pieces say -------------------------------------------------------------------------------

    def _said(self, pieces: Iterable[Piece]) -> list[ReplyEvent]:
        events: list[ReplyEvent] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                if self._parts:
                    events += self._text(self._parts[-1].name, self._parts[-1].feed(piece))
            elif piece is None:
                part = self._parts.pop()
                events += self._text(part.name, part.rest())
                events += self._ended(part.name)
            else:
                events += self._before(piece.name)
                self._parts.append(OpenPart(piece))
                events += self._began(piece)
        return events

    def _before(self, name: str) -> list[ReplyEvent]:
        """The text before a part that begins within others."""
        events: list[ReplyEvent] = []
        for part in self._parts:
            if name.startswith(CALL):
                part.called()
            else:
                events += self._text(part.name, part.rest() if name else part.triggered())
        return events

    def _text(self, name: str, text: str) -> list[ReplyEvent]:
        """More text of a part."""
        call = self._call
        if not text:
            return []
        if name in (CONTENT, REASONING):
            self._texts[name].append(text)
            return [ReplyEvent("content" if name == CONTENT else "reasoning", text)]
        if is_id(name):
            written = self._id_before if call is None else call.written_id
            written = (written or name[len(ID) + 1 :]) + text
            if call is None:
                self._id_before = written
            else:
                call.written_id = written
        if call is not None and name in (ARGUMENTS, GEMMA):
            return call.said(call.arguments.feed(text))
        return []

    def _began(self, label: Label) -> list[ReplyEvent]:
        if label.name.startswith(CALL):
            name = label.name.removeprefix(CALL)
            is_written = self._id_before or self._compiled.writes_id(name)
            self._call = Call(
                len(self._calls), name, None if is_written else self._new_id(), self._compiled.arguments(name)
            )
            self._call.written_id, self._id_before = self._id_before, ""
        elif label.name in (ARGUMENTS, GEMMA) and self._call is not None:
            return self._call.begin()
        return []

    def _ended(self, name: str) -> list[ReplyEvent]:
        call = self._call
        if call is None:
            return []
        if name in (ARGUMENTS, GEMMA):
            return call.said(call.arguments.finish())
        if not name.startswith(CALL):
            return []
        events = [*call.begin(), *call.end(self._new_id)]
        self._calls.append(call)
        self._call = None
        return events
