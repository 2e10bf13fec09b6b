"""What a user writes, as small immutable values: a `Regex` or an `Fsm`, later a schema or a grammar.

A definition knows how to name itself (`canonical`), which is half of a cache key; compilers know how to
lower it. It holds no automata and does no work beyond checking its own fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .errors import DefinitionError

#: The flags of Python's `re` that a `Regex` honours.
SUPPORTED_FLAGS = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.UNICODE


@runtime_checkable
class Definition(Protocol):
    """Anything that can be compiled: names its kind and has a canonical form."""

    @property
    def kind(self) -> str:
        """``"regex"`` or ``"fsm"``, later ``"json_schema"`` and ``"grammar"``: which front end lowers it."""
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


@dataclass(frozen=True, eq=False)
class Fsm:
    """The texts that an interegular FSM accepts: for algebra on regular languages before compiling.

    interegular's machines can be united, intersected, subtracted and complemented
    (``parse_pattern(a).to_fsm() - parse_pattern(b).to_fsm()``); the result compiles like a `Regex`. Its symbols are
    single characters, or interegular's ``anything_else``, which stands for every character not named.

    Parameters
    ----------
    fsm:
        An `interegular.fsm.FSM`.
    """

    fsm: Any

    kind = "fsm"

    def __post_init__(self) -> None:
        if not all(hasattr(self.fsm, name) for name in ("alphabet", "initial", "finals", "map")):
            raise DefinitionError(
                f"an interegular FSM was expected, got {type(self.fsm).__name__}",
                remedy='Pass interegular.parse_pattern("...").to_fsm(), or combine such machines.',
            )
        for symbols in self.fsm.alphabet.by_transition.values():
            for symbol in symbols:
                if isinstance(symbol, str) and len(symbol) != 1:
                    raise DefinitionError(f"the FSM's symbol {symbol!r} is not a single character")

    def symbols(self) -> dict[int, list[str | None]]:
        """The characters of each of the alphabet's transition keys; None is ``anything_else``."""
        return {
            key: sorted((s if isinstance(s, str) else None for s in symbols), key=lambda s: (s is not None, s))
            for key, symbols in self.fsm.alphabet.by_transition.items()
        }

    def canonical(self) -> str:
        """The machine with its states numbered as a breadth-first search meets them, as compact JSON."""
        fsm, symbols = self.fsm, self.symbols()
        keys = sorted(symbols, key=lambda key: [s or "" for s in symbols[key]])
        number = {fsm.initial: 0}
        moves = []
        for state in (queue := [fsm.initial]):
            for column, key in enumerate(keys):
                target = fsm.map.get(state, {}).get(key)
                if target is None:
                    continue
                if target not in number:
                    number[target] = len(number)
                    queue.append(target)
                moves.append([number[state], column, number[target]])
        finals = sorted(number[state] for state in fsm.finals if state in number)
        return json.dumps(["fsm", [symbols[key] for key in keys], moves, finals])
