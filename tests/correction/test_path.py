"""A path has the configurations that the machine comes to byte by byte, however its text was read and cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

import structgen as sg
from structgen import grammars
from structgen.correction.path import Path
from structgen.runtime.pushdown.store import store

SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer"},
            "code": {"type": "string", "maxLength": 5},
        },
        "required": ["name", "size", "code"],
    },
}
DEFINITIONS: dict[str, Callable[[], sg.Definition]] = {
    "schema": lambda: sg.JsonSchema(SCHEMA, whitespace="any"),
    "regex": lambda: sg.Regex(r"(?:[a-z]+=\d{1,30};|é)*end"),
    "grammar": lambda: sg.Grammar(grammars.path("arithmetic"), lexer="basic"),
    "tokens": lambda: sg.StructuralTag(
        {"type": "structural_tag", "format": {"type": "any_text", "max_tokens": 150, "excludes": ["xyz"]}}
    ),
}


def texts(name: str, random: Random) -> list[bytes]:
    def text() -> str:
        if name == "schema":
            label, size, code = "né" * random.randrange(9), random.randrange(10**9), "abcé"[: random.randrange(5)]
            rows = [{"name": label, "size": size, "code": code}] * random.randrange(12)
            return json.dumps(rows, ensure_ascii=False)
        if name == "regex":
            return "".join(random.choice(["abc=1234567890123;", "é", "x=1;"]) for _ in range(30)) + "end"
        if name == "tokens":
            return "".join(random.choices("abcxyé", k=random.randrange(250)))
        return "+".join(["f(x, 2)", "1", "(a - b)"] * random.randrange(1, 12))

    found = [text() for _ in range(40)]
    for i in range(20):
        at = random.randrange(len(found[i]) + 1)
        found[i] = found[i][:at] + random.choice("x}\0é]") + found[i][at:]
    return [each.encode() for each in found]


def follow(index: sg.Index, data: bytes) -> list[object]:
    """The configurations behind the bytes of a text, each a token."""
    config, found = index.machine.start, []
    for byte in data:
        config = index.machine.advance(config, index.vocabulary.byte_ids[byte])
        if config is None:
            break
        found.append(config)
    return found


@pytest.mark.parametrize("name", DEFINITIONS)
def test_configurations_are_those_of_the_machine(name: str) -> None:
    index = sg.compile(DEFINITIONS[name](), sg.Vocabulary.bytewise(), eager=False)
    random = Random(name)
    for data in texts(name, random) * 2:
        path = Path(index)
        cut = random.randrange(len(data) + 1)
        length = path.extend(data[:cut])
        if length == cut:
            length += path.extend(data[cut:])
        expected = follow(index, data)
        assert length == len(path) == len(expected)
        assert path.data == data[:length]
        assert [path.config_at(i + 1) for i in range(length)] == expected
        back = random.randrange(length + 1)
        assert path.cut(back) == data[back:length]
        assert path.config == (expected[back - 1] if back else index.machine.start)
        assert path.extend(data[back:]) == length - back
        assert path.config_at(length) == ([index.machine.start, *expected])[length]


def test_a_full_store_gives_way_to_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_CONFIGS", 70)
    words = [f'"{f"{number:04}" * 20}"' for number in range(8)]
    index = sg.compile(sg.JsonSchema({"enum": [word[1:-1] for word in words]}), sg.Vocabulary.bytewise(), eager=False)
    steppers = set()
    for word in words * 2:
        path = Path(index)
        assert path.extend(word.encode()) == len(word)
        for length in range(len(word), -1, -1):
            stepper, [config] = index.machine.gathered([path.config_at(length)])
            expected = sg.Guide(index)
            assert all(map(expected.advance, word[:length].encode()))
            assert stepper.row(config).tolist() == expected.bitmask().tolist()
            steppers.add(id(stepper))
    assert len(steppers) > 1
