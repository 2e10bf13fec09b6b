"""Hostile definitions, each compiled in a process of its own: what came of it, in what time, with how much memory.

    python -m benchmarks.hostile [--eager] [--own] [--only TEXT] [--json]

The definitions are those of ``tests/hostile/hostile_definitions.py``. A star marks a line that is over its budget by
more than a tenth, or that ended in anything but an index or a typed error. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structgen as sg
from structgen.budget import Meter
from structgen.building import build
from structgen.system.garbage import paused

from .run import ROOT

#: A tenth, which a compile may be over its budget.
OVER = 1.1


@dataclass(frozen=True)
class Outcome:
    """What came of a definition: ``"compiled"`` or an error's name and text; processor seconds; bytes at the peak."""

    name: str
    what: str
    typed: bool
    seconds: float
    peak: int

    def is_within(self, budget: sg.Budget) -> bool:
        """Whether it is as it has to be."""
        return self.typed and self.seconds <= OVER * budget.seconds and self.peak <= OVER * budget.memory


def _resident(key: str) -> int:
    """A line of this process's ``/proc/self/status``, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def measured(
    name: str, make: Callable[[], Any], vocabulary: sg.Vocabulary, budget: sg.Budget, *, eager: bool = False
) -> Outcome:
    """Compile a definition in a child process. The budget's clock counts processor time there."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, json.dumps(asdict(_compiled(name, make, vocabulary, budget, eager))).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return Outcome(**json.loads(found)) if found else Outcome(name, "the process was killed", False, 0.0, 0)


def _compiled(name: str, make: Callable[[], Any], vocabulary: sg.Vocabulary, budget: sg.Budget, eager: bool) -> Outcome:
    resource.setrlimit(resource.RLIMIT_CPU, (int(10 * budget.seconds) + 30,) * 2)
    what, typed, began, before = "compiled", True, time.process_time(), 0
    try:
        definition = make()
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that of what follows
        began, before = time.process_time(), _resident("VmRSS")
        meter = Meter(budget, clock=time.process_time)
        with paused():
            machine, _ = build(definition, vocabulary, meter)
            if eager:
                machine.fill(threads=1, meter=meter)
    except sg.Error as error:
        what = f"{type(error).__name__}: {error}"
    except BaseException as error:
        what, typed = f"{type(error).__name__}: {error}", False
    return Outcome(name, what, typed, time.process_time() - began, _resident("VmHWM") - before if before else 0)


def main() -> None:
    """Print a line for each definition."""
    sys.path.append(str(ROOT / "tests"))
    from hostile.hostile_definitions import DEFINITIONS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eager", action="store_true", help="work out all rows, too")
    parser.add_argument("--own", action="store_true", help="under the default budget, not that of requests")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="those with TEXT in their names")
    parser.add_argument("--json", action="store_true", help="a JSON object for each line")
    parser.add_argument("--vocab", help="a folder with a tokenizer.json; without one tokens are bytes")
    options = parser.parse_args()
    budget = sg.Budget() if options.own else sg.Budget.request
    tokens = [*(bytes([i]) for i in range(256)), None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[256])
    if options.vocab:
        vocabulary = sg.Vocabulary.from_pretrained(options.vocab)
    wrong = 0
    for name, make in DEFINITIONS.items():
        if options.only and not any(text in name for text in options.only):
            continue
        outcome = measured(name, make, vocabulary, budget, eager=options.eager)
        wrong += not outcome.is_within(budget)
        if options.json:
            print(json.dumps(asdict(outcome)), flush=True)
        else:
            star = " " if outcome.is_within(budget) else "*"
            figures = f"{outcome.seconds:6.2f} s {outcome.peak / 2**20:6.0f} MiB"
            print(f"{star} {name:56} {figures}  {outcome.what[:110]}", flush=True)
    sys.exit(min(wrong, 1))


if __name__ == "__main__":
    main()
