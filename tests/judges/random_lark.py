"""Random grammars in Lark's syntax whose terminals get in each other's way."""

from __future__ import annotations

from random import Random

#: Keywords in names, operators that begin others, numbers, comments, matches that depend on what follows them.
TERMINALS = (
    '"a"', '"ab"', '"if"', '"<"', '"<="', '"<<="', '"1"', '"."', '"b1"',
    "NAME", "NAME", "INT", "FLOAT", "LONG", "TEXT", "SHORT", "AHEAD",
)  # fmt: skip

DEFINITIONS = r"""
NAME{}: /[abif]+/
INT: /[0-9]+/
FLOAT: /[0-9]+\.[0-9]*(e[0-9]+)?/
LONG: /[ab]{{3}}1/
TEXT: /'[^']*'('[^']*')*/
SHORT{}: /a+?b?/
AHEAD: /i(?=f|<)/
"""

IGNORED = ('" "', r"/\/\*.*?\*\//", "/[ \\n]+/")

#: Letters that their texts are made of.
LETTERS = "abif<=1.0e' /*\n"


def random_grammar(random: Random) -> str:
    """A few rules, left and right recursive, empty ones among them; mostly something is ignored."""
    names = ["start", "p", "q", "r"][: random.randint(1, 4)]
    rules = []
    for name in names:
        options = []
        for number in range(random.randint(1, 3)):
            symbols = [*TERMINALS, *names, *names] if number else TERMINALS  # so that each rule has a text
            row = random.choices(symbols, k=random.choice([0, 1, 1, 2, 2, 3]))
            options.append(" ".join(symbol + random.choice(["", "", "", "", "*", "+", "?"]) for symbol in row))
        rules.append(f"{name}: {' | '.join(options)}")
    text = "\n".join(rules) + DEFINITIONS.format(random.choice(["", "", ".2"]), random.choice(["", ".-1", ".1"]))
    return text + "".join(f"%ignore {each}\n" for each in random.sample(IGNORED, random.choice([0, 1, 1, 2])))
