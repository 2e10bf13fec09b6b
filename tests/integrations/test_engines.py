"""Operators' settings, and what each engine asks for of a definition that a build step is given."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from judges.guides import EACH_BYTE

import structgen as sg
from structgen.definitions.loading import NamedDefinition, load_definitions, said_by
from structgen.definitions.values import TAG_OPTIONS
from structgen.errors import DefinitionError, MissingIndexError, UnsupportedError
from structgen.integrations.engines import ENGINES, Wanted, definitions_for, door, is_larks, wanted_by
from structgen.integrations.requests import Named, indexes_for, read_engine_request, read_request
from structgen.integrations.settings import ENGINE_NAMES, FILE_VARIABLE, SETTINGS, Settings, settings_for, variable_of
from structgen.tools import tool_style

SCHEMA: Any = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, None], eos_ids=[256])


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "structgen.toml"
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


def named(definition: Any, **options: Any) -> NamedDefinition:
    return NamedDefinition("it", definition, Path("it"), **options)


class TestSettings:
    def test_what_is_said_later_wins(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tables = "[sglang]\nmax_items = 8\n[vllm]\nseconds = 9\n"
        file.write_text(f'seconds = 3\nmax_items = 7\nwhitespace = "any"\n{tables}')
        monkeypatch.setenv("STRUCTGEN_SGLANG", '{"whitespace": "compact"}')
        found = settings_for("sglang", {"on_miss": "refuse"})
        assert (found.seconds, found.options) == (3, {"max_items": 8, "whitespace": "compact"})
        assert found.on_miss == "refuse"
        assert settings_for("sglang", {"whitespace": 2}).options["whitespace"] == 2
        assert settings_for("llama-cpp").options == {"max_items": 7, "whitespace": "any"}
        assert settings_for("vllm").budget == sg.Budget(
            states=sg.Budget.request.states, memory=sg.Budget.request.memory, seconds=9, depth=500, bounded_steps=True
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("on_mis = 'refuse'", "no setting 'on_mis'.*Did you mean on_miss"),
            ("[vlm]\nseconds = 1", "no setting 'vlm'"),
            ("[vllm]\nmax_item = 1", r"structgen.toml, \[vllm\].*Did you mean max_items"),
            ("max_items = -1", "max_items"),
            ("max_digits = 0", "max_digits"),
            ("whitespace = 'some'", "whitespace"),
            ("dialect = 'perl'", "dialect is 'perl'"),
            ("strict_tools = true", "strict_tools is True"),
            ("memory = 0", "memory is 0"),
            ("seconds = true", "seconds is True"),
            ("= 3", "not TOML"),
        ],
    )
    def test_what_means_nothing_is_refused(self, file: Path, text: str, said: str) -> None:
        file.write_text(text)
        for engine in ("vllm", "sglang"):
            with pytest.raises(DefinitionError, match=said) as caught:
                settings_for(engine)
            assert caught.value.remedy

    def test_a_file_that_is_not_there_and_an_engine_that_nobody_knows(self, file: Path) -> None:
        with pytest.raises(DefinitionError, match="cannot be read"):
            settings_for("vllm")
        with pytest.raises(DefinitionError, match=r"no engine 'vlm'.* vllm"):
            settings_for("vlm")

    def test_what_an_engine_tells_nothing_of_is_refused_where_it_is_for_that_engine(self, file: Path) -> None:
        file.write_text("max_tokens = true\n[sglang]\ntool_style = 'hermes'\n")
        assert settings_for("tensorrt-llm", without=("tool_style",)).max_tokens
        with pytest.raises(DefinitionError, match="no effect here"):
            settings_for("sglang", without=("tool_style",))

    def test_the_guide_has_each(self) -> None:
        guide = (Path(__file__).parents[2] / "docs/guide/engines.md").read_text()
        table = guide.partition("| setting | default |")[2].partition("\n\n")[0]
        rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ", table, re.MULTILINE)
        assert SETTINGS.keys() <= set(re.findall(r"\w+", " ".join(rows)))
        for name in ENGINE_NAMES:
            assert f"--for {name} " in guide
            assert variable_of(name) in guide

    def test_all_that_schemas_leave_open_can_be_set(self) -> None:
        assert set(TAG_OPTIONS) <= SETTINGS.keys()
        for name in TAG_OPTIONS:
            value = getattr(sg.JsonSchema(True), name)
            assert Settings.read({name: value}).options == {name: value}


class TestDoors:
    def test_each_engine_has_a_record(self) -> None:
        assert tuple(ENGINES) == ENGINE_NAMES

    @pytest.mark.parametrize("engine", ENGINE_NAMES)
    def test_requests_ask_for_what_is_warmed(self, engine: str) -> None:
        """By each of an engine's doors, for definitions in their plain form and operators with settings."""
        settings = Settings.read({"max_items": 3, "property_order": "any"})
        tag = {"type": "tag", "begin": "<", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": ">"}
        for definition, request in (
            (sg.JsonSchema(SCHEMA), {"json_schema": SCHEMA}),
            (sg.Regex("a+"), {"regex": "a+"}),
            (sg.StructuralTag(tag), {"structural_tag": tag}),
            (sg.Grammar('start: "a"'), {"grammar": 'start: "a"'}),
        ):
            found = definitions_for(engine, [named(definition)], settings=settings)
            warmed = {each.definition.canonical() for each in found}
            asked = set()
            for number, each in enumerate(ENGINES[engine]):
                if not each.kinds or definition.kind in each.kinds:
                    wanted = read_request(request, door(engine, settings, number))
                    assert isinstance(wanted, sg.Definition)
                    asked.add(wanted.canonical())
            assert warmed == asked

    def test_what_a_request_says_itself_stands(self) -> None:
        at = door("vllm", Settings.read({"whitespace": "compact", "dialect": "ecma"}), 1)
        assert read_request({"json_schema": SCHEMA}, at) == sg.JsonSchema(SCHEMA, whitespace="compact")
        assert read_request({"json_schema": SCHEMA, "whitespace": "single"}, at) == sg.JsonSchema(SCHEMA)
        own = {**SCHEMA, "x-guidance": {"whitespace_flexible": False}}
        for given in (own, json.dumps(own)):
            assert read_request({"json_schema": given}, at) == sg.JsonSchema(own)
        assert at.completed(sg.JsonSchema(own)) == sg.JsonSchema(own)
        assert read_request({"regex": "a"}, at) == sg.Regex("a", dialect="ecma")
        assert read_request({"choice": ["a b"]}, at) == sg.Regex.choice(["a b"])

    def test_options_that_no_request_can_say_are_refused(self) -> None:
        """Such a definition would never be asked for."""
        plain = Settings()
        for definition in (
            sg.JsonSchema(SCHEMA, whitespace=2), sg.JsonSchema(SCHEMA, excludes=("x",)), sg.Regex("a", 2),
            sg.Grammar('start: "a"', lexer="basic"), sg.Gbnf('a ::= "a"', start="a"),
            sg.Ebnf('root ::= "a"', dialect="transformers-cfg"),
        ):  # fmt: skip
            given = [named(definition, said=said_by(definition))]
            for engine in ("sglang", "tensorrt-llm"):
                with pytest.raises(UnsupportedError, match="without options of their own"):
                    definitions_for(engine, given, settings=plain)
            [found] = definitions_for("vllm", given, settings=plain)  # its logits processor does
            assert found.definition == door("vllm", plain, 1).completed(definition, said_by(definition))
        two = [named(sg.JsonSchema(SCHEMA, whitespace=2), said=frozenset({"whitespace"}))]
        [found] = definitions_for("sglang", two, settings=Settings.read({"whitespace": 2}))
        assert found.definition == two[0].definition

    def test_kinds_that_an_engine_does_not_ask_for_are_refused(self) -> None:
        interegular = pytest.importorskip("interegular")
        fsm = sg.Fsm(interegular.parse_pattern("a").to_fsm())
        for engine in ("sglang", "tensorrt-llm", "vllm"):
            with pytest.raises(UnsupportedError, match="asks for no definitions of the kind fsm"):
                definitions_for(engine, [named(fsm)])
        [found] = definitions_for("mlx", [named(fsm)])
        assert found.definition is fsm

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('start: "a"', True), ('start: "a"  // not ::= here', True), ('# root ::= "a"\nstart: "a"', True),
            ('root ::= "a"', False), ('# a comment\nroot ::= "a"', False), ("", True),
        ],
    )  # fmt: skip
    def test_notations_are_told_as_vllm_tells_them(self, text: str, expected: bool) -> None:
        assert is_larks(text) == expected
        wanted = sg.Grammar if expected else sg.Ebnf
        assert type(read_engine_request("GRAMMAR", text)) is wanted


FUNCTION: Any = {"parameters": {"type": "object", "required": ["x"]}}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, **strict, **FUNCTION}}
    for name, strict in (("said", {}), ("no", {"strict": False}), ("yes", {"strict": True}))
]


class TestTools:
    @pytest.mark.parametrize(
        ("rule", "constrained"), [("said", {"said", "yes"}), ("always", {"said", "no", "yes"}), ("asked", {"yes"})]
    )
    def test_whose_arguments_follow_their_schemas(self, rule: str, constrained: set[str]) -> None:
        at = door("vllm", Settings.read({"strict_tools": rule}), 1)
        for tools in (TOOLS, [{"type": "function", **tool["function"]} for tool in TOOLS]):
            request = {"tools": tools, "style": "hermes", "tool_choice": "required", "reasoning": False}
            wanted = read_request(request, at)
            index = sg.compile(wanted, VOCABULARY, eager=False)
            for name in ("said", "no", "yes"):
                call = f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'
                assert index.match(call.encode()).accepted == (name not in constrained)

    @pytest.mark.parametrize("rule", ["said", "always", "asked"])
    def test_what_a_file_has_of_them_is_what_a_request_asks_for(self, rule: str, tmp_path: Path) -> None:
        settings = Settings.read({"strict_tools": rule, "max_digits": 7})
        (tmp_path / "a.tools.json").write_text(json.dumps(TOOLS))
        manifest = tmp_path / "b.toml"
        source = 'file = "a.tools.json", tool_choice = "required", parallel = false'
        manifest.write_text(f"[definitions]\nx = {{ {source} }}\n")
        template = "".join(tool_style("qwen_3").template)
        each: tuple[tuple[Path, dict[str, Any]], ...] = (
            (tmp_path / "a.tools.json", {}),
            (manifest, {"tool_choice": "required", "parallel": False}),
        )
        for path, options in each:
            named = load_definitions([path])
            for engine, number in (("vllm", 1), ("mlx", 0), ("transformers", 1)):
                at = door(engine, settings, number)
                wanted = wanted_by(engine, named, settings, [template])
                found = {one.definition.definition.canonical() for one in wanted if isinstance(one, Wanted)}
                asked = [
                    read_request({"tools": TOOLS, **options, **reasoning}, at, template)
                    for reasoning in ([{"reasoning": each} for each in (True, False, "auto")] if at.reasons else [{}])
                ]
                assert {one.canonical() for one in asked if not isinstance(one, Named)} <= found, engine
            [refused] = wanted_by("sglang", named, settings, [template])
            assert isinstance(refused, UnsupportedError)
            assert "SGLang asks for no tools" in str(refused)
        (tmp_path / "a.tools.json").write_text('[{"type": "function", "function": {}}]')
        [refused] = wanted_by("mlx", load_definitions([tmp_path / "a.tools.json"]), settings, [template])
        assert isinstance(refused, DefinitionError)


class TestReasoning:
    def test_any_definition_may_stand_behind_it(self) -> None:
        at = door("vllm", Settings.read({"tool_style": "qwen_3"}), 1)
        end = "</think>" + tool_style("qwen_3").reasoning_suffix
        for request, text in (
            ({"regex": "[0-9]"}, "7"), ({"json_schema": {"type": "object"}}, "{ }"), ({"choice": ["x"]}, "x"),
            ({"grammar": 'start: "ab"'}, "ab"), ({"gbnf": 'root ::= "ab"'}, "ab"),
            ({"structural_tag": {"type": "json_schema", "json_schema": {"type": "array"}}}, "[\n]"),
        ):  # fmt: skip
            for reasoning, right, wrong in (
                (True, f"<think>So.{end}{text}", text),
                (True, f"So.{end}{text}", f"<think>{text}"),
                (False, text, f"So.{end}{text}"),
                ("auto", text, f"{end}{text}"),
                ("auto", f"<think>So.{end}{text}", f"<think>{text}"),
            ):
                wanted = read_request({**request, "reasoning": reasoning}, at)
                index = sg.compile(wanted, VOCABULARY, eager=False)
                assert index.match(right.encode()).accepted, (request, reasoning)
                assert not index.match(wrong.encode()).accepted, (request, reasoning)

    def test_what_it_cannot_be_is_refused(self) -> None:
        at = door("vllm", Settings.read({"tool_style": "qwen_3"}), 1)
        with pytest.raises(DefinitionError, match="reasoning is"):
            read_request({"regex": "a", "reasoning": "some"}, at)
        with pytest.raises(DefinitionError, match="no option 'reasoning'"):
            read_request({"index": "a", "reasoning": True}, at)
        with pytest.raises(DefinitionError, match="chat template"):
            read_request({"regex": "a", "reasoning": True}, door("vllm", Settings(), 1))
        with pytest.raises(UnsupportedError, match="write no reasoning"):
            read_request({"regex": "a", "reasoning": True}, door("vllm", Settings.read({"tool_style": "hermes"}), 1))
        harmony = door("vllm", Settings.read({"tool_style": "harmony"}), 1)
        with pytest.raises(UnsupportedError, match="message of its own"):
            read_request({"regex": "a", "reasoning": True}, harmony)


def test_servers_put_json_behind_the_reasoning_of_the_model() -> None:
    """Both with a chat template, and where the operator says how the model writes."""
    schema, regex = named(sg.JsonSchema(SCHEMA)), named(sg.Regex("a"))
    template = "".join(tool_style("qwen_3").template)
    each: dict[str, Any]
    for each in ({"tokenizer": template}, {"settings": Settings.read({"tool_style": "qwen_3"})}):
        kinds = [wanted.definition.kind for wanted in definitions_for("transformers", [schema, regex], **each)]
        assert kinds == ["json_schema", "structural_tag", "structural_tag", "regex"]
        assert len(definitions_for("vllm", [schema, regex], **each)) == 2
    assert len(definitions_for("transformers", [schema, regex], tokenizer="a template of no style")) == 2


def test_manifests_say_for_whom(tmp_path: Path) -> None:
    manifest = tmp_path / "all.toml"
    manifest.write_text(
        'for = "vllm"\n[definitions]\na = { regex = "a" }\nb = { regex = "b", for = ["sglang", "mlx"] }\n'
        'c = { json_schema = "{}", whitespace = "single" }\nd = { words = ["x"] }\n'
    )
    found = {each.name: each for each in load_definitions([manifest])}
    assert {name: each.engines for name, each in found.items()} == {
        "a": ("vllm",), "b": ("sglang", "mlx"), "c": ("vllm",), "d": ("vllm",),
    }  # fmt: skip
    assert found["c"].said == {"whitespace"}
    assert "dialect" in found["d"].said
    for wrong in ("for = 3", "for = [3]"):
        manifest.write_text(f'[definitions.a]\nregex = "a"\n{wrong}\n')
        with pytest.raises(DefinitionError, match="for is neither a string"):
            load_definitions([manifest])


def test_a_program_asks_by_requests(tmp_path: Path, file: Path) -> None:
    file.write_text(f"cache = {json.dumps(str(tmp_path / 'cache'))}\nwhitespace = 'compact'\n")
    [wanted] = definitions_for("llama-cpp", [named(sg.JsonSchema(SCHEMA))])
    sg.compile(wanted.definition, VOCABULARY, cache=sg.Cache(tmp_path / "cache"))
    indexes = indexes_for("llama-cpp", VOCABULARY, on_miss="refuse")
    assert indexes.of({"json_schema": SCHEMA}).match(b'{"a":[]}').accepted
    with pytest.raises(MissingIndexError, match="structgen warm --for llama-cpp"):
        indexes.of({"json_schema": {}})
