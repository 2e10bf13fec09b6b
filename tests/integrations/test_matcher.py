"""What engines have in common: a matcher of one request, and the definitions that requests bring."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from judges.guides import EACH_BYTE

import structgen as sg
from structgen import budget, errors
from structgen.integrations import requests as requests_module
from structgen.integrations.matcher import Matcher
from structgen.integrations.requests import Indexes, Named, check_definition, read_engine_request, read_request
from structgen.runtime.rows.bitmask import ids_of

EOS, EOM, NEWLINE = 256, 257, 10
VOCABULARY = sg.Vocabulary.from_bytes(
    [*EACH_BYTE, None, None, b"true", b'{"a": '], eos_ids=[EOS], special_tokens={"<|eom|>": EOM}
)
BOOLEAN = {"type": "boolean"}
SCHEMA = {"type": "object", "properties": {"a": BOOLEAN}, "required": ["a"], "additionalProperties": False}
INDEX = sg.compile(sg.JsonSchema(SCHEMA), VOCABULARY, eager=False)


def spelled(text: str) -> list[int]:
    return list(text.encode())


# -- the matcher -------------------------------------------------------------------------------------------


def test_tokens_are_accepted_or_refused() -> None:
    matcher = Matcher(INDEX)
    assert matcher.accept(259)
    before = matcher.row()
    for token in (ord("x"), EOS, -1, VOCABULARY.size, 10**12):
        assert not matcher.accept(token)
        assert np.array_equal(matcher.row(), before)
    assert matcher.accept(258)
    assert not matcher.is_terminated()
    assert matcher.accept(ord("}"))
    assert ids_of(matcher.row()).tolist() == [EOS]
    assert matcher.accept(EOS)
    assert matcher.is_terminated()
    assert not matcher.accept(EOS)
    assert ids_of(matcher.row()).tolist() == [EOS]


@pytest.mark.parametrize("stop_ids", [(), (EOM,)])
def test_a_step_of_too_much_work_ends_the_text(
    stop_ids: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error would end the requests beside it."""
    ends = sg.Grammar('start: s\ns: "a" s | "a" s "b" s | "a" s "b" s "b" s | "c"', lexer="basic", ambiguity="all")
    for is_asked in (True, False):  # whether the mask takes too much, or the move
        index = sg.compile(ends, VOCABULARY, eager=False)
        matcher, mask = Matcher(index, stop_ids=stop_ids), np.full((1, VOCABULARY.words + 1), -1, np.int32)
        for token in b"a" * 20 + (b"c" if is_asked else b""):
            assert matcher.accept(token)
        with monkeypatch.context() as bounded:
            bounded.setattr(budget, "MOST_STEP_WORK", 0)
            if is_asked:
                matcher.fill(mask, 0)
                matcher.fill(mask, 0)
                assert ids_of(mask[0]).tolist() == ids_of(matcher.row()).tolist() == [EOS, *stop_ids]
            else:
                assert matcher.accept(ord("c"))
                matcher.fill(mask, 0)
                assert ids_of(mask[0]).tolist() == ids_of(matcher.row()).tolist() == [EOS, *stop_ids]
                assert matcher.forced_text() == ""
            with pytest.raises(errors.BitmaskError, match="row 0"):
                matcher.fill(mask[:, :-2], 0)
            assert matcher.is_terminated()
            assert not matcher.accept(ord("b"))
        assert "units of work" in caplog.text
        matcher.rollback(1)  # the one after 20
        assert not matcher.is_terminated()
        assert matcher.accept(ord("c"))
        assert matcher.accept(ord("b"))
        caplog.clear()


def test_what_must_follow_is_nothing_where_that_takes_too_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = 's: "a" s | "a" s "b" s | "a" s "b" s "b" s | "c"'
    ends = sg.Grammar(f'start: s "!!"\n{rules}', lexer="basic", ambiguity="all")
    matcher = Matcher(sg.compile(ends, VOCABULARY, eager=False))
    for token in b"aaac!":
        assert matcher.accept(token)
    with monkeypatch.context() as bounded:
        bounded.setattr(budget, "MOST_STEP_WORK", 0)
        assert matcher.forced_text() == ""
    assert not matcher.is_terminated()
    assert matcher.forced_text() == "!"


def test_a_token_that_has_to_fit_is_named() -> None:
    matcher = Matcher(INDEX)
    with pytest.raises(errors.TokenIdError, match=r"token 120 is not allowed .*request 7"):
        matcher.require(ord("x"), "request 7")
    with pytest.raises(errors.TokenIdError, match="token 999"):
        matcher.require(999)
    for token in (259, 258, ord("}"), EOS):
        matcher.require(token)
    with pytest.raises(errors.TokenIdError, match="has ended"):
        matcher.require(EOS)


def test_prefixes_are_tried_and_nothing_moves() -> None:
    matcher = Matcher(INDEX)
    assert matcher.accepted_prefix([259, 258, ord("}"), EOS, EOS]) == [259, 258, ord("}"), EOS]
    assert matcher.accepted_prefix([259, -1, 258]) == [259]
    assert matcher.accepted_prefix([]) == []
    assert matcher.accept(259)


def test_a_stop_token_ends_a_complete_text() -> None:
    matcher = Matcher(INDEX, stop_ids=[EOM, EOS, NEWLINE, 10**9])
    for token in (259, 258):
        assert not matcher.accept(EOM)
        assert EOM not in ids_of(matcher.row())
        assert matcher.accept(token)
    assert matcher.accept(ord("}"))
    assert ids_of(matcher.row()).tolist() == [EOS, EOM]
    bitmask = torch.zeros(2, VOCABULARY.words + 1, dtype=torch.int32)
    matcher.fill(bitmask, 1)
    assert ids_of(bitmask[1].numpy()).tolist() == [EOS, EOM]
    assert matcher.accept(EOM)
    assert matcher.is_terminated()
    assert not matcher.accept(EOM)
    matcher.rollback(2)
    assert not matcher.is_terminated()
    assert ids_of(matcher.row()).tolist() == [ord(" "), ord("}")]
    assert matcher.accept(ord("}"))
    assert matcher.accept(EOM)
    matcher.rollback(0)
    assert matcher.is_terminated()
    assert matcher.fresh().accept(259)
    matcher.reset()
    assert matcher.accept(259)


def test_a_stop_token_with_bytes_is_text() -> None:
    matcher = Matcher(sg.compile(sg.Regex("a\n?"), VOCABULARY), stop_ids=[NEWLINE])
    assert matcher.accept(ord("a"))
    assert matcher.accept(NEWLINE)
    assert not matcher.is_terminated()


@pytest.mark.parametrize("array", [np.zeros, torch.zeros])
def test_rows_of_a_batch_are_filled_in_place(array: Any) -> None:
    dtype = np.int32 if array is np.zeros else torch.int32
    bitmask = array((3, VOCABULARY.words + 2), dtype=dtype)
    bitmask[:] = -1
    Matcher(INDEX).fill(bitmask, 1)
    rows = np.asarray(bitmask)
    assert np.array_equal(rows[1, : VOCABULARY.words], sg.Guide(INDEX).bitmask())
    assert not rows[1, VOCABULARY.words :].any()
    assert (rows[[0, 2]] == -1).all()


@pytest.mark.parametrize(
    ("bitmask", "row"),
    [
        (torch.zeros(2, VOCABULARY.words, dtype=torch.int64), 1),
        (torch.zeros(2, VOCABULARY.words - 1, dtype=torch.int32), 1),
        (torch.zeros(VOCABULARY.words, dtype=torch.int32), 0),
        (torch.zeros(2, VOCABULARY.words, dtype=torch.int32), 2),
        (torch.zeros(2, VOCABULARY.words, dtype=torch.int32), -1),
        (torch.zeros(2, VOCABULARY.words, dtype=torch.int32, device="meta"), 1),
        (np.zeros((2, VOCABULARY.words), np.uint32), 0),
        ([[0] * VOCABULARY.words], 0),
    ],
)
@pytest.mark.parametrize("stop_ids", [(), (EOM,)])
def test_a_wrong_bitmask_is_refused_with_its_row(bitmask: Any, row: int, stop_ids: tuple[int, ...]) -> None:
    with pytest.raises(errors.BitmaskError, match=f"row {row}"):
        Matcher(INDEX, stop_ids=stop_ids).fill(bitmask, row)


def test_rollbacks_past_the_beginning_are_refused() -> None:
    matcher = Matcher(INDEX, stop_ids=[EOM])
    for token in (259, 258, ord("}"), EOM):
        assert matcher.accept(token)
    with pytest.raises(errors.RollbackError):
        matcher.rollback(5)
    with pytest.raises(errors.RollbackError):
        matcher.rollback(-1)
    assert matcher.is_terminated()
    matcher.rollback(4)
    assert matcher.accept(259)


def test_random_walks_against_a_list_of_tokens() -> None:
    """Accept, refuse, roll back, try drafts, fork: the matcher is always where a new one is after the same tokens."""
    rng = random.Random(5)
    for _ in range(40):
        matcher, tokens = Matcher(INDEX, stop_ids=[EOM]), list[int]()
        for _ in range(60):
            action = rng.random()
            if action < 0.6:
                token = rng.choice([*ids_of(matcher.row()).tolist(), rng.randrange(-1, 262)])
                if matcher.accept(token):
                    tokens.append(token)
            elif action < 0.8:
                n = rng.randint(0, len(tokens))
                matcher.rollback(n)
                del tokens[len(tokens) - n :]
            elif action < 0.9:
                drafts = [rng.randrange(260) for _ in range(3)]
                accepted = matcher.accepted_prefix(drafts)
                assert accepted == drafts[: len(accepted)]
            else:
                matcher = matcher.fork()
            again = Matcher(INDEX, stop_ids=[EOM])
            assert all(map(again.accept, tokens))
            assert np.array_equal(again.row(), matcher.row())
            assert again.is_terminated() == matcher.is_terminated()


def test_forced_text_and_other_tokens_for_it() -> None:
    matcher = Matcher(sg.compile(sg.JsonSchema(SCHEMA, whitespace="compact"), VOCABULARY))
    start = spelled('{"a":')
    assert matcher.forced_text() == '{"a":'
    for token in start[:2]:
        matcher.require(token)
    assert matcher.forced_text() == 'a":'
    matcher.retokenize(start[:2], [*start, 258])
    assert matcher.forced_text() == "}"
    matcher.retokenize([258], spelled("true"))  # other tokens for the same text
    with pytest.raises(errors.TokenIdError, match="token 1 of the new ones"):
        matcher.retokenize(spelled("ue"), spelled("ux"))
    assert matcher.forced_text() == "}"  # as before
    with pytest.raises(errors.RollbackError):
        matcher.retokenize(spelled("not so many tokens"), [5])
    assert matcher.forced_text() == "}"
    matcher.require(ord("}"))
    matcher.require(EOS)
    assert matcher.forced_text() == ""


def test_forced_text_waits_for_whole_characters() -> None:
    matcher = Matcher(sg.compile(sg.Regex("[ÄÖ]é|x€"), VOCABULARY))
    matcher.require("Ä".encode()[0])
    assert matcher.forced_text() == ""  # two bytes can follow
    matcher.require("Ä".encode()[1])
    assert matcher.forced_text() == "é"
    matcher.require("é".encode()[0])
    assert matcher.forced_text() == ""  # the rest of a character that has begun
    matcher.reset()
    matcher.require(ord("x"))
    assert matcher.forced_text() == "€"


# -- requests ----------------------------------------------------------------------------------------------


def test_requests_become_definitions() -> None:
    assert read_request({"regex": "a+"}) == sg.Regex("a+")
    assert read_request({"choice": ["a", "b.c"]}) == sg.Regex.choice(["a", "b.c"])
    assert read_request({"json_schema": SCHEMA}) == sg.JsonSchema(SCHEMA)
    assert read_request({"json_schema": json.dumps(SCHEMA), "whitespace": "compact"}) == sg.JsonSchema(
        SCHEMA, whitespace="compact"
    )
    assert read_request({"ebnf": 'a ::= "x"', "start": "a"}) == sg.Ebnf('a ::= "x"', start="a")
    assert read_request({"gbnf": 'a ::= "x"', "start": "a"}) == sg.Gbnf('a ::= "x"', start="a")
    assert read_request({"grammar": 'begin: "x"', "start": "begin"}) == sg.Grammar('begin: "x"', start="begin")
    assert read_request({"gbnf": 'root ::= "x"'}) == sg.Gbnf('root ::= "x"')
    assert read_request({"index": "invoice-2.v1"}) == Named("invoice-2.v1")


@pytest.mark.parametrize(
    "request_",
    [
        None, "a+", [], {}, {"regex": "a", "choice": ["b"]}, {"regex": 5}, {"regex": "a", "flags": 2},
        {"json_schema": SCHEMA, "whitespace": "none"}, {"json_schema": SCHEMA, "schema": {}}, {"json_schema": 5},
        {"json_schema": "{"}, {"json_schema": SCHEMA, "max_whitespace": "x"}, {"choice": []}, {"choice": [1]},
        {"choice": "ab"}, {"grammar": Path("/etc/passwd")}, {"grammar": "start: A", "import_paths": ["/"]},
        {"index": "../secret"}, {"index": "/etc/x"}, {"index": "a/b"}, {"index": "..\\x"}, {"index": ".hidden"},
        {"index": 3}, {"index": ""}, {"json_schema": SCHEMA, 5: 6}, {"json_schema": {1: {2}}},
    ],
)  # fmt: skip
def test_other_requests_are_refused(request_: Any) -> None:
    with pytest.raises(errors.StructgenError):
        check_definition(read_request(request_))  # type: ignore[arg-type]


def test_definitions_are_checked_without_a_tokenizer() -> None:
    check_definition(sg.Regex("a+"))
    check_definition(sg.Grammar('start: "a" <|eom|> "b" <[128008]>'))
    check_definition(sg.Grammar('start: "a" <[3]>'))
    with pytest.raises(errors.UnsupportedError):
        check_definition(sg.Regex(r"(a)\1"))
    with pytest.raises(errors.EmptyLanguageError):
        check_definition(sg.Regex("a(?!.?)b"))
    with pytest.raises(errors.BudgetExceededError):
        check_definition(sg.Regex("(a|b)*a(a|b){60}"))


def test_an_index_is_compiled_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[sg.Definition] = []
    ready = threading.Event()

    def slow(definition: sg.Definition, *args: Any, **options: Any) -> sg.Index:
        compiled.append(definition)
        ready.wait(5)
        return sg.compile(definition, *args, **options)

    monkeypatch.setattr(requests_module, "compile", slow)
    indexes = Indexes(VOCABULARY)
    found: list[sg.Index] = []
    threads = [threading.Thread(target=lambda: found.append(indexes.of(sg.Regex("a")))) for _ in range(5)]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1
    assert len(found) == 5
    assert len(set(map(id, found))) == 1


def test_an_error_is_not_remembered() -> None:
    indexes = Indexes(VOCABULARY, budget=sg.Budget(states=10))
    for _ in range(2):
        with pytest.raises(errors.BudgetExceededError):
            indexes.of(sg.Regex("abcdefghijklmnop"))
    assert indexes.of(sg.Regex("a")).vocabulary is VOCABULARY


def test_what_was_asked_for_longest_ago_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_module, "MOST_INDEXES", 2)
    indexes = Indexes(VOCABULARY)
    first, second = indexes.of(sg.Regex("a")), indexes.of(sg.Regex("b"))
    assert indexes.of(sg.Regex("a")) is first
    indexes.of(sg.Regex("c"))
    assert indexes.of(sg.Regex("a")) is first
    assert indexes.of(sg.Regex("b")) is not second


def test_a_server_s_settings_name_a_store_and_a_bundle(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    how = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    keys = [Ed25519PrivateKey.generate() for _ in range(2)]
    private = keys[0].private_bytes(how.Encoding.PEM, how.PrivateFormat.PKCS8, how.NoEncryption())
    public = []
    for number, key in enumerate(keys):
        public.append(str(tmp_path / f"{number}.pub"))
        pem = key.public_key().public_bytes(how.Encoding.PEM, how.PublicFormat.SubjectPublicKeyInfo)
        Path(public[-1]).write_bytes(pem)
    url = (tmp_path / "store").as_uri()
    with sg.Cache(tmp_path / "a", store=sg.ObjectStore(url, write="now", sign_key=private)) as builder:
        sg.compile(sg.Regex("built"), VOCABULARY, cache=builder)
        builder.export(tmp_path / "masks.sgb")
    settings = {"store": url, "on_miss": "refuse", "cache": str(tmp_path / "b"), "verify_keys": public[:1]}
    assert requests_module.indexes_with(VOCABULARY, settings).of(sg.Regex("built")).origin == "cache"
    bundle = {"cache": str(tmp_path / "masks.sgb"), "on_miss": "refuse"}
    assert requests_module.indexes_with(VOCABULARY, bundle).of(sg.Regex("built")).origin == "cache"
    settings |= {"cache": str(tmp_path / "c"), "verify_keys": public[1:]}
    refusing = requests_module.indexes_with(VOCABULARY, settings)
    with pytest.warns(errors.CacheWarning, match="not trusted"), pytest.raises(errors.MissingIndexError):
        refusing.of(sg.Regex("built"))
    before = sorted((tmp_path / "store").rglob("*"))
    writer = requests_module.indexes_with(VOCABULARY, {**settings, "on_miss": "compile", "verify_keys": []})
    writer.of(sg.Regex("new"))
    assert sorted((tmp_path / "store").rglob("*")) == before
    with pytest.raises(errors.CacheError, match="verify_keys"):
        requests_module.indexes_with(VOCABULARY, {**settings, "verify_keys": ["none.pub"]})


def test_misses_can_be_refused(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    sg.compile(sg.Regex("warm"), VOCABULARY, cache=cache)
    indexes = Indexes(VOCABULARY, cache=cache, on_miss="refuse")
    assert indexes.of(sg.Regex("warm")).origin == "cache"
    with pytest.raises(errors.CacheError, match="not in the cache"):
        indexes.of(sg.Regex("cold"))
    with pytest.raises(errors.CacheError, match="no cache"):
        Indexes(VOCABULARY, on_miss="refuse").of(sg.Regex("warm"))
    with pytest.raises(errors.DefinitionError, match="on_miss"):
        Indexes(VOCABULARY, on_miss="ignore")


def test_named_indexes_are_the_operators(tmp_path: Path) -> None:
    INDEX.save(tmp_path / "person.idx")
    other = sg.Vocabulary.from_bytes([b"a", b"b", None], eos_ids=[2])
    sg.compile(sg.Regex("a"), other).save(tmp_path / "other.idx")
    (tmp_path / "broken.idx").write_bytes(b"no index")
    indexes = Indexes(VOCABULARY, folder=tmp_path)
    index = indexes.of(Named("person"))
    assert index.definition == INDEX.definition
    assert indexes.of(Named("person")) is index
    INDEX.save(tmp_path / "shipped.sgx")
    assert indexes.of(Named("shipped")).definition == INDEX.definition
    with pytest.raises(errors.VocabularyMismatchError, match="other") as mismatch:
        indexes.of(Named("other"))
    assert str(tmp_path) not in str(mismatch.value)
    with pytest.raises(errors.FormatError, match="broken"):
        indexes.of(Named("broken"))
    for missing in (indexes, Indexes(VOCABULARY)):
        with pytest.raises(errors.CacheError, match="there is no index"):
            missing.of(Named("missing"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('root ::= a.b\na.b ::= a.b "." | [.<] # <x> .\n', sg.Ebnf),
        ('root ::= "\\"<" TagDispatch() (= "a")', sg.Ebnf),
        ('root ::= "a" .*', sg.Gbnf),
        ("root ::= <think> [a-z]", sg.Gbnf),
        ('root ::= "a" | !<[5]>', sg.Gbnf),
        ('start: "a" | .', sg.Grammar),
    ],
)
def test_grammars_of_engines_are_xgrammars_or_llama_cpps(text: str, expected: type[object]) -> None:
    assert type(read_engine_request("EBNF", text)) is expected
