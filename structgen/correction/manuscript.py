"""`Manuscript`: a text, who wrote its pieces, and what was dropped from it."""

from __future__ import annotations

from .candidates import said_next
from .path import Path
from .values import Piece, Source


class Manuscript:
    """A `Path`, in pieces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pieces: list[tuple[Source, bytes]] = []
        self._signed = 0  # bytes of the text that are in pieces

    @property
    def is_over(self) -> bool:
        """Whether the text is complete, and nothing but blanks may follow."""
        return self.path.is_complete and not said_next(self.path.machine, self.path.config)

    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the text, and what was dropped, in the order in which they were written."""
        return tuple(Piece(source, data.decode("utf-8", "replace")) for source, data in self._pieces)

    def sign(self, source: Source) -> int:
        """Say who has written what is new. Returns how many bytes that is."""
        new = self.path.data[self._signed :]
        if new:
            self._pieces.append((source, new))
            self._signed += len(new)
        return len(new)

    def write(self, source: Source, data: bytes) -> None:
        """Append what is valid of a piece; or put in what was dropped."""
        if source == "dropped":
            self.drop(data)
        else:
            self.path.extend(data)
            self.sign(source)

    def drop(self, data: bytes) -> None:
        """Note what is no part of the text."""
        if data:
            self._pieces.append(("dropped", data))

    def replace(self, other: Path) -> None:
        """Another text takes the place of this one."""
        self.cut(0)
        self.path = other

    def cut(self, length: int) -> None:
        """Take back all but so many bytes of the text, which are dropped."""
        last, end = len(self._pieces), self._signed
        while end > length:
            last -= 1
            source, data = self._pieces[last]
            if source == "dropped":
                continue
            end -= len(data)
            kept = data[: max(0, length - end)]
            self._pieces[last : last + 1] = (
                [(source, kept), ("dropped", data[len(kept) :])] if kept else [("dropped", data)]
            )
        self.path.cut(length)
        self._signed = len(self.path)
