"""Options that several subcommands share, and what they are turned into."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import VocabularyError

if TYPE_CHECKING:
    from ..budget import Budget
    from ..cache.cache import Cache
    from ..vocabulary.vocabulary import Vocabulary

#: Of the names of index files.
INDEX_SUFFIX = ".sgx"

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def parse_size(text: str) -> int:
    """A number of bytes: ``4096``, ``500MB``, ``1.5GiB``. Raises `typer.BadParameter` for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?i?)b?", text.strip(), re.I)
    if found is None or found[2].lower() not in _UNITS:
        raise typer.BadParameter(f"{text!r} is not a size. Write 4096, 500MB or 1.5GiB.")
    return int(float(found[1]) * _UNITS[found[2].lower()])


Tokenizer = Annotated[
    str,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="T",
        help="A model's folder or hub name, a tekken.json, a .gguf file, or the word [bold]tekken[/] for the newest "
        "one that mistral-common ships.",
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="The cache's folder.",
        show_default="structgen's folder in the user's cache",
    ),
]
Dialect = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="NAME",
        show_default="Python's regexes, XGrammar's EBNF",
        help="What .regex files (re, ecma, rust) or .ebnf files (xgrammar, transformers-cfg) were written for.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for scripts.")]
MaxStates = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Give up on a definition beyond this many states.")
]
MaxMemory = Annotated[
    int | None,
    typer.Option(metavar="SIZE", parser=parse_size, help="... beyond this much memory for its arrays: 500MB, 2GiB."),
]
MaxSeconds = Annotated[float | None, typer.Option(metavar="S", min=0.001, help="... beyond this many seconds.")]


def make_budget(states: int | None, memory: int | None, seconds: float | None) -> Budget:
    """A `Budget` of the limits that were given, and its defaults for the rest."""
    from ..budget import Budget

    given = {"states": states, "memory": memory, "seconds": seconds}
    return Budget(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def open_cache(folder: Path | None) -> Cache:
    """The cache in ``folder``, or the user's own one."""
    from ..cache.cache import Cache

    return Cache(folder)


def load_vocabulary(spec: str) -> Vocabulary:
    """Read the vocabulary that ``--tokenizer`` names; see `Tokenizer`. Raises `VocabularyError`."""
    from ..vocabulary.vocabulary import Vocabulary

    path = Path(spec)
    if spec == "tekken":
        return Vocabulary.from_tekken()
    if path.is_file():
        if path.suffix == ".gguf":
            return Vocabulary.from_gguf(path)
        if "tekken" not in path.name:
            raise VocabularyError(
                f"a tokenizer is a folder, a hub name, a tekken.json or a .gguf, got the file {path.name}",
                where=spec,
                remedy="Pass the folder that holds the file.",
            )
        return Vocabulary.from_tekken(path)
    if (path / "tekken.json").is_file() and not (path / "tokenizer.json").is_file():
        return Vocabulary.from_tekken(path / "tekken.json")
    return Vocabulary.from_pretrained(spec)


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2))
