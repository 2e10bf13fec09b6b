"""Structural tags of strangers: all end, as an index or a typed error, within the budget of a request.

No time is taken here: a second passes on the meter's clock with so many looks at it, and what is done between two
looks is counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import FrameType

import pytest
from judges.guides import BYTES

import structgen as sg
from hostile.hostile_tags import DEFINITIONS, REFUSED
from structgen.budget import Budget, Meter
from structgen.building import build
from structgen.errors import BudgetExceededError, StructgenError
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.system.garbage import paused

pytestmark = pytest.mark.nightly

#: Looks at the clock in a second, and Python functions called between two looks.
LOOKS, CALLS = 5_000, 300_000

#: Those of the largest sizes are left to ``make attack``.
SOME = [name for name in DEFINITIONS if name.removeprefix("tag: ") not in REFUSED and not name.endswith("00,000")]


class Looks:
    """A clock that goes on whenever somebody looks, and the most functions that were called between two looks."""

    def __init__(self) -> None:
        self.looked = self.most = self._calls = 0

    def __call__(self) -> float:
        self.looked += 1
        self.most = max(self.most, self._calls)
        self._calls = 0
        return self.looked / LOOKS

    def called(self, _frame: FrameType, event: str, _argument: object) -> None:
        """For `sys.setprofile`."""
        self._calls += event == "call"


def built(make: Callable[[], sg.StructuralTag], clock: Looks, *, eager: bool) -> PushdownMachine:
    """The machine of a definition, with its masks if it is to be ``eager``."""
    definition = make()
    before = sys.getprofile()
    meter = Meter(Budget.request, clock=clock)
    sys.setprofile(clock.called)
    try:
        with paused():
            machine, _ = build(definition, BYTES, meter, on_demand=not eager)
            assert isinstance(machine, PushdownMachine)
            if eager:
                machine.fill(threads=1, meter=meter)
    finally:
        sys.setprofile(before)
    return machine


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", SOME)
def test_it_ends_typed_within_the_budget(name: str, eager: bool) -> None:
    clock = Looks()
    with suppress(StructgenError):
        machine = built(DEFINITIONS[name], clock, eager=eager)
        assert machine.tables.states <= Budget.request.states
        assert machine.row(machine.start).any()
    assert clock.looked <= 2 * Budget.request.seconds * LOOKS + 4  # the mask may have parts lowered
    assert clock.most < CALLS


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_what_and_where(name: str, eager: bool) -> None:
    format_, says = REFUSED[name]
    with pytest.raises(StructgenError, match=says):
        sg.compile(sg.StructuralTag(format_), BYTES, eager=eager, budget=replace(Budget.request, seconds=600))


@pytest.mark.parametrize(
    "name",
    ["an end of bounded text, 1,000", "ends of bounded text, 1,000", "text in a row, 300", "counts in a star, 50,000"],
)
def test_what_takes_long_is_refused_when_it_is_compiled(name: str) -> None:
    """Not at the step that comes to it."""
    with pytest.raises(BudgetExceededError):
        built(DEFINITIONS[f"tag: {name}"], Looks(), eager=False)
