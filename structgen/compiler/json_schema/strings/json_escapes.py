r"""From an automaton of decoded strings to that of their JSON texts, between the quotes.

No subset construction: a text of JSON spells character after character, so the rewriting is local. Where an
automaton stands between two characters, the characters that may be written as they are keep their bytes, and the
others get a path of their own::

    state --\--> e --"--> ...        each ends where the raw character would have led,
                   --n--> ...        with the counter record that it would have had
                   --u--> 0 0 1 f

States that allow the same characters with the same ends share their escapes, and an escape's states are shared
wherever what follows is the same. Which characters are written how is said by `TextOptions.escapes`:

=========== ========================================= ===============================================
``minimal`` all but ``"``, ``\`` and U+0000 to U+001F these, the short way where JSON has one
``ascii``   printable ASCII but ``"`` and ``\``       all others; beyond the BMP as two surrogates
``any``     as in ``minimal``                         all, in any way that JSON knows (``\/``, ``\u0041``)
letters     as in ``minimal``                         these alone; with ``u`` all controls and U+007F, too, with
                                                      ``U`` all by four hex digits
=========== ========================================= ===============================================

Hex digits are of either case. ``minimal`` and ``ascii`` are what `json.dumps` writes, without and with
``ensure_ascii`` (which escapes U+007F).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ...automata.dfa import Dfa, runs_begin
from .lengths import between_characters, trimmed

_DEAD = -1
_DOING = "writing a string's escapes"

#: Code points from the first to the second lead to the third, an entry of the table. Sorted and disjoint.
Spans: TypeAlias = tuple[tuple[int, int, int], ...]

_SHORT = {0x22: '"', 0x5C: "\\", 0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r"}
_SOLIDUS = {0x2F: "/"}
_MUST = frozenset([*range(0x20), 0x22, 0x5C])
_SPECIAL = re.compile(r'[\x00-\x1f"\\]')
_ASTRAL = 0x10000


@dataclass(frozen=True)
class _Policy:
    """``raw``: the bytes that may stand for themselves. ``short``: by code point, the letter after the backslash.

    ``spelled``: the code points that ``\\u`` may spell, as (first, last).
    """

    raw: frozenset[int]
    short: dict[int, str]
    spelled: tuple[tuple[int, int], ...]


_ALL = frozenset(range(256))
_WORDS = {
    "minimal": _Policy(_ALL - _MUST, _SHORT, ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F))),
    "ascii": _Policy(
        frozenset(range(0x20, 0x7F)) - _MUST, _SHORT, ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F), (0x7F, 0x10FFFF))
    ),
    "any": _Policy(_ALL - _MUST, _SHORT | _SOLIDUS, ((0x00, 0x10FFFF),)),
}


def _policy(escapes: str) -> _Policy:
    """What a word means, or letters."""
    if escapes in _WORDS:
        return _WORDS[escapes]
    short = {code: letter for code, letter in (_SHORT | _SOLIDUS).items() if letter in escapes}
    controls = ((0x00, 0x1F), (0x7F, 0x7F)) if "u" in escapes else ()
    return _Policy(_ALL - _MUST, short, ((0x00, 0x10FFFF),) if "U" in escapes else controls)


def unspelled(escapes: str) -> tuple[str, ...]:
    """The characters that have to be escaped, and cannot be."""
    if escapes in _WORDS:
        return ()
    policy = _policy(escapes)
    spelled = {code for first, last in policy.spelled for code in range(first, last + 1)}
    return tuple(map(chr, sorted(_MUST - policy.short.keys() - spelled)))


def needs_escape(text: str) -> bool:
    """Whether a text has characters that JSON cannot write as they are."""
    return _SPECIAL.search(text) is not None


def json_text(dfa: Dfa, escapes: str, meter: Meter) -> Dfa:
    """The JSON texts, without the quotes, of the strings that ``dfa`` accepts.

    Parameters
    ----------
    dfa:
        Over UTF-8 bytes; it may count, with its records on the last bytes of characters.
    escapes:
        As in `TextOptions`.

    Returns
    -------
    Dfa
        A closing quote may follow where it accepts.

    Raises
    ------
    BudgetExceededError
        There would be too many states.
    """
    if not dfa.states:
        return dfa
    writer = _Writer(dfa, _policy(escapes))
    backslash = writer.escape_states(meter)
    meter.check_states(dfa.states + len(writer.moves), _DOING)
    return writer.assembled(backslash, meter)


class _Writer:
    def __init__(self, dfa: Dfa, policy: _Policy) -> None:
        self.dfa = dfa
        self.policy = policy
        self.of_byte: list[int] = dfa.classes.tolist()
        #: By new state, numbered from ``dfa.states`` on: its moves as (byte, entry).
        self.moves: list[tuple[tuple[int, int], ...]] = []
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._hex: dict[tuple[int, Spans], int] = {}
        self._inside: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def escape_states(self, meter: Meter) -> NDArray[np.int32]:
        """By state, where a backslash leads; dead inside characters."""
        dfa, policy = self.dfa, self.policy
        beyond_ascii = any(last > 0x7F for _, last in policy.spelled)
        bytes_ = range(256) if beyond_ascii else (*_MUST, *policy.short, 0x7F)
        used = sorted({self.of_byte[byte] for byte in bytes_})
        backslash = np.full(dfa.states, _DEAD, np.int32)
        rows = dfa.table[:, used]
        states = np.flatnonzero(between_characters(dfa) & (rows != _DEAD).any(axis=1))
        rows = rows[states]
        known: dict[bytes, int] = {}
        for state, row in meter.each(zip(states.tolist(), rows, strict=True), _DOING):
            key = row.tobytes()
            found = known.get(key)
            if found is None:
                found = known[key] = self.escape_state(state)
            backslash[state] = found
        return backslash

    def escape_state(self, state: int) -> int:
        """The state after a backslash read in ``state``, or dead."""
        row, of_byte = self.dfa.table[state].tolist(), self.of_byte
        moves = [(ord(letter), row[of_byte[code]]) for code, letter in self.policy.short.items()]
        spans: list[tuple[int, int, int]] = []
        for first, last in self.policy.spelled:
            for code in range(first, min(last, 0x7F) + 1):
                _append(spans, code, code, row[of_byte[code]])
            if last > 0x7F:
                self.multibyte(state, spans)
        moves.append((ord("u"), self.four_digits(tuple(spans))))
        return self.state(moves)

    def multibyte(self, state: int, spans: list[tuple[int, int, int]]) -> None:
        """Append the code points beyond ASCII that lead on from ``state``."""
        row, of_byte = self.dfa.table[state].tolist(), self.of_byte
        for lead in range(0xC2, 0xF5):
            target = row[of_byte[lead]]
            if target == _DEAD:
                continue
            length, bits = (1, lead & 0x1F) if lead < 0xE0 else (2, lead & 0x0F) if lead < 0xF0 else (3, lead & 0x07)
            base = bits << 6 * length
            for low, high, entry in self.inside(target, length):
                _append(spans, base + low, base + high, entry)

    def inside(self, state: int, length: int) -> list[tuple[int, int, int]]:
        """What the next ``length`` continuation bytes, six bits each, lead to. Recurses twice at most."""
        found = self._inside.get((state, length))
        if found is not None:
            return found
        found = self._inside[state, length] = []
        row, of_byte = self.dfa.table[state].tolist(), self.of_byte
        for bits in range(64):
            entry = row[of_byte[0x80 + bits]]
            if length == 1 or entry == _DEAD:
                _append(found, bits, bits, entry)
                continue
            base = bits << 6 * (length - 1)
            for low, high, end in self.inside(entry, length - 1):
                _append(found, base + low, base + high, end)
        return found

    def four_digits(self, spans: Spans) -> int:
        """The state after ``\\u`` from which the code points are spelled; those beyond the BMP as pairs."""
        basic: list[tuple[int, int, int]] = [s for s in spans if s[1] < _ASTRAL]
        astral = [(low - _ASTRAL, high - _ASTRAL, entry) for low, high, entry in spans if low >= _ASTRAL]
        for low, high, entry in spans:
            if low < _ASTRAL <= high:
                basic.append((low, _ASTRAL - 1, entry))
                astral.insert(0, (0, high - _ASTRAL, entry))
        pairs = self.leading_surrogates(astral)
        # Spans never cover the surrogates themselves, so that these find their place among the others.
        return self.digits(4, tuple(sorted([*basic, *pairs])))

    def leading_surrogates(self, astral: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """As spans of leading surrogates, which lead to a state that wants the other one."""
        trailing: dict[int, list[tuple[int, int, int]]] = {}
        pairs: list[tuple[int, int, int]] = []
        for low, high, entry in astral:
            first, last = low >> 10, high >> 10
            for lead in {first, last}:
                part = max(low, lead << 10) & 0x3FF, min(high, (lead << 10) + 0x3FF) & 0x3FF, entry
                trailing.setdefault(lead, []).append(part)
            if last - first > 1:
                whole = self.trailing_surrogate(((0, 0x3FF, entry),))
                pairs.append((0xD800 + first + 1, 0xD800 + last - 1, whole))
        for lead, parts in trailing.items():
            pairs.append((0xD800 + lead, 0xD800 + lead, self.trailing_surrogate(tuple(sorted(parts)))))
        merged: list[tuple[int, int, int]] = []
        for low, high, entry in sorted(pairs):
            _append(merged, low, high, entry)
        return merged

    def trailing_surrogate(self, spans: Spans) -> int:
        digits = self.digits(4, tuple((low + 0xDC00, high + 0xDC00, entry) for low, high, entry in spans))
        return self.state([(ord("\\"), self.state([(ord("u"), digits)]))])

    def digits(self, width: int, spans: Spans) -> int:
        """The state from which ``width`` hex digits spell the numbers. Recurses three times at most."""
        if not spans:
            return _DEAD
        found = self._hex.get((width, spans))
        if found is None:
            shift = 4 * (width - 1)
            parts: list[list[tuple[int, int, int]]] = [[] for _ in range(16)]
            for low, high, entry in spans:
                for digit in range(low >> shift, (high >> shift) + 1):
                    base = digit << shift
                    parts[digit].append((max(low - base, 0), min(high - base, (1 << shift) - 1), entry))
            moves = []
            for digit, part in enumerate(parts):
                if part:
                    entry = part[0][2] if width == 1 else self.digits(width - 1, tuple(part))
                    moves += [(ord(char), entry) for char in {f"{digit:x}", f"{digit:X}"}]
            found = self._hex[width, spans] = self.state(moves)
        return found

    def state(self, moves: list[tuple[int, int]]) -> int:
        """The state with these moves; dead if there are none."""
        key = tuple(sorted(move for move in moves if move[1] != _DEAD))
        if not key:
            return _DEAD
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.dfa.states + len(self.moves)
            self.moves.append(key)
        return number

    def assembled(self, backslash: NDArray[np.int32], meter: Meter) -> Dfa:
        """The table of the raw bytes and the escapes."""
        dfa, n, extra = self.dfa, self.dfa.states, len(self.moves)
        cuts = np.zeros(257, bool)
        cuts[1:256] = np.diff(dfa.classes) != 0
        raw = np.zeros(256, bool)
        raw[list(self.policy.raw)] = True
        cuts[1:256] |= np.diff(raw)
        bytes_ = np.array([byte for moves in self.moves for byte, _ in moves] + [0x5C], np.int64)
        cuts[bytes_] = cuts[bytes_ + 1] = True
        classes = np.cumsum(cuts[:256], dtype=np.int32)
        first = np.flatnonzero(np.r_[True, cuts[1:256]])
        meter.check_memory(4 * (n + extra) * len(first), _DOING)
        table = np.full((n + extra, len(first)), _DEAD, np.int32)
        table[:n] = np.where(raw[first], dfa.table[:, dfa.classes[first]], _DEAD)
        table[:n, classes[0x5C]] = backslash
        if extra:
            rows = np.repeat(np.arange(n, n + extra), [len(moves) for moves in self.moves])
            entries = np.array([entry for moves in self.moves for _, entry in moves], np.int32)
            table[rows, classes[bytes_[:-1]]] = entries
        accepting = np.append(dfa.accepting, np.zeros(extra, np.uint8))
        written = replace(dfa, table=table, classes=classes, accepting=accepting)
        if len(self.policy.raw) < len(_ALL - _MUST):
            written = trimmed(written)  # of the states inside of characters that are no longer written raw
        return _fewer_classes(written)


def _append(spans: list[tuple[int, int, int]], low: int, high: int, entry: int) -> None:
    """Add a span behind the others, as a part of the last one if it continues that."""
    if entry == _DEAD:
        return
    if spans and spans[-1][1] + 1 == low and spans[-1][2] == entry:
        spans[-1] = spans[-1][0], high, entry
    else:
        spans.append((low, high, entry))


def _fewer_classes(dfa: Dfa) -> Dfa:
    """Neighbouring classes that no state tells apart become one."""
    table = dfa.table
    new = runs_begin(table)
    if new.all():
        return dfa
    of_class = np.cumsum(new) - 1
    return replace(dfa, table=np.ascontiguousarray(table[:, new]), classes=of_class[dfa.classes].astype(np.int32))
