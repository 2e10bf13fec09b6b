"""Rows of any grammar's threads, put together one partial mask after another.

They are for what the kernel of `structgen.runtime.grammar.mask_builder` does not cover: grammars whose conflicts are
kept, grammars with definitions in them, and tokens that hold too many lexemes for it. A definition decides masks as a
schema does (`structgen.runtime.pushdown.partial_masks`): what it leaves open is a residual list, at which whatever
follows it in the grammar goes on.

Partial masks are visited in the order of their depth in the trie. So where tokens can be read in several ways, all
stacks that a residual list is left to are there when it is visited, and many become a graph, as between steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.lazy_table import LazyTable
from .embedded import Inner
from .lexer_threads import At, LexerThreads
from .parser.gss import MOST_APART
from .parser.parser_driver import Parse
from .partial_masks import NOTHING, ROOT, LexemeMasks, Watched

#: Places that are visited between two pauses.
_VISITS = 8

#: Partial masks that are decided at once.
_FEW = 64

#: What visiting a place counts as, of a step's work.
_UNITS = 16


class _Row:
    """What a row is put together of.

    Attributes
    ----------
    numbers:
        Numbers of rows, each with that of the definition it belongs to or -1.
    ids:
        Tokens besides.
    depth_read:
        The lowest depth of the stack that was looked at.
    """

    def __init__(self, depth_read: int) -> None:
        self.numbers: dict[tuple[int, int], None] = {}
        self.ids: set[int] = set()
        self.depth_read = depth_read

    def look(self, depth: int) -> None:
        """Something was looked at down to a depth."""
        if depth < self.depth_read:
            self.depth_read = depth


#: A residual list, the parser, where in a lexeme or a definition, the obligations.
_MaskKey = tuple[int, Parse, At, Watched]


class WalkedRows:
    """The rows of threads.

    Parameters
    ----------
    lexeme_masks, reader:
        What is decided, and the threads' moves.
    note:
        Told the bytes of rows that are kept.
    pause:
        Called between walks of the vocabulary; other rows may be put together meanwhile.
    """

    def __init__(
        self, lexeme_masks: LexemeMasks, reader: LexerThreads, note: Callable[[int], None], pause: Callable[[], None]
    ) -> None:
        self._lexeme_masks = lexeme_masks
        self._reader = reader
        self._note = note
        self._pause = pause
        self._class_of = lexeme_masks.tables.class_of.tobytes()
        #: Partial masks visited so far.
        self.visits = 0
        #: By numbers of rows, as `_Row` has them.
        self._rows: dict[tuple[tuple[int, int], ...], NDArray[np.int32]] = {}
        #: By residual list: the least depth of its nodes in the trie.
        self._depths = LazyTable(self._find_depth)

    def _find_depth(self, residual: int) -> int:
        trie = self._lexeme_masks.vocabulary.trie
        # A file may have a list without nodes.
        return int(trie.depth[self._lexeme_masks.residuals[residual]].min(initial=trie.max_depth))

    def clear(self) -> None:
        """Forget all rows."""
        self._rows.clear()
        self._depths.clear()

    def row(self, parse: Parse, at: At, watched: Watched) -> NDArray[np.int32]:
        """The row of a thread: read-only ``int32[words]``, without EOS ids and special tokens."""
        return self.find(parse, at, watched)[0]

    def find(self, parse: Parse, at: At, watched: Watched) -> tuple[NDArray[np.int32], int]:
        """The same, and how many states of the parser's stack decided it."""
        found = _Row(parse.stack.depth)
        fresh: list[_MaskKey] = [(ROOT, parse, at, watched)]
        seen, waiting = {*fresh}, {0: [*fresh]}
        while waiting:
            self._decide(fresh)
            fresh.clear()
            for each in self._few(waiting.pop(min(waiting)), found):
                for more in self._visit(each, found):
                    if more[0] != NOTHING and more not in seen:
                        seen.add(more)
                        fresh.append(more)
                        waiting.setdefault(self._depths[more[0]], []).append(more)
                self.visits += 1
                if not self.visits % _VISITS:
                    self._pause()
        if found.ids:
            found.numbers[-1, self._lexeme_masks.pool.add_ids(np.array([*found.ids], np.int32))] = None
        key = tuple(sorted(found.numbers))
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._union(key)
            self._note(row.nbytes)
        return row, parse.stack.depth + 1 - max(found.depth_read, 0)

    def _few(self, keys: list[_MaskKey], row: _Row) -> list[_MaskKey]:
        """Some keys, those merged that have the same state on top, where many differ in their stacks alone.

        What is below that state is at different depths then, so that all of the stack decides.
        """
        if len(keys) <= MOST_APART:
            return keys
        alike: dict[tuple[int, At, Watched], list[Parse]] = {}
        for residual, parse, at, watched in keys:
            alike.setdefault((residual, at, watched), []).append(parse)
        found: list[_MaskKey] = []
        for (residual, at, watched), parses in alike.items():
            if len(parses) > MOST_APART:
                row.look(0)
                parses = [each for each, *_ in self._reader.parses.together((each, 0, 0) for each in parses)]
            found += ((residual, parse, at, watched) for parse in parses)
        return found

    def _decide(self, keys: list[_MaskKey]) -> None:
        """Decide partial masks together, which takes a fifth of the time."""
        for begin in range(0, len(keys), _FEW):
            some = keys[begin : begin + _FEW]
            self._lexeme_masks.decide_all(
                [(residual, at, watched) for residual, _, at, watched in some if not isinstance(at, tuple)]
            )

    def _union(self, numbers: tuple[tuple[int, int], ...]) -> NDArray[np.int32]:
        pool = self._lexeme_masks.pool
        row = np.zeros(self._lexeme_masks.vocabulary.words, np.int32)
        for definition, number in numbers:
            of = pool if definition < 0 else self._reader.embedded.definitions[definition][1].pool
            of.add_to(row, number)
        row.flags.writeable = False
        return row

    def _visit(self, key: _MaskKey, row: _Row) -> list[_MaskKey]:
        """Collect what a partial mask decides; returns where it leaves the rest of tokens to."""
        residual, parse, at, watched = key
        self._reader.parses.steps.spend(_UNITS)
        if isinstance(at, tuple):
            return self._visit_inner(residual, parse, at, watched, row)
        reader = self._reader
        groups, ends = self._lexeme_masks.decide(residual, at, watched)
        accepted, there = accepting = reader.parses.accepted(parse)
        row.look(there)
        sure, _ = reader.sure_endings(parse, accepting)
        asked = 0
        for wanted, number in groups:
            if wanted & sure:
                row.numbers[-1, number] = None
            else:
                asked |= wanted
        if asked:
            is_open, there = reader.open_to(parse, asked)
            row.look(there)
            row.numbers.update({(-1, number): None for wanted, number in groups if wanted & is_open})
        found: list[_MaskKey] = []
        for end in ends:
            if accepted >> end.terminal & 1:
                found += self._after(parse, end.terminal, end.residual, end.watched, row)
        if at in reader.fresh and reader.embedded.definitions:
            given, there = reader.given(parse)
            row.look(there)
            found += ((residual, parse, begun, watched) for begun in reader.embedded.begin(given))
        return found

    def _visit_inner(
        self, residual: int, parse: Parse, at: tuple[int, Inner], watched: Watched, row: _Row
    ) -> list[_MaskKey]:
        """The same inside a definition."""
        if watched:
            return self._byte_by_byte(residual, parse, at, watched, row)
        definition, inner = at
        terminal, machine = self._reader.embedded.definitions[definition]
        rows, left = machine.decide(inner, machine.rows.residuals.add(self._lexeme_masks.residuals[residual]))
        row.numbers.update({(definition, number): None for number in rows})
        return [
            key
            for each in sorted(left)
            for key in self._after(
                parse, terminal, self._lexeme_masks.residuals.add(machine.rows.residuals[each]), watched, row
            )
        ]

    def _after(self, parse: Parse, terminal: int, residual: int, watched: Watched, row: _Row) -> list[_MaskKey]:
        reader = self._reader
        parses, depth_read = reader.parses.after(parse, terminal)
        row.look(depth_read)
        return [(residual, after, reader.starts[after.context], watched) for after in parses]

    def _byte_by_byte(
        self, residual: int, parse: Parse, at: tuple[int, Inner], watched: Watched, row: _Row
    ) -> list[_MaskKey]:
        """A definition that begins while an earlier lexeme is watched: one byte, after which mostly none is."""
        definition, inner = at
        terminal, machine = self._reader.embedded.definitions[definition]
        trie, tables = self._lexeme_masks.vocabulary.trie, self._lexeme_masks.tables
        table = tables.table
        found = self._after(parse, terminal, residual, watched, row) if machine.may_end(inner) else []
        below: dict[tuple[Watched, Inner], list[int]] = {}
        for root in self._lexeme_masks.residuals[residual].tolist():
            for byte, node in trie.children(root):
                self._reader.parses.steps.spend(_UNITS)
                after = tuple(w for w in (int(table[w, self._class_of[byte]]) for w in watched) if w >= 0)
                following = machine.step(inner, byte)
                if following and not any(tables.beats[w] for w in after):
                    first, last = trie.first_token[node : node + 2].tolist()
                    row.ids.update(trie.token_ids[first:last].tolist() if machine.after_token(following) else ())
                    below.setdefault((after, following), []).append(node)
        for (after, each), nodes in below.items():
            left = self._lexeme_masks.residuals.add(np.array(sorted(nodes), np.int32))
            found.append((left, parse, (definition, each), after))
        return found
