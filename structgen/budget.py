"""What a definition may cost. Definitions come from strangers, so every compile runs under a budget."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, ParamSpec, Protocol, TypeVar

from .errors import ArgumentError, BudgetExceededError, CancelledError
from .system import garbage
from .system.clock import seconds as _seconds

_Item = TypeVar("_Item")
_Arguments = ParamSpec("_Arguments")

#: Seconds for each object that a compile makes, to look through it and to free it: the collector of garbage rests
#: meanwhile (see `structgen.system.garbage`), and sets to work when the compile ends.
_COLLECTING = 5e-7

#: Bytes for each object that a compile makes and that still lives: of a tuple, list, dict, set or instance, with what
#: is in it, on average.
_BYTES_OF_OBJECT = 140

#: Items of a loop between two looks at the meter.
_ITEMS = 16

#: Units of work of one step, less than a second. A step that was made before takes none.
MOST_STEP_WORK = 1 << 20


@dataclass(frozen=True)
class Budget:
    """Upper bounds on one compile. Exceeding any of them raises `BudgetExceededError`.

    The defaults are for your own definitions. `Budget.request` has tighter bounds, for definitions that strangers
    send to a server.

    Parameters
    ----------
    states:
        Automaton states of the largest automaton built on the way. Default: 200,000.
    memory:
        Bytes held while compiling, token rows included. The size of Python objects is estimated from their number;
        compiles that run at the same time in several threads are assumed to create equally many. Default: 1 GiB.
    seconds:
        Wall-clock seconds for one compile. Default: 20.
    depth:
        Nesting depth of groups in a definition. Default: 1,000.
    bounded_steps:
        Whether to bound the work of each step of a grammar as well. With True, a grammar whose steps could need
        more than the budget is refused when it is compiled.
    """

    #: For a definition that comes with a request.
    request: ClassVar[Budget]

    states: int = 200_000
    memory: int = 1 << 30
    seconds: float = 20.0
    depth: int = 1_000
    bounded_steps: bool = False

    def __post_init__(self) -> None:
        for name in ("states", "memory", "seconds", "depth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ArgumentError(f"Budget.{name} is a positive number, got {value!r}")


Budget.request = Budget(states=100_000, memory=256 << 20, seconds=2.0, depth=500, bounded_steps=True)


class Cancel(Protocol):
    """An event that ends a compile, such as a `threading.Event`. Any thread may set it."""

    def is_set(self) -> bool:
        """Whether nobody waits for the compile any more. Called many times, so it must be fast."""
        ...


class Meter:
    """Measures one compile against its `Budget`. Made when the compile starts.

    Every check is a look at the whole meter: the time, the memory of the objects that were made since, and whether
    the compile was cancelled.

    Parameters
    ----------
    budget:
        What the compile may cost.
    clock:
        Returns seconds; those since the meter was made count.
    cancel:
        The event that ends the compile; None where nothing does.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float] = _seconds, *, cancel: Cancel | None = None) -> None:
        self.budget = budget
        #: The most states of an automaton: the budget's, and those that `grant` added.
        self.states = budget.states
        self._clock = clock
        self._is_cancelled = None if cancel is None else cancel.is_set
        self._deadline = clock() + budget.seconds
        self._held = 0
        self._before = gc.get_count()[0]

    def begin_again(self) -> None:
        """Measure another piece of work that the same budget is for; what is held is held still."""
        self._deadline = self._clock() + self.budget.seconds
        self._before = gc.get_count()[0]

    @property
    def is_cancellable(self) -> bool:
        """Whether an event can end the compile."""
        return self._is_cancelled is not None

    def is_cancelled(self) -> bool:
        """Whether its event is set."""
        return self._is_cancelled is not None and self._is_cancelled()

    def complete(self) -> None:
        """End the compile: its event stops nothing that its meter still measures."""
        self._is_cancelled = None

    def work(self, per_second: int) -> int:
        """Units of work that fit into the time left, at so many a second."""
        return max(0, int((self._deadline - self._clock() - self._objects() * _COLLECTING) * per_second))

    def _objects(self) -> int:
        """Objects made since the compile began that still live, but for those of compiles beside it."""
        made = gc.get_count()[0] - self._before
        if made < 0:  # somebody has collected garbage
            self._before += made
            return 0
        threads = len(garbage.PAUSES)
        return made // threads if threads > 1 else made

    def out_of_time(self, doing: str) -> BudgetExceededError:
        """The error for work that would not be done in time."""
        return BudgetExceededError(
            f"compiling takes longer than {self.budget.seconds:g} seconds",
            where=doing,
            remedy="Simplify the definition, or pass a larger budget=Budget(seconds=...).",
        )

    def check_time(self, doing: str) -> None:
        """Raise `BudgetExceededError` when time or memory is up; ``doing`` names the phase for the message.

        As every check, raise `CancelledError` when the compile was cancelled.
        """
        self.check_memory(0, doing)

    def each(self, items: Iterable[_Item], doing: str, every: int = _ITEMS) -> Iterator[_Item]:
        """The items, for a loop of short turns; at the first and at ``every`` so many, `check_time`."""
        for number, item in enumerate(items):
            if not number % every:
                self.check_time(doing)
            yield item

    def grant(self, states: int) -> None:
        """Allow for states of what a definition spells out letter by letter: the values of an enumeration, names.

        There are no more of them than the definition is long, so memory and time bound them. The budget's states are
        for what grows faster than the definition.
        """
        self.states += states

    def check_states(self, states: int, doing: str, remedy: str = "Shrink its counted repeats") -> None:
        """Raise `BudgetExceededError` when an automaton has, or would have, more states than granted."""
        if states > self.states:
            raise self.too_many_states(states, doing, remedy)
        self.check_memory(0, doing)

    def too_many_states(
        self, states: int, doing: str, remedy: str = "Shrink its counted repeats"
    ) -> BudgetExceededError:
        """The error for an automaton of more states than granted."""
        return BudgetExceededError(
            f"the definition needs at least {_written(states)} automaton states, the budget is {self.states:,}",
            where=doing,
            remedy=f"{remedy}, or pass a larger budget=Budget(states=...).",
        )

    def check_memory(self, nbytes: int, doing: str) -> None:
        """Raise `BudgetExceededError` when so many bytes beside what is held are more than granted."""
        if self._is_cancelled is not None and self._is_cancelled():
            raise CancelledError("the compile was cancelled", where=doing)
        objects = gc.get_count()[0] - self._before
        if objects < 0 or len(garbage.PAUSES) > 1:
            objects = self._objects()
        if self._deadline - self._clock() < objects * _COLLECTING:
            raise self.out_of_time(doing)
        needed = self._held + nbytes + objects * _BYTES_OF_OBJECT
        if needed > self.budget.memory:
            raise BudgetExceededError(
                f"the definition needs at least {_written(needed)} bytes, the budget is {self.budget.memory:,}",
                where=doing,
                remedy="Simplify the definition, or pass a larger budget=Budget(memory=...).",
            )

    def room(self, nbytes: int) -> int:
        """How many bytes there is room for beside so many."""
        return self.budget.memory - self._held - nbytes - self._objects() * _BYTES_OF_OBJECT

    def hold(self, nbytes: int, doing: str) -> None:
        """Count bytes that something holds until `let_go`. Raises as `check_memory` does."""
        self.check_memory(nbytes, doing)
        self._held += nbytes

    def let_go(self, nbytes: int) -> None:
        """Bytes that `hold` counted are free again."""
        self._held -= nbytes


class StepMeter(threading.local):
    """Counts the work of one step over a machine, so that no text of a stranger's definition keeps a server busy.

    Only the work of what is `measured` is bounded; each thread counts its own. A unit is a microsecond or less: a
    stack that a reduction goes through, a thread that is moved over a byte.
    """

    _left = 1 << 62

    def measured(self, find: Callable[_Arguments, _Item], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Item:
        """What ``find`` finds: one step, be it over a token, a byte or a piece of a text, or for a mask.

        Raises `BudgetExceededError`. Within another step it has as much work as one by itself.
        """
        before, self._left = self._left, MOST_STEP_WORK
        try:
            return find(*args, **kwargs)
        finally:
            self._left = before

    def spend(self, work: int) -> None:
        """Count units of work. Raises `BudgetExceededError` when the step has none left."""
        self._left -= work
        if self._left < 0:
            raise BudgetExceededError(
                f"the text can be read in so many ways that a step takes more than {MOST_STEP_WORK:,} units of work",
                remedy="Have the definition's alternatives differ in how they begin, or keep texts shorter.",
            )


def _written(number: int) -> str:
    """A number for a message. Counts of counts have more digits than Python writes."""
    return f"{number:,}" if number < 1 << 64 else f"2^{number.bit_length() - 1}"


@dataclass(frozen=True)
class Unremembered:
    """A meter as an argument of a function with an `lru_cache`: all of them are equal there."""

    meter: Meter = field(compare=False)
