"""What a tree says of the texts that it matches: how wide they are, how many states it takes, which are words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ...budget import Meter
from ..automata.dfa import Dfa
from ..automata.utf8 import utf8_edges
from ..automata.words import words_dfa
from .syntax import Alternate, Chars, Concat, Look, Node, Repeat

_LISTING = "listing its words"

#: So many words among alternatives are worth an automaton of their own.
_MANY_WORDS = 64


@dataclass(frozen=True)
class TreeFacts:
    """What the construction needs to know about a subtree."""

    min_width: int
    max_width: int | None
    size: int  # NFA states when spelled out, an upper bound
    has_looks: bool


@dataclass(frozen=True)
class WordList:
    """Alternatives that include many words: the automaton of these, their widths in characters, and the others.

    Or texts of which there is an automaton already; ``longest`` is None where they have no longest.
    """

    words: Dfa
    shortest: int
    longest: int | None
    others: tuple[Node, ...]


#: By ``id`` of the `Alternate`.
WordLists: TypeAlias = dict[int, WordList]


def measure(tree: Node, meter: Meter | None = None, words: WordLists | None = None) -> dict[int, TreeFacts]:
    """The `TreeFacts` of every node, by ``id``. Widths are in characters."""
    facts: dict[int, TreeFacts] = {}
    nodes = post_order(tree, words)
    for node in nodes if meter is None else meter.each(nodes, "measuring the pattern"):
        below = [facts[id(child)] for child in parts_below(node, words)]
        if words and id(node) in words:
            listed = words[id(node)]
            below.append(TreeFacts(listed.shortest, listed.longest, 2 * listed.words.states, False))
        looks = isinstance(node, Look) or any(f.has_looks for f in below)
        size = 2 + sum(f.size for f in below)
        if isinstance(node, Chars):
            fact = TreeFacts(1, 1, max(1, len(utf8_edges(node.ranges))), False)
        elif isinstance(node, Look):
            fact = TreeFacts(0, 0, 2, True)
        elif isinstance(node, Concat):
            fact = TreeFacts(sum(f.min_width for f in below), _sum([f.max_width for f in below]), size, looks)
        elif isinstance(node, Alternate):
            widest = [f.max_width for f in below]
            most = None if None in widest else max((w for w in widest if w is not None), default=0)
            fact = TreeFacts(min((f.min_width for f in below), default=0), most, size, looks)
        else:
            (item,) = below
            turns = node.max if node.max is not None else node.min + 1
            wide = 0 if item.max_width == 0 or node.max == 0 else None
            if node.max is not None and item.max_width is not None:
                wide = node.max * item.max_width
            fact = TreeFacts(node.min * item.min_width, wide, 2 + turns * (item.size + 1), looks)
        facts[id(node)] = fact
    return facts


def _sum(widths: list[int | None]) -> int | None:
    return None if None in widths else sum(w for w in widths if w is not None)


def word_lists(tree: Node, meter: Meter) -> WordLists:
    """The alternatives of a tree that include many words. Raises `BudgetExceededError`."""
    found: WordLists = {}
    for node in meter.each(post_order(tree), _LISTING):
        if isinstance(node, Alternate) and len(node.options) >= _MANY_WORDS:
            words = [(option, _word(option)) for option in meter.each(node.options, _LISTING)]
            texts = {text for _, text in words if text is not None}
            if len(texts) >= _MANY_WORDS:
                widths = sorted(map(len, texts))
                others = tuple(option for option, text in words if text is None)
                found[id(node)] = WordList(words_dfa(texts, meter), widths[0], widths[-1], others)
    return found


def _word(node: Node) -> str | None:
    """The only text of a character or a sequence of characters; None for other nodes and texts."""
    codes = []
    for part in node.parts if isinstance(node, Concat) else (node,):
        if not isinstance(part, Chars) or len(part.ranges) != 1 or part.ranges[0][0] != part.ranges[0][1]:
            return None
        codes.append(part.ranges[0][0])
    return "".join(map(chr, codes))


def post_order(tree: Node, words: WordLists | None = None) -> Iterator[Node]:
    """Every distinct node once, children before parents; but for words in lists."""
    seen: set[int] = set()
    todo: list[tuple[Node, bool]] = [(tree, False)]
    while todo:
        node, ready = todo.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.extend((child, False) for child in parts_below(node, words))


def parts_below(node: Node, words: WordLists | None) -> tuple[Node, ...]:
    """The nodes directly below that are no words in a list."""
    return words[id(node)].others if words and id(node) in words else children(node)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    if isinstance(node, Concat):
        return node.parts
    if isinstance(node, Alternate):
        return node.options
    return (node.item,) if isinstance(node, Repeat | Look) else ()
