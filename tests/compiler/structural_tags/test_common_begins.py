"""Tags that begin alike are lowered branch by branch: masks are those of tags that are lowered together."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tiers import draws

import structgen as sg
from structgen.compiler.structural_tags import common_begins
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.tools import tool_call_format

SPECIAL = ["<|a|>", "<|ab|>", "<|b"]
WORDS = [b"ab", b"<|", b"aa", b"|>", b"b<", b"x>", b"aab"]
VOCABULARY = sg.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), *WORDS, None, *[None] * len(SPECIAL)],
    eos_ids=[256 + len(WORDS)],
    special_tokens={name: 257 + len(WORDS) + i for i, name in enumerate(SPECIAL)},
)
PIECES = [*SPECIAL, "a", "a", "b", "<", "<|a", "|>", "ab"]


def formats(random: Random) -> dict[str, Any]:
    """Many tags in one format; some begin alike, some are the same."""
    lead = random.choice(["", "a", "<|a|>", "<"])
    tags: list[Any] = [
        {
            "type": "tag",
            "begin": lead + "".join(random.choices(PIECES, k=random.randint(0, 3))),
            "content": {"type": "regex", "pattern": random.choice(["x", "x*", "[ab]?"])},
            "end": random.choice([">", "", "<|a|>"]),
        }
        for _ in range(random.choice([3, 12, 40]))
    ]
    kind = random.randrange(3)
    if kind == 0:
        return {"type": "or", "elements": [*tags, {"type": "const_string", "value": "ab"}]}
    if kind == 1:
        return {"type": "tags_with_separator", "tags": tags, "separator": random.choice([",", "a"])}
    for tag in tags:
        tag["begin"] = f"?{tag['begin']}"
    return {"type": "triggered_tags", "triggers": ["?"], "tags": tags, "at_least_one": random.random() < 0.5}


def compiled(format_: dict[str, Any], eager: bool) -> sg.Index | None:
    try:
        return sg.compile(sg.StructuralTag(format_), VOCABULARY, eager=eager)
    except sg.Error:
        return None


@pytest.mark.parametrize("seed", range(draws(40)))
def test_masks_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    format_ = formats(random)
    index = compiled(format_, eager=bool(seed % 3 == 0))
    monkeypatch.setattr(common_begins, "_FEW", 1 << 30)
    reference = compiled(format_, eager=True)
    assert (index is None) == (reference is None)
    if index is None or reference is None:
        return
    for _ in range(15):
        ours, theirs = sg.Guide(index), sg.Guide(reference)
        for _ in range(12):
            mask = ours.bitmask()
            np.testing.assert_array_equal(mask, theirs.bitmask())
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            if not len(allowed):
                break
            token = random.choice(allowed.tolist())
            assert ours.advance(token)
            assert theirs.advance(token)


@pytest.mark.parametrize("style", ["harmony", "command_r7b", "llama", "hermes"])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_what_is_lowered_at_first_does_not_grow_with_the_tools(style: str, choice: str) -> None:
    states = []
    for count in (100, 400):
        parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
        tools = [{"type": "function", "function": {"name": f"f{i}", "parameters": parameters}} for i in range(count)]
        format_ = tool_call_format(tools, style, tool_choice=choice)
        index = sg.compile(sg.StructuralTag(format_), VOCABULARY, eager=False)
        sg.Guide(index).bitmask()
        machine = index.machine
        assert isinstance(machine, PushdownMachine)
        states.append(machine.tables.states)
    assert states[0] == states[1]
