"""Judges of what can be completed where indentation matters: see `endings_judge`.

Random grammars of lines, blocks and brackets over a few letters, with and without anything that is ignored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from random import Random

from lark import Lark
from lark.exceptions import LarkError
from lark.indenter import PythonIndenter

import structgen as sg
from judges.endings_judge import can_complete
from judges.guides import BYTES
from structgen.runtime.grammar.machine import GrammarMachine

#: What names and other words are, and how lines may end.
WORDS = ("a+", "b+", "a", "b", "ab", "ba?", "a(?=b)", "b(?!a)", "a(?= )", "ab?", "a+(?=\\n)", "a( +b)?", "a(?=\\))")
LINES = (
    r"/\n */", r"/(\n *)+/", r"/(\n *(#[^\n]*)?)*\n */", r"/\n/", r"(/\n */ | COMMENT)+", r"/\n *(?! )/",
    r"/\n(  )*/", r"/(\n *)+(?=a)/",
)  # fmt: skip
IGNORED = ("/ +/", '" "', "COMMENT", '" "\n%ignore COMMENT', "/ +/\n%ignore COMMENT", r"/\\\n */", "")

#: How wide lines are; configurations that the search looks at, past which it does not know.
COLUMNS = 8


def random_grammar(random: Random, *, nested: bool = True) -> str:
    """A grammar of lines; where not ``nested``, blocks and brackets may cross."""
    names = "ABCD"[: random.randint(2, 4)]
    terminals = [f"{name}{random.choice(['', '', '.2'])}: /{random.choice(WORDS)}/" for name in names]
    block = [f"_NEWLINE _INDENT {lines} _DEDENT" for lines in ("line+", "line", "line block?")]
    block.append("begin line+ end")

    def one(depth: int) -> str:
        kind = random.random()
        if kind < 0.13:
            return f"LPAR {many(depth + 1)} RPAR"
        if kind < 0.16:
            return f"open {many(depth + 1)} close"
        if kind < 0.25 and depth < 2:
            return f"({many(depth + 1)})?"
        if kind < 0.35:
            return "value"
        if kind < 0.43:
            return "_NEWLINE"
        if kind < 0.47 and not nested:
            return random.choice(["LPAR", "RPAR", "_INDENT", "_DEDENT", "line", "block"])
        return random.choice(names)

    def many(depth: int = 0) -> str:
        return " ".join(one(depth) for _ in range(random.randint(1, 3)))

    nesting = random.choice(["", "| LPAR value RPAR", "" if nested else "| LPAR block RPAR"])
    more = random.choice(["", "| block", "| LPAR RPAR _NEWLINE", "| value"])
    lines = [
        f"start: {random.choice(['line+', 'line*', 'block', 'line', 'line+ value', '_NEWLINE? line+'])}",
        f"line: {many()} _NEWLINE | {many()} block {more}",
        f"block: {random.choice(block)} {random.choice(['', '', '| value _NEWLINE', '| _NEWLINE'])}",
        f"value: {many(1).replace('value', 'A')} {nesting}",
        "open: LPAR A LPAR | LPAR LPAR", "close: RPAR RPAR", "begin: _NEWLINE _INDENT", "end: _DEDENT",
        'LPAR: "("', 'RPAR: ")"', r"COMMENT: /#[^\n]*/", f"_NEWLINE: {random.choice(LINES)}",
        "%declare _INDENT _DEDENT", *terminals,
    ]  # fmt: skip
    ignored = random.choice(IGNORED)
    return "\n".join([*lines, f"%ignore {ignored}"] if ignored else lines)


def agrees(text: str, *, lexer: str, ambiguity: str = "resolve", longest: int = 3) -> list[int]:
    """Compare all short texts: masks against the search, complete ones against Lark.

    Returns how many texts were refused, and for how many the search does not know; nothing for what is refused.
    """
    letters = "ab() \n" + "#" * (text.count("#") + text.count("COMMENT") > 2) + "\\" * (r"\\" in text)
    indentation = sg.Indentation(columns=COLUMNS)
    try:
        parser = Lark(text, parser="lalr", lexer=lexer, postlex=PythonIndenter()) if ambiguity == "resolve" else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            definition = sg.Grammar(text, lexer=lexer, ambiguity=ambiguity, postlex=indentation)
            index = sg.compile(definition, BYTES, eager=False)
    except (LarkError, sg.errors.DefinitionError):
        return []
    machine = index.machine
    assert isinstance(machine, GrammarMachine)
    refused = unknown = 0
    for word in _words(letters, longest):
        found = machine.match(word.encode())
        is_narrow = all(len(line) - len(line.lstrip(" ")) <= COLUMNS for line in word.split("\n"))
        if parser and is_narrow:
            assert found.accepted == parses(parser, word), (text, lexer, word)
        is_open = found.consumed == len(word)
        expected = can_complete(machine, word.encode(), letters, 1500)
        unknown += expected is None
        assert expected in (is_open, None), (text, lexer, word, "over" if is_open else "under")
        refused += not is_open
    return [refused, unknown]


def parses(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except (LarkError, AssertionError, IndexError):  # a bracket too many; a line end that has no line end in it
        return False
    return True


def _words(letters: str, longest: int) -> Iterator[str]:
    return ("".join(word) for length in range(longest + 1) for word in product(letters, repeat=length))
