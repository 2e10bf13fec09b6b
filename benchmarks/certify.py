"""Certificates of MaskBench's schemas: whether each item is decided, in what time, and planted defects.

    python -m benchmarks.certify                      # 300 schemas: two minutes
    python -m benchmarks.certify --limit 30 --items language,unused_parts

Rows are items of `sg.certify`; "all" is a schema's items together, in processor time, which other programs do not
lengthen. Schemas that are refused are compiled with ``lenient=True``. *Planted* are schemas of the sample with a part
more, which no text can use: `unused_parts` has to name its place, and nothing besides but what it named before.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import structgen as sg
from structgen.certificates.certify import ITEMS

from . import run, vocabularies
from .json_schema import instances

#: The questions whose answers have no number of random texts in them, nor all tokens.
FIRST = [*ITEMS][:6]

#: Seconds in which all of them are to be answered.
GOAL = 5.0

#: What no text can use, put beside or into a property, and what is then named below the property.
PLANTED: dict[str, tuple[dict[str, Any], str]] = {
    "bounds": ({"type": "string", "minLength": 5, "maxLength": 3}, ""),
    "branch": ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 5, "maximum": 3}]}, "/anyOf/1"),
    "enum": ({"allOf": [{"enum": ["a", "b", 7]}, {"type": "string"}]}, "/allOf/0"),
    "items": ({"type": "array", "maxItems": 1, "anyOf": [{"minItems": 1}, {"minItems": 2}]}, "/anyOf/1"),
    "pattern": ({"oneOf": [{"type": "string"}, {"type": "string", "pattern": "^a$"}]}, "/oneOf/1"),
    "members": (
        {"type": "object", "properties": {"x": {}, "y": {}}, "required": ["x"], "maxProperties": 1},
        "/properties/y",
    ),
}


def compiled(schema: Any, vocabulary: sg.Vocabulary) -> sg.Index | None:
    """An index; a lenient one where the schema is refused, None for one without texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lenient in (False, True):
            with suppress(sg.Error):
                return sg.compile(sg.JsonSchema(schema, lenient=lenient), vocabulary, eager=False)
    return None


def measured(index: sg.Index, names: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    """Each item with its seconds, and whether it is decided: of a finite language also its number. Then all."""
    began, are_all = time.process_time(), True
    certificate = sg.certify(index, items=names, budget=sg.Budget(seconds=seconds))
    total = time.process_time() - began
    for item in certificate.items:
        decided = item.verdict != "undecided" and (not item.facts.get("finite") or "texts" in item.facts)
        are_all &= decided
        yield {"item": item.name, "seconds": item.seconds, "decided": decided, "says": item.says}
    yield {"item": "all", "seconds": total, "decided": are_all, "says": ""}


def planted(schema: Any, draw: random.Random) -> tuple[str, Any, str] | None:
    """A schema with a part that no text can use: which, the schema, and its place. None without properties."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict) or "$ref" in schema:
        return None
    if "maxProperties" in schema:
        return None
    name = draw.choice([*PLANTED])
    part, below = PLANTED[name]
    return name, {**schema, "properties": {**schema["properties"], "planted": part}}, f"/properties/planted{below}"


def unused(index: sg.Index) -> set[tuple[str, str]]:
    """The places that `unused_parts` names, with what it says."""
    return {(each.where, each.says) for each in sg.certify(index, items=["unused_parts"])["unused_parts"].findings}


def table_of(rows: list[dict[str, Any]], names: list[str]) -> Table:
    """By item: how many are decided, and seconds."""
    table = Table("item", "schemas", "decided", "median s", "90% s", "99% s", "max s", "slowest")
    for name in [*names, "all"]:
        mine = [row for row in rows if row["item"] == name]
        seconds = np.array([row["seconds"] for row in mine])
        figures = [f"{x:.3f}" for x in (*np.percentile(seconds, [50, 90, 99]), seconds.max())]
        slowest = max(mine, key=lambda row: float(row["seconds"]))["schema"]
        table.add_row(name, f"{len(mine)}", f"{sum(row['decided'] for row in mine)}", *figures, slowest)
    return table


def count_found(shown: Console, lines: list[dict[str, Any]], vocabulary: sg.Vocabulary, seed: int) -> dict[str, Any]:
    """Plant a defect in each schema, and count those that are found."""
    draw, counts, missed = random.Random(seed), dict[str, list[int]](), list[str]()
    for line in lines:
        found = planted(line["schema"], draw)
        before = found and compiled(line["schema"], vocabulary)
        after = before and found and compiled(found[1], vocabulary)
        if not (found and before and after):
            continue
        name, _, place = found
        new = {where for where, _ in unused(after) - unused(before)}
        count = counts.setdefault(name, [0, 0])
        count[0], count[1] = count[0] + (new == {place}), count[1] + 1
        if new != {place}:
            missed.append(f"{line['id']} {name}: {sorted(new)}")
    figures = {name: f"{hits} of {all_}" for name, (hits, all_) in counts.items()}
    shown.print("planted, found of all:", figures, *missed)
    return {"found": counts, "missed": missed}


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=run.MASKBENCH)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="the budget of a schema's items together")
    parser.add_argument("--items", default=",".join(FIRST))
    parser.add_argument("--vocab", default="llama3", help="a folder of tokenizers, or 'bytes'")
    parser.add_argument("--only", default="", help="schemas with this in their names")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    shown = run.console()
    kept = run.begin(shown, vars(options))
    names = run.names(options.items, [*ITEMS])
    vocabulary = sg.Vocabulary.bytewise()
    if options.vocab != "bytes":
        vocabulary = sg.Vocabulary.from_pretrained(vocabularies.TOKENIZERS / options.vocab)
    lines = instances.read(options.data, limit=options.limit, seed=options.seed)
    lines = [line for line in lines if options.only in line["id"]]
    rows, refused = list[dict[str, Any]](), list[str]()
    for line in lines:
        index = compiled(line["schema"], vocabulary)
        if index is None:
            refused.append(line["id"])
            continue
        here = list(measured(index, names, options.seconds))
        rows += [{"schema": line["id"], **row} for row in here]
        for row in here:
            if not row["decided"] or row["seconds"] > GOAL / 5:
                shown.print(f"{line['id']} {row['item']}: {row['seconds']:.2f} s, {row['says']}", markup=False)
    shown.print(table_of(rows, names), f"{len(refused)} of {len(lines)} schemas have no text:", refused)
    kept |= {"rows": rows, "refused": refused, "planted": count_found(shown, lines, vocabulary, options.seed)}
    run.end(shown, kept, options.save)


if __name__ == "__main__":
    main()
