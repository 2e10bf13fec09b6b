"""SGLang's own base classes, with a real tokenizer. (Its scheduler needs a GPU; its wheel alone is enough here.)"""

from __future__ import annotations

import random
from concurrent.futures import Future
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
    from structgen.integrations import sglang

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(sglang.SETTINGS_VARIABLE, '{"cache": false}')
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
