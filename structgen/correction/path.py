"""`Path`: a text that a definition's texts begin with, and the configuration behind each of its bytes."""

from __future__ import annotations

from ..runtime.core.machine import Config
from ..runtime.index.index import Index


class Path:
    """A text as far as it is valid, as bytes.

    Cutting it costs nothing, for the configurations are kept: 8 bytes for each byte of the text, and those that no
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
        return self._configs[-1]

    @property
    def is_complete(self) -> bool:
        """Whether the text may end."""
        return self.machine.is_accepting(self.config)

    def config_at(self, length: int) -> Config:
        """The configuration behind so many bytes."""
        return self._configs[length]

    def extend(self, data: bytes) -> int:
        """Append the longest prefix of some bytes that a complete text goes on with. Returns its length."""
        configs, config, ids = self._configs, self.config, self._ids
        advance, follow = self.machine.advance, self.machine.follow_byte
        before = len(configs)
        for byte in data:
            token = ids[byte]
            config = advance(config, token) if token >= 0 else follow(config, byte)
            if config is None:
                break
            configs.append(config)
        length = len(configs) - before
        self._text += data[:length]
        return length

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
        del self._text[length:], self._configs[length + 1 :]
        return taken

    def cut_to_character(self) -> bytes:
        """Take back a character that is cut off at the end of the text."""
        return self.cut(len(self.text.encode()))
