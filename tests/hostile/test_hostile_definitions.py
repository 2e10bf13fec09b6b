"""Definitions from strangers: each compiles or is refused by a typed error, within the budget of a request."""

from __future__ import annotations

import inspect
import itertools
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judges.naive import small_vocabulary

import structgen as sg
from hostile import hostile_schemas
from hostile.hostile_definitions import DEFINITIONS
from structgen import kernels
from structgen.budget import Meter
from structgen.building import build
from structgen.compiler.automata import dfa
from structgen.compiler.json_schema.lower.trie import NONE, Tries
from structgen.compiler.json_schema.normal_form.shaping import Shaping
from structgen.compiler.patterns import ecma, measures
from structgen.compiler.patterns.lower import language
from structgen.compiler.patterns.parser import PythonReader, parse
from structgen.errors import BudgetExceededError
from structgen.system.garbage import paused

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = small_vocabulary()

#: A third of those of each kind that no other test compiles, and all EBNF; ``make attack`` compiles all.
_TRIED = {f"schema: {name}" for name in hostile_schemas.REFUSED | hostile_schemas.HARMLESS}
SOME = dict(itertools.islice(((n, make) for n, make in DEFINITIONS.items() if n not in _TRIED), 0, None, 3))
SOME |= {name: make for name, make in DEFINITIONS.items() if name.startswith("ebnf: ")}

#: Those whose rows are worked out, too.
EAGER = dict(itertools.islice(DEFINITIONS.items(), 0, None, 10))

#: A twentieth of the time that a request has; ``make attack`` gives each all of it.
BUDGET = replace(sg.Budget.request, seconds=sg.Budget.request.seconds / 20)

#: Seconds after which a compile hangs.
HANGS = 3 * sg.Budget.request.seconds


def ends(make: Callable[[], Any], *, eager: bool) -> bool:
    """Whether a definition is compiled or refused before anybody would say that it hangs.

    The clock is that of this process's work, which no other process changes.
    """
    began = time.process_time()
    try:
        definition = make()
        began, meter = time.process_time(), Meter(BUDGET, clock=time.process_time)
        with paused():
            machine, _ = build(definition, VOCABULARY, meter)
            if eager:
                machine.fill(threads=1, meter=meter)
    except sg.Error as error:
        message = str(error)
    else:
        message = "compiled" if machine.row(machine.start).any() else ""
    return 0 < len(message) < 4_000 and time.process_time() - began < HANGS


@pytest.mark.parametrize("make", SOME.values(), ids=SOME.keys())
def test_a_definition_compiles_or_is_refused_in_time(make: Callable[[], Any]) -> None:
    assert ends(make, eager=False)


@pytest.mark.parametrize("make", EAGER.values(), ids=EAGER.keys())
def test_its_rows_are_worked_out_or_refused_in_time(make: Callable[[], Any]) -> None:
    assert ends(make, eager=True)


#: Of all definitions those that hold the most, by what holds it; ``make attack`` measures each.
LARGEST = (
    "regex: 200 word boundaries",
    "schema: references to all, in anyOf",
    "schema: 1,000 names of 1,000 letters",
    "gbnf: a doubling of recursions",
)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells what a process holds at its peak")
def test_a_process_holds_no_more_than_the_budget() -> None:
    only = [part for name in LARGEST for part in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.hostile", "--json", *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) >= len(LARGEST), done.stderr[-2_000:]
    assert all(outcome["typed"] for outcome in outcomes)
    assert {o["name"]: o["peak"] >> 20 for o in outcomes if o["peak"] > 1.1 * sg.Budget.request.memory} == {}


# -- many words ------------------------------------------------------------------------------------------------

#: Patterns with many words among their alternatives.
WORDY = {
    "words": "|".join(f"{i * 7919 % 1000:03}x{i}" for i in range(200)),
    "words and others": "(?:" + "|".join([*map(str, range(90)), "[0-9]{3}z?", "", "(?:99|100)!"]) + "){1,3}é",
    "words counted": "(?:" + "|".join(f"{i}ü;" for i in range(70)) + "){2,40}",
    "words in words": "a(?:b(?:" + "|".join(map(str, range(70))) + ")|" + "|".join(map(oct, range(70))) + ")",
    "words and look-ahead": "(?!12|7)(?:" + "|".join(map(str, range(100))) + ")(?=x)[xy]",
    "words of no letters": "(?:|" + "|".join("ab"[i % 2] * i for i in range(1, 80)) + ")*",
}


@pytest.mark.parametrize("pattern", WORDY.values(), ids=WORDY.keys())
def test_many_words_are_the_same_as_their_alternatives(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> str:
        return str(language(parse(pattern), Meter(sg.Budget())))

    listed = compiled()
    monkeypatch.setattr(measures, "_MANY_WORDS", 1 << 60)
    assert compiled() == listed


def test_words_need_no_path_each() -> None:
    meter = Meter(sg.Budget(states=3_000))
    assert language(parse("|".join(map(str, range(10_000)))), meter).states == 5


# -- how often the clock is looked at ---------------------------------------------------------------------------


class Ticks:
    """A clock on which a second passes whenever somebody looks."""

    def __init__(self) -> None:
        self.looked = 0

    def __call__(self) -> float:
        self.looked += 1
        return float(self.looked)


def test_a_meter_goes_by_its_clock() -> None:
    clock = Ticks()
    meter = Meter(sg.Budget(seconds=3.5), clock=clock)
    for _ in range(3):
        meter.check_time("waiting")
    with pytest.raises(BudgetExceededError, match="longer than 3"):
        meter.check_time("waiting")
    assert clock.looked == 5


def test_a_loop_is_metered_every_few_turns() -> None:
    items = itertools.count()
    with pytest.raises(BudgetExceededError):
        list(Meter(sg.Budget(seconds=3), clock=Ticks()).each(items, "counting"))
    assert next(items) < 100


@pytest.mark.parametrize("read", [parse, lambda pattern, meter: ecma.parse(pattern, meter)])
@pytest.mark.parametrize("members", ["a", r"\W", "a-c"])
def test_a_class_is_metered_as_it_is_read(read: Callable[..., Any], members: str) -> None:
    meter = Meter(sg.Budget(seconds=100), clock=Ticks())
    with pytest.raises(BudgetExceededError, match="reading the pattern"):
        read(f"[{members * 1_000}]", meter=meter)


def test_a_class_is_put_in_order_in_time() -> None:
    reader = PythonReader("", 0, Meter(sg.Budget(seconds=1), clock=lambda: 0.0))
    assert reader.ranges([(97, 97)] * 1_000, {((98, 99),)}) == ((97, 99),)
    with pytest.raises(BudgetExceededError, match="reading the pattern"):
        reader.ranges([(97, 97)] * 1_000_001, set())


def test_positions_of_an_array_are_metered(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = Ticks(), []
    choice = Shaping._choice

    def counted(*given: Any) -> Any:
        looks.append(clock.looked)
        return choice(*given)

    monkeypatch.setattr(Shaping, "_choice", counted)
    with paused():
        build(sg.JsonSchema({"const": [1] * 300}), VOCABULARY, Meter(sg.Budget(seconds=10**9), clock=clock))
    assert max(Counter(looks).values()) < 50


def test_a_long_name_is_refused_before_its_trie_grows() -> None:
    tries = Tries(Meter(sg.Budget.request))
    with pytest.raises(BudgetExceededError, match="lowering property names"):
        tries.insert(NONE, b"k" * 1_000_000, 0)
    assert not tries.size


def test_what_is_held_counts_until_it_is_let_go() -> None:
    meter = Meter(sg.Budget(memory=1_000_000_000))
    meter.hold(600_000_000, "holding")
    meter.check_memory(390_000_000, "holding")
    with pytest.raises(BudgetExceededError, match=r"1,0\d\d,\d\d\d,\d\d\d bytes"):
        meter.check_memory(400_000_001, "holding")
    meter.let_go(500_000_000)
    meter.hold(890_000_000, "holding")
    with pytest.raises(BudgetExceededError):
        meter.hold(10_000_001, "holding")


def test_objects_count_until_they_are_free() -> None:
    with paused():
        before = [(i,) for i in range(100_000)]
        meter = Meter(sg.Budget(memory=20_000_000))
        del before
        meter.check_time("making objects")
        objects = [(i,) for i in range(200_000)]
        with pytest.raises(BudgetExceededError, match="bytes"):
            meter.check_time("making objects")
        with pytest.raises(BudgetExceededError, match="bytes"):
            meter.check_states(1, "making objects")
        assert meter.room(0) < 0
        del objects[1_000:]
        meter.check_time("making objects")


def test_objects_are_shared_out_among_compiles() -> None:
    meters: list[Meter] = []
    ready, done = threading.Event(), threading.Event()

    def beside() -> None:
        with paused():
            ready.set()
            done.wait(60)

    with paused():
        meters.append(Meter(sg.Budget(memory=20_000_000)))
        objects = [(i,) for i in range(200_000)]
        other = threading.Thread(target=beside)
        other.start()
        ready.wait(60)
        meters[0].check_time("making objects")
        done.set()
        other.join()
        with pytest.raises(BudgetExceededError, match="bytes"):
            meters[0].check_time("making objects")
        del objects


class Looks(Meter):
    """A meter that counts its looks by what they are for."""

    def __init__(self) -> None:
        super().__init__(sg.Budget(seconds=1e6, memory=1 << 40))
        self.of: Counter[str] = Counter()

    def check_memory(self, nbytes: int, doing: str) -> None:
        self.of[doing.partition(",")[0]] += 1
        super().check_memory(nbytes, doing)


#: What took long without a look at the meter: the phase, and looks that there are at least.
LONG_LOOPS: dict[str, tuple[Callable[[], Any], str, int]] = {
    "tallies": (
        lambda: sg.JsonSchema({"allOf": [{"contains": {"const": i}, "minContains": 9} for i in range(3)]}),
        "lowering arrays", 200,
    ),
    "values that an enumeration has": (
        lambda: sg.JsonSchema({"enum": [[i] for i in range(3_000)]}), "comparing subschemas", 180,
    ),
    "a constant": (lambda: sg.JsonSchema({"const": list(range(3_000))}), "reading the schema", 160),
    "escapes of a pattern's states": (
        lambda: sg.JsonSchema({"type": "string", "pattern": "^.*a.{7}$"}), "writing a string's escapes", 10,
    ),
    "names beside patterns": (
        lambda: sg.JsonSchema(
            {"type": "object", "patternProperties": {"^(a|b)*a(a|b){8}$": {}}, "minProperties": 3}
        ),
        "lowering property names", 60,
    ),
    "automata of strings": (
        lambda: sg.JsonSchema({"type": "string", "pattern": "^(a|b)*a(a|b){10}$"}), "lowering strings", 60,
    ),
    "repeats that could be counted": (lambda: sg.Regex("[ab][cd]" * 2_000), "looking for repeats to count", 250),
    "a table to minimise": (lambda: sg.Regex("[ab]*a[ab]{13}"), "minimising", 4),
}  # fmt: skip


@pytest.mark.parametrize(("make", "doing", "least"), LONG_LOOPS.values(), ids=LONG_LOOPS.keys())
def test_long_loops_look_at_the_meter(make: Callable[[], Any], doing: str, least: int) -> None:
    meter = Looks()
    build(make(), VOCABULARY, meter)
    assert meter.of[doing] >= least, meter.of


def test_a_request_gets_less_than_an_owner() -> None:
    request, own = sg.Budget.request, sg.Budget()
    assert (request.seconds, request.memory) == (2.0, 256 << 20)
    assert all(getattr(request, name) < getattr(own, name) for name in ("states", "memory", "seconds", "depth"))


def counter(turns: int) -> dfa.Dfa:
    """The texts of the bytes 0 and 1 with a multiple of ``turns`` zeros."""
    states = np.arange(turns, dtype=np.int32)
    table = np.stack([(states + 1) % turns, states, np.full(turns, -1, np.int32)], axis=1).astype(np.int32)
    classes = np.minimum(np.arange(256, dtype=np.int32), 2)
    return dfa.Dfa(
        table, classes, (states == 0).astype(np.uint8), np.zeros((0, 5), np.int32), np.zeros((0, 2), np.int64), 0
    )


#: What runs a kernel for long: the name of the kernel, and how it is called.
LONG: dict[str, tuple[str, Callable[[Meter], Any]]] = {
    "subsets": ("determinize", lambda meter: language(parse("(a|b)*a(a|b){16}"), meter)),
    "counts": ("determinize", lambda meter: language(parse("(?:a{1,50}|a{1,70}|a{1,90}b){1,40}"), meter)),
    "a product": ("intersect", lambda meter: dfa.intersect(counter(401), counter(409), meter)),
    "a partition": ("coarsest_partition", lambda meter: dfa.minimize(counter(100_003), meter)),
}


@pytest.mark.parametrize(("kernel", "run"), LONG.values(), ids=LONG.keys())
def test_a_kernel_works_in_slices(kernel: str, run: Callable[[Meter], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    whole = getattr(kernels, kernel)

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return whole(*arguments)

    monkeypatch.setattr(dfa, "_WORK", 2_000)
    monkeypatch.setattr(kernels, kernel, counted)
    with pytest.raises(BudgetExceededError, match="seconds"):
        run(Meter(sg.Budget(seconds=50), clock=Ticks()))
    assert 1 < calls <= 51


@pytest.mark.parametrize("work", [1, 100, 1 << 19])
def test_slices_change_nothing(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = ("(a|b)*a(a|b){6}", "x{30,60}y|(?:ab){25,}", "(?=.*a)(?=.*b)[a-d]{3,9}", "(?:a{1,5}|a{1,7}b){1,6}")
    expected = [str(language(parse(pattern), Meter(sg.Budget()))) for pattern in patterns]
    monkeypatch.setattr(dfa, "_WORK", work)
    assert [str(language(parse(pattern), Meter(sg.Budget()))) for pattern in patterns] == expected


@pytest.mark.parametrize("name", [name for name in DEFINITIONS if "100,000 levels" in name or "0,000 groups" in name])
def test_depth_needs_no_recursion(name: str) -> None:
    assert ends(DEFINITIONS[name], eager=False)  # whatever is imported or loaded at first
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 60)
    try:
        assert ends(DEFINITIONS[name], eager=False)
    finally:
        sys.setrecursionlimit(limit)
