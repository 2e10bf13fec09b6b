"""The text of a grammar: where it comes from, and the files that it imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from os import PathLike
from pathlib import Path

from ..errors import BudgetExceededError, DefinitionError
from ..system.digest import blake2b
from .shipped import FOLDER

#: Files that a grammar may name, or seem to: each import is looked for in several folders.
_MOST_FILES = 10_000

#: Folders within folders that a file may lie in.
_MOST_FOLDERS = 64

#: What Lark skips inside a line.
GAP = r"(?:[ \t]|\\[ ]*\n)*"

#: An import, as far as it names a file: a dot or none, and names with dots between them.
_IMPORT = re.compile(rf"%import(?:{GAP}(\.))?{GAP}(\w+(?:{GAP}\.{GAP}\w+)*)")


#: What stands before the first rule of a grammar in either syntax; how one of Lark's begins, or another statement.
_BEFORE = re.compile(r"\s+|#[^\n]*|//[^\n]*")
_LARKS = re.compile(r"[?!]*\w+\s*(\{[^}\n]*\}\s*)?(\.\s*-?\d+\s*)?:(?!:=)|%[a-z]")


def is_larks(text: str) -> bool:
    """Whether a grammar's first rule, or what stands before it, is written as in Lark: ``name:`` or ``%import``."""
    at = 0
    while (found := _BEFORE.match(text, at)) is not None:
        at = found.end()
    return _LARKS.match(text, at) is not None


def read_grammar(source: object) -> tuple[str, str]:
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
        what = f"the grammar cannot be read: {error}"
        raise DefinitionError(what, where=str(path), remedy="Check its name and permissions; it is UTF-8.") from error


@dataclass(frozen=True)
class Imports:
    """The files that a grammar imports, and those import, as they were when each was read, once.

    Both what a definition means and its key come from here, so that an edit in between makes no difference. There may
    be a file too many, for which part of a dotted name is the file is not looked into.

    Parameters
    ----------
    folders:
        In which imports are looked for before all others.
    files:
        What the files hold, by their absolute paths.
    """

    folders: tuple[Path, ...]
    files: tuple[tuple[Path, bytes], ...]

    @classmethod
    def read(cls, text: str, path: str, folders: Sequence[str]) -> Imports:
        """Read what the text of a file imports, or of none (``""``).

        Raises `BudgetExceededError` for a text that names files without end.
        """
        tried: dict[Path, bytes | None] = {}
        found = cls(tuple(Path(folder).absolute() for folder in folders), ())
        named: set[tuple[Path | None, tuple[str, ...]]] = set()
        todo = [(text, Path(path).parent if path else None)]
        while todo:
            here, folder = todo.pop()
            for statement in _IMPORT.finditer(here):
                name = folder if statement[1] else None, tuple(re.findall(r"\w+", statement[2])[:_MOST_FOLDERS])
                if name in named:
                    continue
                named.add(name)
                for file in found._candidates(*name):
                    if file in tried:
                        continue
                    if len(tried) >= _MOST_FILES:
                        raise BudgetExceededError(f"the grammar names more than {_MOST_FILES} files to import")
                    data = tried[file] = _content(file)
                    if data is not None:
                        todo.append((data.decode("utf-8", "replace"), file.parent))
        return cls(found.folders, tuple((file, data) for file, data in tried.items() if data is not None))

    def find(self, folder: str | None, name: str) -> tuple[str, str]:
        """The path and the text of an import, for Lark, in place of its own ways to look for it.

        Parameters
        ----------
        folder:
            Of the file in which the import is, if it is relative to that.
        name:
            The file's, with those of folders before it.

        Raises `DefinitionError` where there is none, `UnicodeDecodeError` for one that is no text.
        """
        files = dict(self.files)
        for base in self._bases(None if folder is None else Path(folder)):
            data = files.get(base / name)
            if data is not None:
                return str(base / name), TextIOWrapper(BytesIO(data), encoding="utf-8").read()
        raise DefinitionError(
            f"there is no grammar {name} to import",
            remedy="Name its folder in import_paths; what begins with a dot is looked for beside the grammar's file.",
        )

    @property
    def are_known(self) -> bool:
        """Whether all of them come with structgen or with Lark."""
        return all(file.parent in (FOLDER, _larks_folder()) for file, _ in self.files)

    def digests(self) -> list[list[str]]:
        """Name and hash of each file."""
        return [[file.name, blake2b(data, digest_size=16).hexdigest()] for file, data in self.files]

    def _bases(self, folder: Path | None) -> tuple[Path, ...]:
        """Where imports are looked for, the first place that has one counting."""
        return (*self.folders, *((FOLDER, _larks_folder()) if folder is None else (folder,)))

    def _candidates(self, folder: Path | None, parts: tuple[str, ...]) -> Iterator[Path]:
        """Where the file of an import may lie."""
        for base in self._bases(folder):
            for length in range(1, len(parts) + 1):
                yield base.joinpath(*parts[:length]).with_suffix(".lark")


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (OSError, ValueError):  # nothing there, or nothing that Lark could read, either
        return None


@cache
def _larks_folder() -> Path:
    """Where the grammars are that come with Lark, which is not loaded for that."""
    found = find_spec("lark")
    return Path(found.origin if found is not None and found.origin else "lark").absolute().parent / "grammars"
