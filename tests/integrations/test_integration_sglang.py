"""SGLang's grammar objects: batches, trees of drafts, jump-forward."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fakes.fake_modules import fake_modules
from fakes.fake_sglang import MODULES, SERVING, traverse_tree
from judges.guides import EACH_BYTE

import structgen as sg
from structgen import errors
from structgen.integrations.checks import tell_of_precedence
from structgen.integrations.requests import Indexes

EOS, WIDTH = 256, 320
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, None, b"true", b'{"', b'":'], eos_ids=[EOS], size=WIDTH)
SCHEMA = """{"type": "object", "properties": {"first": {"type": "boolean"}, "2é": {"const": null}},
    "required": ["first", "2é"], "additionalProperties": false}"""


@pytest.fixture(scope="module", autouse=True)
def _sglang() -> Iterator[None]:
    with fake_modules(MODULES, "structgen.integrations.sglang"):
        yield


@pytest.fixture
def backend() -> Any:
    from structgen.integrations.sglang import StructgenBackend

    return StructgenBackend(Indexes(VOCABULARY))


def allowed(mask: torch.Tensor) -> list[list[int]]:
    logits = torch.zeros(len(mask), WIDTH)
    from structgen.integrations.sglang import StructgenGrammar

    StructgenGrammar.apply_vocab_mask(logits, mask)
    return [torch.nonzero(row > float("-inf")).flatten().tolist() for row in logits]


def test_it_is_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY
    from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES

    from structgen.integrations import sglang

    sglang.register()
    sglang.register()
    assert GRAMMAR_BACKEND_CHOICES.count("structgen") == 1
    made: list[Any] = []

    def vocabulary(tokenizer: Any, *, eos_ids: set[int], size: int) -> sg.Vocabulary:
        made.append((tokenizer, eos_ids, size))
        return VOCABULARY

    monkeypatch.setattr(sg.Vocabulary, "from_transformers", vocabulary)
    monkeypatch.setenv(sglang.SETTINGS_VARIABLE, '{"cache": false}')
    create = GRAMMAR_BACKEND_REGISTRY["structgen"]
    assert isinstance(create(None, "tokenizer", WIDTH, [EOS, 3]), sglang.StructgenBackend)
    assert made == [("tokenizer", {EOS, 3}, WIDTH)]
    for settings in ("{", "[]", '{"cash": 1}'):
        monkeypatch.setenv(sglang.SETTINGS_VARIABLE, settings)
        with pytest.raises(errors.DefinitionError):
            create(None, "tokenizer", WIDTH, EOS)


def test_a_batch_of_requests(backend: Any) -> None:
    """Masks as `SamplingBatchInfo` makes them: requests that finished, or ask for nothing, stay unconstrained."""
    from sglang.srt.constrained.base_grammar_backend import GrammarRow

    rng = random.Random(3)
    grammars = [
        backend.dispatch_json(SCHEMA), backend.dispatch_regex("(true|x)+"), None,
        backend.dispatch_ebnf('root ::= "a" [0-9]'), backend.dispatch_ebnf('start: "a" /[0-9]/'),
        backend.dispatch_json("$$ANY$$"),
    ]  # fmt: skip
    guides = [None if each is None else sg.Guide(each._matcher.index) for each in grammars]
    first = grammars[0]
    for _ in range(60):
        mask = first.allocate_vocab_mask(WIDTH, len(grammars), "cpu")
        live = [(row, g) for row, g in enumerate(grammars) if g and not g.finished and not g.is_terminated()]
        first.fill_vocab_mask_batched([GrammarRow(*each) for each in live], mask)
        found = allowed(first.move_vocab_mask(mask, "cpu"))
        for row, ids in enumerate(found):
            guide = guides[row]
            if guide is None or row not in dict(live):
                assert ids == list(range(WIDTH))
                continue
            assert ids == [t for t in range(WIDTH) if guide.allows(t)]
            token = rng.choice(ids)
            grammars[row].accept_token(token)
            assert grammars[row].current_token == token
            assert guide.advance(token)
            grammars[row].finished = grammars[row].is_terminated()
    assert sum(each.is_terminated() for each in grammars if each) >= 4
    first.reset_vocab_mask(mask)
    assert bool((mask == -1).all())


def test_a_tree_of_drafts(backend: Any) -> None:
    grammar = backend.dispatch_regex("a(b|cc)(d|e)?")
    grammar.accept_token(ord("a"))
    #  0: a (accepted)   1: b   2: d (under b)   3: c (beside b)   4: c (under 3)   5: z (beside c)   6: EOS (under 2)
    drafts = [ord("a"), ord("b"), ord("d"), ord("c"), ord("c"), ord("z"), EOS]
    children, siblings = [1, 2, 6, 4, -1, -1, -1], [-1, 3, -1, 5, -1, -1, -1]
    mask = grammar.allocate_vocab_mask(WIDTH, len(drafts), "cpu")
    for _ in range(2):
        mask.fill_(-1)
        traverse_tree(children, siblings, drafts, grammar, mask)
        found = allowed(mask)
        everything = list(range(WIDTH))
        ends = [ord("d"), ord("e"), EOS]
        assert found == [[ord("b"), ord("c")], ends, [EOS], [ord("c")], ends, everything, everything]
    grammar.accept_token(ord("b"))


def test_a_token_that_does_not_fit_is_a_value_error(backend: Any) -> None:
    grammar = backend.dispatch_regex("ab")
    for token in (ord("b"), WIDTH - 1, WIDTH, 10**9, -1):
        with pytest.raises(ValueError, match=f"token {token}"):
            grammar.accept_token(token)
    for token in (ord("a"), ord("b"), EOS):
        grammar.accept_token(token)
    grammar.accept_token(ord("z"))  # behind the end
    grammar.rollback(1)
    assert not grammar.is_terminated()


def test_copies_begin_anew(backend: Any) -> None:
    grammar = backend.dispatch_regex("ab")
    grammar.accept_token(ord("a"))
    copy = grammar.copy()
    copy.accept_token(ord("a"))
    grammar.accept_token(ord("b"))
    copy.accept_token(ord("b"))
    assert copy.grammar_stats.is_cache_hit
    assert not grammar.grammar_stats.is_cache_hit


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("regex", r"(a)\1"), ("regex", "("), ("json", "{"), ("json", '{"type": 5}'), ("ebnf", "root ::= missing"),
     ("ebnf", "nothing"), ("structural_tag", "{}")],
)  # fmt: skip
def test_what_cannot_be_honoured_is_an_invalid_grammar(backend: Any, kind: str, spec: str) -> None:
    from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject

    grammar = getattr(backend, f"dispatch_{kind}")(spec)
    assert isinstance(grammar, InvalidGrammarObject)
    assert grammar.error_message


def encode(text: str) -> list[int]:
    """Longest tokens first: what comes later may change the tokens of what was there before."""
    data, ids = text.encode(), []
    while data:
        token = next((t for t in (257, 258, 259) if data.startswith(VOCABULARY.token(t) or b"-")), data[0])
        ids.append(token)
        data = data[len(VOCABULARY.token(token) or b"") :]
    return ids


def decode(ids: list[int]) -> str:
    return b"".join(VOCABULARY.token(i) or b"" for i in ids).decode()


def test_jumping_forward_writes_what_is_forced() -> None:
    """The loop of an engine that jumps: the forced text is appended, and the whole encoded again."""
    from structgen.integrations.sglang import StructgenBackend

    backend = StructgenBackend(Indexes(VOCABULARY))
    rng = random.Random(7)
    for spec in ('(yes|no): (true|trüb)! ("a{1,2}":)x', "é{3}|ée"):
        for _ in range(10):
            grammar, ids, jumped = backend.dispatch_regex(spec), list[int](), 0
            while not grammar.is_terminated():
                helper = grammar.try_jump_forward(None)
                if helper is not None:
                    text, state = grammar.jump_forward_str_state(helper)
                    assert text
                    new = encode(decode(ids) + text)
                    grammar.jump_and_retokenize(ids, new, state)
                    ids, jumped = new, jumped + 1
                    continue
                mask = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
                grammar.fill_vocab_mask(mask, 0)
                token = rng.choice(allowed(mask)[0])
                grammar.accept_token(token)
                ids.append(token)
            text = decode([i for i in ids if i != EOS])
            assert sg.compile(sg.Regex(spec), VOCABULARY).match(text.encode()).accepted
            assert jumped
            assert grammar.try_jump_forward(None) is None


def test_other_tokens_that_do_not_fit_change_nothing(backend: Any) -> None:
    grammar = backend.dispatch_regex("abc")
    grammar.accept_token(ord("a"))
    with pytest.raises(ValueError, match="token 2 of the new ones"):
        grammar.jump_and_retokenize([ord("a")], [ord("a"), ord("b"), ord("x")], -1)
    assert grammar.try_jump_forward(None) == ([], "bc")


# -- reasoning, which SGLang's own wrapper skips ---------------------------------------------------------------

THINK_END = b"</think>"


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The backend as it is made where the server has a parser of reasoning."""
    from types import SimpleNamespace

    from structgen.integrations import sglang

    monkeypatch.setattr(SERVING, "reasoning_parser", "qwen3")
    monkeypatch.setattr(SERVING, "enable_strict_thinking", True)
    monkeypatch.setattr(sg.Vocabulary, "from_transformers", lambda *_, **__: VOCABULARY)
    monkeypatch.setenv(sglang.SETTINGS_VARIABLE, '{"cache": false}')
    return sglang.create_backend(None, SimpleNamespace(encode=lambda text: list(text.encode())), WIDTH, EOS)


def mask_of(grammar: Any) -> list[int]:
    inner = grammar.grammar
    mask = inner.allocate_vocab_mask(WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    return allowed(mask)[0]


TAG = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]"}, "end": "</f>"}
ASKED = [
    ("regex", "[0-9]+", b"07"),
    ("structural_tag", json.dumps({"type": "structural_tag", "format": TAG}), b"<f>7</f>"),
]


@pytest.mark.parametrize(("kind", "text", "answer"), ASKED)
def test_definitions_hold_behind_the_reasoning(behind: Any, kind: str, text: str, answer: bytes) -> None:
    grammar = behind.begin(kind, text, True)
    everything = list(range(WIDTH))
    for byte in b"Is it { or [? <f>" + THINK_END:
        assert mask_of(grammar) == everything
        grammar.accept_token(byte)
    start = mask_of(behind.begin(kind, text, False))
    assert mask_of(grammar) == start != everything
    grammar.accept_token(answer[0])
    grammar.rollback(3)  # back into the reasoning
    assert mask_of(grammar) == everything
    for byte in THINK_END[-2:] + answer:
        grammar.accept_token(byte)
    assert EOS in mask_of(grammar)
    grammar.accept_token(EOS)
    assert grammar.is_terminated()


def test_what_cannot_be_honoured_is_refused_behind_reasoning_too(behind: Any) -> None:
    refused = behind.begin("regex", r"(a)\1", True)
    assert "backreference" in refused.error_message


def test_a_definition_within_messages(backend: Any) -> None:
    """Where the reasoning is a message, SGLang frames the definition by a structural tag."""

    def frame(content: dict[str, Any]) -> dict[str, Any]:
        message = {"type": "tag", "begin": "<text>", "content": content, "end": "<end>"}
        return {"type": "structural_tag", "format": message}

    for grammar, answer in (
        (backend.dispatch_regex("[0-9]+"), b"12"),
        (backend.dispatch_json('{"type": "integer"}'), b"12"),
        (backend.dispatch_ebnf('root ::= "a" [0-9]'), b"a1"),
        (backend.dispatch_ebnf('start: "a" /[0-9]/'), b"a1"),
    ):
        framed = backend.compile_framed_grammar(grammar, frame)
        for token in [*b"<text>", *answer, *b"<end>", EOS]:
            framed.accept_token(token)
        assert framed.is_terminated()
    holds_json = backend.dispatch_ebnf('start: "a" %json {"type": "integer"}')
    assert backend.compile_framed_grammar(holds_json, frame) is None


def test_settings_that_sglang_tells_nothing_of_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from structgen.integrations import sglang

    monkeypatch.setenv(sglang.SETTINGS_VARIABLE, '{"max_tokens": true}')
    with pytest.raises(errors.DefinitionError, match="no effect here"):
        sglang.create_backend(None, None, WIDTH, EOS)


def test_a_definition_that_ends_early_wins(backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    """SGLang has forbidden the EOS, for min_new_tokens, before the masks."""
    tell_of_precedence.cache_clear()
    ended, goes_on = backend.dispatch_regex("ab"), backend.dispatch_regex("(ab)*")
    mask = backend.allocate_vocab_mask(WIDTH, 3, "cpu")
    for row, grammar in enumerate((ended, goes_on)):
        for token in b"ab":
            grammar.accept_token(token)
        grammar.fill_vocab_mask(mask, row)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.zeros(3, WIDTH, dtype=dtype)
        logits[:, EOS] = float("-inf")
        free = logits[2].clone()
        backend.apply_vocab_mask(logits, mask)
        chosen = torch.softmax(logits.float() / 0.05, -1)
        assert chosen[0].argmax() == EOS
        assert chosen[0, EOS] == 1
        assert chosen[1, EOS] == 0
        assert torch.equal(logits[2], free)
    assert len([each for each in caplog.records if "the definition wins" in each.message]) == 1


@pytest.mark.parametrize(
    ("arguments", "right", "wrong"),
    [
        ({}, b'{ \n"a":\t1}', b'{"a": 01}'),
        ({"constrained_json_disable_any_whitespace": True}, b'{"a":1}', b'{"a": 1}'),
        ({"constrained_json_whitespace_pattern": r"\s{2}"}, b'{  "a":1}', b'{ "a":1}'),
    ],
)
def test_sglangs_own_arguments_say_the_whitespace(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], right: bytes, wrong: bytes
) -> None:
    from structgen.integrations import sglang

    monkeypatch.setenv(sglang.SETTINGS_VARIABLE, '{"cache": false}')
    monkeypatch.setattr(sg.Vocabulary, "from_transformers", lambda *_, **__: VOCABULARY)
    made: Any = sglang.create_backend(SimpleNamespace(**arguments), None, WIDTH, EOS)
    index = made.dispatch_json('{"type": "object"}')._matcher.index
    assert index.match(right).accepted
    assert not index.match(wrong).accepted


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_request_that_sglang_aborts_is_compiled_no_further(
    backend: Any, behind: Any, is_behind: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its `GrammarManager.abort_requests` does: the future is cancelled. Others with the same definition go on."""
    found, begun, both, ended = behind if is_behind else backend, threading.Event(), threading.Event(), []

    def compiled(*args: Any, cancel: Any, **options: Any) -> sg.Index:
        begun.set()
        if both.is_set():
            return sg.compile(*args, cancel=cancel, **options)
        while not cancel.is_set():
            time.sleep(0.001)
        ended.append(cancel)
        return sg.compile(*args, cancel=cancel, **options)  # which looks at once

    monkeypatch.setattr("structgen.integrations.requests.compile", compiled)
    future, _ = found.get_cached_or_future_value(("regex", "[0-9]{4}"), False)
    assert begun.wait(20)
    future.cancel()
    assert "cancelled" in future.result(20).error_message
    assert len(ended) == 1
    assert not caplog.records
    both.set()
    first, _ = found.get_cached_or_future_value(("regex", "[0-9]{4}"), False)
    assert first.result(20).is_terminated() is False
