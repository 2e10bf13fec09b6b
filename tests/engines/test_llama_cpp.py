"""The llama-cpp-python integration in its own loops, with random models written as GGUF files.

Judges: llama.cpp itself for the bytes of tokens, `re.fullmatch` for texts.
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="the models are written by the gguf package, which is not installed")

from fakes import tiny_gguf  # noqa: E402
from llama_cpp import Llama, LogitsProcessorList  # noqa: E402
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import BitmaskError, StructgenError, TokenIdError, VocabularyError, VocabularyMismatchError  # noqa: E402
from structgen.integrations.llama_cpp import LlamaDraft, LogitsProcessor, generate, vocabulary  # noqa: E402
from structgen.integrations.llama_cpp.reader import LlamaReader  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/engines"

DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
OBJECT = r'\{"(a|ab|the)":(true|false|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,12}"){0,3}\}'

MERGES = ["a b", "Ġ t", "Ġt h", "Ġth e", "1 2", '" :', '{ "']


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def written(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.gguf"
    if not path.exists():
        if kind == "llama":
            tiny_gguf.write(path, kind, tiny_gguf.sentencepiece_pieces(), bos=1, eos=2, unk=0)
        else:
            pieces = tiny_gguf.byte_level_pieces(MERGES)
            tiny_gguf.write(path, kind, pieces, merges=MERGES, eos=len(pieces) - 1)
    return path


def loaded(path: Path, **options: Any) -> Any:
    return Llama(str(path), n_ctx=512, verbose=False, **options)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def model(request: pytest.FixtureRequest, folder: Path) -> Any:
    return loaded(written(folder, request.param))


def completed(llama: Any, prompt: str | Sequence[int], processor: Any, **options: Any) -> tuple[str, bool]:
    """The text, and whether it ended by itself."""
    options = {"max_tokens": 60, "temperature": 1.2, **options}
    (choice,) = llama(prompt, logits_processor=LogitsProcessorList([processor]), **options)["choices"]
    processor.check()
    return choice["text"], choice["finish_reason"] == "stop"


def check(pattern: str, text: str, ended: bool) -> None:
    assert re.fullmatch(pattern, text) if ended else regex.fullmatch(pattern, text, partial=True), text


def test_vocabulary_of_file_and_model(model: Any) -> None:
    """The file's metadata, read here, and llama.cpp's own account of them are one."""
    own, read = vocabulary(model), sg.Vocabulary.from_gguf(model.model_path)
    assert read.fingerprint == own.fingerprint
    assert read.special_tokens == own.special_tokens
    assert model.token_eos() in own.eos_ids
    assert len(own.eos_ids) == 2  # by the metadata, and by name
    texts = ["the cat", '{"ab": 12}', "é\n\x01", " the users "]
    for text in texts:
        ids = model.tokenize(text.encode(), add_bos=False)
        # SentencePiece puts a space before the first word.
        assert b"".join(own.token(i) or b"?" for i in ids).decode() in (text, " " + text)
    assert vocabulary(model, eos_ids=[own.eos_ids[0]]).eos_ids == own.eos_ids[:1]


def test_other_kinds_are_refused(folder: Path) -> None:
    path = folder / "t5.gguf"
    tiny_gguf.write(path, "t5", tiny_gguf.sentencepiece_pieces(), eos=2, unk=0)
    with pytest.raises(VocabularyError, match="kind 't5' are not known"):
        sg.Vocabulary.from_gguf(path)
    with pytest.raises(VocabularyError, match="type 4 are not known"):
        vocabulary(loaded(path, vocab_only=True))


@pytest.mark.parametrize("pattern", [DATE, OBJECT])
def test_one_processor_many_calls(model: Any, pattern: str) -> None:
    """Other prompts, the same again (its cache is reused), longer by a token, cut off."""
    processor = LogitsProcessor(sg.compile(sg.Regex(pattern), vocabulary(model)), model)
    endings = 0
    for seed, prompt in enumerate(["a", "ab", "abc", "When? ", "When? ", "a longer prompt", "a"]):
        for tokens in (1, 5, 60):
            text, ended = completed(model, prompt, processor, seed=seed, max_tokens=tokens)
            check(pattern, text, ended)
            endings += ended
    assert endings >= 5


def test_streams_chats_and_greedy(model: Any) -> None:
    processor = LogitsProcessor(sg.compile(sg.Regex(DATE), vocabulary(model)), model)
    processors = LogitsProcessorList([processor])
    text = "".join(
        each["choices"][0]["text"] for each in model("On ", logits_processor=processors, max_tokens=30, stream=True)
    )
    assert re.fullmatch(DATE, text)
    message = {"role": "user", "content": "When?"}
    reply = model.create_chat_completion([message], logits_processor=processors, max_tokens=30, temperature=0.0)
    assert re.fullmatch(DATE, reply["choices"][0]["message"]["content"])
    processor.check()


@pytest.mark.parametrize("temperature", [0.0, 1.2])
@pytest.mark.parametrize("drafted", [1, 3, 10])
def test_prompt_lookup(folder: Path, drafted: int, temperature: float) -> None:
    """Drafted tokens stand behind the ids of each call; whether they are taken or not, texts match."""
    path = written(folder, "llama")
    llama = loaded(path, draft_model=LlamaPromptLookupDecoding(num_pred_tokens=drafted), logits_all=True)
    plain = loaded(path)
    lengths: list[int] = []

    class Watched(LogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            lengths.append(len(input_ids))
            return super().__call__(input_ids, scores)

    for pattern in (DATE, OBJECT, r"(12|00){4,20}\."):
        index = sg.compile(sg.Regex(pattern), vocabulary(llama))
        processor = Watched(index, llama)
        for seed, prompt in enumerate(['2024-10-12 {"the":12} 12 12 00 12 00 12', "12 12", "12 12"]):
            text, ended = completed(llama, prompt, processor, seed=seed, temperature=temperature)
            check(pattern, text, ended)
            if temperature == 0.0:
                expected, _ = completed(plain, prompt, LogitsProcessor(index, plain), temperature=0.0)
                assert text == expected
    steps = np.diff(lengths)
    assert (steps > 1).any()  # drafts were there
    assert (steps <= 0).any()  # and lengths came again, or went back


def test_a_loop_of_ones_own(model: Any) -> None:
    """``eval`` and ``sample``, where each call has a sampler of its own."""
    processor = LogitsProcessor(sg.compile(sg.Regex(DATE), vocabulary(model)), model)
    processors = LogitsProcessorList([processor])
    for prompt in (b"When? ", b"And then? "):
        model.reset()
        model._sampler = None  # left behind by a generate() before
        model.eval(model.tokenize(prompt))
        found: list[int] = []
        while (token := model.sample(logits_processor=processors)) not in vocabulary(model).eos_ids:
            found.append(token)
            model.eval([token])
            assert len(found) < 30
        processor.check()
        assert re.fullmatch(DATE, b"".join(vocabulary(model).token(i) or b"?" for i in found).decode())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_token_that_something_else_forced(model: Any) -> None:
    """llama.cpp swallows the exception; the text ends there, and `check` raises."""
    processor = LogitsProcessor(sg.compile(sg.Regex(DATE), vocabulary(model)), model)
    letter = next(i for i in range(vocabulary(model).size) if vocabulary(model).token(i) == b"x")

    def force(input_ids: Any, scores: Any) -> Any:
        scores = scores.copy()
        scores[letter] = 1e9
        return scores

    reply = model("On ", logits_processor=LogitsProcessorList([processor, force]), max_tokens=1)
    assert reply["choices"][0]["text"] == "x"
    calls: list[int] = []

    def force_first(input_ids: Any, scores: Any) -> Any:
        calls.append(len(input_ids))
        return force(input_ids, scores) if len(calls) == 1 else scores

    processor.reset()
    reply = model("On ", logits_processor=LogitsProcessorList([processor, force_first]), max_tokens=30)
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert reply["choices"][0]["text"] == "x"
    with pytest.raises(TokenIdError, match=f"token {letter} is not allowed"):
        processor.check()
    assert processor.error is None
    text, ended = completed(model, "On ", processor)  # the next request is served
    check(DATE, text, ended)


def test_processors_that_were_dropped(model: Any) -> None:
    processor = LogitsProcessor(sg.compile(sg.Regex(DATE), vocabulary(model)), model)
    model("On ", logits_processor=LogitsProcessorList([processor]), logit_bias={5: 1.0}, max_tokens=5)
    with pytest.raises(StructgenError, match=r"was not called.* With logit_bias="):
        processor.check()


def test_scores_are_checked(model: Any) -> None:
    processor = LogitsProcessor(sg.compile(sg.Regex(DATE), vocabulary(model)), model)
    model._sampler = None
    ids = np.array([1, 2], np.intc)
    with pytest.raises(BitmaskError, match="logits of width 40 need 2"):
        processor(ids, np.zeros(40, np.single))
    with pytest.raises(BitmaskError, match="float64"):
        processor(ids, np.zeros(512))  # type: ignore[arg-type]


def test_an_index_for_other_tokens(folder: Path, model: Any) -> None:
    own = vocabulary(model)
    tokens = [own.token(i) for i in range(own.size)]
    place = tokens.index(b"x")
    swapped = sg.Vocabulary.from_bytes([*tokens[:place], b"~~", *tokens[place + 1 :]], own.eos_ids)
    longer = sg.Vocabulary.from_bytes([*tokens, b"more"], own.eos_ids)
    specials = own.special_tokens
    endless = sg.Vocabulary.from_bytes(tokens, [specials.get("[INST]", specials.get("<|pad|>", 0))])
    for other, message in ((swapped, f"b'~~', the model's is b'x' .token {place}"), (longer, "the model has")):
        with pytest.raises(VocabularyMismatchError, match=message):
            LogitsProcessor(sg.compile(sg.Regex("[0-9]"), other), model)
    # Other ends are no other tokens: the text ends where the model ends it.
    processor = LogitsProcessor(sg.compile(sg.Regex("[0-9]"), endless), model)
    reply = model("1", logits_processor=LogitsProcessorList([processor]), max_tokens=4)
    processor.check()
    assert re.fullmatch("[0-9]", reply["choices"][0]["text"])
    assert reply["choices"][0]["finish_reason"] == "stop"


def test_example(model: Any) -> None:
    example = runpy.run_path(str(EXAMPLES / "with_llama_cpp.py"))
    assert re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", example["main"](model.model_path))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("pattern", [DATE, OBJECT, "[^x]{10,40}", r"(12|00){4,20}\."])
def test_optimistic_decoding_is_what_masks_give(model: Any, pattern: str, temperature: float) -> None:
    index = sg.compile(sg.Regex(pattern), vocabulary(model))
    own = vocabulary(model)
    for seed, prompt in enumerate(["a", "When? ", '{"the":12} 12 12 00 12']):
        found = []
        for mode, ahead in (("masked", 1), ("optimistic", 1), ("optimistic", 16)):
            model.reset()
            options: dict[str, Any] = {"mode": mode, "ahead": ahead, "temperature": temperature, "seed": seed}
            found.append(list(generate(model, prompt, index, max_tokens=60, **options)))
        assert found[1:] == [found[0]] * 2
        text = b"".join(own.token(token) or b"" for token in found[0])
        ended = found[0][-1] in own.eos_ids
        check(pattern, text.decode("utf-8", "strict" if ended else "ignore"), ended)


def test_scores_behind_a_cache_that_was_cut(model: Any, folder: Path) -> None:
    """Those of a context that has read the ids alone, all but for rounding: the passes are cut otherwise."""
    reader, other = LlamaReader(model), loaded(Path(model.model_path))
    order = np.random.default_rng(4)
    ids = model.tokenize(b"When? ")
    for _ in range(60):
        kept = ids[: order.integers(1, len(ids) + 1)]
        ids = [*kept, *order.integers(3, vocabulary(model).size, order.integers(0, 4)).tolist()]
        found = reader.read(ids)
        other.reset()
        expected = LlamaReader(other).read(ids)
        assert np.allclose(found, expected, atol=1e-3)
        assert found.argmax() == expected.argmax()


def test_a_draft_writes_in_the_place_of_a_mistake(model: Any) -> None:
    draft = LlamaDraft(model)
    role = {"enum": ["admin", "user"]}
    definition = sg.JsonSchema({"type": "object", "properties": {"role": role}, "required": ["role"]})
    replies = iter(['{"role": "boss"}'])
    result = sg.correct(lambda _: next(replies, ""), definition, "Who? ", draft=draft)
    assert json.loads(result.text)["role"] in role["enum"]
    assert [event.chosen_by for event in result.events] == ["draft"]
    assert result.events[0].tokens
    replies = iter(["2024-13-45", "", "", ""])
    result = sg.correct(lambda _: next(replies, ""), sg.Regex(DATE), draft=draft, temperature=1.0, seed=3)
    assert re.fullmatch(DATE, result.text)
    assert result.events[0].chosen_by == "draft"
    counted = sg.correct(lambda _: "9" * 100, sg.Regex("[0-9]+"), draft=draft, max_new_tokens=7)
    encode = vocabulary(model).encode
    assert encode is not None
    assert len(encode(counted.text)) == 7
