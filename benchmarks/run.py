"""What every benchmark begins and ends with: places, notes on the run, names in options, the JSON file."""

from __future__ import annotations

import datetime
import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from . import machine

ROOT = Path(__file__).resolve().parents[1]

#: Characters of a line in what `written` makes.
_WIDTH = 118

#: MaskBench's schemas; beside the repository, not in it.
MASKBENCH = Path(
    os.environ.get("STRUCTGEN_MASKBENCH") or ROOT.parent / "shared" / "data" / "maskbench" / "dev.jsonl.gz"
)


def console() -> Console:
    """The terminal; or a file, wide enough for every table."""
    return Console() if sys.stdout.isatty() else Console(width=180)


def begin(shown: Console, options: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run: when, on what and with what; `end` adds the rest."""
    kept = {
        "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "versions": machine.versions(),
        "load at the beginning": machine.load(),
        "options": {name: value.name if isinstance(value, Path) else value for name, value in options.items()},
    }
    shown.print(kept["machine"], kept["versions"], f"load {kept['load at the beginning']:.1f}")
    return kept


def end(shown: Console, kept: dict[str, Any], path: Path | None) -> None:
    """Write a run to a JSON file, where there is to be one."""
    kept["load at the end"] = machine.load()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written(kept) + "\n")
        shown.print(f"written to {path.resolve()}")


def written(value: object, depth: int = 0) -> str:
    """JSON in which a line holds what fits into one; numbers fill lines."""
    line = json.dumps(value, default=str)
    if depth + len(line) <= _WIDTH or not isinstance(value, dict | list | tuple):
        return line
    margin = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        inner = [f"{json.dumps(str(name))}: {written(each, depth + 1)}" for name, each in value.items()]
    elif all(isinstance(each, int | float) for each in value):
        inner = [margin.join(textwrap.wrap(line[1:-1], _WIDTH - depth - 1))]
    else:
        inner = [written(each, depth + 1) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}{margin}{f',{margin}'.join(inner)}{margin[:-1]}{closing}"


def results(kept: Mapping[str, Any], name: str, folder: Path | None, *, complete: bool) -> Path:
    """The file of a run; those in part go to a folder that git ignores."""
    place = ROOT / "benchmarks" / "results"
    return (folder or (place if complete else place / "local")) / f"{kept['began'][:10]}-{name}.json"


def names(text: str, known: Sequence[str]) -> list[str]:
    """The names in a list with commas, in the order known. Raises `ValueError` for others."""
    chosen = {name.strip() for name in text.split(",")} - {""}
    if unknown := chosen - set(known):
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [name for name in known if name in chosen]
