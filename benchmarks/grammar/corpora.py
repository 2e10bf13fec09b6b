"""What the benchmark of grammars reads: C, SQL, Python and JSON as people write them, and the grammars for them.

A workload is a row of `WORKLOADS`; one whose grammar does not come with structgen is left out.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structgen as sg
from structgen import grammars

#: Texts that are shorter say little, longer ones would be most of the steps.
_CHARACTERS = range(100, 60_000)


@dataclass(frozen=True)
class Text:
    """One file.

    Parameters
    ----------
    name:
        What it is called in lists.
    project:
        What it is part of: what one project has, the others have not seen.
    text:
        What is read.
    types:
        The names that a C file's headers and the file itself declare as types, as far as the file uses them.
    """

    name: str
    project: str
    text: str
    types: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sources:
    """Where texts come from, and how many of them.

    Parameters
    ----------
    folders:
        Where to look; empty for the workload's own.
    limit:
        How many texts at most, drawn at random; None takes the workload's own number.
    seed:
        For the draw.
    comments:
        Whether C keeps its comments.
    """

    folders: tuple[Path, ...] = ()
    limit: int | None = None
    seed: int = 0
    comments: bool = False


#: Texts, and for each that could not be had why.
Found = tuple[list[Text], dict[str, str]]


@dataclass(frozen=True)
class Workload:
    """A grammar and texts for it.

    Parameters
    ----------
    grammars:
        Names in `structgen.grammars`: the first that is there is taken.
    vocabulary:
        The tokenizer that is taken where none is named.
    texts:
        Finds them.
    shapes:
        For the memory of a guide: by name, how a text begins and what is repeated then.
    options:
        Makes options of `structgen.Grammar`.
    extend:
        Lines that go behind the grammar for all the texts.
    """

    grammars: tuple[str, ...]
    vocabulary: str
    texts: Callable[[Sources], Found]
    shapes: Mapping[str, tuple[str, str]]
    options: Callable[[], dict[str, Any]] = dict
    extend: Callable[[Sequence[Text], str], str] | None = None

    def available(self) -> list[str]:
        """Those of its grammars that are there."""
        return [name for name in self.grammars if name in grammars.names()]

    def definition(self, texts: Sequence[Text]) -> sg.Grammar:
        """The grammar, one for all of the texts."""
        path = grammars.path(self.available()[0])
        if self.extend is None:
            return sg.Grammar(path, **self.options())
        text = path.read_text(encoding="utf-8")
        return sg.Grammar(text + self.extend(texts, text), **self.options())


def available() -> list[str]:
    """The workloads whose grammars are there."""
    return [name for name, workload in WORKLOADS.items() if workload.available()]


def _sampled(paths: Iterable[Path], sources: Sources, usual: int) -> list[Path]:
    """Some of the files, always the same for a seed, in order: files of a project stand together."""
    found = sorted(paths)
    count = usual if sources.limit is None else sources.limit
    return found if count >= len(found) else sorted(random.Random(sources.seed).sample(found, count))


def _below(folders: Iterable[Path], pattern: str) -> dict[Path, str]:
    """Files by name, and the project of each: the first folder on the way to it."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob(pattern)):
            parts = path.relative_to(folder).parts
            if path.is_file():
                found[path] = parts[0] if len(parts) > 1 else path.stem
    return found


def _fitting(texts: Iterable[Text], left: dict[str, str]) -> list[Text]:
    """The texts of a sensible length; the others are noted."""
    kept = []
    for text in texts:
        if len(text.text) in _CHARACTERS:
            kept.append(text)
        else:
            left[text.name] = f"{len(text.text):,} characters"
    return kept


# -- C -------------------------------------------------------------------------------------------------

_C_FOLDERS = (Path("/usr/share/doc"), Path("/usr/include"))

#: GNU's extensions that headers put around everything, and assertions, which become one.
_DEFINES = (
    "__attribute__(x)=", "__extension__=", "__inline=inline", "__inline__=inline", "__restrict=", "__asm__(x)=",
    "__const=const", "__volatile__=volatile", "__signed__=signed", "NDEBUG", "_FORTIFY_SOURCE=0",
)  # fmt: skip

_LINE = re.compile(r'# (\d+) "([^"]*)"')
_C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\S', re.DOTALL)


def c_texts(sources: Sources) -> Found:
    """C files anywhere below the folders and headers right inside of them, preprocessed: their own lines.

    What system headers hold is left out, but the types are known that they declare.
    """
    if shutil.which("gcc") is None:
        return [], {"C": "there is no gcc to preprocess it"}
    folders = sources.folders or _C_FOLDERS
    files = _below(folders, "*.c")
    headers = {path: path.stem for folder in folders for path in folder.glob("*.h")}
    chosen = _sampled(files, sources, usual=120)
    if sources.limit is None:
        chosen += _sampled(headers, sources, usual=16)
    left: dict[str, str] = {}
    texts = []
    for path in chosen:
        preprocessed = _preprocess(path, comments=sources.comments)
        if isinstance(preprocessed, str):
            left[str(path)] = preprocessed
            continue
        text, everything = preprocessed
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        types = frozenset(words & _declared_types(everything))
        texts.append(Text(path.name, (files | headers)[path], text, types))
    return _fitting(texts, left), left


def _preprocess(path: Path, *, comments: bool) -> tuple[str, str] | str:
    """A file's own lines after preprocessing, and all lines; or why there are none."""
    others = (f"-idirafter{folder}" for folder in sorted(_C_FOLDERS[1].glob("*")) if folder.is_dir())
    defines = (f"-D{each}" for each in _DEFINES)
    command = ["gcc", "-E", "-std=gnu11", f"-I{path.parent}", *others, *defines, *["-C"] * comments, str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.decode(errors="replace").splitlines() if "error:" in line]
        return f"not preprocessed: {errors[0].rpartition('error: ')[2] if errors else done.returncode}"
    own: list[str] = []
    everything: list[str] = []
    number, here, place = 0, False, 0
    for line in done.stdout.decode(errors="replace").splitlines():
        marker = _LINE.match(line)
        if marker:
            number, here = int(marker[1]), marker[2] == str(path)
            continue
        everything.append(line)
        if line.startswith("#pragma"):
            continue
        if here and number == place and own:
            own[-1] = f"{own[-1].rstrip()} {line.strip()}"  # a macro of a header, which gcc sets on a line of its own
        elif here:
            own.append(line)
        place, number = (number if here else place), number + 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(own)).strip() + "\n", "\n".join(everything)


def _declared_types(text: str) -> set[str]:
    """The names that typedefs declare."""
    found: set[str] = set()
    words = [word for word in _C_TOKEN.findall(text) if not word.startswith(("/*", "//", '"', "'"))]
    for position, word in enumerate(words):
        if word == "typedef":
            found.update(_declarators(words[position + 1 : position + 2_000]))
    return found


def _declarators(words: Sequence[str]) -> Iterator[str]:
    """The names in a declaration up to its semicolon: ``int *a, (*b)(int *x), c[3];`` has a, b and c."""
    depth = braces = group = 0
    name = pointed = ""
    for position, word in enumerate(words):
        if word in "{}":
            braces += 1 if word == "{" else -1
        elif braces:
            continue
        elif word in "([":
            depth += 1
            if words[position + 1 : position + 2] == ["*"] and depth == 1:
                group = 1
        elif word in ")]":
            depth -= 1
        elif depth == 0 and word in ",;":
            yield pointed or name
            if word == ";":
                return
            name, pointed, group = "", "", 0
        elif re.match(r"[A-Za-z_]", word):
            if depth == 0 and not group:
                name = word
            elif depth == group and not pointed and word not in ("const", "volatile", "restrict"):
                pointed = word


def c_types(texts: Sequence[Text], grammar: str) -> str:
    """The types of the files that the grammar does not know; without names that more files use for something else."""
    types = Counter(name for text in texts for name in text.types)
    used = Counter(name for text in texts for name in set(re.findall(r"[A-Za-z_]\w*", text.text)))
    known = set(re.findall(r'"(\w+)"', grammar))
    names = sorted(name for name, count in types.items() if name not in known and 2 * count >= used[name])
    return "\n%extend typedef_name: " + " | ".join(f'"{name}"' for name in names) + "\n" if names else ""


# -- the others ----------------------------------------------------------------------------------------


def sql_texts(sources: Sources) -> Found:
    """Statements of `statements.sql`, or of .sql files in the folders; ``-- project NAME`` says whose follow."""
    paths = _below(sources.folders, "*.sql") or {Path(__file__).with_name("statements.sql"): "statements"}
    texts: list[Text] = []
    for path, project in paths.items():
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            heading = re.match(r"-- project (\w+)\n", block)
            project = heading[1] if heading else project
            statement = block[heading.end() if heading else 0 :].strip()
            if statement and not re.fullmatch(r"(--[^\n]*\n?)+", statement):
                texts.append(Text(f"{project} {len(texts) + 1}", project, statement))
    if sources.limit is not None and sources.limit < len(texts):
        texts = [texts[i] for i in sorted(random.Random(sources.seed).sample(range(len(texts)), sources.limit))]
    return texts, {}


def python_texts(sources: Sources) -> Found:
    """The standard library, without its tests, or .py files in the folders."""
    folders = sources.folders or (Path(sysconfig.get_path("stdlib")),)
    paths = _below(folders, "*.py")
    skipped = {"test", "tests", "idle_test", "lib2to3", "site-packages", "dist-packages", "__pycache__"}
    return _read({p: name for p, name in paths.items() if sources.folders or not skipped & set(p.parts)}, sources, 80)


def json_texts(sources: Sources) -> Found:
    """JSON files in the folders, or those that packages of the system bring along."""
    return _read(_below(sources.folders or (Path("/usr/lib"), Path("/usr/share")), "*.json"), sources, 120)


def _read(paths: Mapping[Path, str], sources: Sources, usual: int) -> Found:
    left: dict[str, str] = {}
    texts = []
    for path in _sampled(paths, sources, usual):
        try:
            texts.append(Text(path.name, paths[path], path.read_text(encoding="utf-8")))
        except (UnicodeDecodeError, OSError) as error:
            left[str(path)] = str(error)
    return _fitting(texts, left), left


def _python_options() -> dict[str, Any]:
    from lark.indenter import PythonIndenter

    return {"start": "file_input", "postlex": PythonIndenter()}


WORKLOADS = {
    "c": Workload(
        ("c",), "gemma", c_texts, options=lambda: {"lexer": "basic"}, extend=c_types,
        shapes={
            "flat": ("int f(void) {\n", "    x = x + 1;\n"),
            "parentheses": ("int x = ", "("),
            "blocks": ("int f(void) ", "{"),
        },
    ),
    "sql": Workload(
        ("sql",), "llama3", sql_texts, options=lambda: {"lexer": "basic"},
        shapes={"flat": ("SELECT a FROM t WHERE a IN (1", ", 1"), "nested": ("SELECT ", "(")},
    ),
    "python": Workload(
        ("python", "python3"), "gemma", python_texts, options=_python_options,
        shapes={"flat": ("", "x = x + 1\n"), "nested": ("x = ", "(")},
    ),
    "json": Workload(("json",), "llama3", json_texts, shapes={"flat": ("[1", ", 1"), "nested": ("", "[")}),
}  # fmt: skip
