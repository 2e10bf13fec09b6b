"""`LogitsProcessor` inside transformers' ``generate()``, with a tiny randomly initialised model.

Judges: Python's `re.fullmatch` for texts that ended, `regex`'s partial match for texts that were cut off,
the model without a processor for rows without a definition, and guides replayed from the start for single
masks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import regex
from fakes.fakes import EOS, MERGES, PAD, byte_vocabulary, fake_index
from judges.prefixes import check_prefixes, counted_advances, replayed
from tiers import draws

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import structgen as sg  # noqa: E402
from structgen.errors import BitmaskError, TokenIdError, VocabularyError, VocabularyMismatchError  # noqa: E402
from structgen.integrations.checks import tell_of_precedence  # noqa: E402
from structgen.runtime import LogitsProcessor, ids_of  # noqa: E402
from structgen.runtime.guide.guide import Guide  # noqa: E402
from structgen.runtime.index.index import Index  # noqa: E402

#: Logits are padded beyond the vocabulary's 270 ids, and beyond its 9 words.
WIDTH = 333

VOCABULARY = byte_vocabulary()

NUMBER = r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?"
OBJECT = r'\{"(a|ab|the|x1)":(true|false|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,12}"){0,3}\}'
CHOICE = r"true|false|the (cat|dog|other one)"
DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
PATTERNS = [NUMBER, OBJECT, CHOICE, DATE]

Compile = Callable[[str], Index]


@pytest.fixture(scope="module", params=["fake", "compiled"])
def compile_(request: pytest.FixtureRequest) -> Compile:
    """From a pattern to an index: by the fake, which shares no code with the compiler, and by the
    compiler."""
    known: dict[str, Index] = {}

    def compiled(pattern: str) -> Index:
        if pattern not in known:
            known[pattern] = (
                fake_index(pattern, VOCABULARY)
                if request.param == "fake"
                else sg.compile(sg.Regex(pattern), VOCABULARY)
            )
        return known[pattern]

    return compiled


def tiny_llama(seed: int = 0, width: int = WIDTH, eos: int = EOS, pad: int = PAD) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=width, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        bos_token_id=None, eos_token_id=eos, pad_token_id=pad, max_position_embeddings=512,
        initializer_range=0.5,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama()


def ids(*texts: str) -> Any:
    """A batch of prompts, one byte a token, padded on the left."""
    longest = max(map(len, texts))
    return torch.tensor([[PAD] * (longest - len(text)) + list(text.encode()) for text in texts])


def generate(model: Any, prompts: Any, processor: Any, seed: int = 0, **options: Any) -> list[list[int]]:
    """The generated ids of each row, without the prompt."""
    torch.manual_seed(seed)
    options = {"max_new_tokens": 40, "attention_mask": (prompts != PAD).long(), **options}
    rows = model.generate(prompts, logits_processor=[processor] if processor else [], **options)
    return [row.tolist() for row in rows[:, prompts.shape[1] :]]


def check(pattern: str, generated: Sequence[int], vocabulary: Any = VOCABULARY, pad: int = PAD) -> bool:
    """Assert that generated ids are a match, or the beginning of one; True if the text has ended."""
    eos = vocabulary.eos_ids[0]
    ended = eos in generated
    size = generated.index(eos) if ended else len(generated)
    assert set(generated[size:]) <= {eos, pad}
    tokens = [vocabulary.token(t) for t in generated[:size]]
    assert None not in tokens, f"special tokens in {generated}"
    text = b"".join(tokens).decode()
    if ended:
        assert re.fullmatch(pattern, text), text
    else:
        assert regex.fullmatch(pattern, text, partial=True), text
    return ended


MODES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True},
    "hot sampling": {"do_sample": True, "temperature": 3.0, "top_k": 0},
    "top-k and top-p": {"do_sample": True, "top_k": 5, "top_p": 0.8},
    "samples": {"do_sample": True, "num_return_sequences": 4},
    "beams": {"num_beams": 3, "do_sample": False},
    "all beams": {"num_beams": 3, "num_return_sequences": 3, "do_sample": False},
    "cached off": {"do_sample": False, "use_cache": False},
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode(model: Any, compile_: Compile, mode: str, pattern: str) -> None:
    processor = LogitsProcessor(compile_(pattern))
    prompts = ids("Write it down: ", "x")
    for row in generate(model, prompts, processor, **MODES[mode]):
        check(pattern, row)


def test_samples_reach_the_end(model: Any, compile_: Compile) -> None:
    """The other tests would pass if nothing ever ended: here every text must."""
    processor = LogitsProcessor(compile_(DATE))
    rows = generate(model, ids("On "), processor, do_sample=True, num_return_sequences=8, temperature=2.0)
    assert all(check(DATE, row) for row in rows)
    assert len({tuple(row) for row in rows}) > 1


def test_beam_sampling(model: Any, compile_: Compile) -> None:
    """Few tokens are possible at first, so transformers fills beams with impossible ones; they must lose."""
    for pattern in (OBJECT, NUMBER):
        processor = LogitsProcessor(compile_(pattern))
        for seed in range(2):
            prompts = ids("Write: ", "y")
            rows = generate(model, prompts, processor, seed, num_beams=3, do_sample=True)
            for row in rows:
                check(pattern, row)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(compile_: Compile, dtype: Any) -> None:
    half = tiny_llama().to(dtype)
    processor = LogitsProcessor(compile_(OBJECT))
    for options in ({"do_sample": True}, {"num_beams": 2, "do_sample": False}):
        for row in generate(half, ids("one", "two!"), processor, max_new_tokens=16, **options):
            check(OBJECT, row)


def test_scores_keep_their_dtype_and_their_values(compile_: Compile) -> None:
    index = compile_(CHOICE)
    allowed = set(ids_of(Guide(index).bitmask()).tolist())
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        scores = torch.randn((2, WIDTH)).to(dtype)
        before = scores.clone()
        found = LogitsProcessor(index)(ids("ab", "c"), scores)
        assert torch.equal(scores, before)
        assert found.dtype == dtype
        for t in range(WIDTH):
            expected = before[:, t] if t in allowed else torch.full((2,), float("-inf"), dtype=dtype)
            assert torch.equal(found[:, t], expected)


# -- batches of definitions -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"num_beams": 2, "num_return_sequences": 2}])
def test_a_definition_for_each_prompt(model: Any, compile_: Compile, options: dict[str, Any]) -> None:
    prompts = ids("The number: ", "Whatever comes", "{", "A day: ")
    definitions = [NUMBER, None, OBJECT, DATE]
    processor = LogitsProcessor([None if d is None else compile_(d) for d in definitions])
    rows = generate(model, prompts, processor, do_sample=False, **options)
    free = generate(model, prompts, None, do_sample=False, **options)
    share = len(rows) // len(definitions)
    for r, row in enumerate(rows):
        definition = definitions[r // share]
        if definition is not None:
            check(definition, row)
        else:  # generate() runs until all rows have ended, so one side may be longer
            assert row[: len(free[r])] == free[r][: len(row)]


def test_a_definition_for_each_prompt_with_samples(model: Any, compile_: Compile) -> None:
    processor = LogitsProcessor([compile_(DATE), compile_(CHOICE)])
    rows = generate(model, ids("a", "bcd"), processor, do_sample=True, num_return_sequences=3)
    for r, row in enumerate(rows):
        check([DATE, CHOICE][r // 3], row)


def test_no_definition_at_all_changes_nothing(model: Any) -> None:
    prompts = ids("ab", "c")
    found = generate(model, prompts, LogitsProcessor([None, None]), do_sample=False)
    assert found == generate(model, prompts, None, do_sample=False)


# -- one processor, many calls ----------------------------------------------------------------------------


def test_reuse(model: Any, compile_: Compile) -> None:
    """Other prompts, the same again, longer, shorter, in a batch, cut off: each as with a new processor."""
    index = compile_(OBJECT)
    processor = LogitsProcessor(index)
    batches = [ids("Hello"), ids("Hullo"), ids("Hullo"), ids("A longer prompt"), ids("A"), ids("x", "yz"),
               ids("x", "zz"), ids("yz", "x"), ids("A")]  # fmt: skip
    for i, prompts in enumerate(batches):
        for tokens in (1, 2, 8):
            options = {"do_sample": True, "max_new_tokens": tokens}
            found = generate(model, prompts, processor, seed=i, **options)
            assert found == generate(model, prompts, LogitsProcessor(index), seed=i, **options)
            for row in found:
                check(OBJECT, row)


def test_a_conversation(model: Any, compile_: Compile) -> None:
    """Each prompt is the one before, the answer to it, and the next question."""
    processor = LogitsProcessor(compile_(CHOICE))
    prompts = ids("Yes?")
    for turn in range(4):
        (answer,) = generate(model, prompts, processor, seed=turn, do_sample=True)
        assert check(CHOICE, answer)
        prompts = torch.cat([prompts, torch.tensor([answer]), ids("\nAnd?")], dim=1)


def test_a_text_that_was_cut_off_goes_on(model: Any, compile_: Compile) -> None:
    processor = LogitsProcessor(compile_(DATE))
    prompt = ids("When? ")
    (whole,) = generate(model, prompt, LogitsProcessor(compile_(DATE)), do_sample=False)
    (head,) = generate(model, prompt, processor, do_sample=False, max_new_tokens=3)
    assert not check(DATE, head)
    (tail,) = generate(model, torch.cat([prompt, torch.tensor([head])], dim=1), processor, do_sample=False)
    assert head + tail == whole


def test_prompt_length_says_what_the_ids_cannot(model: Any, compile_: Compile) -> None:
    """A prompt that ends in the beginning of the answer, for a processor that has seen nothing yet."""
    prompt = ids("When? ")
    begun = torch.cat([prompt, ids("2024-1")], dim=1)
    for _ in range(2):
        processor = LogitsProcessor(compile_(DATE), prompt_length=prompt.shape[1])
        (row,) = generate(model, begun, processor, do_sample=True)
        assert check(DATE, list(b"2024-1") + row)
    (row,) = generate(model, begun, LogitsProcessor(compile_(DATE)), do_sample=True)
    assert check(DATE, row)


def test_reset_says_what_the_ids_cannot(compile_: Compile) -> None:
    """The old prompt plus one token that the definition allows: the same generation, unless told
    otherwise."""
    processor = LogitsProcessor(compile_("12|3"))
    scores = torch.zeros((1, WIDTH))
    processor(ids("n = "), scores)
    assert allowed_ids(processor(ids("n = 1"), scores)) == [[ord("2")]]
    processor.reset()
    start = allowed_ids(processor(ids("n = 1"), scores))
    assert start == [[ord("1"), ord("3"), 256 + MERGES.index(b"12")]]


def test_a_longer_prompt_after_a_longer_text(compile_: Compile) -> None:
    """The old prompt plus one token that is not allowed: nobody's choice, once the text is longer."""
    index = compile_(DATE)
    processor = LogitsProcessor(index)
    scores = torch.zeros((1, WIDTH))
    for text in ("when", "when2", "when20", "when?"):
        masked = processor(ids(text), scores)
    assert allowed_ids(masked) == [replayed(index, [])]


def test_a_buffer_that_the_caller_writes_on(compile_: Compile) -> None:
    """The ids may be a view of memory that changes: beams swapped in place are seen as swapped."""
    processor = LogitsProcessor(compile_("1xy|2vw"))
    buffer, scores = ids("a__", "a__"), torch.zeros((2, WIDTH))
    processor(buffer[:, :1], scores)
    buffer[:, 1] = torch.tensor([ord("1"), ord("2")])
    processor(buffer[:, :2], scores)
    buffer[:, 1:] = torch.tensor([[ord("2"), ord("v")], [ord("1"), ord("x")]])
    assert allowed_ids(processor(buffer, scores)) == [[ord("w")], [ord("y")]]


def test_an_encoder_decoder(compile_: Compile) -> None:
    """The decoder's prompt is its start token, the same in every call."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=WIDTH, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, eos_token_id=EOS,
        pad_token_id=PAD, decoder_start_token_id=PAD,
    )  # fmt: skip
    t5 = transformers.T5ForConditionalGeneration(config).eval()
    processor = LogitsProcessor(compile_(DATE))
    for i, prompts in enumerate([ids("one"), ids("two"), ids("three", "four")]):
        torch.manual_seed(i)
        rows = t5.generate(prompts, logits_processor=[processor], do_sample=True, max_new_tokens=30)
        assert all(check(DATE, row[1:].tolist()) for row in rows)


# -- drafts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("do_sample", [False, True])
def test_prompt_lookup(model: Any, compile_: Compile, do_sample: bool) -> None:
    prompt = ids('{"the":true,"b":"the 2024-10-12 12 the"} 2024-10-12 {"the":')
    for pattern in (OBJECT, DATE):
        processor = LogitsProcessor(compile_(pattern))
        for seed in range(2 if do_sample else 1):
            options = {"do_sample": do_sample, "max_new_tokens": 40}
            (row,) = generate(model, prompt, processor, seed, prompt_lookup_num_tokens=4, **options)
            check(pattern, row)
            if not do_sample:
                (plain,) = generate(model, prompt, LogitsProcessor(compile_(pattern)), **options)
                assert row == plain


@pytest.mark.parametrize("do_sample", [False, True])
def test_an_assistant_model(model: Any, compile_: Compile, do_sample: bool) -> None:
    assistant = tiny_llama(seed=1)
    processor = LogitsProcessor(compile_(OBJECT))
    for seed in range(2 if do_sample else 1):
        options = {"do_sample": do_sample, "max_new_tokens": 40}
        (row,) = generate(model, ids("Go: "), processor, seed, assistant_model=assistant, **options)
        check(OBJECT, row)
        if not do_sample:
            assert [row] == generate(model, ids("Go: "), LogitsProcessor(compile_(OBJECT)), **options)


# -- call by call -----------------------------------------------------------------------------------------


def allowed_ids(masked: Any) -> list[list[int]]:
    return [torch.isfinite(row).nonzero().flatten().tolist() for row in masked]


@pytest.mark.filterwarnings("ignore:generation goes on behind")
@pytest.mark.parametrize("seed", range(draws(6)))
@pytest.mark.parametrize("fixed", [False, True])
def test_masks_follow_the_prefix(compile_: Compile, fixed: bool, seed: int) -> None:
    indexes = [compile_(OBJECT), compile_(NUMBER)]
    prompt = ids("ab", "ab" if seed % 2 else "c")
    processor = LogitsProcessor(indexes, prompt_length=prompt.shape[1] if fixed else None)
    prompts = prompt.repeat_interleave(3, dim=0)

    def follow(texts: list[list[int]]) -> list[list[int]]:
        rows = torch.cat([prompts, torch.tensor(texts, dtype=torch.int64)], dim=1)
        return allowed_ids(processor(rows, torch.zeros((len(rows), WIDTH))))

    check_prefixes(indexes, follow, random.Random(seed), EOS, PAD)


def test_each_token_is_read_once(compile_: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps and beam shuffles advance each row's guide once, however long the text has become."""
    index = compile_("[0-9]{500}")
    read = counted_advances(monkeypatch)
    processor = LogitsProcessor(index)
    rows = torch.tensor([[1, 2, 3]] * 4)
    for step in range(200):
        processor(rows, torch.zeros((4, WIDTH)))
        digits = torch.tensor([[48 + r + step % 3] for r in range(4)])
        rows = torch.cat([rows if step % 2 else rows[[1, 0, 3, 3]], digits], dim=1)
    assert read.call_count == 199 * 4


@pytest.mark.parametrize("filler", [PAD, EOS, 0, ord("x"), WIDTH - 1])
def test_rows_that_ended_are_allowed_the_eos_alone(compile_: Compile, filler: int) -> None:
    """Whatever stands after the end, in or out of the vocabulary; and no row is all ``-inf``, so none is
    NaN."""
    processor = LogitsProcessor(compile_(CHOICE))
    rows, scores = ids("a", "b"), torch.zeros((2, WIDTH))
    processor(rows, scores)
    true = 256 + MERGES.index(b"true")
    for tokens in ([ord("f"), true], [ord("a"), EOS], [ord("l"), filler], [ord("s"), filler]):
        rows = torch.cat([rows, torch.tensor(tokens)[:, None]], dim=1)
        masked = processor(rows, scores)
        assert torch.isfinite(masked.softmax(-1)).all()
        assert allowed_ids(masked)[1] == [EOS]
    assert allowed_ids(masked)[0] == [ord("e")]


# -- refusals ---------------------------------------------------------------------------------------------


def test_a_token_that_was_not_allowed(compile_: Compile) -> None:
    processor = LogitsProcessor(compile_(DATE))
    rows, scores = ids("a", "b"), torch.zeros((2, WIDTH))
    processor(rows, scores)
    rows = torch.cat([rows, torch.tensor([[ord("1")], [ord("x")]])], dim=1)
    with pytest.raises(TokenIdError, match=r"token 120 is not .*\(row 1, 0 tokens after a prompt of 1\)"):
        processor(rows, scores)
    assert allowed_ids(processor(rows, scores)) == [replayed(compile_(DATE), [])] * 2  # starts anew


@pytest.mark.parametrize("token", [PAD, VOCABULARY.size, WIDTH - 1, -1])
def test_tokens_without_bytes_and_outside_the_vocabulary(compile_: Compile, token: int) -> None:
    processor = LogitsProcessor(compile_(DATE))
    prompt, scores = ids("a"), torch.zeros((1, WIDTH))
    processor(prompt, scores)
    with pytest.raises(TokenIdError, match=f"token {token} is not allowed"):
        processor(torch.cat([prompt, torch.tensor([[token]])], dim=1), scores)


def test_without_strict_the_row_ends(compile_: Compile) -> None:
    processor = LogitsProcessor(compile_(DATE), strict=False)
    rows, scores = ids("a", "b"), torch.zeros((2, WIDTH))
    for tokens in ([ord("1"), ord("x")], [ord("9"), WIDTH - 1], [ord("9"), 0]):
        processor(rows, scores)
        rows = torch.cat([rows, torch.tensor(tokens)[:, None]], dim=1)
    assert allowed_ids(processor(rows, scores)) == [replayed(compile_(DATE), list(b"199")), [EOS]]


ONES = [token for token in range(VOCABULARY.size) if (VOCABULARY.token(token) or b"").startswith(b"1")]


@pytest.mark.parametrize(
    "options",
    [{"min_new_tokens": 10}, {"bad_words_ids": [[token] for token in ONES]}, {"suppress_tokens": [*ONES, EOS]}],
    ids=" ".join,
)
def test_what_the_definition_leaves_no_choice_of_is_not_forbidden(
    model: Any, compile_: Compile, caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    tell_of_precedence.cache_clear()
    for do_sample in (False, True):
        (row,) = generate(model, ids("a"), LogitsProcessor(compile_("12")), do_sample=do_sample, **options)
        assert check("12", row)
    assert [record.message for record in caplog.records if "the definition wins" in record.message] != []
    assert len(caplog.records) == 1
    # Where it leaves a choice, what is forbidden is.
    (row,) = generate(model, ids("a"), LogitsProcessor(compile_("1*")), do_sample=False, min_new_tokens=6)
    assert EOS not in row[:6]


def test_arguments_are_checked(compile_: Compile) -> None:
    index = compile_(DATE)
    other = sg.Vocabulary.from_bytes([b"1", b"-"], eos_ids=[2])
    endless = sg.Vocabulary.from_bytes([b"1"], eos_ids=[])
    with pytest.raises(VocabularyMismatchError, match="rows 0 and 2"):
        LogitsProcessor([index, None, fake_index("1", other)])
    with pytest.raises(VocabularyError, match="no EOS id"):
        LogitsProcessor(fake_index("1", endless))
    with pytest.raises(ValueError, match="needs an index"):
        LogitsProcessor([])
    with pytest.raises(ValueError, match="prompt_length"):
        LogitsProcessor(index, prompt_length=-1)


def test_calls_are_checked(compile_: Compile) -> None:
    index = compile_(DATE)
    scores = torch.zeros((3, WIDTH))
    with pytest.raises(BitmaskError, match=r"scores are \[2, width\] for 2 rows .* got float32\[3, 333\]"):
        LogitsProcessor(index)(ids("a", "b"), scores)
    with pytest.raises(BitmaskError, match="3 rows cannot be shared out among 2 indexes"):
        LogitsProcessor([index, None])(ids("a", "b", "c"), scores)
    with pytest.raises(BitmaskError, match=r"token ids are integers \[rows, length\], got int64\[3\]"):
        LogitsProcessor(index)(torch.tensor([1, 2, 3]), scores)
    with pytest.raises(BitmaskError, match="shorter than the prompt"):
        LogitsProcessor(index, prompt_length=2)(ids("a", "b", "c"), scores)
    with pytest.raises(BitmaskError, match="has 9 words, logits of width 200 need 7"):
        LogitsProcessor(index)(ids("a", "b", "c"), scores[:, :200])


# -- a real vocabulary ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tekken() -> sg.Vocabulary:
    pytest.importorskip("mistral_common", reason="the tekken vocabulary comes with mistral-common")
    return sg.Vocabulary.from_tekken()


def test_tekken(tekken: sg.Vocabulary) -> None:
    (eos,) = tekken.eos_ids
    pattern = r'\{"name": "[A-Z][^"\\\x00-\x1f]{1,12}", "date": "' + DATE + r'"\}'
    index = sg.compile(sg.Regex(pattern), tekken)
    model = tiny_llama(width=tekken.size + 64, eos=eos, pad=eos)
    processor = LogitsProcessor(index)
    prompts = torch.tensor([[2, 3, 4]])
    rows = generate(model, prompts, processor, do_sample=True, num_return_sequences=4, max_new_tokens=60)
    ended = [row for row in rows if eos in row]
    assert ended
    for row in ended:
        text = b"".join(tekken.token(t) or b"" for t in row[: row.index(eos)])
        assert re.fullmatch(pattern, text.decode())
