"""Keywords that a parser expects: terminals with a single text, where names may stand, too.

To the lexer a keyword is like a name up to its end, so bytes don't tell which keywords are expected; the parser does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....system.memo import Memo
from ...core.bitsets import set_at
from ...core.digraph import bits
from ..tables import GrammarTables
from .parser_driver import Parse, ParserDriver

#: Terminals and contexts whose spelling is remembered; letters of a keyword.
_MOST_SPELLINGS, _LONGEST = 1 << 14, 64


class Keywords:
    """Keywords of one grammar.

    Parameters
    ----------
    tables, parses:
        The grammar.
    """

    def __init__(self, tables: GrammarTables, parses: ParserDriver) -> None:
        self._tables, self._parses = tables, parses
        self._ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._starts: list[int] = tables.starts.tolist()
        self._spellings: Memo[tuple[int, int], bytes] = Memo(_MOST_SPELLINGS)

    def expected(self, parse: Parse) -> Iterator[tuple[int, bytes]]:
        """The keywords that may come next, as terminals and texts; without those that are read as a name is.

        A name is what a word twice in a row is.
        """
        accepted = self._parses.accepted(parse).terminals & ((1 << self._tables.end) - 1) & ~self._ignored
        for terminal in bits(accepted):
            text = self._spelled(parse.context, terminal)
            names = self._ends(parse.context, text + text) & accepted if text.isalpha() else 0
            after = self._parses.after(parse, terminal).parses
            if text and not any(self._parses.after(parse, name).parses == after for name in bits(names)):
                yield terminal, text

    def _ends(self, context: int, text: bytes) -> int:
        """The terminals that a text is one of, as a set."""
        state = self._starts[context]
        for byte in text:
            state = self._tables.rows[state][self._tables.class_of[byte]]
            if state < 0:
                return 0
        return sum({1 << terminal for terminal, _ in self._tables.ends_of[state]})

    def _spelled(self, context: int, terminal: int) -> bytes:
        """A terminal's only text, in capitals where their case is of no matter; ``b""`` where there are more."""
        known = self._spellings.get((context, terminal))
        if known is None:
            known = self._spellings[context, terminal] = self._spell(self._starts[context], terminal)
        return known

    def _spell(self, state: int, terminal: int) -> bytes:
        text = bytearray()
        while len(text) < _LONGEST:
            following = self._letters(state, terminal)
            if not following or any(terminal == each for each, _ in self._tables.ends_of[state]):
                return b"" if following else bytes(text)
            byte, target = next(iter(following.items()))
            if any(other != target for other in following.values()) or len({*bytes(following).lower()}) > 1:
                return b""
            text.append(byte)
            state = target
        return b""

    def _letters(self, state: int, terminal: int) -> dict[int, int]:
        """The bytes of ASCII that a lexeme goes on with that may become a terminal, and what they lead to."""
        row, futures, class_of = self._tables.rows[state], self._tables.futures, self._tables.class_of
        targets = ((byte, row[c]) for byte, c in enumerate(class_of[:0x80].tolist()))
        return {byte: target for byte, target in targets if target >= 0 and futures[target] >> terminal & 1}
