"""Free text with the same triggers is one automaton for the process, whatever stands behind them."""

from __future__ import annotations

from typing import Any

import pytest

import structgen as sg
from structgen.compiler.gbnf import compiler
from structgen.compiler.structural_tags import linker
from structgen.errors import BudgetExceededError

BYTES = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def calls(trigger: str, *names: str) -> sg.StructuralTag:
    tags: list[Any] = [
        {"begin": f"{trigger}{name}", "content": {"type": "regex", "pattern": name}, "end": ">"} for name in names
    ]
    return sg.StructuralTag({"type": "triggered_tags", "triggers": [trigger], "tags": tags})


def test_a_tool_more_needs_no_other_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def rules_of(*given: Any) -> Any:
        made.append(given)
        return original(*given)

    original = compiler.rules_of
    monkeypatch.setattr(linker, "rules_of", rules_of)
    linker._KNOWN.clear()
    for names in (["a"], ["a", "b"], ["c"]):
        sg.compile(calls("<!", *names), BYTES, eager=False)
    assert len(made) == 1
    sg.compile(calls("<?", "a"), BYTES, eager=False)
    assert len(made) == 2


def test_a_small_budget_stays_small() -> None:
    sg.compile(calls("<" * 50, "a"), BYTES, eager=False)
    with pytest.raises(BudgetExceededError):
        sg.compile(calls("<" * 50, "a"), BYTES, eager=False, budget=sg.Budget(states=20))
