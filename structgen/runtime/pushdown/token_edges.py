"""What an automaton with a stack does with whole tokens: edges that take them by their ids, and bounds on tokens.

What they mean is in `structgen.compiler.programs.program`. Here are their columns, and how a machine follows them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, InternalError
from ...storage import columns
from ...storage.columns import MOST, Column, Columns, Sizes
from ...storage.container import smallest
from ...system.properties import cached_property
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..rows.bitmask import ids_of, pack

#: As in `structgen.runtime.pushdown.tables`.
_Moves: TypeAlias = "tuple[tuple[tuple[int, ...] | None, tuple[int, ...]], ...]"

#: The sections of the file format (see docs/internals/format.md): all of them, or none.
SECTIONS = Columns(
    Column("tok_complement", "u1", rows="token_sets", below=3),
    Column("tok_in", rows="token_members", below="token_sets", order="never falls"),
    Column("tok_id", rows="token_members", below="size"),
    Column("tok_state", rows="token_edges", below="states", order="never falls"),
    Column("tok_set", rows="token_edges", below="token_sets"),
    Column("tok_target", rows="token_edges", below=("states", "groups", 1), least=1),
    Column("cap_state", rows="token_bounds", below="states", order="rises"),
    Column("cap_most", "u4", rows="token_bounds", below=MOST + 1, least=1),
    Column("cap_exhausted", rows="token_bounds", below="states"),
)


@dataclass(eq=False)
class TokenTables:
    """The columns of an automaton's token edges and token bounds.

    Parameters
    ----------
    complements:
        ``uint8[sets]``: 1 for a set of all tokens but some, 2 for one that has no EOS ids.
    within, ids:
        ``uint[members]``: a set, never falling, and the id of a token in it.
    states, sets, targets:
        ``uint[edges]``: the state of each edge, never falling, its set of tokens, its target as in ``edge_target``.
    bounded, most, exhausted:
        ``uint[bounds]``: states, ascending, the tokens that may end in each, and the state that takes its place then.
    counts:
        Whether there are bounds, or may come to be as the tables grow.
    """

    complements: NDArray[np.uint8]
    within: Array
    ids: Array
    states: Array
    sets: Array
    targets: Array
    bounded: Array
    most: Array
    exhausted: Array
    counts: bool

    def moves(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What takes the place of states, as a tail and a head each: targets of token edges less 1, and exhausted
        states."""
        tails = np.concatenate([self.states, self.bounded]).astype(np.int64)
        return tails, np.concatenate([self.targets.astype(np.int64) - 1, self.exhausted])

    def members(self, number: int) -> tuple[Array, bool]:
        """The ids of a set, and whether it is all the others."""
        begin, end = np.searchsorted(self.within, [number, number + 1])
        return self.ids[begin:end], self.complements[number] == 1

    @cached_property
    def bounds(self) -> dict[int, tuple[int, int]]:
        """By state the tokens that may end there, and the state that takes its place then."""
        pairs = zip(self.most.tolist(), self.exhausted.tolist(), strict=True)
        return dict(zip(self.bounded.tolist(), pairs, strict=True))

    def to_sections(self) -> dict[str, Array]:
        """The sections of the file format."""
        found = (
            self.complements, self.within, self.ids, self.states, self.sets, self.targets, self.bounded, self.most,
            self.exhausted,
        )  # fmt: skip
        sections = {column.name: smallest(each) for column, each in zip(SECTIONS, found, strict=True)}
        return sections | {"tok_complement": self.complements, "cap_most": self.most.astype(np.uint32)}

    @classmethod
    def from_sections(cls, sections: Sections, sizes: Sizes, where: str) -> TokenTables:
        """Read `to_sections`. Raises `FormatError`."""
        found = columns.read(sections, SECTIONS, sizes, where)
        if np.isin(found["cap_exhausted"], found["cap_state"]).any():
            raise FormatError("section 'cap_exhausted' has a state with a bound", where=where)
        complements, *others = found.values()
        within, ids, states, sets, targets, bounded, most, exhausted = others
        return cls(
            complements, within, ids, states, sets, targets, bounded, most, exhausted, bool(sizes["token_bounds"])
        )


class TokenMoves:
    """Token edges over one vocabulary, as a machine follows them: of each state when it is first asked for.

    Parameters
    ----------
    vocabulary:
        The tokens.
    counted_from:
        Tokens are counted from this bit of a count on: below are the counts of loops, and sets, perhaps to come.
    """

    def __init__(self, vocabulary: Vocabulary, counted_from: int) -> None:
        self._vocabulary = vocabulary
        self.counted_from = counted_from
        self._known: dict[int, list[tuple[int, _Moves]]] = {}
        self._members: dict[int, tuple[frozenset[int], bool]] = {}
        self._rows: dict[int, NDArray[np.int32]] = {}
        #: By state the tokens that may end there, and the state that takes its place then.
        self.bounds: dict[int, tuple[int, int]] = {}

    def take(self, tables: TokenTables, states: int, moves: Mapping[int, _Moves]) -> None:
        """Follow these from now on: the same as before, and those of states that were open.

        Parameters
        ----------
        states, moves:
            The number of the automaton's states, and the moves of its groups.
        """
        if len(tables.ids) and int(tables.ids.max()) >= self._vocabulary.size:
            raise InternalError(f"a token edge takes the token {tables.ids.max()}, which there is none of")
        self.bounds = tables.bounds
        self._tables = tables, tables.states.tolist(), states, moves  # read together, without a lock

    def at(self, state: int) -> list[tuple[int, _Moves]]:
        """The token edges of a state that is not open: the number of each's set of tokens, and its moves."""
        found = self._known.get(state)
        if found is None:
            tables, owners, states, moves = self._tables
            edges = slice(bisect_left(owners, state), bisect_right(owners, state))
            targets = [int(target) - 1 for target in tables.targets[edges]]
            found = self._known[state] = [
                (number, moves[target - states] if target >= states else ((None, (target,)),))
                for number, target in zip(tables.sets[edges].tolist(), targets, strict=True)
            ]
        return found

    def has(self, number: int, token_id: int) -> bool:
        """Whether a token is in a set."""
        members, is_complement = self.members(number)
        return (token_id in members) != is_complement

    def members(self, number: int) -> tuple[frozenset[int], bool]:
        """The ids of a set, and whether it is all others; neither EOS ids nor padded ones are among those."""
        known = self._members.get(number)
        if known is None:
            vocabulary, (ids, is_complement) = self._vocabulary, self._tables[0].members(number)
            members = {*ids.tolist()}
            if is_complement:
                members.update(vocabulary.eos_ids, range(vocabulary.known, vocabulary.size))
            elif self._tables[0].complements[number]:
                members.difference_update(vocabulary.eos_ids)
            known = self._members[number] = frozenset(members), is_complement
        return known

    def row(self, number: int) -> NDArray[np.int32]:
        """A set as a mask: read-only ``int32[words]``."""
        row = self._rows.get(number)
        if row is None:
            members, is_complement = self.members(number)
            bits = np.full(32 * self._vocabulary.words, is_complement)
            bits[self._vocabulary.size :] = False
            bits[[*members]] = not is_complement
            row = self._rows[number] = pack(bits)
            row.flags.writeable = False
        return row

    def ids(self, number: int) -> NDArray[np.int64]:
        """The tokens of a set, ascending."""
        return ids_of(self.row(number))
