"""Masks on a device: uploaded once, replaced when old, applied as the plain way does; and automata there."""

from __future__ import annotations

import os
import random
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from judges.naive import small_vocabulary

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is made

import structgen as sg  # noqa: E402
from structgen.runtime.logits import masks  # noqa: E402
from structgen.runtime.logits.device_automata import DeviceAutomata  # noqa: E402
from structgen.runtime.logits.devices import DeviceRows  # noqa: E402
from structgen.runtime.logits.masks import apply_bitmask, mask_rows  # noqa: E402
from structgen.runtime.rows.bitmask import allocate_bitmask  # noqa: E402

VOCABULARY = small_vocabulary()
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
DTYPES = [torch.float32, torch.float16, torch.bfloat16]

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

REGEXES = ["(a|b)+", "a{2,5}b{3}", "[a-c]{40,80}", "(ab|c){3,}", "a*|b{70}c"]
INDEXES = [sg.compile(sg.Regex(each), VOCABULARY) for each in REGEXES]
SCHEMA = sg.compile(sg.JsonSchema({"type": "array", "items": {"enum": ["a", "b", 1]}}), VOCABULARY)


def logits_of(rows: int, width: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=generator).to(dtype).to(DEVICE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [VOCABULARY.size, VOCABULARY.size + 3, VOCABULARY.size + 200])
def test_masks_are_those_of_the_plain_way(dtype: Any, width: int) -> None:
    chance = random.Random(width)
    batch = sg.GuideBatch(VOCABULARY, [*INDEXES, SCHEMA, None])
    rows = DeviceRows(batch.rows, DEVICE)
    plain = allocate_bitmask(len(batch), VOCABULARY.size)
    for step in range(20):
        logits = logits_of(len(batch), width, dtype, step)
        wanted = logits.clone()
        batch.fill_bitmask(plain)
        apply_bitmask(wanted, plain)
        rows.mask(logits, batch.row_ids())
        assert torch.equal(logits, wanted)
        allowed = [np.flatnonzero(row > -torch.inf) for row in wanted[:, : VOCABULARY.size].float().cpu()]
        batch.advance([int(chance.choice(ids)) for ids in allowed])


def test_strides_and_chosen_rows() -> None:
    batch = sg.GuideBatch(VOCABULARY, INDEXES)
    rows = DeviceRows(batch.rows, DEVICE)
    whole = logits_of(10, 2 * VOCABULARY.size)
    for logits in (whole[::2, : VOCABULARY.size], whole[:5, ::2], whole[:, : VOCABULARY.size].T.contiguous().T[:5]):
        wanted = logits.clone()
        plain = allocate_bitmask(5, VOCABULARY.size)
        batch.fill_bitmask(plain)
        apply_bitmask(wanted, plain)
        rows.mask(logits, batch.row_ids())
        assert torch.equal(logits, wanted)
    logits = logits_of(8, VOCABULARY.size)
    wanted = logits.clone()
    apply_bitmask(wanted, plain[[3, 1]], rows=[7, 0])
    rows.mask(logits, batch.row_ids()[[3, 1]], rows=torch.tensor([7, 0], device=DEVICE))
    assert torch.equal(logits, wanted)


def test_what_is_there_is_not_sent_again() -> None:
    batch = sg.GuideBatch(VOCABULARY, INDEXES)
    rows = DeviceRows(batch.rows, DEVICE)
    for index in INDEXES:
        rows.preload(index)
    sent = rows.bytes_of_rows
    assert 0 < sent <= 4 * VOCABULARY.words * len(batch.rows)  # each once
    rows.bytes_of_slots = 0
    for _ in range(4):
        rows.mask(logits_of(5, VOCABULARY.size), batch.row_ids())
        batch.advance([ord("a")] * 5)
    assert rows.bytes_of_rows == sent
    assert rows.bytes_of_slots == 4 * 5 * 4  # a number for each sequence and step
    rows.preload(SCHEMA)  # nothing to be known ahead of time
    assert rows.bytes_of_rows == sent


def test_old_masks_make_way_and_a_new_generation_begins_anew() -> None:
    chance = random.Random(5)
    batch = sg.GuideBatch(VOCABULARY, [SCHEMA, *INDEXES])
    batch.rows._most = 8
    rows = DeviceRows(batch.rows, DEVICE, slots=6)
    generations, kept = set(), np.zeros(0, np.int32)
    for step in range(60):
        logits, plain = logits_of(6, VOCABULARY.size, seed=step), allocate_bitmask(6, VOCABULARY.size)
        batch.fill_bitmask(plain)
        wanted = logits.clone()
        apply_bitmask(wanted, plain)
        rows.mask(logits, batch.row_ids())
        assert torch.equal(logits, wanted)
        batch.advance([int(chance.choice(np.flatnonzero(row > -torch.inf))) for row in wanted.cpu()])
        if batch.is_finished().all() or step % 9 == 8:
            batch.reset()
        generations.add(batch.rows.generation)
        kept = kept if step else batch.row_ids()
    assert len(generations) > 2
    with pytest.raises(sg.errors.BatchError, match="not kept"):
        rows.slots(kept)
    with pytest.raises(sg.errors.BitmaskError, match="room"):
        DeviceRows(batch.rows, DEVICE, slots=1).slots(np.array([0, 1], np.int32))


def test_what_does_not_fit_is_refused() -> None:
    batch = sg.GuideBatch(VOCABULARY, INDEXES)
    rows, ids = DeviceRows(batch.rows, DEVICE), batch.row_ids()
    good = logits_of(5, VOCABULARY.size)
    for logits in (good.double(), good[0], good[:, :40], good[:4], good.to("meta"), good.cpu().numpy()):
        with pytest.raises(sg.errors.BitmaskError):
            rows.mask(logits, ids)
    with pytest.raises(sg.errors.BitmaskError):
        DeviceRows(batch.rows, DEVICE, slots=0)


@needs_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("words", "width"), [(9, 270), (9, 288), (9, 300), (130, 4160), (130, 4130), (300, 20_000)])
def test_the_triton_kernel_masks_as_torch_does(
    words: int, width: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from structgen.runtime.logits import triton_masks

    rng = np.random.default_rng(words)
    pool = torch.from_numpy(rng.integers(-(2**31), 2**31, (5, words)).astype(np.int32)).to(DEVICE)
    slots = torch.tensor([3, 0, 3, 4], dtype=torch.int32, device=DEVICE)
    wide = logits_of(4, width + 7, dtype)
    wanted = wide.clone()
    apply_bitmask(wanted[:, :width], pool[slots.long()])
    triton_masks.launch_mask(wide[:, :width], pool, slots)  # rows of a wider tensor: a stride of their own
    assert torch.equal(wide, wanted)
    triton_masks.launch_mask(wide[:0, :width], pool, slots[:0])
    for mask, rows in ((pool[:4], None), (pool[2], None), (pool[:2], [3, 1]), (pool[:0], []), (pool[:4, ::2], None)):
        wide = logits_of(4, width + 7, dtype)
        wanted = wide.clone()
        apply_bitmask(wanted[:, :width], mask, rows=rows, backend="torch")
        monkeypatch.setattr(masks, "is_for_triton", lambda logits: True)  # the interpreter takes what is on the CPU
        logits = wide[:, :width]
        assert apply_bitmask(logits, mask, rows=rows, backend="triton") is logits
        assert torch.equal(wide, wanted)
    row = logits_of(1, width, dtype)[0]
    assert torch.equal(
        apply_bitmask(row.clone(), pool[1], backend="triton"), apply_bitmask(row, pool[1], backend="torch")
    )


def test_masking_compiles_without_a_graph_break() -> None:
    torch._dynamo.reset()
    batch = sg.GuideBatch(VOCABULARY, INDEXES)
    rows = DeviceRows(batch.rows, DEVICE)
    slots = rows.slots(batch.row_ids())
    logits = logits_of(5, VOCABULARY.size + 9)
    wanted = logits.clone()
    mask_rows(wanted, rows.pool, slots)
    torch.compile(mask_rows, fullgraph=True, backend="aot_eager")(logits, rows.pool, slots)
    assert torch.equal(logits, wanted)


@needs_triton
@pytest.mark.parametrize("seed", range(4))
def test_automata_on_a_device_as_guides_do(seed: int) -> None:
    from structgen.runtime.logits import triton_masks

    chance = random.Random(seed)
    automata = DeviceAutomata(INDEXES, DEVICE)
    numbers = [chance.choice([*range(len(INDEXES)), None]) for _ in range(8)]
    batch = sg.GuideBatch(VOCABULARY, [None if n is None else INDEXES[n] for n in numbers])
    states, counts = automata.start(numbers)
    by_triton = states.clone(), counts.clone()
    for step in range(60):
        logits, plain = logits_of(8, VOCABULARY.size, seed=step), allocate_bitmask(8, VOCABULARY.size)
        batch.fill_bitmask(plain)
        wanted = logits.clone()
        apply_bitmask(wanted, plain)
        automata.mask(logits, states, counts)
        assert torch.equal(logits, wanted)
        tokens = [
            int(chance.choice(np.flatnonzero(row > -torch.inf)))
            if chance.random() < 0.9
            else chance.randrange(-1, VOCABULARY.size + 1)
            for row in wanted.cpu()
        ]
        known = [row for row, token in enumerate(tokens) if 0 <= token < VOCABULARY.size]
        accepted = np.zeros(8, np.bool_)  # on a device nobody can say that an id is none: it is refused
        accepted[known] = batch.advance([tokens[row] for row in known], known)
        tensor = torch.tensor(tokens, device=DEVICE)
        assert automata.advance_by_torch(states, counts, tensor).tolist() == accepted.tolist()
        assert triton_masks.advance_states(automata, *by_triton, tensor).tolist() == accepted.tolist()
        assert torch.equal(states, by_triton[0])
        assert torch.equal(counts, by_triton[1])
        assert (states == automata.ended).tolist() == batch.is_finished().tolist()


def test_a_stack_stays_on_the_host() -> None:
    with pytest.raises(sg.errors.UnsupportedError, match="index 1"):
        DeviceAutomata([INDEXES[0], SCHEMA], DEVICE)
    with pytest.raises(sg.errors.UnsupportedError):
        DeviceAutomata([], DEVICE)
