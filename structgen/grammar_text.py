"""The text of a grammar: where it comes from, and the files that it imports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from .errors import DefinitionError
from .grammars import FOLDER

#: An import, as far as it names a file: dots, and names with dots between them.
_IMPORT = re.compile(r"^[ \t]*%import[ \t]+(\.*)([A-Za-z_][\w.]*)", re.MULTILINE)


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
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"the grammar cannot be read: {error}", where=str(path)) from error


def imported_files(text: str, path: str, import_paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every file that a grammar imports, and those import, with a hash of what it holds; not Lark's own grammars.

    It may name a file too many, never one too few: which part of a dotted name is the file is not looked into.
    """
    seen: set[Path] = set()
    todo = [(text, Path(path).parent if path else None)]
    while todo:
        here, folder = todo.pop()
        for found in _IMPORT.finditer(here):
            dots, name = found[1], found[2]
            for file in _candidates(dots, name, folder, import_paths):
                if file in seen or not file.is_file():
                    continue
                seen.add(file)
                data = file.read_bytes()
                yield file.name, hashlib.blake2b(data, digest_size=16).hexdigest()
                todo.append((data.decode("utf-8", "replace"), file.parent))


def _candidates(dots: str, name: str, folder: Path | None, import_paths: Sequence[str]) -> Iterator[Path]:
    """Where the file of an import may lie."""
    parts = name.split(".")
    folders = [*(Path(each) for each in import_paths), FOLDER]
    if folder is not None:
        for _ in dots[1:]:
            folder = folder.parent
        folders.append(folder)
    for base in folders:
        for length in range(1, len(parts) + 1):
            yield base.joinpath(*parts[:length]).with_suffix(".lark").absolute()
