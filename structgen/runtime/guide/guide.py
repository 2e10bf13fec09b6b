"""`Guide`: one sequence's cursor over a shared `Index`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, RollbackError, TokenIdError
from ...system.arguments import array_of, checked_rollback, checked_token, integer
from ..core.machine import Config, Machine
from ..index.index import check_index
from ..index.token_budget import limited

if TYPE_CHECKING:
    from ...vocabulary.vocabulary import Vocabulary
    from ..index.index import Index
    from .captures import Capture


_INT32 = np.dtype(np.int32)
_ndarray = np.ndarray
_PACKED = (4,)  # the strides of a contiguous ``int32[n]``

#: So many tokens more than have to be are remembered before old ones are forgotten, at least.
_SPARE = 64

#: Stands in place of the token that would have led to the first configuration.
NO_TOKEN = -1


class _End:
    """The configuration after an end-of-sequence token."""

    def __repr__(self) -> str:
        return "END"


_END = _End()


#: Persistent linked lists, which forks share: the earlier list, configuration and token; and the earlier list and
#: tokens that were forgotten, ``int32``.
_Past: TypeAlias = "tuple[_Past | None, Config, int]"
Forgotten: TypeAlias = "tuple[Forgotten | None, bytes]"


class Guide:
    """A cursor of one sequence over an `Index`: which tokens may come next, and the state after each.

    After an EOS token the guide is finished and accepting. Its mask then holds the EOS ids only; advancing by an
    EOS id changes nothing and returns True, any other token returns False. So a batch can go on masking and
    advancing rows that ended early.

    Guides are small: make one for each sequence. A guide is for one thread at a time; the index may be shared. A
    guide can be pickled with its index. A copy is a fork.

    A method that needs more work than one step may take raises `BudgetExceededError` and changes nothing.

    Parameters
    ----------
    index:
        The compiled definition.
    max_rollback:
        The number of tokens that can be rolled back. At least these are remembered, at 64 bytes each; for older
        ones only the ids are kept, four bytes each. None: all.
    max_tokens:
        The most tokens of the text, EOS token included. Tokens after which the text could no longer be completed in
        time are not allowed. None: unbounded.
    eos_ids:
        The ids that end this text, in place of those of the vocabulary; see `Index.over`.

    Raises
    ------
    ArgumentError
        For anything but an `Index`.
    TokenBudgetError
        For ``max_tokens`` smaller than `Index.shortest`.
    VocabularyError
        For an EOS id outside the vocabulary, or one with bytes.
    UnsupportedError
        For ``max_tokens`` with a grammar for which no bound on the needed tokens is known; see
        docs/guide/budgets.md.
    """

    __slots__ = ("_config", "_given", "_index", "_machine", "_most", "_past", "_room", "_size", "_text", "_words")

    def __init__(
        self,
        index: Index,
        *,
        max_rollback: int | None = None,
        max_tokens: int | None = None,
        eos_ids: Iterable[int] | None = None,
    ) -> None:
        check_index(index)
        if eos_ids is not None:
            index = index.over(index.vocabulary.with_eos_ids(eos_ids))
        self._most = max_rollback = checked_rollback(max_rollback)
        self._given = max_tokens
        self._index = index
        self._machine: Machine = index.machine if max_tokens is None else limited(index, max_tokens)
        self._size = index.vocabulary.size
        self._words = index.vocabulary.words
        self._config: Config = self._machine.start
        self._past: _Past | None = None
        self._text: Forgotten | None = None
        self._room = _room(max_rollback)

    @property
    def index(self) -> Index:
        """The index that the guide follows."""
        return self._index

    @property
    def config(self) -> Config | None:
        """The machine's configuration, on which masks and moves depend; None once an EOS id was accepted."""
        return None if self._config is _END else self._config

    @property
    def index_config(self) -> Config | None:
        """The same of the index's own machine, which counts no tokens; None once an EOS id was accepted."""
        config = self.config
        return config if config is None or self._machine is self._index.machine else config[0]

    @property
    def machine(self) -> Machine:
        """What the guide's configurations belong to: the index's machine, or with ``max_tokens`` one of its own."""
        return self._machine

    # -- masks -----------------------------------------------------------------------------------------

    def bitmask(self) -> NDArray[np.int32]:
        """Return the allowed tokens as a read-only ``int32[ceil(size / 32)]``; token ``t`` is bit ``t % 32`` of word
        ``t // 32``.

        It is a view of a row that the index holds: no copy is made, and it stays valid after `advance`.
        """
        config = self._config
        return self._index.eos_row if config is _END else self._machine.row(config)

    def fill_bitmask(self, bitmask: object) -> None:
        """Write the allowed tokens into ``bitmask``, in place.

        Parameters
        ----------
        bitmask:
            A writable ``int32[words]``: a NumPy array, or a torch tensor on the CPU, with any strides. It may be
            wider than the vocabulary (padded logits); the rest is set to zero. It may be narrower where only ids
            without bytes or names are left out.

        Raises
        ------
        BitmaskError
            For another dtype, shape or device, for too few words, and for words that share memory.
        """
        config = self._config
        row = self._index.eos_row if config is _END else self._machine.row(config)
        words = self._words
        if (
            type(bitmask) is not _ndarray
            or bitmask.strides != _PACKED
            or bitmask.dtype is not _INT32
            or len(bitmask) != words
        ):
            bitmask = checked_mask(bitmask, words, self._index.vocabulary.least_words)
            row = row[: len(bitmask)]
        try:
            bitmask[...] = row  # a quarter faster than [:]
        except ValueError as error:
            raise BitmaskError("the bitmask is read-only", remedy="Pass an array that can be written.") from error

    def allows(self, token_id: int) -> bool:
        """Return whether `advance` would accept a token. No mask is computed.

        Parameters
        ----------
        token_id:
            ``0 <= token_id < size``.

        Raises
        ------
        TokenIdError
            For an id outside the vocabulary, or anything but an integer.
        """
        if type(token_id) is not int or not 0 <= token_id < self._size:
            token_id = checked_token(token_id, self._size)
        return self._target(token_id) is not None

    # -- moves -----------------------------------------------------------------------------------------

    def advance(self, token_id: int) -> bool:
        """Append one token and return True, or return False and change nothing if the mask does not allow it.

        Parameters
        ----------
        token_id:
            ``0 <= token_id < size``.

        Raises
        ------
        TokenIdError
            For an id outside the vocabulary, or anything but an integer.
        """
        if type(token_id) is not int or not 0 <= token_id < self._size:
            token_id = checked_token(token_id, self._size)
        config = self._config
        target: Config | None = self._machine.advance(config, token_id) if config is not _END else None
        if target is None:
            target = self._target(token_id)  # the end, or a refusal
            if target is None:
                return False
        self._past = (self._past, config, token_id)
        self._config = target
        room = self._room
        if room:
            self._room = room = room - 1
            if not room:
                self._forget()
        return True

    def _forget(self) -> None:
        """Keep only what `max_rollback` asks for."""
        most = self._most or 0
        kept: list[tuple[Config, int]] = []
        tokens = array("i")
        past = self._past
        while past is not None:
            past, config, token = past
            if len(kept) < most:
                kept.append((config, token))
            else:
                tokens.append(token)
        self._past = None
        for config, token in reversed(kept):
            self._past = (self._past, config, token)
        tokens.reverse()
        self._text = self._text, tokens.tobytes()
        self._room = _room(most) - most

    def _target(self, token_id: int) -> Config | None:
        """Where a token leads, or ``None`` where it is not allowed."""
        config = self._config
        if config is _END:
            return _END if token_id in self._index.vocabulary.eos_ids else None
        target = self._machine.advance(config, token_id)
        if target is None and token_id in self._index.vocabulary.eos_ids and self._machine.is_accepting(config):
            return _END
        return target

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens.

        Raises
        ------
        RollbackError
            For more tokens than there are, or than ``max_rollback`` remembers.
        """
        if type(n) is not int:
            n = integer(n, "a number of tokens", RollbackError)
        past, config = self._past, self._config
        for taken in range(n):
            if past is None:
                raise RollbackError(
                    f"cannot roll back {n} tokens, only {taken} were accepted"
                    + ("" if self._most is None else " or are remembered")
                )
            past, config, _ = past
        if n < 0:
            raise RollbackError(f"cannot roll back {n} tokens")
        self._past, self._config = past, config
        if self._room:
            self._room += n

    def fork(self) -> Guide:
        """Return an independent guide at the same place, in constant time."""
        twin = Guide.__new__(Guide)
        twin._index, twin._machine, twin._size = self._index, self._machine, self._size
        twin._words, twin._config, twin._past = self._words, self._config, self._past
        twin._most, twin._room, twin._text, twin._given = self._most, self._room, self._text, self._given
        return twin

    __copy__ = fork

    def __deepcopy__(self, _: object) -> Guide:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        return _replayed, (self._index, self._most, self._given, self._all_tokens())

    def _all_tokens(self) -> bytes:
        """All tokens, ``int32``, those that were forgotten included."""
        (_, *tokens), text = self.tokens()
        parts = [array("i", tokens).tobytes()]
        while text is not None:
            text, earlier = text
            parts.append(earlier)
        return b"".join(reversed(parts))

    def tokens(self) -> tuple[list[int], Forgotten | None]:
        """The token that led to each configuration of `path`, `NO_TOKEN` for the first, and those before them."""
        found, past = [], self._past
        while past is not None:
            past, _, token = past
            found.append(token)
        return [NO_TOKEN, *reversed(found)], self._text

    def path(self) -> list[Config | None]:
        """The configurations that were gone through, the first one first; None stands for the end."""
        found: list[Config | None] = []
        past, config = self._past, self._config
        while True:
            found.append(None if config is _END else config)
            if past is None:
                return found[::-1]
            past, config, _ = past

    @classmethod
    def at(
        cls,
        index: Index,
        path: Iterable[Config | None],
        tokens: Iterable[int],
        text: Forgotten | None = None,
        *,
        max_tokens: int | None = None,
    ) -> Guide:
        """A guide that has gone through some configurations of an index; see `path` and `tokens`."""
        guide = cls(index, max_tokens=max_tokens)
        guide._text = text
        for i, (config, token) in enumerate(zip(path, tokens, strict=True)):
            if i:
                guide._past = guide._past, guide._config, token
            guide._config = _END if config is None else config
        return guide

    def over(self, vocabulary: Vocabulary) -> Guide:
        """Return this guide for the same tokens with the EOS ids and width of ``vocabulary``; see `Index.over`."""
        index = self._index.over(vocabulary)
        return self if index is self._index else _replayed(index, self._most, self._given, self._all_tokens())

    def reset(self) -> None:
        """Return to the beginning, and forget the tokens that could be rolled back."""
        self._config, self._past, self._text = self._machine.start, None, None
        self._room = _room(self._most)

    # -- what must follow ------------------------------------------------------------------------------

    def forced_bytes(self) -> bytes:
        """Return the bytes with which every valid text continues, at most 1,024. They may end within a character."""
        from .forced import forced_bytes

        return forced_bytes(self._machine, self.config)

    def forced_tokens(self, encode: Callable[[str], Sequence[int]] | None = None) -> list[int]:
        """Return the tokens that must follow, split as the tokenizer splits their text, whatever comes after them.

        Append them without asking the model (jump-forward decoding). The list is empty where nothing is forced or
        the split depends on later text.

        Parameters
        ----------
        encode:
            The function that splits a text into token ids, without special tokens. None: the vocabulary's own.

        Raises
        ------
        VocabularyError
            Where no tokenizer is known.
        """
        from .forced_tokens import forced_tokens

        return forced_tokens(self.index, self._machine, self.config, encode)

    # -- what a grammar says of its rules --------------------------------------------------------------

    def captures(self) -> tuple[Capture, ...]:
        """Return the parts of the text that rules of a grammar capture, ``name[capture]: ...``, inner ones first.

        For a finished text: all captures. For an unfinished one: those that no continuation can change. The text is
        parsed again, at some microseconds a byte.

        Raises
        ------
        UnsupportedError
            For a guide that began in the middle of a text.
        """
        from .captures import captures

        return captures(self._index, array("i", self._all_tokens()))

    @property
    def temperature(self) -> float | None:
        """The temperature at which to sample the next token, ``name[temperature=0.7]: ...``, or None.

        Where several lexemes with temperatures may come next, it is the highest.
        """
        config = self._config
        return None if config is _END else self._machine.temperature(config)

    # -- questions -------------------------------------------------------------------------------------

    def is_accepting(self) -> bool:
        """Return whether the text is complete, so that an EOS id is allowed."""
        config = self._config
        return config is _END or self._machine.is_accepting(config)

    def is_finished(self) -> bool:
        """Return whether an EOS id was accepted."""
        return self._config is _END

    def __repr__(self) -> str:
        state = "finished" if self.is_finished() else "accepting" if self.is_accepting() else "open"
        return f"<Guide {state} at {self._config!r} of {self._index!r}>"


def checked_mask(bitmask: object, words: int, least: int) -> NDArray[np.int32]:
    """The words of a mask that a row is to be written to, ``least`` or more; those behind are set to zero.

    Raises `BitmaskError`.
    """
    array = array_of(bitmask, f"int32[{words}]")
    if array.dtype != _INT32 or array.ndim != 1 or len(array) < least:
        raise BitmaskError(
            f"a bitmask is int32[{least}] or wider, got {array.dtype}{list(array.shape)}",
            remedy="Allocate numpy.zeros(-(-width // 32), numpy.int32).",
        )
    array[words:] = 0
    return array[:words]


def _room(most: int | None) -> int:
    """How many tokens may be accepted before old ones are forgotten; 0 where there is no bound."""
    return 0 if most is None else most + max(most, _SPARE) + 1


def _replayed(index: Index, max_rollback: int | None, max_tokens: int | None, tokens: bytes) -> Guide:
    """A guide that has accepted some tokens, ``int32``: one that was pickled."""
    guide = Guide(index, max_rollback=max_rollback, max_tokens=max_tokens)
    for token in array("i", tokens):
        if not guide.advance(token):
            raise TokenIdError(f"token {token} of a guide that was pickled is not allowed")
    return guide
