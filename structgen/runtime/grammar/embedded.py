"""Definitions and special tokens within a grammar, as terminals that the lexer does not read.

A *definition* in a grammar, a JSON Schema say, stands for any of its texts. It is an automaton with a stack of its
own, over the same vocabulary, that begins where the parser accepts its terminal and no lexeme is in progress, and may
end wherever its text is complete. It is not lexed: where it could go on as well as end, or where a lexeme could begin
as well, both are followed.

A *special token* has no bytes. It is one token, where the parser accepts its terminal and the lexeme before it is
complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...storage import columns
from ...storage.columns import Column, Field
from ...storage.container import pack, unpack
from ...system.types import Array, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..pushdown.machine import PushdownMachine
    from ..pushdown.stacks import Thread

#: Where a text is in a definition: all its threads.
Inner: TypeAlias = "tuple[Thread, ...]"

#: The fields of the meta section.
FIELDS = (
    Field("definitions", list, of=int, below="terminals"),
    Field("tokens", list, of=list, below=["size", "terminals"]),
)


@dataclass(frozen=True, eq=False)
class Embedded:
    """What a grammar holds besides terminals that are lexed.

    Parameters
    ----------
    definitions:
        Terminals, each with the machine of its definition.
    tokens:
        Special tokens by id, each with its terminals.
    """

    definitions: tuple[tuple[int, PushdownMachine], ...] = ()
    tokens: Mapping[int, tuple[int, ...]] | None = None

    @property
    def terminals(self) -> int:
        """All terminals that are not lexed, as a set."""
        found = 0
        for terminal, _ in self.definitions:
            found |= 1 << terminal
        for terminals in (self.tokens or {}).values():
            for terminal in terminals:
                found |= 1 << terminal
        return found

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
        tokens = sorted((i, terminal) for i, terminals in (self.tokens or {}).items() for terminal in terminals)
        return {
            "definitions": [terminal for terminal, _ in self.definitions],
            "tokens": [list(pair) for pair in tokens],
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
        found = columns.read_meta(meta, FIELDS, {"size": vocabulary.size, "terminals": terminals}, where)
        if found["definitions"]:
            from ..pushdown.machine import PushdownMachine
        machines = []
        for number, terminal in enumerate(found["definitions"]):
            name = f"inner_{number}"
            (stored,) = columns.read(sections, (Column(name, "u1", mapped=True),), {}, where).values()
            inner, own = unpack(stored.data, f"{where}, {name}")
            machines.append((terminal, PushdownMachine.from_sections(inner, own, vocabulary, where)))
        return cls(tuple(machines), by_id(found["tokens"]))


def by_id(pairs: Iterable[Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """Terminals by the id of their special token, of pairs of an id and a terminal."""
    found: dict[int, tuple[int, ...]] = {}
    for token_id, terminal in pairs:
        found[token_id] = (*found.get(token_id, ()), terminal)
    return found


def row_of(ids: list[int], words: int) -> NDArray[np.int32]:
    """Token ids as a row, ``int32[words]``."""
    row = np.zeros(words, np.uint32)
    for i in ids:
        row[i >> 5] |= np.uint32(1 << (i & 31))
    return row.view(np.int32)
