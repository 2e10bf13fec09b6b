"""What can be read off a pattern's tree, so that no automaton has to be built for it.

Most patterns of real schemas are one of a few shapes: a run of characters of one class, a handful of texts,
something with anchors at both ends. Here is what recognises them. Nothing recurses: trees are as deep as a
stranger's pattern nests.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ...automata import charset
from ...automata.charset import Ranges
from ...patterns.measures import children, post_order
from ...patterns.syntax import EMPTY, Alternate, Chars, Concat, Look, Node, Repeat

#: The set of all characters, and every text.
ANYTHING: Ranges = charset.complement(())
ANY_TEXT = Repeat(Chars(ANYTHING), 0, None, column=0)

_MAX_TOTAL = 10_000


class Run(NamedTuple):
    """The texts of ``min`` to ``max`` characters (None: no bound), all of them in ``ranges``."""

    ranges: Ranges
    min: int
    max: int | None

    @property
    def tree(self) -> Node:
        """The run as a pattern's tree."""
        return Repeat(Chars(self.ranges), self.min, self.max, column=0)


def searched(tree: Node) -> Node:
    """The texts in which the pattern is found, as a tree for the whole text.

    ``Σ*PΣ*``, but anchors at the edges of ``P`` are taken at their word instead of becoming look-around, and what may
    be left out next to a ``Σ*`` is left out: ``[a-z]+`` is found where ``[a-z]`` is.
    """
    options: list[Node] = []
    for at_start, part in enumerate(_split(tree, behind=True)):
        if part is None:
            continue
        for at_end, core in enumerate(_split(part, behind=False)):
            if core is None:
                continue
            if (at_start == 0 or at_end == 0) and core is EMPTY:
                return ANY_TEXT
            before = () if at_start else (ANY_TEXT,)
            after = () if at_end else (ANY_TEXT,)
            options.append(Concat((*before, core, *after)) if before or after else core)
    return options[0] if len(options) == 1 else Alternate(tuple(options))


#: ``tree`` where anything may come before (after) it, as (open, anchored): ``Σ*open | anchored``. None is no text.
_Split: TypeAlias = tuple[Node | None, Node | None]

#: Of what may be empty wherever it stands, and of nothing else.
_NULLABLE: _Split = (EMPTY, None)


def _split(tree: Node, behind: bool) -> _Split:
    found: dict[int, _Split] = {}
    for node in post_order(tree):
        found[id(node)] = _split_node(node, [found[id(child)] for child in children(node)], behind)
    return found[id(tree)]


def _split_node(node: Node, below: list[_Split], behind: bool) -> _Split:
    """The split of a node, given those of the nodes below."""
    if isinstance(node, Look):
        is_anchor = node.item is EMPTY and node.whole and not node.negate and node.behind == behind
        return (None, EMPTY) if is_anchor else (node, None)
    if isinstance(node, Alternate):
        if any(split is _NULLABLE for split in below):
            return _NULLABLE
        return _either([open_ for open_, _ in below]), _either([anchored for _, anchored in below])
    if isinstance(node, Repeat):
        if node.min == 0 or below[0] is _NULLABLE:
            return _NULLABLE
        return below[0] if node.min == 1 else (Repeat(node.item, node.min, node.min, node.column), None)
    if isinstance(node, Concat):
        order = range(len(below)) if behind else range(len(below) - 1, -1, -1)
        edge = next((i for i in order if below[i] is not _NULLABLE), None)
        if edge is None:
            return _NULLABLE
        rest = node.parts[edge + 1 :] if behind else node.parts[:edge]
        open_, anchored = below[edge]
        return _joined(open_, rest, behind), _joined(anchored, rest, behind)
    return node, None


def _joined(edge: Node | None, rest: tuple[Node, ...], behind: bool) -> Node | None:
    if edge is None or not rest:
        return edge
    own = () if edge is EMPTY else edge.parts if isinstance(edge, Concat) else (edge,)
    parts = (*own, *rest) if behind else (*rest, *own)
    return parts[0] if len(parts) == 1 else Concat(parts)


def _either(options: list[Node | None]) -> Node | None:
    left = [option for option in options if option is not None]
    if len(left) < 2:
        return left[0] if left else None
    ranges = [option.ranges for option in left if isinstance(option, Chars)]
    return Chars(charset.union(*ranges)) if len(ranges) == len(left) else Alternate(tuple(left))


def run_of(tree: Node) -> Run | None:
    """The run that the tree is, if it is one: ``[a-z]{2,5}``, ``....``, ``(x+)?``."""
    runs: dict[int, Run] = {}
    for node in post_order(tree):
        run = None
        if isinstance(node, Chars):
            run = Run(node.ranges, 1, 1)
        elif isinstance(node, Repeat):
            run = _repeated(runs[id(node.item)], node)
        elif not isinstance(node, Look):
            parts = sorted((runs[id(child)] for child in children(node)), key=lambda run: run.min)
            run = _in_a_row(parts) if isinstance(node, Concat) else merged(parts)
        if run is None:
            return None
        runs[id(node)] = run
    return runs[id(tree)]


def _repeated(run: Run, node: Repeat) -> Run | None:
    """k runs, for each k that the repeat allows, if their lengths leave no gaps."""
    low, high = run.min * node.min, None
    if node.max == 0 or run.max == 0:
        high = 0
    elif run.max is not None and node.max is not None:
        high = run.max * node.max
    if node.max != node.min and run.max is not None and run.max > 0:
        # From k to k + 1 turns: the gaps are widest at the smallest k.
        gap = (node.min + 1) * run.min - (node.min * run.max + 1)
    else:
        gap = run.min - 1 if node.min == 0 and node.max != node.min else 0
    return Run(run.ranges, low, high) if gap <= 0 else None


def _in_a_row(parts: list[Run]) -> Run | None:
    ranges = {run.ranges for run in parts if run.max != 0}
    if len(ranges) > 1:
        return None
    total = 0
    for run in parts:
        if run.max is None:
            return Run(min(ranges), sum(run.min for run in parts), None)
        total += run.max
    return Run(min(ranges, default=()), sum(run.min for run in parts), total)


def merged(parts: list[Run]) -> Run | None:
    """The union of runs of the same characters, shortest first, if their lengths leave no gap."""
    ranges = {run.ranges for run in parts if run.max != 0}
    if len(ranges) > 1 or not parts:
        return None
    high: int | None = parts[0].max
    for run in parts:
        if high is not None and run.min > high + 1:
            return None
        high = None if high is None or run.max is None else max(high, run.max)
    return Run(min(ranges, default=()), parts[0].min, high)


def few_texts(tree: Node, limit: int) -> list[str] | None:
    """All texts of the tree, with repetitions perhaps, if they are at most ``limit`` and not long."""
    found: dict[int, list[str]] = {}
    for node in post_order(tree):
        if isinstance(node, Chars) and sum([high - low + 1 for low, high in node.ranges]) > limit:
            return None
        some = _texts(node, [found[id(child)] for child in children(node)])
        if some is None:
            return None
        texts: list[str] = []
        total = 0
        for text in some:
            texts.append(text)
            total += len(text)
            if len(texts) > limit or total > _MAX_TOTAL:
                return None
        found[id(node)] = texts
    return found[id(tree)]


def _texts(node: Node, below: list[list[str]]) -> Iterator[str] | None:
    """The texts of a node, given those of the nodes below; None where they are not listed."""
    if isinstance(node, Chars):
        return (chr(code) for low, high in node.ranges for code in range(low, high + 1))
    if isinstance(node, Concat):
        return map("".join, itertools.product(*below))
    if isinstance(node, Alternate):
        return itertools.chain(*below)
    if isinstance(node, Look):
        return None
    (item,) = below
    if not any(item):  # nothing, or only the empty text
        return iter([""] if item or node.min == 0 else [])
    if node.max is None or node.min * max(map(len, item)) > _MAX_TOTAL:
        return None
    turns = (itertools.product(item, repeat=k) for k in range(node.min, node.max + 1))
    return map("".join, itertools.chain.from_iterable(turns))
