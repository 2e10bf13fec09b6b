"""GBNF grammars judged by an Earley recogniser over characters, and random ones to judge.

The grammar is a value of its own, written as GBNF by `render`: the judge never sees what the reader makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, TypeAlias

#: ("text", str), ("chars", negated, ((low, high), ...)), ("any",), ("rule", name), ("seq", parts), ("alt", options),
#: ("repeat", item, low, high or None)
Tree: TypeAlias = tuple[Any, ...]

#: A set of characters, or the name of a rule.
Symbol: TypeAlias = "tuple[tuple[int, int], ...] | str"

#: A rule, one of its alternatives, how much of it was read, and where it began.
Item: TypeAlias = tuple[str, int, int, int]

_LAST = 0x10FFFF


def _taken(tree: Tree) -> tuple[tuple[int, int], ...]:
    """The code points of a class."""
    if tree[0] == "any":
        return ((0, _LAST),)
    _, negated, ranges = tree
    if not negated:
        return tuple(ranges)
    others, begin = [], 0
    for low, high in sorted(ranges):
        if begin < low:
            others.append((begin, low - 1))
        begin = max(begin, high + 1)
    if begin <= _LAST:
        others.append((begin, _LAST))
    return tuple(others)


@dataclass(frozen=True)
class Judge:
    """Says which texts a grammar has, and which begin one."""

    rules: dict[str, Tree]
    start: str = "root"

    @cached_property
    def plain(self) -> dict[str, list[list[Symbol]]]:
        """The grammar with nothing but alternatives of sequences."""
        plain: dict[str, list[list[Symbol]]] = {}
        fresh = 0

        def lower(tree: Tree) -> list[list[Symbol]]:
            nonlocal fresh
            kind = tree[0]
            if kind == "text":
                return [[((ord(c), ord(c)),) for c in tree[1]]]
            if kind in ("chars", "any"):
                return [[_taken(tree)]]
            if kind == "rule":
                return [[str(tree[1])]]
            if kind == "alt":
                return [option for part in tree[1] for option in lower(part)]
            if kind == "seq":
                return [[named(part) for part in tree[1]]]
            _, item, low, high = tree
            once: Symbol = named(item)
            if high is None:
                rest = name()
                plain[rest] = [[], [once, rest]]
                return [[once] * low + [rest]]
            return [[once] * turns for turns in range(low, high + 1)]

        def name() -> str:
            nonlocal fresh
            fresh += 1
            return f"#{fresh}"

        def named(tree: Tree) -> str:
            if tree[0] == "rule":
                return str(tree[1])
            new = name()
            plain[new] = lower(tree)
            return new

        for rule, tree in self.rules.items():
            plain[rule] = lower(tree)
        return plain

    def _least(self, plain: dict[str, list[list[Symbol]]], chars: bool) -> set[str]:
        """The rules that have a text (``chars``), or the empty one."""
        found: set[str] = set()
        while True:
            more = {
                name
                for name, options in plain.items()
                for option in options
                if all((s in found) if isinstance(s, str) else chars and bool(s) for s in option)
            }
            if more == found:
                return found
            found = more

    @cached_property
    def clean(self) -> dict[str, list[list[Symbol]]]:
        """Without the alternatives that have no text."""
        alive = self._least(self.plain, True)
        return {
            name: [o for o in options if all(s in alive if isinstance(s, str) else s for s in o)]
            for name, options in self.plain.items()
        }

    @property
    def size(self) -> int:
        """Symbols of the plain grammar: judging takes time that grows faster than they do."""
        return sum(1 + len(option) for options in self.plain.values() for option in options)

    def is_empty(self) -> bool:
        """Whether there is no text at all."""
        return not self.clean[self.start]

    def is_left_recursive(self) -> bool:
        """Whether a rule, not one made here for a repeat, can begin with itself."""
        nullable = self._least(self.plain, False)
        corners: dict[str, set[str]] = {name: set() for name in self.plain}
        for name, options in self.plain.items():
            for option in options:
                for symbol in option:
                    if not isinstance(symbol, str):
                        break
                    corners[name].add(symbol)
                    if symbol not in nullable:
                        break
        for rule in self.rules:
            reached: set[str] = set()
            todo = [rule]
            while todo:
                for corner in corners[todo.pop()] - reached:
                    reached.add(corner)
                    todo.append(corner)
            if rule in reached:
                return True
        return False

    # -- Earley --------------------------------------------------------------------------------------------

    def columns(self, text: str) -> list[set[Item]]:
        """The item sets, one more than there are characters, or up to the first that is empty."""
        columns: list[set[Item]] = []
        column = {(self.start, i, 0, 0) for i in range(len(self.clean[self.start]))}
        for at in range(len(text) + 1):
            columns.append(column)
            self._close(columns, at)
            if at == len(text) or not column:
                break
            column = {
                (name, i, dot + 1, begin)
                for name, i, dot, begin in column
                if dot < len(option := self.clean[name][i])
                and not isinstance(symbol := option[dot], str)
                and any(low <= ord(text[at]) <= high for low, high in symbol)
            }
        return columns

    def _close(self, columns: list[set[Item]], at: int) -> None:
        """Predict and complete until nothing is new, which takes care of empty rules."""
        column = columns[at]
        while True:
            new: set[Item] = set()
            for name, i, dot, begin in column:
                option = self.clean[name][i]
                if dot == len(option):
                    for above, j, there, its in columns[begin]:
                        other = self.clean[above][j]
                        if there < len(other) and other[there] == name:
                            new.add((above, j, there + 1, its))
                elif isinstance(symbol := option[dot], str):
                    new |= {(symbol, j, 0, at) for j in range(len(self.clean[symbol]))}
            if new <= column:
                return
            column |= new

    def verdict(self, data: bytes) -> tuple[int, bool]:
        """How many bytes begin some text, and whether all of them are one."""
        whole = data.decode("utf-8", "ignore") if _is_utf8(data) else _valid_part(data)
        columns = self.columns(whole)
        alive = len(columns) - 1 if columns[-1] else len(columns) - 2
        if alive < 0:
            return 0, False
        used = len(whole[:alive].encode())
        rest = data[used : used + 4]
        column = columns[alive]
        consumed = used
        for length in range(1, len(rest) + 1):
            if not self._can_begin(column, rest[:length]):
                break
            consumed = used + length
        complete = any(
            name == self.start and begin == 0 and dot == len(self.clean[name][i]) for name, i, dot, begin in column
        )
        return consumed, complete and used == len(data)

    def _can_begin(self, column: set[Item], part: bytes) -> bool:
        """Whether bytes begin a character that may come next."""
        span = _characters(part)
        if span is None:
            return False
        return any(_has_characters(max(low, span[0]), min(high, span[1])) for low, high in self.expected(column))

    def expected(self, column: set[Item]) -> set[tuple[int, int]]:
        """The characters that may come next."""
        found: set[tuple[int, int]] = set()
        for name, i, dot, _ in column:
            option = self.clean[name][i]
            if dot < len(option) and not isinstance(symbol := option[dot], str):
                found.update(symbol)
        return found


def _has_characters(low: int, high: int) -> bool:
    return low <= high and not (low >= 0xD800 and high <= 0xDFFF)


#: The first bytes of characters of 1, 2, 3 and 4 bytes, and their code points.
_LEADS = ((0, 0x7F), (0xC2, 0xDF), (0xE0, 0xEF), (0xF0, 0xF4))
_CODES = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, _LAST))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _valid_part(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()


def _characters(part: bytes) -> tuple[int, int] | None:
    """The first and the last code point whose UTF-8 begins with some bytes; None where there is none."""
    length = next((n for n, (low, high) in enumerate(_LEADS, 1) if low <= part[0] <= high), 0)
    if not length or len(part) > length or any(not 0x80 <= b <= 0xBF for b in part[1:]):
        return None
    value = part[0] & (0x7F, 0x1F, 0x0F, 0x07)[length - 1]
    for byte in part[1:]:
        value = (value << 6) | (byte & 0x3F)
    shift = 6 * (length - len(part))
    low, high = value << shift, ((value + 1) << shift) - 1
    low, high = max(low, _CODES[length - 1][0]), min(high, _CODES[length - 1][1])
    return (low, high) if _has_characters(low, high) else None


# -- grammars ------------------------------------------------------------------------------------------------

LETTERS = "abcé☃😀"

#: How often each kind of right side comes.
_SHARES = {"text": 2, "chars": 1, "any": 1, "empty": 1, "quoted": 3, "rule": 2, "seq": 3, "alt": 2, "repeat": 2}
_KINDS = tuple(kind for kind, share in _SHARES.items() for _ in range(share))
_BOUNDS = ((0, None), (1, None), (0, 1), (2, 2), (0, 2), (1, 3), (2, None), (0, 0), (3, 30), (26, 27))


def random_grammar(rng: Random) -> dict[str, Tree]:
    """A few rules that mention each other; every third one or so begins with itself somehow, or has no text."""
    names = ["root", "a", "b-1", "c_2"][: rng.randint(1, 4)]
    return {name: random_tree(rng, names, 3) for name in names}


def random_tree(rng: Random, names: list[str], depth: int) -> Tree:
    """A random right side."""
    kind = rng.choice(_KINDS)
    if depth == 0 and kind in ("seq", "alt", "repeat"):
        kind = "text"

    def below() -> Tree:
        return random_tree(rng, names, depth - 1)

    if kind == "text":
        return ("text", "".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 2))))
    if kind == "empty":
        return ("text", "")
    if kind == "quoted":
        quote = rng.choice(LETTERS)
        inside = ("repeat", ("chars", True, ((ord(quote), ord(quote)),)), *rng.choice(_BOUNDS))
        return ("seq", (("text", quote), inside, ("text", quote)))
    if kind == "any":
        return ("any",)
    if kind == "chars":
        spans = []
        for _ in range(rng.randint(1, 2)):
            low, high = sorted(ord(rng.choice(LETTERS)) for _ in range(2))
            spans.append((low, high if rng.random() < 0.6 else low))
        return ("chars", rng.random() < 0.3, tuple(spans))
    if kind == "rule":
        # What comes first in a rule is a letter more often than not, so that few begin with themselves.
        rule = ("rule", rng.choice(names))
        return rule if rng.random() < 0.3 else ("seq", (("text", rng.choice(LETTERS)), rule))
    if kind in ("seq", "alt"):
        return (kind, tuple(below() for _ in range(rng.randint(2, 3))))
    return ("repeat", below(), *rng.choice(_BOUNDS))


def render(rules: dict[str, Tree], rng: Random | None = None) -> str:
    """A grammar as text, spaced and commented at random."""
    rng = rng or Random(0)
    return "\n".join(f"{name} ::={_space(rng)}{_shown(tree, rng, 0)}" for name, tree in rules.items()) + "\n"


def _space(rng: Random, lines: bool = False) -> str:
    return rng.choice((" ", "  ", "\t", "\n  ", ' # so ("\n ')) if lines else rng.choice((" ", "\t ", " "))


def _shown(tree: Tree, rng: Random, level: int) -> str:
    """Level 0: a whole right side; 1: what stands in a sequence or between ``|``; 2: what a repeat applies to."""
    kind = tree[0]
    if kind == "text":
        return '"' + "".join(_character(c, rng) for c in tree[1]) + '"'
    if kind == "any":
        return "."
    if kind == "chars":
        return f"[{'^' if tree[1] else ''}{''.join(_span(low, high, rng) for low, high in tree[2])}]"
    if kind == "rule":
        return str(tree[1])
    if kind == "repeat":
        return f"{_shown(tree[1], rng, 2)}{rng.choice(('', ' '))}{_bounds(tree[2], tree[3], rng)}"
    grouped = level > 0 or rng.random() < 0.2
    # Line ends are only free inside of parentheses, and behind |.
    between = _space(rng, grouped) if kind == "seq" else f"{_space(rng, grouped)}|{_space(rng, True)}"
    text = between.join(_shown(part, rng, 1) for part in tree[1])
    return f"({_space(rng, True)}{text}{_space(rng, True)})" if grouped else text


def _span(low: int, high: int, rng: Random) -> str:
    return _character(chr(low), rng) + (f"-{_character(chr(high), rng)}" if high > low else "")


def _bounds(low: int, high: int | None, rng: Random) -> str:
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    braces = f"{{{low}}}" if low == high else f"{{{low},}}" if high is None else f"{{{low}, {high}}}"
    return signs.get((low, high), braces) if rng.random() < 0.7 else braces


def _character(character: str, rng: Random) -> str:
    code = ord(character)
    spellings = [character, f"\\U{code:08X}"]
    if code < 0x10000:
        spellings.append(f"\\u{code:04x}")
    if code < 0x100:
        spellings.append(f"\\x{code:02X}")
    return rng.choice(spellings[:1] * 3 + spellings)


def random_texts(judge: Judge, rng: Random, count: int) -> list[bytes]:
    """Texts along the grammar, some damaged, some cut inside of a character."""
    return [_damaged(_along(judge, rng).encode(), rng) for _ in range(count)]


def _along(judge: Judge, rng: Random) -> str:
    text = ""
    for _ in range(rng.randint(0, 40)):
        spans = judge.expected(judge.columns(text)[-1])
        letters = [c for c in LETTERS if any(low <= ord(c) <= high for low, high in spans)]
        if not letters:
            break
        text += rng.choice(letters)
    return text


def _damaged(data: bytes, rng: Random) -> bytes:
    if rng.random() < 0.6 or not data:
        return data
    at = rng.randrange(len(data))
    piece = rng.choice((b"", b"a", b"\xc3", b"\xff", "☃".encode(), b"zz"))
    return data[:at] + piece + data[at + rng.randint(0, 1) :]
