"""What tests of threads and forks share: an index of each kind, texts, and the order of locks watched."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from judges.guides import EACH_BYTE

import structgen as sg
from structgen.definitions import Definition
from structgen.runtime.rows.bitmask import unpack
from structgen.system.locks import Lock

#: What tokens hold, besides single bytes.
_PIECES = [
    "the", "then", "foo", "bar", "name", "id", "ab", "abc", "true", "false", "null", "12", "000", "-1", ".5", "1e",
    ">>", "if", "else", "return", "x=", "=1", "+1", "))", "((", '{"', '"}', '":', '",', '""', "[]", "{}", '["', '"]',
    "},{", "1,", ",1", "1]", "aaaaaa", "zz", "  ", "\n  ", "\n    ", ", ", ": ", '", "', '": ', '": "', " = ", " + ",
]  # fmt: skip


@cache
def vocabulary() -> sg.Vocabulary:
    """All bytes, `_PIECES`, a special token and an EOS id."""
    pieces = [piece.encode() for piece in _PIECES]
    tokens: list[bytes | None] = [*EACH_BYTE, *pieces, None, None]
    return sg.Vocabulary.from_bytes(tokens, [len(tokens) - 1], special_tokens={"<|end|>": len(tokens) - 2})


_OBJECT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "tags": {"type": "array", "items": {"enum": ["ab", "abc", "the"]}, "maxItems": 3},
        "id": {"type": "integer"},
        "next": {"$ref": "#"},
    },
    "required": ["name"],
}

_STATEMENTS = r"""
start: stmt*
stmt: "if" expr "then" stmt ["else" stmt] | NAME "=" expr ";" | "{" stmt* "}"
expr: NAME | INT | expr ">" part | expr ">>" part | NAME "(" [expr ("," expr)*] ")"
part: NAME | INT
NAME: /[a-z]+/
%import common.INT
%ignore /[ \n]+/
"""

_BLOCKS = r"""
start: (_NL | stmt)*
stmt: NAME "=" expr _NL | "if" expr ":" _NL _INDENT stmt+ _DEDENT
expr: NAME | INT | "(" [expr ("," expr)*] ")"
NAME: /(?!if)[a-z]+/
_NL: /(\r?\n[ ]*)+/
%import common.INT
%declare _INDENT _DEDENT
%ignore / /
"""

#: A definition of each kind.
DEFINITIONS: dict[str, Definition] = {
    "regex": sg.Regex(r'(foo|bar[0-9]+|"[^"]*"|(true|false|null){2}){1,3}'),
    "counted regex": sg.Regex(r"x[a-z]{2,30}(,[0-9]{1,5}){0,9}"),
    "json": sg.JsonSchema(_OBJECT),
    "json in any order": sg.JsonSchema(_OBJECT | {"additionalProperties": False}, property_order="any"),
    "json with unique items": sg.JsonSchema(
        {"type": "array", "uniqueItems": True, "items": {"type": ["string", "integer", "array"], "maxLength": 3}}
    ),
    "gbnf": sg.Gbnf('root ::= "[" (item ("," ws item)*)? "]"\nitem ::= root | [a-z]+ | [0-9]{1,4}\nws ::= " "?'),
    "lark": sg.Grammar(_STATEMENTS),
    "lark with definitions": sg.Grammar(
        'start: ("the" VALUE | NAME "=" VALUE ";" | <|end|>)+\nNAME: /[a-z]+/\n%ignore " "\n%declare VALUE',
        definitions={"VALUE": sg.JsonSchema(_OBJECT)},
    ),
    "indentation": sg.Grammar(_BLOCKS, postlex=sg.Indentation(newline="_NL", opening=(), closing=(), columns=40)),
    "ambiguity": sg.Grammar('start: e\ne: e "+" e | e e | "(" e ")" | /[a-z]+/ | "1"', ambiguity="all"),
}

#: Those for which it is known how far from the end a text is.
LIMITABLE = ("regex", "counted regex", "json", "gbnf", "lark")


def compiled(kind: str) -> sg.Index:
    """A new index of a kind, without any rows."""
    return sg.compile(DEFINITIONS[kind], vocabulary(), eager=False)


class Walk(NamedTuple):
    """The tokens of one text, and the mask before each."""

    masks: list[bytes]
    tokens: list[int]


def walk(index: sg.Index, seed: int, most: int = 25, max_tokens: int | None = None) -> Walk:
    """A text whose tokens are drawn from those that its masks allow."""
    rng, guide, found = Random(seed), sg.Guide(index, max_tokens=max_tokens), Walk([], [])
    for _ in range(most):
        mask = guide.bitmask()
        allowed = np.flatnonzero(unpack(mask, index.vocabulary.size)).tolist()
        token = allowed[rng.randrange(len(allowed))]
        assert guide.advance(token)
        found.masks.append(mask.tobytes())
        found.tokens.append(token)
    return found


#: Texts of each kind.
SEEDS = 4


@cache
def expected(kind: str, *, is_limited: bool = False) -> tuple[int | None, list[Walk]]:
    """A number of tokens, and texts that keep to it, over an index that nobody else has."""
    index = compiled(kind)
    most = index.shortest() + 4 if is_limited else None
    return most, [walk(index, seed, max_tokens=most) for seed in range(SEEDS)]


def check(index: sg.Index, kind: str, shift: int = 0, *, is_limited: bool = False) -> None:
    """Walk all texts of a kind, and compare every mask."""
    most, wanted = expected(kind, is_limited=is_limited)
    for i in range(SEEDS):
        seed = (i + shift) % SEEDS
        assert walk(index, seed, max_tokens=most) == wanted[seed]


def together(work: list[Callable[[], object]], seconds: float = 300) -> None:
    """Run functions in a thread each, and raise what the first of them raised; a hang is an error, too."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(work))

    def run(each: Callable[[], object]) -> None:
        try:
            barrier.wait()
            each()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in work]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if errors:
        raise errors[0]


@contextmanager
def in_background(work: Callable[[], object], threads: int) -> Iterator[None]:
    """Threads that do something over and over meanwhile; what they raise is raised at the end."""
    stop, errors = threading.Event(), []

    def run() -> None:
        while not stop.is_set():
            try:
                work()
            except BaseException as error:
                errors.append(error)
                return

    running = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in running:
            thread.join(300)
    assert not errors, errors[0]


def in_child(work: Callable[[], object], seconds: int = 120) -> bool:
    """Whether a child that is forked here does something without an error, and without hanging."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(seconds)  # kills it
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class LockOrder:
    """What threads did against the order of locks."""

    def __init__(self) -> None:
        self._held = threading.local()
        self.violations: list[str] = []
        self.taken = 0

    def enter(self, lock: Lock) -> None:
        """Note that a thread waits for a lock."""
        held: list[Lock] = self._held.__dict__.setdefault("locks", [])
        if held and lock not in held:
            last = max(held, key=lambda each: (each.rank, each.serial))
            if (last.rank, last.serial) >= (lock.rank, lock.serial):
                self.violations.append(f"{lock.rank!r} under {last.rank!r}")
        held.append(lock)
        self.taken += 1

    def leave(self, lock: Lock) -> None:
        """Note that it let go of one."""
        self._held.locks.remove(lock)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch all locks, in place of whoever watches them already."""
        base = Lock.__mro__[1]

        def acquire(lock: Lock, *options: Any, **named: Any) -> object:
            self.enter(lock)
            return base.acquire(lock, *options, **named)

        def release(lock: Lock, *_: object) -> None:
            base.release(lock)
            self.leave(lock)

        with pytest.MonkeyPatch.context() as patch:
            for name in ("acquire", "__enter__"):
                patch.setattr(Lock, name, acquire)
            for name in ("release", "__exit__"):
                patch.setattr(Lock, name, release)
            yield
