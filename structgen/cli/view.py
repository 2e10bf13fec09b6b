"""``structgen view``: a trace, or the automaton of an index, as a page of HTML."""

from __future__ import annotations

import webbrowser
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..runtime.graphs.graph import Graph
    from ..runtime.index.index import Index


class GraphForm(str, Enum):
    """What an index is shown as."""

    html = "html"
    dot = "dot"
    mermaid = "mermaid"
    tree = "tree"


def view(
    file: Annotated[
        Path, typer.Argument(metavar="TRACE|INDEX", show_default=False, help="A trace as JSON, or an index file.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="HTML", help="Write the page there, and open no browser.")
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(metavar="TRACE", help="Another trace to be shown beside it, of the same prompt without a mask."),
    ] = None,
    form: Annotated[
        GraphForm, typer.Option("--format", help="Of an index: a page, or a text on standard output.")
    ] = GraphForm.html,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=2000, help="Of an index: states that are shown.")] = 60,
) -> None:
    """Show what a mask did to a text, token by token; or the automaton of an index.

    The page is one file that loads nothing. Without [bold]--output[/] it is written beside the file, and a browser
    opens it.

    \b
    [bold]Examples[/]
      structgen view run.trace.json
      structgen view run.trace.json --beside free.trace.json -o run.html
      structgen view date.sgx --format mermaid
    """
    from ..storage.container import MAGIC

    with file.open("rb") as opened:
        is_index = opened.read(len(MAGIC)) == MAGIC
    if not is_index:
        page = _trace_page(file, beside)
    else:
        from ..runtime.index.index import Index

        index = Index.load(file)
        graph = index.graph(limit=limit)
        if form is not GraphForm.html:
            _print(graph, form)
            return
        page = _index_page(index, graph)
    target = output or file.with_name(f"{file.name}.html")
    target.write_text(page, encoding="utf-8")
    typer.echo(f"wrote {target}")
    if output is None:
        webbrowser.open(target.absolute().as_uri())


def _trace_page(file: Path, beside: Path | None) -> str:
    from dataclasses import replace

    from ..traces.trace import Trace

    trace = Trace.load(file)
    return (trace if beside is None else replace(trace, unconstrained=Trace.load(beside))).to_html()


def _print(graph: Graph, form: GraphForm) -> None:
    if form is GraphForm.tree:
        from rich.console import Console

        Console().print(graph)
    else:
        typer.echo(graph.to_dot() if form is GraphForm.dot else graph.to_mermaid(), nl=False)


def _index_page(index: Index, graph: Graph) -> str:
    from ..definitions.canonical import as_written
    from ..pages.page import Page, Picture, render
    from ..traces.display import shown_definition

    facts = (
        ("kind", index.kind),
        ("states", f"{index.states:,}"),
        ("masks", f"{index.row_count:,}"),
        ("vocabulary", f"{index.vocabulary.size:,} ids"),
        ("definition", shown_definition(as_written(index.kind, index.definition))),
    )
    svg, text = graph.to_svg(), graph.to_text()
    picture = None if svg is None else Picture(svg, "The automaton; the text below says the same.")
    return render(Page("An index", facts, picture=picture, text=text))
