"""The interface between an index, with all that moves over it, and the kind of automaton behind it.

A machine is shared and immutable to its users; a configuration is one sequence's place in it: a number, for a grammar
an object (`structgen.runtime.grammar.interned_machine`). Guides only keep configurations and hand them back, so that
rollback and fork cost nothing whatever the machine is.

What guides and batches move over is a `Machine`; what stands behind an index, and has rows to fill in and to keep,
a `CompiledMachine`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...errors import InternalError, UnsupportedError
from ...progress import Progress, silent
from ...system.locks import Lock
from ...system.types import JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary

T = TypeVar("T")
State = TypeVar("State")

_PACKED = (4,)  # the strides of a contiguous ``int32[n]``

#: Bytes of a text that are followed in one step.
_BYTES = 1 << 8

#: A configuration, which can be hashed, and where one is between two bytes: whatever the machine makes of them.
Config: TypeAlias = Any
ByteState: TypeAlias = Config


class SharedRows(Protocol):
    """Where rows that belong to a vocabulary are kept, by name."""

    def fetch(self, name: bytes, read: Callable[[memoryview], T]) -> T | None:
        """What ``read`` makes of what is kept; None where nothing is, or nothing sound."""

    def expect(self, names: Collection[bytes]) -> None:
        """Have at hand what will be fetched: it is far away, and fetching does not wait for that."""

    def missing(self, names: Collection[bytes]) -> set[bytes]:
        """The names under which nothing is kept."""

    def are_brought_along(self) -> bool:
        """Whether what is not kept yet is to be part of what uses it: each value of its own would cost too much."""

    def keep(self, name: bytes, value: bytes) -> None:
        """Keep a new one."""


class StepFunctions(NamedTuple):
    """What a guide calls for each token. Functions of the stepper's class, or kernels, which take fewer calls.

    Parameters
    ----------
    owner:
        The first argument of both: the stepper, or where kernels find its tables.
    advance:
        Takes a configuration and a token, and returns where that leads; of None and numbers below 0 `Stepper.missed`
        says more.
    write_mask:
        Takes a configuration and a bitmask. What it returns is for `Stepper.write_slowly`, unless it is None or 0.
    """

    owner: object
    advance: Callable[[Any, Config, int], Config | None]
    write_mask: Callable[[Any, Config, NDArray[np.int32]], int | None]


class Stepper(Protocol):
    """What a guide moves over: steps and masks. A configuration belongs to the stepper that it is from."""

    @property
    def functions(self) -> StepFunctions:
        """What does it as fast as can be."""
        return StepFunctions(self, type(self).advance, type(self).write_mask)

    def missed(self, config: Config, token_id: int, found: int) -> Config | None:
        """Where a token leads, ``None`` where it is not allowed, if `StepFunctions.advance` has found that below 0."""
        return None

    def write_slowly(self, config: Config, bitmask: NDArray[np.int32], status: int) -> None:
        """Write a mask that `StepFunctions.write_mask` has not written."""
        raise InternalError(f"there is no mask ({status})")

    @property
    def head(self) -> NDArray[np.int64] | None:
        """Where kernels of batches find its tables (`structgen.kernels.store.sequences`), if configurations are numbers
        of 32 bits there.
        """
        return None

    @property
    def lock(self) -> Lock | None:
        """What is held while kernels make steps that nobody made before; None where they only find such."""
        return None

    @property
    def start(self) -> Config:
        """The configuration before the first token."""
        ...

    def advance(self, config: Config, token_id: int) -> Config | None:
        """Where a token leads, ``None`` where it is not allowed.

        That is where its bytes die, or it has none, as EOS ids, and the definition does not name it.
        """
        ...

    def row(self, config: Config) -> NDArray[np.int32]:
        """The bitmask of a configuration, EOS ids included: a read-only ``int32[words]``."""
        ...

    def write_mask(self, config: Config, bitmask: NDArray[np.int32]) -> None:
        """Write the bitmask of a configuration to a contiguous ``int32[*]``, as wide as spelled tokens need, or more.

        What is wider than the bitmask becomes zero. Raises `TypeError` for any other array.
        """
        row = self.row(config)
        if bitmask.strides != _PACKED or bitmask.dtype != row.dtype:
            raise TypeError("a bitmask is written to a contiguous int32[*]")
        bitmask[: len(row)] = row[: len(bitmask)]
        bitmask[len(row) :] = 0

    def is_accepting(self, config: Config) -> bool:
        """Whether the text so far is complete."""
        ...


class Machine(Stepper, Protocol):
    """One compiled definition over one vocabulary."""

    def stepper(self) -> Stepper:
        """What a guide that begins now moves over: the machine itself, if nothing else is said."""
        return self

    def place(self, stepper: Stepper, config: Config) -> Config:
        """A configuration of one of its steppers as the machine's own."""
        return config

    def gathered(self, places: Sequence[Config | None]) -> tuple[Stepper, list[Config | None]]:
        """The inverse, in the stepper that guides begin with; None stays."""
        return self, [*places]

    def renewed(self, stepper: Stepper, configs: list[Config | None]) -> tuple[Stepper, list[Config | None]]:
        """The stepper that guides begin with, and configurations of another one there."""
        return stepper, configs

    def follow_byte(self, config: Config, byte: int) -> Config | None:
        """Where a byte leads, ``None`` where no text goes on with it."""
        ...

    def byte_state(self, config: Config) -> ByteState:
        """Where a configuration is between two bytes, for `following` and `may_stop`."""
        ...

    def following(self, byte_state: ByteState) -> Iterator[tuple[int, ByteState]]:
        """Each byte that can follow, in no order, and the byte state after it, found as they are asked for."""
        ...

    def after(self, byte_state: ByteState, byte: int) -> ByteState | None:
        """The byte state after a byte, None where it can't follow."""
        ...

    def may_stop(self, byte_state: ByteState) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token without bytes."""
        ...

    def temperature(self, config: Config) -> float | None:
        """The temperature that the definition says the next token is sampled at; None where it says nothing."""
        return None


class Captured(NamedTuple):
    """A part of a text: the name under which it is captured, and its bytes, from the first to behind the last."""

    name: str
    start: int
    end: int


class Distances(Protocol):
    """Distances of one machine's configurations. Safe to use from several threads."""

    def distance(self, config: Config) -> int:
        """How many tokens complete a text, the EOS token included."""
        ...

    def farthest(self, config: Config) -> int:
        """The largest distance that a single token leads to, or more."""
        ...

    def near(self, config: Config, left: int) -> int:
        """A number of tokens left above which every token leaves enough of them to complete the text."""
        ...

    def row(self, config: Config, most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``, without EOS ids; read-only ``int32[words]``."""
        ...


@dataclass(frozen=True)
class Match:
    """How far a text goes along with a definition.

    Parameters
    ----------
    consumed:
        Bytes of the longest prefix that some complete text continues.
    accepted:
        Whether the whole text is complete.
    can_end:
        Whether the text could end after ``consumed`` bytes.
    expected:
        Inclusive ranges of bytes that can follow there.
    """

    consumed: int
    accepted: bool
    can_end: bool
    expected: tuple[tuple[int, int], ...]


#: A state with a count or a set, 0 for none.
Symbol: TypeAlias = tuple[int, int]


class Productions(NamedTuple):
    """What takes a symbol off the stack: the productions of a grammar in Greibach's form.

    Parameters
    ----------
    ends:
        Whether nothing has to.
    moves:
        The bytes that a move takes, any one of them, and the symbols that take the place of this one, the first of
        them lowest. Without bytes: one of some whole tokens.
    """

    ends: bool
    moves: Sequence[tuple[bytes, tuple[Symbol, ...]]]


class LexemeAutomaton(NamedTuple):
    """A finite automaton over bytes for the pieces of texts: each piece begins in a start and ends in an end.

    Parameters
    ----------
    class_of:
        ``uint8[256]``: the class of each byte.
    table:
        ``int32[states, classes]``: the next state, -1 for none.
    starts, ends:
        States, ``int32[*]``.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]


class CompiledMachine(Machine, Protocol):
    """The machine behind an index. Machines inherit from it, and what does not differ from kind to kind.

    Safe to use from several threads.
    """

    #: The tokens, the number of the automaton's states, and the rows, each once.
    vocabulary: Vocabulary
    states: int
    pool: Sized

    #: The automaton as it is stored, of a class for each engine, for pictures of it; None where there is none.
    tables: Any = None

    _told: Callable[[], None] | None = None

    def tell(self, told: Callable[[], None]) -> None:
        """Call ``told`` from now on when a row was worked out that was not known; no lock is held then."""
        self._told = told

    def match(self, data: bytes) -> Match:
        """Follow a text byte by byte, as far as it goes. (Tokens without bytes are no part of a text.)"""
        ...

    def reach(self, config: Config, data: bytes) -> tuple[int, Config]:
        """How many bytes texts go on with, of some, and where these lead."""
        for consumed, byte in enumerate(data):
            after = self.follow_byte(config, byte)
            if after is None:
                return consumed, config
            config = after
        return len(data), config

    def distances(self) -> Distances:
        """How far configurations are from a complete text. Raises `UnsupportedError` where no bound is known."""
        what = "max_tokens is not supported for this kind of definition"
        raise UnsupportedError(what, remedy="Leave max_tokens out.")

    def completion(self, config: Config) -> bytes | None:
        """Bytes that complete a text, found without any token; None where this kind of machine knows none.

        Raises `BudgetExceededError` where finding them takes too long.
        """
        return None

    def names_tokens(self) -> bool:
        """Whether a definition names tokens, which are more than their bytes then, if they have any."""
        return False

    def token_sets(self, config: Config) -> list[tuple[frozenset[int], bool]]:
        """The sets of tokens that a definition takes by their ids there: ids, and whether all others are meant."""
        return []

    def captured(self, tokens: Sequence[tuple[int, bytes]]) -> tuple[Captured, ...]:
        """What is captured of an accepted text, by its tokens with their bytes; an id of -1 is bytes alone."""
        return ()

    def keywords(self, byte_state: ByteState, known: Sequence[bytes] = ()) -> Iterator[bytes]:
        """Words that may be meant to come right behind a byte state, which its bytes don't tell from names.

        Those that are ``known`` to follow may be left out.
        """
        return iter(())

    def letters(self, byte_state: ByteState, most: int) -> tuple[bytes, ByteState]:
        """Bytes that must follow a byte state, as many as are told at a glance, and what is behind them.

        There are ``most`` at most. One byte stands for two that lead to the same.
        """
        return b"", byte_state

    def productions(self, symbol: Symbol | None = None) -> tuple[Symbol, Productions]:
        """A symbol, by default the first one on the stack, and its productions.

        Raises `UnsupportedError` for machines that are no automata, and where tokens are counted.
        """
        raise UnsupportedError("a parser has no productions over bytes")

    def loop(self, state: int) -> tuple[int, int, int] | None:
        """The loop whose count a state depends on: its number, and how often it goes round at least and at most."""
        return None

    def lexemes(self) -> LexemeAutomaton | None:
        """What texts are put together of, in some order; None where that is not known, or whole tokens are read."""
        return None

    def is_unambiguous(self, meter: Meter) -> bool:
        """Whether it is seen that productions derive each text once."""
        return False

    # -- rows ------------------------------------------------------------------------------------------

    @property
    def known_rows(self) -> int:
        """How many partial masks have been worked out so far."""
        return 0

    @property
    def slow_steps(self) -> int:
        """How often working out rows gave way to others that waited."""
        return 0

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out."""
        ...

    def is_filled(self) -> bool:
        """Whether there is nothing left for `fill` to do."""
        return self.is_complete()

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out the missing rows, but for those that would take too long, on so many ``threads`` at most."""
        return

    def share_rows(self, kept: SharedRows) -> None:
        """Look there for rows that belong to the vocabulary, and keep new ones there."""
        return

    def keep_shared_rows(self) -> None:
        """Keep there whatever is used, also what was at hand from another index or another cache."""
        return

    # -- devices and files -----------------------------------------------------------------------------

    def stored_rows(self) -> Iterable[NDArray[np.int32]]:
        """The rows of single configurations that are there already, without those that are put together."""
        return ()

    def flat(self) -> Any:
        """The machine itself if it is an `AutomatonMachine`, which a device can follow; None if it has a stack."""
        return None

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section, beyond what every index has."""
        return {}

    def to_sections(self, *, self_contained: bool = False) -> Sections:
        """The sections of the file format (see docs/internals/format.md); ``self_contained`` includes shared rows."""
        return {}


#: Reads what `CompiledMachine.to_meta` and `to_sections` wrote. Raises `FormatError`, which names the file.
Reader: TypeAlias = Callable[[JsonMap, Sections, Vocabulary, str], CompiledMachine]


def followed(follow: Callable[[State, bytes], State | None], state: State, data: bytes) -> tuple[int, State]:
    """How many of some bytes can be followed, and the state behind them.

    They are followed in pieces, each a step, and in halves of the one from which ``follow`` returns nothing.
    """
    consumed, size = 0, _BYTES
    while consumed < len(data) and size:
        piece = data[consumed : consumed + size]
        if after := follow(state, piece):
            state = after
            consumed += len(piece)
        else:
            size = min(size, len(piece)) // 2
    return consumed, state


def ranges_of(members: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Numbers, ascending, as inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for member in members:
        if ranges and ranges[-1][1] == member - 1:
            ranges[-1] = ranges[-1][0], member
        else:
            ranges.append((member, member))
    return tuple(ranges)
