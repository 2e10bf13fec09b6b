"""Keywords that a parser expects: terminals with a single text, where names may stand, too.

To the lexer a keyword is like a name up to its end, so bytes don't tell which keywords are expected; the parser does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....system.memo import Memo
from ...core.bitsets import set_at
from ...core.digraph import bits
from ..tables import GrammarTables
from .parser_driver import Parse, ParserDriver

#: Terminals and contexts whose spelling is remembered; letters of a keyword; bytes of which one stands for all.
_MOST_SPELLINGS, _LONGEST, _MOST_ALIKE = 1 << 14, 64, 2


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
        self._members: dict[int, list[int]] = {}  # by class of bytes
        for byte, number in enumerate(tables.class_of.tolist()):
            self._members.setdefault(number, []).append(byte)
        ascii_of = ((number, [byte for byte in bytes_ if byte < 0x80]) for number, bytes_ in self._members.items())
        self._ascii = {number: letters for number, letters in ascii_of if letters}

    def expected(self, parse: Parse, known: Sequence[bytes] = ()) -> Iterator[tuple[int, bytes]]:
        """The keywords that may come next, as terminals and texts; without those that are read as a name is.

        A name is what a word twice in a row is. Terminals that ``known`` texts are need not be among them.
        """
        accepted = self._parses.accepted(parse).terminals & ((1 << self._tables.end) - 1) & ~self._ignored
        others = accepted
        for each in known:
            others &= ~self._ends(parse.context, each)
        for terminal in bits(others):
            text = self._spelled(parse.context, terminal)
            names = self._ends(parse.context, text + text) & accepted if text.isalpha() else 0
            if text and not (names and self._is_read_as(parse, terminal, names)):
                yield terminal, text

    def _is_read_as(self, parse: Parse, terminal: int, names: int) -> bool:
        """Whether the parser does with a terminal what it does with one of some others."""
        after = self._parses.after(parse, terminal).parses
        return any(self._parses.after(parse, name).parses == after for name in bits(names))

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

    def rest(self, parse: Parse, state: int, most: int) -> tuple[bytes, int]:
        """The bytes that must follow within a lexeme, as far as it can become nothing else; the state behind them.

        One of two bytes that lead to the same stands for both.
        """
        accepted, tables = self._parses.accepted(parse).terminals, self._tables
        found = bytearray()
        while len(found) < most and not any(accepted >> terminal & 1 for terminal, _ in tables.ends_of[state]):
            row = tables.rows[state]
            alive = [target for target in {*row} if target >= 0 and tables.futures[target] & accepted]
            if len(alive) != 1 or row.count(alive[0]) > _MOST_ALIKE:
                break
            letters = [byte for c, target in enumerate(row) if target == alive[0] for byte in self._members[c]]
            if len(letters) > _MOST_ALIKE:
                break
            state = alive[0]
            found.append(min(letters))
        return bytes(found), state

    def _spell(self, state: int, terminal: int) -> bytes:
        text = bytearray()
        while len(text) < _LONGEST:
            found = self._letter(state, terminal)
            if found is None or any(terminal == each for each, _ in self._tables.ends_of[state]):
                return bytes(text) if found is None else b""
            byte, state = found
            if byte < 0:
                return b""
            text.append(byte)
        return b""

    def _letter(self, state: int, terminal: int) -> tuple[int, int] | None:
        """The letter of ASCII that a lexeme goes on with that may become a terminal, and the state it leads to.

        None where there is none; -1 where there are several, but for a capital and its small letter.
        """
        row, futures = self._tables.rows[state], self._tables.futures
        found: tuple[int, int] | None = None
        for target in {*row}:
            if target < 0 or not futures[target] >> terminal & 1:
                continue
            number = -1
            for _ in range(row.count(target)):
                number = row.index(target, number + 1)
                if letters := self._ascii.get(number):
                    letters = letters if found is None else [found[0], *letters]
                    if len({*bytes(letters).lower()}) > 1 or (found is not None and found[1] != target):
                        return -1, -1
                    found = min(letters), target
        return found
