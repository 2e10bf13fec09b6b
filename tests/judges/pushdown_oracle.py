"""What a `Program` says, read straight from its definition; slow, and the judge of everything faster."""

from __future__ import annotations

import random
from typing import NamedTuple, TypeAlias

from structgen.compiler.programs.program import CountedEdge, MarkedEdge, Program, TokenSet
from structgen.runtime.automaton.tables import MARK, SET
from structgen.vocabulary.vocabulary import Vocabulary

#: The bit from which on a count has the tokens that ended in a state, beside its count in a loop, or set.
TOKENS = 2048

#: A state and its count, or the bits of its set (0 where it has none).
Frame: TypeAlias = tuple[int, int]

#: The current frame last; persistent: (rest, frame), or None when empty.
Stack: TypeAlias = "tuple[Stack, Frame] | None"


class Edge(NamedTuple):
    """Reads one byte from ``low`` to ``high``; `Program` says what the others mean."""

    low: int
    high: int
    sequence: tuple[int, ...]
    counted: CountedEdge | MarkedEdge | None
    is_refused: bool = False


class Readable:
    """A program with every edge in its state's list, as this interpreter takes it."""

    def __init__(self, program: Program) -> None:
        self.start, self.loops, self.names = program.start, program.loops, program.names
        states = range(len(program.edges))
        self.like, self.live = ([column.get(state, -1) for state in states] for column in (program.like, program.live))
        self.returns, self.token_bounds = [state in program.returns for state in states], program.token_bounds
        self._moves, self._records = program.moves, list(program.records)
        self._conditions = {row: condition for condition, row in program.tests.items()}
        self.edges = [[self._edge(e & 255, e >> 8 & 255, e >> 16) for e in edges] for edges in program.edges]
        for block in program.blocks:
            for state, low, high, target in block.T.tolist():
                self.edges[state].append(self._edge(low, high, target))
        self.token_edges = {
            state: [(tokens, self._edge(0, 0, target)) for tokens, target in edges]
            for state, edges in program.token_edges.items()
        }

    def _edge(self, low: int, high: int, target: int) -> Edge:
        if target >= 0:
            return Edge(low, high, (target - 1,) if target else (), None, not target)
        record, *sequence = self._moves[-1 - target]
        return Edge(low, high, tuple(sequence), self._counted(*self._records[record - 1]) if record else None)

    def _counted(self, operation: int, which: int, *states: int) -> CountedEdge | MarkedEdge:
        if operation == MARK:
            return MarkedEdge(states[0], states[1], self._conditions[which])
        return CountedEdge(operation, which, *states)


def readable(program: Program) -> Readable:
    """The same program in the form that this interpreter takes."""
    return Readable(program)


def step(program: Readable, stacks: set[Stack], byte: int) -> set[Stack]:
    """All configurations after a byte."""
    after: set[Stack] = set()
    for stack in stacks:
        while stack is not None:
            below, (state, count) = stack
            for edge in edges_at(program, state, byte):
                after |= _follow(program, edge, below, count)
            if not program.returns[state]:
                break
            stack = below
    return after


def takes(tokens: TokenSet, token_id: int, eos_ids: tuple[int, ...]) -> bool:
    """Whether a token is in a set."""
    if tokens.complement:
        return token_id not in tokens.ids and token_id not in eos_ids
    return token_id in tokens.ids


def token_step(program: Readable, stacks: set[Stack], token_id: int, vocabulary: Vocabulary) -> set[Stack]:
    """All configurations after a whole token: by its bytes, and by token edges; each counts where it ends."""
    after: set[Stack] = set()
    data = vocabulary.token(token_id)
    if data:
        after = set(stacks)
        for byte in data:
            after = step(program, after, byte)
    after.update(token_edge_step(program, stacks, token_id, vocabulary.eos_ids))
    return {_counted(program, stack) for stack in after}


def token_edge_step(program: Readable, stacks: set[Stack], token_id: int, eos_ids: tuple[int, ...] = ()) -> set[Stack]:
    """All configurations after a token that is taken by token edges."""
    after: set[Stack] = set()
    for stack in stacks:
        while stack is not None:
            below, (state, count) = stack
            for tokens, edge in program.token_edges.get(state, ()):
                if takes(tokens, token_id, eos_ids):
                    after |= _follow(program, edge, below, count)
            if not program.returns[state]:
                break
            stack = below
    return after


def _counted(program: Readable, stack: Stack) -> Stack:
    if stack is None or stack[1][0] not in program.token_bounds:
        return stack
    below, (state, count) = stack
    most, exhausted = program.token_bounds[state]
    count += 1 << TOKENS
    return below, (state, count) if count >> TOKENS < most else (exhausted, 0)


def edges_at(program: Readable, state: int, byte: int) -> list[Edge]:
    """The edges that a state takes a byte by: its own, or else those of the state that it is like."""
    own = [edge for edge in program.edges[state] if edge.low <= byte <= edge.high]
    if not own and program.like[state] >= 0:
        own = [edge for edge in program.edges[program.like[state]] if edge.low <= byte <= edge.high]
    return [edge for edge in own if not edge.is_refused]


def all_edges(program: Readable, state: int) -> list[Edge]:
    """All edges of a state, with those of the state that it is like cut where its own have precedence."""
    edges = [edge for edge in program.edges[state] if not edge.is_refused]
    if program.like[state] < 0:
        return edges
    own = {byte for edge in program.edges[state] for byte in range(edge.low, edge.high + 1)}
    for edge in program.edges[program.like[state]]:
        begin = edge.low
        for byte in range(edge.low, edge.high + 2):
            if byte > edge.high or byte in own:
                if begin < byte:
                    edges.append(edge._replace(low=begin, high=byte - 1))
                begin = byte + 1
    return [edge for edge in edges if not edge.is_refused]


def _follow(program: Readable, edge: Edge, below: Stack, count: int) -> set[Stack]:
    sequence = list(edge.sequence)
    counted = edge.counted
    tokens, count = divmod(count, 1 << TOKENS)
    if isinstance(counted, MarkedEdge):
        members = {k for k in range(TOKENS) if count >> k & 1}
        if counted.member in members:
            return set()
        members |= {counted.member} - {-1}
        there = sum(1 for k in members if counted.condition.mask >> k & 1)
        if not counted.condition.low <= there <= counted.condition.high:
            return set()
        count = sum(1 << k for k in members)
        sequence.insert(0, counted.state)
    elif counted is not None:
        least, most = program.loops[counted.loop]
        count = 1 if counted.operation == SET else count + 1
        if counted.operation == SET or count < least:
            first = counted.low
        else:
            first = counted.mid if count < most else counted.high
        if first < 0:
            return set()
        sequence.insert(0, first)
    for i, state in enumerate(sequence):
        kept = count if i == 0 and program.live[state] >= 0 else 0
        kept += tokens << TOKENS if i == 0 and state in program.token_bounds else 0
        below = (below, (state, kept))
    return {below}


def start(program: Readable) -> set[Stack]:
    """The configurations before the first byte."""
    return {(None, (program.start, 0))}


def run(program: Readable, text: bytes) -> set[Stack]:
    """The configurations after a text."""
    stacks = start(program)
    for byte in text:
        stacks = step(program, stacks, byte)
        if not stacks:
            break
    return stacks


def is_complete(program: Readable, stacks: set[Stack]) -> bool:
    """Whether a text may end here."""
    for stack in stacks:
        while stack is not None and program.returns[stack[1][0]]:
            stack = stack[0]
        if stack is None:
            return True
    return False


def follow(program: Readable, known: dict[bytes, set[Stack]], data: bytes) -> set[Stack]:
    """The stacks after some bytes; those after each beginning are noted. Nothing is read in ``known[b""]``."""
    if data not in known:
        known[data] = step(program, follow(program, known, data[:-1]), data[-1])
    return known[data]


def accepts(program: Readable, text: bytes) -> bool:
    """Whether a whole text is accepted."""
    return is_complete(program, run(program, text))


def prefix_ok(program: Readable, text: bytes) -> bool:
    """Whether an accepted text begins so."""
    return bool(run(program, text))


def dead_states(program: Readable) -> list[int]:
    """The states that cannot finish: from which no bytes or tokens lead to a pop, or a return, of all pushed."""
    waiting: dict[int, list[tuple[int, int]]] = {}  # what each state's finishing contributes to: (edge owner, edge)
    missing: list[list[int]] = []
    todo = [s for s, returns in enumerate(program.returns) if returns]
    for owner in range(len(program.edges)):
        tokens = [edge for _, edge in program.token_edges.get(owner, ())]  # a bounded state finishes as exhausted
        for edge in [*all_edges(program, owner), *tokens]:
            options: list[tuple[int, ...]] = [()]
            if isinstance(edge.counted, MarkedEdge):
                options = [(edge.counted.state,)]
            elif edge.counted is not None:
                options = [(s,) for s in (edge.counted.low, edge.counted.mid, edge.counted.high) if s >= 0]
            for option in options:
                needs = {*option, *edge.sequence}
                if not needs:
                    todo.append(owner)
                number = len(missing)
                missing.append([len(needs)])
                for need in needs:
                    waiting.setdefault(need, []).append((owner, number))
    finishing = set(todo)
    todo = list(finishing)
    while todo:
        for owner, number in waiting.get(todo.pop(), ()):
            missing[number][0] -= 1
            if missing[number][0] == 0 and owner not in finishing:
                finishing.add(owner)
                todo.append(owner)
    return [s for s in range(len(program.edges)) if s not in finishing]


def sample(program: Readable, random: random.Random, soft_limit: int = 200) -> bytes | None:
    """A random accepted text; None where the walk grew too long.

    From ``soft_limit`` bytes on it prefers to pop.
    """
    stacks = start(program)
    text = bytearray()
    while len(text) < 4 * soft_limit:
        if is_complete(program, stacks) and random.random() < 0.3:
            return bytes(text)
        own = random.random() < 0.7  # along declared names
        moves = sorted({(e.low, e.high, len(e.sequence)) for s in stacks for e in _reachable_edges(program, s, own)})
        if not moves:
            return bytes(text) if is_complete(program, stacks) else None
        if len(text) > soft_limit:
            moves = [m for m in moves if m[2] == min(n for _, _, n in moves)]
        low, high, _ = random.choice(moves)
        byte = random.randint(low, high)
        after = step(program, stacks, byte)
        if after:  # a counted edge may be dead
            stacks = after
            text.append(byte)
    return None


def _reachable_edges(program: Readable, stack: Stack, own: bool) -> list[Edge]:
    edges: list[Edge] = []
    while stack is not None:
        below, (state, _) = stack
        kept = [edge for edge in program.edges[state] if not edge.is_refused]
        edges += kept if own and kept else all_edges(program, state)
        if not program.returns[state]:
            break
        stack = below
    return edges
