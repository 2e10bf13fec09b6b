"""`LazyAutomaton`: the configurations of any number of indexes as states of one automaton over bytes.

It is a lazy DFA (as in RE2, or the *hybrid* engine of Rust's regex-automata): configurations get numbers when they
are first met, and a transition is worked out by its index's machine when it is first taken. What was taken once is
found by a kernel, for a batch of sequences in one call, whatever their indexes are.

Where every configuration is new, inside a counted string, or as stacks of a parser go, single bytes are not worth
remembering; there a token's target is remembered as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import StructgenError
from ...kernels import DEAD, ENDED, FREE, UNKNOWN
from ...system.types import Array
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import Config, Machine
from ..rows.row_store import ALL_IDS, EOS_IDS, RowStore

#: What is remembered at most: configurations, and twice those that histories stand on; those with transitions by
#: byte, a kilobyte each; transitions by token; and indexes, each of which stays as long as one of its configurations.
MOST_CONFIGS, MOST_SPELLED, MOST_TOKENS, MOST_MACHINES = 1 << 17, 1 << 15, 1 << 18, 1 << 10

#: The token with which a configuration gets transitions by byte: to follow one byte by byte costs more than at once.
_SPELLED_FROM = 8

#: To begin with: configurations, transitions by token.
_FEW, _FEW_TOKENS = 1 << 10, 1 << 12


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
        self._bytes, self._bounds = vocabulary.bytes, vocabulary.offsets.data  # yields ints, faster than an array
        self._most, self._most_machines = MOST_CONFIGS, MOST_MACHINES
        #: How often configurations were forgotten: others may have their numbers since.
        self.generation = 0
        #: ``int32[configurations]``: numbers in the row store, or `UNKNOWN`.
        self.row_of = np.full(_FEW, UNKNOWN, np.int32)
        #: ``int32[configurations]``: when each was come by last, by the clock that whoever moves rows puts forward.
        self.used_at = np.zeros(_FEW, np.int32)
        self.now = 0
        # What numbers stand for; None for these two, and for numbers that nothing has.
        self._machines: list[Machine | None] = [None, None]
        self._configs: list[Config] = [None, None]
        self._free: list[int] = []  # numbers that nothing has
        self._numbers: dict[int, dict[Config, int]] = {}  # by the identities of machines
        self.row_of[ENDED], self.row_of[FREE] = EOS_IDS, ALL_IDS
        #: ``int32[spelled, 256]``: where bytes lead, `DEAD` or `UNKNOWN`. In the first row nothing is ever known. The
        #: system gives memory for rows as they are written.
        self.following = np.empty((MOST_SPELLED + 2, 256), np.int32)
        self.following[:2] = [[UNKNOWN], [DEAD]]
        #: ``int32[configurations]``: which of these rows is a configuration's.
        self.spelled_in = np.zeros(_FEW, np.int32)
        self.spelled_in[ENDED] = 1
        self._spelled = 2
        self._free_spelled: list[int] = []  # rows that nothing has
        self._left: dict[int, int] = {}  # how many tokens have led on from configurations that are not spelled
        #: ``int64[slots]``, ``int32[slots]``: where tokens lead; a hash table, see `kernels.token_slot`.
        self.keys = np.full(_FEW_TOKENS, -1, np.int64)
        self.values = np.zeros(_FEW_TOKENS, np.int32)
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._machines) - len(self._free)

    # -- configurations --------------------------------------------------------------------------------

    def number(self, machine: Machine, config: Config) -> int:
        """The number of a machine's configuration."""
        numbers = self._numbers.get(id(machine))
        if numbers is None:
            numbers = self._numbers[id(machine)] = {}
        found = numbers.get(config)
        if found is None:
            found = numbers[config] = self._new(machine, config)
        return found

    def _new(self, machine: Machine, config: Config) -> int:
        if self._free:
            number = self._free.pop()
            self._machines[number], self._configs[number] = machine, config
        else:
            number = len(self._machines)
            self._machines.append(machine)
            self._configs.append(config)
            if number == len(self.row_of):
                self.row_of = np.pad(self.row_of, (0, number), constant_values=UNKNOWN)
                self.used_at = np.pad(self.used_at, (0, number))
                self.spelled_in = np.pad(self.spelled_in, (0, number))
        self.used_at[number] = self.now
        return number

    def pair(self, number: int) -> tuple[Machine, Config] | None:
        """What a number stands for; None for a text that has ended or has no definition."""
        machine = self._machines[number]
        return None if machine is None else (machine, self._configs[number])

    def is_accepting(self, number: int) -> bool:
        """Whether the text is complete there; it always is without a definition."""
        machine = self._machines[number]
        return machine is None or machine.is_accepting(self._configs[number])

    # -- transitions -----------------------------------------------------------------------------------

    def find_targets(self, pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], StructgenError]:
        """Remember where tokens lead, by configuration and token. Returns what machines raised."""
        errors: dict[tuple[int, int], StructgenError] = {}
        taken: list[int] = []
        for number, token in pairs:
            try:
                target = self._target(number, token)
            except StructgenError as error:
                errors[number, token] = error
                continue
            if target != UNKNOWN:
                taken += number, token, target
        self._remember(np.array(taken, np.int64).reshape(-1, 3))
        return errors

    def _target(self, number: int, token: int) -> int:
        """Where a token leads, `DEAD` where it is refused; `UNKNOWN` where its bytes are remembered now."""
        machine, config = self._machines[number], self._configs[number]
        if machine is None:  # the text has ended
            return ENDED if token in self.vocabulary.eos_ids else DEAD
        data = self._bytes[self._bounds[token] : self._bounds[token + 1]]
        if data and self._is_spelled(machine, config, number) and self._spell_out(machine, number, data):
            return UNKNOWN
        after = machine.advance(config, token)
        if after is not None:
            return self.number(machine, after)
        ends = token in self.vocabulary.eos_ids and machine.is_accepting(config)
        return ENDED if ends else DEAD

    def _is_spelled(self, machine: Machine, config: Config, number: int) -> bool:
        """Whether a configuration has transitions by byte. It gets them with its eighth token: few have so many."""
        if self.spelled_in[number]:
            return True
        taken = self._left.get(number, 0) + 1
        if taken < _SPELLED_FROM:
            self._left[number] = taken
            return False
        if machine.repeats(config):
            self._left.pop(number, None)
            self._spell(number)
        return bool(self.spelled_in[number])

    def _spell(self, number: int) -> None:
        """Give a configuration a row of transitions by byte, while there are any; `make_room` sees to that."""
        if self._free_spelled:
            row = self._free_spelled.pop()
        elif self._spelled < len(self.following):
            row = self._spelled
            self._spelled += 1
        else:
            return
        self.following[row] = UNKNOWN
        self.spelled_in[number] = row

    def _spell_out(self, machine: Machine, number: int, data: bytes) -> bool:
        """Follow a token byte by byte; False where that comes to a configuration that isn't worth it."""
        for byte in data:
            spelled = int(self.spelled_in[number])
            target = int(self.following[spelled, byte])
            if target == UNKNOWN:
                if not spelled:
                    return False
                after = machine.follow_byte(self._configs[number], byte)
                target = DEAD if after is None else self.number(machine, after)
                if after is not None and not self.spelled_in[target] and machine.repeats(after):
                    self._spell(target)
                self.following[spelled, byte] = target
            if target < 0:
                return True
            number = target
        return True

    def _remember(self, taken: NDArray[np.int64]) -> None:
        """Remember configurations, tokens and targets, ``int64[*, 3]``."""
        slots = len(self.keys)
        while 2 * (self._tokens + len(taken)) > slots:
            slots *= 2
        if slots > len(self.keys):
            self._keep_tokens(np.zeros(len(self.row_of), np.bool_), -1, slots)
        self._tokens += kernels.remember_tokens(self.keys, self.values, taken)

    def _keep_tokens(self, gone: NDArray[np.bool_], since: int, slots: int) -> None:
        """Forget transitions by token of what is gone, or that were not taken after a time; see the kernel."""
        keys, values = np.full(slots, -1, np.int64), np.empty(slots, np.int32)
        self._tokens = kernels.keep_tokens(self.keys, self.values, gone, self.used_at, since, keys, values)
        self.keys, self.values = keys, values

    # -- rows ------------------------------------------------------------------------------------------

    def find_rows(self, numbers: NDArray[np.int32]) -> dict[int, StructgenError]:
        """Have the rows of configurations in the store, `row_of` says where. Returns what machines raised."""
        errors: dict[int, StructgenError] = {}
        for number in dict.fromkeys(numbers[self.row_of[numbers] == UNKNOWN].tolist()):
            machine = self._machines[number]
            assert machine is not None, "the rows of these two are never unknown"
            try:
                row = machine.row(self._configs[number])
            except StructgenError as error:
                errors[number] = error
                continue
            self.row_of[number] = self.rows.add(row, keeps=machine.keeps_rows)
        return errors

    def forget_rows(self) -> None:
        """Have rows asked for again, after the store began anew."""
        self.row_of[:] = UNKNOWN
        self.row_of[ENDED], self.row_of[FREE] = EOS_IDS, ALL_IDS

    # -- bounds ----------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Forget transitions where there are too many of them; configurations keep their numbers."""
        if self._spelled - len(self._free_spelled) >= MOST_SPELLED:
            spelled = np.flatnonzero(self.spelled_in)
            self._unspell(self._oldest(spelled[spelled > FREE], _share(MOST_SPELLED)))
        if self._tokens >= MOST_TOKENS:
            taken = self.keys >= 0
            ends = np.where(self.values[taken] >= 0, self.values[taken], self.keys[taken] >> 32)
            ages = np.sort(self.used_at[ends])
            self._keep_tokens(np.zeros(len(self.row_of), np.bool_), int(ages[_share(len(ages)) - 1]), len(self.keys))

    def is_full(self) -> bool:
        """Whether it is time to `forget`; there still is room for one step."""
        return len(self) >= self._most or len(self._numbers) >= self._most_machines

    def forget(self, standing: NDArray[np.int32]) -> None:
        """Let go of configurations that were not come by for longest, and of indexes with all of theirs.

        ``standing`` are those that stay, in any order and as often as one likes. Numbers of others are given anew.
        """
        stays = np.zeros(len(self._machines), np.bool_)
        stays[[ENDED, FREE]] = stays[standing] = True
        live = {id(self._machines[number]) for number in np.flatnonzero(stays).tolist() if number > FREE}
        self._most = max(MOST_CONFIGS, 2 * int(stays.sum()))
        self._most_machines = max(MOST_MACHINES, 2 * len(live))
        stays[self._free] = True
        excess = len(self) - self._most + _share(self._most)
        gone = np.zeros(len(self.row_of), np.bool_)
        gone[self._oldest(np.flatnonzero(~stays), excess)] = True
        excess = len(self._numbers) - self._most_machines + _share(self._most_machines)
        if excess > 0:
            idle = {key: [*numbers.values()] for key, numbers in self._numbers.items() if key not in live}
            for key in sorted(idle, key=lambda key: int(self.used_at[idle[key]].max()))[:excess]:
                gone[idle[key]] = True
        if gone.any():
            self._let_go(gone)

    def _oldest(self, numbers: Array, count: int) -> Array:
        """Those of some configurations that were not come by for longest."""
        if not 0 < count < len(numbers):
            return numbers[: max(count, 0)]
        return numbers[np.argpartition(self.used_at[numbers], count)[:count]]

    def _unspell(self, numbers: Array) -> None:
        rows = self.spelled_in[numbers]
        self._free_spelled += rows[rows > 0].tolist()
        self.spelled_in[numbers] = 0

    def _let_go(self, gone: NDArray[np.bool_]) -> None:
        self.generation += 1
        kernels.forget_targets(self.following, self._spelled, gone)
        self._keep_tokens(gone, -1, len(self.keys))
        numbers = np.flatnonzero(gone)
        self._unspell(numbers)
        self.row_of[numbers] = UNKNOWN
        for number in numbers.tolist():
            key = id(self._machines[number])
            known = self._numbers[key]
            del known[self._configs[number]]
            if not known:
                del self._numbers[key]
            self._machines[number] = self._configs[number] = None
            self._left.pop(number, None)
        self._free += numbers.tolist()


def _share(most: int) -> int:
    """How much goes when a bound is met."""
    return max(most >> 4, 1)
