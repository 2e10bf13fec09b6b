"""Findings about the texts of a `Regex`: which pieces of the pattern could go on, with their columns.

The pattern is read once more, and each character or class in it keeps the place where it is written. A text is
followed through the positions of Thompson's construction (1968, "Regular expression search algorithm"), character
by character. Assertions are taken to hold: where the text could go on without them, they are what stands against
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..budget import Budget, Meter
from ..compiler.patterns.dialects import reader_of
from ..compiler.patterns.reader import PatternReader
from ..compiler.patterns.syntax import Alternate, Chars, Concat, Look, Node, Repeat
from ..definitions import Regex
from ..errors import StructgenError
from ..runtime.index.index import Index
from ..system.types import Foreign
from .characters import TextCharacter, characters
from .values import Findings, Reason

#: Positions of a pattern, its repeats written out, and steps that are followed through them.
_MOST_STATES, _MOST_STEPS = 20_000, 1_000_000

#: Pieces that are named.
_MOST_PIECES = 12

_BUDGET = Budget(seconds=0.5)


class PatternPiece(NamedTuple):
    """A character or class in a pattern: its columns, from 0 on, the second one exclusive; and what it matches."""

    start: int
    end: int
    chars: Chars


class _Marked:
    """Has a reader keep the place of each character and class: its `step` is called in place of the reader's."""

    def __init__(self, reader: PatternReader) -> None:
        self._reader = reader
        self._step, reader.step = reader.step, self.step  # type: ignore[method-assign]
        self.pieces: dict[int, PatternPiece] = {}  # by the identity of a part of the tree

    def step(self) -> None:
        """Read a part, and note where it is written."""
        reader = self._reader
        begin, group, known = reader.index, reader.group, len(reader.group.parts)
        self._step()
        new = range(known, len(group.parts)) if group is reader.group else ()
        width = 1 if len(new) > 1 else reader.index - begin
        for offset, at in enumerate(new):
            part = group.parts[at]
            if isinstance(part, Chars):
                group.parts[at] = own = Chars(part.ranges)  # equal ones are one object otherwise
                start = begin + offset * width
                self.pieces[id(own)] = PatternPiece(start, start + width, own)


class Positions:
    """The positions of a pattern.

    Raises `StructgenError` for a pattern that has too many.
    """

    def __init__(self, definition: Regex) -> None:
        meter = Meter(_BUDGET)
        reader = reader_of(definition, meter)
        self._pieces = _Marked(reader).pieces
        tree = reader.parse()
        self.moves: list[list[int]] = []
        #: By position: the piece that it reads and where that leads.
        self.reads: list[tuple[PatternPiece | None, Chars, int] | None] = []
        self.looks: dict[int, Look] = {}  # by the position before
        self.start, self.accept = self._state(), self._state()
        self._build(tree, meter)
        self.steps = 0

    def _state(self) -> int:
        self.moves.append([])
        self.reads.append(None)
        return len(self.moves) - 1

    def _build(self, tree: Node, meter: Meter) -> None:
        todo: list[tuple[Node, int, int]] = [(tree, self.start, self.accept)]
        while todo:
            meter.check_time("following the pattern")
            if len(self.moves) > _MOST_STATES:
                raise meter.too_many_states(len(self.moves), "following the pattern")
            node, source, target = todo.pop()
            if isinstance(node, Chars):
                at = self._state()
                self.moves[source].append(at)
                self.reads[at] = self._pieces.get(id(node)), node, target
            elif isinstance(node, Alternate):
                todo += [(option, source, target) for option in node.options]
            elif isinstance(node, Concat):
                todo += self._row(list(node.parts), source, target)
            elif isinstance(node, Repeat):
                todo += self._repeat(node, source, target, meter)
            else:
                at = self._state()
                self.moves[source].append(at)
                self.moves[at].append(target)
                self.looks[at] = node

    def _row(self, parts: list[Node], source: int, target: int) -> list[tuple[Node, int, int]]:
        if not parts:
            self.moves[source].append(target)
            return []
        states = [source, *(self._state() for _ in parts[1:]), target]
        return list(zip(parts, states, states[1:], strict=False))

    def _repeat(self, node: Repeat, source: int, target: int, meter: Meter) -> list[tuple[Node, int, int]]:
        turns = node.min if node.max is None else node.max
        if turns > _MOST_STATES:
            raise meter.too_many_states(turns, "following the pattern")
        found, at = [], source
        for turn in range(turns):
            if turn >= node.min:
                self.moves[at].append(target)
            after = self._state()
            found.append((node.item, at, after))
            at = after
        self.moves[at].append(target)
        if node.max is None:
            again = self._state()
            self.moves[at].append(again)
            self.moves[again].append(target)
            found.append((node.item, again, again))
        return found

    def closed(self, states: Iterable[int]) -> set[int]:
        """Positions, with those that nothing has to be read for."""
        found = set(states)
        todo = list(found)
        for state in todo:  # grows
            for after in self.moves[state]:
                if after not in found:
                    found.add(after)
                    todo.append(after)
        self.steps += len(todo)
        return found

    def after(self, states: Iterable[int], character: TextCharacter) -> set[int]:
        """Where a character leads, or one that is cut off."""
        reads = (self.reads[state] for state in states)
        return {read[2] for read in reads if read is not None and character.is_in(read[1].ranges)}


def find(index: Index, definition: Regex, data: bytes, ended: bool, _: Foreign = None) -> Findings:
    """Which pieces of a pattern could go on in place of a text's last character, or of its end."""
    try:
        positions = index.explanations.get(definition.pattern)
        if positions is None:
            positions = index.explanations[definition.pattern] = Positions(definition)
    except StructgenError as error:
        return Findings((), "", (f"the pattern is not looked into: {error}",))
    read = characters(data)
    if read is None:
        return Findings((Reason("pattern", (), "the text is not UTF-8"),))
    before = read if ended else read[:-1]
    states, steps = positions.closed([positions.start]), positions.steps
    for character in before:
        states = positions.closed(positions.after(states, character))
        if positions.steps - steps > _MOST_STEPS:
            return Findings((), "", ("the text is too long for the pattern to be followed",))
    return _judged(definition.pattern, positions, states, None if ended else read[-1])


def _judged(pattern: str, positions: Positions, states: set[int], dying: TextCharacter | None) -> Findings:
    goes_on = positions.accept in states if dying is None else bool(positions.after(states, dying))
    pieces = sorted({read[0] for state in states if (read := positions.reads[state]) and read[0]}, key=_by_place)
    writing = f"column {pieces[0].start + 1} of the pattern" if pieces else "the end of the pattern"
    if goes_on:
        looks = sorted({look.column for look in positions.looks.values()})
        where = tuple(f"column {column}" for column in looks)
        return Findings((Reason("pattern", where, "only an assertion of the pattern stands against it"),), writing)
    where = tuple(_columns(piece) for piece in pieces[:_MOST_PIECES])
    shown = [repr(pattern[piece.start : piece.end]) for piece in pieces[:_MOST_PIECES]]
    more = [f"{len(pieces) - _MOST_PIECES} other pieces"] if len(pieces) > _MOST_PIECES else []
    ends = ["its end"] if positions.accept in states else []
    what = f"the pattern goes on with {' or '.join([*shown, *more, *ends])}"
    return Findings((Reason("pattern", where, what),), writing)


def _by_place(piece: PatternPiece) -> tuple[int, int]:
    return piece.start, piece.end


def _columns(piece: PatternPiece) -> str:
    if piece.end - piece.start == 1:
        return f"column {piece.start + 1}"
    return f"columns {piece.start + 1}-{piece.end}"
