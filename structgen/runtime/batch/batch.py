"""`GuideBatch`: many sequences over one vocabulary, moved and masked together.

What a `Guide` does for one sequence, a batch does for all of its sequences in one call of a kernel, over the same
stores (`structgen.runtime.batch.steppers`). Histories are a forest (`structgen.runtime.batch.histories`), and masks for
devices numbered rows (`structgen.runtime.rows.row_store`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...errors import BatchError, RollbackError, StructgenError, TokenIdError, VocabularyMismatchError
from ...kernels import DEAD, ENDED, FREE
from ...system.arguments import Integers, check_range, checked_rollback, checked_tokens, describe, integers
from ...vocabulary.vocabulary import Vocabulary, check_vocabulary
from ..guide.guide import NO_TOKEN, Guide
from ..index.index import Index, check_index
from ..rows.row_store import RowStore
from .drafts import Drafts
from .histories import Histories
from .limits import Limits, unlimited_path
from .steppers import Steppers

#: More tokens than a row can have.
_LONGEST = (1 << 31) - 1

#: Tokens between two looks at what is remembered.
_SPARE = 1 << 12


class GuideBatch:
    """Many sequences followed together, as rows 0 to ``len(batch) - 1``.

    Each row follows its own index, or none: then every id of the vocabulary is allowed. The state after an EOS
    token is that of `Guide`.

    A row that fails does not affect others: they advance, and `errors` holds the error by row. A batch is for one
    thread at a time; indexes may be shared.

    Parameters
    ----------
    vocabulary:
        The tokens of all indexes, with the EOS ids and the width of the batch; see `Index.over`.
    indexes:
        The first rows; see `add`.
    max_rollback:
        The number of tokens of each row that can be rolled back. None: all, at 16 bytes each, otherwise 4.

    Raises
    ------
    VocabularyMismatchError
        For an index of another vocabulary; names the row.
    """

    def __init__(
        self, vocabulary: Vocabulary, indexes: Iterable[Index | Guide | None] = (), *, max_rollback: int | None = None
    ) -> None:
        check_vocabulary(vocabulary)
        max_rollback = checked_rollback(max_rollback)
        self.vocabulary = vocabulary
        #: The masks by number, as `row_ids` gives them.
        self.rows = RowStore(vocabulary)
        #: What was wrong in the last call, by row.
        self.errors: dict[int, StructgenError] = {}
        self._steppers = Steppers(vocabulary, self.rows)
        self._histories = Histories(max_rollback)
        self._limits = Limits(self._steppers, self._histories)
        self._indexes: list[Index | None] = []
        self._every = self._no_token = np.zeros(0, np.int32)
        self._spare = 0  # tokens since the last look at what is remembered
        #: The batch's own masks, ``int32[batch, words]``; what they show (see `Steppers.write`); of which generation.
        self._masks = np.zeros((0, vocabulary.words), np.int32)
        self._shown, self._shown_of = np.zeros((2, 0), np.int64), 0
        for each in indexes:
            self.add(each)

    def __len__(self) -> int:
        return len(self._indexes)

    def __repr__(self) -> str:
        return f"<GuideBatch of {len(self)} over {self.vocabulary!r}>"

    # -- rows ------------------------------------------------------------------------------------------

    def add(self, index: Index | Guide | None, *, max_tokens: int | None = None) -> int:
        """Append a row and return its number.

        Parameters
        ----------
        index:
            An index, to begin at its beginning; a guide, to continue where it is; None, for a row without a
            definition.
        max_tokens:
            As in `Guide`. A guide has its own, and a row without a definition has none.

        Raises
        ------
        ArgumentError
            As in `Guide`.
        TokenBudgetError
            As in `Guide`.
        UnsupportedError
            As in `Guide`.
        VocabularyMismatchError
            For an index of another vocabulary; names the row. The batch is unchanged.
        """
        guide, index = (index, index.index) if isinstance(index, Guide) else (None, index)
        if index is not None:
            check_index(index)
        if index is not None and index.vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise VocabularyMismatchError(
                f"the index belongs to {index.vocabulary!r}, the batch to {self.vocabulary!r}",
                where=f"row {len(self)}",
                remedy="Compile every definition of a batch with the model's own vocabulary.",
            )
        index = index and index.over(self.vocabulary)
        guide = guide and guide.over(self.vocabulary)
        self._make_room()
        if guide is None:
            self._limits.add(index, max_tokens)
            node = self._histories.begin(self._start(index))
        else:
            configs, given, left = unlimited_path(guide)
            self._limits.add(index, given, left)
            path, tokens = self._steppers.places(guide.index.machine, configs), guide.tokens()
            before = len(tokens) - len(path) + 1
            node = self._histories.grow(path, [NO_TOKEN, *tokens[before:]], tokens[:before].tobytes())
        self._indexes.append(index)
        self._histories.at = np.append(self._histories.at, np.int32(node))
        self._rearranged()
        self._look([len(self) - 1])
        return len(self) - 1

    def remove(self, rows: Integers) -> None:
        """Remove rows. Later rows move up.

        Parameters
        ----------
        rows:
            ``int[n]``: the numbers of the rows.

        Raises
        ------
        BatchError
            For a row that does not exist.
        """
        gone = set(self._which(rows).tolist())
        self.reorder([row for row in range(len(self)) if row not in gone])

    def reorder(self, rows: Integers) -> None:
        """Replace row ``i`` by row ``rows[i]``, with its history. A row may be named several times, or never.

        Use it to reorder beams and to fork sequences. Each row takes constant time.

        Parameters
        ----------
        rows:
            ``int[n]``: the numbers of the rows.

        Raises
        ------
        BatchError
            For a row that does not exist.
        """
        chosen = self._which(rows, distinct=False)
        self._indexes = [self._indexes[row] for row in chosen.tolist()]
        self._histories.at = self._histories.at[chosen]
        self._limits.reorder(chosen)
        self._rearranged()

    def reset(self, rows: Integers = None) -> None:
        """Return rows to the beginning, and forget the tokens that could be rolled back.

        Parameters
        ----------
        rows:
            ``int[n]``: the numbers of the rows. None: all.
        """
        which = self._which(rows)
        for row in which.tolist():
            node = self._histories.begin(self._start(self._indexes[row]))
            self._histories.at[row] = node  # not sooner: room for a node may be made by moving others
        self._limits.left[which] = self._limits.given[which]
        self._look(which)

    def sweep(self) -> None:
        """Forget history that no row can return to. The batch does this by itself from time to time."""
        self._histories.sweep()

    def index(self, row: int) -> Index | None:
        """Return the index of ``row``, or None."""
        return self._indexes[int(self._which([row])[0])]

    def guide(self, row: int) -> Guide | None:
        """Return an independent guide at the place of ``row``, with its history, or None for a row without an
        index.
        """
        index = self.index(row)
        if index is None:
            return None
        pairs = map(self._steppers.config, self._histories.path(row))
        path = self._limits.path(row, [pair and pair[1] for pair in pairs])
        return Guide.at(index, path, self._histories.tokens_of(row), max_tokens=self._limits.of(row))

    def _parts(self) -> tuple[Vocabulary, int | None, list[Guide | list[int]]]:
        rows = [self.guide(row) or self._histories.path(row) for row in range(len(self))]
        return self.vocabulary, self._histories.most, rows

    def __reduce__(self) -> tuple[object, ...]:
        return _again, self._parts()

    def __copy__(self) -> GuideBatch:
        return _again(*self._parts())

    def _rearranged(self) -> None:
        rows = len(self._histories.at)
        self._shown = np.full((2, rows), -1, np.int64)
        self._every, self._no_token = np.arange(rows, dtype=np.int32), np.full(rows, -1, np.int32)
        self.errors = {}

    def _start(self, index: Index | None) -> int:
        return FREE if index is None else self._steppers.start(index.machine)

    def _look(self, rows: Integers, ahead: int = 0) -> None:
        self._limits.look(np.asarray(rows, np.int32), self._indexes, ahead)

    # -- masks -----------------------------------------------------------------------------------------

    def row_ids(self) -> NDArray[np.int32]:
        """Return the id of each row's mask in `rows`, ``int32[batch]``, for a device that holds the masks.

        The ids are valid for the current step only: `rows` is bounded and forgets masks.
        """
        numbers, errors = self._steppers.numbers_of_rows(self._histories.here())
        self.errors |= errors
        return self.rows.ids_of(numbers)

    def bitmask(self) -> NDArray[np.int32]:
        """Return the allowed tokens as a read-only ``int32[batch, words]`` that the batch owns.

        Only masks that differ from the last call are written. The array is valid until a method moves rows.
        """
        if len(self._masks) != len(self):
            self._masks = np.zeros((len(self), self.vocabulary.words), np.int32)
        if self._shown_of != self._steppers.generation:
            self._shown[0], self._shown_of = -1, self._steppers.generation
        self.errors |= self._steppers.write(self._histories.here(), self._masks, self._shown)
        view: NDArray[np.int32] = self._masks.view()
        view.flags.writeable = False
        return view

    def fill_bitmask(self, bitmask: object) -> None:
        """Write the allowed tokens of every row into ``bitmask``, in place.

        Parameters
        ----------
        bitmask:
            A writable ``int32[batch, words]``: a NumPy array, or a torch tensor on the CPU, as wide as in
            `Guide.fill_bitmask`.

        Raises
        ------
        BitmaskError
            For another dtype, shape or device, and for too few words.
        """
        self.errors |= self._steppers.fill(self._histories.here(), bitmask)

    # -- moves -----------------------------------------------------------------------------------------

    def advance(self, token_ids: Integers, rows: Integers = None) -> NDArray[np.bool_]:
        """Append one token to each row, or to some rows.

        A row whose token is not allowed stays unchanged, and `errors` holds the reason.

        Parameters
        ----------
        token_ids:
            ``int[n]``: one for each row of ``rows``.
        rows:
            ``int[n]``: the numbers of the rows, each once. None: all.

        Returns
        -------
        bool[n]
            Which tokens were accepted.

        Raises
        ------
        BatchError
            For a wrong number of tokens, or a row that does not exist; nothing has changed.
        TokenIdError
            For an id outside the vocabulary, or anything but an integer; nothing has changed.
        """
        which = self._which(rows)
        wanted = checked_tokens(token_ids, self.vocabulary.size)
        if wanted.shape != which.shape:
            raise BatchError(f"{len(which)} rows are advanced by token_ids int[{len(which)}], got {describe(wanted)}")
        self._make_room(len(which))
        tokens, histories = wanted.astype(np.int32), self._histories
        begins = histories.here() if which is self._every else histories.here()[which]
        reached, errors = self._steppers.follow(tokens, self._no_token[: len(which)], begins)
        self.errors = {int(which[index]): error for index, error in errors.items()}
        accepted: NDArray[np.bool_] = reached > DEAD
        moved, are_all_accepted = which, bool(accepted.all())
        if not are_all_accepted:
            moved, reached, tokens = which[accepted], reached[accepted], tokens[accepted]
        histories.extend(moved, reached, tokens)
        self._limits.take(moved, self._indexes)
        if not are_all_accepted:
            for row, token in zip(which[~accepted].tolist(), wanted[~accepted].tolist(), strict=True):
                what = f"token {token} is not allowed by the definition of its row"
                self.errors.setdefault(row, TokenIdError(what, where=f"row {row}"))
        return accepted

    def advance_many(self, token_ids: Integers, counts: Integers = None) -> NDArray[np.int64]:
        """Append several tokens to each row, up to the first that is not allowed.

        Parameters
        ----------
        token_ids:
            ``int[batch, k]``.
        counts:
            ``int[batch]``: how many of the ``k`` tokens each row gets. None: all.

        Returns
        -------
        int64[batch]
            How many tokens of each row were accepted.

        Raises
        ------
        BatchError
            As in `advance`.
        TokenIdError
            As in `advance`.
        """
        tokens = integers(token_ids, "token_ids", TokenIdError, dimensions=2)
        if len(tokens) != len(self):
            raise BatchError(f"token_ids are int[{len(self)}, k], got {describe(tokens)}")
        wanted = np.full(len(self), tokens.shape[1]) if counts is None else integers(counts, "counts")
        if wanted.shape != (len(self),) or (wanted < 0).any() or (wanted > tokens.shape[1]).any():
            raise BatchError(f"counts are int[{len(self)}], from 0 to {tokens.shape[1]}, got {describe(wanted)}")
        check_range(tokens[np.arange(tokens.shape[1]) < wanted[:, None]], self.vocabulary.size)
        taken = np.zeros(len(self), np.int64)
        errors: dict[int, StructgenError] = {}
        for column in range(tokens.shape[1]):
            rows = np.flatnonzero((taken == column) & (wanted > column))
            taken[rows] += self.advance(tokens[rows, column], rows)
            errors |= self.errors
        self.errors = errors
        return taken

    def draft(self, token_ids: Integers, above: Integers, rows: Integers) -> Drafts:
        """Follow proposed tokens of rows without moving the rows, for speculative decoding.

        The tokens of a row form a chain or a tree. A token comes after the token it follows.

        Parameters
        ----------
        token_ids:
            ``int[n]``: the proposed tokens.
        above:
            ``int[n]``: the position in ``token_ids`` of the token before each; -1 for the next token of the row.
        rows:
            ``int[n]``: the row of each token.

        Returns
        -------
        Drafts
            The masks of the rows and behind each token.

        Raises
        ------
        BatchError
            For arrays of different lengths, a row that does not exist, or a token that follows a later one or one
            of another row.
        TokenIdError
            As in `advance`.
        """
        tokens, before = checked_tokens(token_ids, self.vocabulary.size), integers(above, "above")
        which = self._which(rows, distinct=False)
        if not len(tokens) == len(before) == len(which):
            raise BatchError(f"{len(tokens)} tokens of a draft, {len(before)} places before them, {len(which)} rows")
        wrong = (before < -1) | (before >= np.arange(len(before)))
        if not wrong.any():
            wrong = (before >= 0) & (which[before] != which)
        if wrong.any():
            raise BatchError("a token of a draft follows an earlier one of its row", where=f"place {wrong.argmax()}")
        self._make_room(len(which))
        self._look(np.unique(which), len(tokens))
        begins = self._histories.here()[which]
        return Drafts(self._steppers, tokens.astype(np.int32), before.astype(np.int32), begins)

    def rollback(self, counts: Integers, rows: Integers = None) -> None:
        """Take back the last accepted tokens of rows.

        Parameters
        ----------
        counts:
            One number for all, or ``int[n]``, one for each row.
        rows:
            ``int[n]``: the numbers of the rows, each once. None: all.

        Raises
        ------
        RollbackError
            For more tokens than there are, or than ``max_rollback`` remembers; names the row. Nothing has changed.
        """
        which = self._which(rows)
        back = integers(counts, "counts", RollbackError, few=True)
        if back.ndim and back.shape != which.shape:
            raise BatchError(f"{len(which)} rows are rolled back by counts int[{len(which)}], got {describe(back)}")
        back = np.broadcast_to(back, which.shape)
        back = np.clip(back, -1, _LONGEST).astype(np.int32)
        nodes = self._histories.before(which, np.maximum(back, 0))
        wrong = np.flatnonzero((nodes < 0) | (back < 0))
        if len(wrong):
            row = int(which[wrong[0]])
            known = len(self._histories.path(row)) - 1
            raise RollbackError(
                f"cannot roll back {back[wrong[0]]} tokens, {known} were accepted, or are remembered",
                where=f"row {row}",
            )
        self._histories.at[which] = nodes
        self._limits.give_back(which, back, self._indexes)

    # -- questions -------------------------------------------------------------------------------------

    def is_accepting(self) -> NDArray[np.bool_]:
        """Return which rows are complete, so that an EOS id is allowed: ``bool[batch]``.

        A row that takes too much work to tell is False, and `errors` holds the reason.
        """
        found = np.zeros(len(self), np.bool_)
        for row, place in enumerate(self._histories.here().tolist()):
            try:
                found[row] = self._steppers.is_accepting(place)
            except StructgenError as error:
                self.errors[row] = error
        return found

    def is_finished(self) -> NDArray[np.bool_]:
        """Return which rows have accepted an EOS id: ``bool[batch]``. A row without an index never has."""
        finished: NDArray[np.bool_] = self._histories.here() == ENDED
        return finished

    # -- in common -------------------------------------------------------------------------------------

    def _make_room(self, tokens: int = 0) -> None:
        """Forget where too much is remembered, from time to time; so many tokens are about to be followed."""
        self._steppers.failed.clear()
        if self.rows.is_full():
            self.rows.forget()
            self._steppers.forget_rows()
        self._spare += tokens
        if self._spare >= _SPARE or self._steppers.are_many():
            self._spare = 0
            if replaced := self._steppers.replaced():
                self._steppers.renew(replaced, self._histories.standing())

    def _which(self, rows: Integers, *, distinct: bool = True) -> NDArray[np.int32]:
        """Numbers of rows, checked; all of them for None."""
        if rows is None:
            return self._every
        which = integers(rows, "rows", few=True).reshape(-1)
        outside = (which < 0) | (which >= len(self))
        if outside.any():
            raise BatchError(f"the batch has {len(self)} rows", where=f"row {which[outside][0]}")
        if distinct:
            seen = np.zeros(len(self), np.bool_)
            seen[which] = True
            if np.count_nonzero(seen) < len(which):
                raise BatchError("a row is named twice", where=f"rows {which.tolist()[:20]}")
        return which.astype(np.int32)


def _again(vocabulary: Vocabulary, max_rollback: int | None, rows: list[Guide | list[int]]) -> GuideBatch:
    """A batch that was pickled or copied: its rows as guides, or as paths where they have no index."""
    batch = GuideBatch(vocabulary, max_rollback=max_rollback)
    for row in rows:
        if isinstance(row, Guide):
            batch.add(row)
        else:
            number = batch.add(None)
            batch._histories.at[number] = batch._histories.grow(row, [NO_TOKEN] * len(row))
    return batch
