"""Ambiguous definitions: exact masks, no errors at a step, and work at a step that does not grow with the text."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from judges.gbnf_judge import Judge
from judges.guides import ids_of_bits
from numpy.typing import NDArray
from tiers import draws

import structgen as sg
from structgen.errors import UnsupportedError
from structgen.runtime.core.machine import Config
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.stacks import Fork, Frame, Stacks, Thread
from structgen.system import locks

VOCABULARY = sg.Vocabulary.from_bytes(
    [
        *(bytes([i]) for i in range(32, 127)),
        b"aa", b"aaaa", b"a" * 40, b"ab", b"bb", b"bbbbbb", b"cb", b"cbb", b"aab", b"bc", b"bcbc", b"[[", b"]]",
        b"1]", b"[" * 16, b"]" * 8, b"],[", b"[1,", b"1,1", b"[" * 60, b"((", b"))", None,
    ],
    eos_ids=[117],
)  # fmt: skip

ARRAYS = sg.JsonSchema(
    {
        "anyOf": [
            {"type": "array", "maxItems": 1, "items": {"$ref": "#"}},
            {"type": "array", "minItems": 2, "items": {"$ref": "#"}},
            {"const": 1},
        ]
    }
)
PARALLEL = " | ".join(f"r{i}" for i in range(200)) + "".join(
    f'\nr{i} ::= "(" r{i} ")" | [a-c]+ "{i}"' for i in range(200)
)

#: Definitions that can be read in many ways, and the parts of a long text: a beginning, what is repeated, an end.
LONG: dict[str, tuple[Any, bytes, bytes, bytes]] = {
    "arrays": (ARRAYS, b"", b"[", b"1" + b"]" * 500),
    "arrays of two": (ARRAYS, b"", b"[1,[", b"1" + b"]" * 200),
    "three turns": (sg.Gbnf('root ::= ("a" root | "a" root "b" | "a"){0,3}'), b"", b"a", b"b" * 50),
    "a tail that may be empty": (sg.Gbnf('root ::= "a" root "b"? | "c"'), b"", b"a", b"c" + b"b" * 500),
    "a tail that calls": (sg.Gbnf('root ::= "a" root ("b" root "c")? | "d"'), b"", b"a", b"d" + b"bdc" * 100),
    "two tails": (sg.Gbnf('root ::= "a" root "b"? | "a" root "c"? | "d"'), b"", b"a", b"d" + b"bc" * 200),
    "parallel": (sg.Gbnf(f"root ::= {PARALLEL}"), b"", b"(", b"a7" + b")" * 50),
}


def ids_of(text: bytes) -> list[int]:
    return [byte - 32 for byte in text]


def check_mask(machine: PushdownMachine, config: Any) -> None:
    """The row has exactly the tokens whose bytes can be followed, one by one."""
    row = set(ids_of_bits(machine.row(config)))
    for token in range(VOCABULARY.size):
        data = VOCABULARY.token(token)
        if data is not None:
            assert (token in row) == bool(machine.follow(config.threads, data)), data
    assert (117 in row) == machine.is_accepting(config)


def work_of(machine: PushdownMachine, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what steps do: moves of threads, threads that are united, stacks that are compared, places decided."""
    work = Counter[str]()
    for owner, name, size in (
        (machine, "make", lambda *args: 1),
        (machine.stacks, "push", lambda *args: 1),
        (machine.stacks, "_by_top", lambda threads: len(threads)),
        (machine.stacks, "_subsumes", lambda *args: 1),
        (machine.rows, "decide", lambda *args: 1),
    ):
        original = getattr(owner, name)

        def counted(*args: Any, original: Any = original, name: str = name, size: Any = size) -> Any:
            work[name] += size(*args)
            return original(*args)

        monkeypatch.setattr(owner, name, counted)
    return work


@pytest.mark.nightly
@pytest.mark.parametrize("name", LONG)
def test_a_step_costs_the_same_after_long_texts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    definition, begin, turn, end = LONG[name]
    turns = {"parallel": 500, "three turns": 2_000}.get(name, 5_000 // len(turn))
    index = sg.compile(definition, VOCABULARY, eager=False)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    work = work_of(machine, monkeypatch)
    config: Config = machine.start
    costs = []
    for token in ids_of(begin + turn * turns + end):
        work.clear()
        machine.row(config)
        config = machine.advance(config, token)
        assert config is not None
        costs.append(work.total())
    tenth = len(costs) // 10
    early, late = sorted(costs[tenth : 3 * tenth]), sorted(costs[7 * tenth : 9 * tenth])
    assert sum(late) <= 1.5 * sum(early) + 100 * tenth // 10
    assert late[-1] <= 2 * early[-1] + 50


@pytest.mark.parametrize("name", LONG)
def test_masks_along_texts(name: str) -> None:
    definition, begin, turn, end = LONG[name]
    index = sg.compile(definition, VOCABULARY, eager=False)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    config: Config = machine.start
    text = begin + turn * 12 + end[:60]
    rng = random.Random(name)
    for at, token in enumerate(ids_of(text)):
        if at < 6 or rng.random() < 0.2:
            check_mask(machine, config)
        config = machine.advance(config, token)
        if config is None:  # the end is made for longer beginnings
            break


@pytest.mark.parametrize("seed", range(draws(6)))
def test_texts_with_nested_continuations(seed: int) -> None:
    """Against an Earley recogniser, which does not know stacks."""
    rng = random.Random(seed)
    parts = ['"a" root', '"a" root "b"', '"a" root "b"?', '"a" root ("c" root)?', '"b" root? "b"', '"c"', '"a"']
    chosen = rng.sample(parts, 4)
    text = "root ::= " + " | ".join([*chosen, '"c"'])
    trees = {
        '"a" root': ("seq", (("text", "a"), ("rule", "root"))),
        '"a" root "b"': ("seq", (("text", "a"), ("rule", "root"), ("text", "b"))),
        '"a" root "b"?': ("seq", (("text", "a"), ("rule", "root"), ("repeat", ("text", "b"), 0, 1))),
        '"a" root ("c" root)?': (
            "seq",
            (("text", "a"), ("rule", "root"), ("repeat", ("seq", (("text", "c"), ("rule", "root"))), 0, 1)),
        ),
        '"b" root? "b"': ("seq", (("text", "b"), ("repeat", ("rule", "root"), 0, 1), ("text", "b"))),
        '"c"': ("text", "c"),
        '"a"': ("text", "a"),
    }
    judge = Judge({"root": ("alt", tuple(trees[each] for each in [*chosen, '"c"']))})
    from structgen.budget import Budget, Meter
    from structgen.compiler.gbnf.compiler import compile_gbnf
    from structgen.compiler.programs.tables import to_tables

    machine = PushdownMachine(to_tables(compile_gbnf(sg.Gbnf(text), Meter(Budget()))), VOCABULARY)
    for _ in range(60):
        data = bytes(rng.choice(b"aabbc") for _ in range(rng.randint(1, 14)))
        found = machine.match(data)
        assert (found.consumed, found.accepted) == judge.verdict(data), (text, data)
    config: Config = machine.start
    for _ in range(5):
        check_mask(machine, config)
        following = [t for t in ids_of(b"abc") if machine.advance(config, t) is not None]
        if not following:
            break
        config = machine.advance(config, rng.choice(following))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('root ::= "a" root "a" | "b" root "b" | ""', "rule root"),
        ('root ::= [ab]? | "a" root "a" | "b" root "b"', "rule root"),
        ('root ::= ("(" twin ")" | [x-z]+ ",")*\ntwin ::= "a" twin "a" | "b" twin "b" | "b"', "rule twin"),
    ],
)
def test_what_grows_with_the_text_is_refused(text: str, rule: str) -> None:
    with pytest.raises(UnsupportedError, match="in ever more ways") as caught:
        sg.compile(sg.Gbnf(text), VOCABULARY, eager=False)
    assert rule in str(caught.value)
    assert "times" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("name", [name for name in LONG if name != "parallel"])
def test_within_a_number_of_tokens(name: str) -> None:
    """Whatever is chosen from a mask, the text is complete when the tokens are used up."""
    definition, *_ = LONG[name]
    index = sg.compile(definition, VOCABULARY, eager=False)
    rng = random.Random(name)
    for _ in range(10):
        guide = sg.Guide(index, max_tokens=index.shortest() + rng.randrange(12))
        while not guide.is_finished():
            row = set(ids_of_bits(guide.bitmask()))
            assert row
            opening = [token for token in row if token in ids_of(b"a[")]
            assert guide.advance(rng.choice(opening or sorted(row)))


def test_long_work_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a row of many threads is worked out, others that need the machine have their turn."""
    monkeypatch.setattr(locks, "SLICE", 0.0)
    index = sg.compile(sg.Gbnf(f"root ::= {PARALLEL}"), VOCABULARY, eager=False)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    config = machine.advance(machine.start, ids_of(b"(")[0])
    assert config is not None
    assert len(config.threads) == 200
    assert index.slow_steps == 0
    rows: list[NDArray[np.int32]] = []
    other = threading.Thread(target=lambda: rows.append(machine.row(machine.start)))
    original = machine.rows.row_of_all

    def row_of_all(*args: Any) -> Any:
        other.start()
        return original(*args)

    monkeypatch.setattr(machine.rows, "row_of_all", row_of_all)
    row = machine.row(config)
    assert index.slow_steps > 0
    other.join(60)
    again = sg.compile(sg.Gbnf(f"root ::= {PARALLEL}"), VOCABULARY, eager=False).machine
    np.testing.assert_array_equal(row, again.row(again.advance(again.start, ids_of(b"(")[0])))
    np.testing.assert_array_equal(rows, [again.row(again.start)])


# -- the graph by itself -------------------------------------------------------------------------------------


def all_stacks(thread: Thread) -> set[tuple[tuple[int, int], ...]]:
    """The stacks of a thread, written out."""
    state, count, stack = thread
    found: set[tuple[tuple[int, int], ...]] = set()
    todo: list[tuple[Frame | None, tuple[tuple[int, int], ...]]] = [(stack, ((state, count),))]
    while todo:
        frame, above = todo.pop()
        if frame is None:
            found.add(above)
        elif isinstance(frame, Fork):
            todo += [(member, above) for member in frame.members]
        else:
            todo.append((frame.below, (*above, (frame.state, frame.count))))
    return found


@pytest.mark.parametrize("seed", range(draws(30)))
def test_sets_of_stacks(seed: int) -> None:
    """Uniting threads keeps all stacks but those that another one comes to where its states return."""
    rng = random.Random(seed)
    returns = bytes(rng.random() < 0.4 for _ in range(4))
    stacks = Stacks(returns)
    pool: list[Frame | None] = [None]
    for _ in range(30):
        if rng.random() < 0.3:
            pool.append(stacks.union(rng.choices(pool, k=2)))
        else:
            pool.append(stacks.push(rng.randrange(4), rng.randrange(2), rng.choice(pool)))
    for _ in range(20):
        threads = {(rng.randrange(4), 0, rng.choice(pool)): None for _ in range(rng.randint(1, 5))}
        before = {stack for thread in threads for stack in all_stacks(thread)}
        after = {stack for thread in stacks.united(threads) for stack in all_stacks(thread)}
        assert after <= before
        assert handed(after, returns) == handed(before, returns)
        closed = stacks.closed(stacks.united(threads))
        assert len({top[:2] for top in closed}) == len(closed)
        tops = {stack for thread in closed for stack in all_stacks(thread)}
        assert tops <= handed(before, returns)
        assert handed(tops, returns) == handed(before, returns)


def handed(found: set[tuple[tuple[int, int], ...]], returns: bytes) -> set[tuple[tuple[int, int], ...]]:
    """Stacks, and all that they come to if states that may return do so."""
    whole: set[tuple[tuple[int, int], ...]] = set()
    for stack in found:
        shorter: set[tuple[tuple[int, int], ...]] = {()}
        for frame in stack:
            shorter = {(*above, frame) for above in shorter} | (shorter if returns[frame[0]] else set())
        whole |= shorter
    return whole
