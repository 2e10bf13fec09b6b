"""Every hostile grammar ends, compiled or with an error that says why, within a small budget of time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from judges.guides import BYTES

import structgen as sg
from hostile.hostile_grammars import CASES, numbered
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.compiler import compile_grammar
from structgen.definitions import grammar_marks
from structgen.definitions.grammar_marks import MarkedText, read_marks
from structgen.definitions.grammar_text import Imports
from structgen.errors import BudgetExceededError
from structgen.grammars import FOLDER
from structgen.runtime.core.digraph import bits, set_of, solve

pytestmark = pytest.mark.nightly

SECONDS, MEMORY = 2.0, 1 << 28

#: A twentieth of the time that a grammar has that came with a request; ``make attack`` gives each all of it.
BUDGET = Budget(seconds=SECONDS / 20, memory=MEMORY)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_hostile_grammars_end_within_their_budget(name: str) -> None:
    case = CASES[name]()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.errors.GrammarWarning)
        try:
            index = sg.compile(sg.Grammar(case.text, **case.options), BYTES, eager=False, budget=BUDGET)
            said = "compiled" if sg.Guide(index).bitmask().any() else ""
        except sg.Error as error:
            said = str(error) if error.what.strip() else ""
    assert said
    assert time.process_time() - began < 2 * SECONDS, said[:500]


#: Compiles cases one by one, and prints by how many MiB each made the process grow at most.
_GROWN = """
import ctypes, gc, json, sys, warnings
warnings.simplefilter("ignore")
import structgen as sg
from hostile.hostile_grammars import CASES
from judges.guides import BYTES

def mebibytes(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1024

sg.compile(sg.Grammar('start: "a" (/b+(?!c)/ | "d")+\\n%ignore / /'), BYTES)
grown = {}
for name in json.load(sys.stdin):
    case = CASES[name]()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the peak begins anew
    before = mebibytes("VmRSS")
    try:
        budget = sg.Budget(seconds=SECONDS, memory=MEMORY)
        sg.compile(sg.Grammar(case.text, **case.options), BYTES, eager=False, budget=budget)
    except sg.Error:
        pass
    grown[name] = mebibytes("VmHWM") - before
print(json.dumps(grown))
"""

#: Grammars that need memory rather than time; ``make attack`` measures all.
LARGE = [
    "200,000 alternatives of one regex",
    "a long counted class",
    "two subsets",
    "periods of primes",
    "escapes by the hundred thousand",
    "LR states by the exponential",
]


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is told by Linux")
def test_hostile_grammars_keep_to_their_memory() -> None:
    program = _GROWN.replace("MEMORY", str(MEMORY)).replace("SECONDS", str(SECONDS))
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(LARGE),
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2_000:]
    grown = json.loads(done.stdout)
    # A tenth more, and what lies between two looks at the meter.
    assert {name: peak for name, peak in grown.items() if peak > 1.1 * MEMORY / (1 << 20) + 32} == {}


# -- the parts ------------------------------------------------------------------------------------------------


class Counted(Meter):
    """A meter that counts how often it is looked at, and lets the time be up after so many looks."""

    def __init__(self, most: int = 1 << 60) -> None:
        super().__init__(Budget(seconds=1e6, memory=1 << 40))
        self.looks, self._most = 0, most
        self.doing: set[str] = set()

    def check_time(self, doing: str) -> None:
        self.looks += 1
        self.doing.add(doing)
        if self.looks > self._most:
            raise self.out_of_time(doing)


def test_endings_of_thousands_of_terminals_are_told_by_what_can_be_read() -> None:
    """Twice the terminals, about twice the looks at the meter: none is held against each of the others."""

    def looks(count: int) -> int:
        meter = Counted()
        compile_grammar(sg.Grammar(f"start: ({numbered(chr(34) + 'w@' + chr(34), count, ' | ')})+"), meter)
        return meter.looks

    assert looks(400) < 3 * looks(200)


@pytest.mark.parametrize(
    "name",
    [
        "30 ignored comments that nest into each other",
        "conflicts by the hundred",
        "11 options",
        "preferences of subsets",
    ],
)
def test_the_time_can_be_up_at_any_look(name: str) -> None:
    text = CASES[name]().text
    meter = Counted()
    compile_grammar(sg.Grammar(text), meter)
    assert len(meter.doing) > 8
    for most in sorted({*range(0, meter.looks, 1 + meter.looks // 5), meter.looks - 1}):
        with pytest.raises(BudgetExceededError, match="compiling takes longer"):
            compile_grammar(sg.Grammar(text), Counted(most))
    compile_grammar(sg.Grammar(text), Counted(meter.looks))


@pytest.mark.parametrize(
    "text",
    [
        "/" + "\\/" * 200_000,
        '"' + '\\"' * 200_000,
        '"' * 3 + "\\/" * 100_000,
        numbered("<[@]>", 20_000),
        numbered('%json {"const": @}', 10_000),
    ],
    ids=lambda text: text[:8],
)
def test_marks_are_read_in_one_pass(text: str) -> None:
    began = time.process_time()
    marked = read_marks(f"start: {text}")
    assert marked.text.startswith("start: ")
    assert time.process_time() - began < 20, "not with the square of the text"


def test_marks_are_read_once_and_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(text: str) -> MarkedText:
        reads.append(text)
        return read_marks(text)

    monkeypatch.setattr(grammar_marks, "read_marks", counted)
    grammar = sg.Grammar('start: %json {"const": 1}')
    sg.compile(grammar, BYTES)
    assert reads.count(grammar.text) == 1
    for text in ("<a>" + " " * 2_100_000, "<a>" * 70_000):
        with pytest.raises(BudgetExceededError, match="special tokens and schemas"):
            sg.compile(sg.Grammar(f"start: {text}"), BYTES)


def test_marks_have_names_that_nothing_else_has() -> None:
    marked = read_marks('start: <a-b> <a.b> <a-b> TOKEN_A_B_2 %json {"a": 1} %json {} %json {}\nJSON_2: "x"')
    assert marked.tokens == {"TOKEN_A_B": "<a-b>", "TOKEN_A_B_3": "<a.b>"}
    assert marked.schemas == {"JSON": '{"a": 1}', "JSON_3": "{}"}


def test_imports_are_looked_for_in_bounds(tmp_path: Path) -> None:
    text = "%import" + " " * 200_000 + "!\n%import a" + ".b" * 100_000
    assert Imports.read(text, str(tmp_path / "x.lark"), (str(tmp_path),)).files == ()
    deep = tmp_path.joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    (deep / "inner.lark").write_text('x: "a"')
    with pytest.raises(sg.errors.DefinitionError, match=r"there is no grammar .*inner\.lark to import"):
        sg.compile(sg.Grammar(f"%import {'d.' * 70}inner.x\nstart: x", import_paths=(str(tmp_path),)), BYTES)


def test_files_that_are_imported_are_looked_at_as_well(tmp_path: Path) -> None:
    (tmp_path / "wide.lark").write_text("x: " + '"a"? ' * 60)
    (tmp_path / "deep.lark").write_text("x: " + "(" * 2_000 + '"a"' + ")" * 2_000)
    (tmp_path / "open.lark").write_text('x: "a"\ny: "b')
    for name, error, message in (
        ("wide", BudgetExceededError, "more than 200,000 symbols"),
        ("deep", BudgetExceededError, r"nested more than 1,000 deep \(.*deep\.lark, line 1"),
        ("open", sg.errors.DefinitionError, r"the string is never closed \(.*open\.lark, line 2, column 4\)"),
    ):
        with pytest.raises(error, match=message):
            sg.compile(sg.Grammar(f"%import {name}.x\nstart: x", import_paths=(str(tmp_path),)), BYTES)


@pytest.mark.parametrize("name", ["python3", "c", "sql", "json", "markdown", "jsonc", "graphql", "toml", "go", "java"])
def test_what_is_reckoned_of_structgens_own_grammars_leaves_room(name: str) -> None:
    """A budget for requests must not refuse a programming language for what Lark might take with it."""

    class Reckoning(Meter):
        def work(self, per_second: int) -> int:
            return int(SECONDS * per_second)  # as if no time had gone by

    start = {"python3": "file_input", "c": "translation_unit"}.get(name, "start")
    postlex = sg.Indentation() if name == "python3" else None
    ambiguity = "all" if name == "java" else "resolve"
    lexer = "basic" if name == "java" else "contextual"
    definition = sg.Grammar(FOLDER / f"{name}.lark", start=start, lexer=lexer, ambiguity=ambiguity, postlex=postlex)
    compile_grammar(definition, Reckoning(Budget(seconds=200)))


def test_sets_of_numbers() -> None:
    random = np.random.default_rng(1)
    for count in (0, 1, 63, 64, 500):
        numbers = random.integers(0, 2_000, count).tolist()
        assert list(bits(set_of(numbers))) == sorted(set(numbers))


def test_solving_looks_at_the_meter() -> None:
    count = 20_000
    looks = []
    values = [1 << (i % 50) for i in range(count)]
    solve(values, [[i + 1] if i + 1 < count else [] for i in range(count)], lambda: looks.append(1))
    assert values[0] == (1 << 50) - 1
    assert len(looks) > 5
