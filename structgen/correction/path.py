"""`Path`: a text that a definition's texts begin with, and the configuration behind each of its bytes."""

from __future__ import annotations

from array import array

from ..runtime.core.machine import Config
from ..runtime.index.byte_table import ByteTable
from ..runtime.index.index import Index

#: Bytes of a piece of text that a kernel is called for.
_PIECE = 1 << 6

#: The number of a configuration that has none.
_NO_NUMBER = array("i", [-1]).tobytes()


class Path:
    """A text as far as it is valid, as bytes.

    Cutting it costs nothing, for the configurations are kept: 12 bytes for each byte of the text, and those that no
    memory of the machine's holds.

    Parameters
    ----------
    index:
        The definition. Bytes are followed as tokens of one byte, which the index remembers, where its vocabulary has
        them.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.machine = index.machine
        self._ids = index.vocabulary.byte_ids
        self._text = bytearray()
        #: The configuration behind each byte; None for those that are found by their numbers in the table.
        self._configs: list[Config | None] = [index.machine.start]
        self._numbers = array("i", [-1])
        self._table: ByteTable | None = None
        self._flat = index.machine.flat()

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
        config = self._configs[length]
        if config is None:
            assert self._table is not None
            config = self._configs[length] = self._table.config(self._numbers[length])
        return config

    def extend(self, data: bytes) -> int:
        """Append the longest prefix of some bytes that a complete text goes on with. Returns its length."""
        read = self._read(data) if len(data) >= _PIECE else 0
        configs, config, ids = self._configs, self.config, self._ids
        advance, follow = self.machine.advance, self.machine.follow_byte
        before = len(configs)
        for byte in data[read:] if read else data:
            token = ids[byte]
            config = advance(config, token) if token >= 0 else follow(config, byte)
            if config is None:
                break
            configs.append(config)
        followed = len(configs) - before
        self._numbers.frombytes(_NO_NUMBER * followed)
        self._text += data[read : read + followed]
        return read + followed

    def _read(self, data: bytes) -> int:
        """Append bytes by a kernel, as far as configurations have numbers. Returns how many that were."""
        if self._flat is not None:
            configs = self._flat.follow(self.config, data).tolist()
            numbers = _NO_NUMBER * len(configs)
        else:
            if self._table is None:
                self._table = self.index.byte_table
            number = self._table.number(self.config)
            if number < 0:
                return 0
            found = self._table.follow(number, data)
            configs, numbers = [None] * len(found), found.tobytes()
        self._numbers.frombytes(numbers)
        self._configs += configs
        self._text += data[: len(configs)]
        return len(configs)

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
        del self._text[length:], self._configs[length + 1 :], self._numbers[length + 1 :]
        return taken

    def cut_to_character(self) -> bytes:
        """Take back a character that is cut off at the end of the text."""
        return self.cut(len(self.text.encode()))
