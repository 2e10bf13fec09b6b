"""XGrammar beside structgen: its engine on a vocabulary, and the differences from it that the guide explains."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import structgen as sg

#: What XGrammar says of formats that it refuses, by the difference.
REFUSED = {
    "no-end": "at least one end string must be non-empty",
    "tokens-among-ends": "end array must contain only strings",
    "triggers-of-tags": "matches multiple triggers|not match any trigger",
}

_GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def explained(page: str) -> dict[str, str]:
    """What a page of the guide says of each difference, by its name: the rows of the table under its heading."""
    section = (_GUIDE / page).read_text("utf-8").split("\n## Beside XGrammar\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", section, re.MULTILINE))


def is_at_least(version: str) -> bool:
    """Whether XGrammar is of a version that has a difference, or a later one."""
    return [int(part) for part in metadata.version("xgrammar").split(".")[:3]] >= [*map(int, version.split("."))]


class XGrammar:
    """XGrammar's compiler for a vocabulary, whose special tokens have their names for bytes, as it takes them."""

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        self._package = pytest.importorskip("xgrammar")
        names = {number: name.encode() for name, number in vocabulary.special_tokens.items()}
        tokens = [vocabulary.token(number) or names.get(number, b"") for number in range(vocabulary.size)]
        info = self._package.TokenizerInfo(
            tokens, vocab_type=self._package.VocabType.RAW, stop_token_ids=[*vocabulary.eos_ids]
        )
        self._compiler = self._package.GrammarCompiler(info, cache_enabled=False, max_threads=1)
        self._size = vocabulary.size

    def walk(self, format_: dict[str, Any]) -> XGrammarWalk:
        """A reply of a format that has not begun. Raises `RuntimeError` for formats that it refuses."""
        compiled = self._compiler.compile_structural_tag({"type": "structural_tag", "format": format_})
        return XGrammarWalk(self._package, compiled, self._size)


class XGrammarWalk:
    """One reply, token by token."""

    def __init__(self, package: Any, compiled: Any, size: int) -> None:
        self._matcher = package.GrammarMatcher(compiled)
        self._row = package.allocate_token_bitmask(1, size)
        self._size = size

    def mask(self) -> NDArray[np.bool_]:
        """The tokens that may come next; none behind a reply that is over."""
        if self._matcher.is_terminated():
            return np.zeros(self._size, bool)
        self._matcher.fill_next_token_bitmask(self._row)
        return bits(self._row.numpy()[0], self._size)

    def advance(self, token: int) -> bool:
        """Take a token; False where it may not come."""
        return bool(self._matcher.accept_token(token))


def bits(row: NDArray[np.int32], size: int) -> NDArray[np.bool_]:
    """A row of a bitmask, a bool for each token."""
    return np.unpackbits(row.view(np.uint8), bitorder="little")[:size].astype(bool)
