"""`ContextFreeGrammar`: what a grammar's text says, once loaded and expanded.

That is rules over symbols, and the patterns of terminals. It is the readable form:
`structgen.compiler.grammar.load.loading` makes it with Lark, `structgen.compiler.grammar.parser.lalr` and
`structgen.compiler.grammar.lexer.scanner` work from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ....system.properties import cached_property
from ...automata.dfa import Dfa


@dataclass(frozen=True)
class Terminal:
    """A terminal and what it matches.

    Parameters
    ----------
    name:
        Its name in the grammar.
    pattern:
        A Python regex with its flags inline; None for one that was only declared.
    text:
        The text itself where the grammar gives a string and not a regex.
    flags:
        The letters of its flags, such as ``i``.
    priority:
        As the grammar states it, 0 where it doesn't.
    has_no_width:
        Whether the widths of what the pattern is made of say that it may match nothing at all.
    is_optional:
        Whether rules say where the terminal may be left out, and only its other matches are the lexer's.
    automaton:
        Of what it matches, where that takes more than a regex; then the pattern is none that `re` could read.
    is_shortest:
        Whether it ends as soon as it may.
    max_chars:
        How many characters it has at most.
    max_tokens:
        How many tokens have a byte of it at most. Such a terminal is not lexed.
    temperature:
        At which it is sampled, if the grammar says so.
    takes_longest:
        Whether its match is the longest one, and not the one that `re` prefers.
    substring:
        A structured regex in JSON whose text is too long for an automaton. Such a terminal is not lexed.
    """

    name: str
    pattern: str | None
    text: str | None = None
    flags: frozenset[str] = frozenset()
    priority: int = 0
    has_no_width: bool = False
    is_optional: bool = False
    automaton: Dfa | None = None
    is_shortest: bool = False
    max_chars: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    takes_longest: bool = False
    substring: str | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether it may end before its pattern's longest match does."""
        return self.is_shortest or self.max_chars is not None or self.max_tokens is not None


class CapturedRule(NamedTuple):
    """A nonterminal whose text is given back.

    Parameters
    ----------
    rule, name:
        The nonterminal, and under which name.
    before:
        How many bytes before it belong to what is given back.
    hidden:
        How many bytes at its end do not.
    is_hidden:
        Whether these are what is given back.
    shown:
        How many bytes at its beginning are not hidden, where that is known in place of ``hidden``.
    """

    rule: str
    name: str
    before: int = 0
    hidden: int = 0
    is_hidden: bool = False
    shown: int | None = None


@dataclass(frozen=True)
class Production:
    """One expansion of a nonterminal.

    Parameters
    ----------
    origin:
        The nonterminal.
    expansion:
        Names of terminals and nonterminals.
    priority:
        Decides between two rules that could both be reduced.
    """

    origin: str
    expansion: tuple[str, ...]
    priority: int = 0

    def __str__(self) -> str:
        return f"{self.origin}: {' '.join(self.expansion) or '(empty)'}"


@dataclass(frozen=True)
class ContextFreeGrammar:
    """Rules and terminals.

    Parameters
    ----------
    start:
        The nonterminal that a whole text is.
    rules:
        All rules that the start can come to, in the order of the text.
    terminals:
        All terminals that rules name, and those that are ignored, in the order in which Lark's scanner tries them.
    ignored:
        Names of terminals that may stand between any two others.
    captures:
        What is given back of a text.
    """

    start: str
    rules: tuple[Production, ...]
    terminals: tuple[Terminal, ...]
    ignored: tuple[str, ...] = ()
    captures: tuple[CapturedRule, ...] = ()

    @cached_property
    def nonterminals(self) -> tuple[str, ...]:
        """Names of nonterminals, in the order in which rules define them."""
        return tuple(dict.fromkeys(rule.origin for rule in self.rules))
