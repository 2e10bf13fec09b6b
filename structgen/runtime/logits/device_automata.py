"""`DeviceAutomata`: indexes without a stack, whose states live on a device with the logits.

Where no step needs the host, advance and mask can be captured in a CUDA graph together with the model and the
sampler. The automata, the tokens' bytes and the rows are tensors; a state is followed over the bytes of a token in a
loop of fixed length, or by one Triton kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import BatchError, UnsupportedError
from ...kernels import SET
from ...system.arguments import describe, integer
from ...system.types import Array
from ..automaton.machine import AutomatonMachine
from ..automaton.tables import byte_classes
from ..index.index import Index
from ..rows.bitmask import common_vocabulary, ids_of
from ..rows.row_store import ALL_IDS, EOS_IDS, RowStore
from .devices import check_fit, is_same_device
from .masks import is_for_triton, mask_rows


class DeviceAutomata:
    """Several indexes of regexes (or `Fsm`) as one automaton on a device.

    A sequence is a state and a count, elements of two tensors that its engine keeps. The state after an EOS token is
    `ended`, that of a sequence without a definition `free`.

    Parameters
    ----------
    indexes:
        Indexes over one vocabulary. Missing rows are worked out now.
    device:
        Where the logits are.

    Raises
    ------
    UnsupportedError
        For an index that needs a stack: use `GuideBatch` with `DeviceRows`.
    """

    def __init__(self, indexes: Sequence[Index], device: torch.device | str) -> None:
        vocabulary = common_vocabulary([index.vocabulary for index in indexes])
        if vocabulary is None:
            raise UnsupportedError("there is no index to put on the device")
        machines: list[AutomatonMachine] = []
        for number, index in enumerate(indexes):
            machine: AutomatonMachine | None = index.machine.flat()
            if machine is None:
                raise UnsupportedError(
                    f"the index of a {index.kind} needs a stack, which stays on the host",
                    where=f"index {number}",
                    remedy="Use GuideBatch with structgen.runtime.logits.devices.DeviceRows.",
                )
            machines.append(machine)
        self.vocabulary = vocabulary
        self._build(machines, torch.device(device))
        #: That of the tensors: for ``"cuda"`` the GPU that was torch's current one.
        self.device = self.pool.device

    def _build(self, machines: list[AutomatonMachine], device: torch.device) -> None:
        vocabulary, tables = self.vocabulary, [machine.tables for machine in machines]
        firsts = np.cumsum([0] + [each.states for each in tables])
        total = int(firsts[-1])
        self.ended, self.free = total, total + 1
        classes = byte_classes(*(np.concatenate([getattr(t, n) for t in tables]) for n in ("edge_low", "edge_high")))
        # After the states come the two above and a dead one.
        table = np.full((total + 3, int(classes[-1]) + 1), -1, np.int32)
        live = np.full(total + 3, -1, np.int32)
        accepting = np.zeros(total + 3, np.uint8)
        records, loops = [np.zeros((1, 5), np.int32)], [np.zeros((1, 2), np.int32)]
        n_records = n_loops = 1
        for first, each in zip(firsts[:-1].tolist(), tables, strict=True):
            part = each.dense(classes)
            last = first + each.states
            table[first:last] = np.where(part >= 0, part + first, np.where(part < -1, part - n_records, -1))
            live[first:last] = np.where(each.live >= 0, each.live + n_loops, -1)
            accepting[first:last] = each.accepting
            moved = each.records.copy()
            moved[:, 1] += n_loops
            moved[:, 2:] = np.where(moved[:, 2:] >= 0, moved[:, 2:] + first, -1)
            records.append(moved)
            loops.append(each.loops)
            n_records, n_loops = n_records + len(moved), n_loops + len(each.loops)
        accepting[self.ended] = 1
        store = RowStore(vocabulary)
        begins, rows = _rows_of(machines, firsts, store)
        is_eos = np.zeros(vocabulary.size, np.uint8)
        is_eos[list(vocabulary.eos_ids)] = 1
        self.reach = _longest_allowed(store, vocabulary.offsets)

        def put(array: Array) -> torch.Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        #: The states that sequences begin at, by index; on the host.
        self.starts = [int(f) + t.start for f, t in zip(firsts, tables, strict=False)]
        self.offsets, self.blob = put(vocabulary.offsets.astype(np.int32)), put(vocabulary.blob.astype(np.uint8))
        self.classes, self.table = put(classes.astype(np.int32)), put(table)
        self.records, self.loops = put(np.concatenate(records)), put(np.concatenate(loops))
        self.live, self.accepting, self.is_eos = put(live), put(accepting), put(is_eos)
        #: Where the rows of states begin, by state and count, ascending, and the rows.
        self._begins, self._row_of = put(begins), put(rows)
        self.pool = put(store.dense(np.arange(len(store), dtype=np.int32)))

    def start(self, indexes: Sequence[int | None]) -> tuple[torch.Tensor, torch.Tensor]:
        """The states and counts, ``int32[batch]`` each, of sequences that begin at indexes by number, or None."""
        states = [self.free if each is None else self.starts[self._checked(each)] for each in indexes]
        return (
            torch.tensor(states, dtype=torch.int32, device=self.device),
            torch.zeros(len(states), dtype=torch.int32, device=self.device),
        )

    def _checked(self, index: int) -> int:
        number = integer(index, "an index's number", BatchError, least=0)
        if number >= len(self.starts):
            raise BatchError(f"there are {len(self.starts)} indexes", where=f"index {number}")
        return number

    def advance(self, states: torch.Tensor, counts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Append a token to each sequence, in place; one that is refused changes nothing.

        Parameters
        ----------
        states, counts:
            ``int32[batch]``, updated.
        tokens:
            ``int64[batch]``.

        Returns
        -------
        ``bool[batch]``: which were accepted.

        Raises
        ------
        BatchError
            For tensors of another dtype, shape or device.
        """
        self._check(states, counts, tokens)
        if is_for_triton(states) and is_for_triton(counts) and is_for_triton(tokens):
            from .triton_masks import advance_states

            return advance_states(self, states, counts, tokens)
        return self.advance_by_torch(states, counts, tokens)

    def _check(self, states: torch.Tensor, counts: torch.Tensor, tokens: torch.Tensor) -> None:
        """What shapes, dtypes and devices tell, so without waiting for the device."""
        wanted = (("states", states, torch.int32), ("counts", counts, torch.int32), ("tokens", tokens, torch.int64))
        for name, tensor, dtype in wanted:
            if not isinstance(tensor, torch.Tensor) or tensor.dtype != dtype or tensor.shape != (len(states),):
                raise BatchError(f"{name} are {str(dtype).removeprefix('torch.')}[batch], got {describe(tensor)}")
            if not is_same_device(tensor.device, self.device):
                raise BatchError(f"the automata are on {self.device}, {name} on {tensor.device}")

    def advance_by_torch(self, states: torch.Tensor, counts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """`advance`, in torch operations of static shape."""
        known = (tokens >= 0) & (tokens < self.vocabulary.size)
        token = torch.where(known, tokens, 0)
        begin, end = self.offsets[token], self.offsets[token + 1]
        target, reached = states.long(), counts
        dead = self.free + 1
        for i in range(self.reach):
            inside = begin + i < end
            byte = self.blob[torch.clamp(begin + i, max=len(self.blob) - 1).long()].long()
            following, count = self._step(target, reached, byte)
            target = torch.where(inside, torch.where(following < 0, dead, following), target)
            reached = torch.where(inside, torch.where(self.live[target] < 0, 0, count), reached)
        target = torch.where(end - begin > self.reach, dead, target)
        ends = (self.is_eos[token] != 0) & (self.accepting[states.long()] != 0)
        target = torch.where(begin == end, torch.where(ends, self.ended, dead), target)
        target = torch.where(states == self.free, self.free, target)
        accepted = known & (target <= self.free)
        reached = torch.where(target < self.ended, reached, 0)
        states.copy_(torch.where(accepted, target.int(), states))
        counts.copy_(torch.where(accepted, reached, counts))
        return accepted

    def _step(self, state: torch.Tensor, count: torch.Tensor, byte: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One byte: the next states, -1 where they are dead, and the next counts."""
        target = self.table[state, self.classes[byte].long()].long()
        record = self.records[torch.clamp(-2 - target, min=0)]
        bounds = self.loops[record[:, 1].long()]
        is_set, counts = record[:, 0] == SET, target < -1
        after = torch.where(is_set, 1, count + 1)
        among = torch.where(
            after >= bounds[:, 1], record[:, 4], torch.where(after >= bounds[:, 0], record[:, 3], record[:, 2])
        )
        among = torch.where(is_set, record[:, 2], among)
        return torch.where(counts, among.long(), target), torch.where(counts, after, count).int()

    def row_ids(self, states: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """The rows of sequences in `pool`, ``int32[batch]``."""
        keys = (states.long() << 32) | counts.long()
        return self._row_of[torch.searchsorted(self._begins, keys, right=True) - 1]

    def mask(self, logits: torch.Tensor, states: torch.Tensor, counts: torch.Tensor) -> None:
        """Set the logits of disallowed tokens to ``-inf``, in place; as `DeviceRows.mask`."""
        check_fit(logits, self.pool, len(states))
        mask_rows(logits, self.pool, self.row_ids(states, counts))


def _rows_of(
    machines: list[AutomatonMachine], firsts: NDArray[np.int64], store: RowStore
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """By state, and count from which it holds, ascending: the rows of all states."""
    begins: list[int] = []
    rows: list[int] = []
    for machine, first in zip(machines, firsts[:-1].tolist(), strict=True):
        for state, begin, row in machine.all_rows():
            begins.append((first + state) << 32 | begin)
            rows += store.add(row[None]).tolist()
    total = int(firsts[-1])
    begins += [total << 32, (total + 1) << 32]
    rows += [EOS_IDS, ALL_IDS]
    return np.array(begins, np.int64), np.array(rows, np.int32)


def _longest_allowed(store: RowStore, offsets: Array) -> int:
    """Bytes of the longest token that some row of a definition allows."""
    rows = store.dense(np.delete(np.arange(len(store), dtype=np.int32), ALL_IDS))
    lengths = np.diff(offsets.astype(np.int64))
    return max(1, int(lengths[ids_of(np.bitwise_or.reduce(rows, axis=0))].max(initial=0)))
