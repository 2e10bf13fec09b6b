"""What a step does is bounded by what it meets, whatever the size of the definition: rows laid out, walks made."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from judges.guides import check_walk

import structgen as sg
from structgen import kernels
from structgen.runtime.pushdown import partial_masks, walker
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.partial_masks import ROOT
from structgen.runtime.pushdown.walker import StackWalker
from structgen.runtime.rows.bitmask import ids_of

#: All bytes, and words of JSON.
VOCABULARY = sg.Vocabulary.from_bytes(
    [*(bytes([byte]) for byte in range(256)), b'{"', b'":', b'": ', b", ", b'", "', b"kind", b"own", b"abc", None],
    eos_ids=[264],
)

WORDS = [f"{k * 2654435761 % (1 << 32):08x}" for k in range(2000)]

WALKS = ("narrow", "whole", "difference", "closed", "spelled", "counted")


def alternatives(n: int, *, last: bool) -> dict[str, Any]:
    """Objects that one member tells apart, the first or the last but one."""

    def one(k: int) -> dict[str, Any]:
        kind: dict[str, Any] = {"kind": {"const": f"kind_{k}"}}
        rest: dict[str, Any] = {"n": {"type": "integer"}, "text": {"type": "string"}}
        members = {**rest, **kind} if last else {**kind, **rest}
        members[f"own_{k}"] = {"type": "number"}
        return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}

    return {"anyOf": [one(k) for k in range(n)]}


def text_of(k: int, *, last: bool) -> bytes:
    kind, rest = {"kind": f"kind_{k}"}, {"n": 17, "text": "some abc"}
    return json.dumps({**(rest | kind if last else kind | rest), f"own_{k}": 1.5}).encode()


def steps(index: sg.Index, text: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """What each step walked, byte by byte, and how many partial masks it found."""
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    parts = machine.rows.parts
    told: Counter[str] = Counter()
    for name in WALKS:
        original = getattr(StackWalker, name)

        def counting(*arguments: Any, _original: Any = original, _name: str = name, **options: Any) -> Any:
            told[_name] += 1
            return _original(*arguments, **options)

        monkeypatch.setattr(StackWalker, name, counting)
    guide, found = sg.Guide(index), list[Counter[str]]()
    bits = np.zeros(VOCABULARY.words, np.int32)
    for byte in text:
        told.clear()
        known = len(parts)
        guide.fill_bitmask(bits)
        found.append(+(told | Counter(parts=len(parts) - known)))
        assert bits[byte >> 5] >> (byte & 31) & 1
        assert guide.advance(byte)
    assert guide.is_accepting()
    return found


def rows_laid_out(machine: PushdownMachine) -> int:
    arena = machine.rows.walker().arena
    first = machine.tables.arena()[kernels.A_FREE]
    return int((arena[kernels.A_FREE] - first) // arena[kernels.A_CLASSES])


def met(machine: PushdownMachine, text: bytes) -> set[int]:
    """The states that threads come to while a text is read."""
    threads, found = machine.start_threads, set[int]()
    for byte in text:
        found.update(state for state, _, _ in machine.stacks.closed(threads))
        threads = machine.step(threads, byte)
    return found


@pytest.mark.parametrize("last", [False, True])
def test_alternatives_that_agree_take_one_walk(last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(sg.JsonSchema(alternatives(300, last=last)), VOCABULARY, eager=False)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    text = text_of(123, last=last)
    walked = steps(index, text, monkeypatch)
    assert max(sum(step.values()) for step in walked) <= 40  # threads that are few are walked one by one
    assert walked[2] == {"whole": 1}
    assert rows_laid_out(machine) <= len(met(machine, text)) < machine.tables.states


def test_a_first_mask_lays_out_what_it_meets() -> None:
    index = sg.compile(sg.JsonSchema({"enum": WORDS}), VOCABULARY, eager=False)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    sg.Guide(index).bitmask()
    assert rows_laid_out(machine) <= len(VOCABULARY.trie.byte) < machine.tables.states // 10


def test_a_walk_from_the_root_looks_at_live_bytes_alone() -> None:
    """Of the root, and of its children, of which the vocabulary has all 256."""
    index = sg.compile(sg.JsonSchema({"enum": ["kind", "own"]}), VOCABULARY, eager=False)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    walk, guide = machine.rows.walker(), sg.Guide(index)
    assert guide.advance(ord('"'))
    ((state, _, _),) = guide.config.threads  # type: ignore[union-attr]
    ids, below = np.empty((2, 1000), np.int32)
    root, here, nodes = np.zeros(1, np.int32), np.array([state, 0]), 1 + len("kind") + len("own")
    scratch = walker.stack_scratch(1024, walk._deepest)
    n, _, node = kernels.walk_stack(
        *walk._trie, VOCABULARY.trie.upper, walk.arena, root, here, 1 << 16, nodes, *scratch, ids, below
    )
    assert node == len(VOCABULARY.trie.byte)
    assert {VOCABULARY.token(each) for each in ids[:n].tolist()} == {b"k", b"kind", b"o", b"own"}


@pytest.mark.parametrize("pattern", ["^[a-z]{1,60}$", r"^(\w+ ){1,20}$", r"^(?:\S+\s+){0,9}\S+$"])
def test_a_count_near_its_bound_takes_walks_of_its_own_alone(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step tells all counts of a state apart."""
    index = sg.compile(sg.JsonSchema({"type": "string", "pattern": pattern}), VOCABULARY, eager=False)
    text = b'"' + (b"abc" * 15 if " " not in pattern and "s" not in pattern else b"abc de " * 4)
    text += b'"' if not text.endswith(b" ") or pattern.endswith(" ){1,20}$") else b'x"'
    walked = steps(index, text, monkeypatch)
    assert not any(step["counted"] for step in walked)
    assert max(sum(step.values()) for step in walked) <= 4


def are_all_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways round walking a wide state are for real vocabularies."""
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(partial_masks, "_SHORT", 5)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 0.1)


PATTERNS = ["^[^/]*$", "^@[^a]+$", r"^\S", "^.*$", "[0-9a-f]$", "^(a|[^b-y])*z?$", r"^\d+\\n"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_a_pattern_is_compared_with_changes_no_mask(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns, of values and of names, are compared with the inside of any string."""
    are_all_wide(monkeypatch)
    compared: list[Any] = []
    difference = StackWalker.difference

    def noted(self: StackWalker, config: tuple[int, ...], *others: Any) -> Any:
        compared.append(difference(self, config, *others))
        return compared[-1]

    monkeypatch.setattr(StackWalker, "difference", noted)
    schema = {"patternProperties": {pattern: {"type": "string", "pattern": pattern}}}
    words = {bytes(Random(n).choices(b"ab/@z0 \\n", k=2 + n % 6)) for n in range(600)}
    tokens = [*(bytes([byte]) for byte in range(256)), b'{"', b'": "', *sorted(words), None]
    for seed in range(6):
        vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])
        check_walk(sg.compile(sg.JsonSchema(schema), vocabulary, eager=False), Random(seed), steps=20)
    assert compared


def test_a_difference_looks_at_one_byte_of_those_that_lead_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the root, and below its children, of which this vocabulary has 256 each that differ in one."""
    are_all_wide(monkeypatch)
    tokens = [*(bytes([byte]) for byte in range(256)), *(bytes([97, byte]) for byte in range(256)), None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[512])
    index = sg.compile(sg.JsonSchema({"properties": {"ab": {"type": "integer"}}}), vocabulary, eager=False)
    machine, guide = index.machine, sg.Guide(index)
    assert isinstance(machine, PushdownMachine)
    assert guide.advance(ord("{"))
    assert guide.advance(ord('"'))
    ((state, _, _),) = guide.config.threads  # type: ignore[union-attr]
    walk = machine.rows.walker()
    base = walk.base(state)
    assert base is not None
    found = walk.difference((state, 0), base, 40)
    assert found is not None
    ids, nodes = np.copy(found[0]), np.copy(found[1])
    assert [array.tolist() for array in walk.difference((state, 0), base) or ()] == [ids.tolist(), nodes.tolist()]
    check_walk(index, Random(1), steps=10)


def test_a_mask_that_was_found_as_a_difference_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string of at least one character is a difference from one with nothing counted, for the first schema."""
    are_all_wide(monkeypatch)
    vocabulary = sg.Vocabulary.from_bytes([*map(VOCABULARY.token, range(VOCABULARY.size))], eos_ids=[264])
    text = b'{"s": "abc"}'
    walked = []
    for most in (500, 600):
        members = {"s": {"type": "string", "minLength": 1, "maxLength": most}}
        schema = {"properties": members, "required": ["s"], "additionalProperties": False}
        index = sg.compile(sg.JsonSchema(schema), vocabulary, eager=False, base_rows=False)
        walked.append(sum(steps(index, text, monkeypatch), Counter()))
    assert walked[0]["difference"] > walked[1]["difference"]


#: All bytes, and tokens that count up to 24 characters.
_WORDS = [*(b"a" * n for n in range(2, 25)), b'aaa",', b"\xc3\xa9" * 9, b"\\n" * 8]
LONG = sg.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), *_WORDS, None], eos_ids=[282])


@pytest.mark.parametrize(("least", "most"), [(0, 40), (30, 30), (25, 60), (1, 3)])
def test_counts_near_a_bound_decide_what_a_walk_of_their_own_does(
    least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are differences from the same state where no bound matters, a few nodes each."""
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    differences: list[Any] = []
    near = StackWalker.near

    def told(*config: Any) -> Any:
        differences.append(near(*config))
        return differences[-1]

    monkeypatch.setattr(StackWalker, "near", told)
    schema = {"type": "string", "minLength": least, "maxLength": most}
    machine = sg.compile(sg.JsonSchema(schema), LONG, eager=False).machine
    assert isinstance(machine, PushdownMachine)
    rows, live = machine.rows, machine.tables.live.tolist()
    for state, count in [(s, n) for s in range(machine.states) for n in (range(1, most) if live[s] >= 0 else [0])]:
        row, residual = rows.decide(ROOT, state, count)
        ids, below = rows.walker().narrow(np.zeros(1, np.int32), (state, count))
        assert ids_of(rows.pool.dense(row)).tolist() == sorted(ids.tolist())
        assert rows.residuals[residual].tolist() == below.tolist()
    assert bool(differences) == (most > 3)
    assert None not in differences
