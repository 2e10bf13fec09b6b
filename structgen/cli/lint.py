"""``structgen lint``: which notation a file is written in, and what in it has to be written otherwise here."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..certificates.values import printable
from ..definitions import Ebnf, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ..definitions.grammar_marks import REGEX, STRING
from ..definitions.json_text import loads
from ..definitions.loading import READERS
from ..definitions.values import DIALECT_FLAGS, EBNF_DIALECTS
from ..errors import DefinitionError, SchemaWarning, StructgenError, VocabularyError
from ..explanations.schemas.json_places import place_at
from ..system.types import Foreign
from . import options
from .sarif import Certified, sarif

if TYPE_CHECKING:
    from ..budget import Budget
    from ..definitions import Definition


@dataclass(frozen=True)
class WrittenAs:
    """A way to write definitions: its name, how it is given to structgen, and what makes a definition of a text."""

    name: str
    spelling: str
    make: Callable[[str], Definition]


def _of_regex(dialect: str) -> WrittenAs:
    option = "" if dialect == "re" else f', dialect="{dialect}"'
    return WrittenAs(dialect, f"sg.Regex(...{option})", lambda text: Regex(text.rstrip("\r\n"), 0, dialect))


def _of_ebnf(dialect: str) -> WrittenAs:
    return WrittenAs(dialect, f'sg.Ebnf(..., dialect="{dialect}")', lambda text: Ebnf(text, dialect=dialect))


_GBNF = WrittenAs("gbnf", "sg.Gbnf(...)", Gbnf)
_LARK = WrittenAs("lark", "sg.Grammar(...)", Grammar)
_SCHEMA = WrittenAs("json_schema", "sg.JsonSchema(...)", JsonSchema)
_TAG = WrittenAs("structural_tag", "sg.StructuralTag(...)", StructuralTag)
_WORDS = WrittenAs("words", "sg.Regex.choice([...])", lambda text: READERS[".words"](Path(), text))
_RULES = (_GBNF, *map(_of_ebnf, EBNF_DIALECTS))
_REGEXES = tuple(map(_of_regex, DIALECT_FLAGS))

#: The notations of files that others have no name for.
_BY_SUFFIX = {".regex": _REGEXES, ".lark": (_LARK,), ".words": (_WORDS,)}

#: All notations by name.
NOTATIONS = {notation.name: notation for notation in (*_REGEXES, *_RULES, _LARK, _SCHEMA, _TAG, _WORDS)}

#: What only one notation has; where none of these is, the first that reads a text is named.
_SIGNS = (
    (r"\b(?:TagDispatch|TokenTagDispatch|Token|ExcludeToken|Regex)\(|\(=|^[\w.-]+\[[^\]\n]*\]\s*::=", ("xgrammar",)),
    (r"::=", ("gbnf", *EBNF_DIALECTS)),
    (r"^\??_*[A-Za-z]\w*(?:\.-?\d+)?(?:\[[^\]\n]*\])?(?:\{[^}\n]*\})?\s*:", ("lark",)),
)

_PLACE = re.compile(r"line (\d+)(?:, column (\d+))?")
_NAMED = re.compile(r"(?:rule|terminal) (\w+)|/?(%\w+|x-guidance)")

#: What names have that were made of others: of repeats, of attributes, and of those that are there twice.
_MADE = re.compile(r"\A__(?:ANON)?|_(?:plus|star|LEXEME|END)(?=_|\Z)|_\d+\Z")
_COLUMN = re.compile(r"column (\d+)")
_POINTER = re.compile(r", |: | \(")

#: Places in one text that are told.
_MOST = 100


@dataclass(frozen=True)
class LintFinding:
    """What is not read, its line and column from 1 on (0 where they are not known), and what to write."""

    line: int
    column: int
    what: str
    remedy: str


@dataclass(frozen=True)
class Linted:
    """What a file came to: the notation's name and how to give it to structgen, and the problems."""

    path: str
    notation: str
    spelling: str
    problems: list[LintFinding]


def lint(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", show_default=False, help="Files with a definition each.")
    ],
    notation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"As which to read: {', '.join(NOTATIONS)}.", show_default="the likeliest"),
    ] = None,
    sarif_file: Annotated[
        Path | None, typer.Option("--sarif", metavar="FILE", help="Write the problems in SARIF 2.1.0.")
    ] = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.AsJson = False,
) -> None:
    """Name the notation of definitions that were written for any engine, and what has to be written otherwise.

    A line for each problem, with its line and column and the spelling that works here.
    Exit code 0: all are read; 1: some are not.

    \b
    [bold]Examples[/]
      structgen lint grammar.ebnf
      structgen lint rules.lark patterns/*.regex --json
      structgen lint email.txt --notation ecma
    """
    if notation is not None and notation not in NOTATIONS:
        raise typer.BadParameter(f"{notation!r} is none of {', '.join(NOTATIONS)}.", param_hint="--notation")
    budget = options.make_budget(None, None, max_seconds)
    found = [_linted(path, notation, budget) for path in files]
    if sarif_file is not None:
        results = [
            Certified(Path(each.path).stem, each.path, problem.line, None, _error(problem))
            for each in found
            for problem in each.problems
        ]
        sarif_file.write_text(json.dumps(sarif(results), indent=2) + "\n", encoding="utf-8")
    if as_json:
        options.print_json([asdict(each) for each in found])
    else:
        for each in found:
            _print(each)
    if any(each.problems for each in found):
        raise typer.Exit(1)


def _linted(path: Path, name: str | None, budget: Budget) -> Linted:
    if path.suffix == ".toml":
        remedy = "Name the files that it names; structgen certify reads manifests."
        raise DefinitionError("a manifest is no definition", where=str(path), remedy=remedy)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError("the file is not UTF-8", where=str(path), remedy="Save it as UTF-8.") from error
    tried = [(each, [*_problems(each, text, budget)]) for each in _likely(path, text, name)]
    # The one that reads it; or else the one that comes furthest, the first of those.
    reads = [each for each in tried if not each[1]]
    notation, problems = reads[0] if reads else max(tried, key=lambda each: (each[1][0].line, each[1][0].column))
    return Linted(str(path), notation.name, notation.spelling, problems)


def _likely(path: Path, text: str, name: str | None) -> tuple[WrittenAs, ...]:
    """The notations that a text may be in, the likeliest first."""
    if name is not None:
        return (NOTATIONS[name],)
    if path.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix]
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        return (_TAG if path.name.endswith(".tag.json") or _is_tag(text) else _SCHEMA,)
    for sign, names in _SIGNS:
        if re.search(sign, text, re.MULTILINE):
            return tuple(NOTATIONS[each] for each in names)
    return _RULES if path.suffix in (".ebnf", ".gbnf") else _REGEXES


def _is_tag(text: str) -> bool:
    """Whether a JSON text is a structural tag: ``format`` is a keyword of schemas too, but a string there."""
    try:
        found: Foreign = loads(text)
    except StructgenError:
        return False
    return isinstance(found, dict) and (
        "structures" in found or found.get("type") == "structural_tag" or isinstance(found.get("format"), dict)
    )


def _problems(notation: WrittenAs, text: str, budget: Budget) -> Iterator[LintFinding]:
    """What keeps a text from being compiled; of Lark's syntax, each notation of another engine's."""
    from ..api import compile
    from ..compiler.grammar.load.dialects import foreign_notation
    from ..vocabulary.vocabulary import Vocabulary

    try:
        definition = notation.make(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # they are told below, all of them
            compile(definition, Vocabulary.bytewise(), eager=False, budget=budget, base_rows=False)
    except VocabularyError:
        return  # a special token, which the model may have
    except StructgenError as error:
        first = _problem(error, text)
    else:
        if isinstance(definition, JsonSchema):
            yield from _silent(definition, text, budget)
        return
    yield first
    rest = text
    for _ in range(_MOST if notation is _LARK else 0):
        more = foreign_notation(rest)
        if more is None:
            break
        problem = _problem(more)
        # Where the first is another kind of problem, this may be about the same thing.
        if problem.line != first.line or (problem.what == first.what and problem != first):
            yield problem
        lines = rest.splitlines(keepends=True)
        read = sum(map(len, lines[: problem.line - 1])) + problem.column
        rest = re.sub(r"[^\r\n]", ".", rest[:read]) + rest[read:]


def _silent(definition: JsonSchema, text: str, budget: Budget) -> Iterator[LintFinding]:
    """The keywords and formats of a schema that check nothing."""
    from ..budget import Meter
    from ..certificates.schema_parts import silent

    for what, where, remedy in silent(definition, Meter(budget)):
        yield LintFinding(*_of_pointer(where, text), printable(f"{what} ({where})"), printable(remedy))


def _problem(error: StructgenError, text: str = "") -> LintFinding:
    """What an error says; one that names a rule or a terminal alone is where that is defined in the text."""
    if text.lstrip().startswith("{") and (error.where.startswith("/") or error.where == "the root"):
        line, at = _of_pointer(error.where, text)
        return LintFinding(line, at, printable(f"{error.what} ({error.where})"), printable(error.remedy))
    place = _PLACE.search(error.where)
    if place is None and (named := _NAMED.match(error.where)) is not None:
        found = _mention(named[1] or named[2], text) or _regex_alone(error, text)
        line = text.count("\n", 0, found.start()) + 1 if found is not None else 0
        return LintFinding(line, line and 1, printable(f"{error.what} ({error.where})"), printable(error.remedy))
    column = _COLUMN.search(error.where)
    line, at = (int(place[1]), int(place[2] or 1)) if place else (0, 0)
    if place is None and column is not None:  # of a regex, which may have lines
        before = text[: int(column[1]) - 1]
        line, at = before.count("\n") + 1, int(column[1]) - (before.rfind("\n") + 1)
    where = f" ({error.where})" if error.where and not (place or column) else ""
    return LintFinding(line, at, printable(error.what + where), printable(error.remedy))


def _mention(name: str, text: str) -> re.Match[str] | None:
    """Where a rule or a terminal is defined, or a name first stands; one that was made of another is as that one."""
    whole, part = re.escape(name), re.escape(_MADE.sub("", name))
    if name == "%llguidance":
        whole = "%(?:llguidance|grammar_options)"  # one by two names
    return (
        re.search(rf"^[ \t]*[?!]*{whole}\b", text, re.MULTILINE)
        or re.search(rf"(?<!\w){whole}\b", text)
        or re.search(rf"(?<!\w){part or whole}\b", text, re.IGNORECASE)
    )


def _regex_alone(error: StructgenError, text: str) -> re.Match[str] | None:
    """The first regex of a grammar that is refused in the same words by itself."""
    from ..api import compile
    from ..vocabulary.vocabulary import Vocabulary

    for found in islice(re.finditer(rf"(?P<regex>{REGEX})|{STRING}|//[^\n]*|#[^\n]*", text), _MOST):
        if found["regex"] is not None:
            try:
                compile(Grammar(f"start: {found[0]}"), Vocabulary.bytewise(), eager=False, base_rows=False)
            except StructgenError as alone:
                if alone.what == error.what:
                    return found
    return None


def _of_pointer(where: str, text: str) -> tuple[int, int]:
    """Line and column of the value that a JSON pointer names, which may be followed by a place in the value."""
    pointer = _POINTER.split(where)[0] if where.startswith("/") else ""
    data = text.encode()
    root = place_at(data, "")
    # Structural tags and schemas of requests are wrapped, and pointers are into what is in them.
    wrapper = ""
    while root is not None and pointer[1:].split("/")[0] not in root.names:
        inner = next((name for name in ("format", "schema", "json_schema") if name in root.names), None)
        if inner is None:
            break
        wrapper += f"/{inner}"
        root = place_at(data, wrapper)
    found = place_at(data, wrapper + pointer)
    before = data[: found.start if found is not None else 0].decode()
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _error(problem: LintFinding) -> DefinitionError:
    return DefinitionError(problem.what, where=f"column {problem.column}", remedy=problem.remedy)


def _print(each: Linted) -> None:
    """A line for each problem, as compilers write them; or how to give the text to structgen."""
    path = printable(each.path)
    for problem in each.problems:
        place = f"{path}:{problem.line}:{problem.column}" if problem.line else path
        typer.echo(f"{place}: {each.notation}: {problem.what}{'. ' if problem.remedy else ''}{problem.remedy}")
    if not each.problems:
        typer.echo(f"{path}: {each.notation}: {each.spelling}")
