"""``structgen inspect``: what an index file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .console import format_bytes

#: Characters of a definition that a terminal gets to see; ``--json`` has all.
_SHOWN = 300


def inspect(
    index_file: Annotated[Path, typer.Argument(metavar="INDEX", show_default=False, help="An index file.")],
    as_json: options.AsJson = False,
) -> None:
    """Say what an index file was compiled from, for which vocabulary, and how large it is.

    The file is validated first, checksum and tables, as it is before any use.

    \b
    [bold]Examples[/]
      structgen inspect date.sgx
      structgen inspect date.sgx --json | jq .states
    """
    from ..runtime.index.index import Index

    index = Index.load(index_file)
    vocabulary = index.vocabulary
    facts = {
        "kind": index.kind,
        "definition": index.definition,
        "relaxations": list(index.relaxations),
        "states": index.states,
        "rows": index.row_count,
        "complete": index.complete,
        "bytes": index.nbytes,
        "file_bytes": index_file.stat().st_size,
        "compile_seconds": index.compile_seconds,
        "vocabulary_size": vocabulary.size,
        "eos_ids": list(vocabulary.eos_ids),
        "vocabulary_fingerprint": index.vocabulary_fingerprint,
    }
    if as_json:
        options.print_json(facts)
        return
    missing = "" if index.complete else ", the others are worked out when needed"
    definition = index.definition
    lines = {
        "kind": index.kind,
        "definition": definition if len(definition) <= _SHOWN else f"{definition[:_SHOWN]}…",
        "states": f"{index.states:,}",
        "rows": f"{index.row_count:,}{missing}",
        "size": f"{format_bytes(index.nbytes)} in memory, {format_bytes(index_file.stat().st_size)} on disk",
        "compiled in": f"{index.compile_seconds:.3f} s",
        "vocabulary": f"{vocabulary.size:,} ids, EOS {list(vocabulary.eos_ids)}",
        "fingerprint": index.vocabulary_fingerprint,
    }
    for name, value in [*lines.items(), *(("relaxed", each) for each in index.relaxations)]:
        typer.echo(f"{name:<12} {value}")
