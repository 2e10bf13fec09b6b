"""Endings: every prefix of every text has one, few bytes long, whatever the grammar."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema
import pytest
from judges.adversaries import SHIPPED, mutated
from tiers import draws

import structgen as sg
from structgen.budget import Budget
from structgen.correction.endings import shortest_ending
from structgen.correction.path import Path
from structgen.correction.values import CorrectionError
from structgen.errors import BudgetExceededError
from structgen.runtime.pushdown.distances import cheapest_texts

BUDGET = Budget(seconds=120)

BLOCKS = (
    "def f(a, b=2 or x in a\n        if x > b",
    "class A(B):\n    try:\n        x\n  ",
    "class A(B):\n    x: int = 3\n    @y\n    def y(self):\n        try:\n            yield self.x\n        except (",
    "x: in",
    "x: no",
    "def i",
    "class A: whil",
    "if a:\n  if b:\n    pass\n  else",
    "for xa(\n        ifz > b\n            #eturn [x, 'a']\n   #n {1: 2, **b}\n#elf.x\n      ",
    "x = f'{a[b:",
    "'''abc",
    "from . imp",
    "match x:\n  case {'a': [",
)


@pytest.mark.parametrize("name", SHIPPED)
def test_any_prefix_can_be_completed(name: str) -> None:
    target, random = SHIPPED[name], Random(name)
    index = sg.compile(target.definition(), sg.Vocabulary.bytewise(), eager=False, budget=BUDGET)
    texts = [*target.texts, *(BLOCKS if name == "python3" else ())]
    for text in texts:
        for end in {len(text), *random.choices(range(len(text)), k=draws(12))}:
            path = Path(index)
            path.extend(text[:end].encode())
            for ending in (shortest_ending(index, path.config), index.machine.completion(path.config)):
                assert ending is not None, path.text
                assert index.match(path.data + ending).accepted
                assert not target.judge((path.data + ending).decode()), path.data + ending
                assert len(ending) < 80


def test_a_long_way_out_of_blocks_and_brackets_is_found() -> None:
    index = sg.compile(SHIPPED["python3"].definition(), sg.Vocabulary.bytewise(), eager=False, budget=BUDGET)
    path = Path(index)
    blocks = "".join(f"{' ' * column}while x:\n" for column in range(30))
    text = (blocks + " " * 30 + "y = " + "([{1: " * 30).encode()
    assert path.extend(text) == len(text)
    ending = shortest_ending(index, path.config)
    assert ending is not None
    assert ending.count(b"}])") == 30
    assert not SHIPPED["python3"].judge((text + ending).decode())


def test_a_blank_keeps_apart_what_must_be() -> None:
    """What comes right behind an `a` would be another lexeme."""
    grammar = sg.Grammar('start: "a" "b" "end" | "ab" "ab" "ab" "ab" "ab"\n%ignore " "', lexer="basic")
    index = sg.compile(grammar, sg.Vocabulary.bytewise(), eager=False)
    path = Path(index)
    path.extend(b"a")
    assert index.machine.completion(path.config) == b" bend"
    assert shortest_ending(index, path.config) == b" bend"


def test_where_conflicts_were_kept_or_definitions_stand_others_look() -> None:
    kept = sg.Grammar('start: a | b\na: "x" a | "x"\nb: "x" b | "x"', ambiguity="all")
    for grammar in (kept, sg.Grammar('start: "<" value ">"\nvalue: %json {"const": 17}')):
        index = sg.compile(grammar, sg.Vocabulary.bytewise(), eager=False)
        assert index.machine.completion(index.machine.start) is None
        assert shortest_ending(index, index.machine.start) in (b"x", b"<17>")


# -- automata with a stack ----------------------------------------------------------------------------------

SCHEMAS: dict[str, tuple[dict[str, Any], list[object]]] = {
    "nested": (
        {"type": "object", "required": ["at", "names"], "additionalProperties": False, "properties": {
            "at": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 2},
            "names": {"type": "array", "items": {"enum": ["one", "three", "twelve"]}, "minItems": 3, "maxItems": 5},
        }, "$defs": {"node": {"type": "object", "required": ["ok"], "properties": {
            "ok": {"type": "boolean"}, "below": {"$ref": "#/$defs/node"},
        }, "additionalProperties": False}}},
        [{"at": [{"ok": True, "below": {"ok": False}}, {"ok": True}, {"ok": True}], "names": ["three"] * 4}],
    ),
    "counted": (
        {"type": "object", "required": ["id"], "patternProperties": {"^x": {"type": "string", "minLength": 3}},
         "properties": {"id": {"type": "string", "pattern": "^[a-f]{4,9}-[0-9]{2}$"}}, "additionalProperties": False},
        [{"id": "abcdef-12", "xy": "long enough", "x": "abc"}],
    ),
    "either": (
        {"anyOf": [
            {"type": "array", "items": {"type": "integer", "minimum": 10}, "minItems": 4},
            {"type": "array", "items": {"type": ["string", "number"]}, "maxItems": 2},
        ]},
        [[10, 11, 12, 13, 14], ["a", 2.5]],
    ),
}  # fmt: skip

GBNFS = {
    "kept open": ('root ::= "a" root "b" | "a" root "ccc" | "a"', ["aaaabccccccb", "aab"]),
    "lists": ('root ::= "[" (item ("," item){1,3})? "]"\nitem ::= [a-z]{2,} | root', ["[ab,[cd,ef],gh]", "[]"]),
}


def fewest(machine: Any, config: Any) -> int:
    """The bytes of the shortest ending, breadth first over configurations."""
    level, seen, length = [config], {config}, 0
    while not any(map(machine.is_accepting, level)):
        after = (machine.follow_byte(here, byte) for here in level for byte in range(256))
        level = [each for each in dict.fromkeys(after) if each is not None and each not in seen]
        seen.update(level)
        length += 1
    return length


def completed(definition: sg.Definition, texts: list[str], is_valid: Callable[[bytes], object]) -> None:
    index = sg.compile(definition, sg.Vocabulary.bytewise(), eager=False, base_rows=False)
    random = Random(1)
    for text in texts:
        for _ in range(15):
            path = Path(index)
            path.extend(mutated(text[: random.randrange(len(text) + 1)], random).encode())
            ending = index.machine.completion(path.config)
            assert ending is not None
            assert is_valid(path.data + ending), path.data + ending
            assert len(ending) == fewest(index.machine, path.config), (path.data, ending)


@pytest.mark.parametrize("name", SCHEMAS)
def test_endings_of_schemas_are_the_shortest(name: str) -> None:
    schema, values = SCHEMAS[name]
    judge = jsonschema.Draft202012Validator(schema)
    definition = sg.JsonSchema(schema, whitespace="compact")
    completed(
        definition,
        [json.dumps(value, separators=(",", ":")) for value in values],
        lambda data: judge.is_valid(json.loads(data)),
    )


@pytest.mark.parametrize("name", GBNFS)
def test_endings_of_gbnf_are_the_shortest(name: str) -> None:
    text, texts = GBNFS[name]
    index = sg.compile(sg.Gbnf(text), sg.Vocabulary.bytewise(), eager=False)
    completed(sg.Gbnf(text), texts, lambda data: index.match(data).accepted)


@pytest.mark.nightly
def test_endings_that_are_too_long_are_refused() -> None:
    for length, is_short in ((60_000, True), (70_000, False)):
        definition = sg.JsonSchema({"type": "string", "minLength": length})
        index = sg.compile(definition, sg.Vocabulary.bytewise(), eager=False, base_rows=False)
        if is_short:
            assert len(shortest_ending(index, index.machine.start) or b"") == length + 2
        else:
            with pytest.raises(BudgetExceededError, match="65,536 bytes"):
                index.machine.completion(index.machine.start)
            with pytest.raises(CorrectionError, match="no ending"):
                sg.correct(lambda _: '"abc', index)


def test_where_members_come_in_any_order_others_look() -> None:
    names = "abcdefghij"
    schema = {"type": "object", "required": [*names], "properties": {name: {"const": name} for name in names}}
    index = sg.compile(sg.JsonSchema(schema, property_order="any"), sg.Vocabulary.bytewise(), eager=False)
    path = Path(index)
    path.extend(('{"c": "c", "a": "a", ' + "".join(f'"{name}": "{name}",' for name in names[3:])).encode())
    assert index.machine.completion(path.config) is None
    ending = shortest_ending(index, path.config) or b""
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(path.data + ending))


def test_what_takes_too_long_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2_000}
    index = sg.compile(sg.JsonSchema(schema), sg.Vocabulary.bytewise(), eager=False)
    found = []
    for _ in range(2):
        with pytest.raises(BudgetExceededError, match="too many turns") as caught:
            index.machine.completion(index.machine.start)
        found.append(caught.value)
        monkeypatch.setattr(cheapest_texts, "CheapestTexts", None)  # from now on nothing is looked for
    assert found[0] is not found[1]
    assert str(found[0]) == str(found[1])


def test_sweeps_are_bounded_by_what_all_of_them_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 50}
    index = sg.compile(sg.JsonSchema(schema), sg.Vocabulary.bytewise(), eager=False)
    with monkeypatch.context() as patch:
        patch.setattr(cheapest_texts, "_MOST_VISITS", 10_000)
        with pytest.raises(BudgetExceededError, match="too many turns"):
            index.distances  # noqa: B018
    assert index.distances.distance(index.machine.start) is not None
