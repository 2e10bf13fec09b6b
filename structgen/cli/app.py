"""The command tree, and the one place where errors become messages and exit codes.

====  =================================================================================================
0     done; ``check``, ``explain``: accepted; ``cache verify``: sound; ``diff``: equal
1     the command ran to its end with a negative answer: not accepted, definitions failed, damage found (or, by
      ``doctor``, what is refused on this machine), findings of
      the severity that ``certify`` fails on, a difference, what ``lint`` can't read
2     bad usage or bad input: the command could not run
3     ``diff``: not decided within the budget
130   interrupted
141   whoever read the output stopped reading (what a shell reports for SIGPIPE)
====  =================================================================================================
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import CacheWarning, StructgenError, StructgenWarning
from . import cache, certify, check, compile, explain, inspect, lint, view, warm
from .console import say, show_warning


class _Commands(TyperGroup):
    """A command group whose subcommands may raise structgen's and the system's errors."""

    def invoke(self, ctx: Any) -> object:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", StructgenWarning)
                warnings.showwarning = show_warning  # type: ignore[assignment]
                result = super().invoke(ctx)
            sys.stdout.flush()  # here, so that a closed pipe is met inside this try
            return result
        except (StructgenError, CacheWarning) as error:
            say("error", str(error))
            raise typer.Exit(2) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The interpreter flushes stdout once more on its way out.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(141) from error
            where = f" ({error.filename})" if error.filename else ""
            say("error", f"{error.strerror or error}{where}")
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"structgen {__version__}")
        raise typer.Exit


@app.callback()
def structgen(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Compile definitions into token masks ahead of time.

    [bold]warm[/] fills the cache that servers read, [bold]bundle[/] makes one file of it,
    [bold]cache[/] looks after it. [bold]compile[/] writes a single index file;
    [bold]inspect[/], [bold]check[/], [bold]explain[/] and [bold]view[/] look at one.
    [bold]certify[/] and [bold]diff[/] look at definitions, [bold]lint[/] also at
    those of other engines, [bold]doctor[/] at this machine.
    """


app.command()(warm.warm)
app.command()(warm.bundle)
app.command()(compile.compile)
app.command()(inspect.inspect)
app.command()(check.check)
app.command()(view.view)
app.command()(explain.explain)
app.command()(certify.certify)
app.command()(certify.diff)
app.command()(lint.lint)
app.command()(inspect.doctor)
app.add_typer(cache.app, name="cache")
