"""``structgen certify`` and ``structgen diff``: what can be proved of definitions, and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..budget import Budget
from ..certificates.values import SEVERITIES, Severity, abridged, printable
from ..definitions.loading import load_definitions, read_definitions
from ..errors import DefinitionError, StructgenError
from . import options
from .sarif import Certified, sarif

if TYPE_CHECKING:
    from ..certificates.values import Finding
    from ..definitions import Definition
    from ..runtime.index.index import Index
    from ..vocabulary.vocabulary import Vocabulary


def certify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATHS", show_default=False, help=f"{options.DEFINITION_FILES}, indexes (.sgx), or MODULE:NAME."
        ),
    ],
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="T",
            help="As for [bold]compile[/]: what is said of tokens is said of its tokens.",
            show_default="each byte is a token",
        ),
    ] = None,
    dialect: options.Dialect = "",
    item: Annotated[
        list[str] | None,
        typer.Option("--item", metavar="NAME", help="Look at this item; may be repeated.", show_default="all items"),
    ] = None,
    fail_on: Annotated[
        str, typer.Option(metavar="SEVERITY", help=f"Exit code 1 from which severity on: {', '.join(SEVERITIES)}.")
    ] = "error",
    sarif_file: Annotated[
        Path | None, typer.Option("--sarif", metavar="FILE", help="Write the findings in SARIF 2.1.0.")
    ] = None,
    max_states: options.MaxStates = None,
    max_memory: options.MaxMemory = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.AsJson = False,
) -> None:
    """Look for dead ends, unused parts, and repetition without an end in definitions.

    A line for each finding, errors first. Exit code 0: nothing as severe as --fail-on;
    1: something is, or a definition does not compile. Limits are for each definition.

    \b
    [bold]Examples[/]
      structgen certify schemas/
      structgen certify schemas/ --fail-on warning --sarif findings.sarif
      structgen certify person.json -t ./llama-3 --item never_allowed --json
    """
    if fail_on not in SEVERITIES:
        raise typer.BadParameter(f"{fail_on!r} is none of {', '.join(SEVERITIES)}.", param_hint="--fail-on")
    vocabulary = None if tokenizer is None else options.load_vocabulary(tokenizer)
    budget = options.make_budget(max_states, max_memory, max_seconds)
    found = list(_certified(paths, dialect, vocabulary, budget, item))
    if not found:
        raise DefinitionError("no definitions found", where=", ".join(map(str, paths)))
    if sarif_file is not None:
        sarif_file.write_text(json.dumps(sarif(found), indent=2) + "\n", encoding="utf-8")
    if as_json:
        options.print_json([each.to_json() for each in found])
    else:
        for each in found:
            _print(each)
    severe = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if any(each.failure is not None or _worst(each) in severe for each in found):
        raise typer.Exit(1)


def _certified(
    paths: Sequence[Path], dialect: str, vocabulary: Vocabulary | None, budget: Budget, items: list[str] | None
) -> Iterator[Certified]:
    """What each definition and each index comes to, in the order of the paths."""
    from ..api import compile
    from ..certificates.certify import certify as certified
    from ..runtime.index.index import Index
    from ..vocabulary.vocabulary import Vocabulary

    for path in paths:
        if path.suffix == options.INDEX_SUFFIX:
            certificate = certified(Index.load(path), budget=budget, items=items)
            yield Certified(path.stem, str(path), 0, certificate)
            continue
        reading = read_definitions([path], dialect)
        for ignored in reading.ignored:
            typer.echo(f"note: {printable(str(ignored))} is not a definition, skipped", err=True)
        for error in reading.failures:
            file = error.where.split(", ")[0]
            yield Certified(Path(file).stem, str(path) if path.is_file() else file, 0, None, error)
        for named in reading.definitions:
            try:
                used = vocabulary or Vocabulary.bytewise()
                index = compile(named.definition, used, eager=False, budget=budget, base_rows=False)
            except StructgenError as error:
                yield Certified(named.name, str(named.path), named.line, None, error)
            else:
                certificate = certified(index, budget=budget, items=items)
                yield Certified(named.name, str(named.path), named.line, certificate)


def _worst(each: Certified) -> Severity | None:
    return None if each.certificate is None else each.certificate.worst


def _print(each: Certified) -> None:
    """A line for each finding, as compilers write them, and one for what is not decided."""
    path, name = printable(each.path), printable(each.name)
    place = f"{path}:{each.line}" if each.line else path
    if each.certificate is None:
        typer.echo(f"{place}: failed: {printable(str(each.failure))}")
        return
    for item, finding in each.certificate.findings:
        typer.echo(f"{place}: {name}: {finding.severity}: {_said(finding)} [{item.name}]")
    undecided = [item.name for item in each.certificate.items if item.verdict == "undecided"]
    if undecided:
        typer.echo(f"{place}: {name}: not decided: {', '.join(undecided)}")
    elif each.certificate.worst is None:
        typer.echo(f"{place}: {name}: nothing found")


def _said(finding: Finding) -> str:
    where = f"{printable(finding.where)}: " if finding.where else ""
    witness = "" if finding.witness is None else f", as in {abridged(finding.witness)!r}"
    return f"{where}{printable(finding.says)}{witness}"


# -- two definitions ---------------------------------------------------------------------------------------

#: What either argument of ``diff`` is.
_ONE_FILE = "A file that holds one definition, an index (.sgx), or MODULE:NAME."


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", show_default=False, help=_ONE_FILE)],
    second: Annotated[Path, typer.Argument(metavar="B", show_default=False, help=_ONE_FILE)],
    dialect: options.Dialect = "",
    max_states: options.MaxStates = None,
    max_memory: options.MaxMemory = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.AsJson = False,
) -> None:
    """Say how two definitions differ, with a shortest text that only one of them accepts.

    Texts are compared byte by byte, whatever the vocabulary. Exit code 0: both accept the
    same texts; 1: they do not; 3: not decided within the budget, and no such text was found.

    \b
    [bold]Examples[/]
      structgen diff old/person.json person.json
      structgen diff date.regex app.models:Date --json
    """
    from ..certificates.difference import difference

    budget = options.make_budget(max_states, max_memory, max_seconds)
    found = difference(_read(first, dialect), _read(second, dialect), budget=budget)
    if as_json:
        options.print_json(found.to_json())
    else:
        typer.echo(found.__rich__().plain)
    if found.only_first is not None or found.only_second is not None:
        raise typer.Exit(1)
    if found.relation == "undecided":
        raise typer.Exit(3)


def _read(path: Path, dialect: str) -> Definition | Index:
    from ..runtime.index.index import Index

    if path.suffix == options.INDEX_SUFFIX:
        return Index.load(path)
    definitions = load_definitions([path], dialect)
    if len(definitions) != 1:
        what = f"expected one definition, found {len(definitions)}"
        raise DefinitionError(what, where=str(path), remedy="Give it a file of its own.")
    return definitions[0].definition
