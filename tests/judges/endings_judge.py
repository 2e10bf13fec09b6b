"""Judges of what can be completed: Lark on all short texts, and a search through all that the threads can do.

Random grammars whose terminals take from each other: a text may run into a place from which no text
leads to the end, any number of lexemes later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product
from random import Random

from lark import Lark
from lark.exceptions import LarkError

import structgen as sg
from judges.guides import BYTES
from judges.lark_judge import parses
from structgen.runtime.grammar.lexer_threads import Thread
from structgen.runtime.grammar.machine import GrammarMachine

TERMINALS = (
    (
        "/a+/ /b+/ /ab?/ /ba?/ /a(ba)*/ 'a' 'b' 'ab' 'ba' 'aa' 'bb' 'aba' 'c' /c+/ /ca?/ /[ab]c/ /a(?=b)/ /b(?!a)/"
        " /a(bbc)?/ /b(aac)?/ 'bbc' /cb*a/ /ab*c?/"
    )
    .replace("'", '"')
    .split()
)

#: Configurations that the search looks at; past that it does not know.
_MOST = 2000


def random_grammar(random: Random) -> str:
    """A grammar of a few rules over a few terminals, mostly without anything that is ignored."""
    terminals = random.sample([*TERMINALS, "/a( *b)?/"], random.randint(2, 5))
    names = "ABCDE"[: len(terminals)]
    rules = [f"r{i}" for i in range(random.randint(0, 2))]

    def expansion(symbols: list[str]) -> str:
        return " ".join(random.choice([*names, *names, *symbols]) for _ in range(random.randint(1, 4)))

    lines = ["start: " + " | ".join(expansion(rules) for _ in range(random.randint(1, 3)))]
    for rule in rules:
        alternatives = [expansion(random.choice([rules, []])) for _ in range(random.randint(1, 3))]
        lines.append(f"{rule}: {' | '.join(alternatives)} {random.choice(['', '', '', '|'])}")
    lines += (f"{name}{random.choice(['', '', '.2'])}: {t}" for name, t in zip(names, terminals, strict=True))
    ignored = random.choice(["", "", '" "', "/ +/"])
    return "\n".join([*lines, f"%ignore {ignored}"] if ignored else lines)


def can_complete(machine: GrammarMachine, text: bytes, letters: str, most: int = _MOST) -> bool | None:
    """Whether some letters complete a text, found by trying all of them; None where that takes too long."""
    reader = machine._reader
    threads: tuple[Thread, ...] = (reader.start,)
    for byte in text:
        threads = reader.step(threads, byte)
    seen = {frozenset(threads)}
    todo = deque([threads])
    while todo:
        threads = todo.popleft()
        if reader.may_end(threads):
            return True
        for byte in letters.encode():
            after = reader.step(threads, byte)
            if after and frozenset(after) not in seen:
                if len(seen) > most:
                    return None
                seen.add(frozenset(after))
                todo.append(after)
    return False


def agrees(text: str, *, lexer: str, ambiguity: str = "resolve", letters: str = "abc", longest: int = 6) -> int:
    """Compare all short texts; returns how many of their beginnings no text completes. -1 for what is refused.

    Lark says which texts are complete, and so which beginnings must be let through; the search which must not.
    """
    letters += " " if "%ignore" in text else ""
    try:
        parser = Lark(text, parser="lalr", lexer=lexer) if ambiguity == "resolve" else None
        index = sg.compile(sg.Grammar(text, lexer=lexer, ambiguity=ambiguity), BYTES, eager=False)
    except (LarkError, sg.errors.DefinitionError):
        return -1
    machine = index.machine
    assert isinstance(machine, GrammarMachine)
    beginnings = set()
    for word in _words(letters, longest if parser else 0):
        if parser and parses(parser, word):
            beginnings |= {word[:i] for i in range(len(word) + 1)}
    refused = 0
    for word in _words(letters, 4):
        found = machine.match(word.encode())
        if parser:
            assert found.accepted == parses(parser, word), (text, word)
        is_open = found.consumed == len(word)
        expected = True if word in beginnings else can_complete(machine, word.encode(), letters)
        assert expected in (is_open, None), (text, word)
        refused += not is_open
    return refused


def _words(letters: str, longest: int) -> Iterator[str]:
    return ("".join(word) for length in range(longest + 1) for word in product(letters, repeat=length))
