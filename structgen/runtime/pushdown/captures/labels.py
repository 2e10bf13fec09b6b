"""`RuleLabel`: what a rule's attributes say of its texts, as the states that stand for it have it, and in files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....errors import FormatError
from ....storage.records import read_text, written
from ....system.arguments import is_temperature
from ....system.properties import cached_property
from ....system.types import Array
from ...core.machine import Captured

#: The section of the file format, in files of grammars whose rules have labels.
SECTION = "labels"


@dataclass(frozen=True)
class RuleLabel:
    """What is captured of a rule's texts, and the temperature at which they are sampled.

    Parameters
    ----------
    capture:
        The name of the text but for its end; "" for none.
    end_capture:
        The name of the end; "" for none.
    hidden:
        How many bytes the end has, fewer where the text has fewer.
    temperature:
        None where the rule says nothing.
    """

    capture: str = ""
    end_capture: str = ""
    hidden: int = 0
    temperature: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Under which something is captured."""
        return tuple(name for name in (self.end_capture, self.capture) if name)

    def captured(self, start: int, end: int) -> Iterator[Captured]:
        """What is captured of a text, its end first."""
        split = max(start, end - self.hidden)
        if self.end_capture:
            yield Captured(self.end_capture, split, end)
        if self.capture:
            yield Captured(self.capture, start, split)


@dataclass(frozen=True)
class LabelledState:
    """A state without edges that returns, and stands on the stack for a rule."""

    state: int
    label: RuleLabel


@dataclass(frozen=True)
class StateLabels:
    """The labelled states of an automaton, ascending."""

    states: tuple[LabelledState, ...] = ()

    @property
    def by_state(self) -> dict[int, RuleLabel]:
        """The labels by state."""
        return {each.state: each.label for each in self.states}

    @property
    def capture(self) -> bool:
        """Whether something is captured."""
        return any(each.label.names for each in self.states)

    @cached_property
    def temperatures(self) -> dict[int, float]:
        """The temperatures by state, of the states that have one."""
        return {each.state: each.label.temperature for each in self.states if each.label.temperature is not None}

    def to_sections(self) -> dict[str, Array]:
        """The section of the file format; none where there is nothing to say."""
        return {SECTION: np.frombuffer(json.dumps(written(self)).encode(), np.uint8)} if self.states else {}

    @classmethod
    def from_section(cls, text: bytes, states: int, where: str) -> StateLabels:
        """Read `to_sections`. Raises `FormatError`."""
        found = read_text(cls, text, where)
        said = [each.label.temperature for each in found.states if each.label.temperature is not None]
        if any(each.state >= states for each in found.states) or not all(map(is_temperature, said)):
            raise FormatError(f"section {SECTION!r} has what is no state, or no temperature", where=where)
        return found


#: Those of all automata that have none.
NO_LABELS = StateLabels()
