"""`Path`: a text that a definition's texts begin with, and configurations behind its bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from ..runtime.core.machine import Config
from ..runtime.index.index import Index

#: Bytes of a piece of text that a machine follows at once.
_PIECE = 1 << 6


class Path:
    """A text as far as it is valid, as bytes.

    Cutting it costs nothing, for configurations are kept: those behind each piece of `_PIECE` bytes, and behind each
    byte that was read by itself or asked for.

    Parameters
    ----------
    index:
        The definition. Single bytes, and all where it names or counts tokens, are followed as tokens of one byte,
        which the index remembers, where its vocabulary has them.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.machine = index.machine
        self._ids = index.vocabulary.byte_ids
        self._takes_pieces = not index.machine.names_tokens()
        self._text = bytearray()
        #: Lengths of the text, ascending, and the configuration behind each.
        self._lengths = array("q", [0])
        self._configs: list[Config] = [index.machine.start]

    def __len__(self) -> int:
        return len(self._text)

    @property
    def data(self) -> bytes:
        """The text."""
        return bytes(self._text)

    @property
    def text(self) -> str:
        """The text, without a character that is cut off at its end."""
        return self._text.decode("utf-8", "ignore")

    @property
    def config(self) -> Config:
        """The configuration behind the text."""
        return self.config_at(len(self._text))

    @property
    def is_complete(self) -> bool:
        """Whether the text may end."""
        return self.machine.is_accepting(self.config)

    def config_at(self, length: int) -> Config:
        """The configuration behind so many bytes."""
        after = bisect_right(self._lengths, length)
        known = self._lengths[after - 1]
        if known < length:
            found = self._followed(self._configs[after - 1], bytes(self._text[known:length]))
            self._lengths[after:after] = array("q", range(known + 1, length + 1))
            self._configs[after:after] = found
            after += len(found)
        return self._configs[after - 1]

    def extend(self, data: bytes) -> int:
        """Append the longest prefix of some bytes that a complete text goes on with. Returns its length."""
        read, config, before = 0, self.config, len(self._text)
        while self._takes_pieces and len(data) - read >= _PIECE:
            count, config = self.machine.reach(config, data[read : read + _PIECE])
            if count:
                read += count
                self._lengths.append(before + read)
                self._configs.append(config)
            if count < _PIECE:
                break
        else:
            found = self._followed(config, data[read:])
            self._lengths.extend(range(before + read + 1, before + read + len(found) + 1))
            self._configs += found
            read += len(found)
        self._text += data[:read]
        return read

    def _followed(self, config: Config, data: bytes) -> list[Config]:
        """The configurations behind some bytes, one by one, as far as texts go on with them."""
        found: list[Config] = []
        advance, follow, ids = self.machine.advance, self.machine.follow_byte, self._ids
        for byte in data:
            token = ids[byte]
            config = advance(config, token) if token >= 0 else follow(config, byte)
            if config is None:
                break
            found.append(config)
        return found

    def valid(self, at: int, data: bytes) -> bytes:
        """The longest prefix of some bytes that may stand behind the first ``at`` bytes of the text."""
        taken = self.cut(at)
        length = self.extend(data)
        self.cut(at)
        self.extend(taken)
        return data[:length]

    def cut(self, length: int) -> bytes:
        """Take back all but so many bytes. Returns them."""
        taken = bytes(self._text[length:])
        kept = bisect_right(self._lengths, length)
        del self._text[length:], self._configs[kept:], self._lengths[kept:]
        return taken

    def cut_to_character(self) -> bytes:
        """Take back a character that is cut off at the end of the text."""
        return self.cut(len(self.text.encode()))
