"""What can be read off a pattern's tree, so that no automaton has to be built for it.

Most patterns of real schemas are one of a few shapes: a run of characters of one class, a handful of texts,
something with anchors at both ends. Here is what recognises them. Nothing recurses: trees are as deep as a
stranger's pattern nests.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

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


def _split(tree: Node, behind: bool) -> tuple[Node | None, Node | None]:
    """``tree`` where anything may come before (after) it, as (open, anchored): ``Σ*open | anchored``.

    None is no text. An open part that may be empty is `EMPTY`.
    """
    nullable = _nullable(tree)
    spine = [tree]
    for node in spine:  # grows while it is read
        if isinstance(node, Alternate):
            spine.extend(node.options)
        elif isinstance(node, Repeat) and node.min == 1:
            spine.append(node.item)
        elif isinstance(node, Concat):
            spine.extend(_edge_part(node, behind, nullable)[0])
    found: dict[int, tuple[Node | None, Node | None]] = {}
    for node in reversed(spine):
        if nullable[id(node)]:
            found[id(node)] = EMPTY, None
        elif _is_anchor(node, behind):
            found[id(node)] = None, EMPTY
        elif isinstance(node, Alternate):
            pairs = [found[id(option)] for option in node.options]
            found[id(node)] = _either([p[0] for p in pairs]), _either([p[1] for p in pairs])
        elif isinstance(node, Repeat) and node.min == 1:
            found[id(node)] = found[id(node.item)]
        elif isinstance(node, Repeat):
            found[id(node)] = Repeat(node.item, node.min, node.min, node.column), None
        elif isinstance(node, Concat):
            found[id(node)] = _split_concat(node, behind, nullable, found)
        else:
            found[id(node)] = node, None
    return found[id(tree)]


def _split_concat(
    node: Concat, behind: bool, nullable: dict[int, bool], found: dict[int, tuple[Node | None, Node | None]]
) -> tuple[Node | None, Node | None]:
    (edge,), rest = _edge_part(node, behind, nullable)
    open_, anchored = found[id(edge)]
    return _joined(open_, rest, behind), _joined(anchored, rest, behind)


def _edge_part(node: Concat, behind: bool, nullable: dict[int, bool]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The outermost part that can't be left out next to ``Σ*``, if any, and what is on its other side."""
    parts = node.parts if behind else node.parts[::-1]
    for i, part in enumerate(parts):
        if not nullable[id(part)]:
            return (part,), parts[i + 1 :] if behind else parts[i + 1 :][::-1]
    return (), ()


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


def _is_anchor(node: Node, behind: bool) -> bool:
    return isinstance(node, Look) and node.item is EMPTY and node.whole and not node.negate and node.behind == behind


def _nullable(tree: Node) -> dict[int, bool]:
    """Whether each node matches the empty text wherever it stands, by ``id``."""
    found: dict[int, bool] = {}
    for node in post_order(tree):
        if isinstance(node, Concat):
            value = all(found[id(part)] for part in node.parts)
        elif isinstance(node, Alternate):
            value = any(found[id(option)] for option in node.options)
        else:
            value = isinstance(node, Repeat) and (node.min == 0 or found[id(node.item)])
        found[id(node)] = value
    return found


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
