"""Explanations of refusals: how many name what stands against a text, by outside judges, and what asking takes.

    python -m benchmarks.explain                      # 400 schemas and the C grammar: some minutes
    python -m benchmarks.explain --schemas 2000 --wrong
    python -m benchmarks.explain --sizes 300          # only what provenance takes on disk

Texts are MaskBench's instances, half of them with an edit at a random place, and C programs with a word too many.
A process has asked about something else of the kind before, so that no import is in the times.
Of schemas `judges.loosening` takes out what is named: the text must go on then. Of C the terminals that are named
must be those that Lark's parser accepts.

With ``--sizes`` indexes of so many schemas and of all shipped grammars are packed with provenance and without it: as
they are before any row is worked out, which makes its share as large as it can be. A schema's places are read off its
own text, which every index holds; that text counts as provenance in a row of its own.

Without the shared data or gcc's headers their part is left out.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from lark.indenter import PythonIndenter
from rich.console import Console

import structgen as sg
from structgen import grammars
from structgen.correction.path import Path as IndexPath
from structgen.explanations.grammar_findings import expected_terminals
from structgen.runtime.grammar.parser.provenance import SECTION
from structgen.storage.container import pack, unpack

from . import report, run
from .grammar import corpora
from .json_schema import instances

sys.path.append(str(run.ROOT / "tests"))  # where judges are

from judges.lark_judge import judge, refused
from judges.loosening import is_right

#: What is put into a text; edits of an instance, beside the instance itself; instances of a schema.
EDITS, CHANGES, INSTANCES = [b"1", b'"', b"}", b"]", b",", b"a", b"null", b"{", b"", b"-"], 2, 4

#: After so many C files their grammar has a new index, which has not been asked.
RENEWED = 4

#: The times of a question: the first of an index, one about another text, the same again. A guide that has read a
#: text, and has its mask, is asked about what is refused; an index about the whole text, which it follows first.
TIMES = ("first", "later", "again")
ASKED = ("its guide", "whole text")

#: What is wanted.
RIGHT, MILLISECONDS, LARGER = 0.99, 5.0, 1.5


class Indexes(NamedTuple):
    """The same definition for each way to ask, so that none is helped by what another remembers."""

    of_guides: sg.Index
    of_texts: sg.Index

    @classmethod
    def of(cls, definition: sg.Definition) -> Indexes:
        """Compile it twice, for bytes. Raises `sg.Error`."""
        vocabulary = sg.Vocabulary.bytewise()
        return cls(*(sg.compile(definition, vocabulary, eager=False, base_rows=False) for _ in cls._fields))


@dataclass
class Outcomes:
    """What came of the questions about definitions of a kind.

    Parameters
    ----------
    milliseconds:
        By `ASKED` and `TIMES`, each with the name of what was asked.
    judged, wrong:
        How many refusals, and those whose reasons are not right: names, texts and what was said of them.
    """

    milliseconds: dict[tuple[str, str], list[tuple[float, str]]] = field(
        default_factory=lambda: {key: [] for key in product(ASKED, TIMES)}
    )
    judged: int = 0
    wrong: list[str] = field(default_factory=list)

    def ask(self, indexes: Indexes, name: str, data: bytes, *, first: bool) -> sg.Explanation:
        """Ask twice in both ways, with the clock; what is said of the whole text."""
        guide = sg.Guide(indexes.of_guides)
        consumed = next((at for at, byte in enumerate(data) if not guide.advance(byte)), len(data))
        guide.bitmask()  # of the step at which it is refused
        if consumed < len(data):  # else it is the end that is refused
            self._timed(ASKED[0], name, first, lambda: sg.explain(guide, data[consumed:], completion=False))
        return self._timed(ASKED[1], name, first, lambda: sg.explain(indexes.of_texts, data, completion=False))

    def _timed(self, asked: str, name: str, first: bool, ask: Callable[[], sg.Explanation]) -> sg.Explanation:
        for time_of in ("first" if first else "later", "again"):
            began = time.thread_time()
            found = ask()
            self.milliseconds[asked, time_of].append((1e3 * (time.thread_time() - began), name))
        return found

    def judge(self, name: str, found: sg.Explanation, right: bool) -> None:
        self.judged += 1
        if not right:
            said = [(reason.kind, reason.where) for reason in found.reasons]
            self.wrong.append(f"{name}: {found.data[: found.consumed + 1][-70:]!r}: {said} {found.notes}")


def load(definition: sg.Definition, data: bytes) -> None:
    """Ask about an unrelated definition, so that modules are loaded."""
    assert not sg.explain(sg.compile(definition, sg.Vocabulary.bytewise(), eager=False), data).accepted


def of_schemas(path: Path, schemas: int, seed: int) -> Outcomes:
    """Of MaskBench's schemas."""
    outcomes, draw = Outcomes(), random.Random(seed)
    load(sg.JsonSchema({"type": "boolean"}), b"1")
    for line in instances.read(path, limit=schemas, seed=seed):
        definition = sg.JsonSchema(line["schema"])
        try:
            indexes = Indexes.of(definition)
        except sg.Error:
            continue
        first = True
        for data in _texts(line["tests"][:INSTANCES], draw):
            match = indexes.of_texts.match(data)
            if match.accepted:
                continue
            found = outcomes.ask(indexes, line["id"], data, first=first)
            assert (found.accepted, found.consumed) == (False, match.consumed)
            first = False
            right = is_right(line["schema"], {}, found)
            if right is not None:
                outcomes.judge(line["id"], found, right)
    return outcomes


def _texts(tests: list[dict[str, Any]], draw: random.Random) -> Iterator[bytes]:
    """Instances, each as it is and edited."""
    for test in tests:
        text = json.dumps(test["data"], ensure_ascii=False).encode()
        yield text
        for _ in range(CHANGES):
            data, at = bytearray(text), draw.randrange(len(text) + 1)
            data[at : at + draw.randrange(3)] = draw.choice(EDITS)
            yield bytes(data)


def of_c(texts: int, seed: int) -> Outcomes:
    """Of the shipped grammar of C."""
    outcomes, draw = Outcomes(), random.Random(seed)
    load(sg.Grammar('start: "a"+ ";"'), b"ab")
    file = grammars.path("c")
    indexes, is_asked = Indexes.of(sg.Grammar(file)), False
    parser = judge(file, "contextual")
    found, _ = corpora.c_texts(corpora.Sources(limit=texts, seed=seed))
    for number, each in enumerate(found):
        if is_asked and not number % RENEWED:
            indexes, is_asked = Indexes.of(sg.Grammar(file)), False
        index = indexes.of_texts
        words = each.text.split()[:400]
        at = draw.randrange(len(words))
        text = " ".join([*words[:at], draw.choice(words), *words[at:]])
        error = refused(parser, text)
        if error is None or index.match(text.encode()).accepted:
            continue
        explanation = outcomes.ask(indexes, each.name, text.encode(), first=not is_asked)
        is_asked = True
        path, data = IndexPath(index), text[: error[0]].encode()
        if path.extend(data) == len(data) == explanation.consumed:
            named = set(explanation.reasons[0].where)
            alike = named <= error[1] == expected_terminals(index, path.config)
            outcomes.judge(each.name, explanation, bool(named) and alike)
    return outcomes


class Bytes(NamedTuple):
    """The sizes of a packed index: with provenance, without it, without the definition's text as well."""

    name: str
    whole: int
    without: int
    without_text: int


def sizes(path: Path, schemas: int, seed: int) -> dict[str, list[Bytes]]:
    """By kind, what indexes take."""
    definitions: list[tuple[str, str, sg.Definition]] = []
    if path.is_file():
        lines = instances.read(path, limit=schemas, seed=seed)
        definitions += [("JSON Schema", line["id"], sg.JsonSchema(line["schema"])) for line in lines]
    for name in grammars.names():
        options: dict[str, Any] = {"python3": {"start": "file_input", "postlex": PythonIndenter()}}.get(name, {})
        definitions.append(("grammars", name, sg.Grammar(grammars.path(name), **options)))
    found: dict[str, list[Bytes]] = {}
    for kind, name, definition in definitions:
        try:
            index = sg.compile(definition, sg.Vocabulary.bytewise(), eager=False, base_rows=False)
        except sg.Error:
            continue
        meta, sections = unpack(index.to_bytes())
        without = {each: column for each, column in sections.items() if each != SECTION}
        packed = (pack(meta, sections), pack(meta, without), pack({**meta, "definition": ""}, without))
        found.setdefault(kind, []).append(Bytes(name, *map(len, packed)))
    return found


def show_sizes(console: Console, found: dict[str, list[Bytes]]) -> list[report.Figure]:
    """How many times as large indexes are with provenance: all together, and at most."""
    rows, figures = [], []
    for kind, measured in found.items():
        whole = sum(each.whole for each in measured)
        most = max(each.whole / each.without for each in measured)
        figures.append(report.Figure(f"{kind}: bytes with it", most, LARGER, False, "x", len(measured)))
        for what, column in (("provenance", "without"), ("with the definition's text", "without_text")):
            ratios = sorted((each.whole / getattr(each, column), each.name) for each in measured)
            together = whole / sum(getattr(each, column) for each in measured)
            shown = f"{together:.3f}", f"{ratios[len(ratios) // 2][0]:.3f}", f"{ratios[-1][0]:.3f} {ratios[-1][1]}"
            rows.append([kind, what, str(len(measured)), *shown])
    columns = ["kind", "counted", "indexes", "all together", "median", "most"]
    report.show_rows(console, "bytes with provenance, by those without", columns, rows)
    return figures


def show(console: Console, name: str, outcomes: Outcomes, *, wrong: bool) -> list[report.Figure]:
    """The tables of a kind, and its figures."""
    rows = []
    for (asked, times), found in outcomes.milliseconds.items():
        if found:
            measured = sorted(value for value, _ in found)
            shown = (statistics.median(measured), measured[int(0.99 * (len(measured) - 1))])
            worst = ", ".join(f"{value:.0f} {of}" for value, of in sorted(found, reverse=True)[:3])
            rows.append([asked, times, str(len(found)), *(f"{value:.2f}" for value in shown), worst])
    report.show_rows(console, f"{name}: milliseconds", ["asked", "time", "questions", "median", "p99", "worst"], rows)
    for line in outcomes.wrong if wrong else ():
        console.print(line, markup=False)
    if not outcomes.judged:
        return []
    right = 1 - len(outcomes.wrong) / outcomes.judged
    figures = [report.Figure(f"{name}: reasons that are right", 100 * right, 100 * RIGHT, True, "%", outcomes.judged)]
    for times in TIMES[:2]:
        if taken := [value for value, _ in outcomes.milliseconds[ASKED[0], times]]:
            middle = statistics.median(taken)
            what = f"{name}: a refused token, {times}"
            figures.append(report.Figure(what, middle, MILLISECONDS, False, "ms", len(taken)))
    return figures


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=400, help="MaskBench's schemas, drawn at random")
    parser.add_argument("--texts", type=int, default=60, help="C files")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--data", type=Path, default=run.MASKBENCH)
    parser.add_argument("--sizes", type=int, default=0, help="only bytes on disk, of so many schemas")
    parser.add_argument("--wrong", action="store_true", help="list the refusals whose reasons are not right")
    parser.add_argument("--save", type=Path, help="a JSON file for the result")
    options = parser.parse_args()
    console = run.console()
    kept = run.begin(console, vars(options))
    if options.sizes:
        figures = show_sizes(console, sizes(options.data, options.sizes, options.seed))
        options.schemas = options.texts = 0
    else:
        figures = []
    if options.schemas and options.data.is_file():
        outcomes = of_schemas(options.data, options.schemas, options.seed)
        figures += show(console, "JSON Schema", outcomes, wrong=options.wrong)
    if options.texts:
        figures += show(console, "C", of_c(options.texts, options.seed), wrong=options.wrong)
    report.show_figures(console, figures)
    run.end(console, kept | {"figures": [figure.as_json() for figure in figures]}, options.save)


if __name__ == "__main__":
    main()
