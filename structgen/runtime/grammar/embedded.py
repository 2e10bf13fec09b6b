"""Definitions and special tokens within a grammar, as terminals that the lexer does not read.

A *definition* in a grammar, a JSON Schema say, stands for any of its texts. It is an automaton with a stack of its
own, over the same vocabulary, that begins where the parser accepts its terminal and no lexeme is in progress, and may
end wherever its text is complete. It is not lexed: where it could go on as well as end, or where a lexeme could begin
as well, both are followed.

A *special token* has no bytes. It is one token, where the parser accepts its terminal and the lexeme before it is
complete. A *token by its id* is the same, and may have bytes: then it is one token whatever they are, and is read as
text besides. (The EOS ids are in no range: they end a text.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import Column, Field
from ...storage.container import pack, unpack
from ...system.properties import cached_property
from ...system.types import Array, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.digraph import set_of

if TYPE_CHECKING:
    from ..pushdown.machine import PushdownMachine
    from ..pushdown.stacks import Thread

#: Where a text is in a definition: all its threads.
Inner: TypeAlias = "tuple[Thread, ...]"

#: The fields of the meta section.
FIELDS = (
    Field("definitions", list, of=int, below="terminals"),
    Field("tokens", list, of=list, below=["size", "terminals"]),
    Field("token_ranges", list, of=list, below=["size", "size", "terminals"]),
)


class TokenRange(NamedTuple):
    """The tokens from one id to another, both among them, that a terminal stands for."""

    first: int
    last: int
    terminal: int


@dataclass(frozen=True, eq=False)
class Embedded:
    """What a grammar holds besides terminals that are lexed.

    Parameters
    ----------
    definitions:
        Terminals, each with the machine of its definition.
    tokens:
        Special tokens, and others by their ids. The ranges of a terminal have no id in common.
    """

    definitions: tuple[tuple[int, PushdownMachine], ...] = ()
    tokens: tuple[TokenRange, ...] = ()

    @property
    def terminals(self) -> int:
        """All terminals that are not lexed, as a set."""
        return set_of(terminal for terminal, _ in self.definitions) | self.token_terminals

    @cached_property
    def token_terminals(self) -> int:
        """The terminals that are tokens, as a set."""
        return set_of({each.terminal for each in self.tokens})

    @cached_property
    def _runs(self) -> tuple[list[int], list[int]]:
        """Where ids begin that are of other terminals than those before them, ascending; the sets of terminals."""
        begins, sets, terminals = [0], [0], 0
        changes = [(each.first, each.terminal) for each in self.tokens]
        changes += [(each.last + 1, each.terminal) for each in self.tokens]
        for at, terminal in sorted(changes):  # the ranges of a terminal lie apart
            terminals ^= 1 << terminal
            if at > begins[-1]:
                begins.append(at)
                sets.append(0)
            sets[-1] = terminals
        return begins, sets

    def terminals_of(self, token_id: int) -> int:
        """The terminals that a token is one of, as a set."""
        begins, sets = self._runs
        return sets[bisect_right(begins, token_id) - 1]

    @cached_property
    def groups(self) -> list[int]:
        """The sets of terminals that tokens are of, each once."""
        return sorted({*self._runs[1]} - {0})

    def rows(self, groups: Iterable[int], words: int) -> NDArray[np.int32]:
        """The tokens of some of the groups, given by number, as a row: ``int32[words]``."""
        wanted = {self.groups[number] for number in groups}
        begins, sets = self._runs
        found = np.zeros(32 * words, np.uint8)
        for begin, end, terminals in zip(begins, [*begins[1:], len(found)], sets, strict=True):
            if terminals in wanted:
                found[begin:end] = 1
        return np.packbits(found, bitorder="little").view(np.int32)

    def step(self, number: int, inner: Inner, byte: int) -> tuple[Inner, ...]:
        """Where a byte leads in a definition, by its number; nothing where it leads nowhere."""
        after = self.definitions[number][1].step(inner, byte)
        return (after,) if after else ()

    def begin(self, accepted: int) -> Iterator[tuple[int, Inner]]:
        """The beginnings of the definitions whose terminals are accepted."""
        for number, (terminal, machine) in enumerate(self.definitions):
            if accepted >> terminal & 1:
                yield number, machine.start_threads

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        return {
            "definitions": [terminal for terminal, _ in self.definitions],
            "tokens": sorted([first, terminal] for first, last, terminal in self.tokens if first == last),
            "token_ranges": sorted(list(each) for each in self.tokens if each.first != each.last),
        }

    def to_sections(self) -> dict[str, Array]:
        """A section for each definition: a file within the file (see docs/internals/format.md)."""
        return {
            f"inner_{number}": np.frombuffer(
                pack(machine.to_meta(), machine.to_sections(self_contained=True)), np.uint8
            )
            for number, (_, machine) in enumerate(self.definitions)
        }

    @classmethod
    def read(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, terminals: int, where: str) -> Embedded:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "terminals": terminals}
        found = columns.read_meta({"token_ranges": [], **meta}, FIELDS, sizes, where)
        if found["definitions"]:
            from ..pushdown.machine import PushdownMachine
        machines = []
        for number, terminal in enumerate(found["definitions"]):
            name = f"inner_{number}"
            (stored,) = columns.read(sections, (Column(name, "u1", mapped=True),), {}, where).values()
            inner, own = unpack(stored.data, f"{where}, {name}")
            machines.append((terminal, PushdownMachine.from_sections(inner, own, vocabulary, where)))
        tokens = [TokenRange(token_id, token_id, terminal) for token_id, terminal in found["tokens"]]
        tokens += [TokenRange(*each) for each in found["token_ranges"]]
        if any(first > last for first, last, _ in tokens) or _meet(tokens):
            raise FormatError("ranges of tokens end before they begin, or have tokens in common", where=where)
        return cls(tuple(machines), tuple(tokens))


def _meet(tokens: Iterable[TokenRange]) -> bool:
    """Whether ranges of the same terminal have a token in common."""
    ordered = sorted(tokens, key=lambda each: (each.terminal, each.first))
    return any(one.terminal == next_.terminal and one.last >= next_.first for one, next_ in pairwise(ordered))


def row_of(ids: list[int], words: int) -> NDArray[np.int32]:
    """Token ids as a row, ``int32[words]``."""
    row = np.zeros(words, np.uint32)
    for i in ids:
        row[i >> 5] |= np.uint32(1 << (i & 31))
    return row.view(np.int32)
