"""Whatever `sg.correct` makes of adversarial outputs, an outside judge of its kind calls valid: counted.

    python -m benchmarks.correct.judged                    # ten thousand, a quarter of an hour
    python -m benchmarks.correct.judged --outputs 500

Models are `judges.adversaries.Adversary`: random edits of right texts at random points, random text, in any pieces.
Definitions are MaskBench's schemas, with their valid instances, and the shipped grammars; the judges are jsonschema,
json, sqlite3, ast, gcc and, of the arithmetic grammar, Lark. A text of which nothing comes is counted, too. The
slowest output is told, in seconds of this process, its judge included.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import cycle
from pathlib import Path

import lark

import structgen as sg
from structgen import grammars
from structgen.correction.values import CorrectionError

from .. import report, run
from ..json_schema import instances

sys.path.append(str(run.ROOT / "tests"))  # where judges are

from judges.adversaries import SHIPPED, Target, invalid
from judges.json_judge import Judge, NoVerdictError

#: Of so many outputs, by the shipped grammar; the others are of schemas.
SHARES = {"json": 0.1, "sql": 0.15, "python3": 0.15, "c": 0.1, "arithmetic": 0.05}

#: Outputs of one schema; and seconds that none takes.
EACH, SLOW = 5, 1.0

_ARITHMETIC = ("f(x, 2) * (3 - y)", "1 + 2 / -3", "max(a, b)(c)")


def targets(data: Path, outputs: int, order: random.Random) -> Iterator[tuple[str, Target, sg.Index, int]]:
    """Kinds, what is judged, and how often."""
    of_grammars = {name: round(share * outputs) for name, share in SHARES.items()}
    for name, count in of_grammars.items():
        target = SHIPPED.get(name) or _arithmetic()
        definition, budget = target.definition(), sg.Budget(seconds=600)
        yield name, target, sg.compile(definition, sg.Vocabulary.bytewise(), eager=False, budget=budget), count
    left = outputs - sum(of_grammars.values())
    for target in _schemas(data, order):
        if left <= 0:
            return
        try:
            index = sg.compile(target.definition(), sg.Vocabulary.bytewise(), eager=False, base_rows=False)
        except sg.Error:
            continue
        yield "JSON Schema", target, index, min(left, EACH)
        left -= EACH


def _arithmetic() -> Target:
    judge = lark.Lark(grammars.path("arithmetic").read_text(), parser="lalr", lexer="basic")

    def error(text: str) -> str:
        try:
            judge.parse(text)
        except lark.exceptions.LarkError as refused:
            return str(refused)
        return ""

    texts = tuple(text for text in _ARITHMETIC if not error(text))
    return Target(lambda: sg.Grammar(grammars.path("arithmetic"), lexer="basic"), texts, error)


def _schemas(data: Path, order: random.Random) -> Iterator[Target]:
    """MaskBench's schemas that have valid instances which structgen and jsonschema agree about, over and over."""
    lines = [line for line in instances.read(data) if any(test["valid"] for test in line["tests"])]
    order.shuffle(lines)
    for line in cycle(lines):
        texts = (json.dumps(test["data"], ensure_ascii=False) for test in line["tests"] if test["valid"])
        try:
            error = _error_of(Judge(line["schema"]))
            right = tuple(text for text in texts if len(text) < 4000 and not error(text))
        except Exception:  # a schema that jsonschema can't read, or has no verdict about
            continue
        if right:
            yield Target(partial(sg.JsonSchema, line["schema"], whitespace="any"), right, error)


def _error_of(judge: Judge) -> Callable[[str], str]:
    return lambda text: "" if judge.is_valid(text) else "the schema forbids it"


def judged(
    data: Path, outputs: int, seed: int, tell: Callable[[str], object] = print
) -> tuple[dict[str, Counter[str]], float]:
    """By kind, how many outputs were valid, or not, or never came, and how they ended; the seconds of the slowest."""
    order = random.Random(seed)
    found: dict[str, Counter[str]] = {}
    slowest = 0.0
    for kind, target, index, count in targets(data, outputs, order):
        counts = found.setdefault(kind, Counter(valid=0, invalid=0, none=0))
        for _ in range(count):
            began = time.process_time()
            try:
                result, error = invalid(target, index, order)
            except CorrectionError as refused:
                counts["none"] += 1
                tell(f"{kind}: {refused} {refused.correction.text[-200:]!r} {index.definition[:300]}")
                continue
            except NoVerdictError:
                counts["no verdict"] += 1
                continue
            seconds = time.process_time() - began
            slowest = max(slowest, seconds)
            if seconds > SLOW:
                tell(f"{kind}: {seconds:.1f} s for {result.text!r} {index.definition[:200]}")
            counts["invalid" if error or not result.complete else "valid"] += 1
            counts[f"by {result.ended_by}"] += 1
            if error:
                tell(f"{kind}: {error}: {result.text!r} {index.definition[:300]}")
        if kind != "JSON Schema":
            tell(f"{kind}: {dict(counts)}")
    return found, slowest


def figures(found: dict[str, Counter[str]], slowest: float) -> list[report.Figure]:
    """What is to be reached: all of them valid, none of them slow."""
    total = sum(found.values(), Counter())
    count = total["valid"] + total["invalid"] + total["none"]
    return [
        report.Figure("valid of adversarial outputs", total["valid"] / max(1, count), 1.0, True, "", count),
        report.Figure("slowest of them", slowest, SLOW, False, "s", count),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=run.MASKBENCH, help="the .jsonl.gz file with schemas and tests")
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    shown = run.console()
    kept = run.begin(shown, vars(options))
    found, slowest = judged(options.data, options.outputs, options.seed, lambda line: print(line, flush=True))
    for kind, counts in found.items():
        shown.print(f"{kind:12}", dict(counts))
    reached = figures(found, slowest)
    for figure in reached:
        shown.print(f"{figure.name:40} {figure.measured:12,.4f} of {figure.cases:,}")
    of_figures = {"figures": [asdict(figure) for figure in reached], "outputs": found}
    run.end(shown, kept | of_figures, options.save)


if __name__ == "__main__":
    main()
