"""`InternedMachine`: the configurations of a lexer and a parser, which are sets of threads, each once.

Nearly always there is one thread. Configurations are interned, so that equal ones are the same object, and remember
where their tokens lead: a step that was made before, by any sequence, is one look-up in a dictionary. (It is the
cache of states of a lazy DFA, as in RE2; when it is full it starts afresh.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ...budget import StepMeter
from ...system.locks import Lock
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import CompiledMachine, Match, followed, ranges_of
from .lexer_threads import Thread

#: Configurations that are remembered, and where tokens lead from them, all together; past that it starts afresh.
MEMO_CONFIGS, MEMO_TARGETS = 1 << 15, 1 << 20

#: Tokens that lead to what is known, between two looks at how much is remembered.
_LOOKS = 1 << 4

#: Configurations that have their targets in one dictionary.
_TOGETHER = 1 << 6

#: Forgotten configurations that are taken apart whenever another one is made.
_PIECES = 4


class Configuration:
    """A set of threads, with what was found out about it. Interned by its machine.

    There are many, and the collector of garbage looks at each object: so one thread has no tuple around it, and some
    configurations have their ``targets`` in one dictionary, where ``offset`` is added to the token.
    """

    __slots__ = ("_all", "_one", "accepting", "dense", "offset", "targets")

    def __init__(self, threads: tuple[Thread, ...], targets: dict[int, Configuration | None], offset: int) -> None:
        self._one = threads[0]
        self._all = threads if len(threads) > 1 else ()
        self.targets, self.offset = targets, offset
        self.accepting: bool | None = None
        self.dense: NDArray[np.int32] | None = None  # the row, while the machine remembers it

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.threads))

    @property
    def threads(self) -> tuple[Thread, ...]:
        """The threads, at least one."""
        return self._all or (self._one,)


class InternedMachine(CompiledMachine):
    """A `structgen.runtime.core.machine.CompiledMachine` over threads.

    Parameters
    ----------
    vocabulary:
        The tokens.
    start:
        The threads before the first byte.
    lock:
        Held while rows are worked out.
    """

    #: Whether a token is more than its bytes: `_over_token` says where it leads.
    _sees_tokens = False

    def __init__(self, vocabulary: Vocabulary, start: tuple[Thread, ...], lock: Lock) -> None:
        self.vocabulary = vocabulary
        self._bytes = vocabulary.bytes
        self._bounds = vocabulary.offsets.data
        self._lock = lock
        self._configs: dict[Thread | tuple[Thread, ...], Configuration] = {}  # by the thread, where it is one
        self._forgotten: dict[Thread | tuple[Thread, ...], Configuration] = {}  # taken apart as others are made
        self._open_targets()
        self._targets = 0  # how many the configurations remember
        self._start = self._config(start)

    @property
    def start(self) -> Configuration:
        """The initial configuration."""
        return self._start

    @property
    @abstractmethod
    def steps(self) -> StepMeter:
        """Counts the work of steps.

        One that goes over the bound changes nothing, and what it found out is remembered.
        """

    # -- following bytes -------------------------------------------------------------------------------

    @abstractmethod
    def _follow(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        """The threads after some bytes, at least one; those that cannot come to an end are left out."""

    def _follow_byte(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """The same after one byte."""
        return self._follow(threads, bytes([byte]))

    @abstractmethod
    def may_end(self, threads: tuple[Thread, ...]) -> bool:
        """Whether the text is complete in some thread."""

    @abstractmethod
    def _candidates(self, threads: tuple[Thread, ...]) -> Iterable[Sequence[int]]:
        """A superset of the bytes that can follow, in classes: all bytes of a class lead to the same threads."""

    def _take(self, threads: tuple[Thread, ...], token_id: int) -> tuple[Thread, ...]:
        """The threads after a token that has no bytes."""
        return ()

    def _over_token(self, threads: tuple[Thread, ...], token_id: int, data: bytes) -> tuple[Thread, ...]:
        """The threads after a token, where it matters where tokens begin and end; ``data`` are its bytes, if any."""
        return self._follow(threads, data) if data else self._take(threads, token_id)

    def _tokens(self, threads: tuple[Thread, ...]) -> tuple[int, ...]:
        """Numbers that tell which tokens may come next by their ids: none where there are none."""
        return ()

    def byte_state(self, config: Configuration) -> tuple[Thread, ...]:
        """Where a configuration is, for `following`."""
        self._make_room()
        return config.threads

    def following(self, byte_state: tuple[Thread, ...]) -> Iterator[tuple[int, tuple[Thread, ...]]]:
        """Each byte that can follow, in no order, and the byte state after it, found as they are asked for."""
        candidates = iter(self._candidates(byte_state))
        while (alike := self.steps.measured(next, candidates, None)) is not None:
            after = self.steps.measured(self._follow_byte, byte_state, alike[0])
            if after:
                for byte in alike:
                    yield byte, after

    def after(self, byte_state: tuple[Thread, ...], byte: int) -> tuple[Thread, ...] | None:
        """The byte state after a byte, None where it can't follow."""
        return self.steps.measured(self._follow_byte, byte_state, byte) or None

    def may_stop(self, byte_state: tuple[Thread, ...]) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token without bytes."""
        return self.steps.measured(self._may_stop, byte_state)

    def _may_stop(self, byte_state: tuple[Thread, ...]) -> bool:
        return self.may_end(byte_state) or bool(self._tokens(byte_state))

    def advance(self, config: Configuration, token_id: int) -> Configuration | None:
        """Follow a token; ``None`` where its bytes die, or it has none and the definition does not name it."""
        try:
            return config.targets[config.offset + token_id]
        except KeyError:
            pass
        data = self._bytes[self._bounds[token_id] : self._bounds[token_id + 1]]
        self._targets += 1
        if not self._targets % _LOOKS:
            self._make_room()
        if self._sees_tokens:
            threads = self.steps.measured(self._over_token, config.threads, token_id, data)
        elif data:
            threads = self.steps.measured(self._follow, config.threads, data)
        else:
            threads = self.steps.measured(self._take, config.threads, token_id)
        target = self._config(threads) if threads else None
        config.targets[config.offset + token_id] = target
        return target

    def follow_byte(self, config: Configuration, byte: int) -> Configuration | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        self._make_room()
        threads = self.after(config.threads, byte)
        return self._config(threads) if threads is not None else None

    def reach(self, config: Configuration, data: bytes) -> tuple[int, Configuration]:
        """How many bytes texts go on with, of some, and where these lead."""
        consumed, threads = self._followed(config.threads, data)
        return consumed, self._config(threads)

    def _followed(self, threads: tuple[Thread, ...], data: bytes) -> tuple[int, tuple[Thread, ...]]:
        """The same of threads."""

        def follow(here: tuple[Thread, ...], piece: bytes) -> tuple[Thread, ...]:
            self._make_room()
            return self.steps.measured(self._follow, here, piece)

        return followed(follow, threads, data)

    def _config(self, threads: tuple[Thread, ...]) -> Configuration:
        key = threads[0] if len(threads) == 1 else threads
        config = self._configs.get(key)
        if config is None:
            if len(self._configs) >= MEMO_CONFIGS:
                self._forget()
            config = self._configs[key] = self._made(threads)
            if self._forgotten:
                self._take_apart(self._forgotten, _PIECES)
        return config

    def _made(self, threads: tuple[Thread, ...]) -> Configuration:
        while True:
            targets, offsets = self._page
            try:
                return Configuration(threads, targets, offsets.pop())
            except IndexError:
                self._open_targets()

    def _open_targets(self) -> None:
        """Have a dictionary for the targets of configurations to come, and what each adds to a token there."""
        targets: dict[int, Configuration | None] = {}
        size = self.vocabulary.size
        self._page = targets, [*range(0, _TOGETHER * size, size)]

    def _make_room(self) -> None:
        """Forget what is remembered once it has reached its bound."""
        if self._is_full():
            self._forget()

    def _is_full(self) -> bool:
        """Whether too much is remembered."""
        return len(self._configs) >= MEMO_CONFIGS or self._targets >= MEMO_TARGETS

    def _forget(self) -> None:
        """Let go of all configurations but the first; guides keep those that they are at.

        So nothing that stays may lead to them. To free them takes as long as hundreds of steps, which share it.
        """
        before, self._forgotten = self._forgotten, self._configs
        self._take_apart(before, len(before))
        self._start.targets = {}
        self._configs, self._targets = {}, 0
        self._open_targets()
        self._configs[self._start._all or self._start._one] = self._start

    def _take_apart(self, forgotten: dict[Thread | tuple[Thread, ...], Configuration], count: int) -> None:
        """Have so many forgotten configurations lead nowhere. Other threads may do the same."""
        with suppress(KeyError):
            for _ in range(count):
                _, known = forgotten.popitem()
                if known is not self._start:
                    known.targets = {}

    def is_accepting(self, config: Configuration) -> bool:
        """Whether the text so far is complete."""
        if config.accepting is None:
            config.accepting = self.steps.measured(self.may_end, config.threads)
        return config.accepting

    def match(self, data: bytes) -> Match:
        """Follow a text as far as it goes. (Tokens without bytes are no part of a text.)"""
        consumed, threads = self._followed(self._start.threads, data)
        can_end = self.steps.measured(self.may_end, threads)
        expected = ranges_of(sorted(byte for byte, _ in self.following(threads)))
        return Match(consumed, can_end and consumed == len(data), can_end, expected)

    @property
    def slow_steps(self) -> int:
        """How often working out rows gave way to others that waited."""
        return self._lock.passed_on
