"""Plain tables on the terminal, and figures with their targets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One measured figure against its target, if it has one.

    Parameters
    ----------
    name:
        What it says.
    measured, target:
        The values, in ``unit``; no target is None.
    at_least:
        Whether more is better.
    unit:
        ``"x"`` for a ratio, ``"ms"``, ``"s"``, ``"cases"``.
    cases:
        How many single measurements are behind it.
    """

    name: str
    measured: float
    target: float | None
    at_least: bool
    unit: str
    cases: int

    @property
    def met(self) -> bool | None:
        """Whether the target is reached."""
        if self.target is None:
            return None
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def as_json(self) -> dict[str, Any]:
        """All of it, and whether the target is reached."""
        return asdict(self) | {"met": self.met}


def columns(table: Table, names: list[str], first: str = "regex") -> None:
    table.add_column(first, overflow="fold")
    for name in names:
        table.add_column(name, justify="right")


def show_rows(console: Console, title: str, header: list[str], rows: list[list[str]]) -> None:
    """A plain table."""
    table = Table(title=title)
    columns(table, header[1:], first=header[0])
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_figures(console: Console, figures: list[Figure]) -> None:
    """The summary."""
    table = Table(title="Figures and targets")
    columns(table, ["measured", "target", "cases", ""], first="figure")
    for figure in figures:
        bound = "at least" if figure.at_least else "at most"
        target = "" if figure.target is None else f"{bound} {figure.target:g} {figure.unit}"
        verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[figure.met]
        table.add_row(figure.name, f"{figure.measured:,.2f} {figure.unit}", target, str(figure.cases), verdict)
    console.print(table)
