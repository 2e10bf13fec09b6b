r"""The format ``regex``: patterns that ECMA-262 and Python's `re` both read.

Neither language is regular, for groups nest. Accepted is a subset, chosen to be what people write:

- characters, escapes, classes, ``.``, ``|``, anchors, ``\b`` and ``\B``, all repeats, lazy ones too;
- groups, capturing or not, at most `GROUP_DEPTH` deep; look-ahead at the outermost level, with groups one deep in it.

ECMA-262 is taken with Annex B and without the flag ``u``, so that ``\-`` is a hyphen. Left out, besides deeper
nesting: back-references, named groups, look-behind, ``\p``, ``\c``, ``\0``; ``[]`` and ``[^]``, which `re` reads
otherwise; and a brace ``{`` that stands for itself, unless before a letter. So that the automaton stays small, ranges
of a class are of digits, or of letters of one case that begin with the first or end with the last of them; counts
have at most four digits; and the order of ``{m,n}`` shows in the number of digits, or in the first of one or two
(not ``{12,17}``).
"""

from __future__ import annotations

from ....budget import Meter
from ...automata.dfa import Dfa, add_to, determinize, minimize
from ...automata.nfa import NfaBuilder
from ...patterns.lower import language
from ...patterns.parser import parse

#: Groups in groups, at most.
GROUP_DEPTH = 3

_ESCAPE = r"\\(?:[ -/:-@\[-`{-~dDsSwWfnrtv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
_ITEM = r"[^\\()\[{*+?|^$]|\{[A-Za-z_]"  # the dot is one; no count begins with a letter
_ANCHOR = r"[\^$|]|\\[bB]"  # or the next alternative: neither can be repeated


def regex_format(meter: Meter) -> Dfa:
    """The automaton of the patterns: a copy of that of the patterns without groups for every place in the nesting.

    ::

        level 0 --(--> level 1 --(--> level 2 --(--> level 3      after ")": as after any item of the level above
           |
           +--(?= or (?!--> look-ahead --(--> group in it         after its ")": as at the start, nothing to repeat
    """
    flat = language(parse(f"(?:(?:{_ITEM}|{_ESCAPE}|{_class()})(?:{_repeat()})?|{_ANCHOR})*"), meter)
    builder = NfaBuilder()
    # The states of a level: at its start, after an item, and where a term may begin.
    after_item = int(flat.table[flat.start, flat.classes[ord("a")]])
    levels = []
    for _ in range(GROUP_DEPTH + 3):
        start, boundaries = add_to(builder, flat)
        levels.append((start, start - flat.start + after_item, boundaries))
    for outer in range(GROUP_DEPTH):
        _nest(builder, levels[outer], levels[outer + 1])
    ahead, in_ahead = levels[-2:]
    _nest(builder, ahead, in_ahead)
    _look_ahead(builder, levels[0], ahead)
    accept = builder.state()
    for boundary in levels[0][2]:
        builder.epsilon(boundary, accept)
    return minimize(determinize(builder.build(levels[0][0], accept), meter), meter)


_Level = tuple[int, int, list[int]]


def _nest(builder: NfaBuilder, outer: _Level, inner: _Level) -> None:
    """``(...)`` and ``(?:...)``: an item of the outer level."""
    opened, marked = builder.state(), builder.state()
    builder.epsilon(opened, inner[0])
    _edge(builder, opened, "?", marked)
    _edge(builder, marked, ":", inner[0])
    for boundary in outer[2]:
        _edge(builder, boundary, "(", opened)
    for boundary in inner[2]:
        _edge(builder, boundary, ")", outer[1])


def _look_ahead(builder: NfaBuilder, outer: _Level, inner: _Level) -> None:
    """``(?=...)`` and ``(?!...)``: as an anchor of the outer level."""
    opened, marked = builder.state(), builder.state()
    _edge(builder, opened, "?", marked)
    _edge(builder, marked, "=", inner[0])
    _edge(builder, marked, "!", inner[0])
    for boundary in outer[2]:
        _edge(builder, boundary, "(", opened)
    for boundary in inner[2]:
        _edge(builder, boundary, ")", outer[0])


def _edge(builder: NfaBuilder, source: int, char: str, target: int) -> None:
    builder.edge(source, ord(char), ord(char), target)


def _class() -> str:
    """``[...]`` of characters, escapes and ranges; a hyphen stands for itself first, last and behind a range."""
    digits = "|".join(f"{low}-[{low}-9]" for low in range(10))
    ranges = f"{digits}|a-[a-z]|[b-y]-z|A-[A-Z]|[B-Y]-Z"
    char = rf"[^\\\]\-^]|{_ESCAPE}|\\b"
    return rf"\[\^?(?:-?(?:(?:{ranges})-?|{char})(?:(?:{ranges})-?|{char}|\^)*-?|-)\]"


def _repeat() -> str:
    """``*``, ``+``, ``?`` and counts, lazy or not."""
    longer = r"[0-9],[1-9][0-9]{1,3}|[1-9][0-9],[1-9][0-9]{2,3}|[1-9][0-9]{2},[1-9][0-9]{3}"
    one_digit = "|".join(f"{low},[{low}-9]" for low in range(10))
    two_digits = "|".join(f"{ten}(?:0,[{ten}-9]|[0-9],[{ten + 1}-9])[0-9]" for ten in range(1, 9))
    return rf"(?:[*+?]|\{{(?:[0-9]{{1,4}},?|{longer}|{one_digit}|{two_digits}|90,9[0-9])\}})\??"
