"""What completes a text: the shortest ending, found among the nearest byte states or by distances."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from ..errors import BudgetExceededError, UnsupportedError
from ..runtime.core.descent import descent
from ..runtime.core.machine import ByteState, Config, Machine
from ..runtime.index.index import Index
from ..runtime.rows.bitmask import ids_of
from ..system.visible import legibility

#: Byte states that are looked at for an ending before distances are asked, and where there are none.
_NEAR, _MOST = 1 << 8, 1 << 14

#: Tokens of an ending, whose lengths distances bound.
_LONGEST = 1 << 16


def shortest_ending(index: Index, config: Config) -> bytes | None:
    """Bytes that complete a text behind a configuration; ``b""`` where it is complete. None where none are known.

    The fewest where they are found by looking, and of JSON Schemas and GBNF; of others that are far away, few
    (`structgen.runtime.core.machine.CompiledMachine.completion`), or as many as the fewest tokens take.
    """
    machine = index.machine
    found = _search(machine, config, _NEAR)
    with suppress(UnsupportedError, BudgetExceededError):  # what takes one too long takes the other longer
        if found is None:
            found = machine.completion(config)
        if found is None:
            found = _by_distances(index, config)
    return _search(machine, config, _MOST) or _descent(machine, config) if found is None else found


def near_ending(machine: Machine, config: Config, most: int = _NEAR) -> bytes | None:
    """The shortest ending, where it is found among so many byte states; distances are not asked."""
    return _search(machine, config, most)


def _search(machine: Machine, start: Config, most: int) -> bytes | None:
    """The shortest ending, breadth first, where it takes no more than so many byte states."""
    if machine.is_accepting(start):
        return b""
    first = machine.byte_state(start)
    seen = {first}
    todo: deque[tuple[bytes, ByteState]] = deque([(b"", first)])
    while todo:
        text, state = todo.popleft()
        for byte, after in sorted(machine.following(state), key=lambda each: legibility(each[0])):
            if after in seen:
                continue
            if len(seen) == most:
                return None
            seen.add(after)
            longer = text + bytes([byte])
            if machine.may_stop(after) and _ends(machine, start, longer):
                return longer
            todo.append((longer, after))
    return None


def _descent(machine: Machine, start: Config) -> bytes | None:
    """Some ending, of those that take no tokens without bytes, where the shortest is too far away to be found."""
    found = descent(machine.byte_state(start), machine.following, machine.may_stop)
    return found if found is not None and _ends(machine, start, found) else None


def _ends(machine: Machine, config: Config, data: bytes) -> bool:
    """Whether some bytes complete a text: what may stop there can be a token without bytes."""
    for byte in data:
        config = machine.follow_byte(config, byte)
    return machine.is_accepting(config)


def _by_distances(index: Index, config: Config) -> bytes | None:
    """An ending of the fewest tokens that are known to complete the text."""
    distances, machine, vocabulary = index.distances, index.machine, index.vocabulary
    found = bytearray()
    for _ in range(_LONGEST):
        if machine.is_accepting(config):
            return bytes(found)
        closer = ids_of(distances.row(config, distances.distance(config) - 1))
        token = next((t for t in closer.tolist() if vocabulary.token(t)), None)
        target = None if token is None else machine.advance(config, token)
        if token is None or target is None:
            return None
        found += vocabulary.token(token) or b""
        config = target
    return None
