"""`JsonEvents`: what a JSON text has come to, while it is generated.

The parts of an answer are of use before the rest of it is there: a member can be shown, an item worked on, a tool
called. This reader takes tokens or bytes as they come and says which values they complete, with path, span and value.
Like a guide it can go back and be forked in constant time; what it remembers of a text are its open containers (see
`structgen.runtime.events.json_states`), and its bytes where arrays and objects shall have values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ...errors import ArgumentError, RollbackError, TokenIdError
from ...system.arguments import checked_rollback, integer, is_scalar
from ...system.depth_first import flattened, nested
from ...vocabulary.vocabulary import Vocabulary
from .json_event import JsonEvent
from .json_states import CLOSED, START, State, finish, may_end, one_more, read, standing

#: A persistent linked list of the earlier list and state, as in a guide: forks share it.
_Past: TypeAlias = "tuple[_Past | None, State]"


class JsonEvents:
    """An incremental reader of one JSON text (RFC 8259). Feed it tokens; it returns the values that they complete.

    Values come in the order in which they are completed: properties and items before the object or array that
    contains them. A number is complete at the byte behind it, or at the end.

    A reader is small. It is for one thread at a time.

    Parameters
    ----------
    vocabulary:
        The tokens. Not needed for a reader of bytes.
    starts:
        Whether to report the start of strings, arrays and objects.
    deltas:
        Whether to report parts of strings as they arrive. A part never ends within a character, an escape or a
        surrogate pair.
    skip:
        Bytes of other text before the JSON. Spans include them.
    trailing:
        Whether other text may follow the JSON; it is not read. Otherwise only whitespace may follow.
    keep_text:
        Whether to keep the text, for the values of arrays and objects. Without it, memory grows only with nesting,
        the longest string and the rollback history.
    max_rollback:
        The number of tokens that can be rolled back. None: all.
    """

    __slots__ = (
        "_deltas", "_keep", "_most", "_past", "_room", "_skip", "_starts", "_state", "_trailing", "_vocabulary",
    )  # fmt: skip

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        *,
        starts: bool = False,
        deltas: bool = False,
        skip: int = 0,
        trailing: bool = False,
        keep_text: bool = True,
        max_rollback: int | None = None,
    ) -> None:
        max_rollback = checked_rollback(max_rollback)
        self._vocabulary = vocabulary
        self._starts, self._deltas, self._keep, self._trailing = starts, deltas, keep_text, trailing
        self._skip = integer(skip, "skip", ArgumentError, least=0)
        self._most = max_rollback
        self._room = -1 if max_rollback is None else 2 * max_rollback + 1
        self._state: State = START
        self._past: _Past | None = None

    # -- moves -----------------------------------------------------------------------------------------

    def feed(self, text: int | Iterable[int] | bytes) -> list[JsonEvent]:
        """Append to the text and return the events that it completes, in order.

        Parameters
        ----------
        text:
            A token id (also of NumPy or a tensor), several ids, or bytes. Bytes count as one token for `rollback`
            and `JsonEvent.tokens`. An EOS id ends the text, as `close` does; further ones change nothing.

        Raises
        ------
        JsonTextError
            For a text that does not begin valid JSON, or has ended before; nothing has changed.
        TokenIdError
            For an id outside the vocabulary, or a special token that is not an EOS id; nothing has changed.
        """
        if type(text) is int:
            return self._append((self._bytes(text),))
        if isinstance(text, bytes | bytearray | memoryview):
            return self._append((bytes(text),))
        if isinstance(text, Iterable) and not is_scalar(text):
            return self._append([self._bytes(token) for token in text])
        return self._append((self._bytes(integer(text, "a token id", TokenIdError)),))

    def _append(self, pieces: Iterable[bytes | None]) -> list[JsonEvent]:
        """Append pieces of text, None for its end."""
        state, past = self._state, self._past
        found: list[JsonEvent] = []
        count = 0
        for data in pieces:
            past = past, state
            count += 1
            if data is None:
                state, events = finish(state)
                state = one_more(state, 0)
            elif not data or self._skip - state[8] >= len(data):
                state, events = one_more(state, len(data)), []
            else:
                begin = max(0, self._skip - state[8])
                state, events = read(state, data, begin, self._starts, self._deltas, self._keep, self._trailing)
            found += events
        self._past, self._state = past, state
        if self._most is not None:
            self._room -= count
            if self._room <= 0:
                self._forget(self._most)
        return found

    def _bytes(self, token_id: int) -> bytes | None:
        """The bytes of a token, None for an EOS id."""
        vocabulary = self._vocabulary
        if vocabulary is None:
            raise TokenIdError("a reader without a vocabulary takes bytes", remedy="Use JsonEvents(vocabulary).")
        data = vocabulary.token(token_id)
        if data is None and token_id not in vocabulary.eos_ids:
            raise TokenIdError(f"token {token_id} is special, not text")
        return data

    def close(self) -> list[JsonEvent]:
        """End the text, which completes a number at its end. Closing again does nothing.

        Raises
        ------
        JsonTextError
            For incomplete JSON.
        """
        self._state, events = finish(self._state)
        return events

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` tokens, and a `close` after them. Events that were returned are not changed.

        Raises
        ------
        RollbackError
            For more tokens than there are, or than ``max_rollback`` remembers.
        """
        past, state = self._past, self._state
        n = integer(n, "a number of tokens", RollbackError)
        for taken in range(n):
            if past is None:
                raise RollbackError(
                    f"cannot roll back {n} tokens, only {taken} were fed"
                    + ("" if self._most is None else " or are remembered")
                )
            past, state = past
        if n < 0:
            raise RollbackError(f"cannot roll back {n} tokens")
        self._past, self._state = past, state
        if self._most is not None:
            self._room += n

    def _forget(self, most: int) -> None:
        """Keep only what `max_rollback` asks for."""
        kept: list[State] = []
        past = self._past
        while past is not None and len(kept) < most:
            past, state = past
            kept.append(state)
        self._past = None
        for state in reversed(kept):
            self._past = (self._past, state)
        self._room = most + 1

    def fork(self) -> JsonEvents:
        """Return an independent reader at the same place, in constant time."""
        twin = JsonEvents.__new__(JsonEvents)
        for name in JsonEvents.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    __copy__ = fork

    def __deepcopy__(self, _: object) -> JsonEvents:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        options = {name: getattr(self, name) for name in JsonEvents.__slots__ if name not in ("_past", "_state")}
        return _restored, (options, flattened((self._past, self._state)))

    # -- questions -------------------------------------------------------------------------------------

    def is_complete(self) -> bool:
        """Return whether the text so far is complete JSON."""
        return may_end(self._state)

    def is_closed(self) -> bool:
        """Return whether the text has ended, by `close` or an EOS id."""
        return self._state[0] == CLOSED

    @property
    def pointer(self) -> str:
        """The JSON pointer of the value that is being written or comes next; between two parts of a container, its
        own.
        """
        return standing(self._state)

    @property
    def offset(self) -> int:
        """Bytes of the text so far."""
        return self._state[8]

    def __repr__(self) -> str:
        state = "closed" if self.is_closed() else "complete" if self.is_complete() else "open"
        return f"<JsonEvents {state} at byte {self.offset}>"


def _restored(options: dict[str, object], flat: list[tuple[object, ...]]) -> JsonEvents:
    """A reader of a pickle."""
    reader = JsonEvents.__new__(JsonEvents)
    for name, value in options.items():
        setattr(reader, name, value)
    reader._past, reader._state = nested(flat)
    return reader
