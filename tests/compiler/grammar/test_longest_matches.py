"""``matches="longest"``: among terminals of one priority, too; judged by brute force, and by llguidance."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest
from judges.guides import BYTES
from judges.lexemes import Peer, random_regex
from lark.utils import get_regexp_width

import structgen as sg

#: Rules of terminals that are named by a letter.
FORMS = ["(A|B)+", "A B", "A (B|C)", "(A B)+", "A+ B", "(A|B) C?", "A C | B", "(A|B|C)+", "A (B A)*", "B? A C"]


LETTERS = ("1", "-", "2", "[12]", "(?:1|-)")


def texts(letters: str, most: int) -> list[str]:
    return ["".join(each) for length in range(most + 1) for each in product(letters, repeat=length)]


def accepted(grammar: str, letters: str, most: int) -> set[str]:
    index = sg.compile(sg.Grammar(grammar, matches="longest"), BYTES, eager=False)
    return {text for text in texts(letters, most) if index.match(text.encode()).accepted}


def is_right(text: str, regexes: dict[str, str], rows: set[tuple[str, ...]]) -> bool:
    names = sorted(regexes, key=lambda name: (-get_regexp_width(regexes[name])[1], -len(regexes[name]), name))
    begun = {row[:length] for row in rows for length in range(len(row) + 1)}
    row: tuple[str, ...] = ()
    while text:
        length, found = 0, ""
        for name in names:
            ends = [n for n in range(length + 1, len(text) + 1) if re.fullmatch(regexes[name], text[:n])]
            if ends and (*row, name) in begun:
                length, found = ends[-1], name
        if not length:
            return False
        row, text = (*row, found), text[length:]
    return row in rows


@pytest.mark.parametrize("seed", range(4))
def test_the_longest_match_of_any_terminal(seed: int) -> None:
    """The longest match of what may come next, of equally long ones Lark's first."""
    random, judged = Random(seed), 0
    for _ in range(30):
        form = random.choice(FORMS)
        names = sorted({*form} & {*"ABC"})
        regexes = {name: random_regex(random, 2, LETTERS, ("+", "?", "{1,2}")) for name in names}
        if any(re.fullmatch(regex, "") for regex in regexes.values()):
            continue
        rows = {tuple(row) for row in texts("".join(names), 6) if re.fullmatch(form.replace(" ", ""), row)}
        grammar = f"start: {form}\n" + "".join(f"{name}: /{regex}/\n" for name, regex in regexes.items())
        right = {text for text in texts("12-", 4) if is_right(text, regexes, rows)}
        try:
            assert accepted(grammar, "12-", 4) == right, grammar
        except (sg.errors.DefinitionError, sg.errors.EmptyLanguageError):
            continue
        judged += 1
    assert judged > 8


@pytest.mark.parametrize(
    ("grammar", "more", "fewer"),
    [
        ("start: (NUM|DATE)+\nNUM: /[1]+/\nDATE: /1-1/", set(), set()),
        # A date has begun, and is not taken back there.
        ('start: NUM ("-" NUM)? | DATE\nNUM: /1+/\nDATE: /11-11/', {"11-1"}, set()),
        # Terminals that match the same text: there whichever of them goes on.
        ("start: A C | B\nA: /1/\nB: /[1-]/\nC: /-/", set(), {"1-"}),
    ],
)
def test_beside_llguidance(grammar: str, more: set[str], fewer: set[str]) -> None:
    ours = accepted(grammar, "1-", 6)
    theirs = set()
    for text in texts("1-", 6):
        peer = Peer(grammar)
        if all(byte in peer.allowed() and peer.advance(byte) for byte in text.encode()) and 256 in peer.allowed():
            theirs.add(text)
    assert (ours - theirs, theirs - ours) == (more, fewer)
