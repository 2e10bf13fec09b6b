"""`GrammarSuccessors`: how far from the end each token leads, from one configuration of a lexer and a parser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...automaton.distances import NEVER
from ...core.machine import CompiledMachine
from ...rows.bitmask import ids_of
from ...rows.row_pool import RowPool
from ..completability.obligations import Watched
from ..embedded import Embedded
from ..interned_machine import Configuration
from ..lexer_threads import Thread
from ..parser.parser_driver import Parse, ParserDriver
from ..partial_masks import Walked
from ..tables import GrammarTables

#: Configurations for which this is remembered, a megabyte each at most with Llama-3's vocabulary.
_MOST_CONFIGS = 16


class LexedMachine(CompiledMachine, Protocol):
    """What distances need of a `structgen.runtime.grammar.machine.GrammarMachine`."""

    tables: GrammarTables
    embedded: Embedded
    pool: RowPool

    @property
    def parses(self) -> ParserDriver:
        """The parser."""
        ...

    def walk(self, nodes: NDArray[np.int32], state: int, watched: Watched) -> tuple[list[Walked], list[Walked]]:
        """See `LexemeMasks.walk`."""
        ...


class GrammarSuccessors:
    """Walks the vocabulary's trie lexeme by lexeme. Not for several threads of the process at once.

    Parameters
    ----------
    machine:
        The grammar, without definitions and special tokens.
    distance:
        The tokens that complete what a thread has read, `structgen.runtime.automaton.distances.NEVER` at most.
    """

    def __init__(self, machine: LexedMachine, distance: Callable[[Thread], int]) -> None:
        self._machine = machine
        self._distance = distance
        self._starts: list[int] = machine.tables.starts.tolist()
        self._remembered: dict[Configuration, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}

    def find(self, config: Configuration) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The tokens that are allowed, without EOS ids, and the distance behind each: ``int32[allowed]``."""
        found = self._remembered.get(config)
        if found is None:
            vocabulary = self._machine.vocabulary
            far = np.full(vocabulary.size, NEVER, np.int32)
            self._walk(config.threads, far)
            tokens = np.setdiff1d(ids_of(self._machine.row(config)), np.array(vocabulary.eos_ids, np.int64))
            found = tokens.astype(np.int32), far[tokens]
            while len(self._remembered) >= _MOST_CONFIGS:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[config] = found
        return found

    def _walk(self, threads: tuple[Thread, ...], far: NDArray[np.int32]) -> None:
        """Note the distance behind each token, if it is less than what is there."""
        parses, tables = self._machine.parses, self._machine.tables
        ends_of, obligations = tables.ends_of, tables.obligations
        todo: dict[tuple[Parse, int, Watched], list[NDArray[np.int32]]] = {}

        def end(parse: Parse, state: int, watched: Watched, nodes: NDArray[np.int32]) -> None:
            """A lexeme can be complete at some nodes."""
            for terminal, watch in ends_of[state]:
                boundary = obligations.with_state(watch, watched)
                for after in parses.after(parse, terminal).parses:
                    todo.setdefault((after, self._starts[after.context], boundary), []).append(nodes)

        root = np.zeros(1, np.int32)
        for parse, at, watched in threads:
            assert not isinstance(at, tuple)
            todo.setdefault((parse, at, watched), []).append(root)
            end(parse, at, watched, root)
        while todo:
            key = next(iter(todo))
            parse, state, watched = key
            nodes = np.unique(np.concatenate(todo.pop(key)))
            tokens, completed = self._machine.walk(nodes, state, watched)
            for after, boundary, ids in tokens:
                distance = self._distance((parse, after, boundary))
                if distance < NEVER:
                    far[ids] = np.minimum(far[ids], distance)
            for after, boundary, below in completed:
                end(parse, after, boundary, below)
