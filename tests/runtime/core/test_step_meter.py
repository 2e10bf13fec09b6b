"""Steps are metered in units of work: the error is typed, nothing changes, and what is found out stays right."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from judges.guides import BYTES, EACH_BYTE, allowed

import structgen as sg
from structgen import budget
from structgen.budget import StepMeter
from structgen.errors import BudgetExceededError
from structgen.runtime.pushdown.distances import budgeted

#: Two sets of rules that can each be read in many ways, none of which the search for growth finds.
ENDS = 'start: s\ns: "a" s | "a" s "b" s | "a" s "b" s "b" s | "c"'
MIXED = 'start: a "x"\na: b "a" | "a"\nb: a "b" | b b "a" | "a"'

#: By kind: a definition, a text whose steps take ever more, and a bound that they come to.
METERED: dict[str, tuple[sg.Definition, bytes, int]] = {
    "ambiguous grammar": (sg.Grammar(ENDS, lexer="basic", ambiguity="all"), b"a" * 60 + b"cba" * 30, 5_000),
    "ambiguous grammar, contextual": (sg.Grammar(ENDS, ambiguity="all"), b"a" * 60 + b"cba" * 30, 5_000),
    "ambiguous masks": (sg.Grammar(MIXED, lexer="basic", ambiguity="all"), b"a" * 60, 1_000),
    "GBNF": (
        sg.Gbnf('root ::= x*\nx ::= "a" x* "b"? | "b" x? "a"? | "ab" x? x? "b"'), b"a" + b"ba" * 100, 50
    ),
    "a grammar's schema": (
        sg.Grammar('start: ("a" | "b" s)+ "!"\ns: %json {"type": "object"}'), b'b{"a":1}' * 3, 12
    ),
    "a grammar's GBNF": (
        sg.Grammar(
            'start: "<" X ">"',
            definitions={"X": sg.Gbnf('root ::= x+\nx ::= "a" x* "b"? | "b" x? "a"? | "ab" x? x? "b"')},
        ), b"<a" + b"ba" * 60, 50,
    ),
    "a grammar's distinct items": (
        sg.Grammar(
            'start: "<" X ">"',
            definitions={"X": sg.JsonSchema({"items": {"enum": [*range(10, 60)]}, "uniqueItems": True})},
        ), b"<[" + b",".join(b"%d" % i for i in range(10, 59)) + b",", 100,
    ),
    "a budget of tokens": (
        sg.Grammar('start: "<" a ">"\na[max_tokens=90]: %json {"type": "array"}'), b'<[[[1,"a"],{"a":[]},[[', 50
    ),
    "distinct items": (
        sg.JsonSchema({"type": "array", "items": {"enum": [*range(10, 60)]}, "uniqueItems": True}),
        b"[" + b",".join(b"%d" % i for i in range(10, 59)) + b",", 100,
    ),
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("kind", METERED)
def test_a_step_of_too_much_work_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    definition, text, most = METERED[kind]
    index, fresh = (sg.compile(definition, BYTES, eager=False) for _ in range(2))
    guide, other = sg.Guide(index), sg.Guide(fresh)
    refused = 0
    for byte in text:
        before, error = guide.config, None
        with monkeypatch.context() as bounded:
            bounded.setattr(budget, "MOST_STEP_WORK", most)
            try:
                mask = guide.bitmask().copy()
                went_on = guide.advance(byte)
            except BudgetExceededError as raised:
                error, went_on = raised, False
        if error is not None:
            assert "units of work" in str(error)
            assert error.remedy
            assert guide.config == before
            refused += 1
            mask = guide.bitmask()
        np.testing.assert_array_equal(mask, other.bitmask())
        assert went_on or guide.advance(byte)
        assert other.advance(byte)
    assert refused
    guide.rollback(len(text))
    assert guide.config == index.machine.start


def test_a_step_that_was_made_before_takes_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    definition, text, _ = METERED["ambiguous grammar"]
    index = sg.compile(definition, BYTES, eager=False)
    for most in (budget.MOST_STEP_WORK, 0):
        monkeypatch.setattr(budget, "MOST_STEP_WORK", most)
        guide = sg.Guide(index)
        for byte in text:
            assert byte in allowed(guide)
            assert guide.advance(byte)


def test_texts_are_metered_as_tokens_are(monkeypatch: pytest.MonkeyPatch) -> None:
    definition, text, _ = METERED["ambiguous grammar"]
    index = sg.compile(definition, BYTES, eager=False)
    monkeypatch.setattr(budget, "MOST_STEP_WORK", 1_000)
    with pytest.raises(BudgetExceededError, match="1,000 units of work"):
        index.match(text)


def test_a_stored_index_takes_no_more_than_was_taken_to_compile_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The costs of its definition are found anew by the first step, which may take no more than others."""
    schema = '{"type": "array", "items": {"$ref": "#"}, "maxItems": 90}'
    grammar = sg.Grammar(f"start: a\na[max_tokens=200]: %json {schema}")
    for module in (budgeted, budget):
        monkeypatch.setattr(module, "MOST_STEP_WORK", 3_000)
    with pytest.raises(BudgetExceededError, match=r"3,000 units of work \(counting the tokens of a definition\)"):
        sg.compile(grammar, BYTES, eager=False)
    for module in (budgeted, budget):
        monkeypatch.setattr(module, "MOST_STEP_WORK", 100_000)
    index = sg.Index.from_buffer(sg.compile(grammar, BYTES, eager=False).to_bytes(), BYTES)
    guide = sg.Guide(index)
    assert allowed(guide) == [ord("[")]
    assert guide.advance(ord("["))


def test_what_is_asked_between_steps_is_metered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must follow, and whether texts are complete: of a row of a batch it is an error of that row alone."""
    definition, text, _ = METERED["ambiguous grammar"]
    index = sg.compile(definition, BYTES, eager=False)
    batch, guide = sg.GuideBatch(BYTES, [index, sg.compile(sg.Regex("a*"), BYTES)]), sg.Guide(index)
    for byte in text[:80]:
        assert guide.advance(byte)
        assert batch.advance([byte, ord("a")]).all()
    with monkeypatch.context() as bounded:
        bounded.setattr(budget, "MOST_STEP_WORK", 0)
        with pytest.raises(BudgetExceededError):
            guide.forced_bytes()
        with pytest.raises(BudgetExceededError):
            guide.is_accepting()
        assert batch.is_accepting().tolist() == [False, True]
        assert isinstance(batch.errors[0], BudgetExceededError)
    assert batch.is_accepting().tolist() == [guide.is_accepting(), True]


def test_work_of_other_threads_and_of_what_is_no_step_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_STEP_WORK", 10)
    meter = StepMeter()
    meter.spend(1_000)

    def step() -> None:
        other = threading.Thread(target=meter.spend, args=(1_000,))
        other.start()
        other.join()
        meter.spend(6)
        meter.measured(meter.spend, 10)
        meter.spend(4)

    for _ in range(2):
        meter.measured(step)
    with pytest.raises(BudgetExceededError):
        meter.measured(meter.spend, 11)
    meter.measured(step)


def test_masks_of_longer_tokens_take_no_more_than_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the bytes of a token come to less than eight times the work: stacks become a graph on its way."""
    spent: list[int] = []
    spend = StepMeter.spend

    def counted(self: StepMeter, work: int) -> None:
        spent.append(work)
        spend(self, work)

    monkeypatch.setattr(StepMeter, "spend", counted)
    work = []
    for length in (32, 128):
        vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, b"a" * length, None], eos_ids=[257])
        index = sg.compile(METERED["ambiguous masks"][0], vocabulary, eager=False)
        guide = sg.Guide(index)
        for byte in b"a" * 40:
            assert guide.advance(byte)
        spent.clear()
        assert 256 in allowed(guide)
        work.append(sum(spent))
    assert work[1] < 8 * work[0], work
