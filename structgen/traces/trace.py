"""`Trace`: one text, token by token, as a value that is kept and shown."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FormatError
from ..pages.page import Page, in_notebook, render
from ..storage import records
from ..system.types import JsonMap
from . import display
from .steps import TokenKind, TraceRollback, TraceStep

if TYPE_CHECKING:
    from rich.console import Group

#: Bytes of a file that is read.
_MOST_BYTES = 64 << 20

#: Characters of the text in a `repr`.
_SHOWN = 40


@dataclass(frozen=True, repr=False)
class Trace:
    """The steps in which a text was generated, with the effect of the mask on each token.

    `structgen.TracedGuide`, `structgen.TracedBatch` and `structgen.integrations.transformers.TracingProcessor`
    record traces. `from_json` reads exactly the output of `to_json`.

    Parameters
    ----------
    vocabulary_size:
        Number of ids of the vocabulary.
    steps:
        The tokens in the order in which they were generated, including those that were taken back.
    rollbacks:
        The points at which tokens were taken back.
    omitted:
        Number of further steps beyond the bound on recorded ones.
    definition:
        The definition as its author wrote it (`structgen.definitions.canonical.as_written`), its first 10,000
        characters; empty without one.
    prompt:
        The prompt, for readers.
    unconstrained:
        A trace of the same prompt without the definition, to be shown beside it.
    """

    vocabulary_size: int
    steps: tuple[TraceStep, ...]
    rollbacks: tuple[TraceRollback, ...] = ()
    omitted: int = 0
    definition: str = ""
    prompt: str = ""
    unconstrained: Trace | None = None

    @property
    def dropped(self) -> frozenset[int]:
        """The numbers of the steps that were taken back."""
        standing: list[int] = []
        gone: set[int] = set()
        turns = {each.after: each.tokens for each in self.rollbacks}
        for number in range(len(self.steps) + 1):
            if tokens := turns.get(number, 0):
                gone.update(standing[-tokens:])
                del standing[-tokens:]
            standing.append(number)
        return frozenset(gone)

    @property
    def data(self) -> bytes:
        """The bytes of the text, without tokens that were taken back."""
        dropped = self.dropped
        return b"".join(step.data or b"" for n, step in enumerate(self.steps) if n not in dropped)

    @property
    def text(self) -> str:
        """The text. Bytes that are not UTF-8 are replaced by U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def calls_saved(self) -> int:
        """Number of tokens for which the model was not asked."""
        return sum(not step.asked for step in self.steps)

    def count(self, kind: TokenKind) -> int:
        """Return the number of steps of a kind.

        Parameters
        ----------
        kind:
            A `TokenKind`, such as ``"forced"``.
        """
        return sum(step.kind == kind for step in self.steps)

    # -- keeping ---------------------------------------------------------------------------------------

    def to_json(self) -> JsonMap:
        """Return the trace as a dict, for a log. Bytes are hexadecimal digits."""
        return records.written(self)

    @classmethod
    def from_json(cls, data: str | bytes | JsonMap, *, where: str = "trace") -> Trace:
        """Read the output of `to_json`, or its JSON text. Every field is checked.

        Parameters
        ----------
        data:
            The dict or text.
        where:
            A name of the source, for errors.

        Raises
        ------
        FormatError
            For malformed data; names the field.
        """
        trace = records.read_text(cls, data, where) if isinstance(data, str | bytes) else records.read(cls, data, where)
        trace._check(where)
        return trace

    def _check(self, where: str) -> None:
        """That what was taken back had been there."""
        standing, before = 0, 0
        for each in self.rollbacks:
            standing += each.after - before
            if not before < each.after <= len(self.steps) or not 0 < each.tokens <= standing:
                raise FormatError("tokens are taken back that were not there", where=f"{where}, /rollbacks")
            standing, before = standing - each.tokens, each.after
        if self.unconstrained is not None:
            self.unconstrained._check(f"{where}, /unconstrained")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to the file ``path``."""
        Path(path).write_text(json.dumps(self.to_json(), allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read the file ``path`` that `save` wrote. Files from strangers are safe to read.

        Raises
        ------
        FormatError
            For a file that is not a trace, or is larger than 64 MiB.
        """
        where = str(path)
        try:
            with open(os.fspath(path), "rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", error)
            raise FormatError(f"the trace cannot be read: {reason}", where=where) from error
        if len(data) > _MOST_BYTES:
            raise FormatError(f"the file is larger than {_MOST_BYTES:,} bytes", where=where)
        return cls.from_json(data, where=where)

    # -- to be looked at -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        return f"<Trace of {len(self.steps)} tokens, {self.calls_saved} of them forced: {text!r}>"

    def __rich__(self) -> Group:
        """The text in colours, and what is to be said of the whole."""
        return display.in_terminal(self.facts(), self.steps, self.dropped)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return names and values that summarise the trace, for readers."""
        return display.summary(self.steps, self.rollbacks, self.omitted, self.vocabulary_size)

    def to_html(self) -> str:
        """Return the trace as an HTML page without external files; see docs/guide/traces.md."""
        return render(self._page())

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `to_html` to the file ``path``."""
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return in_notebook(self._page())

    def _page(self) -> Page:
        title = "With the definition" if self.definition else "The text"
        panes = [display.pane(title, self.facts(), self.steps, self.dropped, self.vocabulary_size)]
        other = self.unconstrained
        if other is not None:
            panes.append(display.pane("Without", other.facts(), other.steps, other.dropped, other.vocabulary_size))
        return display.page(tuple(panes), self.prompt, self.definition)
