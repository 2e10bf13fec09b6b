"""The grammars that come with structgen: their files, and the options that each is written for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

#: Where the files are; every grammar's imports are looked for here, too.
FOLDER = Path(__file__).parents[1] / "grammars"

_BASIC, _ALL = {"lexer": "basic"}, {"lexer": "basic", "ambiguity": "all"}

#: By name: the options of a `Grammar` that is read from the file, unless it has others. A ``postlex`` is Python's.
OPTIONS: Mapping[str, Mapping[str, object]] = {
    "c": _BASIC, "c_names": _ALL, "gnu_c": _BASIC, "go": _BASIC, "graphql": _BASIC, "java": _ALL, "sql": _BASIC,
    "python3": {"start": "file_input", "postlex": True},
}  # fmt: skip


#: No grammar in `OPTIONS` has fewer characters.
_SHORTEST = 400


@cache
def _text(name: str) -> str:
    return path(name).read_text(encoding="utf-8")


def names() -> list[str]:
    """Return the names of the shipped grammars."""
    return sorted(file.stem for file in FOLDER.glob("*.lark"))


def path(name: str) -> Path:
    """Return the file of the shipped grammar ``name``.

    Raises
    ------
    KeyError
        For a name that is not among `names`.
    """
    if name not in names():
        raise KeyError(f"there is no grammar {name!r}; there are {', '.join(names())}")
    return FOLDER / f"{name}.lark"


def is_shipped(file: str) -> bool:
    """Return whether a grammar's file, ``""`` for none, is one of these."""
    return bool(file) and Path(file).parent == FOLDER


def that_need_basic(text: str, files: Iterable[str]) -> list[str]:
    """Return those written for the basic lexer that a text holds, or that are among its files."""
    there = {Path(file).stem for file in files if is_shipped(file)}
    needing = [name for name, options in OPTIONS.items() if options.get("lexer") == "basic"]
    return [name for name in needing if name in there or _text(name) in text]


def options_of(file: str, text: str) -> Mapping[str, object]:
    """Return the options that one of these, known by its file or its text, is written for; others have none."""
    if is_shipped(file):
        return OPTIONS.get(Path(file).stem, {})
    return next((options for name, options in OPTIONS.items() if len(text) >= _SHORTEST and text == _text(name)), {})
