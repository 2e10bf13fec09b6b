"""`structgen.migrate`: what the engines that are installed accept of the same definition, and their objects."""

from __future__ import annotations

import datetime
import enum
import itertools
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from judges.patterns import patterns

import structgen as sg
from structgen import migrate
from structgen.definitions import Definition
from structgen.errors import DefinitionError, StructgenError, UnsupportedError

BYTES = sg.Vocabulary.bytewise()
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
PEOPLE = [
    '{"name":"a"}', '{"name": "a", "age": 3}', '{"age":3,"name":"a"}', '{"name":"\\u0061"}', '{"name":"\\/"}', '{ }',
    '{"name" :"a"}', '{\n  "name": "a"\n}', '{"name":"a","x":1}', '{"name": "a"}', '{"name":1}',
    '{"name":"a", "age": 3}', '{"name"=?"a" | "age"=?3}', '{"name"="a"|"age"=3}', '{"name"=?"a"  "age"=?3}',
]  # fmt: skip


def accepted(found: migrate.Migrated, texts: list[str]) -> list[bool]:
    index = sg.compile(found.definition, BYTES, eager=False)
    return [index.match(text.encode()).accepted for text in texts]


# -- XGrammar ----------------------------------------------------------------------------------------------


def test_what_was_migrated_is_compiled_as_its_definition() -> None:
    found = migrate.from_llama_cpp('root ::= "yes" | "no"')
    assert sg.compile(found, BYTES).definition == found.definition.canonical()
    assert sg.compile(sg.tag("<", found, ">"), BYTES).match(b"<yes>").accepted
    answer = sg.Grammar('start: "<" TERM ">"', definitions={"TERM": found})
    assert sg.compile(answer, BYTES, eager=False).match(b"<no>").accepted


def by_xgrammar(grammar: Any, texts: list[str]) -> list[bool]:
    from xgrammar.testing import _is_grammar_accept_string as accepts

    return [bool(accepts(grammar, text)) for text in texts]


@pytest.mark.parametrize(
    "options",
    [
        {}, {"any_whitespace": False, "separators": (",", ":")}, {"strict_mode": False}, {"max_whitespace_cnt": 1},
        {"any_whitespace": False, "indent": 2}, {"any_whitespace": False},
        {"any_whitespace": False, "separators": (", ", ":")},
        {"any_whitespace": False, "indent": 2, "separators": (",", ":")},
        {"any_whitespace": False, "separators": (" | ", "=?")},
    ],
)  # fmt: skip
def test_schemas_of_xgrammar(options: dict[str, Any]) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    judge = xgrammar.Grammar.from_json_schema(json.dumps(PERSON), **options)
    found = migrate.from_xgrammar(PERSON, "json_schema", **options)
    assert accepted(found, PEOPLE) == by_xgrammar(judge, PEOPLE)
    assert accepted(migrate.from_xgrammar(judge), PEOPLE) == by_xgrammar(judge, PEOPLE)


def test_grammars_and_regexes_of_xgrammar() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    text = 'top ::= top "+" num | num\nnum ::= [0-9]{1,2} (= "+")'
    texts = ["1", "1+22", "1++2", "123", ""]
    found = migrate.from_xgrammar(text, root_rule_name="top")
    assert accepted(found, texts) == by_xgrammar(xgrammar.Grammar.from_ebnf(text, root_rule_name="top"), texts)
    assert "Look-ahead" in found.changes[0]
    for pattern in (r"(?:a|b)+c?", r"[^a]\d{2,}", "a.b"):
        texts = ["ac", "b", "x12", "a\nb", "axb", "", "x1"]
        judge = xgrammar.Grammar.from_regex(pattern)
        assert accepted(migrate.from_xgrammar(pattern, "regex"), texts) == by_xgrammar(judge, texts)
    for separators in ("", ":"), (",",):
        with pytest.raises(DefinitionError, match="separator"):
            migrate.from_xgrammar(PERSON, "json_schema", any_whitespace=False, separators=separators)
    with pytest.raises(UnsupportedError, match="unheard_of"):
        migrate.from_xgrammar(PERSON, "json_schema", unheard_of=True)
    with pytest.raises(DefinitionError, match="no format"):
        migrate.from_xgrammar("a", "yacc")


def test_objects_of_xgrammar_say_what_they_are() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<", "content": {
        "type": "json_schema", "json_schema": {"enum": ["a", 1]}}, "end": ">"}}  # fmt: skip
    texts = ['<"a">', "<1>", "<2>", "1"]
    judged = by_xgrammar(xgrammar.Grammar.from_structural_tag(tag), texts)
    made = xgrammar.StructuralTag.model_validate(tag)
    assert migrate.from_xgrammar(tag) == migrate.from_xgrammar(tag, "structural_tag")
    for given in (made, tag):
        for format in ("structural_tag", ""):
            assert accepted(migrate.from_xgrammar(given, format), texts) == judged == [True, True, False, False]
    assert migrate.from_xgrammar(PERSON, strict_mode=False) == migrate.from_xgrammar(
        PERSON, "json_schema", strict_mode=False
    )
    tokenizer = xgrammar.TokenizerInfo(["a", "b", "<e>"], stop_token_ids=[2])
    grammar = xgrammar.Grammar.from_regex("a+b")
    compiled = xgrammar.GrammarCompiler(tokenizer).compile_grammar(grammar)
    texts = ["ab", "aab", "b", "a"]
    for each in (grammar, compiled):
        assert accepted(migrate.from_xgrammar(each), texts) == by_xgrammar(grammar, texts)


def test_grammars_of_xgrammar_in_larks_syntax() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    named = {"pair": 'start: /[a-z]+/ ":" /[a-z]+/', "n": xgrammar.Grammar.from_regex("[0-9]+")}
    text, texts = 'start: "(" @pair ")" @n', ["(a:b)1", "(a:)1", "(ab:c)12", "(a:b)"]
    judge = xgrammar.Grammar.from_lark(text, named_grammars=named)
    found = migrate.from_xgrammar(text, "lark", named_grammars=named, tokenizer_info=None)
    assert accepted(found, texts) == by_xgrammar(judge, texts)
    with pytest.raises(DefinitionError, match="named_grammars is a list"):
        migrate.from_xgrammar(text, "lark", named_grammars=["a"])


@pytest.mark.parametrize(
    "text",
    [
        r"start: /\u{43}[\u{44}\cA\]]+\\u/", r"start: /x\cAy\cb/", r"start: /\/\(\u{2f}/",
        "start: /(?<n>a)(?<m>b)[(?<n>]/", r"start: /^C[$^]D$|x^x-z\$$|a$b/",
        r'start: T | /\(/ T' + "\n" + r'T: "a" /\u{62}x-z|x-z|b/',
        'start: foo-bar foo_bar A-B\nfoo-bar: "a"\nfoo_bar: "b"\nA-B: /[x-y]-z/  // no-name',
        'start: a-b\na-b: "x-y" foo -> an-alias\nfoo: "/a-b/"',
    ],
)  # fmt: skip
def test_spellings_of_xgrammars_lark(text: str) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    texts = [
        "CD\\u", "C\x01D]\\u", "C", "x\x01y\x02", "xcAycb", "ab<", "ab(", "abn", "ab", "/(/", "abx-z", "aby-z",
        "aax-z", "ab-z", "x-y/a-b/", "x-y", "x_y/a-b/", "C$D", "C^D", "CD", "xx-z$", "xx-z",
    ]  # fmt: skip
    expected = by_xgrammar(xgrammar.Grammar.from_lark(text), texts)
    assert any(expected)
    assert accepted(migrate.from_xgrammar(text, "lark"), texts) == expected


def test_what_xgrammar_writes_down_is_read() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    draw = random.Random(4)
    for schema in (PERSON, {"type": "array", "items": {"enum": ["a", 1]}, "maxItems": 2}, {"type": "number"}, {}):
        judge = xgrammar.Grammar.from_json_schema(json.dumps(schema))
        texts = [*PEOPLE, "[]", '["a", 1]', '["a","a","a"]', "1.5e3", "-0", "01", "null"]
        texts += ["".join(draw.sample(text, len(text))) for text in texts]
        assert accepted(migrate.from_xgrammar(judge), texts) == by_xgrammar(judge, texts)


# -- llguidance, guidance ------------------------------------------------------------------------------------


def by_llguidance(grammar: str, texts: list[str]) -> list[bool]:
    llguidance = pytest.importorskip("llguidance")
    tokenizer = llguidance.LLTokenizer("byte")
    found = []
    for text in texts:
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        assert not matcher.is_error(), matcher.get_error()
        found.append(matcher.consume_tokens(list(text.encode())) and matcher.is_accepting())
    return found


@pytest.mark.parametrize(
    ("format", "text", "texts"),
    [
        ("lark", 'start: start "+" N | N\nN: /[0-9]+/', ["1", "1+22", "1++2", "+"]),
        ("gbnf", 'root ::= [0-9]+ ("+" [0-9])*', ["1", "1+2", "1+22"]),
        ("regex", r"(?<y>\d{2})[a-c--b]", ["12a", "12b", "٢٢c"]),
        ("choice", '["yes", "no.", "n"]', ["yes", "no.", "nox", "n"]),
        ("json_schema", json.dumps(PERSON), PEOPLE),
    ],
)
def test_formats_of_llguidance(format: str, text: str, texts: list[str]) -> None:
    llguidance = pytest.importorskip("llguidance")
    grammar = llguidance.grammar_from(format, text)
    texts = [each for each in texts if "--" not in text or each != "12b"] if format == "regex" else texts
    judged = by_llguidance(grammar, texts)
    assert accepted(migrate.from_llguidance(text, format), texts) == judged
    if format != "regex":
        assert accepted(migrate.from_llguidance(grammar), texts) == judged


def test_options_of_llguidance() -> None:
    compact = {**PERSON, "x-guidance": {"whitespace_flexible": False, "lenient": False, "item_separator": ","}}
    texts = ['{"name":"a"}', '{"name": "a"}']
    assert accepted(migrate.from_llguidance(json.dumps(compact), "json"), texts) == [True, False]
    spaced = {**PERSON, "x-guidance": {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}}
    assert accepted(migrate.from_llguidance(json.dumps(spaced), "json"), texts) == [False, True]
    escaped = {**PERSON, "x-guidance": {"json_allowed_escapes": '"'}}
    texts = [r'{"name":"\""}', r'{"name":"\n"}']
    assert accepted(migrate.from_llguidance(json.dumps(escaped), "json"), texts) == [True, False]
    general = {"x-guidance": {"json_allow_general_unicode_escapes": True}}
    assert accepted(migrate.from_llguidance(json.dumps(general), "json"), [r'"\u0041"', r'"\u00"']) == [True, False]
    with pytest.raises(UnsupportedError, match="max_tokens"):
        migrate.from_llguidance({"grammars": [{"lark_grammar": "start: /b/"}], "max_tokens": 3})
    with pytest.raises(DefinitionError, match="no format"):
        migrate.from_llguidance("a", "yacc")
    with pytest.raises(DefinitionError, match="no grammar of llguidance"):
        migrate.from_llguidance("{}")


def test_strings_are_escaped_as_by_llguidance() -> None:
    texts = [r'"\t"', r'"\u0009"', r'"\u001f"', r'"\u0041"', r'"\/"', r'"\""', r'"\u0022"', '"é"', r'"\u00e9"']
    for schema in ({"type": "string"}, {"type": "string", "pattern": "^.$"}, {"enum": ["\t", "é"]}):
        grammar = pytest.importorskip("llguidance").grammar_from("json_schema", json.dumps(schema))
        judged = by_llguidance(grammar, texts)
        assert accepted(migrate.from_llguidance(json.dumps(schema), "json_schema"), texts) == judged, schema


def test_grammars_of_llguidance_that_hold_others() -> None:
    grammars: list[dict[str, object]] = [
        {"lark_grammar": 'start: "<" @pair ">" @num'},
        {"name": "pair", "lark_grammar": 'start: A ":" A\nA: /-?[0-9]+/'},
        {"name": "num", "json_schema": {"type": "integer", "x-guidance": {"whitespace_flexible": False}}},
    ]
    texts = ["<1:2>3", "<1:>3", "<1:2>", "<-1:20>0", "<1: 2>3"]
    whole = {"grammars": grammars, "max_tokens": None}
    assert accepted(migrate.from_llguidance(whole), texts) == by_llguidance(json.dumps(whole), texts)
    grammars[1]["lark_grammar"] = 'start: @num ":" @num'
    assert accepted(migrate.from_llguidance(whole), texts) == by_llguidance(json.dumps(whole), texts)
    grammars[1]["lark_grammar"] = 'start: @num ":" @pair'
    with pytest.raises(UnsupportedError, match="the grammar @pair holds itself"):
        migrate.from_llguidance(whole)


@pytest.mark.nightly
def test_terminals_of_larger_grammars() -> None:
    """Longest matches: all that llguidance takes, which gives nothing back, and no more than XGrammar, which may."""
    xgrammar = pytest.importorskip("xgrammar")
    pytest.importorskip("llguidance")
    texts = ["".join(each) for n in range(6) for each in itertools.product("abc", repeat=n)]
    sources = ['start: A "c"\nA: /a|ab/', 'start: A "bc"\nA: /a|ab/', 'start: A B "c"\nA: /a|aab/\nB: /(b|bb)?/']
    some = 0
    for source in [*sources, *(f"start: /{pattern}/ (/c/ /{pattern}/)*" for pattern in patterns(12))]:
        found = accepted(migrate.from_llguidance(source), texts)
        assert accepted(migrate.from_xgrammar(source, "lark"), texts) == found, source
        least, most = by_llguidance(source, texts), by_xgrammar(xgrammar.Grammar.from_lark(source), texts)
        assert all(low <= mine <= high for low, mine, high in zip(least, found, most, strict=True)), source
        some += any(least)
    assert some >= 10


def test_grammars_of_xgrammar_within_others() -> None:
    """Words, pairs of words and numbers, lists of pairs; a schema in a grammar in braces."""
    xgrammar = pytest.importorskip("xgrammar")
    inner = {"word": "start: /[a-z]+/", "pair": 'start: @word ":" (@word | %json {"type": "integer"})'}
    lark = 'start: %lark {\n%ignore " "\nstart: A ":" %json {"enum": ["a", 1]}\nA: /[a-c]+/\n}'
    texts = ["".join(each) for n in range(6) for each in itertools.product('a1:"', repeat=n)]
    texts += ["ab:-12", "a : 1", "a :1"]
    for text, named in (
        ("start: @pair", inner),
        ('start: @pair (":" @pair)*', inner),
        ('start: "a" @pair', inner),
        (lark, {}),
    ):
        judged = by_xgrammar(xgrammar.Grammar.from_lark(text, named_grammars=named), texts)
        assert True in judged
        assert accepted(migrate.from_xgrammar(text, "lark", named_grammars=named), texts) == judged, text
    many = {f"{g}{i}": f"start: @g{i + 1} @h{i + 1}" for i in range(9) for g in "gh"}  # 512 of the last ones
    many |= {"g9": 'start: "a"', "h9": 'start: "b"'}
    with pytest.raises(UnsupportedError, match="more than 100 grammars"):
        migrate.from_xgrammar("start: @g0", "lark", named_grammars=many)


@pytest.mark.parametrize("grammar", ["start: {}", "%llguidance {{}}\n\nstart: REGEX\nREGEX: {}\n\n"])
@pytest.mark.parametrize("regex", ["/x|xa/", r"/a*?|x\/y/", "/(X|XA)b?/i", "/(?i)x|y[Ab]/"])
def test_a_grammar_that_is_one_regex(grammar: str, regex: str) -> None:
    texts = ["".join(each) for n in range(1, 5) for each in itertools.product("xab/y", repeat=n)] + ["Xa", "", "YA"]
    judged = by_llguidance(grammar.format(regex), texts)
    assert True in judged
    assert accepted(migrate.from_llguidance(grammar.format(regex)), texts) == judged


@pytest.mark.parametrize(
    "terminal",
    [
        'T: "x" /a|b/ "y"', 'T: "x" R "y"\nR: /a|b/  // "c" | /d|e/', "T: /x|a/ /a|b/+",
        'T: "x" | /a|b/i "y" /a|b/ | "y"', r'T: "x/" /[|\/]|b/ "y"', "T: /(?i)x|a/", "T: /x|\\// /a b | b # c\n/x",
    ],
)  # fmt: skip
def test_regexes_are_put_together_as_by_llguidance(terminal: str) -> None:
    texts = ["".join(each) for n in range(1, 5) for each in itertools.product("xaby", repeat=n)]
    texts += ["xa", "X", "Bya", "x/|y", "x/by", "x//y", "/b", "/ab", "xab"]
    text = f"start: T | @other\n{terminal}\n"
    grammars = {"grammars": [{"lark_grammar": text}, {"name": "other", "lark_grammar": f"start: T T\n{terminal}"}]}
    judged = by_llguidance(json.dumps(grammars), texts)
    assert True in judged
    assert accepted(migrate.from_llguidance(grammars), texts) == judged


class GrammarNode:
    """What guidance's functions return."""

    def ll_grammar(self) -> str:
        return 'start: "a" | "b"'


def test_guidance() -> None:
    assert accepted(migrate.from_guidance(GrammarNode()), ["a", "b", "c"]) == [True, True, False]
    assert accepted(migrate.from_guidance("a."), ["a.", "ab"]) == [True, False]
    with pytest.raises(DefinitionError, match="no grammar of guidance"):
        migrate.from_guidance(3)


# -- Outlines, llama.cpp -------------------------------------------------------------------------------------


@dataclass
class Regex:
    """As `outlines.types.Regex`."""

    pattern: str


@dataclass
class CFG:
    """As `outlines.types.CFG`."""

    definition: str


@dataclass
class JsonSchema:
    """As `outlines.types.JsonSchema`."""

    schema: str
    whitespace_pattern: str | None = None


@dataclass
class Choice:
    """As `outlines.types.dsl.Choice`."""

    items: list[Any]


class Color(enum.Enum):
    """An enumeration, of which Outlines takes the values."""

    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("given", "yes", "no"),
    [
        (Regex(r"(?P<y>[0-9]+)"), "12", "a"),
        (Regex("(?=a|-1$)[a-]1?(?!2)(?:-[0-9])?"), "a1-2", "b"),
        (CFG("start: /a+/"), "aa", "b"),
        (JsonSchema(json.dumps(PERSON)), '{"name":"a"}', "{}"),
        (JsonSchema(json.dumps(PERSON), "\n?"), '{\n"name":"a"}', '{ "name":"a"}'),
        (Choice(["a", 1]), "1", "2"),
        (Literal["a", "b"], "a", '"a"'),
        (Color, "red", "RED"),
        (int, "+3", "3.5"),
        (bool, "True", "true"),
        (float, "-1.5e3", "1."),
        (datetime.datetime, "2022-03-31 23:59:00", "2022-03-32 00:00:00"),
        (str, '"a b"', "a b"),
    ],
)
def test_outlines(given: Any, yes: str, no: str) -> None:
    assert accepted(migrate.from_outlines(given), [yes, no]) == [True, False]


def test_terms_of_outlines() -> None:
    def term(name: str, **fields: Any) -> Any:
        """As a dataclass of `outlines.types.dsl`."""
        return type(name, (SimpleNamespace,), {})(**fields)

    a, digits = term("String", value="a. "), Regex("[0-9]+|x")
    pair = term("Sequence", terms=[a, digits])
    some = term("QuantifyBetween", term=pair, min_count=1, max_count=2)
    either = term("Alternatives", terms=[term("String", value="a"), some])
    terms = {
        r"a\. ": a,
        r"a\. (?:[0-9]+|x)": pair,
        r"(?:a\. (?:[0-9]+|x)){1,2}": some,
        r"(?:a|(?:a\. (?:[0-9]+|x)){1,2})+": term("KleenePlus", term=either),
        r"(?:a\. )*(?:a|1)": term("Sequence", terms=[term("KleeneStar", term=a), Choice(["a", 1])]),
        r"(?:[0-9]+|x){2}": term("QuantifyExact", term=digits, count=2),
        r"(?:a\. ){2,}": term("QuantifyMinimum", term=a, min_count=2),
        r"(?:[0-9]+|x){0,2}": term("QuantifyMaximum", term=digits, max_count=2),
        r"(?:a\. )?": term("Optional", term=a),
    }
    parts = ("a. ", "a", "1", "x", "")
    texts = ["".join(each) for n in range(1, 5) for each in itertools.product(parts, repeat=n)]
    for regex, given in terms.items():
        judged = [re.fullmatch(regex, each) is not None for each in texts]
        assert accepted(migrate.from_outlines(given), texts) == judged, regex
    with pytest.raises(UnsupportedError, match="a JsonSchema within a term of Outlines"):
        migrate.from_outlines(term("Sequence", terms=[a, JsonSchema("{}")]))
    for _ in range(1_000):
        a = term("KleeneStar", term=a)
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        migrate.from_outlines(a)


@pytest.mark.parametrize(
    ("schema", "regex"),  # which outlines_core.json_schema.build_regex_from_schema gives for them
    [
        ('{"const": 0.20, "type": "float"}', r"0\.2"),
        ('{"enum": [1, "b"], "type": "any"}', '(1|"b")'),
        ('{"anyOf": [{"const": "type", "type": "enum"}, {"const": 5}]}', '("type"|5)'),
        (
            '{"prefixItems": [{"const": {"type": ""}, "type": ""}], "items": false, "type": "array", "minItems": 1}',
            r'\[[ ]?(\{[ ]?"type"[ ]?:[ ]?""[ ]?\})[ ]?\]',
        ),
    ],
)
def test_types_that_are_none_for_outlines(schema: str, regex: str) -> None:
    found = migrate.from_outlines(JsonSchema(schema))
    assert found.changes
    texts = ["0.2", "0.20", "0.25", "1", '"b"', '"type"', "5", '[{"type":""}]', "[{}]", "null"]
    assert accepted(found, texts) == [re.fullmatch(regex, text) is not None for text in texts]


def test_llama_cpps_grammars_in_utf_8() -> None:
    assert accepted(migrate.from_llama_cpp('root ::= "é"'.encode()), ["é", "e"]) == [True, False]
    with pytest.raises(DefinitionError, match="not UTF-8"):
        migrate.from_llama_cpp(b'root ::= "\xff"')


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json_object", "schema": PERSON},
        {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}},
        {"type": "json_schema", "json_schema": {"schema": PERSON}},
        {"type": "json_schema", "schema": PERSON},
    ],
)
def test_response_formats_of_llama_cpp(given: dict[str, Any]) -> None:
    found = migrate.from_llama_cpp(given)
    assert found == migrate.from_llama_cpp({"type": "json_object", "schema": PERSON})
    assert isinstance(found.definition, sg.JsonSchema)
    assert json.loads(found.definition.text) == PERSON


def test_response_formats_without_a_schema() -> None:
    assert accepted(migrate.from_llama_cpp({"type": "json_object"}), ["{}", "[]"]) == [True, False]
    for given in ({"type": "json_schema"}, {"type": "json_schema", "json_schema": {"name": "a"}}):
        with pytest.raises(DefinitionError, match="has no schema"):
            migrate.from_llama_cpp(given)


def test_llama_cpp() -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    text = 'root ::= "a" [0-9]{2}'
    for given in (text, llama_cpp.LlamaGrammar.from_string(text, verbose=False)):
        assert accepted(migrate.from_llama_cpp(given), ["a12", "a1"]) == [True, False]
    schema = llama_cpp.LlamaGrammar.from_json_schema(json.dumps(PERSON), verbose=False)
    found = migrate.from_llama_cpp({"type": "json_object", "schema": PERSON})
    assert accepted(found, PEOPLE) == accepted(migrate.from_llama_cpp(schema), PEOPLE)
    anyway = llama_cpp.LlamaGrammar.from_json_schema("{}", verbose=False)
    texts = ["null", "[]", "{}", '{"a":[1]}', "nul", '"a"']
    found = migrate.from_llama_cpp({"type": "json_object", "schema": {}})
    assert accepted(found, texts) == accepted(migrate.from_llama_cpp(anyway), texts)
    with pytest.raises(DefinitionError, match="response_format"):
        migrate.from_llama_cpp({"type": "text"})
    with pytest.raises(DefinitionError, match="no grammar"):
        migrate.from_llama_cpp(3)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "prefixItems": {"type": "null"}},
        {"type": "array", "items": {"type": "boolean"}, "prefixItems": {"type": "null"}, "minItems": 1},
        {"type": "array", "items": {"type": "array", "prefixItems": {"type": "null"}}},
        {"anyOf": [{"type": "array", "prefixItems": {"type": "null"}}, {"const": {"prefixItems": {"type": "null"}}}]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "prefixItems": {"type": "null"}, "maxItems": 1}}},
        {"properties": {"prefixItems": {"type": "null"}}, "required": ["prefixItems"], "type": "object"},
    ],
    ids=str,
)
def test_prefix_items_of_llama_cpp(schema: dict[str, Any]) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    texts = ["[]", "[null]", "[null,null]", "[true,false]", "[[null,null]]", "[null,1]", "{}", "null"]
    texts += ['{"prefixItems":null}', '{"items":null}', '{"prefixItems": {"type": "null"}}']
    texts += ['{"items": {"type": "null"}}']
    judge = migrate.from_llama_cpp(llama_cpp.LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False))
    found = migrate.from_llama_cpp({"type": "json_object", "schema": schema})
    assert accepted(found, texts) == accepted(judge, texts)


# -- lm-format-enforcer ----------------------------------------------------------------------------------------

BASKET = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"}, "b": {"type": "array", "items": {"$ref": "#/$defs/p"}}, "c": {"enum": ["x", "y"]},
        "d": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}, "e": {"const": "k"},
    },
    "required": ["a"],
    "$defs": {"p": {"type": "object", "properties": {"n": {"type": "string", "maxLength": 3}}, "required": ["n"]}},
}  # fmt: skip
BASKETS = [
    '{"a":1}', '{"b":[],"a":1}', '{"b":[{"n":"ab"}],"a":1}', '{"b":[{"n":"abcd"}],"a":1}', '{"b":[]}',
    '{"a":1,"c":"x"}', '{"a":1,"c":"z"}', '{"a":1,"d":null,"e":"k"}', '{"a":1,"d":true,"e":"l"}', '{"a":1,"z":1}',
    *(f'{{"a":{" " * n}1}}' for n in (3, 4, 12, 13)), '{"a":1,"a":2}', '{"a":1,"b":[{"n":"","x":1}]}',
    *(f'{{"a":1,"b":[{",".join(["{}"] * n)}]}}'.replace("{}", '{"n":""}') for n in (2, 3, 20, 21)),
]  # fmt: skip


def by_its_characters(parser: Any, text: str) -> bool:
    """Whether a parser of lm-format-enforcer's takes a text."""
    for character in text:
        if character not in parser.get_allowed_characters():
            return False
        parser = parser.add_character(character)
    return bool(parser.can_end())


@pytest.mark.parametrize("config", [{}, {"max_consecutive_whitespaces": 3, "max_json_array_length": 2}])
def test_schemas_of_lm_format_enforcer(config: dict[str, Any]) -> None:
    lmformatenforcer = pytest.importorskip("lmformatenforcer")
    configured = lmformatenforcer.CharacterLevelParserConfig(**config)
    parser = lmformatenforcer.JsonSchemaParser(json.loads(json.dumps(BASKET)), configured)
    judged = [by_its_characters(parser, text) for text in BASKETS]
    found = migrate.from_lm_format_enforcer(parser)
    assert accepted(found, BASKETS) == judged
    assert config or accepted(migrate.from_lm_format_enforcer(BASKET), BASKETS) == judged


def test_parsers_of_lm_format_enforcer() -> None:
    lmfe = pytest.importorskip("lmformatenforcer")
    texts = ["".join(each) for n in range(5) for each in itertools.product("ax.1", repeat=n)]
    a, number = lmfe.StringParser("a."), lmfe.JsonSchemaParser({"type": "integer"})
    either = lmfe.UnionParser([a, lmfe.StringParser("x")])
    for parser in (a, lmfe.RegexParser(r"(a.|x)+\d?"), either, lmfe.SequenceParser([either, number])):
        judged = [by_its_characters(parser, text) for text in texts]
        assert True in judged
        assert accepted(migrate.from_lm_format_enforcer(parser), texts) == judged


def test_what_lm_format_enforcer_does_with_a_schema() -> None:
    """As it was seen to (0.11.3), where it is not installed."""
    expected = [True] * 3 + [False] * 2 + [True, False, True, False, False] + [True] * 3 + [False] * 3
    assert accepted(migrate.from_lm_format_enforcer(BASKET), BASKETS) == [*expected, True, True, True, False]
    extras = SimpleNamespace(
        model_fields_set={"type", "ref"}, type=None, ref="#/$defs/n", extras={"$defs": {"n": {"type": "integer"}}}
    )
    config = SimpleNamespace(max_consecutive_whitespaces=1, max_json_array_length=2, force_json_field_order=True)
    context = SimpleNamespace(model_class=extras)
    parser = type("JsonSchemaParser", (SimpleNamespace,), {})(context=context, config=config)
    found = migrate.from_lm_format_enforcer(parser)
    assert accepted(found, ["12", '"a"', "1.5"]) == [True, False, False]
    assert "Members come in the schema's order" in found.changes[-1]
    assert accepted(migrate.from_lm_format_enforcer(r"\d+[ab]"), ["12a", "12", "٢a"]) == [True, False, False]
    assert accepted(migrate.from_lm_format_enforcer(None), ["[1]", "nul"]) == [True, False]
    for _ in range(1_000):
        parser = type("UnionParser", (SimpleNamespace,), {})(parsers=[parser])
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        migrate.from_lm_format_enforcer(parser)
    with pytest.raises(DefinitionError, match="an int is no parser"):
        migrate.from_lm_format_enforcer(3)


@pytest.mark.parametrize(
    ("given", "format"),
    [
        (5, ""), (None, ""), ("{", ""), ('{"x-guidance": 5}', "json"), ('{"x-guidance": [1]}', "json"),
        ('{"a": 1}', "choice"), ('"abc"', "choice"), ("[1]", "choice"), ("a", "yaml"),
        ({"grammars": []}, ""), ({"grammars": [{"json_schema": {}, "lark_grammar": 'start: "a"'}]}, ""),
    ],
)  # fmt: skip
def test_what_is_none_of_llguidances_is_refused(given: Any, format: str) -> None:
    with pytest.raises(DefinitionError):
        migrate.from_llguidance(given, format)


def test_arguments_of_xgrammar_that_are_none() -> None:
    with pytest.raises(DefinitionError, match="an int is no regex"):
        migrate.from_xgrammar(5, "regex")
    as_json = migrate.from_xgrammar(PERSON, "json_schema", any_whitespace=False, separators=[", ", ": "])
    assert as_json == migrate.from_xgrammar(PERSON, "json_schema", any_whitespace=False, separators=(", ", ": "))


_BLOCKS = r"""
    start: (stmt | _NL)*
    stmt: NAME _NL | "if" NAME ":" _NL _INDENT stmt+ _DEDENT | "[" NAME* "]" _NL
    NAME: /[a-z]+/
    LSQB: "["
    RSQB: "]"
    _NL: /(\r?\n[\t ]*)+/
    %ignore /[ \t]+/
    %declare _INDENT _DEDENT
"""


def test_syncodes_indents_as_lark_makes_them() -> None:
    """As syncode has Lark read it: the basic lexer, and an indenter with these names."""
    lark = pytest.importorskip("lark")
    from lark.indenter import Indenter

    class Indents(Indenter):
        NL_type, INDENT_type, DEDENT_type, tab_len = "_NL", "_INDENT", "_DEDENT", 4
        OPEN_PAREN_types, CLOSE_PAREN_types = ["LPAR", "LSQB", "LBRACE"], ["RPAR", "RSQB", "RBRACE"]

    judge = lark.Lark(_BLOCKS, parser="lalr", lexer="basic", postlex=Indents())

    def is_right(text: str) -> bool:
        try:
            judge.parse(text)
        except (lark.exceptions.LarkError, AssertionError):
            return False
        return True

    lines = ["a\n", "if b:\n", "    c\n", "\td\n", "  e\n", "[\n f]\n", "if"]
    texts = ["".join(each) for size in range(4) for each in itertools.product(lines, repeat=size)]
    found = migrate.from_syncode(_BLOCKS)
    judged = [is_right(text) for text in texts]
    assert accepted(found, texts) == judged
    assert 20 < sum(judged) < len(texts) - 20


def test_other_grammars_of_syncode() -> None:
    plain = 'start: "a"'
    assert migrate.from_syncode(SimpleNamespace(ebnf=plain)).definition == sg.Grammar(plain, lexer="basic")
    newline = 'start: _NEWLINE _INDENT "a" _DEDENT\n_NEWLINE: /\\n */\n%declare _INDENT _DEDENT\n'
    found = migrate.from_syncode(newline).definition
    assert isinstance(found, sg.Grammar)
    assert found.postlex == sg.Indentation(tab=4)
    with pytest.raises(DefinitionError, match="no grammar of syncode's"):
        migrate.from_syncode(3)


NULLS = '{"type": "array",\n "items": {"type": "null"}}'


@pytest.mark.parametrize(
    "grammar", [f'start: "x" %json {NULLS} "y"', f'start: "x" a "y"\na: %lark {{\nstart: b\nb: %json {NULLS}\n}}']
)
def test_schemas_within_lark_are_written_as_schemas_alone(grammar: str) -> None:
    """White space of any length, and either spelling of escapes; nothing is said of rules that no text has."""
    texts = ["x[null,  null\n]y", "x[null]y", "x[null", "x [null]y", "x[nul]y"]
    for found in (migrate.from_llguidance(f"{grammar}\nunused: %json {{}}"), migrate.from_xgrammar(grammar, "lark")):
        assert accepted(found, texts) == [True, True, False, False, False]
    strings = 'start: "x" %json {"type": "string"}'
    texts = [r'x"\t"', r'x"\u0009"', r'x"\u0041"', r'x"\/"']
    assert accepted(migrate.from_llguidance(strings), texts) == [True, True, False, False]
    assert accepted(migrate.from_xgrammar(strings, "lark"), texts) == [True, True, True, True]
    closed = 'start: %json {"type": "object", "properties": {"a": {}}}'
    assert accepted(migrate.from_llguidance(closed), ['{"b": 1}']) == [True]
    assert accepted(migrate.from_xgrammar(closed, "lark"), ['{"b": 1}', '{"a": 1}']) == [False, True]
    compact = 'start: %json {"x-guidance": {"whitespace_flexible": false}, "type": "array"}'
    assert accepted(migrate.from_llguidance(compact), ["[1,2]", "[1, 2]"]) == [True, False]


@pytest.mark.parametrize(
    ("definition", "what", "where"),
    [
        (lambda: migrate.from_llguidance("start: F\nF: /a/l").definition, "a flag that is", "line 2, column 4"),
        (lambda: migrate.from_llguidance({"grammars": [{"foo": 1}]}), "has no text", "/grammars/0"),
        (lambda: sg.Grammar("start: x\nx[lazy]:"), "nothing stands behind the colon", "line 2"),
        (lambda: sg.Grammar("start: x\nx[lazy: /a/"), "are not closed", "line 2, column 2"),
        (lambda: sg.Grammar('start: x\nx[suffix=<|a|>]: "a"'), "a suffix or a stop holds TOKEN_A", "X_END"),
        (lambda: sg.Grammar("start: a\na: <|nope|>"), "no special token", "line 2"),
        (lambda: sg.Grammar("start: a\na: <[9999]>"), "no token 9999", "line 2"),
        (lambda: sg.Gbnf("root ::= a\na ::= <|nope|>"), "no special token", "line 2"),
        (lambda: sg.Grammar('start: a\na: %json {"type": "x"}'), "'type' must be", "line 2: %json /type"),
        (lambda: sg.Grammar("start: a\na: %lark {\nstart: b }"), "not defined", "line 2: %lark, line 2, column 8"),
        (lambda: sg.Grammar("start: @x", definitions={"X": {"type": "x"}}), "'type' must be", "line 1: @x /type"),
        (lambda: sg.Grammar(r"start: /(a)\1/"), "a backreference", r"/(a)\1/, column 4"),
        (lambda: sg.JsonSchema({}, whitespace="SPACE"), "whitespace is 'SPACE'", "whitespace"),
        (lambda: sg.JsonSchema({}, whitespace="("), "missing )", "whitespace, column 1"),
        (lambda: sg.JsonSchema({}, property_order="x"), "property_order is 'x'", "property_order"),
    ],
)
def test_errors_say_where(definition: Callable[[], Definition], what: str, where: str) -> None:
    with pytest.raises(StructgenError) as caught:
        sg.compile(definition(), BYTES, eager=False)
    assert what in caught.value.what
    assert where in caught.value.where
    assert caught.value.remedy


# -- what is kept, and what is said to be changed ---------------------------------------------------------------


@pytest.mark.parametrize("any_whitespace", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("separators", [None, (",", ":"), (", ", ": "), (";", "="), ("; ", "= "), ("|", ":")])
@pytest.mark.parametrize("max_whitespace_cnt", [None, 1])
def test_whitespace_of_xgrammar(
    any_whitespace: bool, indent: int | None, separators: tuple[str, str] | None, max_whitespace_cnt: int | None
) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    members = {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "null"}}
    schema = {"type": "object", "properties": members}
    options: dict[str, Any] = {
        "any_whitespace": any_whitespace,
        "indent": indent,
        "separators": separators,
        "max_whitespace_cnt": max_whitespace_cnt,
    }
    texts = [
        f'{{{gap}"a"{colon}[{gap}1{comma}2{gap}]{comma}"b"{colon}null{gap}}}'
        for gap in ("", " ", "  ", "\n  ")
        for comma in (",", ", ", ";", "; ", "|", ",\n")
        for colon in (":", ": ", "=", "= ", " : ")
    ]
    texts += ['{\n  "a": [\n    1,\n    2\n  ],\n  "b": null\n}', '{\n  "a"=[\n    1; \n    2\n  ]; \n  "b"=null\n}']
    judged = by_xgrammar(xgrammar.Grammar.from_json_schema(json.dumps(schema), **options), texts)
    assert accepted(migrate.from_xgrammar(schema, "json_schema", **options), texts) == judged


def test_separators_that_begin_with_white_space_are_refused() -> None:
    with pytest.raises(DefinitionError, match="where whitespace may stand anyway"):
        migrate.from_xgrammar(PERSON, "json_schema", separators=(" , ", ":"))


def by_outlines_core(schema: object, texts: list[str]) -> list[bool]:
    json_schema = pytest.importorskip("outlines_core.json_schema")
    regex = re.compile(json_schema.build_regex_from_schema(json.dumps(schema)))
    return [regex.fullmatch(text) is not None for text in texts]


@pytest.mark.parametrize("pattern", ["b", "(a|b)", "(a|b)c?", "a.c", "^b$", "b{2,}", r"[a-c]\d*", r"x\$"])
@pytest.mark.parametrize("nested", [False, True])
def test_patterns_are_about_whole_strings(pattern: str, nested: bool) -> None:
    """In XGrammar, outlines-core and lm-format-enforcer; JSON Schema looks for them."""
    xgrammar = pytest.importorskip("xgrammar")
    schema: dict[str, Any] = {"type": "string", "pattern": pattern}
    texts = [f'"{text}"' for text in ("b", "abc", "a", "axc", "ac", "bb", "bbb", "c12", "1c", "x$", "x", "")]
    if nested:
        schema = {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1, "$defs": {"x": schema}}
        texts = [f"[{text}]" for text in texts]
    by_engine = {
        "xgrammar": (
            by_xgrammar(xgrammar.Grammar.from_json_schema(json.dumps(schema)), texts),
            migrate.from_xgrammar(schema, "json_schema"),
        ),
        "outlines": (by_outlines_core(schema, texts), migrate.from_outlines(JsonSchema(json.dumps(schema)))),
        "lmfe": (None, migrate.from_lm_format_enforcer(schema)),
    }
    for engine, (judged, found) in by_engine.items():  # lm-format-enforcer's verdicts are XGrammar's
        assert accepted(found, texts) == (judged or by_engine["xgrammar"][0]), engine
        assert any("whole string" in change for change in found.changes), engine


def test_patterns_with_anchors_within_them() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    texts = ['{"ab":1}', '{"b":1}', '{"cb":1}', '{"a":1}', '{"ac":1}', '{"bc":1}']
    for schema in (
        {"type": "object", "patternProperties": {"^a|b$": {"type": "integer"}, "(^a|b)c": {"type": "integer"}}},
        {"type": "object", "propertyNames": {"type": "string", "pattern": "(^a|b$)c?"}},
    ):
        judged = by_xgrammar(xgrammar.Grammar.from_json_schema(json.dumps(schema)), texts)
        assert accepted(migrate.from_xgrammar(schema, "json_schema"), texts) == judged


def test_schemas_and_regexes_within_structural_tags_of_xgrammar() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "b|c"}}, "required": ["a"]}
    call = {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": schema}, "end": "</f>"}
    older = {"structures": [{"begin": "<f>", "schema": schema, "end": "</f>"}], "triggers": ["<f"]}
    texts = [
        f"<f>{text}</f>"
        for text in ('{"a":"b"}', '{ "a" : "c"}', '{"a":"abc"}', '{"a":"b","x":1}', '{"a":' + " " * 40 + '"b"}', "{}")
    ]
    for tag in ({"type": "triggered_tags", "triggers": ["<f"], "tags": [call]}, older, call):
        whole = {"type": "structural_tag", "format": tag} if "type" in tag else tag
        found = migrate.from_xgrammar(whole, "structural_tag")
        judge = {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<f"], "tags": [call]}}
        judged = by_xgrammar(xgrammar.Grammar.from_structural_tag(judge), texts)
        assert accepted(found, texts) == judged == [True, True, False, False, True, False]
        assert len(found.changes) == 3
        assert "additional_properties=False" in " ".join(found.changes)
    strings = {"type": "json_schema", "json_schema": {"type": "string"}}
    regex = {"type": "regex", "pattern": r"(^a|b$).\d\w"}
    whole = {"type": "structural_tag", "format": {"type": "sequence", "elements": [regex, strings]}}
    both = itertools.product(("a\n1x", "b11_", "a.٣x", "a.1é"), ("é", r"\u00e9", r"\/", "\t"))
    texts = [f'{text}"{string}"' for text, string in both]
    judged = by_xgrammar(xgrammar.Grammar.from_structural_tag(whole), texts)
    assert accepted(migrate.from_xgrammar(whole), texts) == judged
    plain = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
    assert migrate.from_xgrammar(plain).changes == ()
    ahead = {"type": "structural_tag", "format": {"type": "grammar", "grammar": 'root ::= "a" (= "b")'}}
    assert "Look-ahead" in migrate.from_xgrammar(ahead).changes[0]


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"), ({"not": {"type": "null"}}, "not"),
        ({"$ref": "#/$defs/n", "minimum": 3, "$defs": {"n": {"type": "integer"}}}, "minimum"),
        ({"minLength": 3}, "minLength"), ({"type": "string", "enum": ["a", 1]}, "type"),
        ({"type": "array", "items": {"oneOf": [{"type": "null"}, {"const": 1}]}}, "oneOf"),
        ({"type": "string", "enum": ["a", "b"], "title": "t"}, ""), ({"type": "integer"}, ""),
        ({"type": "object", "properties": {"not": {"type": "null"}, "minimum": {"const": {"oneOf": 1}}}}, ""),
        ({"anyOf": [{"type": "null"}, {"type": ["integer", "null"], "const": None}]}, ""),
    ],
)  # fmt: skip
def test_keywords_that_engines_make_less_of_are_named(schema: Any, named: str) -> None:
    for found in (
        migrate.from_xgrammar(schema, "json_schema"),
        migrate.from_lm_format_enforcer(schema),
        migrate.from_outlines(JsonSchema(json.dumps(schema))),
    ):
        said = [change for change in found.changes if change.startswith("JSON Schema is kept to")]
        assert [each.rpartition(": ")[2] for each in said] == ([f"{named}."] if named else [])
