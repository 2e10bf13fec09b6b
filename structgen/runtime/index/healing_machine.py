"""`HealingMachine`: a prefix, then a definition, as a `Machine` that guides move over.

What it is for is in `structgen.runtime.index.healing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedError
from ...system.memo import Memo
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.machine import AutomatonMachine
from ..automaton.tables import DEAD, Tables
from ..core.machine import ByteState, Captured, CompiledMachine, Config, Match, ranges_of
from ..core.reference_walk import row_of_nodes, tokens_from
from ..rows.bitmask import fill_first

#: Tokens that are remembered at each offset in a prefix.
_MOST_TARGETS = 1 << 12


def is_spelled(vocabulary: Vocabulary, text: bytes) -> bool:
    """Whether some sequence of tokens has these bytes."""
    reached = {0}
    for begin in range(len(text)):
        if begin in reached:
            reached.update(begin + length for length, _ in prefixes(vocabulary, text[begin:]))
    return len(text) in reached


def prefixes(vocabulary: Vocabulary, text: bytes) -> Iterator[tuple[int, int]]:
    """Tokens that a text begins with: their length, and their node in the trie."""
    trie = vocabulary.trie
    node = 0
    for length, byte in enumerate(text, 1):
        child = trie.child(node, byte)
        if child is None:
            return
        node = child
        if trie.token[node] < 32 * vocabulary.row_words:
            yield length, node


class Anything(AutomatonMachine):
    """The machine of any text: a state that every byte leads back to. Every id is allowed, and an EOS id ends it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        none, byte = np.zeros(1, np.uint8), np.array([255], np.uint8)
        tables = Tables(
            np.array([0, 1]), none, byte, none, accepting=np.ones(1, np.uint8), records=np.zeros((0, 5), np.int32),
            loops=np.zeros((0, 2), np.int32), live=np.full(1, DEAD, np.int32), start=0,
        )  # fmt: skip
        super().__init__(tables, vocabulary)
        every = np.zeros(vocabulary.words, np.int32)
        fill_first(every, vocabulary.size)
        every.flags.writeable = False
        self._every = every
        self.pool.add_dense(every[: self.pool.words].view(np.uint32))
        self._row_of[0] = 0

    def advance(self, config: int, token_id: int) -> int | None:
        """Where a token leads, also one without bytes; ``None`` for an EOS id."""
        return None if token_id in self.vocabulary.eos_ids else config

    def row(self, config: int) -> NDArray[np.int32]:
        """The bitmask of every id, also one without bytes: read-only ``int32[words]``."""
        return self._every

    functions = CompiledMachine.functions
    write_mask = CompiledMachine.write_mask


class _Spelling:
    """A configuration: how much of the prefix there is already, with what was found out about it."""

    __slots__ = ("offset", "row", "targets")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.targets: Memo[int, Config | None] = Memo(_MOST_TARGETS)
        self.row: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return f"<prefix from byte {self.offset}>"


class HealingMachine(CompiledMachine):
    """A prefix, then a definition, as a machine around the definition's machine. It is not kept in files.

    Its configurations are offsets in the prefix and, behind it, those of the definition's machine.

    Parameters
    ----------
    prefix:
        What the text begins with.
    inner:
        The definition's machine.
    behind:
        Its configuration behind the prefix; None for its start.
    """

    def __init__(self, prefix: bytes, inner: CompiledMachine, behind: Config | None = None) -> None:
        self.vocabulary, self.pool = inner.vocabulary, inner.pool  # the rows without those of the prefix
        self.states = len(prefix) + inner.states
        self._prefix = prefix
        self._inner = inner
        self._behind = inner.start if behind is None else behind
        self._configs: list[Config] = [*map(_Spelling, range(len(prefix))), self._behind]
        self._can_go_on = self._find_ways()

    def _find_ways(self) -> list[bool]:
        """For each offset in the prefix, from the last one on, whether tokens lead from there to the definition."""
        single = self.vocabulary.single_bytes[list(self._prefix)].tolist()
        found = [True]
        for offset in reversed(range(len(self._prefix))):
            rest = self._prefix[offset:]
            found.append(
                (single[offset] and found[-1])
                or any(found[len(rest) - length] for length, _ in prefixes(self.vocabulary, rest))
                or any(map(len, tokens_from(self.vocabulary, self._inner, self._behind, rest)))
            )
        return found[::-1]

    @property
    def start(self) -> Config:
        """The configuration before the prefix."""
        return self._configs[0]

    def is_complete(self) -> bool:
        """Whether every row is there: the first ones of a prefix are worked out on first touch."""
        return not self._prefix and self._inner.is_complete()

    def match(self, data: bytes) -> Match:
        """How far a text, prefix included, goes along with the definition, and what could follow."""
        prefix = self._prefix
        if not data.startswith(prefix):
            pairs = zip(data, prefix, strict=False)
            same = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), len(data))
            return Match(same, False, False, ((prefix[same], prefix[same]),))
        config, consumed = self._behind, len(prefix)
        for byte in data[consumed:]:
            after = self._inner.follow_byte(config, byte)
            if after is None:
                break
            config, consumed = after, consumed + 1
        can_end = self._inner.is_accepting(config)
        following = sorted(byte for byte, _ in self._inner.following(self._inner.byte_state(config)))
        return Match(consumed, can_end and consumed == len(data), can_end, ranges_of(following))

    def advance(self, config: Config, token_id: int) -> Config | None:
        """Where a token leads; ``None`` where it is not compatible with the prefix, or its rest not allowed."""
        if type(config) is not _Spelling:
            return self._inner.advance(config, token_id)
        try:
            return config.targets[token_id]
        except KeyError:
            target = config.targets[token_id] = self._target(config.offset, self.vocabulary.token(token_id))
            return target

    def _target(self, offset: int, data: bytes | None) -> Config | None:
        if not data:
            return None
        rest = self._prefix[offset:]
        if len(data) <= len(rest):
            after = offset + len(data)
            return self._configs[after] if rest.startswith(data) and self._can_go_on[after] else None
        target: Config | None = self._behind if data.startswith(rest) else None
        for byte in data[len(rest) :]:
            if target is None:
                return None
            target = self._inner.follow_byte(target, byte)
        return target

    def follow_byte(self, config: Config, byte: int) -> Config | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        if type(config) is not _Spelling:
            return self._inner.follow_byte(config, byte)
        return self._configs[config.offset + 1] if self._prefix[config.offset] == byte else None

    def byte_state(self, config: Config) -> ByteState:
        """Where a configuration is, for `following`: in the prefix, or a byte state of the definition's machine."""
        return config if type(config) is _Spelling else self._inner.byte_state(config)

    def following(self, byte_state: ByteState) -> Iterator[tuple[int, ByteState]]:
        """Each byte that can follow, in no order, and the byte state after it."""
        if type(byte_state) is not _Spelling:
            yield from self._inner.following(byte_state)
            return
        byte = self._prefix[byte_state.offset]
        yield byte, self.after(byte_state, byte)

    def after(self, byte_state: ByteState, byte: int) -> ByteState | None:
        """The byte state after a byte, None where it can't follow."""
        if type(byte_state) is not _Spelling:
            return self._inner.after(byte_state, byte)
        config = self.follow_byte(byte_state, byte)
        return None if config is None else self.byte_state(config)

    def may_stop(self, byte_state: ByteState) -> bool:
        """Whether something other than a byte may follow; never inside the prefix."""
        return type(byte_state) is not _Spelling and self._inner.may_stop(byte_state)

    def row(self, config: Config) -> NDArray[np.int32]:
        """The bitmask of a configuration: read-only ``int32[words]``."""
        if type(config) is not _Spelling:
            return self._inner.row(config)
        if config.row is None:
            config.row = self._work_out(config.offset)
        return config.row

    def write_mask(self, config: Config, bitmask: NDArray[np.int32]) -> None:
        """Write the bitmask of a configuration to a contiguous ``int32[*]``; as `Stepper.write_mask`."""
        if type(config) is not _Spelling:
            self._inner.write_mask(config, bitmask)
        else:
            super().write_mask(config, bitmask)

    def _work_out(self, offset: int) -> NDArray[np.int32]:
        rest = self._prefix[offset:]
        within = [node for length, node in prefixes(self.vocabulary, rest) if self._can_go_on[offset + length]]
        longer = tokens_from(self.vocabulary, self._inner, self._behind, rest)
        return row_of_nodes(self.vocabulary, [np.array(within, np.int64), *longer])

    def is_accepting(self, config: Config) -> bool:
        """Whether the text so far is complete; never inside the prefix."""
        return type(config) is not _Spelling and self._inner.is_accepting(config)

    def temperature(self, config: Config) -> float | None:
        """The temperature that the definition says the next token is sampled at; none inside the prefix."""
        return None if type(config) is _Spelling else self._inner.temperature(config)

    def captured(self, tokens: Sequence[tuple[int, bytes]]) -> tuple[Captured, ...]:
        """What is captured of a text, by its tokens; bytes are counted from the beginning of the prefix."""
        if self._behind is not self._inner.start:
            raise UnsupportedError("what is captured is not known of a text whose beginning is not")
        left, rest = len(self._prefix), list[tuple[int, bytes]]()
        for token, data in tokens:
            rest.append((-1 if left else token, data[left:]))
            left -= min(left, len(data))
        found, n = self._inner.captured(rest) if not left else (), len(self._prefix)
        return tuple(each._replace(start=each.start + n, end=each.end + n) for each in found)
