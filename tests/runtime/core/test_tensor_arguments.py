"""Tensors of the wrong dtype, layout, size or device, or that share memory: typed errors, and never a wrong mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from judges.naive import small_vocabulary

import structgen as sg
from structgen.errors import BatchError, BitmaskError, TokenIdError

torch: Any = pytest.importorskip("torch")

from structgen.runtime.logits.device_automata import DeviceAutomata  # noqa: E402
from structgen.runtime.logits.devices import DeviceRows, check_fit  # noqa: E402
from structgen.runtime.logits.masks import apply_bitmask, masked_copy  # noqa: E402
from structgen.runtime.logits.sampling import Sampler  # noqa: E402

VOCABULARY = small_vocabulary()
A = ord("a")
INDEX = sg.compile(sg.Regex("(a|b)*"), VOCABULARY)
WIDTH = VOCABULARY.size


#: ``[2, width]``, but for one thing.
WRONG_LOGITS: dict[str, Callable[[], Any]] = {
    "expanded over rows": lambda: torch.zeros(1, WIDTH).expand(2, WIDTH),
    "expanded over tokens": lambda: torch.zeros(2, 1).expand(2, WIDTH),
    "expanded from one": lambda: torch.zeros(1).expand(2, WIDTH),
    "overlapping": lambda: torch.zeros(2 * WIDTH).as_strided((2, WIDTH), (1, 1)),
    "half overlapping": lambda: torch.zeros(4 * WIDTH).as_strided((2, WIDTH), (WIDTH // 2, 1)),
    "requires grad": lambda: torch.zeros(2, WIDTH, requires_grad=True),
    "of a model with gradients": lambda: torch.zeros(2, WIDTH, requires_grad=True) * 2,
    "sparse": lambda: torch.zeros(2, WIDTH).to_sparse(),
    "sparse rows": lambda: torch.zeros(2, WIDTH).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.zeros(WIDTH), torch.zeros(WIDTH)]),
    "float64": lambda: torch.zeros(2, WIDTH, dtype=torch.float64),
    "int32": lambda: torch.zeros(2, WIDTH, dtype=torch.int32),
    "bool": lambda: torch.zeros(2, WIDTH, dtype=torch.bool),
    "complex": lambda: torch.zeros(2, WIDTH, dtype=torch.complex64),
    "narrow": lambda: torch.zeros(2, 8),
    "three dimensions": lambda: torch.zeros(1, 2, WIDTH),
    "no dimensions": lambda: torch.zeros(()),
    "list": lambda: [[0.0] * WIDTH] * 2,
    "none": lambda: None,
    "text": lambda: "logits",
}


@pytest.mark.filterwarnings("ignore:.*prototype stage", "ignore:.*beta state")
@pytest.mark.parametrize("name", WRONG_LOGITS)
def test_logits(name: str) -> None:
    logits = WRONG_LOGITS[name]()
    mask = np.stack([sg.Guide(INDEX).bitmask()] * 2)
    batch = sg.GuideBatch(VOCABULARY, [INDEX, INDEX])
    automata = DeviceAutomata([INDEX], "cpu")
    calls: list[Callable[[], Any]] = [
        lambda: apply_bitmask(logits, mask),
        lambda: apply_bitmask(logits, mask[:1], rows=[1]),
        lambda: DeviceRows(batch.rows, "cpu").mask(logits, batch.row_ids()),
        lambda: DeviceRows(batch.rows, "cpu").mask(logits, batch.row_ids()[:1], rows=torch.tensor([1])),
        lambda: automata.mask(logits, *automata.start([0, 0])),
    ]
    for call in calls:
        with pytest.raises(BitmaskError):
            call()
    if not name.startswith(("expanded", "overlapping", "half")):  # which can be read
        calls = [lambda: masked_copy(logits, list(mask)), lambda: Sampler().sample(logits, sg.Guide(INDEX))]
        for call in calls:
            with pytest.raises(BitmaskError):
                call()


def test_logits_with_any_strides_are_masked() -> None:
    mask = sg.Guide(INDEX).bitmask()
    wanted = torch.zeros(2, WIDTH)
    apply_bitmask(wanted, mask)
    for logits in (
        torch.zeros(2, 2 * WIDTH)[:, ::2],
        torch.zeros(WIDTH, 2).T,
        torch.zeros(4, WIDTH)[::2],
        torch.zeros(2, 3, WIDTH)[:, 1],
    ):
        apply_bitmask(logits, mask)
        assert torch.equal(logits, wanted)
    read = torch.zeros(1, WIDTH).expand(2, WIDTH)
    assert torch.equal(masked_copy(read, [mask, mask]), wanted)


def test_bitmasks_as_tensors() -> None:
    guide, batch, words = sg.Guide(INDEX), sg.GuideBatch(VOCABULARY, [INDEX, INDEX]), VOCABULARY.words
    for wrong in (
        torch.zeros(1, dtype=torch.int32).expand(words), torch.zeros(words), torch.zeros(words, dtype=torch.int64),
        torch.zeros(words, dtype=torch.int32).to_sparse(), torch.zeros(words - 1, dtype=torch.int32),
        torch.zeros(words, dtype=torch.int32, device="meta"), torch.zeros(words, requires_grad=True),
    ):  # fmt: skip
        with pytest.raises(BitmaskError):
            guide.fill_bitmask(wrong)
        with pytest.raises(BitmaskError):
            batch.fill_bitmask(wrong.to_dense()[None].expand(2, -1))
    logits = torch.zeros(WIDTH)
    for wrong in (
        torch.zeros(words, dtype=torch.int32).to_sparse(), torch.zeros(words, dtype=torch.int32, device="meta"),
        logits.view(torch.int32)[:words], torch.zeros(words), [0] * words,
    ):  # fmt: skip
        with pytest.raises(BitmaskError):
            apply_bitmask(logits, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [[1.5], [True], ["1"], [None], [2], [-1], [0, 0], [[0]]], ids=repr)
def test_rows_of_logits(rows: Any) -> None:
    batch = sg.GuideBatch(VOCABULARY, [INDEX] * len(rows))
    with pytest.raises((BitmaskError, BatchError)):
        apply_bitmask(torch.zeros(2, WIDTH), batch.bitmask(), rows=rows)
    if isinstance(rows[0], int):
        with pytest.raises(BitmaskError):
            DeviceRows(batch.rows, "cpu").mask(torch.zeros(2, WIDTH), batch.row_ids(), rows=torch.tensor(rows))


@pytest.mark.parametrize("wrong", [torch.tensor(True), torch.tensor(1.0), torch.tensor([1, 2]), torch.tensor([])])
def test_token_ids_as_tensors(wrong: Any) -> None:
    for call in (sg.Guide(INDEX).advance, sg.Guide(INDEX).allows, VOCABULARY.token):
        with pytest.raises(TokenIdError):
            call(wrong)
    with pytest.raises((TokenIdError, BatchError)):
        sg.GuideBatch(VOCABULARY, [INDEX]).advance(wrong)
    assert sg.Guide(INDEX).advance(torch.tensor([A]))


def test_automata_on_a_device_check_their_tensors() -> None:
    automata = DeviceAutomata([INDEX], "cpu")
    states, counts = automata.start([0, None])
    tokens = torch.tensor([A, A])
    wrongs: list[tuple[Any, Any, Any]] = [
        (states.long(), counts, tokens), (states, counts.float(), tokens), (states, counts, tokens.int()),
        (states, counts, tokens[:1]), (states, counts[:1], tokens), (states, counts, [A, A]),
        (states, counts, tokens.to("meta")), (states, counts, tokens[None]),
    ]  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(BatchError):
            automata.advance(*wrong)
    for number in (-1, 1, True, 0.0, "0"):
        with pytest.raises(BatchError):
            automata.start([number])  # type: ignore[list-item]


class Elsewhere(torch.Tensor):  # type: ignore[misc]
    """A tensor that says it is on a GPU of some number."""

    number: int

    @property
    def device(self) -> Any:
        return torch.device("cuda", self.number)


def elsewhere(tensor: Any, number: int) -> Any:
    found = tensor.as_subclass(Elsewhere)
    found.number = number
    return found


def test_a_pool_is_on_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made on ``"cuda"``, it is on the current GPU, and logits of another are refused."""
    zeros = torch.zeros

    def on_gpu(*shape: Any, device: Any, **rest: Any) -> Any:
        assert device.type == "cuda"
        return elsewhere(zeros(*shape, **rest), 0)

    monkeypatch.setattr(torch, "zeros", on_gpu)
    rows = DeviceRows(sg.GuideBatch(VOCABULARY, [INDEX]).rows, "cuda")
    monkeypatch.undo()
    assert rows.device == torch.device("cuda", 0)
    with pytest.raises(BitmaskError, match=r"masks are on cuda:0, the logits on cuda:1"):
        rows.mask(elsewhere(torch.zeros(1, WIDTH), 1), np.zeros(1, np.int32))
    check_fit(elsewhere(torch.zeros(1, WIDTH), 0), rows.pool, 1)
    with pytest.raises(BitmaskError, match="on cpu"):
        rows.mask(torch.zeros(1, WIDTH), np.zeros(1, np.int32))


def test_slots() -> None:
    store = sg.GuideBatch(VOCABULARY, [INDEX]).rows
    for wrong in (0, -1, 1.5, True, "8"):
        with pytest.raises(BitmaskError):
            DeviceRows(store, "cpu", slots=wrong)  # type: ignore[arg-type]
