"""The engines on replies with tool calls, each on one thread.

structgen and XGrammar take the same format of a structural tag; llguidance takes its own tags, which are the same for
styles whose arguments are JSON. Whitespace in JSON is any, as XGrammar has it by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structgen as sg

from .. import engines as peers

#: Of `structgen.tools.tool_call_format`.
Format = Any


@dataclass(frozen=True)
class Reply:
    """What a reply may be.

    Parameters
    ----------
    format:
        The format of a structural tag.
    tags:
        llguidance's: trigger, begin, schema and end of each. None where it has no such tags.
    """

    format: Format
    tags: Sequence[tuple[str, str, Any, str]] | None


class Structgen(peers.Structgen):
    """structgen: `StructuralTag`, under `compile`'s default budget."""

    def compile(self, reply: Any) -> sg.Index:
        """An index."""
        definition = sg.StructuralTag(reply.format, whitespace="any")
        try:
            return sg.compile(definition, self._vocabulary, eager=self._eager, threads=1)
        except sg.Error as error:
            raise peers.RefusedError(f"{type(error).__name__}: {error}") from error


class XGrammar(peers.XGrammar):
    """XGrammar: `compile_structural_tag`, with the cache that it has by default. No definition here comes twice."""

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        super().__init__(vocabulary, threads=1, cached=True)

    def compile(self, reply: Any) -> Any:
        """A `CompiledGrammar`."""
        try:
            text = json.dumps({"type": "structural_tag", "format": reply.format})
            return self._compiler.compile_structural_tag(text)
        except (RuntimeError, ValueError) as error:
            raise peers.RefusedError(str(error)) from error


class LLGuidance(peers.LLGuidance):
    """llguidance: the grammar of its `StructTag`s."""

    def compile(self, reply: Any) -> Any:
        """A matcher, which walks the vocabulary when asked for a mask."""
        from llguidance import StructTag

        if reply.tags is None:
            raise peers.RefusedError("llguidance has no such tags")
        tags = [
            StructTag(trigger=trigger, begin=begin, grammar=schema, end=end)
            for trigger, begin, schema, end in reply.tags
        ]
        matcher = self._matcher(self._tokenizer, StructTag.to_grammar(tags, assume_special=False), log_level=0)
        if matcher.is_error():
            raise peers.RefusedError(matcher.get_error())
        return matcher


#: By name: the module that must be there, and how to make the engine.
ENGINES: dict[str, tuple[str, Callable[[sg.Vocabulary, Path | None], Any]]] = {
    "structgen": ("structgen", lambda vocabulary, _: Structgen(vocabulary, threads=1)),
    "structgen, lazy": ("structgen", lambda vocabulary, _: Structgen(vocabulary, threads=1, eager=False)),
    "xgrammar": ("xgrammar", lambda vocabulary, _: XGrammar(vocabulary)),
    "llguidance": ("llguidance", LLGuidance),
}

available = partial(peers.available, ENGINES)
