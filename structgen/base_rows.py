"""Base rows: what JSON Schemas of one vocabulary have in common, made once, and kept in a cache.

They are the rows inside a string: of any string, of one with a format, of one whose length is bounded. The first
compile that needs them reads them from the cache. Where they are not there, a thread makes them meanwhile.

*The thread* is for work that nobody waits for. It rests three times as long as it works, about once a millisecond, at
each look at the clock of its `Meter`; so whoever wants the interpreter gets it then, and waits for such a piece at
most (the automaton of a format takes up to 15 ms of Python, in which the interpreter changes threads as it always
does). It begins `_DELAY` after the compile that asked for it, lets compiles go first between two definitions, and
calls no kernel that the compile did not have ready.

At the end of the interpreter it stops at its next look at the clock (`structgen.system.background`), and what it has
made is kept, for the next process to go on from. A child of a fork does not make what its parent is making: it looks
for it at each compile.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from .budget import Budget, Meter
from .building.stacks import stack_machine
from .definitions import JsonSchema
from .definitions.values import STYLES
from .errors import StructgenError
from .index_store import fetch_base_rows, keep_base_rows
from .progress import Progress, silent
from .runtime.pushdown.shared_masks import SharedMasks
from .system.background import Background
from .system.garbage import PAUSES
from .system.locks import Lock, Rank
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from .cache.cache import Cache

#: ``0``: nothing is made in the background, and nothing is looked for in the default folder.
ENVIRONMENT_VARIABLE = "STRUCTGEN_BASE_ROWS"

#: Seconds before the thread begins, and between looks at whether a compile goes on.
_DELAY, _BETWEEN = 0.2, 0.02

#: Seconds of work between two rests, and how much longer than the work a rest is.
_PIECE, _REST = 0.0005, 3.0

#: For what nobody waits for.
_BUDGET = Budget(seconds=1e6)

#: No state of a vocabulary with fewer trie nodes takes long to walk.
_FEWEST_NODES = 20_000


def samples() -> list[JsonSchema]:
    """Schemas that between them have the strings that are shared, those that most schemas have first.

    The arguments of tool styles come last: strings in tags, and JSON's that do not hold their closing tags.
    """
    from .compiler.json_schema.strings.formats import SHAREABLE_FORMATS
    from .compiler.json_schema.strings.lengths import COUNT_FROM
    from .tools.styles import SHIPPED

    asserted: list[dict[str, object]] = [{"maxLength": COUNT_FROM}, {"maxLength": 1000}, {"minLength": 1000}]
    asserted += [{"minLength": 1} | each for each in asserted[:2]]
    asserted += [{"format": name} for name in sorted(SHAREABLE_FORMATS)]
    strings = [JsonSchema({"type": "string"} | each) for each in asserted]
    texts: dict[str, object] = {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}
    members = {"type": "object", "properties": texts, "additionalProperties": False}
    styles = dict.fromkeys((each.arguments, each.argument_excludes) for each in SHIPPED)
    tagged = [JsonSchema(members, style=name, excludes=excludes) for name, excludes in styles if name in STYLES[1:]]
    return [JsonSchema({}), *strings, *tagged]


class _Provision:
    """Where the base rows of a vocabulary were looked for, and who makes them."""

    def __init__(self) -> None:
        self.looked: set[tuple[str | None, bool]] = set()  # folders, and whether they were to be made
        self.maker: _Maker | None = None  # in a child of a fork it may be the parent's


_provisions: weakref.WeakKeyDictionary[Vocabulary, _Provision] = weakref.WeakKeyDictionary()
_lock = Lock(Rank.BASE_ROWS)


def are_worthwhile(vocabulary: Vocabulary) -> bool:
    """Whether base rows of a vocabulary are to be made without being asked for: by its size, and the environment."""
    return os.environ.get(ENVIRONMENT_VARIABLE) != "0" and len(vocabulary.trie.byte) >= _FEWEST_NODES


def provide(vocabulary: Vocabulary, cache: Cache | None, wanted: bool) -> None:
    """Take the base rows of a vocabulary from a cache; have them made where they are not there.

    Parameters
    ----------
    cache:
        None for the default folder.
    wanted:
        Whether to look into the default folder, and to have them made.
    """
    wanted = wanted and os.environ.get(ENVIRONMENT_VARIABLE) != "0"
    looked = None if cache is None else str(cache.directory), wanted
    here = _provisions.get(vocabulary)
    if here is not None and looked in here.looked and here.maker is None:
        return
    with _lock:
        here = _provisions.setdefault(vocabulary, _Provision())
        store = cache or (_default_cache() if wanted else None)
        is_new, is_made = looked not in here.looked, here.maker is not None and here.maker.is_alive()
        if store is None or (is_made and not is_new) or len(vocabulary.trie.byte) < _FEWEST_NODES:
            return
        here.looked.add(looked)
        found = fetch_base_rows(store, vocabulary)
        if found is not None and found.is_complete:
            here.maker = None
        elif wanted and here.maker is None:
            maker = _Maker(vocabulary, store)
            if maker.begin():
                here.maker = maker


@cache
def _default_cache() -> Cache:
    from .cache.cache import Cache

    return Cache()


def make_now(vocabulary: Vocabulary, cache: Cache | None, progress: Progress) -> None:
    """Make the base rows that are not there, and keep them in a cache: for whoever waits for them."""
    with _lock:
        maker = _provisions.setdefault(vocabulary, _Provision()).maker
    if maker is not None:
        maker.stop()
    if cache is None and os.environ.get(ENVIRONMENT_VARIABLE) != "0":
        cache = _default_cache()
    _make(vocabulary, cache, time.monotonic, progress, lambda: None)


class _Stopped(Exception):
    """The thread is to end."""


def _make(
    vocabulary: Vocabulary,
    store: Cache | None,
    clock: Callable[[], float],
    progress: Progress,
    wait_for_turn: Callable[[], object],
) -> None:
    """Make what a cache does not have. Each row is at hand as soon as it is made; what is made is kept at the end."""
    found = fetch_base_rows(store, vocabulary) if store is not None else None
    done = found.samples if found else 0
    made: dict[bytes, SharedMasks] = {}
    definitions = samples()
    try:
        for definition in definitions[done:]:
            progress("base rows", done, len(definitions))
            wait_for_turn()
            meter = Meter(_BUDGET, clock)
            with suppress(StructgenError):  # no token of the vocabulary has a quote, say: nobody shares such strings
                machine, _ = stack_machine(definition, vocabulary, meter)
                machine.fill(threads=1, meter=meter)
                made |= machine.rows.shared.find_all()
            done += 1
    except _Stopped:
        pass
    finally:
        if made:
            keep_base_rows(store, vocabulary, made, done, done >= len(definitions))
    progress("base rows", len(definitions), len(definitions))


class _Maker(Background):
    """Makes the base rows of a vocabulary in the background, and keeps them in a cache."""

    def __init__(self, vocabulary: Vocabulary, store: Cache) -> None:
        super().__init__("structgen-base-rows")
        self._vocabulary = vocabulary
        self._store = store
        self._since = 0.0  # when the last rest ended

    def work(self) -> None:
        """Make them."""
        try:
            self._is_to_stop.wait(_DELAY)
            with suppress(_Stopped):
                self._wait_for_turn()
                _make(self._vocabulary, self._store, self._look, silent, self._wait_for_turn)
        finally:
            with _lock:
                _provisions.setdefault(self._vocabulary, _Provision()).maker = None

    def _look(self) -> float:
        """The meter's clock: rests."""
        if self._is_to_stop.is_set():
            raise _Stopped
        now = time.monotonic()
        if now - self._since >= _PIECE:
            self._is_to_stop.wait(min(_REST * (now - self._since), 0.1))
            self._since = time.monotonic()
        return now

    def _wait_for_turn(self) -> None:
        """Let compiles go first."""
        while PAUSES and not self._is_to_stop.is_set():
            self._is_to_stop.wait(_BETWEEN)
        if self._is_to_stop.is_set():
            raise _Stopped
        self._since = time.monotonic()
