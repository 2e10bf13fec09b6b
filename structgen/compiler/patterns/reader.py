"""What dialects of regexes have in common: groups, alternatives, quantifiers, literals, word boundaries.

A dialect is a subclass (`parser`, `ecma`, `rust`). Groups that are open are a list, not Python's stack: patterns come
from strangers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ...budget import Meter
from ...errors import BudgetExceededError, DefinitionError, UnsupportedError
from ..automata import charset
from ..automata.charset import Ranges
from .syntax import BYTES_OF_RANGE, EMPTY, Alternate, Chars, Concat, Look, Node, Repeat

#: The flags of `re` as plain ints, whose algebra is faster than the enum's.
A, I, M, S, U, X = map(int, (re.A, re.I, re.M, re.S, re.U, re.X))  # noqa: E741
#: A flag that no pattern has: with I, characters are equal by Unicode's simple case folding, not as in `re`.
SIMPLE = 1 << 16
#: The flags that say which characters are equal.
FOLDING = I | A | SIMPLE

#: Members of a class that are put in order in a second.
_SPANS_PER_SECOND = 1_000_000

#: Counts from here on are errors in `re` (its ``MAXREPEAT``).
_MAX_COUNT = 2**32 - 1
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}

CONTROLS = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
#: Constructs of re and of other dialects that need captures, a match in progress, or more than an automaton.
REFUSED_GROUPS = {
    "(": "a conditional on a group",
    ">": "an atomic group",
    "|": "a branch reset group",
    **dict.fromkeys("R0123456789&+", "recursion"),
}
SPELL_OUT = "Spell the wanted texts out without it."
ESCAPE_IT = "To match the character itself, put a backslash before it."


@dataclass(slots=True)
class _Group:
    """A group that is still open, or the whole pattern. ``look`` is (behind, negate).

    Of a conditional the first thing is a look-around, its ``condition`` once that is closed.
    """

    start: int
    flags: int
    look: tuple[bool, bool] | None = None
    conditional: bool = False
    condition: Look | None = None
    options: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)  # of the options but the first, as columns

    def end_option(self) -> None:
        if len(self.parts) == 1:
            self.options.append(self.parts[0])
        else:
            self.options.append(Concat(tuple(self.parts)) if self.parts else EMPTY)
        self.parts = []


class PatternReader(ABC):
    """Reads one pattern in one loop.

    Parameters
    ----------
    kind, where:
        For messages: what is being read, and in which text a mistake is.
    """

    #: A run of characters that stand for themselves, without and with the flag x; a brace's counts; what ``.`` means,
    #: without and with the flag s.
    plain: tuple[re.Pattern[str], re.Pattern[str]]
    counts: re.Pattern[str]
    dots: tuple[Chars, Chars]
    #: Whether under the flag i sets within a class are folded, too.
    folds_sets = False

    def __init__(self, pattern: str, flags: int, meter: Meter, kind: str, where: str = "") -> None:
        self.pattern = pattern
        self.index = 0
        self.meter = meter
        self.kind, self.where = kind, where
        self.sets: dict[Ranges, Ranges] = {}
        self.group = _Group(start=0, flags=flags)
        self.outer: list[_Group] = []
        # Why a quantifier cannot stand here; empty where it can.
        self.obstacle = "nothing to repeat"

    def parse(self) -> Node:
        """Read to the end; ``self.group`` is the innermost open group, ``self.outer`` those around it."""
        size = len(self.pattern)
        while self.index < size:
            self.meter.check_time("reading the pattern")
            self.step()
        if self.outer:
            raise self.malformed("missing ), unterminated group", self.group.start, ESCAPE_IT)
        return self.node()

    def step(self) -> None:
        """Read a run of characters that stand for themselves, each a part of its own, or something else."""
        flags = self.group.flags
        run = self.plain[bool(flags & X)].match(self.pattern, self.index)
        if run:
            fold = flags & FOLDING
            self.group.parts += [literal(ord(char), fold) for char in run[0]]
            self.obstacle = ""
            self.index = run.end()
        else:
            self.index += 1
            self.special(self.pattern[self.index - 1])

    def special(self, char: str) -> None:
        """Read what begins with a character that may not stand for itself."""
        match char:
            case "(":
                self.open()
            case ")":
                self.close()
            case "|":
                self.group.end_option()
                self.group.begins.append(self.index + 1)
                self.obstacle = "nothing to repeat"
            case "[":
                self.add(Chars(self.kept(self.char_class())))
            case "\\":
                self.escaped()
            case "*" | "+" | "?":
                self.repeat(*_SIGNS[char], self.index - 1)
            case "{":
                self.brace()
            case ".":
                self.add(self.dots[bool(self.group.flags & S)])
            case "^" | "$":
                self.anchor(char, self.index - 1)

    @abstractmethod
    def open(self) -> None:
        """Open the group whose parenthesis has just been read."""

    @abstractmethod
    def class_atom(self, start: int) -> int | Ranges:
        """Read a character or a set of them, inside a class that begins at ``start``."""

    @abstractmethod
    def escaped(self) -> None:
        """Read what follows a backslash outside a class."""

    @abstractmethod
    def anchor(self, char: str, start: int) -> None:
        """Add what an anchor means."""

    def add(self, node: Node) -> None:
        """Add what a quantifier may follow."""
        self.group.parts.append(node)
        self.obstacle = ""

    def assertion(self, node: Node) -> None:
        """Add what no quantifier may follow."""
        self.group.parts.append(node)
        self.obstacle = "nothing to repeat"

    def take(self, text: str) -> bool:
        """Read ``text`` if it comes next."""
        found = self.pattern.startswith(text, self.index)
        if found:
            self.index += len(text)
        return found

    def skip(self, expression: re.Pattern[str]) -> bool:
        """Read what an expression matches, if it does."""
        found = expression.match(self.pattern, self.index)
        if found:
            self.index = found.end()
        return found is not None

    def kept(self, ranges: Ranges) -> Ranges:
        """A set that the tree will hold; equal ones are held once."""
        if ranges not in self.sets:
            self.meter.hold(BYTES_OF_RANGE * len(ranges), "reading the pattern")
        return self.sets.setdefault(ranges, ranges)

    # -- classes --------------------------------------------------------------------------------------------

    def char_class(self) -> Ranges:
        """Read a class whose bracket has just been read."""
        start = self.index - 1
        negate = self.take("^")
        spans: list[tuple[int, int]] = []
        sets: set[Ranges] = set()
        first = self.index
        while not self.class_ends(start, first):
            self.meter.check_time("reading the pattern")
            at = self.index
            atoms = [self.class_atom(start)]
            if self.take("-"):
                atoms.append(ord("-"))
                if not self.pattern.startswith("]", self.index):
                    low, high = atoms[0], self.class_atom(start)
                    if isinstance(low, int) and isinstance(high, int) and low <= high:
                        spans.append((low, high))
                        continue
                    self.check_hyphen(low, high, at)
                    atoms.append(high)
            for atom in atoms:
                if isinstance(atom, int):
                    spans.append((atom, atom))
                else:
                    sets.add(atom)
        found = self.ranges(spans, sets if self.folds_sets else set())
        found = self.ranges(list(folded(found, self.group.flags)), sets)
        return charset.complement(found) if negate else found

    def class_ends(self, start: int, first: int) -> bool:
        """Read the bracket that ends a class whose members begin at ``first``, if it comes next."""
        return self.index != first and self.take("]")

    def check_hyphen(self, low: int | Ranges, high: int | Ranges, at: int) -> None:
        """Refuse what is no range; a dialect may take a hyphen beside a set for itself."""
        text = self.pattern[at : self.index]
        raise self.malformed(f"bad character range {text}", at, "Write two characters in order.")

    def ranges(self, spans: list[tuple[int, int]], sets: set[Ranges]) -> Ranges:
        """The characters of a class, by ranges and by sets.

        Raises `BudgetExceededError` where putting them in order would take too long.
        """
        if len(spans) + sum(map(len, sets)) > self.meter.work(_SPANS_PER_SECOND):
            raise self.meter.out_of_time("reading the pattern")
        return charset.union(charset.normalise(spans), *sets)

    # -- open groups ----------------------------------------------------------------------------------------

    def push(self, start: int, flags: int | None = None, look: tuple[bool, bool] | None = None) -> None:
        """Open a group."""
        self.outer.append(self.group)
        self.check_depth(len(self.outer), start)
        self.group = _Group(start, self.group.flags if flags is None else flags, look)
        self.obstacle = "nothing to repeat"

    def check_depth(self, depth: int, start: int) -> None:
        """Raise `BudgetExceededError` where groups, or classes, are nested too deeply."""
        most = self.meter.budget.depth
        if depth > most:
            raise BudgetExceededError(
                f"the pattern nests more than depth={most:,} groups",
                where=_column(start),
                remedy="Remove parentheses that group nothing, or pass a larger budget=Budget(depth=...).",
            )

    def close(self) -> None:
        """Close the innermost group."""
        if not self.outer:
            raise self.malformed("unbalanced parenthesis", self.index - 1, ESCAPE_IT)
        node = self.node()
        self.group = self.outer.pop()
        if self.group.conditional and self.group.condition is None and isinstance(node, Look):
            self.group.condition = node
            self.obstacle = "nothing to repeat"
        else:
            self.add(node)

    def node(self) -> Node:
        """What the innermost group matches."""
        self.group.end_option()
        options = self._decided(self.group.condition) if self.group.condition else self.group.options
        body = options[0] if len(options) == 1 else self.alternate(options)
        if self.group.look is None:
            return body
        return Look(body, *self.group.look, whole=False, column=self.group.start + 1)

    def _decided(self, condition: Look) -> list[Node]:
        """The options of a conditional, each behind what decides for it."""
        yes, *others = self.group.options
        if len(others) > 1:
            raise self.malformed("a conditional has more than two options", self.group.start, "Put them in a group.")
        no = others[0] if others else EMPTY
        return [Concat((condition, yes)), Concat((replace(condition, negate=not condition.negate), no))]

    def alternate(self, options: list[Node]) -> Node:
        """One of several options."""
        return Alternate(tuple(options), (self.group.start + 1, *self.group.begins))

    # -- quantifiers ----------------------------------------------------------------------------------------

    def brace(self) -> None:
        """Read counts, or a brace that stands for itself."""
        start = self.index - 1
        found = self.counts.match(self.pattern, self.index)
        if not found:
            self.add(literal(ord("{"), 0))
            return
        self.index = found.end()
        low, high = (self._count(digits, start) for digits in (found[1], found[3] or "" if found[2] else found[1]))
        if high is not None and high < (low or 0):
            raise self.malformed("min repeat greater than max repeat", start, "Swap the two.")
        self.repeat(low or 0, high, start)

    def _count(self, digits: str, start: int) -> int | None:
        digits = digits.lstrip("0") or digits[:1]
        if len(digits) > len(str(_MAX_COUNT)) or int(digits or 0) >= _MAX_COUNT:
            raise self.malformed("the repetition number is too large", start, f"Counts end below {_MAX_COUNT:,}.")
        return int(digits) if digits else None

    def repeat(self, low: int, high: int | None, start: int) -> None:
        """Apply a quantifier to what stands before it."""
        if self.obstacle:
            raise self.malformed(self.obstacle, start, ESCAPE_IT)
        if self.pattern.startswith("+", self.index):
            raise self.refused("a possessive quantifier", start, "Leave the second sign out, or group: (?:...)+.")
        parts = self.group.parts
        parts[-1] = Repeat(parts[-1], low, high, column=start + 1, lazy=self.take("?"))
        self.obstacle = "multiple repeat"

    # -- errors ---------------------------------------------------------------------------------------------

    def malformed(self, what: str, index: int, remedy: str) -> DefinitionError:
        """The error of a mistake."""
        return DefinitionError(what + self.where, where=_column(index), remedy=remedy)

    def refused(self, construct: str, index: int, remedy: str = SPELL_OUT) -> UnsupportedError:
        """The error of what no automaton can follow, or what another dialect means."""
        return UnsupportedError(f"{construct} is not supported in {self.kind}", where=_column(index), remedy=remedy)

    def refused_property(self, name: str, start: int) -> UnsupportedError:
        """The error of a property that Python does not know exactly."""
        return self.refused(
            f"the Unicode property {name!r}", start, r"Use a general category, such as \p{L} or \p{Lu}."
        )


def _column(index: int) -> str:
    return f"column {index + 1}"


@lru_cache(maxsize=4096)
def literal(code: int, fold: int) -> Chars:
    """One node for each character and union of flags in `FOLDING`."""
    return Chars(folded(charset.normalise([(code, code)]), fold))


def folded(ranges: Ranges, flags: int) -> Ranges:
    """The characters that equal one of a set."""
    if not flags & I:
        return ranges
    return charset.fold_simply(ranges) if flags & SIMPLE else charset.ignore_case(ranges, bool(flags & A))


def boundary(negate: bool, word: Chars, column: int, other: Chars | None = None) -> Node:
    r"""``\b`` and ``\B`` as look-around; with ``other``, ``\B`` needs a character on one side at least."""
    after, before, not_after, not_before = (
        Look(word, behind, negate=not there, whole=False, column=column)
        for there in (True, False)
        for behind in (True, False)
    )
    sides: tuple[tuple[Look, Look], ...] = (after, not_before), (not_after, before)
    if negate and other is not None:
        some_after, some_before = (Look(other, behind, False, whole=False, column=column) for behind in (True, False))
        sides = (after, before), (some_after, not_before), (not_after, some_before)
    elif negate:
        sides = (after, before), (not_after, not_before)
    return Alternate(tuple(map(Concat, sides)))
