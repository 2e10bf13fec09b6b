"""Grammars that come with structgen in Lark's syntax. `load` one, or ``%import`` rules of it into another grammar.

``arithmetic``: expressions of numbers, names and calls, a part of Python's.
``c``: C11 after preprocessing.
``gnu_c``: C with the extensions of GCC, as `gcc -E` leaves it, system headers included.
``go``: Go 1.27, whole files.
``graphql``: GraphQL of September 2025: operations, fragments, definitions of types.
``java``: Java 25, whole files.
``json``: JSON, as RFC 8259 has it.
``jsonc``: JSON with comments, and a comma before a bracket closes.
``markdown``: a reply of prose and fenced code blocks, whose code may be held to another grammar.
``python3``: Python 3.10 and 3.11, whole files.
``sql``: SQL as SQLite 3.40 reads it.
``toml``: TOML 1.0, but that keys and tables are not counted.
"""

from __future__ import annotations

from ..definitions.shipped import FOLDER, names, path
from ..definitions.values import Grammar
from ..system.types import Foreign

__all__ = ["FOLDER", "load", "names", "path"]


def load(name: str, *, extra: str = "", **options: Foreign) -> Grammar:
    """Return a shipped grammar, with the lexer, the start and the indentation that it was written for.

    Parameters
    ----------
    name:
        One of `names`.
    extra:
        More text for the grammar, such as ``%extend typedef_name: "my_type"``.
    options:
        Options of `Grammar` that replace the grammar's own.

    Raises
    ------
    KeyError
        For an unknown name. Also the errors of `Grammar`.
    """
    whole = Grammar(path(name), **options)
    if not extra:
        return whole
    own = {name: getattr(whole, name) for name in ("start", "lexer", "ambiguity", "postlex")}
    found = Grammar(f"{whole.text}\n{extra}\n", **own | options)
    object.__setattr__(found, "path", whole.path)  # whose conflicts are meant
    return found
