"""Triton kernels: masks onto logits and automata over tokens, each in one launch.

`structgen.runtime.logits.masks` and `device_automata` do the same in torch, and tests compare the two, on machines
without a GPU through Triton's interpreter (``TRITON_INTERPRET=1``).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ...system.types import Foreign

#: Token ids that one program masks.
_BLOCK = 4096


@triton.jit
def _mask_kernel(logits, pool, slots, width, stride, words, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write ``-inf`` where a token is forbidden; what is allowed is neither read nor written."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + row).to(tl.int64)
    first = tl.program_id(1) * (BLOCK // 32)
    word = first + tl.arange(0, BLOCK // 32)
    bits = tl.load(pool + slot * words + word, mask=word < words, other=0)
    # The shift is arithmetic and drags the sign bit along; the & 1 after it is what makes that harmless.
    forbidden = ((bits[:, None] >> tl.arange(0, 32)[None, :]) & 1) == 0
    token = word[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(logits + row * stride + token, float("-inf"), mask=forbidden & (token < width))


def launch_mask(logits: torch.Tensor, pool: torch.Tensor, slots: torch.Tensor) -> None:
    """Mask ``logits[batch, width]``, whose rows are contiguous, by rows ``slots[batch]`` of ``pool[rows, words]``."""
    batch, width = logits.shape
    if batch:
        grid = (batch, triton.cdiv(width, _BLOCK))
        _mask_kernel[grid](logits, pool, slots, width, logits.stride(0), pool.shape[1], BLOCK=_BLOCK)


@triton.jit
def _advance_kernel(  # type: ignore[no-untyped-def]
    states, counts, tokens, accepted, offsets, blob, classes, table, n_classes, records, loops, live, accepting,
    is_eos, vocabulary_size, ended, free, FIRST_RECORD: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    state, count = tl.load(states + row), tl.load(counts + row)
    token = tl.load(tokens + row)
    is_known = (token >= 0) & (token < vocabulary_size)
    token = tl.where(is_known, token, 0)
    begin, end = tl.load(offsets + token), tl.load(offsets + token + 1)
    at_end = tl.load(is_eos + token) != 0
    may_end = tl.load(accepting + state) != 0
    target, reached = state, count
    i = begin
    while i < end:
        byte = tl.load(blob + i).to(tl.int32)
        column = tl.load(classes + byte).to(tl.int32)
        # A dead state stays dead: its row of the table is the last one.
        target = tl.load(table + target * n_classes + column)
        if target <= FIRST_RECORD:
            record = records + (FIRST_RECORD - target) * 5
            loop = loops + tl.load(record + 1) * 2
            reached = tl.where(tl.load(record) == 0, 1, reached + 1)
            least, most = tl.load(loop), tl.load(loop + 1)
            low, mid, high = tl.load(record + 2), tl.load(record + 3), tl.load(record + 4)
            among = tl.where(reached >= most, high, tl.where(reached >= least, mid, low))
            target = tl.where(tl.load(record) == 0, low, among)
        target = tl.where(target < 0, free + 1, target)
        reached = tl.where(tl.load(live + target) < 0, 0, reached)
        i += 1
    target = tl.where(begin == end, tl.where(at_end & may_end, ended, free + 1), target)
    target = tl.where(state == free, free, target)
    ok = is_known & (target <= free)
    tl.store(accepted + row, ok.to(tl.int8))
    tl.store(states + row, tl.where(ok, target, state))
    tl.store(counts + row, tl.where(ok, tl.where(target < ended, reached, 0), count))


def advance_states(automata: Foreign, states: torch.Tensor, counts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """`structgen.runtime.logits.device_automata.DeviceAutomata.advance` in one launch."""
    a = automata
    accepted = torch.empty(states.shape, dtype=torch.int8, device=states.device)
    if len(states):
        _advance_kernel[(len(states),)](
            states, counts, tokens, accepted, a.offsets, a.blob, a.classes, a.table, a.table.shape[1], a.records,
            a.loops, a.live, a.accepting, a.is_eos, a.vocabulary.size, a.ended, a.free, FIRST_RECORD=-2,
        )  # fmt: skip
    return accepted.bool()
