"""Grammars that come with structgen in Lark's syntax. Pass `path` to `structgen.Grammar`, or ``%import`` their rules.

``arithmetic``: expressions of numbers, names and calls, a part of Python's.
``c``: C11 after preprocessing.
``gnu_c``: C with the extensions of GCC, as `gcc -E` leaves it, system headers included.
``go``: Go 1.27, whole files.
``graphql``: GraphQL of September 2025: operations, fragments, definitions of types.
``java``: Java 25, whole files.
``json``: JSON, as RFC 8259 has it.
``jsonc``: JSON with comments, and a comma before a bracket closes.
``markdown``: a reply of prose and fenced code blocks, whose code may be held to another grammar.
``python3``: Python 3.10 and 3.11, for ``start="file_input"`` with Lark's ``PythonIndenter``.
``sql``: SQL as SQLite 3.40 reads it.
``toml``: TOML 1.0, but that keys and tables are not counted.
"""

from __future__ import annotations

from pathlib import Path

#: Where the files are; every grammar's imports are looked for here, too.
FOLDER = Path(__file__).parent


def names() -> list[str]:
    """What there is."""
    return sorted(file.stem for file in FOLDER.glob("*.lark"))


def path(name: str) -> Path:
    """The file of a grammar. Raises `KeyError` for a name that is not among `names`."""
    if name not in names():
        raise KeyError(f"there is no grammar {name!r}; there are {', '.join(names())}")
    return FOLDER / f"{name}.lark"
