"""The text of a grammar: where it comes from, and the files that it imports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from .errors import DefinitionError
from .grammars import FOLDER

#: What Lark skips inside a line.
GAP = r"(?:[ \t]|\\[ ]*\n)*"

#: An import, as far as it names a file: a dot or none, and names with dots between them.
_IMPORT = re.compile(rf"%import(?:{GAP}(\.))?{GAP}(\w+(?:{GAP}\.{GAP}\w+)*)")

#: Imports in a text, and folders that a file lies within. What has more is not compiled.
MOST_IMPORTS, MOST_FOLDERS = 4_000, 64


def read_grammar(source: Any) -> tuple[str, str]:
    """The text of a grammar, and the file that it is from or ``""``. Raises `DefinitionError`."""
    if isinstance(source, str):
        return source, ""
    if not isinstance(source, PathLike):
        raise DefinitionError(
            f"a grammar is a str with its text, or a path, got {type(source).__name__}", remedy="Pass one of these."
        )
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8"), str(path.absolute())
    except (OSError, ValueError) as error:  # no UTF-8, or a name that no file has
        raise DefinitionError(f"the grammar cannot be read: {error}", where=str(path)) from error


def imported_files(text: str, path: str, import_paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every file that a grammar imports, and those import, with a hash of what it holds; not Lark's own grammars.

    It may name a file too many, never one too few: which part of a dotted name is the file is not looked into.
    """
    seen: set[Path] = set()
    todo = [(text, Path(path).parent if path else None)]
    while todo:
        here, folder = todo.pop()
        for found in islice(_IMPORT.finditer(here), MOST_IMPORTS):
            for file in _candidates(re.findall(r"\w+", found[2]), folder if found[1] else None, import_paths):
                if file in seen:
                    continue
                seen.add(file)
                try:
                    data = file.read_bytes()
                except (OSError, ValueError):  # nothing there, or nothing that Lark could read, either
                    continue
                yield file.name, hashlib.blake2b(data, digest_size=16).hexdigest()
                todo.append((data.decode("utf-8", "replace"), file.parent))


def _candidates(parts: list[str], folder: Path | None, import_paths: Sequence[str]) -> Iterator[Path]:
    """Where the file of an import may lie."""
    for base in (*map(Path, import_paths), FOLDER, *([folder] if folder else [])):
        for length in range(1, min(len(parts), MOST_FOLDERS) + 1):
            yield base.joinpath(*parts[:length]).with_suffix(".lark").absolute()
