"""Correcting texts of models without logits: what finding a mistake costs, beside Lark's Earley parser, and calls.

    python -m benchmarks.correct                 # some minutes
    python -m benchmarks.correct --texts 200

- *mistakes found*: the longest valid prefix of a text of 4 kB with a mistake at its end, and what may follow it: of
  an index that has read the like before, in a process that has loaded the kernels, and of Lark's Earley parser, as
  the seed has it (Wang et al. 2023);
- *calls*: a simulated API says real texts (MaskBench's valid instances), with mistakes put in, and goes on from any
  prefix as the right text does; calls for each mistake, and how many results are valid. `benchmarks.correct.judged`
  asks outside judges about ten thousand.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lark
from lark.indenter import PythonIndenter

import structgen as sg
import structgen.kernels
from structgen import grammars

from .. import report, run
from ..json_schema import instances
from ..json_schema.order import ordered

#: Bytes of the texts in which a mistake is looked for, and how often that is timed. Lark takes minutes for so
#: much: it gets a part, and is counted as if it were linear.
LENGTH, REPEATS, PART = 4_000, 30, 20

#: Seconds for it.
PATIENCE = 10

#: What is put into a right text.
WRONG = ["x", "}", '"', ",", " null", "\0", "'", "tru", "12.", "]"]

_ROWS = {"people": [{"name": f"Person {i}", "age": 7 * i, "tags": ["alpha", "beta gamma"]} for i in range(60)]}
_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "tags"],
}
_SQL = (
    "SELECT a.x, b.y + 12 AS total, count(*) FROM table_one AS a JOIN other b ON a.id = b.id WHERE a.x > 10 AND "
    "b.name LIKE 'abc%' GROUP BY a.x ORDER BY total DESC LIMIT 10;\n"
)
_PYTHON = (
    "def function(first, second=2):\n    for item in first:\n        if item > second:\n"
    "            return [item, 'a']\n"
)
_EARLEY_JSON = """
?start: value
value: object | array | string | number | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
array: "[" [value ("," value)*] "]"
string: /"[^"\\\\]*"/
number: /-?[0-9]+/
%ignore " "
"""


@dataclass(frozen=True)
class Workload:
    """A definition, a text of it, and what it is for Lark."""

    name: str
    definition: sg.Definition
    text: str
    earley: Callable[[], lark.Lark]


def _schema() -> sg.JsonSchema:
    people = {"type": "object", "properties": {"people": {"type": "array", "items": _PERSON}}, "required": ["people"]}
    return sg.JsonSchema(people)


def _earley(name: str, **options: Any) -> lark.Lark:
    return lark.Lark(grammars.path(name).read_text(), parser="earley", **options)


WORKLOADS = [
    Workload("JSON Schema", _schema(), json.dumps(_ROWS)[:LENGTH], lambda: lark.Lark(_EARLEY_JSON, parser="earley")),
    Workload("SQL", sg.Grammar(grammars.path("sql"), lexer="basic"), (_SQL * 40)[:LENGTH],
             lambda: _earley("sql", lexer="basic")),
    Workload("Python", sg.Grammar(grammars.path("python3"), start="file_input", postlex=PythonIndenter()),
             (_PYTHON * 60)[:LENGTH],
             lambda: _earley("python3", start="file_input", lexer="basic", postlex=PythonIndenter())),
]  # fmt: skip


def found(workload: Workload) -> dict[str, float]:
    """Milliseconds of finding a mistake at the end of a text, first and warmed, and of Lark's Earley parser."""
    index = sg.compile(workload.definition, sg.Vocabulary.bytewise(), eager=False)
    text = workload.text + "\0"
    times = []
    for _ in range(REPEATS):
        began = time.thread_time()
        candidates = sg.candidates(index, text)
        times.append(1e3 * (time.thread_time() - began))
    assert candidates.dropped.endswith("\0")
    return {"first": times[0], "warmed": statistics.median(times[1:]), "Lark's Earley": _earley_time(workload)}


def _earley_time(workload: Workload) -> float:
    """Milliseconds of Lark's parser for the whole text, as if it were linear; or so many at least."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    vars(lark.lexer)["has_interegular"] = False  # or terminals are compared, for minutes and in gigabytes
    parser = workload.earley()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    began = time.thread_time()
    with contextlib.suppress(lark.exceptions.LarkError, TimeoutError):
        parser.parse(workload.text[: LENGTH // PART] + "\0")
        raise RuntimeError(f"{workload.name}: Lark finds no mistake")
    signal.alarm(0)
    return 1e3 * (time.thread_time() - began) * PART


class SimulatedApi:
    """Says a right text from any prefix on, with a mistake in each of its first replies."""

    def __init__(self, text: str, mistakes: int, order: random.Random) -> None:
        self._text, self.left, self._order = text, mistakes, order
        self.calls = 0

    def __call__(self, prompt: str) -> Iterator[str]:
        self.calls += 1
        reply = self._text[self._aligned(prompt) :]
        if self.left and len(reply) > 2:
            self.left -= 1
            at = self._order.randrange(len(reply) - 1)
            reply = reply[:at] + self._order.choice(WRONG) + reply[at + self._order.randrange(3) :]
        return iter([reply[i : i + 4] for i in range(0, len(reply), 4)])

    def _aligned(self, prompt: str) -> int:
        """Where the right text goes on behind what there is."""
        if self._text.startswith(prompt):
            return len(prompt)
        blocks = difflib.SequenceMatcher(None, prompt, self._text, autojunk=False).get_matching_blocks()
        last = next((block for block in reversed(blocks) if block.size), None)
        return last.b + last.size if last is not None else 0


def corrected(data: Path, limit: int, mistakes: int, seed: int) -> dict[str, float]:
    """Mistakes, calls and valid results over real texts."""
    order = random.Random(seed)
    lines = instances.read(data)
    order.shuffle(lines)
    total = {"texts": 0, "mistakes": 0, "events": 0, "calls": 0, "valid": 0}
    for line in lines:
        if total["texts"] >= limit:
            break
        texts = [json.dumps(ordered(line["schema"], test["data"]), ensure_ascii=False)
                 for test in line["tests"] if test["valid"]]  # fmt: skip
        try:
            index = sg.compile(sg.JsonSchema(line["schema"]), sg.Vocabulary.bytewise(), eager=False, base_rows=False)
        except sg.Error:
            continue
        for text in texts:
            if len(text) < 40 or len(text) > 4000 or not index.match(text.encode()).accepted:
                continue
            api = SimulatedApi(text, mistakes, order)
            result = sg.correct(api, index, max_corrections=8 * mistakes)
            total["texts"] += 1
            total["mistakes"] += mistakes - api.left
            total["events"] += len(result.events)
            total["calls"] += api.calls
            total["valid"] += index.match(result.text.encode()).accepted
    return dict(total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=run.MASKBENCH, help="the .jsonl.gz file with schemas and tests")
    parser.add_argument("--texts", type=int, default=2_000, help="texts that the simulated API says")
    parser.add_argument("--mistakes", type=int, default=3, help="mistakes in each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    console = run.console()
    kept = run.begin(console, vars(options))
    rows, figures = [], []
    for workload in WORKLOADS:
        times = found(workload)
        rows.append([workload.name, *(f"{times[name]:,.3f}" for name in times)])
        figures.append(report.Figure(f"{workload.name}, warmed", times["warmed"], 1.0, False, "ms", REPEATS))
        ratio = times["Lark's Earley"] / times["warmed"]
        figures.append(report.Figure(f"{workload.name}, Lark's Earley over it", ratio, 1000.0, True, "x", 1))
    report.show_rows(console, "a mistake in 4 kB, ms", ["definition", "first", "warmed", "Lark's Earley"], rows)
    total = corrected(options.data, options.texts, options.mistakes, options.seed)
    console.print(total)
    per_mistake = (total["calls"] - total["texts"]) / max(1, total["mistakes"])
    figures.append(report.Figure("calls for each mistake", per_mistake, 1.1, False, "", int(total["mistakes"])))
    figures.append(report.Figure("valid results", total["valid"] / max(1, total["texts"]), 1.0, True, "", 1))
    for figure in figures:
        met = "met" if figure.met else "missed"
        console.print(f"{figure.name:40} {figure.measured:12,.3f} {figure.unit:3} {met}")
    run.end(console, kept | {"figures": [asdict(figure) for figure in figures]}, options.save)


if __name__ == "__main__":
    main()
