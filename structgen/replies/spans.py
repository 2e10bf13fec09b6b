"""Which label each byte of a text has, from the automaton that allows it.

The automaton takes *marks*, tokens of no text, where the text of a labelled format begins and ends. Before each byte
all marks that may stand there are taken, and not taken: that gives *readings*, each a configuration and the marks on
the way to it. What all readings agree on is certain. Of readings that come to the same configuration the first stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ..compiler.structural_tags.marks import Label, Marks
from ..compiler.structural_tags.tokens import token_text
from ..errors import BudgetExceededError, ReplyTextError
from ..runtime.core.machine import CompiledMachine, Config

#: Readings of one text that are followed.
_MOST_READINGS = 1 << 8

#: Marks taken, each behind so many bytes of the text that is not certain.
_Taken: TypeAlias = "tuple[tuple[int, int], ...]"

#: By configuration, of which the first reading that came to it stays.
_Readings: TypeAlias = "dict[Config, _Taken]"

#: What comes of a text: bytes, the label of what begins, or None where that ends.
Piece: TypeAlias = "bytes | Label | None"


class Place(NamedTuple):
    """How far a text was read.

    Parameters
    ----------
    readings:
        What it may be.
    text:
        The end of it whose labels are not certain.
    offset:
        Bytes of the text so far.
    """

    readings: tuple[tuple[_Taken, Config], ...]
    text: bytes = b""
    offset: int = 0


class Opened(NamedTuple):
    """A labelled text that is not over, and the byte at which it begins."""

    label: Label
    start: int


class Spans:
    """Reads texts with a machine that takes marks. It never changes."""

    def __init__(self, machine: CompiledMachine, marks: Marks) -> None:
        self._machine = machine
        self._marks = marks
        self.start = Place((((), machine.start),))

    def read(self, place: Place, data: bytes) -> tuple[Place, list[Piece]]:
        """Where a text leads, and what is certain now. Raises `ReplyTextError` where none goes on with it."""
        return self._come_to(place, data, self._over_bytes(place, data))

    def read_token(self, place: Place, token_id: int) -> tuple[Place, list[Piece]]:
        """`read` for a token, of which formats may take as such."""
        machine = self._machine
        found: _Readings = {}
        for taken, config in self._with_marks(place.readings, len(place.text)):
            there = machine.advance(config, token_id) if self._is_whole(config, token_id) else None
            if there is not None:
                found.setdefault(there, taken)
        if machine.vocabulary.token(token_id) is not None:
            found = self._over_bytes(place, token_text(machine.vocabulary, token_id)) | found
        return self._come_to(place, token_text(machine.vocabulary, token_id), found)

    def takes(self, place: Place, token_id: int) -> bool:
        """Whether a format takes a token as such there."""
        found = self._with_marks(place.readings, len(place.text))
        return any(self._is_whole(config, token_id) for _, config in found)

    def _is_whole(self, config: Config, token_id: int) -> bool:
        return any((token_id in ids) != others for ids, others in self._machine.token_sets(config))

    def _over_bytes(self, place: Place, data: bytes) -> _Readings:
        readings = place.readings
        for at, byte in enumerate(data, len(place.text)):
            following: _Readings = {}
            for taken, config in self._with_marks(readings, at):
                there = self._machine.follow_byte(config, byte)
                if there is not None:
                    following.setdefault(there, taken)
            readings = tuple((taken, config) for config, taken in following.items())
        return {config: taken for taken, config in readings}

    def _come_to(self, place: Place, text: bytes, readings: _Readings) -> tuple[Place, list[Piece]]:
        if not readings:
            raise ReplyTextError(
                f"no reply goes on with {text[:20]!r} at byte {place.offset}",
                remedy="A reader takes what its definition allows, from the reply's first token on.",
            )
        end = len(place.text) + len(text)
        pairs = tuple(self._over_forced(taken, config, end) for config, taken in readings.items())
        return self._settled(Place(pairs, place.text + text, place.offset + len(text)))

    def _over_forced(self, taken: _Taken, config: Config, at: int) -> tuple[_Taken, Config]:
        """A reading behind the marks that must come next, so that what has ended is known to."""
        machine = self._machine
        while not machine.is_accepting(config) and len(marks := self._marks_at(config)) == 1:
            (mark,) = marks
            there = machine.advance(config, mark)
            others = any(is_others or ids != marks for ids, is_others in machine.token_sets(config))
            if others or there is None or self._takes_byte(config):
                break
            taken, config = (*taken, (at, mark)), there
        return taken, config

    def _marks_at(self, config: Config) -> set[int]:
        """The marks that may stand there."""
        sets = self._machine.token_sets(config)
        return {token for ids, is_others in sets if not is_others for token in ids if token in self._marks.ids}

    def _takes_byte(self, config: Config) -> bool:
        return next(self._machine.following(self._machine.byte_state(config)), None) is not None

    def may_finish(self, place: Place) -> bool:
        """Whether the text is complete."""
        found = self._with_marks(place.readings, len(place.text))
        return any(self._machine.is_accepting(config) for _, config in found)

    def finish(self, place: Place) -> list[Piece]:
        """What is certain at the end of a text. Raises `ReplyTextError` where it is not complete."""
        for taken, config in self._with_marks(place.readings, len(place.text)):
            if self._machine.is_accepting(config):
                return self._settled(place._replace(readings=((taken, config),)))[1]
        raise ReplyTextError(f"the reply is not complete after {place.offset} bytes")

    def opened(self, data: bytes) -> list[tuple[Opened, ...]]:
        """The labelled texts, each in the one before, that may go on behind a text: for each way to read it.

        Raises `ReplyTextError` for what no text begins with.
        """
        place, pieces = self.read(self.start, data) if data else (self.start, [])
        begun: list[Opened] = []
        at = 0
        for piece in pieces:
            if isinstance(piece, bytes):
                at += len(piece)
            elif piece is None:
                begun.pop()
            else:
                begun.append(Opened(piece, at))
        found: dict[tuple[Opened, ...], None] = {}
        for taken, config in self._with_marks(place.readings, len(place.text)):
            way = [*begun]
            for offset, mark in taken:
                if mark == self._marks.close:
                    way.pop()
                else:
                    way.append(Opened(self._marks.label(mark), at + offset))
            if self._takes_byte(config) or self._machine.is_accepting(config):
                found[tuple(way)] = None
        return list(found)

    def cut_off(self, place: Place) -> list[Piece]:
        """What the first reading makes of a text that ends before it is complete."""
        return self._settled(place._replace(readings=place.readings[:1]))[1]

    def _with_marks(self, readings: tuple[tuple[_Taken, Config], ...], at: int) -> Iterator[tuple[_Taken, Config]]:
        """Readings, and those that take marks next."""
        machine = self._machine
        seen = {config for _, config in readings}
        todo = list(reversed(readings))
        while todo:
            taken, config = todo.pop()
            yield taken, config
            for mark in self._marks_at(config):
                there = machine.advance(config, mark)
                if there is not None and there not in seen:
                    seen.add(there)
                    todo.append(((*taken, (at, mark)), there))
            if len(seen) > _MOST_READINGS:
                raise BudgetExceededError(f"the reply can be read in more than {_MOST_READINGS} ways")

    def _settled(self, place: Place) -> tuple[Place, list[Piece]]:
        """A place without what is certain there, and that."""
        first = place.readings[0][0]
        agreed, certain = len(first), len(place.text)
        for taken, _ in place.readings:
            while taken[:agreed] != first[:agreed]:
                agreed -= 1
        for taken, _ in place.readings:
            if len(taken) > agreed:
                certain = min(certain, taken[agreed][0])
        pieces: list[Piece] = []
        begin = 0
        for at, mark in first[:agreed]:
            if begin < at:
                pieces.append(place.text[begin:at])
            pieces.append(None if mark == self._marks.close else self._marks.label(mark))
            begin = at
        if begin < certain:
            pieces.append(place.text[begin:certain])
        readings = tuple(
            (tuple((at - certain, mark) for at, mark in taken[agreed:]), config) for taken, config in place.readings
        )
        return Place(readings, place.text[certain:], place.offset), pieces
