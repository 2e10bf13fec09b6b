"""`Matcher`: one request's guide, in the shape in which engines drive XGrammar.

Engines speak of accepting tokens (or refusing them, which changes nothing), rolling back, filling a row of a batch's
bitmask, and having terminated, which is when a token that ends the text was accepted. Their draft tokens, and the ids
of padded logits, are any numbers at all: a token that is not in the vocabulary is refused like another.

An error from a step would end the requests beside it, too. So where one takes too much work
(`structgen.budget.StepMeter`), the text ends, which the log says, as it does at an engine's own limit of tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import BitmaskError, BudgetExceededError, RollbackError, TokenIdError
from ..runtime.guide.forced import whole_characters
from ..runtime.guide.guide import Guide, checked_mask
from ..runtime.rows.bitmask import widened
from ..system.arguments import integer
from ..system.types import Foreign
from .refusals import RefusedTokenError

if TYPE_CHECKING:
    from ..runtime.index.index import Index
    from ..vocabulary.vocabulary import Vocabulary

_log = logging.getLogger(__name__)


class Matcher:
    """A cursor of one request in an engine: a guide with the request's own stop ids.

    Parameters
    ----------
    index:
        The definition.
    stop_ids:
        Ids that end this request's text besides the EOS ids, where it is complete. Ids with bytes are left out,
        because they are text.
    max_rollback:
        The number of tokens that can be rolled back. None: all.
    max_tokens:
        The most tokens of the text, as in `Guide`.
    """

    def __init__(
        self,
        index: Index,
        *,
        stop_ids: Iterable[int] = (),
        max_rollback: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._guide = Guide(index, max_rollback=max_rollback, max_tokens=max_tokens)
        self._stop_ids = _silent_ids(index.vocabulary, stop_ids)
        #: Once the text has ended here: how many of the accepted tokens the guide has not followed. That is one for
        #: a stop id and for a token that takes too much work, none where a mask does.
        self._stopped: int | None = None

    @property
    def index(self) -> Index:
        """The definition's index."""
        return self._guide.index

    # -- tokens ----------------------------------------------------------------------------------------

    def accept(self, token_id: int) -> bool:
        """Append a token and return True, or return False and change nothing if it is not allowed or the text has
        ended.

        Parameters
        ----------
        token_id:
            The token.
        """
        token_id = integer(token_id, "a token id", TokenIdError)
        if self.is_terminated() or not 0 <= token_id < self.index.vocabulary.size:
            return False
        try:
            if self._guide.advance(token_id):
                return True
            if token_id in self._stop_ids and self._guide.is_accepting():
                self._stopped = 1
        except BudgetExceededError as error:
            self._end(1, error)
        return self._stopped is not None

    def require(self, token_id: int, where: str = "") -> None:
        """Append a token that must be allowed.

        Parameters
        ----------
        token_id:
            The token.
        where:
            The place, for the error.

        Raises
        ------
        TokenIdError
            For a token that is not allowed; its message says why.
        """
        if not self.accept(token_id):
            raise self.refusal(token_id, where)

    def refusal(self, token_id: int, where: str = "") -> TokenIdError:
        """The error for a token that is not allowed; its text says why."""
        if self.is_terminated():
            return TokenIdError(f"token {token_id} cannot be accepted: the text has ended", where=where)
        return RefusedTokenError(self._guide, token_id, where)

    def accepted_prefix(self, tokens: Sequence[int]) -> list[int]:
        """Return the longest prefix of ``tokens`` that could be accepted. None of them is accepted."""
        probe = self.fork()
        accepted = []
        for token in tokens:
            if not probe.accept(token):
                break
            accepted.append(token)
        return accepted

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens.

        Raises
        ------
        RollbackError
            For more tokens than there are, or than ``max_rollback`` remembers.
        """
        if integer(n, "a number of tokens", RollbackError) > 0 and self._stopped is not None:
            self._guide.rollback(n - self._stopped)
            self._stopped = None
        else:
            self._guide.rollback(n)

    def retokenize(self, old: Sequence[int], new: Sequence[int]) -> None:
        """Replace the last ``len(old)`` tokens by others, such as a longer text's.

        Parameters
        ----------
        old:
            The tokens to take back.
        new:
            The tokens to append.

        Raises
        ------
        RollbackError
            For more tokens than were accepted; nothing has changed.
        TokenIdError
            For a token that is not allowed; nothing has changed.
        """
        shared = 0
        while shared < min(len(old), len(new)) and old[shared] == new[shared]:
            shared += 1
        before = self.fork()
        try:
            self.rollback(len(old) - shared)
            for position in range(shared, len(new)):
                self.require(new[position], f"token {position} of the new ones")
        except (RollbackError, TokenIdError):
            self._guide, self._stopped = before._guide, before._stopped
            raise

    def reset(self) -> None:
        """Return to the beginning."""
        self._guide.reset()
        self._stopped = None

    def fork(self) -> Matcher:
        """Return an independent matcher at the same place."""
        twin = Matcher.__new__(Matcher)
        twin._guide, twin._stop_ids, twin._stopped = self._guide.fork(), self._stop_ids, self._stopped
        return twin

    def fresh(self) -> Matcher:
        """An independent matcher at the beginning."""
        twin = self.fork()
        twin.reset()
        return twin

    # -- questions -------------------------------------------------------------------------------------

    def is_terminated(self) -> bool:
        """Return whether a token that ends the text was accepted, or a step took too much work."""
        return self._stopped is not None or self._guide.is_finished()

    def row(self) -> NDArray[np.int32]:
        """Return the allowed tokens as a read-only ``int32[words]``; after the end, the ids that end a text."""
        try:
            row: NDArray[np.int32] = self._guide.bitmask() if self._stopped is None else self.index.eos_row
            if not self._stop_ids or (self._stopped is None and not self._guide.is_accepting()):
                return row
        except BudgetExceededError as error:
            self._end(0, error)
            return self.row()
        row = row.copy()
        bits = row.view(np.uint32)
        for token in self._stop_ids:
            bits[token >> 5] |= np.uint32(1 << (token & 31))
        row.flags.writeable = False
        return row

    def fill(self, bitmask: Foreign, row: int) -> None:
        """Write the allowed tokens into a row of a batch's bitmask, in place.

        Parameters
        ----------
        bitmask:
            A writable ``int32[batch, words]``: a NumPy array or a torch tensor on the CPU. Words beyond the
            vocabulary's are set to zero.
        row:
            ``0 <= row < batch``.

        Raises
        ------
        BitmaskError
            For another dtype, shape or device, too few words, or a row that does not exist; names the row.
        """
        shape = tuple(getattr(bitmask, "shape", ()))
        if len(shape) != 2 or not 0 <= row < shape[0]:
            raise BitmaskError(f"a bitmask is int32[batch, words], got {list(shape)}", where=f"row {row}")
        try:
            if self._stop_ids or self._stopped is not None:
                allowed = self.row()
                mask = checked_mask(bitmask[row], self.index.vocabulary.least_words)
                mask[...] = widened(allowed, len(mask))
            else:
                self._guide.fill_bitmask(bitmask[row])
        except BudgetExceededError as error:
            self._end(0, error)
            self.fill(bitmask, row)
        except BitmaskError as error:
            raise BitmaskError(error.what, where=f"row {row}", remedy=error.remedy) from error

    def _end(self, tokens: int, error: BudgetExceededError) -> None:
        _log.error("structgen: a text ends before its definition says so: %s", error)
        self._stopped = tokens

    def forced_text(self) -> str:
        """Return the whole characters that must follow.

        It is empty where nothing is forced, where only part of a character is, and where the search takes too much
        work.
        """
        try:
            return "" if self.is_terminated() else whole_characters(self._guide.forced_bytes()) or ""
        except BudgetExceededError:
            return ""

    def __repr__(self) -> str:
        return f"<Matcher {'terminated' if self.is_terminated() else 'open'} {self._guide!r}>"


def _silent_ids(vocabulary: Vocabulary, ids: Iterable[int]) -> tuple[int, ...]:
    """Of some ids those in the vocabulary that have no bytes and are no EOS ids already."""
    others = {integer(i, "a stop id", TokenIdError) for i in ids}.difference(vocabulary.eos_ids)
    return tuple(sorted(i for i in others if 0 <= i < vocabulary.size and not vocabulary.token(i)))
