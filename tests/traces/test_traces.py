"""Traces: judged by plain arithmetic over the scores, and by a list of what was appended and taken back."""

from __future__ import annotations

import html
import json
import math
import random
import re
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from judges.guides import BYTES
from judges.naive import small_vocabulary
from rich.console import Console

import structgen as sg
from structgen.definitions import canonical
from structgen.definitions.canonical import as_written
from structgen.runtime import ids_of
from structgen.traces.steps import TraceCandidate, TraceRollback, TraceStep

VOCABULARY = small_vocabulary()
SCHEMA = {
    "type": "object",
    "required": ["name", "tags"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string", "maxLength": 5}, "tags": {"items": {"enum": [1, "ab", None]}}},
}
DEFINITIONS = {
    "regex": sg.Regex(r"[ab]{2,9}-(true|\d+)"),
    "schema": sg.JsonSchema(SCHEMA, whitespace="compact"),
    "grammar": sg.Grammar('start: ("a" | "(" start ")")+'),
}


@pytest.fixture(scope="module", params=DEFINITIONS)
def index(request: pytest.FixtureRequest) -> sg.Index:
    return sg.compile(DEFINITIONS[request.param], VOCABULARY)


def softmax(scores: list[float]) -> list[float]:
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def entropy(probabilities: list[float]) -> float:
    return -math.fsum(p * math.log2(p) for p in probabilities if p)


def check_seen(step: TraceStep, scores: list[float], allowed: list[int], most: int) -> None:
    """A step is what its scores and its mask make of it."""
    before = softmax(scores)
    masked = [score if i in set(allowed) else -math.inf for i, score in enumerate(scores)]
    after = softmax(masked)
    assert step.allowed == len(allowed)
    assert step.kept == pytest.approx(math.fsum(before[i] for i in allowed), abs=1e-8)
    assert step.entropy_before == pytest.approx(entropy(before), abs=1e-8)
    assert step.entropy_after == pytest.approx(entropy(after), abs=1e-8)
    best = max(range(len(scores)), key=scores.__getitem__)
    assert step.kind == ("forced" if len(allowed) == 1 else "free" if best in allowed else "steered")
    for each in step.candidates:
        assert each.before == pytest.approx(before[each.token_id], abs=1e-8)
        assert each.after == pytest.approx(after[each.token_id], abs=1e-8)
        assert each.allowed == (each.token_id in allowed)
        assert each.data == (VOCABULARY.token(each.token_id) if each.token_id < VOCABULARY.size else None)
    named = [each.token_id for each in step.candidates]
    assert named == sorted(named, key=lambda i: (-before[i], i))
    for probabilities in (before, after):
        top = sorted(range(len(scores)), key=lambda i: -probabilities[i])[:most]
        assert {i for i in top if probabilities[i]} <= set(named)
    assert step.token_id in named


@pytest.mark.parametrize("wider", [0, 7])
def test_steps_are_what_scores_and_masks_make(index: sg.Index, wider: int) -> None:
    rng = random.Random(wider)
    for _ in range(8):
        guide = sg.TracedGuide(index, candidates=4)
        expected: list[tuple[list[float], list[int]]] = []
        while not guide.is_finished() and len(expected) < 30:
            scores = [rng.gauss(0, 4) for _ in range(VOCABULARY.size + wider)]
            guide.see(scores)
            allowed = ids_of(guide.bitmask()).tolist()
            expected.append((scores, allowed))
            token = rng.choice(allowed)
            assert guide.advance(token)
            assert guide.trace().steps[-1].token_id == token
        steps = guide.trace().steps
        assert len(steps) == len(expected)
        for step, (scores, allowed) in zip(steps, expected, strict=True):
            check_seen(step, scores, allowed, 4)


def test_scores_that_say_nothing() -> None:
    index = sg.compile(sg.Regex("[ab]"), VOCABULARY)
    for scores in ([math.nan] * VOCABULARY.size, [-math.inf] * VOCABULARY.size):
        guide = sg.TracedGuide(index)
        guide.see(np.array(scores))
        guide.advance(int(ids_of(guide.bitmask())[0]))
        [step] = guide.trace().steps
        assert (step.kind, step.kept, step.candidates) == ("chosen", None, ())
    with pytest.raises(sg.errors.BitmaskError):
        sg.TracedGuide(index).see([0.0] * (VOCABULARY.size - 1))
    with pytest.raises(sg.errors.BitmaskError):
        sg.TracedGuide(index).see([[0.0] * VOCABULARY.size])
    guide = sg.TracedGuide(index)
    guide.see(np.where(np.arange(VOCABULARY.size) == VOCABULARY.eos_ids[0], 0, -np.inf))  # all else is impossible
    guide.advance(int(ids_of(guide.bitmask())[0]))
    assert guide.trace().steps[0].kept is None


def test_kinds_without_scores(index: sg.Index) -> None:
    guide = sg.TracedGuide(index)
    rng = random.Random(5)
    for number in range(12):
        asked = number % 2 == 0
        row = guide.bitmask() if asked else sg.Guide.bitmask(guide)
        allowed = ids_of(row).tolist()
        guide.advance(rng.choice(allowed))
        step = guide.trace().steps[-1]
        assert step.asked == asked
        assert step.kind == ("forced" if len(allowed) == 1 or not asked else "chosen")
    assert guide.trace().calls_saved == 6


def test_what_was_taken_back(index: sg.Index) -> None:
    """Judged by a list; past the bound of steps, too."""
    rng = random.Random(1)
    for most in (1000, 9, 0):
        guide = sg.TracedGuide(index, max_steps=most)
        steps: list[list[int]] = []  # token, and whether it was taken back
        standing: list[int] = []
        for _ in range(120):
            if standing and rng.random() < 0.35:
                count = rng.randint(1, min(4, len(standing)))
                guide.rollback(count)
                for number in standing[-count:]:
                    steps[number][1] = 1
                del standing[-count:]
                continue
            token = rng.choice(ids_of(sg.Guide.bitmask(guide)).tolist())
            assert guide.advance(token)
            standing.append(len(steps))
            steps.append([token, 0])
        trace = guide.trace()
        assert [step.token_id for step in trace.steps] == [token for token, _ in steps[:most]]
        assert trace.omitted == len(steps) - len(trace.steps)
        # Of what was recorded, only that is known to have been taken back which nothing omitted stood in place of.
        assert trace.dropped == {n for n, (_, gone) in enumerate(steps[:most]) if gone}
        if most == 1000:
            tokens = [steps[n][0] for n in standing]
            assert trace.data == b"".join(VOCABULARY.token(t) or b"" for t in tokens)
            assert trace.text == trace.data.decode("utf-8", "replace")
        assert sg.Trace.from_json(json.dumps(trace.to_json())) == trace


def test_a_refused_token_is_no_step(index: sg.Index) -> None:
    guide = sg.TracedGuide(index)
    allowed = set(ids_of(guide.bitmask()).tolist())
    refused = next(i for i in range(VOCABULARY.size) if i not in allowed)
    assert not guide.advance(refused)
    with pytest.raises(sg.errors.RollbackError):
        guide.rollback(1)
    assert (guide.trace().steps, guide.trace().rollbacks) == ((), ())


@pytest.mark.parametrize("most", [1000, 3, 0])
def test_a_token_that_was_chosen_without_the_mask_is_taken_back(index: sg.Index, most: int) -> None:
    """Between any two steps: what is written, and where, is the same as without."""
    rng = random.Random(3)
    tried, plain = sg.TracedGuide(index, max_steps=most), sg.TracedGuide(index, max_steps=most)
    wrong = written = 0
    while written < 12 and not tried.is_finished():
        allowed = ids_of(sg.Guide.bitmask(tried)).tolist()
        refused = [i for i in range(VOCABULARY.size + 2) if i not in allowed]  # ids of padded scores, too
        tried.see([0.0] * (VOCABULARY.size + 2))
        if rng.random() < 0.5:
            tried.refuse(rng.choice(refused))
            wrong += 1
        token = rng.choice(allowed)
        written += tried.advance(token) and plain.advance(token)
    trace, other = tried.trace(), plain.trace()
    assert len(trace.steps) + trace.omitted == written + wrong
    assert {n for n, step in enumerate(trace.steps) if step.kind == "refused"} == trace.dropped
    kept = [step for n, step in enumerate(trace.steps) if n not in trace.dropped]
    assert all(step.asked and step.candidates for step in kept)
    assert [(s.token_id, s.path) for s in kept] == [(s.token_id, s.path) for s in other.steps[: len(kept)]]
    assert sg.Trace.from_json(json.dumps(trace.to_json())) == trace
    assert most < 1000 or (wrong and trace.text == other.text)


def test_forks_are_plain_and_resets_forget(index: sg.Index) -> None:
    guide = sg.TracedGuide(index)
    guide.advance(int(ids_of(guide.bitmask())[0]))
    assert type(guide.fork()) is sg.Guide
    guide.fork().advance(int(ids_of(guide.fork().bitmask())[0]))
    assert len(guide.trace().steps) == 1
    guide.reset()
    assert guide.trace().steps == ()


def test_a_traced_guide_is_a_guide(index: sg.Index) -> None:
    """Every public method and attribute does what that of a guide does."""
    rng = random.Random(2)
    for _ in range(5):
        plain, traced = sg.Guide(index, max_tokens=25), sg.TracedGuide(index, max_tokens=25)
        while not plain.is_finished():
            row = plain.bitmask()
            assert np.array_equal(row, traced.bitmask())
            filled = np.zeros_like(row)
            traced.fill_bitmask(filled)
            assert np.array_equal(row, filled)
            token = rng.randrange(VOCABULARY.size) if rng.random() < 0.3 else rng.choice(ids_of(row).tolist())
            assert plain.allows(token) == traced.allows(token)
            assert plain.advance(token) == traced.advance(token)
            assert (plain.is_accepting(), plain.is_finished()) == (traced.is_accepting(), traced.is_finished())


def test_json_paths() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "additionalProperties": False,
        "properties": {"a": {"items": {"type": "integer"}, "minItems": 2}, "b": {"const": "x"}},
    }
    vocabulary = sg.Vocabulary.bytewise()
    guide = sg.TracedGuide(sg.compile(sg.JsonSchema(schema, whitespace="compact"), vocabulary))
    # A number may go on until something else comes, and a name belongs to the object.
    pieces = [
        (b'{"a"', ""), (b":[", "/a"), (b"10,", "/a/0"), (b"2]", "/a/1"), (b',"b"', ""), (b':"x"', "/b"), (b"}", ""),
    ]  # fmt: skip
    for text, path in pieces:
        for byte in text:
            assert guide.advance(byte)
            assert guide.trace().steps[-1].path == path
    tags = sg.TracedGuide(sg.compile(sg.Regex("[{]"), vocabulary))
    tags.advance(ord("{"))
    assert tags.trace().steps[0].path is None


# -- batches ---------------------------------------------------------------------------------------------


def without_times(trace: sg.Trace) -> sg.Trace:
    return replace(trace, steps=tuple(replace(step, seconds=0.0, mask_seconds=0.0) for step in trace.steps))


def test_a_batch_records_what_guides_do() -> None:
    """Rows change places, are forked, removed, taken back: each has the trace of a guide that did the same."""
    indexes = [sg.compile(definition, VOCABULARY) for definition in DEFINITIONS.values()]
    rng = random.Random(3)
    batch = sg.TracedBatch(VOCABULARY, [*indexes, None], candidates=3)
    calls: list[list[tuple[str, Any]]] = [[] for _ in range(4)]
    of: list[sg.Index | None] = [*indexes, None]
    for _ in range(60):
        scores = np.array([[rng.gauss(0, 3) for _ in range(VOCABULARY.size)] for _ in of])
        masks = batch.bitmask()
        batch.see(scores)
        tokens = [rng.choice(ids_of(mask).tolist()) for mask in masks]
        tokens = [rng.randrange(VOCABULARY.size) if rng.random() < 0.1 else token for token in tokens]
        batch.advance(tokens)
        for row, token in enumerate(tokens):
            calls[row] += [("allows", 0), ("see", scores[row]), ("advance", token)]
        turn = rng.random()
        if turn < 0.2:
            order = [rng.randrange(len(of)) for _ in of]
            batch.reorder(order)
            calls, of = [[*calls[row]] for row in order], [of[row] for row in order]
        elif turn < 0.5:
            row = rng.randrange(len(of))
            back = rng.randint(0, min(2, len(batch.traces()[row].steps) - sum_back(batch.traces()[row])))
            batch.rollback([back], [row])
            calls[row].append(("rollback", back))
        elif turn < 0.55:
            row = rng.randrange(len(of))
            batch.reset([row])
            calls[row] = []
    for trace, row_calls, index in zip(batch.traces(), calls, of, strict=True):
        if index is None:
            assert {step.kind for step in trace.steps} <= {"unconstrained"}
            assert all(step.kept == 1 and step.allowed == VOCABULARY.size for step in trace.steps)
            continue
        guide = sg.TracedGuide(index, candidates=3)
        for name, argument in row_calls:
            getattr(guide, name)(argument)
        assert without_times(trace) == without_times(guide.trace())
    batch.remove([0])
    assert len(batch.traces()) == 3
    with pytest.raises(sg.errors.BatchError):
        batch.see(np.zeros((2, VOCABULARY.size)))


def sum_back(trace: sg.Trace) -> int:
    return sum(each.tokens for each in trace.rollbacks)


# -- JSON of strangers -----------------------------------------------------------------------------------


def some_trace() -> sg.Trace:
    candidate = TraceCandidate(1, b"\xff<", "", 0.25, 0.5, True)
    step = TraceStep(1, b"\xff<", "", "steered", True, 3, "/a", 0.5, 0.25, 0.5, 1.5, 0.5, (candidate,))
    special = TraceStep(2, None, "<|end|>", "forced", False, 1)
    inner = sg.Trace(9, (replace(step, kind="unconstrained"),))
    return sg.Trace(9, (step, special, step), (TraceRollback(2, 1),), 4, "définition\u2028", "<prompt>", inner)


def test_json_is_exact(tmp_path: Any) -> None:
    trace = some_trace()
    assert sg.Trace.from_json(trace.to_json()) == trace
    assert sg.Trace.from_json(json.dumps(trace.to_json()).encode()) == trace
    trace.save(tmp_path / "t.json")
    assert sg.Trace.load(tmp_path / "t.json") == trace
    assert trace.dropped == {1}


GONE = object()
WRONG: list[Any] = [
    None, True, -1, 1 << 31, 1e400, "x", "zz", [], {}, [1], [[]], {"a": 1}, math.nan, 2, "ab", [None], 0.5, "é",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    """A copy with something else in one place, or nothing."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if wrong is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = wrong
    return copy


@pytest.mark.parametrize(
    "place", places(json.loads(json.dumps(some_trace().to_json()))), ids=lambda p: "/".join(map(str, p))
)
def test_every_field_is_checked(place: tuple[Any, ...]) -> None:
    """Whatever stands in a field's place, the trace is sound or refused with the field's name."""
    data = json.loads(json.dumps(some_trace().to_json()))
    for wrong in [*WRONG, GONE]:
        changed = put(data, place, wrong)
        try:
            trace = sg.Trace.from_json(changed)
        except sg.errors.FormatError:
            continue
        check_sound(trace)
        trace.to_html()
        assert sg.Trace.from_json(trace.to_json()) == trace


def check_sound(trace: sg.Trace) -> None:
    assert (type(trace.vocabulary_size), type(trace.prompt)) == (int, str)
    for step in trace.steps:
        assert type(step.token_id) is int
        assert 0 <= step.token_id < 1 << 31
        assert step.data is None or type(step.data) is bytes
        assert step.kind in ("forced", "steered", "free", "chosen", "unconstrained")
        assert step.kept is None or 0 <= step.kept <= 1
        assert math.isfinite(step.seconds)
        for each in step.candidates:
            assert max(each.before, each.after) <= 1
            assert min(each.before, each.after) >= 0
    assert len(trace.dropped) == sum(each.tokens for each in trace.rollbacks)


@pytest.mark.parametrize("text", [
    "", "{", "null", "[]", '"x"', "[" * 100_000, '{"vocabulary_size": ' + "9" * 5000 + "}", b"\xff\xfe", "NaN",
    '{"vocabulary_size": 1, "steps": [], "more": 1}', '{"vocabulary_size": 1}',
    '{"steps": [], "vocabulary_size": NaN}',
    '{"vocabulary_size": 1, "steps": [], "rollbacks": [{"after": 1, "tokens": 1}]}',
], ids=lambda text: repr(text[:30]))  # fmt: skip
def test_what_is_no_trace_is_refused(text: str | bytes) -> None:
    with pytest.raises(sg.errors.FormatError):
        sg.Trace.from_json(text)


def test_traces_in_traces_have_an_end() -> None:
    text = '{"vocabulary_size": 1, "steps": []}'
    for _ in range(50):
        text = f'{{"vocabulary_size": 1, "steps": [], "unconstrained": {text}}}'
    with pytest.raises(sg.errors.FormatError, match="deeply"):
        sg.Trace.from_json(text)


def test_files_are_bounded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    some_trace().save(path)
    monkeypatch.setattr("structgen.traces.trace._MOST_BYTES", 100)
    with pytest.raises(sg.errors.FormatError, match="larger"):
        sg.Trace.load(path)
    with pytest.raises(sg.errors.FormatError, match="read"):
        sg.Trace.load(tmp_path / "none")


LARK = '// of two lines\nstart: "a"+\n'
AUTHORED = {"type": "object", "properties": {"b": {"maximum": 0.5}, "a": {"const": "\u00e9{[,"}}, "required": []}
OBJECT = """{
  "type": "object",
  "properties": {"b": {"maximum": 0.5}, "a": {"const": "\u00e9{[,"}},
  "required": []
}"""
LINES = """{
  "type": "sequence",
  "elements": [
    {"type": "regex", "pattern": "a", "flags": 0},
    {"type": "const_string", "value": "b"}
  ]
}"""
WRITTEN = [
    (sg.Regex(r"[a-c]\d|\u00e9"), r"[a-c]\d|\u00e9"),
    (sg.Regex("b", re.I, dialect="ecma"), "b\n(flags=2, dialect='ecma')"),
    (sg.JsonSchema(AUTHORED), OBJECT),
    (sg.JsonSchema('{"const":0.10}', whitespace="compact"), "{\"const\": 0.10}\n(whitespace='compact')"),
    (sg.Grammar(LARK), LARK),
    (sg.Gbnf('root ::= "a" # so\n'), 'root ::= "a" # so\n'),
    (sg.Regex("a") + "b", LINES),
]


@pytest.mark.parametrize(("definition", "written"), WRITTEN, ids=lambda each: getattr(each, "kind", ""))
def test_the_definition_is_as_its_author_wrote_it(definition: sg.Definition, written: str) -> None:
    index = sg.compile(definition, BYTES, eager=False)
    trace = sg.TracedGuide(sg.Index.from_buffer(index.to_bytes())).trace()
    assert trace.definition == written
    assert f">{html.escape(written, quote=False)}</dd>" in trace.to_html().replace("&#34;", '"').replace("&#39;", "'")
    assert index.graph(limit=1).title.startswith(written.strip().split("\n")[0])
    assert index.definition == definition.canonical()  # by which caches find it


def test_a_definition_without_source_is_said_to_be_canonical(tmp_path: Any) -> None:
    interegular = pytest.importorskip("interegular")
    definition = sg.Fsm(interegular.parse_pattern("ab").to_fsm())
    trace = sg.TracedGuide(sg.compile(definition, BYTES)).trace()
    assert trace.definition == f"canonical text: {definition.canonical()}"
    (tmp_path / "own.lark").write_text('A: "a"')
    (tmp_path / "text.lark").write_text("%import .own.A\nstart: A")
    index = sg.compile(sg.Grammar(tmp_path / "text.lark"), BYTES, eager=False)
    assert sg.TracedGuide(index).trace().definition == "%import .own.A\nstart: A"  # wherever its imports are
    assert index.graph().title == "%import .own.A start: A: the parser's states"


@pytest.mark.parametrize("kind", ["regex", "grammar", "json_schema", "structural_tag", "gbnf"])
@pytest.mark.parametrize("text", ["", "[", "5", '["x"]', "[" * 5000, '["grammar",[],"\\ud800"]'])
def test_a_definition_that_cannot_be_read_is_text(kind: str, text: str) -> None:
    assert as_written(kind, text) in (f"canonical text: {text}", "\ud800")


@pytest.mark.parametrize("levels", [39, 40, 30_000])
def test_json_that_is_nested_deeply_stays_as_it_is(levels: int) -> None:
    text = "[" * levels + '"a, long, text, that, fills, a, line, of, its, own, and, some, more, of, it"' + "]" * levels
    assert (canonical._indented(text) == text) is (levels >= 40)


def test_deep_definitions_are_shown() -> None:
    deep = sg.JsonSchema('{"not":' * 400 + "true" + "}" * 400)
    assert as_written("json_schema", deep.canonical()) == deep.text


def test_a_definition_in_one_line() -> None:
    schema = {"properties": {"a": {"const": "b  c"}}}
    index = sg.compile(sg.JsonSchema(schema, whitespace="compact"), BYTES, eager=False)
    assert index.graph().title == '{"properties": {"a": {"const": "b  c"}}} (whitespace=\'compact\')'


def test_long_definitions_are_cut() -> None:
    index = sg.compile(sg.Regex("a{1,3}|" + "b" * 20_000), VOCABULARY)
    assert len(sg.TracedGuide(index).trace().definition) == 10_000


# -- to be looked at -------------------------------------------------------------------------------------


def test_in_a_terminal() -> None:
    step = TraceStep(1, b"[bold red]\x1b[31m\x07", "", "free", True, 3)
    console = Console(record=True, width=200, force_terminal=False)
    console.print(sg.Trace(9, (step,)))
    text = console.export_text()
    assert "[bold red]⟨U+001B⟩[31m⟨U+0007⟩" in text
    assert "tokens: 1" in text


def test_every_field_is_documented() -> None:
    for kind in (sg.Trace, TraceStep, TraceCandidate, TraceRollback):
        for field in fields(kind):
            assert re.search(rf"\b{field.name}\b", kind.__doc__ or ""), (kind, field.name)


def test_guides_load_no_traces() -> None:
    script = (
        "import sys, structgen; structgen.Guide, structgen.GuideBatch, structgen.Index\n"
        "import structgen.integrations.transformers.processor\n"
        "print([n for n in sys.modules if 'structgen.traces' in n or 'structgen.pages' in n or n == 'jinja2'"
        " and 'torch' not in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_trace_in_a_log_is_one_line() -> None:
    guide = sg.TracedGuide(sg.compile(sg.Regex("[a\n]{100}"), VOCABULARY))
    letter, newline = VOCABULARY.byte_ids[ord("a")], VOCABULARY.byte_ids[ord("\n")]
    for token in [letter, newline] * 50:
        guide.advance(token)
    text = "a\n" * 20
    assert repr(guide.trace()) == f"<Trace of 100 tokens, 100 of them forced: {text + '…'!r}>"
    assert "\n" not in repr([guide.trace()])
