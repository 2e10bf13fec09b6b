"""Nondeterministic automata over symbols: bytes 0-255, and above them markers for look-around.

`NfaBuilder` is the readable, growing form; `Nfa` the arrays that the subset construction reads. The converter
is `NfaBuilder.build`, which also replaces symbols by the classes of symbols that no edge tells apart.

Counted loops. A repeat ``X{m,n}`` with large bounds is not spelled out. Its first turn is; then comes one copy
of the body with a counter::

    start --X--> a ==ENTER==> (check) --low, mid--> body --X--> z ==AGAIN==> (check)
                                 |
                                 +-----mid, high--> exit

ENTER sets the count to 1, AGAIN adds 1. The check lets a thread into the body while the count is below n (zones
LOW and MID) and out to the exit once it is at least m (MID and HIGH). The states of the body belong to the loop
(`owner`): a thread there has a live count. (Counting automata: Hovland 2009; Turoňová et al. 2020.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...runtime.automaton.reaching import reaching

BYTES = 256

#: Templates of up to so many edges are copied edge by edge; for larger ones arrays are faster.
_FEW_EDGES = 24


@dataclass(frozen=True)
class Loop:
    """A counted loop: at least ``min``, at most ``max`` turns; ``body`` and ``exit`` are NFA states."""

    min: int
    max: int
    body: int
    exit: int


@dataclass(frozen=True, eq=False)
class Nfa:
    """An NFA as arrays; ``transitions_of q = t_*[t_start[q]:t_start[q + 1]]``, epsilon edges likewise.

    Parameters
    ----------
    classes:
        ``int32[symbols]``, the class of each symbol; classes are numbered in order of the symbols.
    t_start, t_lo, t_hi, t_to:
        ``int32``, byte transitions on an inclusive range of classes.
    e_start, e_to, e_kind:
        ``int32``, epsilon edges; for kinds other than plain, ``e_to`` is a loop's number.
    owner:
        ``int32[states]``, the counted loop a state is inside of, or -1.
    loops:
        ``int64[loops, 4]``: min, max, body, exit.
    """

    classes: NDArray[np.int32]
    t_start: NDArray[np.int32]
    t_lo: NDArray[np.int32]
    t_hi: NDArray[np.int32]
    t_to: NDArray[np.int32]
    e_start: NDArray[np.int32]
    e_to: NDArray[np.int32]
    e_kind: NDArray[np.int32]
    owner: NDArray[np.int32]
    loops: NDArray[np.int64]
    start: int
    accept: int

    @property
    def n_classes(self) -> int:
        """Number of classes of symbols."""
        return int(self.classes[-1]) + 1


@dataclass
class NfaBuilder:
    """An NFA under construction. Every state must lie on some path from start to accept, or be pruned."""

    markers: int = 0
    owners: list[int] = field(default_factory=list)
    edges: list[tuple[int, int, int, int]] = field(default_factory=list)
    edge_blocks: list[NDArray[np.int32]] = field(default_factory=list)
    epsilons: list[tuple[int, int, int]] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)

    def state(self, owner: int = -1) -> int:
        """A new state, inside counted loop ``owner`` or none."""
        self.owners.append(owner)
        return len(self.owners) - 1

    def edge(self, source: int, low: int, high: int, target: int) -> None:
        """A transition on the symbols ``low..high``."""
        self.edges.append((source, low, high, target))

    def epsilon(self, source: int, target: int) -> None:
        """A transition on nothing."""
        self.epsilons.append((source, target, kernels.PLAIN))

    def loop(self, loop: Loop) -> int:
        """Declare a counted loop; its body's states are made with the number returned as their owner."""
        self.loops.append(loop)
        return len(self.loops) - 1

    def enter(self, source: int, loop: int) -> None:
        """After the first turn: set the count to 1 and go to the check."""
        self.epsilons.append((source, loop, kernels.ENTER))

    def again(self, source: int, loop: int) -> None:
        """After a further turn: add 1 to the count and go to the check."""
        self.epsilons.append((source, loop, kernels.AGAIN))

    def template(self, edges: NDArray[np.int32], source: int, target: int, owner: int) -> None:
        """Insert a copy of an automaton whose states 0 and 1 become ``source`` and ``target``."""
        first = len(self.owners)
        if len(edges) <= _FEW_EDGES:
            names, append = [source, target], self.edges.append
            for tail, low, high, head in edges.tolist():
                last = tail if tail > head else head
                if last >= len(names):
                    names.extend(range(first + len(names) - 2, first + last - 1))
                append((names[tail], low, high, names[head]))
            self.owners.extend([owner] * (len(names) - 2))
            return
        inner = max(int(edges[:, 3].max()), int(edges[:, 0].max())) - 1
        self.owners.extend([owner] * inner)
        renamed = np.concatenate([[source, target], np.arange(first, first + inner)]).astype(np.int32)
        block = edges.copy()
        block[:, 0] = renamed[edges[:, 0]]
        block[:, 3] = renamed[edges[:, 3]]
        self.edge_blocks.append(block)

    def build(self, start: int, accept: int) -> Nfa:
        """Freeze into arrays, over classes of symbols."""
        n = len(self.owners)
        edges = np.concatenate([np.array(self.edges, np.int32).reshape(-1, 4), *self.edge_blocks])
        edges = edges[_useful(self, edges, accept)]
        cuts = np.zeros(BYTES + self.markers + 1, np.int32)
        cuts[edges[:, 1]] = 1
        cuts[edges[:, 2] + 1] = 1
        cuts[BYTES:] = 1  # a marker is a class of its own
        cuts[0] = 0
        classes = np.cumsum(cuts[:-1], dtype=np.int32)
        order = np.argsort(edges[:, 0], kind="stable")
        edges = edges[order]
        epsilons = np.array(self.epsilons, np.int32).reshape(-1, 3)
        epsilons = epsilons[np.argsort(epsilons[:, 0], kind="stable")]
        return Nfa(
            classes=classes,
            t_start=_starts(edges[:, 0], n),
            t_lo=classes[edges[:, 1]],
            t_hi=classes[edges[:, 2]],
            t_to=edges[:, 3].copy(),
            e_start=_starts(epsilons[:, 0], n),
            e_to=epsilons[:, 1].copy(),
            e_kind=epsilons[:, 2].copy(),
            owner=np.array(self.owners, np.int32),
            loops=np.array([(v.min, v.max, v.body, v.exit) for v in self.loops], np.int64).reshape(-1, 4),
            start=start,
            accept=accept,
        )


def _starts(sources: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    return np.searchsorted(sources, np.arange(n + 1)).astype(np.int32)


def _useful(builder: NfaBuilder, edges: NDArray[np.int32], accept: int) -> NDArray[np.bool_]:
    """Which edges lead to a state from which ``accept`` can be reached.

    With the others gone every thread of the subset construction can still be completed, so that every subset
    is co-accessible, whatever the counts: a thread inside a loop can go round until it may leave.
    """
    pairs = [(s, t) for s, t, kind in builder.epsilons if kind == kernels.PLAIN]
    for source, number, kind in builder.epsilons:
        if kind != kernels.PLAIN:
            pairs += [(source, builder.loops[number].body), (source, builder.loops[number].exit)]
    epsilons = np.array(pairs, np.int32).reshape(-1, 2)
    goal = np.zeros(len(builder.owners), np.bool_)
    goal[accept] = True
    tails, heads = np.concatenate([edges[:, 0], epsilons[:, 0]]), np.concatenate([edges[:, 3], epsilons[:, 1]])
    return reaching(tails, heads, goal)[edges[:, 3]]
