"""``structgen check``: whether an index accepts a text, and if not, where and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..system.byteranges import describe
from . import options

if TYPE_CHECKING:
    from ..runtime.core.machine import Match


def check(
    index_file: Annotated[Path, typer.Argument(metavar="INDEX", show_default=False, help="An index file.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The text, or - for standard input.")],
    as_json: options.AsJson = False,
) -> None:
    """Check a text against an index; where it leaves the language, say what could follow.

    Exit code 0: accepted; 1: not. Standard input is taken byte for byte, a final
    line break included. Write -- before a text that begins with a dash.

    \b
    [bold]Examples[/]
      structgen check date.sgx 2024-02-30
      printf %s "$ANSWER" | structgen check date.sgx -
      structgen check number.sgx -- -5
    """
    from ..runtime.index.index import Index

    index = Index.load(index_file)
    # Arguments that are not UTF-8 arrive as lone surrogates; this gives their bytes back.
    data = sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")
    match = index.match(data)
    if as_json:
        options.print_json(
            {
                "accepted": match.accepted,
                "consumed": match.consumed,
                "length": len(data),
                "expected": [list(span) for span in match.expected],
                "can_end": match.can_end,
            }
        )
    elif match.accepted:
        typer.echo("accepted")
    else:
        from ..explanations.explain import explain as explained

        for line in [*explain(data, match), *explained(index, data, completion=False).because()]:
            typer.echo(line)
    if not match.accepted:
        raise typer.Exit(1)


def explain(data: bytes, match: Match) -> list[str]:
    """Where ``data`` leaves the language, in lines for a person: the place, the line, a caret, what fits."""
    stop = match.consumed
    before = data[:stop].decode("utf-8", "replace")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    found = f"{_first_character(data[stop:])} does not fit" if stop < len(data) else "the text ends too early"
    lines = [f"not accepted: {found} (byte {stop}, line {line}, column {column})"]
    start = data.rfind(b"\n", 0, stop) + 1
    end = data.find(b"\n", stop)
    shown = data[start : end if end >= 0 else len(data)].decode("utf-8", "replace")
    lines += _with_caret(shown, column - 1)
    expected = describe(match.expected)
    if match.can_end:
        expected = f"{expected}, or the end" if expected else "the end"
    lines.append(f"expected: {expected}")
    if data[stop:] == b"\n" and match.can_end:
        lines.append("hint: only the final line break is too much; printf %s leaves it out")
    return lines


def _first_character(rest: bytes) -> str:
    character = rest[:4].decode("utf-8", "ignore")[:1]
    whole = character and rest.startswith(character.encode())
    return repr(character) if whole else f"the byte {rest[0]:#04x}"


def _with_caret(text: str, column: int, context: int = 30) -> list[str]:
    """The text around a column, and a caret below it; control characters take one cell each."""
    start = max(0, column - context)
    shown = "".join(c if c.isprintable() else "�" for c in text[start : column + context])
    return [f"    {shown}", f"    {' ' * (column - start)}^"]
