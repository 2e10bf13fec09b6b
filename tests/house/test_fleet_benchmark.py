"""The benchmark of warming counts what was kept, and its model keeps to the bounds on paper."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from judges.guides import EACH_BYTE, with_end
from tiers import draws

import structgen as sg
from benchmarks.fleet import costs, model, warm
from structgen.warming.plan import weight
from structgen.warming.worker import LONGEST_BATCH


def test_ways_keep_the_same(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocabulary"
    vocabulary.write_bytes(with_end(EACH_BYTE).to_bytes())
    schemas: list[object] = [{"type": "array", "maxItems": n, "items": {"type": "integer"}} for n in range(1, 4)]
    setup = warm.Setup([*schemas, {"type": "nonsense"}], [vocabulary], tmp_path)
    found = [
        warm.measure(way, work, setup, folder, False) for way, (work, folder, store) in list(warm.ways(2).items())[:2]
    ]
    assert [(each.kept, each.failed) for each in found] == [(3, 1), (3, 1)]
    assert found[1].refused == [3]
    assert [each for each, _ in found[1].compiled] == [weight(sg.JsonSchema(each)) for each in schemas]
    work, _, _ = warm.ways(2)["again, all in the folder"]
    again = warm.measure("again", work, replace(setup, schemas=schemas), "here", False)
    assert (again.kept, again.compiled) == (3, [])


@pytest.mark.parametrize("seed", range(draws(20)))
def test_no_simulation_beats_the_paper(seed: int) -> None:
    dice = random.Random(seed)
    measured = [(float(dice.randrange(9)), dice.expovariate(5.0)) for _ in range(20)]
    tasks = model.draw(measured, dice.randrange(1, 60), dice.randrange(1, 4), seed)
    names = ("plan", "key", "settle", "hand_out", "schedule", "publish", "begin", "unpack")
    taken = costs.Costs(
        **{name: dice.random() / 100 ** dice.randrange(2) for name in names},
        requests=dice.randrange(9),
        latency=dice.random() / 10,
        rate=10 ** dice.uniform(0, 4),
    )
    workers = dice.randrange(1, 40)
    assert model.simulate(tasks, workers, taken) >= model.on_paper(tasks, workers, taken) - 1e-9
    nothing = costs.Costs(**dict.fromkeys(names, 0.0), requests=0, latency=0.0, rate=float("inf"))
    assert model.simulate(tasks, 1, nothing) == pytest.approx(sum(tasks.seconds))
    # With as many workers as tasks none waits long for another one.
    longest = model.simulate(tasks, len(tasks), nothing)
    assert max(tasks.seconds) <= longest <= 3 * max(max(tasks.seconds), LONGEST_BATCH)


@pytest.mark.nightly
def test_costs_are_measured(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("obstore")
    vocabulary = tmp_path / "vocabulary"
    vocabulary.write_bytes(with_end(EACH_BYTE).to_bytes())
    schemas: list[object] = [{"type": "array", "maxItems": n, "items": {"type": "integer"}} for n in range(40)]
    found = costs.measure(schemas, [vocabulary], tmp_path)
    assert min(found.plan, found.key, found.hand_out, found.schedule, found.publish, found.begin) > 0
    assert found.begin > found.hand_out
    assert 1 <= found.requests <= 3
