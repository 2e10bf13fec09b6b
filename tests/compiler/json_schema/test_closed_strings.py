"""Strings up to a length with a closing tag behind them, against a reading of the definition letter by letter."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest
from tiers import WHOLE

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.automata.edge_lists import EdgeLists, of_dfa
from structgen.compiler.json_schema.lower import tags
from structgen.compiler.json_schema.strings.closed import closed_string
from structgen.compiler.json_schema.strings.strings import StringSet
from structgen.compiler.patterns.lower import language
from structgen.compiler.patterns.parser import parse
from structgen.kernels.values import SET
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.subautomata import calling_states

METER = Meter(Budget(seconds=100_000))  # from when the module is imported
TAGS = ["</a>", "<é>", "<a b>"]


@cache
def closed(least: int, tag: str, *excludes: str) -> EdgeLists:
    strings = StringSet.length(least, None).without((tag, *excludes), METER)
    return of_dfa(strings.followed_by(tag.encode(), METER), METER)


@cache
def automaton(tag: str, gap: str, least: int, most: int, excludes: tuple[str, ...]) -> EdgeLists:
    blank = of_dfa(language(parse(gap, 0, METER), METER), METER) if gap else None
    free, text = (closed(each, tag, *excludes) for each in (0, least))
    found = closed_string(free, text, tag.encode(), blank, least, most)
    assert found is not None
    return found


def accepts(automaton: EdgeLists, data: bytes) -> bool:
    """Whether an automaton that counts does."""
    state, count = automaton.start, 0
    for byte in data:
        targets = [target for low, high, target in automaton.edges[state] if low <= byte <= high]
        assert len(targets) < 2  # deterministic
        if not targets:
            return False
        state = targets[0]
        if state < -1:
            operation, loop, low, mid, high = automaton.records[-2 - state]
            least, most = automaton.loops[loop]
            count = 1 if operation == SET else count + 1
            state = low if operation == SET or count < least else mid if count < most else high
        if state < 0:
            return False
    return automaton.accepting[state]


@pytest.mark.parametrize("least", [0, 1, 2])
@pytest.mark.parametrize("excludes", [(), ("ab",)])
@pytest.mark.parametrize("gap", ["", " ?", " *", "[ \n]{0,2}"])
@pytest.mark.parametrize("tag", TAGS)
def test_texts_are_those_of_the_definition(tag: str, gap: str, excludes: tuple[str, ...], least: int) -> None:
    most = 3
    found = automaton(tag, gap, least, most, excludes)
    pieces = ["a", "b", " ", "é", "<", tag[:2], tag[:-1]]

    def reads(text: str) -> bool:
        if not text.endswith(tag) or tag in text[:-1]:
            return False
        text = text.removesuffix(tag)
        return any(
            least <= j - i <= most and not any(each in text[i:j] for each in excludes)
            for i in range(len(text) + 1)
            for j in range(i, len(text) + 1)
            if re.fullmatch(gap, text[:i]) and re.fullmatch(gap, text[j:])
        )

    seen = set()
    for length in range(6 if WHOLE else 5):
        for parts in product(pieces, repeat=length):
            text = "".join(parts)
            for whole in (text, text + tag):
                assert accepts(found, whole.encode()) == reads(whole), whole
                seen.add(reads(whole))
    assert seen == {True, False}


def test_a_gap_that_is_no_whitespace_of_its_own_is_left_to_others() -> None:
    for gap, least in product(("(?:  )*", "<*"), (0, 2)):
        free, text = closed(0, "</a>"), closed(least, "</a>")
        blank = of_dfa(language(parse(gap, 0, METER), METER), METER)
        assert closed_string(free, text, b"</a>", blank, least, 30) is None


@pytest.mark.parametrize("least", [0, 1, 24])
@pytest.mark.parametrize("style", ["qwen_xml", "deepseek_xml", "glm_xml", "cohere_xml"])
def test_all_counts_are_told_at_once(style: str, least: int) -> None:
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b"ab", b"a</", None], eos_ids=[258])
    text = {"type": "string", "minLength": least, "maxLength": 500}
    schema = {"type": "object", "properties": {"a": text}, "required": ["a"]}
    definition = sg.JsonSchema(schema, style=style, additional_properties=False)
    machine = sg.compile(definition, vocabulary, base_rows=False).machine
    assert isinstance(machine, PushdownMachine)
    assert (machine.tables.live >= 0).any()
    assert not calling_states(machine.tables)[machine.tables.live >= 0].any()


def test_all_bounds_have_one_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tools have it, whatever their bounds are, and whichever schema it stands in."""
    made: list[bytes] = []

    def noted(
        free: EdgeLists, text: EdgeLists, closing: bytes, gap: EdgeLists | None, least: int, most: int
    ) -> EdgeLists | None:
        made.append(closing)
        return closed_string(free, text, closing, gap, least, most)

    monkeypatch.setattr(tags, "closed_string", noted)
    tags._counted.cache_clear()
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    for name, most in (("a", 50), ("b", 60), ("c", 50)):
        schema = {"type": "object", "properties": {name: {"type": "string", "maxLength": most}}, "required": [name]}
        definition = sg.JsonSchema(schema, style="qwen_xml", additional_properties=False)
        index = sg.compile(definition, vocabulary, eager=False, base_rows=False)
        for length in (0, most, most + 1):
            text = f"<parameter={name}>\n{'x' * length}\n</parameter>"
            assert index.match(text.encode()).accepted == (length <= most), (name, length)
    assert len(made) <= 2  # with whitespace around them, and without
