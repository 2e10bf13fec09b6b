"""`Steppers`: what the rows of a batch move over, by number, and tokens and masks of all rows in one call of a kernel.

A *place* is where a row has come to, one number: its stepper's, and a configuration there. What kernels don't find is
worked out by the row's own stepper, and then they find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import StructgenError
from ...kernels import DEAD, ENDED, FREE, NOT_STEPPED, UNKNOWN
from ...system.arguments import checked_masks
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import Config, Machine, Stepper
from ..rows.bitmask import widened
from ..rows.head import Head
from ..rows.row_store import ALL_IDS, EOS_IDS, RowStore
from .numbered_stepper import NumberedStepper

#: Steppers at most, and twice those that histories stand on; each stays as long as one of its configurations.
MOST_STEPPERS = 1 << 10

#: Places whose row in the store is remembered.
_MOST_PLACES = 1 << 17

_FEW = 1 << 4

#: The configuration of a place.
_CONFIG = (1 << 32) - 1


class Steppers:
    """The steppers of a batch's rows. Not for several threads at once.

    Place `kernels.ENDED` is a text that has ended, `kernels.FREE` one without a definition.

    Parameters
    ----------
    vocabulary:
        The tokens.
    rows:
        Where masks go that a device is to have.
    """

    def __init__(self, vocabulary: Vocabulary, rows: RowStore) -> None:
        self.vocabulary = vocabulary
        self.rows = rows
        self._eos_ids, self._always = np.array(vocabulary.eos_ids, np.int32), rows.always[EOS_IDS:]
        self._heads = np.zeros(kernels.HEADS * _FEW, np.int64)
        # By number; None for that of the two places above, and for numbers that nothing has.
        self._machines: list[Machine | None] = [None]
        self._steppers: list[Stepper | NumberedStepper | None] = [None]
        self._numbers: dict[int, int] = {}  # by the identities of machines' steppers: themselves if they have no store
        self._free: list[int] = []
        self._most = MOST_STEPPERS
        #: How often places were let go of: others may have their numbers since.
        self.generation = 0
        self._row_of: Head  # has numbers in the store by place
        self.forget_rows()
        #: What machines raised instead of masks, by place; until rows move.
        self.failed: dict[int, StructgenError] = {}

    # -- places ----------------------------------------------------------------------------------------

    def start(self, machine: Machine) -> int:
        """The place where texts of a machine begin."""
        number, stepper = self._found(machine, machine.stepper())
        return number << 32 | int(stepper.start)

    def places(self, machine: Machine, configs: Sequence[Config | None]) -> list[int]:
        """The places of configurations of a machine; None is the end of a text."""
        number, stepper = self._found(machine, machine.stepper())
        if isinstance(stepper, NumberedStepper):
            found = [None if config is None else stepper.number(config) for config in configs]
        else:
            gathered, found = machine.gathered(configs)
            number, _ = self._found(machine, gathered)
        return [ENDED if config is None else number << 32 | config for config in found]

    def config(self, place: int) -> tuple[Machine, Config] | None:
        """The machine and the configuration of a place; None for a text that has ended, or is without a definition."""
        number = place >> 32
        machine, stepper, config = self._machines[number], self._steppers[number], place & _CONFIG
        if machine is None or stepper is None:
            return None
        if isinstance(stepper, NumberedStepper):
            return machine, stepper.config(config)
        return machine, machine.place(stepper, config)

    def is_accepting(self, place: int) -> bool:
        """Whether the text so far is complete."""
        stepper = self._steppers[place >> 32]
        return stepper is None or stepper.is_accepting(place & _CONFIG)

    def _found(self, machine: Machine, key: Stepper) -> tuple[int, Stepper | NumberedStepper]:
        """The number of a machine's stepper, and itself, or what stands for one that kernels know nothing of."""
        number = self._numbers.get(id(key))
        if number is None:
            stepper = NumberedStepper(machine, self.vocabulary.eos_ids) if key.head is None else key
            number = self._numbers[id(key)] = self._added(machine, stepper)
        found = self._steppers[number]
        assert found is not None
        return number, found

    def _added(self, machine: Machine, stepper: Stepper | NumberedStepper) -> int:
        head = stepper.head
        assert head is not None
        if self._free:
            number = self._free.pop()
            self._machines[number], self._steppers[number] = machine, stepper
        else:
            number = len(self._steppers)
            self._machines.append(machine)
            self._steppers.append(stepper)
            if kernels.HEADS * number == len(self._heads):
                self._heads = np.concatenate([self._heads, np.zeros_like(self._heads)])
        self._heads[kernels.HEADS * number : kernels.HEADS * (number + 1)] = kernels.address(head), len(head), 0
        return number

    # -- tokens ----------------------------------------------------------------------------------------

    def follow(
        self, tokens: NDArray[np.int32], above: NDArray[np.int32], begins: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], dict[int, StructgenError]]:
        """Where tokens lead, `DEAD` where they are refused, and what machines raised, by index.

        Parameters
        ----------
        tokens, above, begins:
            ``int32[n]``, ``int32[n]``, ``int64[n]``; see `kernels.follow_tokens`.
        """
        reached = np.full(len(tokens), UNKNOWN, np.int64)
        errors: dict[int, StructgenError] = {}
        arguments = tokens, above, begins, self._always[ENDED], reached
        while kernels.follow_tokens(self._heads, *arguments):
            asked = np.flatnonzero((reached < DEAD) & (reached != UNKNOWN))
            before = above[asked]
            places = np.where(before < 0, begins[asked], reached[before])
            with self._stepping(set((places >> 32).tolist())) as held:
                if held and not kernels.follow_tokens(self._heads, *arguments):
                    break
            failed: dict[tuple[int, int], StructgenError | None] = {}
            for index, place, token in zip(asked.tolist(), places.tolist(), tokens[asked].tolist(), strict=True):
                status = int(reached[index])
                if status >= DEAD or (status == NOT_STEPPED and place >> 32 in held):
                    continue
                if (place, token) not in failed:
                    failed[place, token] = self._asked(place, "advance", token)
                if (error := failed[place, token]) is not None:
                    errors[index], reached[index] = error, DEAD
        return reached, errors

    @contextmanager
    def _stepping(self, numbers: Iterable[int]) -> Iterator[set[int]]:
        """Have kernels make steps in those steppers whose locks nobody else holds; which these are."""
        steppers = ((number, self._steppers[number]) for number in numbers)
        locks = [(number, each.lock) for number, each in steppers if each is not None and each.lock is not None]
        locks = [(number, lock) for number, lock in locks if lock.acquire(blocking=False)]
        held = {number for number, _ in locks}
        places = np.array([*held], np.int64) * kernels.HEADS + kernels.H_STEPS
        try:
            self._heads[places] = 1
            yield held
        finally:
            self._heads[places] = 0
            for _, lock in locks:
                lock.release()

    def _asked(self, place: int, name: str, argument: object) -> StructgenError | None:
        """Have a stepper work out what kernels find from now on, by a method's name. Returns what it raised."""
        try:
            getattr(self._steppers[place >> 32], name)(place & _CONFIG, argument)
        except StructgenError as error:
            return error
        return None

    # -- masks -----------------------------------------------------------------------------------------

    def fill(self, places: NDArray[np.int64], bitmask: object) -> dict[int, StructgenError]:
        """Write the masks of places into ``int32[n, words]`` or wider of a caller, whose argument it is.

        Returns what machines raised, by index. Raises `BitmaskError`.
        """
        masks = checked_masks(bitmask, len(places), self.vocabulary.least_words)
        whole = masks if masks.flags.c_contiguous else np.empty(masks.shape, np.int32)
        errors = self.write(places, whole)
        if whole is not masks:
            masks[...] = whole
        return errors

    def write(
        self, places: NDArray[np.int64], masks: NDArray[np.int32], before: NDArray[np.int64] | None = None
    ) -> dict[int, StructgenError]:
        """Write the masks of places to an array. Returns what machines raised, by index: the EOS ids stand there.

        Parameters
        ----------
        places, masks:
            ``int64[n]``, ``int32[n, width]``.
        before:
            ``int64[2, n]``: what is there already, ``shown`` and ``blocks`` of `kernels.write_masks`; -1 for anything.
        """
        shown, blocks = np.full((2, len(places)), -1, np.int64) if before is None else before
        missing = kernels.write_masks(self._heads, places, self._always, self._eos_ids, masks, shown, blocks)
        return self._write_missing(places, masks, shown) if missing else {}

    def _write_missing(
        self, places: NDArray[np.int64], masks: NDArray[np.int32], shown: NDArray[np.int64]
    ) -> dict[int, StructgenError]:
        errors: dict[int, StructgenError] = {}
        written: dict[int, int] = {}
        for index in np.flatnonzero(shown < 0).tolist():
            place = int(places[index])
            same = written.get(place)
            if same is not None:
                masks[index] = masks[same]
            elif (error := self.failed.get(place) or self._asked(place, "write_mask", masks[index])) is None:
                written[place] = index
            else:
                errors[index] = self.failed[place] = error
                masks[index] = widened(self._always[ENDED], masks.shape[1])
                continue
            shown[index] = place
        return errors

    def numbers_of_rows(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int32], dict[int, StructgenError]]:
        """The numbers of masks in the store, ``int32[n]``, and what machines raised, by index."""
        numbers = np.empty(len(places), np.int32)
        if not kernels.find_targets(self._row_of.words, places, numbers):
            return numbers, {}
        if self._row_of.words[kernels.N_TOKENS] > _MOST_PLACES:
            self.forget_rows()
            kernels.find_targets(self._row_of.words, places, numbers)
        missing = np.unique(places[numbers < 0])
        masks = np.empty((len(missing), self.vocabulary.words), np.int32)
        failed = self.write(missing, masks)
        found = [index for index in range(len(missing)) if index not in failed]
        self._have_rows(missing[found], self.rows.add(masks[found]))
        kernels.find_targets(self._row_of.words, places, numbers)
        errors = {index: self.failed[int(places[index])] for index in np.flatnonzero(numbers < 0).tolist()}
        numbers[numbers < 0] = EOS_IDS
        return numbers, errors

    def forget_rows(self) -> None:
        """Have rows added again, after the store began anew."""
        self._row_of = head = Head(kernels.STORE_HEAD)
        head.put(kernels.S_TOKENS, np.full(4 * _FEW, -1, np.int64), np.zeros(4 * _FEW, np.int32))
        self._have_rows(np.array([ENDED, FREE]), np.array([EOS_IDS, ALL_IDS]))

    def _have_rows(self, places: NDArray[np.int64], numbers: NDArray[np.integer]) -> None:
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            while kernels.put_target(self._row_of.words, place >> 32, place & _CONFIG, number):
                self._row_of.lengthen_tokens()

    # -- bounds ----------------------------------------------------------------------------------------

    def are_many(self) -> bool:
        """Whether it is time to let go of those that no place stands on."""
        return len(self._numbers) >= self._most

    def replaced(self) -> list[int]:
        """The steppers in place of which machines have another one by now; all, where there are too many."""
        every = [number for number, stepper in enumerate(self._steppers) if stepper is not None]
        return every if self.are_many() else [*filter(self._is_old, every)]

    def _is_old(self, number: int) -> bool:
        machine, stepper = self._machines[number], self._steppers[number]
        assert machine is not None
        return stepper.is_full() if isinstance(stepper, NumberedStepper) else machine.stepper() is not stepper

    def renew(self, numbers: Iterable[int], standing: NDArray[np.int64]) -> None:
        """Let go of steppers that no place stands on, and have places of the others in those that replace them.

        ``standing`` are all places, ``int64[*]``; those that move are updated.
        """
        owners = standing >> 32
        used, gone = {*np.unique(owners).tolist()}, set[int]()
        for number in numbers:
            if number in used and not self._is_old(number):
                continue
            machine, stepper = self._machines[number], self._steppers[number]
            assert machine is not None
            assert stepper is not None
            gone.add(number)
            del self._numbers[id(machine if isinstance(stepper, NumberedStepper) else stepper)]
            if number in used:
                here = np.flatnonzero(owners == number)
                configs, which = np.unique(standing[here] & _CONFIG, return_inverse=True)
                standing[here] = np.array(self._moved(machine, stepper, configs.tolist()), np.int64)[which]
        for number in gone:
            self._machines[number] = self._steppers[number] = None
            self._heads[kernels.HEADS * number : kernels.HEADS * (number + 1)] = 0
        self._free += gone
        self.forget_rows()
        self.generation += 1
        self._most = max(MOST_STEPPERS, 2 * len(self._numbers))

    def _moved(self, machine: Machine, stepper: Stepper | NumberedStepper, configs: list[int]) -> list[int]:
        """The places that configurations have in the stepper that replaces their own."""
        if isinstance(stepper, NumberedStepper):
            number, newer = self._found(machine, machine)
            assert isinstance(newer, NumberedStepper)
            found: Sequence[Config] = newer.adopt(stepper, configs)
        else:
            replacing, found = machine.renewed(stepper, [*configs])
            number, _ = self._found(machine, replacing)
        return [number << 32 | int(config) for config in found]
