"""What `strict=True` refuses, judged by Lark's own strict mode, which asks interegular."""

from __future__ import annotations

import ast
import random
import re

import pytest
from lark import Lark
from lark.exceptions import GrammarError, LexError

import structgen as sg
from structgen.errors import DefinitionError

BYTES = sg.Vocabulary.bytewise()
PARTS = ["a", "b", "ab", "[ab]", "[b-d]", "a*", "b+", "(?:ab|c)", "c?", "[^a]", "d{1,2}"]


def refused(text: str, **options: object) -> str:
    """What structgen says, nothing where it compiles."""
    try:
        sg.compile(sg.Grammar(text, strict=True, **options), BYTES, eager=False)  # type: ignore[arg-type]
    except DefinitionError as error:
        return str(error)
    return ""


def judged(text: str, **options: object) -> bool:
    """Whether Lark's strict mode refuses."""
    try:
        Lark(text, parser="lalr", strict=True, **options)  # type: ignore[arg-type]
    except (LexError, GrammarError):
        return True
    return False


def test_random_terminals_that_collide() -> None:
    draw = random.Random(8)
    told = 0
    for _ in range(120):
        names = ["A", "B", "C"]
        patterns = {name: "".join(draw.choices(PARTS, k=draw.randint(1, 3))) for name in names}
        if any(re.match(pattern, "") for pattern in patterns.values()):
            continue  # which Lark refuses for another reason
        rules = draw.choice(["start: A | B C", "start: A B | C", "start: A | B | C", "start: x x\nx: A | B\ny: C"])
        terminals = [f"{name}{draw.choice(['', '', '.2'])}: /{pattern}/" for name, pattern in patterns.items()]
        text = "\n".join([rules, *terminals])
        lexer = draw.choice(["contextual", "basic"])
        found = refused(text, lexer=lexer)
        told += bool(found)
        assert bool(found) == judged(text, lexer=lexer), (text, found)
        if found:
            named = re.match(r"the terminals (\w) and (\w) both match ('[^']+') ", found)
            assert named is not None, found
            assert all(re.fullmatch(patterns[name], ast.literal_eval(named[3])) for name in named.groups()[:2])
    assert 20 < told < 100


@pytest.mark.parametrize(
    "text",
    [
        'start: "if" | NAME\nNAME: /[a-z]+/',
        "start: A B\nA: /a/\nB: /a/",
        'start: A | B\nA: "a"i\nB: "A"',
        "start: A | B\nA: /a+/\nB.2: /a/",
        "start: A | B\nA: /[a-c]+/\nB: /[c-d]+/",
        'start: A | B\nA: "x" /[a-c]+/\nB: "x" /c/',
        "start: A+\nA: /a/\nWS: /[a ]/\n%ignore WS",
        'start: x | y\nx: "a"\ny: "a"',
        'start: "a" start | "a" start "b" | "c"',
        'start: start "+" start | "a"',
    ],
)
def test_strict_as_lark(text: str) -> None:
    assert bool(refused(text)) == judged(text)


def test_as_part_of_another_definition() -> None:
    text = "start: A | B\nA: /[a-c]+/\nB: /[c-d]+/"
    with pytest.raises(DefinitionError, match="the terminals A and B both match 'c'"):
        sg.compile(sg.sequence("x", sg.Grammar(text, strict=True)), BYTES, eager=False)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ('start: A | B\nA: /[a-z]+/ & ~"x"\nB: /[a-m]+/', "'a'"),
        ("start: A | B\nA: /[a-z]+/ & /[0-9a]+/\nB: /[b-m]+/", None),
        ("start: a | B\na[lazy]: /[a-z]+/\nB: /[a-z][a-z]/", None),
        ("start: a | B\na[lazy]: /[a-z]+/\nB: /[a-z][a-z]?/", "'a'"),
        ("start: a | B\na[max_chars=2]: /[a-z]+/\nB: /[a-z]{3}/", None),
        ("start: a | B\na[max_chars=3]: /[a-z]+/\nB: /[a-z]{3}/", "'aaa'"),
    ],
)
def test_terminals_with_operators_and_bounds_collide_by_their_own_texts(text: str, shared: str | None) -> None:
    found = refused(text)
    assert (f"both match {shared} " in found) if shared else not found
