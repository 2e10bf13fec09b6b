"""What the commands draw: progress on standard error, tables on standard output."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

import typer

from ..progress import Progress

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..vocabulary.vocabulary import Vocabulary


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def format_bytes(count: int) -> str:
    """``1.5 MiB``: three significant digits, binary units."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def say(kind: str, message: str) -> None:
    """A line on standard error: ``error`` or ``warning``, and what it is about."""
    color = "red" if kind == "error" else "yellow"
    typer.echo(f"{typer.style(f'{kind}:', fg=color, bold=True)} {message}", err=True)


def show_warning(message: Warning | str, *_: object) -> None:
    """In place of `warnings.showwarning`, which names a line of a program that whoever reads it did not write."""
    say("warning", str(message))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on standard output; the first column is text, columns of numbers align right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        numeric = position > 0 and all(row[position][:1].isdigit() for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 1000  # a log or a pipe has no margin to keep
    console.print(table)


class Display:
    """Progress bars while a terminal watches; elsewhere one line for each task that is done.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        console = Console(stderr=True)
        self._terminal = console.is_terminal
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not self._terminal,
        )

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def compile_base_rows(self, vocabulary: Vocabulary, cache: Cache) -> None:
        """Work out the rows that schemas share, under a bar of their own."""
        from ..api import compile_base_rows

        with self.track("base rows") as show:
            compile_base_rows(vocabulary, cache=cache, progress=show)

    @contextmanager
    def count(self, name: str) -> Iterator[Progress]:
        """A bar for many things that are done one by one: `Progress` with a text about each, once it is done."""
        with self.track(name) as show:

            def tell(text: str, done: int, total: int) -> None:
                show("done", done, total)
                if not self._terminal:
                    typer.echo(text, err=True)

            yield tell

    @contextmanager
    def track(self, name: str) -> Iterator[Progress]:
        """A bar for one task; yields the `Progress` callable that moves it."""
        start = time.perf_counter()
        task = self._bars.add_task(name, total=None)

        def show(stage: str, done: int, total: int) -> None:
            self._bars.update(task, description=f"{name}: {stage}", completed=done, total=total)

        try:
            yield show
        finally:
            self._bars.remove_task(task)
        if not self._terminal:
            typer.echo(f"{name}: {time.perf_counter() - start:.2f} s", err=True)
