"""`LazyAutomaton`: the configurations of any number of indexes as states of one automaton over bytes.

It is a lazy DFA (as in RE2, or the *hybrid* engine of Rust's regex-automata): configurations get numbers when they
are first met, and a transition is worked out by its index's machine when it is first taken. What was taken once is
found by a kernel, for a batch of sequences in one call, whatever their indexes are.

Where every configuration is new, inside a counted string, or as stacks of a parser go, single bytes are not worth
remembering; there a token's target is remembered as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import DEAD, ENDED, FREE, UNKNOWN
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import Config, Machine
from ..rows.row_store import ALL_IDS, EOS_IDS, RowStore

#: To begin with, and at most: configurations, and those with transitions by byte, a kilobyte each.
_FEW, MOST_CONFIGS = 1 << 10, 1 << 18
_FEW_SPELLED, MOST_SPELLED = 1 << 8, 1 << 16

#: Likewise, transitions by token.
_FEW_TOKENS, MOST_TOKENS = 1 << 12, 1 << 22

#: Indexes at most; each stays in memory as long as one of its configurations does.
MOST_MACHINES = 1 << 10


class LazyAutomaton:
    """Numbered configurations over one vocabulary, with what is known of each.

    Number `kernels.ENDED` is a text that has ended, `kernels.FREE` one without a definition. Not for several threads
    at once.

    Parameters
    ----------
    vocabulary:
        The tokens.
    rows:
        Where the masks of configurations go.
    """

    def __init__(self, vocabulary: Vocabulary, rows: RowStore) -> None:
        self.vocabulary = vocabulary
        self.rows = rows
        # Copies: a kernel is compiled again for arrays that cannot be written, as those of files are.
        self.offsets = vocabulary.offsets.astype(np.int32)
        self.blob = np.array(vocabulary.blob)
        self._most, self._most_machines = MOST_CONFIGS, MOST_MACHINES
        #: How often it began anew: configurations of an earlier generation have other numbers.
        self.generation = 0
        self._begin()

    def _begin(self) -> None:
        #: ``int32[configurations]``: numbers in the row store, or `UNKNOWN`.
        self.row_of = np.full(_FEW, UNKNOWN, np.int32)
        self._pairs: list[tuple[Machine, Config] | None] = [None, None]
        self._numbers: dict[tuple[int, Config], int] = {}
        self._machines: set[int] = set()
        self.row_of[ENDED], self.row_of[FREE] = EOS_IDS, ALL_IDS
        self._forget_bytes()
        self._forget_tokens()

    def _forget_bytes(self) -> None:
        #: ``int32[spelled, 256]``: where bytes lead, `DEAD` or `UNKNOWN`. In the first row nothing is ever known.
        self.following = np.full((_FEW_SPELLED, 256), UNKNOWN, np.int32)
        self._spelled = 1
        #: ``int32[configurations]``: which of these rows is a configuration's.
        self.spelled_in = np.zeros(len(self.row_of), np.int32)
        self._left: set[int] = set()  # configurations that one token has led on from
        for number in (ENDED, FREE):
            self._spell(number)
            self.following[self.spelled_in[number]] = DEAD

    def _forget_tokens(self) -> None:
        #: ``int64[slots]``, ``int32[slots]``: where tokens lead; a hash table, see `kernels.token_slot`.
        self.keys = np.full(_FEW_TOKENS, -1, np.int64)
        self.values = np.zeros(_FEW_TOKENS, np.int32)
        self._tokens = 0
        for token in self.vocabulary.eos_ids:
            self._remember(ENDED, token, ENDED)

    def __len__(self) -> int:
        return len(self._pairs)

    def is_full(self) -> bool:
        """Whether it is time to `forget`; there still is room for one step."""
        return len(self._pairs) >= self._most or len(self._machines) >= self._most_machines

    def make_room(self) -> None:
        """Forget transitions where there are too many of them; configurations keep their numbers."""
        if self._spelled >= MOST_SPELLED:
            self._forget_bytes()
        if self._tokens >= MOST_TOKENS:
            self._forget_tokens()

    def number(self, machine: Machine, config: Config) -> int:
        """The number of a machine's configuration."""
        key = id(machine), config
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._pairs)
            self._pairs.append((machine, config))
            self._machines.add(id(machine))
            if found == len(self.row_of):
                self.row_of = np.pad(self.row_of, [(0, found)], constant_values=UNKNOWN)
                self.spelled_in = np.pad(self.spelled_in, [(0, found)])
        return found

    def _spell(self, number: int) -> None:
        """Give a configuration a row of transitions by byte."""
        if self._spelled == len(self.following):
            self.following = np.pad(self.following, [(0, self._spelled), (0, 0)], constant_values=UNKNOWN)
        self.spelled_in[number] = self._spelled
        self._spelled += 1

    def _is_spelled(self, machine: Machine, config: Config, number: int) -> bool:
        """Whether a configuration has transitions by byte. It gets them with its second token: most have but one."""
        if not self.spelled_in[number] and machine.repeats(config):
            if number in self._left:
                self._left.remove(number)
                self._spell(number)
            else:
                self._left.add(number)
        return bool(self.spelled_in[number])

    def pair(self, number: int) -> tuple[Machine, Config] | None:
        """What a number stands for; None for a text that has ended or has no definition."""
        return self._pairs[number]

    def is_accepting(self, number: int) -> bool:
        """Whether the text is complete there; it always is without a definition."""
        pair = self._pairs[number]
        return pair is None or pair[0].is_accepting(pair[1])

    def target(self, number: int, token: int) -> int:
        """Where a token leads, `DEAD` where it is refused, to be remembered. Raises what the machine does."""
        pair = self._pairs[number]
        data = self.vocabulary.token(token)
        if number == FREE:
            return FREE
        if pair is None:  # of a text that has ended; EOS ids are known
            self._remember(number, token, DEAD)
            return DEAD
        machine, config = pair
        if data and self._is_spelled(machine, config, number):
            target = self._follow(machine, number, data)
            if target != UNKNOWN:
                return target
        after = machine.advance(config, token)
        if after is not None:
            target = self.number(machine, after)
        else:
            target = ENDED if token in self.vocabulary.eos_ids and machine.is_accepting(config) else DEAD
        self._remember(number, token, target)
        return target

    def _follow(self, machine: Machine, number: int, data: bytes) -> int:
        """Follow a token byte by byte; `UNKNOWN` where that comes to a configuration that isn't worth it."""
        for byte in data:
            spelled = int(self.spelled_in[number])
            target = int(self.following[spelled, byte])
            if target == UNKNOWN:
                if not spelled:
                    return UNKNOWN
                _, config = self._pairs[number]  # type: ignore[misc]
                after = machine.follow_byte(config, byte)
                target = DEAD if after is None else self.number(machine, after)
                if after is not None and not self.spelled_in[target] and machine.repeats(after):
                    self._spell(target)
                self.following[spelled, byte] = target
            if target < 0:
                return DEAD
            number = target
        return number

    def _remember(self, number: int, token: int, target: int) -> None:
        if 2 * self._tokens >= len(self.keys):
            keys, values = self.keys, self.values
            self.keys, self.values = np.full(2 * len(keys), -1, np.int64), np.zeros(2 * len(keys), np.int32)
            for old in np.flatnonzero(keys >= 0).tolist():
                slot = kernels.find_token(self.keys, int(keys[old] >> 32), int(keys[old] & 0xFFFFFFFF))
                self.keys[slot], self.values[slot] = keys[old], values[old]
        slot = kernels.find_token(self.keys, number, token)
        self._tokens += self.keys[slot] < 0
        self.keys[slot] = number << 32 | token
        self.values[slot] = target

    def row(self, number: int) -> int:
        """The number of a configuration's row in the store. Raises what the machine does."""
        found = int(self.row_of[number])
        if found == UNKNOWN:
            pair = self._pairs[number]
            assert pair is not None, "the rows of these two are never unknown"
            found = self.rows.add(pair[0].row(pair[1]))
            self.row_of[number] = found
        return found

    def forget_rows(self) -> None:
        """Have rows asked for again, after the store began anew."""
        self.row_of[:] = UNKNOWN
        self.row_of[ENDED], self.row_of[FREE] = EOS_IDS, ALL_IDS

    def forget(self, live: NDArray[np.int32]) -> NDArray[np.int32]:
        """Let go of all but some configurations; returns the new numbers of all old ones, -1 for the rest.

        The bounds rise to twice what stays, so that this happens once in as many new configurations as are kept.
        """
        pairs, rows = self._pairs, self.row_of
        self.generation += 1
        renumbered = np.full(len(pairs), -1, np.int32)
        renumbered[:2] = ENDED, FREE
        self._begin()
        self._most = max(MOST_CONFIGS, 2 * len(live))
        for number in live.tolist():
            pair = pairs[number]
            if pair is not None:
                renumbered[number] = new = self.number(*pair)
                self.row_of[new] = rows[number]
        self._most_machines = max(MOST_MACHINES, 2 * len(self._machines))
        return renumbered
