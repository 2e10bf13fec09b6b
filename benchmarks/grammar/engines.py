"""The engines on grammars: `benchmarks.engines` with another front end, each on one thread.

`ready` makes a compiled grammar that has read nothing yet: in structgen with everything worked out ahead of time, or
nothing. llguidance knows no such difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import structgen as sg

from .. import engines as peers
from . import llguidance

#: What `ready` is asked for.
EAGER, LAZY = "eager", "lazy"


class GrammarEngine(Protocol):
    """What the benchmark needs of a library, once it has a grammar."""

    def ready(self, how: str) -> Any:
        """A compiled grammar that has read nothing yet. Raises `peers.RefusedError`."""
        ...

    def stepper(self, compiled: Any, bitmask: peers.Bitmask) -> peers.Stepper:
        """A new sequence whose masks go to ``bitmask``, ``int32[words]``."""
        ...

    def trouble(self, stepper: peers.Stepper) -> str:
        """Why a sequence came to an end, where the library tells."""
        ...


class Structgen:
    """structgen."""

    def __init__(self, vocabulary: sg.Vocabulary, grammar: sg.Grammar) -> None:
        _ = vocabulary.trie
        self._vocabulary, self._grammar = vocabulary, grammar
        self._stored: bytes | None = None

    def ready(self, how: str) -> sg.Index:
        """Compiled lazily, or opened from what was compiled eagerly: nothing that guides learned is in its bytes."""
        try:
            if how == LAZY:
                return sg.compile(self._grammar, self._vocabulary, eager=False, threads=1)
            if self._stored is None:
                index = sg.compile(self._grammar, self._vocabulary, threads=1, budget=sg.Budget(seconds=600))
                self._stored = index.to_bytes(with_vocabulary=False)
        except sg.Error as error:
            raise peers.RefusedError(f"{type(error).__name__}: {error}") from error
        return sg.Index.from_buffer(self._stored, self._vocabulary)

    def stepper(self, compiled: sg.Index, bitmask: peers.Bitmask) -> peers.Stepper:
        """A new guide."""
        guide = sg.Guide(compiled)
        return peers.Stepper(guide.fill_bitmask, (bitmask,), guide.advance)

    def trouble(self, stepper: peers.Stepper) -> str:
        """A token that is not in the mask is all there can be."""
        return "not in the grammar"


class LLGuidance(peers.LLGuidance):
    """llguidance on the same rules and terminals (`benchmarks.grammar.llguidance`).

    Parameters
    ----------
    limited:
        Whether its own limits hold; otherwise they are so high that they stop nothing.
    """

    def __init__(
        self, vocabulary: sg.Vocabulary, tokenizer_json: Path | None, grammar: sg.Grammar, *, limited: bool = False
    ) -> None:
        from llguidance import LLParserLimits

        super().__init__(vocabulary, tokenizer_json)
        self._text = llguidance.convert(grammar)
        self._limits = None if limited else LLParserLimits(
            max_items_in_row=10**7, initial_lexer_fuel=10**9, step_lexer_fuel=10**9, step_max_items=10**9,
            max_lexer_states=10**7, max_grammar_size=10**7,
        )  # fmt: skip

    def ready(self, how: str) -> Any:
        """A matcher."""
        grammar = self._matcher.grammar_from_lark(self._text)
        matcher = self._matcher(self._tokenizer, grammar, log_level=0, limits=self._limits)
        if matcher.is_error():
            raise peers.RefusedError(matcher.get_error())
        return matcher

    def trouble(self, stepper: peers.Stepper) -> str:
        """The first line of its message; empty for a token that is not in the mask but would be taken."""
        error: str = stepper.advance.__self__.get_error()  # type: ignore[attr-defined]
        return error.partition("\n")[0] or "not in the mask"


_Maker = Callable[[sg.Vocabulary, Path | None, sg.Grammar], GrammarEngine]

#: By name: the module that must be there, and how to make the engine. A maker raises `peers.RefusedError`.
ENGINES: dict[str, tuple[str, _Maker]] = {
    "structgen": ("structgen", lambda vocabulary, _, grammar: Structgen(vocabulary, grammar)),
    "llguidance": ("llguidance", LLGuidance),
    "llguidance, its limits": (
        "llguidance",
        lambda vocabulary, tokenizer, grammar: LLGuidance(vocabulary, tokenizer, grammar, limited=True),
    ),
}

available = partial(peers.available, ENGINES)
