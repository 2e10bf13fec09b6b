"""`Guide`: one sequence's cursor over a shared `Index`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, RollbackError, TokenIdError
from ...system.arguments import array_of, checked_rollback, checked_token, integer
from ..core.machine import Config, Machine, Stepper
from ..index.index import check_index
from ..index.token_budget import LimitedMachine
from ..rows.bitmask import widened

if TYPE_CHECKING:
    from ...vocabulary.vocabulary import Vocabulary
    from ..index.index import Index
    from .captures import Capture


_INT32 = np.dtype(np.int32)
_ndarray = np.ndarray

#: Tokens between two looks at what is remembered: a power of two. So many more configurations than have to be are kept.
_SPARE = 64

#: Stands in place of the token that would have led to the first configuration.
NO_TOKEN = -1


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
        The number of tokens that can be rolled back. At least these are remembered, at some 40 bytes each; for older
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

    __slots__ = (
        "_advance",
        "_config",
        "_configs",
        "_given",
        "_index",
        "_machine",
        "_most",
        "_owner",
        "_size",
        "_stepper",
        "_tokens",
        "_words",
        "_write_mask",
    )

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
        self._machine: Machine = index.machine if max_tokens is None else LimitedMachine(index, max_tokens)
        self._size = index.vocabulary.size
        self._words = index.vocabulary.words
        self._move_over(self._machine.stepper())
        self._config: Config | None = self._stepper.start  # None once an EOS id was accepted
        self._configs: list[Config | None] = []  # those before it, as far as they can be gone back to
        self._tokens = array("i")  # all tokens

    def _move_over(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._owner, self._advance, self._write_mask = stepper.functions

    @property
    def index(self) -> Index:
        """The index that the guide follows."""
        return self._index

    @property
    def config(self) -> Config | None:
        """The machine's configuration, on which masks and moves depend; None once an EOS id was accepted."""
        config = self._config
        return None if config is None else self._machine.place(self._stepper, config)

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

        It stays valid after `advance`. `fill_bitmask` makes no new array.
        """
        config = self._config
        return self._index.eos_row if config is None else self._stepper.row(config)

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
        try:
            if config is not None and type(bitmask) is _ndarray and len(bitmask) == self._words:
                status = self._write_mask(self._owner, config, bitmask)
                if status:
                    self._stepper.write_slowly(config, bitmask, status)
                return
        except (TypeError, ValueError):  # it is of another kind than steppers write to, or is read-only
            pass
        self._fill(checked_mask(bitmask, self._index.vocabulary.least_words))

    def _fill(self, bitmask: NDArray[np.int32]) -> None:
        """`fill_bitmask` for any other array than one of the vocabulary's words that is contiguous."""
        config = self._config
        row = bitmask if bitmask.flags.c_contiguous and bitmask.flags.writeable else np.empty(len(bitmask), np.int32)
        if config is not None:
            self._stepper.write_mask(config, row)
        else:
            row[...] = widened(self._index.eos_row, len(row))
        if row is not bitmask:
            try:
                bitmask[...] = row
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
        config = self._config
        leads_on = config is not None and self._stepper.advance(config, token_id) is not None
        return leads_on or self._ends(token_id)

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
        target = None if config is None else self._advance(self._owner, config, token_id)
        if type(target) is int and target < 0:
            target = self._stepper.missed(config, token_id, target)
        if target is None and not self._ends(token_id):
            return False
        tokens = self._tokens
        tokens.append(token_id)
        self._configs.append(config)
        self._config = target
        if not len(tokens) % _SPARE:
            self._tidy()
        return True

    def _ends(self, token_id: int) -> bool:
        """Whether a token that leads nowhere ends the text, or has come behind its end."""
        if token_id not in self._index.vocabulary.eos_ids:
            return False
        return self._config is None or self._stepper.is_accepting(self._config)

    def _tidy(self) -> None:
        """Keep only the configurations that `max_rollback` asks for, in the stepper that guides begin with."""
        configs, most = self._configs, self._most
        if most is not None and len(configs) >= most + max(most, _SPARE):
            del configs[: len(configs) - most]
        if self._machine.stepper() is not self._stepper:
            stepper, moved = self._machine.renewed(self._stepper, [*configs, self._config])
            self._move_over(stepper)
            *self._configs, self._config = moved

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens.

        Raises
        ------
        RollbackError
            For more tokens than there are, or than ``max_rollback`` remembers.
        """
        if type(n) is not int:
            n = integer(n, "a number of tokens", RollbackError)
        configs = self._configs
        if not 0 <= n <= len(configs):
            what = f"cannot roll back {n} tokens"
            if n > 0:
                what += f", only {len(configs)} were accepted" + ("" if self._most is None else " or are remembered")
            raise RollbackError(what)
        if n:
            self._config = configs[-n]
            del configs[-n:], self._tokens[-n:]

    def fork(self) -> Guide:
        """Return an independent guide at the same place. Some bytes are copied for each token."""
        twin = Guide.__new__(Guide)
        twin._index, twin._machine = self._index, self._machine
        twin._move_over(self._stepper)
        twin._size, twin._words, twin._most, twin._given = self._size, self._words, self._most, self._given
        twin._config, twin._configs, twin._tokens = self._config, self._configs[:], self._tokens[:]
        return twin

    __copy__ = fork

    def __deepcopy__(self, _: object) -> Guide:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        return _replayed, (self._index, self._most, self._given, self._tokens.tobytes())

    def tokens(self) -> array[int]:
        """All tokens of the text."""
        return self._tokens[:]

    def path(self) -> list[Config | None]:
        """The configurations of the last tokens, as many as can be gone back to, and the first; None is the end."""
        stepper, place = self._stepper, self._machine.place
        return [None if c is None else place(stepper, c) for c in (*self._configs, self._config)]

    @classmethod
    def at(
        cls, index: Index, path: Sequence[Config | None], tokens: array[int], *, max_tokens: int | None = None
    ) -> Guide:
        """A guide that has gone through some configurations of an index; see `path` and `tokens`."""
        guide = cls(index, max_tokens=max_tokens)
        stepper, [*guide._configs, guide._config] = guide._machine.gathered(path)
        guide._move_over(stepper)
        guide._tokens = tokens
        return guide

    def over(self, vocabulary: Vocabulary) -> Guide:
        """Return this guide for the same tokens with the EOS ids and width of ``vocabulary``; see `Index.over`."""
        index = self._index.over(vocabulary)
        return self if index is self._index else _replayed(index, self._most, self._given, self._tokens.tobytes())

    def reset(self) -> None:
        """Return to the beginning, and forget the tokens that could be rolled back."""
        self._move_over(self._machine.stepper())
        self._config, self._configs, self._tokens = self._stepper.start, [], array("i")

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

        return captures(self._index, self._tokens)

    @property
    def temperature(self) -> float | None:
        """The temperature at which to sample the next token, ``name[temperature=0.7]: ...``, or None.

        Where several lexemes with temperatures may come next, it is the highest.
        """
        config = self.config
        return None if config is None else self._machine.temperature(config)

    # -- questions -------------------------------------------------------------------------------------

    def is_accepting(self) -> bool:
        """Return whether the text is complete, so that an EOS id is allowed."""
        config = self._config
        return config is None or self._stepper.is_accepting(config)

    def is_finished(self) -> bool:
        """Return whether an EOS id was accepted."""
        return self._config is None

    def __repr__(self) -> str:
        state = "finished" if self.is_finished() else "accepting" if self.is_accepting() else "open"
        return f"<Guide {state} at {self.config!r} of {self._index!r}>"


def checked_mask(bitmask: object, least: int) -> NDArray[np.int32]:
    """A mask of ``least`` words or more as an array. Raises `BitmaskError`."""
    array = array_of(bitmask, f"int32[{least}]")
    if array.dtype != _INT32 or array.ndim != 1 or len(array) < least:
        raise BitmaskError(
            f"a bitmask is int32[{least}] or wider, got {array.dtype}{list(array.shape)}",
            remedy="Allocate numpy.zeros(-(-width // 32), numpy.int32).",
        )
    return array


def _replayed(index: Index, max_rollback: int | None, max_tokens: int | None, tokens: bytes) -> Guide:
    """A guide that has accepted some tokens, ``int32``: one that was pickled."""
    guide = Guide(index, max_rollback=max_rollback, max_tokens=max_tokens)
    for token in array("i", tokens):
        if not guide.advance(token):
            raise TokenIdError(f"token {token} of a guide that was pickled is not allowed")
    return guide
