"""SGLang's own base classes, with a real tokenizer. (Its scheduler needs a GPU; its wheel alone is enough here.)"""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import REQUESTS, TOKENIZERS

base = pytest.importorskip("sglang.srt.constrained.base_grammar_backend", exc_type=ImportError)

WIDTH = 128_256
KINDS = {"json_schema": "json", "regex": "regex", "grammar": "ebnf", "gbnf": "ebnf"}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    if not (TOKENIZERS / "llama3" / "tokenizer.json").is_file():
        pytest.skip("the tokenizer llama3 is not there")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(TOKENIZERS / "llama3")


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> Any:
    return created(tokenizer, SimpleNamespace(reasoning_parser=None, enable_strict_thinking=False))


def created(tokenizer: Any, serving: Any) -> Any:
    """The backend that a server with some arguments makes."""
    from sglang.srt import runtime_context

    from structgen.integrations import sglang

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(sglang.SETTINGS_VARIABLE, '{"cache": false}')
        patch.setattr(runtime_context, "get_serving", lambda: serving)
        sglang.register()
        return base.GRAMMAR_BACKEND_REGISTRY["structgen"](None, tokenizer, WIDTH, [128_001, 128_009])


def begin(backend: Any, key: tuple[str, str]) -> Any:
    """As the scheduler's grammar manager: from the backend's threads the first time, a copy later."""
    value, is_hit = backend.get_cached_or_future_value(key, False)
    if isinstance(value, Future):
        value = value.result()
        backend.set_cache(key, value.copy())
    assert is_hit == (value.grammar_stats is not None and value.grammar_stats.is_cache_hit)
    return value


@pytest.mark.parametrize("jumps", [False, True])
def test_texts_of_all_kinds(backend: Any, tokenizer: Any, jumps: bool) -> None:
    import json

    rng = random.Random(5)
    for request, judge in REQUESTS:
        [(kind, spec)] = request.items()
        if kind not in KINDS:
            continue
        for _ in range(4):
            grammar = begin(backend, (KINDS[kind], spec if isinstance(spec, str) else json.dumps(spec)))
            ids: list[int] = []
            while not grammar.is_terminated():
                helper = grammar.try_jump_forward(tokenizer) if jumps else None
                if helper is not None:
                    text, state = grammar.jump_forward_str_state(helper)
                    new = tokenizer.encode(tokenizer.decode(ids) + text, add_special_tokens=False)
                    grammar.jump_and_retokenize(ids, new, state)
                    ids = new
                    continue
                mask = grammar.allocate_vocab_mask(WIDTH, 2, "cpu")
                grammar.fill_vocab_mask_batched([base.GrammarRow(row=1, grammar=grammar)], mask)
                logits = torch.zeros(2, WIDTH)
                grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask, "cpu"))
                assert bool(torch.isfinite(logits[0]).all())
                token = rng.choice(torch.isfinite(logits[1]).nonzero().flatten().tolist())
                grammar.accept_token(token)
                ids.append(token)
            text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            assert judge(text), (request, text)


def test_an_invalid_grammar_says_why(backend: Any) -> None:
    value, _ = backend.get_cached_or_future_value(("regex", r"(a)\1"), False)
    assert isinstance(value.result(), base.InvalidGrammarObject)
    assert "backreference" in value.result().error_message


TAG = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]{2}"}, "end": "</f>"}


@pytest.fixture(params=[False, True], ids=["thinking", "strict_thinking"])
def behind_reasoning(tokenizer: Any, request: pytest.FixtureRequest) -> Any:
    """The backend of a server with a parser of reasoning."""
    return created(tokenizer, SimpleNamespace(reasoning_parser="qwen3", enable_strict_thinking=request.param))


@pytest.mark.parametrize(
    "key",
    [("regex", "<f>[0-9]{2}</f>"), ("structural_tag", json.dumps({"type": "structural_tag", "format": TAG}))],
    ids=lambda key: key[0],
)
def test_definitions_hold_behind_the_reasoning(behind_reasoning: Any, tokenizer: Any, key: tuple[str, str]) -> None:
    """SGLang's own wrapper, around this backend."""
    mask = behind_reasoning.grammar_backend.allocate_vocab_mask(WIDTH, 1, "cpu")
    for reasoning in (True, False, True):  # compiled, then copies
        value, _ = behind_reasoning.get_cached_or_future_value(key, reasoning)
        if isinstance(value, Future):
            value = value.result()
            behind_reasoning.set_cache(key, value.copy())
        thoughts = []
        for text in ("Is it <f> or [?", "</think>") if reasoning else ():
            thoughts += tokenizer.encode(text, add_special_tokens=False)
        for token in thoughts:
            mask.fill_(-1)
            value.fill_vocab_mask(mask, 0)
            # Strictly, all is allowed but what the parser excludes.
            assert bool((mask == -1).all()) != behind_reasoning.enable_strict_thinking
            value.accept_token(token)
        ids: list[int] = []
        rng = random.Random(3)
        while not value.is_terminated():
            mask.fill_(-1)
            value.fill_vocab_mask(mask, 0)
            logits = torch.zeros(1, WIDTH)
            value.apply_vocab_mask(logits, value.move_vocab_mask(mask, "cpu"))
            ids.append(rng.choice(torch.isfinite(logits[0]).nonzero().flatten().tolist()))
            value.accept_token(ids[-1])
        assert re.fullmatch("<f>[0-9]{2}</f>", tokenizer.decode(ids, skip_special_tokens=True))
        value.rollback(len(ids) + len(thoughts))
        assert not value.is_terminated()
