"""How two definitions differ: shortest texts that one accepts and the other does not, or a proof that there are none.

Both are followed side by side, breadth first, byte by byte. Where the pairs of configurations come to an end, that
decides both inclusions (Hopcroft, Ullman 1979, theorem 3.8). With a stack they need not, and no algorithm decides the
rest (theorem 8.11): then it is said up to how many bytes there is no difference, and an inclusion is proved where
each production of one automaton has its like in the other, a simulation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..api import compile
from ..budget import Budget, Meter
from ..definitions.values import as_definition
from ..errors import BudgetExceededError, EmptyLanguageError, UnsupportedError
from ..runtime.core.machine import CompiledMachine
from ..runtime.index.index import Index
from ..system.garbage import paused
from ..system.types import JsonMap
from ..vocabulary.vocabulary import Vocabulary
from .configurations import Configurations
from .languages import READABLE, GreibachLanguage
from .simulation import Simulation
from .values import Verdict, abridged, readable

if TYPE_CHECKING:
    from rich.text import Text

_DOING = "comparing two definitions"

#: Of the time the search may take so much; what is left is for proofs.
_SHARE = 0.5

#: Pairs that are looked at before a proof is tried.
_FIRST_PAIRS = 2_000

#: How two sets of texts relate: equal, the first in the second, the second in the first, neither, or not known.
Relation = Literal["equal", "narrower", "wider", "different", "undecided"]

_SAYS: dict[Relation, str] = {
    "equal": "both accept the same texts",
    "narrower": "all texts of the first are texts of the second, and not the other way round",
    "wider": "all texts of the second are texts of the first, and not the other way round",
    "different": "each has texts that the other does not have",
}


@dataclass(frozen=True)
class Difference:
    """The relation between the texts of two definitions.

    Parameters
    ----------
    first_in_second, second_in_first:
        Whether all texts of one are texts of the other: ``"proved"``, ``"refuted"`` or ``"undecided"``.
    only_first, only_second:
        A text that only one of them accepts; None where there is none, or none was found.
    is_shortest:
        Whether these are the shortest such texts.
    same_up_to:
        With an undecided result: the length in bytes up to which there is no such text. None where all is decided.
    pairs:
        Number of pairs of configurations that were compared.
    how:
        The method of the proof.
    """

    first_in_second: Verdict
    second_in_first: Verdict
    only_first: str | None
    only_second: str | None
    is_shortest: bool
    same_up_to: int | None
    pairs: int
    how: str

    @property
    def relation(self) -> Relation:
        """The relation of the first definition's texts to the second's."""
        verdicts = self.first_in_second, self.second_in_first
        if "undecided" in verdicts:
            return "undecided"
        relations: dict[tuple[Verdict, Verdict], Relation] = {
            ("proved", "proved"): "equal",
            ("proved", "refuted"): "narrower",
            ("refuted", "proved"): "wider",
        }
        return relations.get(verdicts, "different")

    def to_json(self) -> JsonMap:
        """Return the difference as a dict, with the relation."""
        return {"relation": self.relation, **asdict(self)}

    @classmethod
    def from_json(cls, data: str | JsonMap) -> Difference:
        """Read the output of `to_json`, or its JSON text: ``data``."""
        found = dict(json.loads(data) if isinstance(data, str) else data)
        found.pop("relation", None)
        return cls(**found)

    def __rich__(self) -> Text:
        """A line or two for a terminal."""
        from rich.text import Text

        lines = [_SAYS.get(self.relation, "not decided") + f": {self.how}"]
        if self.same_up_to is not None:
            lines.append(f"no difference beyond what is said here up to {self.same_up_to:,} bytes")
        for name, text in (("first", self.only_first), ("second", self.only_second)):
            if text is not None:
                lines.append(f"only the {name} accepts {abridged(text)!r}")
        return Text("\n".join(lines))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self.__rich__()))}</pre>"


def difference(first: object, second: object, *, budget: Budget | None = None) -> Difference:
    """Compare the texts of two definitions.

    Texts are compared byte by byte. Tokens that a definition names by id are not bytes: with such tokens nothing is
    proved, unless both are the same definition over the same vocabulary.

    Parameters
    ----------
    first, second:
        Definitions as `structgen.compile` takes them, or indexes of any vocabularies.
    budget:
        Bounds of the work. None: the defaults of `Budget`.

    Returns
    -------
    Difference
        Which texts only one of them accepts.

    Raises
    ------
    StructgenError
        The errors of `structgen.compile`, except for definitions that no text satisfies.
    """
    budget = budget or Budget()
    machines = [_machine_of(each, budget) for each in (first, second)]
    names_tokens = any(machine.names_tokens() for machine in machines if machine is not None)
    with paused():
        return _Search(machines, budget, leaves_out=names_tokens and _key(first) != _key(second)).run()


def _key(value: object) -> tuple[str, object]:
    """What says of two definitions, or indexes, that they are the same."""
    if not isinstance(value, Index):
        return as_definition(value).canonical(), None
    vocabulary = value.vocabulary
    return value.definition, (vocabulary.fingerprint, sorted(vocabulary.special_tokens.items()))


def _machine_of(value: object, budget: Budget) -> CompiledMachine | None:
    """A machine over bytes; None for a definition without texts."""
    if isinstance(value, Index):
        return value.machine
    try:
        return compile(value, Vocabulary.bytewise(), eager=False, budget=budget, base_rows=False).machine
    except EmptyLanguageError:
        return None


class _Side:
    """One of the two, with its configurations by number. Without a machine it accepts nothing."""

    def __init__(self, machine: CompiledMachine | None, meter: Meter) -> None:
        self.machine = machine
        self.configurations = None if machine is None else Configurations(machine, meter)
        self.start = -1 if machine is None else 0
        self._moves: dict[int, tuple[bool, list[int]]] = {-1: (False, [-1] * 256)}

    def at(self, number: int) -> tuple[bool, list[int]]:
        """Whether a text may end in a configuration, and where each byte leads, -1 for nowhere."""
        found = self._moves.get(number)
        if found is None and self.configurations is not None:
            _, productions = self.configurations.productions((number, 0))
            targets = [-1] * 256
            for data, ((target, _),) in productions.moves:
                for byte in data:
                    targets[byte] = target
            found = self._moves[number] = productions.ends, targets
        assert found is not None
        return found


class _Search:
    """The pairs of configurations that texts lead to, breadth first.

    ``leaves_out``: whether whole tokens, which are not looked at, may tell the two apart.
    """

    def __init__(self, machines: list[CompiledMachine | None], budget: Budget, *, leaves_out: bool) -> None:
        self._leaves_out = leaves_out
        self._budget = budget
        self._machines = machines
        self._meter = Meter(replace(budget, seconds=_SHARE * budget.seconds))
        self._sides = [_Side(machine, self._meter) for machine in machines]
        start = self._sides[0].start, self._sides[1].start
        self._before: dict[tuple[int, int], tuple[tuple[int, int], int]] = {start: (start, -1)}
        #: Texts that only one of the two accepts, and pairs in which only one of them is alive.
        self._only: list[bytes | None] = [None, None]
        self._alone: list[tuple[int, int] | None] = [None, None]
        self._proved = [False, False]  # by simulation
        self._level, self._depth = [start], 0
        self._is_whole, self._is_over, self._is_shortest = False, False, True

    def run(self) -> Difference:
        """See `difference`."""
        self._go_on(_FIRST_PAIRS)
        if not self._is_whole:
            for i in range(2):
                if self._verdict(i) == "undecided" and not self._leaves_out:
                    self._simulate(i)
            self._go_on(None)
        for i in range(2):
            if self._verdict(i) == "undecided":
                self._only[i] = self._completed(i)
        first, second = (None if text is None else readable(text) for text in self._only)
        verdicts = self._verdict(0), self._verdict(1)
        same_up_to = self._depth - 1 if "undecided" in verdicts else None
        how = "all pairs of configurations were looked at"
        if not self._is_whole:
            how = "by a search that was not brought to an end"
            if any(self._proved):
                how = "each production of one has its like in the other"
        if self._leaves_out:
            how = f"{how}; whole tokens that are named were left out"
        return Difference(*verdicts, first, second, self._is_shortest, same_up_to, len(self._before), how)

    def _verdict(self, i: int) -> Verdict:
        if self._only[i] is not None:
            return "refuted"
        return "proved" if (self._is_whole or self._proved[i]) and not self._leaves_out else "undecided"

    def _go_on(self, pairs: int | None) -> None:
        """Look at more pairs, so many at most, until all is decided or the time is up."""
        try:
            while not (self._is_whole or self._is_over) and "undecided" in (self._verdict(0), self._verdict(1)):
                if pairs is not None and len(self._before) > pairs:
                    return
                self._look()
        except BudgetExceededError:
            self._is_over = True  # in the midst of a length, some of whose pairs are lost

    def _look(self) -> None:
        """Look at the pairs of one length. Raises `BudgetExceededError`."""
        following: list[tuple[int, int]] = []
        for pair in self._meter.each(self._level, _DOING, every=8):
            following += self._after(pair)
        self._level = following
        self._depth += 1
        self._is_whole = not following

    def _after(self, pair: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """The new pairs behind one; notes what it shows."""
        (ends, moves), (other_ends, other_moves) = (side.at(n) for side, n in zip(self._sides, pair, strict=True))
        if ends != other_ends:
            i = 0 if ends else 1
            if self._only[i] is None:
                self._only[i] = self._text(pair)
        found: dict[tuple[int, int], int] = {}
        for byte in READABLE:
            target = moves[byte], other_moves[byte]
            if target not in found and target not in self._before:
                found[target] = byte
        for target, byte in found.items():
            i = 1 if target[0] < 0 else 0
            if min(target) < 0:  # only one is alive
                if max(target) < 0 or self._verdict(i) != "undecided":
                    continue
                self._alone[i] = self._alone[i] or target
            self._before[target] = pair, byte
            yield target

    def _text(self, pair: tuple[int, int]) -> bytes:
        found = bytearray()
        while (step := self._before[pair])[1] >= 0:
            pair, byte = step
            found.append(byte)
        return bytes(reversed(found))

    def _completed(self, i: int) -> bytes | None:
        """A text of one alone, from where only that one is alive."""
        pair, side = self._alone[i], self._sides[i].configurations
        if pair is None or side is None:
            return None
        self._is_shortest = False
        self._meter.begin_again()
        try:
            return self._text(pair) + side.ending_of(pair[i])
        except BudgetExceededError:
            return None

    def _simulate(self, i: int) -> None:
        """Whether it is seen that all texts of one are texts of the other, or a text that is not."""
        inner, outer = self._machines[i], self._machines[1 - i]
        if inner is None or outer is None:
            return
        meter = Meter(replace(self._budget, seconds=_SHARE * self._budget.seconds / 2))
        try:
            found = Simulation(GreibachLanguage(outer.productions, meter), GreibachLanguage(inner.productions, meter))
        except (BudgetExceededError, UnsupportedError):
            return
        self._proved[i] = found.holds
        text = None if found.holds else found.candidate()
        if text is not None and inner.match(text).accepted and not outer.match(text).accepted:
            self._only[i], self._is_shortest = text, False
