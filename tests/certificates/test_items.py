"""Items beside what is known of them: planted machines, all masks of small vocabularies, what has no defects."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from pathlib import Path
from typing import Any

import lark
import numpy as np
import pytest
from judges.lark_judge import parses
from judges.patterns import patterns
from lark.indenter import PythonIndenter
from numpy.typing import NDArray

import structgen as sg
from structgen import grammars
from structgen.certificates.values import CertificateItem, Finding
from structgen.definitions.canonical import definition_of
from structgen.definitions.loading import load_definitions
from structgen.definitions.values import Definition
from structgen.errors import GrammarWarning
from structgen.runtime import ids_of

_DEFINITIONS = Path(__file__).resolve().parents[2] / "examples/definitions"


# -- planted defects -----------------------------------------------------------------------------------------


def test_tokens_that_nothing_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile refuses such a vocabulary, so the index is given another one afterwards."""
    whole = sg.Vocabulary.from_bytes([b"a", b"b", b"c", None], eos_ids=[3])
    lacking = sg.Vocabulary.from_bytes([b"a", b"b", None, None], eos_ids=[3])
    for definition in (sg.Regex("ab|ac"), sg.Regex("ac|b"), sg.Regex("acb|bbb")):
        index = sg.compile(definition, whole, eager=False)
        assert sg.certify(index, items=["no_dead_end"])["no_dead_end"].verdict == "proved"
        planted = sg.compile(definition, whole, eager=False)
        monkeypatch.setattr(planted.machine, "vocabulary", lacking)
        assert re.fullmatch(definition.pattern, "ac" if definition.pattern != "acb|bbb" else "acb")
        item = sg.certify(planted, items=["no_dead_end"])["no_dead_end"]
        stuck = {"ab|ac": None, "ac|b": "a", "acb|bbb": "a"}[definition.pattern]  # b finishes what a begins in one
        assert item.verdict == ("proved" if stuck is None else "refuted")
        assert [(each.severity, each.witness) for each in item.findings] == ([("error", stuck)] if stuck else [])


@pytest.mark.parametrize(
    "definition",
    [sg.Gbnf('root ::= "[" root "]" | "b" | "ac"'), sg.Grammar('start: "[" start "]" | "b" | "ac"')],
    ids=lambda each: each.kind,
)
def test_what_nothing_finishes_is_told_as_text(monkeypatch: pytest.MonkeyPatch, definition: sg.Definition) -> None:
    """Also where brackets make more configurations than can be looked at."""
    whole = sg.Vocabulary.from_bytes([b"a", b"b", b"c", b"[", b"]", None], eos_ids=[5])
    lacking = sg.Vocabulary.from_bytes([b"a", b"b", None, b"[", b"]", None], eos_ids=[5])
    index = sg.compile(definition, whole, eager=False)
    assert sg.certify(index, items=["no_dead_end"])["no_dead_end"].verdict == "proved"
    planted = sg.compile(definition, whole, eager=False)
    monkeypatch.setattr(planted.machine, "vocabulary", lacking)
    row = planted.machine.row  # which is made of bytes that were read before
    monkeypatch.setattr(planted.machine, "row", lambda config: row(config) & ~4)
    (finding,) = sg.certify(planted, items=["no_dead_end"], budget=sg.Budget(seconds=60))["no_dead_end"].findings
    assert finding.witness == "a"


@pytest.mark.parametrize("planted", ["EOS too early", "EOS refused"])
def test_eos_in_the_wrong_place(monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", None], eos_ids=[2])
    index = sg.compile(sg.Regex("a(ab)*"), vocabulary)
    assert sg.certify(index, items=["end_of_text"])["end_of_text"].verdict == "proved"
    row = index.machine.row

    def wrong(config: object) -> NDArray[np.int32]:
        found: NDArray[np.int32] = row(config).copy()
        found[0] = found[0] | 4 if planted == "EOS too early" else found[0] & ~4
        return found

    monkeypatch.setattr(index.machine, "row", wrong)
    item = sg.certify(index, items=["end_of_text"])["end_of_text"]
    (finding,) = item.findings
    assert (item.verdict, finding.severity) == ("refuted", "error")
    assert finding.witness is not None
    assert bool(re.fullmatch("a(ab)*", finding.witness)) == (planted == "EOS refused")


# -- tokens --------------------------------------------------------------------------------------------------


def test_tokens_that_never_come() -> None:
    """By all masks of all texts of up to seven letters."""
    draw, found = random.Random(5), 0
    words = ["".join(word) for length in range(2, 5) for word in itertools.product("abc", repeat=length)]
    for pattern in patterns(40):
        tokens = [b"a", b"b", b"c", *(word.encode() for word in draw.sample(words, 12)), None]
        index = sg.compile(sg.Regex(pattern), sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1]))
        seen: set[int] = set()
        todo = [(sg.Guide(index), 0)]
        while todo:
            guide, length = todo.pop()
            ids = ids_of(guide.bitmask()).tolist()
            seen.update(ids)
            if length < 7:
                for token in (each for each in ids if each < 3):
                    todo.append((guide.fork(), length + 1))
                    assert todo[-1][0].advance(token)
        item = sg.certify(index, items=["never_allowed"])["never_allowed"]
        never = sorted({*range(len(tokens) - 1)} - seen)
        assert item.verdict == "proved", pattern
        assert item.facts["ids"] == never, pattern
        assert item.facts["never"] == len(never)
        found += len(never)
    assert found > 100


def test_tokens_that_no_lexeme_of_a_grammar_has() -> None:
    """By Lark, on all texts of up to nine letters: what is said never to come does not."""
    text = 'start: (NAME ":" NUMBER ";"?)+\nNAME: /a[ab]*/\nNUMBER: /1+/\n%ignore " "'
    letters = "ab1:; "
    words = ["".join(word) for length in range(2, 5) for word in itertools.product(letters, repeat=length)]
    tokens = [*letters, *random.Random(3).sample(words, 14), "x", "a:x", "ax"]
    index = sg.compile(sg.Grammar(text), sg.Vocabulary.from_bytes([*map(str.encode, tokens), None], eos_ids=[23]))
    item = sg.certify(index, items=["never_allowed"])["never_allowed"]
    assert item.facts["never"] == len(item.facts["ids"])
    assert {20, 21, 22} < {*item.facts["ids"]}
    parser, found = lark.Lark(text, parser="lalr"), set[int]()
    short = ("".join(word) for word in itertools.product(letters, repeat=5))
    accepted = [word for word in short if parses(parser, word)]
    joined = [first + second for first in accepted[:60] for second in ("", *accepted)]
    for word in joined:
        found |= {i for i, token in enumerate(tokens) if token in word}
    assert len(found) > 6
    assert found.isdisjoint(item.facts["ids"])


# -- to be looked at -----------------------------------------------------------------------------------------


def test_hostile_names_are_text() -> None:
    hostile = "<script>alert(1)</script>[bold]\x1b[2J\u202e"
    finding = Finding("warning", hostile, hostile, hostile)
    item = CertificateItem("language", "refuted", hostile, {}, (finding,))
    certificate = sg.Certificate("regex", hostile, "", (item,))
    difference = sg.Difference("refuted", "refuted", hostile, hostile, True, None, 1, "")
    for html in (certificate._repr_html_(), difference._repr_html_()):
        assert "<script" not in html
        assert "&lt;script&gt;" in html
        assert "[bold]" in html
        assert not re.search("[\x1b\u202e]", html)


# -- no false alarm ------------------------------------------------------------------------------------------


def alarms(definition: Definition) -> list[tuple[str, str]]:
    """Where errors and warnings are, with their items."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        index = sg.compile(definition, sg.Vocabulary.bytewise(), eager=False)
    found = sg.certify(index, budget=sg.Budget(seconds=60)).findings
    return [(item.name, finding.where) for item, finding in found if finding.severity != "note"]


@pytest.mark.parametrize("name", sorted(path.name for path in _DEFINITIONS.iterdir()))
def test_examples(name: str) -> None:
    for named in load_definitions([_DEFINITIONS / name]):
        assert alarms(named.definition) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", grammars.names())
def test_grammars(name: str) -> None:
    options: dict[str, dict[str, Any]] = {"python3": {"start": "file_input", "postlex": PythonIndenter()}}
    options["c_names"] = options["java"] = {"ambiguity": "all"}
    # The comment that begins what no text has is what SQLite reads there: its rule `unreadable`.
    expected = [("terminals", '"--"')] if name == "sql" else []
    assert alarms(sg.Grammar(grammars.path(name), **options.get(name, {}))) == expected


# -- the definition behind an index --------------------------------------------------------------------------


@pytest.mark.parametrize("definition", [
    sg.Regex("a|(?i:b)", re.ASCII),
    sg.JsonSchema('{"maximum": 1.00000000000000000000001, "x": "\\u001b"}'),
    sg.JsonSchema({"type": "array"}, whitespace=2, property_order="any", lenient=True),
    sg.JsonSchema({"type": "object"}, whitespace="any", max_whitespace=None, additional_properties=False),
    sg.JsonSchema({"type": "object"}, whitespace="any", max_whitespace=7),
    sg.JsonSchema({"type": "object"}, style="qwen_xml", excludes=("</x>",)),
    sg.Gbnf('top ::= "a" top | "b"', start="top"),
    sg.Grammar('begin: A*\nA: "a"', start="begin", ambiguity="all"),
    sg.Grammar("start: VALUE\n%declare VALUE", definitions={"VALUE": sg.JsonSchema({"enum": [1.0, "a"]})}),
    sg.Grammar(grammars.path("python3"), start="file_input", postlex=PythonIndenter()),
    sg.StructuralTag({"type": "sequence", "elements": [
        {"type": "const_string", "value": "a"}, {"type": "json_schema", "json_schema": {"type": "null"}},
    ]}, whitespace="compact"),
], ids=lambda each: each.kind)  # fmt: skip
def test_definitions_are_read_back(definition: Definition) -> None:
    read = definition_of(definition.kind, definition.canonical())
    assert type(read) is type(definition)
    assert read.canonical() == definition.canonical()


@pytest.mark.parametrize(
    ("kind", "canonical"),
    [("fsm", "{}"), ("regex", "["), ("regex", '["regex", 3, 0]'), ("json_schema", '["json_schema"]'), ("nothing", "")],
)
def test_what_is_no_source_is_refused(kind: str, canonical: str) -> None:
    with pytest.raises(sg.errors.DefinitionError, match="definition="):
        definition_of(kind, canonical)
