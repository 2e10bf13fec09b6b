"""Ctrl-C and events that end compiles: typed, at the next look at the meter, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.tiny_models import byte_tokenizer
from fakes.word_lists import VOCABULARY

import structgen as sg
from structgen import grammar_store, grammars, kernels

DEFINITIONS: dict[str, sg.Definition] = {
    "regex": sg.Regex(r"[\w.+-]+@[\w-]+\.[\w.-]+( [a-z]{3,8}){1,40}"),
    "json": sg.JsonSchema({"properties": {f"p{n}": {"type": "string", "maxLength": n + 5} for n in range(20)}}),
    "enum": sg.JsonSchema({"enum": [f"item {n * 7919 % 1009} {n}" for n in range(300)]}),
    "grammar": sg.Grammar('start: "[" [start ("," start)*] "]" | /[0-9]+/\n%ignore " "'),
    "gbnf": sg.Gbnf('root ::= "a" root | [b-d]{2,9} "x"'),
    "tag": sg.tag("<a>", sg.JsonSchema({"type": "object"}), "</a>"),
}


class Counted:
    """An event that is set when it has been asked so often."""

    def __init__(self, asked: int) -> None:
        self.left = asked
        self.asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        return self.asked > self.left


def interrupt_in(seconds: float) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


needs_signals = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """A shell's background jobs ignore Ctrl-C, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@needs_signals
def test_an_interrupt_in_a_kernel() -> None:
    many = 1_000_000
    tails, heads = np.arange(many, dtype=np.int32), np.arange(1, many + 1, dtype=np.int32)
    goals, scratch = np.zeros(many + 1, np.uint8), np.empty(3 * many + 4, np.int32)
    goals[-1] = 1
    kernels.co_accessible(tails[:1], heads[:1], goals[:2], scratch)  # compiled

    def run() -> None:
        interrupt_in(0.05)
        for _ in range(10_000):
            kernels.co_accessible(tails, heads, goals.copy(), scratch)

    with pytest.raises(KeyboardInterrupt):
        run()


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("eager", [True, False])
def test_a_compile_ends_at_the_look_that_finds_its_event_set(kind: str, eager: bool, tmp_path: Path) -> None:
    definition, folders = DEFINITIONS[kind], count()

    def compiled(event: Counted) -> sg.Index:
        grammar_store.forget()
        cache = sg.Cache(tmp_path / str(next(folders)))
        try:
            return sg.compile(definition, VOCABULARY, eager=eager, cancel=event, cache=cache)
        finally:
            assert (sg.cache_key(definition, VOCABULARY) in cache) == (event.asked <= event.left)

    compiled(Counted(1 << 60))  # what a process remembers is remembered
    whole = Counted(1 << 60)
    expected = compiled(whole)
    for asked in sorted({whole.asked * part // 8 for part in range(5)}):  # some looks go by the clock
        event = Counted(asked)
        with pytest.raises(sg.errors.CancelledError) as caught:
            compiled(event)
        assert event.asked == asked + 1  # nobody asked again, so nobody went on
        assert caught.value.where
    again = compiled(Counted(1 << 60))
    assert sg.Guide(again).bitmask().tolist() == sg.Guide(expected).bitmask().tolist()


class SeenByOthers:
    """An event that is set for every thread but the one that made it."""

    def __init__(self) -> None:
        self._owner = threading.get_ident()

    def is_set(self) -> bool:
        return threading.get_ident() != self._owner


@pytest.mark.parametrize("name", ["sql", "python3"])
def test_a_compile_ends_while_lark_reads_its_grammar(name: str) -> None:
    """Lark knows of no event, and takes a tenth of a second and more. Nothing comes later."""
    for _ in range(5):
        grammar_store.forget()
        with pytest.raises(sg.errors.CancelledError, match="loading the grammar"):
            sg.compile(grammars.load(name), VOCABULARY, eager=False, cancel=SeenByOthers())
    assert sum(map(len, [[each] for each in range(100_000)])) == 100_000
    index = sg.compile(grammars.load(name), VOCABULARY, eager=False, cancel=threading.Event())
    assert sg.Guide(index).bitmask().any()


TRACED = """
import sys, threading
import structgen as sg

class Late(threading.Event):  # set as soon as another thread looks
    def is_set(self):
        return super().is_set() or threading.current_thread() is not threading.main_thread()

vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
for cancel in (threading.Event(), Late()):
    try:
        sg.compile(sg.Grammar('start: ("a" | "b")+'), vocabulary, eager=False, cancel=cancel)
    except sg.errors.CancelledError:
        pass
calls = []
sys.setprofile(lambda *each: calls.append(each))
(lambda: None)()
sys.setprofile(None)
print(bool(calls))
"""


def test_nothing_is_left_to_be_raised() -> None:
    """An exception taken back leaves CPython's breaker on: every call is slow, and up to 3.11 traced ones hang."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"


def test_an_event_that_is_set_later_stops_nothing() -> None:
    event = threading.Event()
    index = sg.compile(DEFINITIONS["json"], VOCABULARY, eager=False, cancel=event)
    event.set()
    guide = sg.Guide(index)
    for byte in b'{"p7":"abc","p9":"':
        assert guide.advance(byte)
    assert sg.compile(DEFINITIONS["json"], VOCABULARY).match(b'{"p3":"a"}').accepted


@pytest.mark.parametrize("event", [True, 1, "event"])
def test_what_is_no_event_is_refused(event: Any) -> None:
    with pytest.raises(sg.errors.ArgumentError, match="an event was expected"):
        sg.compile(sg.Regex("a"), VOCABULARY, cancel=event)


@needs_signals
@pytest.mark.nightly
def test_an_interrupted_warm_keeps_what_is_done(tmp_path: Path) -> None:
    """One definition takes minutes: whoever waited for its end would be found out by the time limit."""
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "a.regex").write_text("[a-z]{2}")
    wide = {"properties": {f"p{n}": {"type": "string", "maxLength": n + 5} for n in range(4000)}}
    (schemas / "z.json").write_text(json.dumps(wide))
    byte_tokenizer().save_pretrained(tmp_path)
    command = [
        sys.executable, "-m", "structgen.cli", "warm", str(schemas), "-t", str(tmp_path),
        "--cache", str(tmp_path / "kept"), "--max-seconds", "600", "--max-states", "100000000", "-j", "2",
    ]  # fmt: skip
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=hears) as process:
        assert process.stderr is not None
        before = next(line for line in process.stderr if line.startswith("a: compiled"))
        process.send_signal(signal.SIGINT)
        after = process.communicate(timeout=60)[1]
    # Python ends by the signal itself where the interrupt came in an `exec`; a shell says 130 of both.
    assert process.returncode in (130, -signal.SIGINT), before + after
    assert "the same command does the rest" in after
    assert "Traceback" not in after
    assert len(sg.Cache(tmp_path / "kept")) >= 1


def test_an_interrupted_command_writes_what_is_to_be_written_and_is_gone() -> None:
    """What is registered for the end is done; the interpreter is not taken down, which takes 0.2 s."""
    program = """
import atexit, sys
from structgen import cli

class Late:
    def __del__(self): print("taken down")

def app():
    atexit.register(print, "written")
    sys.modules["late"] = Late()
    raise KeyboardInterrupt

sys.modules["structgen.cli.app"] = type("Module", (), {"app": staticmethod(app)})
cli.main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "written\n", "")


@needs_signals
def test_an_interrupt_that_python_forgets_comes_again() -> None:
    program = """
import os, queue, signal, sys
from structgen import cli

class Deaf:
    def __del__(self): os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(1000)]

def app():
    Deaf()  # whose exception is printed, and that is all
    print("went on", flush=True)
    queue.SimpleQueue().get()

sys.modules["structgen.cli.app"] = type("Module", (), {"app": staticmethod(app)})
cli.main()
"""
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=hears, timeout=30)
    assert (ended.returncode, ended.stdout) == (130, "went on\n")
    assert "KeyboardInterrupt" in ended.stderr
