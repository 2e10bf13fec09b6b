"""What a user writes, as small immutable values: today a `Regex`, later a schema or a grammar.

A definition knows how to name itself (`canonical`), which is half of a cache key; compilers know how to
lower it. It holds no automata and does no work beyond checking its own fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .errors import DefinitionError

#: The flags of Python's `re` that a `Regex` honours.
SUPPORTED_FLAGS = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.UNICODE


@runtime_checkable
class Definition(Protocol):
    """Anything that can be compiled: names its kind and has a canonical form."""

    @property
    def kind(self) -> str:
        """``"regex"``, later ``"json_schema"`` and ``"grammar"``: which front end lowers it."""
        ...

    def canonical(self) -> str:
        """A text that is equal for two definitions exactly when they mean the same to the compiler."""
        ...


@dataclass(frozen=True)
class Regex:
    r"""The texts that a Python regular expression matches from end to end (`re.fullmatch`).

    Parameters
    ----------
    pattern:
        Python `re` syntax, with ``\p{..}`` in addition. Groups capture nothing here; greedy and lazy
        quantifiers mean the same language. Look-around is exact. Backreferences, conditionals, recursion,
        atomic groups and possessive quantifiers are refused with their column.
    flags:
        `re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE`, or their union as an int.
    """

    pattern: str
    flags: int = 0

    kind = "regex"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise DefinitionError(
                f"a regex is a str, got {type(self.pattern).__name__}",
                remedy="Decode bytes first; structgen encodes as UTF-8 itself.",
            )
        object.__setattr__(self, "flags", int(self.flags))
        unknown = self.flags & ~int(SUPPORTED_FLAGS)
        if unknown:
            raise DefinitionError(
                f"unsupported regex flags {re.RegexFlag(unknown)!r}",
                remedy="Use re.A, re.I, re.M, re.S and re.X only.",
            )

    @classmethod
    def choice(cls, words: Iterable[str]) -> Regex:
        """Exactly one of the words, each taken literally."""
        return cls("|".join(map(re.escape, dict.fromkeys(words))))

    def canonical(self) -> str:
        """The kind, pattern and flags as compact JSON."""
        return json.dumps(["regex", self.pattern, self.flags & ~int(re.UNICODE)], ensure_ascii=True)
