"""Indexes, guides and what holds them go to other processes, and are copied."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from hostile.concurrent_work import DEFINITIONS, LIMITABLE, compiled, expected, vocabulary, walk

import structgen as sg
from structgen.integrations.mlx_lm import LogitsProcessor as MlxProcessor
from structgen.runtime.index.healing import heal

every_kind = pytest.mark.parametrize("kind", list(DEFINITIONS))


def again(value: Any) -> Any:
    """A value that was pickled."""
    return pickle.loads(pickle.dumps(value))


def go_on(guide: sg.Guide, tokens: list[int]) -> list[bytes]:
    """The mask before each of some tokens."""
    found = []
    for token in tokens:
        found.append(guide.bitmask().tobytes())
        assert guide.advance(token)
    return found


def of_guides(guides: list[sg.Guide], texts: list[list[int]]) -> list[list[bytes]]:
    """What a worker does with guides that are sent to it."""
    assert len({id(guide.index.vocabulary) for guide in guides}) == 1
    return [go_on(guide, tokens) for guide, tokens in zip(guides, texts, strict=True)]


def begun(kind: str, is_limited: bool, steps: int, **options: Any) -> tuple[list[sg.Guide], list[list[int]], Any]:
    """Guides in the middle of the texts of a kind, what is left of these, and the masks for that."""
    most, wanted = expected(kind, is_limited=is_limited)
    index = compiled(kind)
    guides = [sg.Guide(index, max_tokens=most, **options) for _ in wanted]
    for guide, text in zip(guides, wanted, strict=True):
        assert go_on(guide, text.tokens[:steps]) == text.masks[:steps]
    return guides, [text.tokens[steps:] for text in wanted], [text.masks[steps:] for text in wanted]


@pytest.mark.parametrize(
    ("kind", "is_limited"), [*((kind, False) for kind in DEFINITIONS), *((kind, True) for kind in LIMITABLE)]
)
@pytest.mark.parametrize("steps", [0, 7, 25])
def test_guides_in_the_middle_of_texts(kind: str, is_limited: bool, steps: int) -> None:
    for options in ({}, {"max_rollback": 0}, {"max_rollback": 3}):
        guides, rest, masks = begun(kind, is_limited, steps, **options)
        assert of_guides(again(guides), rest) == masks
        assert of_guides([copy.deepcopy(guide) for guide in guides], rest) == masks
        assert of_guides([copy.copy(guide) for guide in guides], rest) == masks
        twin = again(guides[0])
        if steps and options.get("max_rollback") != 0:
            twin.rollback(3)
            guides[0].rollback(3)
        assert twin.bitmask().tobytes() == guides[0].bitmask().tobytes()
        assert twin.is_finished() == guides[0].is_finished()


def test_workers_that_are_spawned() -> None:
    """Every kind, compiled ahead or not, with limits and prefixes."""
    jobs = []
    for kind in DEFINITIONS:
        guides, rest, masks = begun(kind, kind in LIMITABLE, 5)
        jobs.append((guides, rest, masks))
        index = sg.compile(DEFINITIONS[kind], vocabulary())
        healed = sg.Guide(heal([1, ord('"')], vocabulary(), index).index)
        tokens = expected(kind)[1][0].tokens
        if healed.index is not index:
            tokens = [ord('"'), *tokens]
        jobs.append(([healed], [tokens], [go_on(healed.fork(), tokens)]))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.map(of_guides, [job[0] for job in jobs], [job[1] for job in jobs])
        assert list(found) == [masks for _, _, masks in jobs]


@every_kind
def test_indexes(kind: str) -> None:
    index = compiled(kind)
    index.machine.fill()
    twin = again(index)
    assert twin is not index
    assert twin.vocabulary is index.vocabulary
    assert (twin.definition, twin.kind, twin.states, twin.origin) == (
        index.definition, index.kind, index.states, index.origin,
    )  # fmt: skip
    assert twin.machine.is_filled()
    assert copy.deepcopy(index) is copy.copy(index) is index
    assert walk(twin, 0) == expected(kind)[1][0]


def test_one_vocabulary_for_all() -> None:
    """A pickle holds the vocabulary once, whatever shares it."""
    one, many = (len(pickle.dumps([compiled("regex") for _ in range(count)])) for count in (1, 5))
    size = len(vocabulary().to_bytes())
    assert one > size
    assert many < size + 5 * (one - size + 100)


def test_a_vocabulary_that_is_not_there() -> None:
    made = sg.Vocabulary.from_bytes([b"pickled", b"p", None], [2], special_tokens={"<e>": 2})
    data, fingerprint = pickle.dumps(made), made.fingerprint
    assert pickle.loads(data) is made
    assert copy.deepcopy(made) is made
    del made
    twin = pickle.loads(data)
    assert (twin.fingerprint, twin.token(0), twin.special_tokens) == (fingerprint, b"pickled", {"<e>": 2})


@pytest.mark.parametrize("kind", list(DEFINITIONS))
def test_definitions(kind: str) -> None:
    definition = DEFINITIONS[kind]
    for twin in (again(definition), copy.deepcopy(definition)):
        assert twin == definition
        assert twin.canonical() == definition.canonical()


def test_machines_of_interegular() -> None:
    interegular = pytest.importorskip("interegular")
    fsm = sg.Fsm(interegular.parse_pattern("[^a]b+|c").to_fsm())
    assert again(fsm).canonical() == copy.deepcopy(fsm).canonical() == fsm.canonical()


def masks_of(batch: sg.GuideBatch, texts: list[list[int]]) -> list[list[bytes]]:
    """The masks of each row before each of its tokens, as far as all have some."""
    found: list[list[bytes]] = [[] for _ in texts]
    for step in range(min(map(len, texts))):
        for mask, row in zip(batch.bitmask(), found, strict=True):
            row.append(mask.tobytes())
        assert batch.advance([text[step] for text in texts]).all()
    return found


@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize("is_swept", [False, True])
@every_kind
def test_batches(kind: str, most: int | None, is_swept: bool) -> None:
    """In the middle of texts, rows with a limit and without an index among them."""
    limit = expected(kind, is_limited=True)[0] if kind in LIMITABLE else None
    wanted = expected(kind, is_limited=limit is not None)[1]
    texts = [text.tokens for text in wanted]
    steps = min(map(len, texts)) // 2
    batch = sg.GuideBatch(vocabulary(), max_rollback=most)
    for _ in texts:
        batch.add(compiled(kind), max_tokens=limit)
    free = batch.add(None)
    for step in range(steps):
        assert batch.advance([text[step] for text in texts] + [step]).all()
        if is_swept and step % 2:
            batch.sweep()
    guides = [batch.guide(row) for row in range(free)]
    for twin in (again(batch), copy.deepcopy(batch), copy.copy(batch), batch):
        twin.rollback(min(steps, 3))
        twin.remove([free])
        begins = steps - min(steps, 3)
        found = masks_of(twin, [text[begins:] for text in texts])
        for row, text in zip(found, wanted, strict=True):
            assert row == text.masks[begins : begins + len(row)]
    rest = [text[steps:] for text in texts]
    assert of_guides(again(guides), rest) == [text.masks[steps:] for text in wanted]


def test_batches_that_were_swept_often() -> None:
    """Rows that share a beginning that is forgotten, and leave one another behind it."""
    index = sg.compile(sg.Regex("[ab]*c"), vocabulary())
    batch = sg.GuideBatch(vocabulary(), [index], max_rollback=2)
    texts = [b""]
    for step in range(12):
        if step in (3, 7):
            batch.reorder([0, *range(len(batch))])
            texts = [texts[0], *texts]
        letters = [b"ab"[(step + row) % 2] for row in range(len(batch))]
        assert batch.advance(letters).all()
        texts = [text + bytes([letter]) for text, letter in zip(texts, letters, strict=True)]
        batch.sweep()
    for twin in (batch, again(again(batch))):
        for row, text in enumerate(texts):
            guide = twin.guide(row)
            assert guide is not None
            tokens = [*again(guide).tokens()]
            assert bytes(tokens) == text
            assert again(guide).bitmask().tobytes() == guide.bitmask().tobytes()


def test_damaged_pickles_are_refused() -> None:
    reduced: Any = compiled("regex").__reduce__()
    call, (data, *others) = reduced
    with pytest.raises(sg.errors.FormatError, match="pickled index"):
        call(data[:-1], *others)


class Prompts:
    """A dataset that a loader's workers hold, with what masks its rows."""

    def __init__(self, processor: Any, guide: sg.Guide) -> None:
        self.processor, self.guide = processor, guide

    def __len__(self) -> int:
        return 2

    def __getitem__(self, number: int) -> Any:
        torch = pytest.importorskip("torch")
        guide = copy.deepcopy(self.guide)
        masks = [guide.bitmask().copy()]
        self.processor.reset()
        scores = self.processor(torch.zeros((1, 3 + number), dtype=torch.int64), torch.zeros((1, vocabulary().size)))
        return masks, torch.isfinite(scores[0])


class TestLoaders:
    @pytest.mark.parametrize("how", ["spawn", "fork"])
    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_of_torch(self, how: str) -> None:
        torch = pytest.importorskip("torch")
        pytest.importorskip("transformers")
        from structgen.integrations.transformers import LogitsProcessor

        index = compiled("json")
        guide = sg.Guide(index)
        prompts = Prompts(LogitsProcessor(index), guide)
        loader = torch.utils.data.DataLoader(
            prompts, batch_size=None, num_workers=1, multiprocessing_context=multiprocessing.get_context(how)
        )
        for masks, allowed in loader:
            assert np.asarray(masks[0]).tobytes() == guide.bitmask().tobytes()
            wanted = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: vocabulary().size]
            assert np.array_equal(np.asarray(allowed), wanted.astype(bool))


class TestProcessors:
    def test_of_transformers(self) -> None:
        """In the middle of a generation, too."""
        torch = pytest.importorskip("torch")
        pytest.importorskip("transformers")
        from structgen.integrations.transformers import LogitsProcessor

        index, text = compiled("lark"), expected("lark")[1][0]
        processor, ids = LogitsProcessor([index, None]), torch.zeros((2, 2), dtype=torch.int64)
        for token in text.tokens[:8]:
            scores = torch.zeros((2, vocabulary().size))
            wanted = processor(ids, scores)
            for twin in (again(processor), copy.deepcopy(processor)):
                assert torch.equal(twin(ids, scores), wanted)
            ids = torch.cat([ids, torch.tensor([[token], [token]])], dim=1)

    def test_of_mlx_lm(self) -> None:
        """And that of llama.cpp, but for the model that this one holds: they follow lines of ids."""
        text = expected("json")[1][0]
        processor, ids = MlxProcessor(compiled("json")), [0, 0]
        for token, mask in zip(text.tokens, text.masks, strict=True):
            for twin in (again(processor), copy.deepcopy(processor), processor):
                row = twin._tracker.follow(np.array(ids)).bitmask()
                assert row is not None
                assert row.tobytes() == mask
            ids.append(token)


def test_grammars_that_were_compiled() -> None:
    """What they remember of their text goes along."""
    grammar = sg.Grammar('start: "a"')
    sg.compile(grammar, sg.Vocabulary.bytewise(), eager=False)
    for twin in (again(grammar), copy.deepcopy(grammar)):
        assert twin.marked == grammar.marked
        assert twin == grammar
