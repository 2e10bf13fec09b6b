"""From a regex's syntax tree to a byte automaton.

`regex_to_dfa` is the whole road. Thompson's construction (1968) turns the tree into an NFA over UTF-8 bytes,
iteratively, since trees are as deep as a stranger's pattern nests. Two things are decided on the way:

*Counting.* A large ``X{m,n}`` becomes a counted loop (see `structgen.compiler.automata.nfa`) unless it lies in
another one or X can be empty. If the subset construction then finds two threads that would need different
counts, the loop is spelled out instead and the construction starts again: counting is an optimisation that
either is exact or is not used.

*Words.* Alternatives that are plain words become their minimal automaton at once (see
`structgen.compiler.automata.words`) where there are many: an NFA with a path for each would outgrow any budget.

*Look-around.* At the edges of the text an assertion is decided on the spot (``^`` at the start is simply true).
Elsewhere it becomes a marker, which `structgen.compiler.patterns.look_arounds` resolves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...budget import Meter
from ...errors import BudgetExceededError, EmptyLanguageError
from ..automata.dfa import CounterConflictError, Dfa, add_to, determinize, minimize
from ..automata.nfa import BYTES, Loop, NfaBuilder
from ..automata.utf8 import utf8_edges
from .measures import TreeFacts, WordLists, measure, parts_below, post_order, word_lists
from .syntax import EMPTY, Alternate, Chars, Concat, Look, Node, Repeat

if TYPE_CHECKING:
    from .look_arounds import AnchoredLook

#: A repeat is worth counting when spelling it out would take more turns than this.
_COUNT_FROM = 24


#: No text is that long; larger bounds would overflow the stored counts.
_MAX_COUNT = 1 << 30


def regex_to_dfa(tree: Node, meter: Meter) -> Dfa:
    """The minimal automaton of the texts that the whole pattern matches.

    Raises `BudgetExceededError`, `UnsupportedError` (look-around that can't be honoured), `EmptyLanguageError`.
    """
    dfa = language(tree, meter)
    if not dfa.states:
        raise EmptyLanguageError("the regex matches no text at all", remedy="Check its classes and look-around.")
    return dfa


def language(
    tree: Node, meter: Meter, *, edges: bool = True, suffix: bool = False, prefix: bool = False, count: bool = True,
    known: WordLists | None = None,
) -> Dfa:  # fmt: skip
    """The minimal automaton of a tree, possibly without states.

    ``edges``: the tree stands for the whole text, so that look-around at its ends is decided here.
    ``suffix`` and ``prefix``: any bytes may follow, or come before. ``count``: large repeats may become counted
    loops, with which the algebra of automata can't go on. ``known``: alternatives that have automata already.
    """
    words = word_lists(tree, meter) | (known or {})
    facts = measure(tree, meter, words)
    counted = countable(tree, facts, words, meter) if count and not facts[id(tree)].has_looks else set()
    while True:
        _check_size(tree, facts, counted, words, meter)
        build = _Construction(facts, counted, words, edges)
        builder, start, accept = build.run(tree, suffix, prefix, meter)
        try:
            dfa = determinize(builder.build(start, accept), meter)
        except CounterConflictError as conflict:
            # Spell out the cheaper of the two loops.
            loops = [build.loop_nodes[i] for i in conflict.loops]
            counted.discard(id(min(loops, key=lambda r: facts[id(r)].size)))
            continue
        dfa = minimize(dfa, meter)
        if not build.looks:
            return dfa
        from .look_arounds import resolve_looks

        return resolve_looks(dfa, build.looks, language, meter)


def countable(tree: Node, facts: dict[int, TreeFacts], words: WordLists, meter: Meter) -> set[int]:
    """The repeats to count, by ``id``: the outermost of the large ones whose body is never empty."""
    counted: set[int] = set()
    todo = [tree]
    seen: set[int] = set()
    for _ in meter.each(iter(todo.__len__, 0), "looking for repeats to count"):
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Repeat) and _worth_counting(node, facts):
            counted.add(id(node))
        else:
            todo.extend(parts_below(node, words))
    return counted


def counts_far(tree: Node, meter: Meter) -> bool:
    """Whether a tree looks nowhere and has repeats that are worth counting."""
    facts = measure(tree, meter)
    return not facts[id(tree)].has_looks and bool(countable(tree, facts, {}, meter))


def _worth_counting(node: Repeat, facts: dict[int, TreeFacts]) -> bool:
    turns = node.min if node.max is None else node.max
    return turns > _COUNT_FROM and facts[id(node.item)].min_width > 0


def _check_size(tree: Node, facts: dict[int, TreeFacts], counted: set[int], words: WordLists, meter: Meter) -> None:
    """Refuse an NFA over the budget before it is built."""
    sizes: dict[int, int] = {}
    for node in meter.each(post_order(tree, words), "spelling out its repeats"):
        below = sum(sizes[id(child)] for child in parts_below(node, words))
        if id(node) in words:
            below += 2 * words[id(node)].words.states
        if isinstance(node, Repeat):
            turns = node.max if node.max is not None else node.min + 1
            if turns > _MAX_COUNT:
                raise BudgetExceededError(
                    f"a repeat counts up to {turns:,}, the limit is {_MAX_COUNT:,}",
                    where=f"column {node.column}",
                    remedy="Use * or + where any number will do.",
                )
            sizes[id(node)] = 2 * below + 4 if id(node) in counted else 2 + turns * (below + 1)
        elif isinstance(node, Chars | Look):
            sizes[id(node)] = facts[id(node)].size
        else:
            sizes[id(node)] = below + 2
    # An NFA state costs a fraction of what a DFA state's row does.
    meter.check_states(sizes[id(tree)] // 4, "spelling out its repeats")
    meter.check_time("spelling out its repeats")


class _Construction:
    """Thompson's construction with an explicit stack."""

    def __init__(self, facts: dict[int, TreeFacts], counted: set[int], words: WordLists, edges: bool) -> None:
        self.facts = facts
        self.counted = counted
        self.words = words
        self.edges = edges
        self.builder = NfaBuilder()
        self.looks: list[AnchoredLook] = []
        self.loop_nodes: list[Repeat] = []
        self._marker_of: dict[tuple[object, ...], int] = {}
        # Work to do: node, from, to, loop it is inside of, whether it begins and ends the text.
        self._todo: list[tuple[Node, int, int, int, bool, bool]] = []

    def run(self, tree: Node, suffix: bool, prefix: bool, meter: Meter) -> tuple[NfaBuilder, int, int]:
        """Build the tree between two new states; returns them."""
        new = self.builder.state
        start, accept = new(), new()
        self._todo.append((tree, start, accept, -1, self.edges and not prefix, self.edges and not suffix))
        steps: dict[type, Callable[..., None]] = {
            Chars: self._chars,
            Concat: self._concat,
            Alternate: self._alternate,
            Repeat: self._repeat,
            Look: self._look,
        }
        for _ in meter.each(iter(self._todo.__len__, 0), "building the automaton", every=256):
            node, *rest = self._todo.pop()
            steps[type(node)](node, *rest)
        if prefix:
            before = new()
            self.builder.edge(before, 0, BYTES - 1, before)
            self.builder.epsilon(before, start)
            start = before
        if suffix:
            after = new()
            self.builder.epsilon(accept, after)
            self.builder.edge(after, 0, BYTES - 1, after)
            accept = after
        self.builder.markers = len(self.looks)
        return self.builder, start, accept

    def _chars(self, node: Chars, source: int, target: int, owner: int, first: bool, last: bool) -> None:
        self.builder.template(utf8_edges(node.ranges), source, target, owner)

    def _concat(self, node: Concat, source: int, target: int, owner: int, first: bool, last: bool) -> None:
        if not node.parts:
            self.builder.epsilon(source, target)
            return
        widths = [self.facts[id(p)].max_width for p in node.parts]
        wide = [i for i, w in enumerate(widths) if w != 0]
        begin_wide, end_wide = (wide[0], wide[-1]) if wide else (len(widths), -1)
        here = source
        for i, part in enumerate(node.parts):
            there = target if i == len(node.parts) - 1 else self.builder.state(owner)
            self._todo.append((part, here, there, owner, first and i <= begin_wide, last and i >= end_wide))
            here = there

    def _alternate(self, node: Alternate, source: int, target: int, owner: int, first: bool, last: bool) -> None:
        self._todo.extend((option, source, target, owner, first, last) for option in parts_below(node, self.words))
        if id(node) in self.words:
            begin, ends = add_to(self.builder, self.words[id(node)].words, owner)
            self.builder.epsilon(source, begin)
            for end in ends:
                self.builder.epsilon(end, target)

    def _repeat(self, node: Repeat, source: int, target: int, owner: int, first: bool, last: bool) -> None:
        if id(node) in self.counted:
            here, minimum = source, node.min
            if node.max is None:
                # X{m,} is X{m} X*
                here = self.builder.state(owner)
                self._star(node.item, here, target, owner)
                self._counted(node, source, here, minimum, minimum)
            else:
                self._counted(node, source, target, minimum, node.max)
            return
        once = node.max == 1
        here = source
        for _ in range(node.min):
            there = self.builder.state(owner)
            self._todo.append((node.item, here, there, owner, first and once, last and once))
            here = there
        if node.max is None:
            self._star(node.item, here, target, owner)
            return
        for _ in range(node.max - node.min):
            there = self.builder.state(owner)
            self.builder.epsilon(here, target)
            self._todo.append((node.item, here, there, owner, first and once, last and once))
            here = there
        self.builder.epsilon(here, target)

    def _star(self, item: Node, source: int, target: int, owner: int) -> None:
        hub = self.builder.state(owner)
        self.builder.epsilon(source, hub)
        self.builder.epsilon(hub, target)
        self._todo.append((item, hub, hub, owner, False, False))

    def _counted(self, node: Repeat, source: int, target: int, minimum: int, maximum: int) -> None:
        """The first turn spelled out, then a counted loop for the second to the last."""
        builder = self.builder
        number = len(builder.loops)
        body, after, turned = builder.state(number), builder.state(), builder.state(number)
        builder.loop(Loop(minimum, maximum, body, target))
        self.loop_nodes.append(node)
        if minimum == 0:
            builder.epsilon(source, target)
        self._todo.append((node.item, source, after, -1, False, False))
        builder.enter(after, number)
        self._todo.append((node.item, body, turned, number, False, False))
        builder.again(turned, number)

    def _look(self, node: Look, source: int, target: int, owner: int, first: bool, last: bool) -> None:
        if first if node.behind else last:
            # Nothing before (after): the assertion holds if its item matches the empty text.
            inner = self.facts[id(node.item)]
            if not inner.has_looks:
                if (inner.min_width == 0) != node.negate:
                    self.builder.epsilon(source, target)
                return
        # Anchors and word boundaries repeat a few assertions many times: one marker serves them all.
        item = node.item.ranges if isinstance(node.item, Chars) else () if node.item is EMPTY else id(node.item)
        at_edge = last if node.behind else first
        key = (item, node.behind, node.negate, node.whole, at_edge)
        marker = self._marker_of.setdefault(key, len(self.looks))
        if marker == len(self.looks):
            from .look_arounds import AnchoredLook

            self.looks.append(AnchoredLook(node, at_edge))
        self.builder.edge(source, BYTES + marker, BYTES + marker, target)
