"""docs/guide/differences.md: a definition, texts, and the verdicts of the other engine and of structgen for each row.

The data is `tests/cases/differences.json`. A verdict is a list, one for each text, or null where the definition is
refused. Verdicts of engines that are installed are asked for again; those of the others are as they were seen. A case
whose line is null has no row on the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

import structgen as sg
from structgen import migrate
from structgen.definitions import Definition
from structgen.errors import StructgenError

_ROOT = Path(__file__).parents[2]
CASES = json.loads((_ROOT / "tests/cases/differences.json").read_text())
PAGE = (_ROOT / "docs/guide/differences.md").read_text()
BYTES = sg.Vocabulary.bytewise()

_Verdict: TypeAlias = "list[bool] | None"


def _llguidance(format: str) -> Callable[[Any, list[str]], _Verdict]:
    def judge(definition: Any, texts: list[str]) -> _Verdict:
        llguidance = pytest.importorskip("llguidance")
        text = definition if isinstance(definition, str) else json.dumps(definition)
        grammar = llguidance.grammar_from(format, text)
        tokenizer = llguidance.LLTokenizer("byte")
        found = []
        for each in texts:
            matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
            if matcher.is_error():
                return None
            found.append(matcher.consume_tokens([*each.encode(), tokenizer.eos_token]))
        return found

    return judge


def _xgrammar(format: str) -> Callable[..., _Verdict]:
    def judge(definition: Any, texts: list[str], **options: Any) -> _Verdict:
        xgrammar = pytest.importorskip("xgrammar")
        from xgrammar.testing import _is_grammar_accept_string as accepts

        text = definition if isinstance(definition, str) else json.dumps(definition)
        try:
            grammar = getattr(xgrammar.Grammar, f"from_{format}")(text, **options)
            return [bool(accepts(grammar, each)) for each in texts]
        except RuntimeError:
            return None

    return judge


def _outlines_core(definition: Any, texts: list[str]) -> _Verdict:
    json_schema = pytest.importorskip("outlines_core.json_schema")
    try:
        regex = json_schema.build_regex_from_schema(json.dumps(definition))
    except (ValueError, TypeError):
        return None
    return [re.fullmatch(regex, each) is not None for each in texts]


def _transformers_cfg(definition: str, texts: list[str]) -> _Verdict:
    pytest.importorskip("transformers_cfg")
    from transformers_cfg.parser import parse_ebnf
    from transformers_cfg.recognizer import StringRecognizer

    grammar = parse_ebnf(definition)
    start = grammar.symbol_table["root"]
    return [bool(StringRecognizer(grammar.grammar_encoding, start)._accept_string(each)) for each in texts]


def _lark(parser: str) -> Callable[[str, list[str]], _Verdict]:
    def judge(definition: str, texts: list[str]) -> _Verdict:
        import lark

        try:
            made = lark.Lark(definition, parser=parser)
        except (lark.exceptions.LarkError, re.error):
            return None
        found = []
        for each in texts:
            try:
                made.parse(each)
                found.append(True)
            except lark.exceptions.LarkError:
                found.append(False)
        return found

    return judge


def _lm_format_enforcer(definition: Any, texts: list[str]) -> _Verdict:
    lmformatenforcer = pytest.importorskip("lmformatenforcer")
    found = []
    for text in texts:
        parser = lmformatenforcer.JsonSchemaParser(json.loads(json.dumps(definition)))
        is_right = True
        for character in text:
            is_right = is_right and character in parser.get_allowed_characters()
            parser = parser.add_character(character) if is_right else parser
        found.append(bool(is_right and parser.can_end()))
    return found


def _llama_cpp(definition: Any, texts: list[str]) -> _Verdict:
    """The grammar that it makes of a schema, which is read here."""
    llama_cpp = pytest.importorskip("llama_cpp")
    made = llama_cpp.LlamaGrammar.from_json_schema(json.dumps(definition), verbose=False)
    index = sg.compile(migrate.from_llama_cpp(made).definition, BYTES, eager=False)
    return [index.match(each.encode()).accepted for each in texts]


def _re(definition: str, texts: list[str]) -> _Verdict:
    return [re.fullmatch(definition, each) is not None for each in texts]


#: By engine: what it says, and what is compiled here.
JUDGES: dict[str, Callable[..., _Verdict]] = {
    **{f"llguidance {each}": _llguidance(each) for each in ("lark", "json_schema", "regex")},
    **{f"xgrammar {each}": _xgrammar(each) for each in ("lark", "json_schema", "regex", "ebnf")},
    "outlines-core json_schema": _outlines_core,
    "transformers-cfg ebnf": _transformers_cfg,
    "lm-format-enforcer json_schema": _lm_format_enforcer,
    "llama.cpp json_schema": _llama_cpp,
    "lark lalr": _lark("lalr"),
    "lark earley": _lark("earley"),
    "re": _re,
}


def _json(definition: Any) -> str:
    return definition if isinstance(definition, str) else json.dumps(definition)


def _outlines(name: str, **members: Any) -> Any:
    return type(name, (SimpleNamespace,), {})(**members)


HERE: dict[str, Callable[..., Definition]] = {
    "llguidance lark": lambda d: migrate.from_llguidance(d).definition,
    "llguidance json_schema": lambda d: migrate.from_llguidance(_json(d), "json_schema").definition,
    "llguidance regex": lambda d: migrate.from_llguidance(d, "regex").definition,
    **{
        f"xgrammar {each}": lambda d, each=each, **options: migrate.from_xgrammar(d, each, **options).definition
        for each in ("lark", "json_schema", "regex", "ebnf")
    },
    "outlines-core json_schema": lambda d: migrate.from_outlines(_outlines("JsonSchema", schema=_json(d))).definition,
    "outlines regex": lambda d: migrate.from_outlines(_outlines("Regex", pattern=d)).definition,
    "outlines list[bool]": lambda d: migrate.from_outlines(list[bool]).definition,
    "llama.cpp gbnf": lambda d: migrate.from_llama_cpp(d).definition,
    "llama.cpp server": lambda d: migrate.from_llama_cpp({"type": "json_object", "schema": d}).definition,
    "llama.cpp json_schema": lambda d: migrate.from_llama_cpp({"type": "json_object", "schema": d}).definition,
    "lm-format-enforcer json_schema": lambda d: migrate.from_lm_format_enforcer(d).definition,
    "transformers-cfg ebnf": lambda d: sg.Ebnf(d, dialect="transformers-cfg"),
    "lark lalr": sg.Grammar,
    "lark earley": lambda d: sg.Grammar(d, ambiguity="all"),
    "re": sg.Regex,
    "javascript": lambda d: sg.Regex(d, dialect="ecma"),
    # What the same text is without `migrate`.
    "grammar": sg.Grammar,
    "schema": sg.JsonSchema,
    "regex": sg.Regex,
}


def _here(case: dict[str, Any]) -> _Verdict:
    try:
        options = {} if "as" in case else case.get("options", {})
        definition = HERE[case.get("as", case["engine"])](case["definition"], **options)
        index = sg.compile(definition, BYTES, eager=False)
    except StructgenError:
        return None
    return [index.match(each.encode()).accepted for each in case["texts"]]


def _name(case: dict[str, Any]) -> str:
    return str(case["line"] or case["name"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_row(case: dict[str, Any]) -> None:
    assert case["line"] is None or case["line"] in PAGE
    assert case["there"] != case["here"], "this is no difference"
    assert _here(case) == case["here"]


@pytest.mark.parametrize("case", [case for case in CASES if case["engine"] in JUDGES], ids=_name)
def test_what_the_engine_says(case: dict[str, Any]) -> None:
    assert JUDGES[case["engine"]](case["definition"], case["texts"], **case.get("options", {})) == case["there"]


def test_tokens_that_run_into_any_tokens() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    assert "| `any_tokens` (since 0.2.9) |" in PAGE
    tokens = ["a", "b", "ab", "!", "<e>"]
    free = [{"type": "const_string", "value": "a"}, {"type": "any_tokens"}, {"type": "const_string", "value": "!"}]
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": free}}
    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(tokens, stop_token_ids=[4]))
    mask = xgrammar.allocate_token_bitmask(1, len(tokens))
    xgrammar.GrammarMatcher(compiler.compile_structural_tag(tag)).fill_next_token_bitmask(mask)
    there = [token for token, name in enumerate(tokens) if mask[0, 0].item() >> token & 1]
    vocabulary = sg.Vocabulary.from_bytes([*(token.encode() for token in tokens[:-1]), b""], [4])
    guide = sg.Guide(sg.compile(migrate.from_xgrammar(tag).definition, vocabulary, eager=False))
    version = tuple(map(int, re.findall(r"\d+", metadata.version("xgrammar"))[:3]))
    assert there == ([0, 2] if version >= (0, 2, 9) else [0])
    assert [token for token in range(len(tokens)) if guide.allows(token)] == [0]


#: Rows without a case, by the reason: texts alone don't show them.
WITHOUT = {
    "captures": (
        '| `x[stop="ab"]` |',
        "| captures in a list |",
        "| captures of ignored",
        "| `x[suffix=/!+/]` with a capture |",
    ),
    "tokens": (
        "| `<[97]>` where",
        "| EOS token by name",
        "| `<think>` |",
        "| `max_tokens` | does not count",
        "| temperature where no rule",
        "| `any_tokens` (since 0.2.9) |",
    ),
    "bytes": ("| `~A` |", "- Text is UTF-8."),
    "alike": (
        "- A mask allows a token",
        "- A definition that cannot be honoured exactly",
        "- A declared JSON name",
        "| look-around beside",
    ),
    "sizes": ("| `%regex` of more than 100,000 bytes |", "| adjacent rules with `max_chars` |"),
    "versions": ("| `\\s` before 0.2.9 |",),
    "options": ("| `g_regex_flags`", "| `force_json_field_order` |", "| a `RegexParser` within", "- Unicode tables"),
}


def test_each_row_has_a_case() -> None:
    following = [*PAGE.splitlines()[1:], ""]
    rows = [
        line
        for line, next_line in zip(PAGE.splitlines(), following, strict=True)
        if line.startswith(("- ", "| ")) and not next_line.startswith("|---")
    ]
    left_out = [start for starts in WITHOUT.values() for start in starts]
    said = [case["line"] for case in CASES if case["line"]]
    assert [row for row in rows if not any(each in row for each in (*said, *left_out))] == []
    assert [start for start in left_out if not any(start in row for row in rows)] == []
