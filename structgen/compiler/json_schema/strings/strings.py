"""Sets of strings, closed under and, or and not.

A string is a sequence of Unicode scalar values. (JSON can spell a lone surrogate; no set contains such a string.)
Sets come in three forms, and an operation stays in a cheap one where it can:

- *words*: finitely many texts, or all but finitely many. What meets a finite set is a matter of membership.
- *regular*: a language, which is a pattern's tree and becomes an automaton when it must, with bounds on the length
  beside it. The bounds stay outside of the automaton until its text is asked for, which may count them. Where the
  language is all texts of one class of characters, the set is a *run*: ``maxLength`` is one, ``^[a-z]+$`` is one, and
  two of them meet in one.
- *others*: what a regular set with an upper bound on the length leaves out. Its text may be counted, too, and
  costs nothing where nobody writes it, as in most negations; what meets it makes it a regular set.

Where it is known without much ado, few texts are words, and all or no strings are `StringSet.ANY` and
`StringSet.EMPTY`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from functools import cache, lru_cache
from typing import ClassVar

from ....budget import Budget, Meter
from ....errors import StructgenError
from ...automata import charset
from ...automata import dfa as automata
from ...automata.dfa import Dfa
from ...automata.nfa import NfaBuilder
from ...automata.words import words_dfa
from ...patterns import ecma
from ...patterns.lower import language
from ...patterns.measures import post_order
from ...patterns.syntax import Alternate, Chars, Concat, Node
from .json_escapes import json_text, needs_escape
from .languages import Language, complement, count_of, digest, texts_of, union
from .lengths import bounded, others, text_widths
from .trees import ANY_TEXT, ANYTHING, Run, few_texts, merged, run_of, searched
from .words import everything, other_words_dfa

#: A pattern or a run of so many texts, or fewer, becomes their set.
_FEW = 64
#: What excludes texts of so many characters, all together, is remembered.
_REMEMBERED = 1_000
#: Trees of patterns up to this length are remembered.
_SHORT_PATTERN = 1_000

#: No text has more characters than that; larger bounds would overflow the counts.
_LONGEST = 1 << 30

#: Characters of a pattern that are parsed in a second.
_PARSED_PER_SECOND = 400_000

#: States that one character, or one state of the decoded texts, has in a body at most, by ``escapes``; or by others.
_STATES_OF_CHARACTER, _MOST_OF_CHARACTER = {"minimal": 8}, 32

_SURROGATE = re.compile("[\ud800-\udfff]")


class StringSet(ABC):
    """An immutable set of strings. Equal sets in the same form are equal, by `key`.

    Operations raise `BudgetExceededError` where their automata outgrow the budget.
    """

    ANY: ClassVar[StringSet]
    EMPTY: ClassVar[StringSet]

    def __init__(self, key: Hashable) -> None:
        #: Hashable; says which set it is.
        self.key = key
        self._bodies: dict[str, Dfa] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StringSet) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    # -- makers ---------------------------------------------------------------------------------------------

    @staticmethod
    def literal(texts: Iterable[str]) -> StringSet:
        """These texts; those with a lone surrogate are dropped."""
        words = frozenset([text for text in texts if text.isascii() or not _SURROGATE.search(text)])
        return _Words(words, negated=False) if words else StringSet.EMPTY

    @staticmethod
    def length(minimum: int, maximum: int | None) -> StringSet:
        """Texts of so many characters."""
        if maximum is not None and maximum > max(minimum, _LONGEST):
            maximum = None
        return _run(Run(ANYTHING, max(0, minimum), maximum))

    @staticmethod
    def pattern(pattern: str, meter: Meter, where: str) -> StringSet:
        """Texts in which the ECMA-262 ``pattern`` is found; ``where`` is its JSON pointer.

        Raises `DefinitionError`, `UnsupportedError` or `BudgetExceededError`.
        """
        # A character of a pattern is about one state of an NFA, and those are cheaper than what is budgeted for.
        meter.check_states(len(pattern) // 16, f"the pattern at {where}")
        if len(pattern) > meter.work(_PARSED_PER_SECOND):
            raise meter.out_of_time(f"the pattern at {where}")
        try:
            if len(pattern) <= _SHORT_PATTERN:
                tree = _parsed(pattern, meter.budget.depth)
            else:
                tree = searched(ecma.parse(pattern, meter))
        except StructgenError as error:
            place = f"{where}, {error.where}" if where else error.where
            raise type(error)(error.what, where=place, remedy=error.remedy) from None
        return _of_tree(tree, ("pattern", pattern), meter, where)

    @staticmethod
    def of_dfa(dfa: Dfa, meter: Meter) -> StringSet:
        """Texts of any automaton over bytes that has no counters; what is not UTF-8 is dropped."""
        return _of_dfa(automata.intersect(everything(), dfa, meter, "reading an automaton"), meter)

    @staticmethod
    def format(name: str, meter: Meter) -> StringSet | None:
        """Texts of a format; None where the name is unknown, and says nothing then."""
        from .formats import format_dfa

        return None if format_dfa(name, meter) is None else _of_format(name)

    # -- questions ------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> tuple[int, int] | None:
        """The bounds on the number of characters that stand beside the language, if there is a largest one."""
        return None

    def is_any(self) -> bool:
        """Whether it is known to hold every string."""
        return self is StringSet.ANY

    def is_empty(self) -> bool:
        """Whether it holds no string."""
        return self is StringSet.EMPTY

    def is_listed(self) -> bool:
        """Whether it is known by its texts."""
        return isinstance(self, _Words) and not self.negated

    @abstractmethod
    def __contains__(self, text: str) -> bool: ...

    @abstractmethod
    def texts(self, limit: int) -> list[str] | None:
        """All members, sorted, if they are at most ``limit``."""

    def several(self, limit: int, meter: Meter) -> int:
        """How many members there are, or ``limit`` where there are more. Not for an empty set."""
        return limit if limit <= 1 or self.is_any() else count_of(self._plain(meter), limit, meter)

    def is_endless(self, meter: Meter) -> bool:
        """Whether it has more members than any number."""
        return self.is_any() or text_widths(self._plain(meter), meter)[1] is None

    def body(self, escapes: str, meter: Meter) -> Dfa:
        """The JSON texts of the members, without the quotes; ``escapes`` as in `TextOptions`, or ``"raw"`` for none.

        Counts may be among its transitions. Where it accepts, the closing quote may follow.
        """
        found = self._bodies.get(escapes)
        if found is None:
            inside = self._counted(meter)
            found = self._bodies[escapes] = inside if escapes == "raw" else json_text(inside, escapes, meter)
        return found

    @abstractmethod
    def most_states(self, escapes: str, meter: Meter) -> int:
        """What the states of `body` are fewer than; where that takes to make it, it is made."""

    @abstractmethod
    def _counted(self, meter: Meter) -> Dfa:
        """The minimal automaton of the decoded texts, perhaps with counters."""

    @abstractmethod
    def _plain(self, meter: Meter) -> Dfa:
        """The minimal automaton of the decoded texts, without counters."""

    # -- algebra --------------------------------------------------------------------------------------------

    def intersect(self, other: StringSet, meter: Meter) -> StringSet:
        """What both hold."""
        if other is StringSet.ANY or self is StringSet.EMPTY:
            return self
        if self is StringSet.ANY or other is StringSet.EMPTY or self == other:
            return other
        for a, b in ((self, other), (other, self)):
            if isinstance(a, _Words) and not isinstance(b, _Others if a.negated else ()):
                return a._meet(b, meter)
        if isinstance(self, _Others) or isinstance(other, _Others):
            return self.regular(meter).intersect(other.regular(meter), meter)
        assert isinstance(self, _Regular)
        assert isinstance(other, _Regular)
        return self._meet(other, meter)

    def union(self, other: StringSet, meter: Meter) -> StringSet:
        """What either holds."""
        if self is StringSet.EMPTY or other is StringSet.ANY or self == other:
            return other
        if other is StringSet.EMPTY or self is StringSet.ANY:
            return self
        if isinstance(self, _Others) or isinstance(other, _Others):
            return self.regular(meter).union(other.regular(meter), meter)
        for a, b in ((self, other), (other, self)):
            if isinstance(a, _Words) and (joined := a._join(b)) is not None:
                return joined
        runs = [each.run for each in (self, other) if isinstance(each, _Regular) and each.run]
        if len(runs) == 2 and (run := merged(sorted(runs, key=lambda run: run.min))):
            return _run(run)
        return _united(self, other, meter) or _of_dfa(union(self._plain(meter), other._plain(meter), meter), meter)

    @abstractmethod
    def complement(self, meter: Meter) -> StringSet:
        """What it does not hold."""

    def regular(self, meter: Meter) -> StringSet:
        """The set in one of the other forms, where it is what another one leaves out."""
        return self

    def without(self, texts: tuple[str, ...], meter: Meter) -> StringSet:
        """The members that hold none of some texts; the texts are not empty."""
        if sum(map(len, texts)) > _REMEMBERED:
            return self.intersect(_lacking.__wrapped__(texts, meter), meter)
        return self.intersect(_lacking(texts), meter) if texts else self

    def at_most(self, length: int, meter: Meter) -> StringSet:
        """Of an endless set the texts of so many characters, or as many as its shortest has; else the set itself."""
        if self.is_empty() or not self.is_endless(meter):
            return self
        return self.intersect(StringSet.length(0, max(length, self.shortest(meter))), meter)

    def shortest(self, meter: Meter) -> int:
        """The fewest characters of a text; the set is not empty."""
        return 0 if self.is_any() else text_widths(self._plain(meter), meter)[0]

    def followed_by(self, text: bytes, meter: Meter) -> Dfa:
        """The minimal automaton of the members with a text behind them, without counters."""
        builder = NfaBuilder()
        start, accepting = automata.add_to(builder, self._plain(meter))
        here = builder.state()
        for state in accepting:
            builder.epsilon(state, here)
        for byte in text:
            there = builder.state()
            builder.edge(here, byte, byte, there)
            here = there
        return automata.minimize(automata.determinize(builder.build(start, here), meter), meter)


class _Words(StringSet):
    """Finitely many texts, or all others."""

    def __init__(self, words: frozenset[str], negated: bool) -> None:
        super().__init__(("words", negated, words))
        self.words = words
        self.negated = negated

    def __repr__(self) -> str:
        some = sorted(self.words)[:5]
        return f"<{'all strings but' if self.negated else 'the strings'} {some}{'' if len(some) < 5 else '...'}>"

    def __contains__(self, text: str) -> bool:
        return (text in self.words) != self.negated and not _SURROGATE.search(text)

    def texts(self, limit: int) -> list[str] | None:
        return None if self.negated or len(self.words) > limit else sorted(self.words)

    def complement(self, meter: Meter) -> StringSet:
        return _words(self.words, not self.negated)

    def body(self, escapes: str, meter: Meter) -> Dfa:
        if self is StringSet.ANY:
            return any_body(escapes)
        if escapes == "minimal" and not self.negated and not needs_escape("".join(self.words)):
            return self._plain(meter)
        return super().body(escapes, meter)

    def most_states(self, escapes: str, meter: Meter) -> int:
        return _STATES_OF_CHARACTER.get(escapes, _MOST_OF_CHARACTER) * (8 + sum(map(len, self.words)))

    def _plain(self, meter: Meter) -> Dfa:
        return other_words_dfa(self.words, meter) if self.negated else words_dfa(self.words, meter)

    _counted = _plain

    def _meet(self, other: StringSet, meter: Meter) -> StringSet:
        if isinstance(other, _Words) and self.negated and other.negated:
            return _words(self.words | other.words, negated=True)
        if not self.negated:
            words = meter.each(self.words, "comparing strings")
            return _words(frozenset(text for text in words if text in other), negated=False)
        if isinstance(other, _Words):
            return other._meet(self, meter)
        taken = [text for text in meter.each(self.words, "comparing strings") if text in other]
        if not taken:
            return other
        rest = other_words_dfa(taken, meter)
        # Only the language loses the texts; its bounds may go on being counted.
        inner, low, high = _unbounded(other, meter)
        return _of_dfa(automata.intersect(inner, rest, meter, "excluding strings"), meter, low, high)

    def _join(self, other: StringSet) -> StringSet | None:
        """The union, if no automaton is needed for it."""
        if self.negated:
            return _words(frozenset(text for text in self.words if text not in other), negated=True)
        if isinstance(other, _Words) and not other.negated:
            return _words(self.words | other.words, negated=False)
        left = [text for text in self.words if text not in other]
        if left == [""] and isinstance(other, _Regular) and other.run and other.min == 1:
            return _run(other.run._replace(min=0))
        return None if left else other


class _Regular(StringSet):
    """The texts of a language that have so many characters."""

    def __init__(self, language: Language, low: int, high: int | None, meter: Meter | None) -> None:
        super().__init__(("regular", language.key, low, high))
        self.language = language
        self.min = low
        self.max = high
        self._meter = meter
        self._is_empty: bool | None = None
        self._texts: Dfa | None = None

    def __repr__(self) -> str:
        return f"<strings of {self.min} to {self.max} characters of {self.language.key!r}>"

    @property
    def lengths(self) -> tuple[int, int] | None:
        """The bounds on the number of characters that stand beside the language, if there is a largest one."""
        return None if self.max is None else (self.min, self.max)

    @property
    def run(self) -> Run | None:
        """The run that it is, if it is one."""
        ranges = self.language.ranges
        return None if ranges is None else Run(ranges, self.min, self.max)

    def is_endless(self, meter: Meter) -> bool:
        if self.max is not None or self.run is not None:
            return self.max is None
        return super().is_endless(meter)

    def shortest(self, meter: Meter) -> int:
        return self.min if self.run is not None else super().shortest(meter)

    def is_empty(self) -> bool:
        if self._is_empty is None:
            exact = self.language.is_clean or self.language.tree is None
            if self.run or (exact and (self._is_unbounded() or self._fits_shortest())):
                self._is_empty = False
            else:
                self._is_empty = not self._counted(self._own_meter()).states
        return self._is_empty

    def _is_unbounded(self) -> bool:
        return self.min == 0 and self.max is None

    def _fits_shortest(self) -> bool:
        """Whether the bounds on the length let the language's shortest text through."""
        shortest, _ = self.language.widths(self._own_meter())
        return self.min <= shortest and (self.max is None or shortest <= self.max)

    def __contains__(self, text: str) -> bool:
        if len(text) < self.min or (self.max is not None and len(text) > self.max) or _SURROGATE.search(text):
            return False
        return self.language.matches(text, self._own_meter())

    def texts(self, limit: int) -> list[str] | None:
        if self.run:
            texts = few_texts(self.run.tree, limit)
            return None if texts is None else sorted(texts)
        meter = self._own_meter()
        _, longest = self.language.widths(meter)
        if longest is None and self.max is None and (self.language.is_clean or self.language.tree is None):
            return None
        return texts_of(self._plain(meter), limit)

    def complement(self, meter: Meter) -> StringSet:
        if self.language.ranges == ANYTHING and self.max is None:
            return StringSet.length(0, self.min - 1)
        if self.language.ranges == ANYTHING and self.max is not None and self.min == 0:
            return StringSet.length(self.max + 1, None)
        return _of_dfa(complement(self._plain(meter), meter), meter) if self.max is None else _Others(self)

    def _meet(self, other: _Regular, meter: Meter) -> StringSet:
        low, high = max(self.min, other.min), _least(self.max, other.max)
        a, b = self.language, other.language
        if a.ranges is not None and b.ranges is not None:
            return _run(Run(charset.intersect(a.ranges, b.ranges), low, high))
        for one, another in ((a, b), (b, a)):
            if one.ranges == ANYTHING:
                return _regular(another, low, high, meter)
        common = automata.intersect(a.plain(meter), b.plain(meter), meter, "intersecting patterns")
        return _of_dfa(common, meter, low, high)

    def without(self, texts: tuple[str, ...], meter: Meter) -> StringSet:
        tree = self.language.tree
        if tree is not None:
            ranges = [chars for node in post_order(tree) if isinstance(node, Chars) for chars in node.ranges]
            first = set(map(ord, {text[0] for text in texts}))
            if not any(low <= code <= high for low, high in ranges for code in first):
                return self
        return super().without(texts, meter)

    def most_states(self, escapes: str, meter: Meter) -> int:
        if escapes == "any" or "U" in escapes:
            return self.body(escapes, meter).states
        ranges = self.language.ranges
        if ranges is None:
            return _STATES_OF_CHARACTER.get(escapes, _MOST_OF_CHARACTER) * self._counted(meter).states
        of_character = _STATES_OF_CHARACTER.get(escapes, _MOST_OF_CHARACTER)
        return of_character * (8 + len(ranges)) * (2 + min(self.min, 2) + min(self.max or 0, 2))

    def _counted(self, meter: Meter) -> Dfa:
        if self._texts is None:
            self._texts = self._bounded(meter, count=True)
        return self._texts

    def _plain(self, meter: Meter) -> Dfa:
        return self._bounded(meter, count=False)

    def _bounded(self, meter: Meter, *, count: bool) -> Dfa:
        if self._is_unbounded():
            return self.language.counted(meter) if count else self.language.plain(meter)
        if self.run is None:
            return bounded(self.language.plain(meter), self.min, self.max, meter, count=count)
        if self.min > _LONGEST:
            meter.check_states(self.min, "counting the characters of a string")
        return language(self.run.tree, meter, count=count)

    def _own_meter(self) -> Meter:
        """That of the compile that made the set; sets made for longer go by the default budget."""
        return self._meter or Meter(Budget())


class _Others(StringSet):
    """What a regular set with an upper bound on the length leaves out: no text is so long that none is longer."""

    def __init__(self, excluded: _Regular) -> None:
        super().__init__(("others", excluded.key))
        self._excluded = excluded
        self._regular: StringSet | None = None
        self._texts: Dfa | None = None

    def __repr__(self) -> str:
        return f"<all strings but {self._excluded}>"

    def __contains__(self, text: str) -> bool:
        return text not in self._excluded and not _SURROGATE.search(text)

    def texts(self, limit: int) -> list[str] | None:
        return None

    def is_endless(self, meter: Meter) -> bool:
        return True

    def complement(self, meter: Meter) -> StringSet:
        return self._excluded

    def most_states(self, escapes: str, meter: Meter) -> int:
        if escapes == "any" or "U" in escapes:
            return self.body(escapes, meter).states
        return _STATES_OF_CHARACTER.get(escapes, _MOST_OF_CHARACTER) * self._counted(meter).states

    def regular(self, meter: Meter) -> StringSet:
        if self._regular is None:
            self._regular = _of_dfa(complement(self._excluded._plain(meter), meter), meter)
        return self._regular

    def _counted(self, meter: Meter) -> Dfa:
        if self._texts is None:
            self._texts = others(self._excluded._counted(meter), meter)
        return self._texts

    def _plain(self, meter: Meter) -> Dfa:
        return self.regular(meter)._plain(meter)


@cache
def any_body(escapes: str) -> Dfa:
    """The JSON texts of all strings."""
    return everything() if escapes == "raw" else json_text(everything(), escapes, Meter(Budget()))


@lru_cache(maxsize=512)
def _parsed(pattern: str, depth: int) -> Node:
    return searched(ecma.parse(pattern, Meter(Budget(depth=depth))))


def _words(words: frozenset[str], negated: bool) -> StringSet:
    if not words:
        return StringSet.ANY if negated else StringSet.EMPTY
    return _Words(words, negated)


def _run(run: Run) -> StringSet:
    if run == (ANYTHING, 0, None):
        return StringSet.ANY
    if run.max is not None and run.max < run.min:
        return StringSet.EMPTY
    few = [""] if run.max == 0 else few_texts(run.tree, _FEW)
    if few is not None:
        return StringSet.literal(few)
    return _Regular(Language.of_characters(run.ranges), run.min, run.max, None)


def _regular(language: Language, low: int, high: int | None, meter: Meter | None) -> StringSet:
    if high is not None and high < low:
        return StringSet.EMPTY
    if low or high is not None:
        shortest, longest = language.widths(meter or Meter(Budget()))
        if high is not None and shortest > high:
            return StringSet.EMPTY
        if longest is not None and longest < low:
            return StringSet.EMPTY
        low = low if low > shortest else 0
        high = high if longest is None or high is None or longest > high else None
    return _Regular(language, low, high, meter)


def _of_tree(tree: Node, key: Hashable, meter: Meter | None, where: str = "") -> StringSet:
    few = few_texts(tree, _FEW)
    if few is not None:
        return StringSet.literal(few)
    run = run_of(tree)
    return _Regular(Language(key, tree, where=where), 0, None, meter) if run is None else _run(run)


def _of_dfa(dfa: Dfa, meter: Meter, low: int = 0, high: int | None = None) -> StringSet:
    """The set of a minimal automaton's texts that have so many characters."""
    if not dfa.states:
        return StringSet.EMPTY
    if dfa.states == everything().states and digest(dfa) == _digest_of_everything():
        return StringSet.length(low, high)
    return _regular(Language(None, dfa=dfa), low, high, meter)


@cache
def _of_format(name: str) -> StringSet:
    """One set for each format, so that its texts are written once."""
    from .formats import HOSTNAME_LENGTH, format_dfa

    language = Language(("format", name), dfa=format_dfa(name, Meter(Budget())))
    return _regular(language, 0, HOSTNAME_LENGTH if name == "hostname" else None, None)


@lru_cache(maxsize=64)
def _lacking(texts: tuple[str, ...], meter: Meter | None = None) -> StringSet:
    """All strings that hold none of some texts: the complement of an automaton that looks for them all at once."""
    meter = meter or Meter(Budget())
    meter.check_states(sum(map(len, texts)) // 4, "excluding texts")
    words = [Concat(tuple(Chars(((ord(character), ord(character)),)) for character in text)) for text in texts]
    holding = language(Concat((ANY_TEXT, Alternate(tuple(words)), ANY_TEXT)), meter, count=False)
    return _of_dfa(complement(holding, meter), meter)


@cache
def _digest_of_everything() -> bytes:
    return digest(everything())


def _unbounded(words: StringSet, meter: Meter) -> tuple[Dfa, int, int | None]:
    """A language and the bounds on the length that it takes to make the set of it."""
    if isinstance(words, _Regular):
        return words.language.plain(meter), words.min, words.max
    return words._plain(meter), 0, None


def _united(a: StringSet, b: StringSet, meter: Meter) -> StringSet | None:
    """The union, if its upper bound can stay outside of the automaton: where that holds for both."""
    inner_a, low_a, high_a = _unbounded(a, meter)
    inner_b, low_b, high_b = _unbounded(b, meter)
    if (low_a, high_a) == (low_b, high_b):
        return _of_dfa(union(inner_a, inner_b, meter), meter, low_a, high_a)
    if high_a is None or (high_b is not None and high_b > high_a):
        inner_a, low_a, high_a, b, inner_b, low_b, high_b = inner_b, low_b, high_b, a, inner_a, low_a, high_a
    if high_a is None:
        return None
    longest = high_b if high_b is not None else text_widths(inner_b, meter)[1]
    if longest is None or longest > high_a:
        return None
    lower = bounded(inner_a, low_a, None, meter)
    return _of_dfa(union(lower, b._plain(meter), meter), meter, 0, high_a)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


StringSet.ANY = _Words(frozenset(), negated=True)
StringSet.EMPTY = _Words(frozenset(), negated=False)
