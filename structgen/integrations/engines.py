"""How each engine asks for definitions: a record for each, which adapters and ``structgen warm --for`` read alike.

An engine asks in one way or in several, such as vLLM, whose structured outputs and logits processor take other
requests: each is a `Door`. What a request leaves open, the operator's settings say, and where these say nothing, the
door. So the key of what was warmed is the key that the adapter looks up.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import product

from ..definitions import Definition, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ..definitions.guidance_options import KEY, options_of
from ..definitions.loading import NamedDefinition
from ..definitions.token_sets import engine_dialect
from ..definitions.tool_request import ToolRequest
from ..definitions.values import Ebnf
from ..errors import DefinitionError, StructgenError, UnsupportedError
from ..system.types import Foreign, JsonMap
from ..tools import behind_reasoning, detect_tool_style, tool_calls, tool_style
from ..tools.calls import Reasoning
from .settings import ENGINE_NAMES, Settings, settings_for

#: Options of a definition that is a choice, whose pattern is Python's whatever is written elsewhere.
CHOICE = frozenset({"choice", "dialect"})


@dataclass(frozen=True)
class Door:
    """One way in which an engine asks for definitions.

    Parameters
    ----------
    name:
        What it is called in messages.
    whitespace, tag_whitespace:
        That of JSON Schemas, and of structural tags, where neither the request nor the operator says.
    has_options:
        Whether requests may say options. Otherwise they are texts alone, and a grammar does not say its notation.
    kinds:
        The kinds of definitions that it asks for; none: all.
    has_tools:
        Whether requests may have tools; otherwise the engine makes structural tags of them, or nothing.
    reasons:
        Whether JSON stands behind the reasoning that a prompt leaves room for, which tells that of tools as well.
    settings:
        The operator's.
    engine:
        Whose door it is; empty where that is not known.
    """

    name: str
    whitespace: str = "single"
    tag_whitespace: str = "single"
    has_options: bool = True
    kinds: tuple[str, ...] = ()
    has_tools: bool = False
    reasons: bool = False
    settings: Settings = field(default_factory=Settings)
    engine: str = ""

    def options(self, kind: str, said: Collection[str] = ()) -> JsonMap:
        """The options of definitions of a kind that a request leaves open, having said some by name."""
        if kind == "regex":
            found: JsonMap = {} if self.settings.dialect == "re" else {"dialect": self.settings.dialect}
        elif kind in ("json_schema", "structural_tag", "tools"):
            whitespace = self.whitespace if kind == "json_schema" else self.tag_whitespace
            found = {"whitespace": whitespace, **self.settings.options}
        else:
            found = {}
        return {name: value for name, value in found.items() if name not in said}

    def completed(self, definition: Definition, said: Collection[str] = ()) -> Definition:
        """A definition with the options that its author, having said some by name, leaves open."""
        if isinstance(definition, JsonSchema):
            options = self.options("json_schema", {*said, *options_of(definition.text)})
            return _with(definition, options, schema=definition.text)
        if isinstance(definition, StructuralTag):
            return _with(definition, self.options("structural_tag", said), format=definition.text)
        if isinstance(definition, Regex):
            return _with(definition, self.options("regex", said))
        return definition

    def wanted(self, definition: Definition, said: AbstractSet[str] = frozenset()) -> Definition:
        """Return the definition that a request asks for here.

        Parameters
        ----------
        definition:
            As it is written in a file or a program.
        said:
            Its options that stand there.

        Raises `UnsupportedError` for what no request can ask for: another kind, or options where there are none.
        """
        if self.kinds and definition.kind not in self.kinds:
            raise UnsupportedError(f"{self.name} asks for no definitions of the kind {definition.kind}")
        if self.has_options:
            return self.completed(definition, said)
        plain = _of_text(definition)
        if self.completed(definition, said).canonical() != self.completed(plain, said & CHOICE).canonical():
            raise UnsupportedError(
                f"{self.name} asks for definitions by their texts, without options of their own",
                remedy="Say the options in the operator's settings, or in the text.",
            )
        if isinstance(plain, Gbnf | Grammar):
            return engine_grammar(plain.text, is_larks=is_larks(plain.text))
        return self.completed(plain, said & CHOICE)

    def tools(self, request: JsonMap, tokenizer: Foreign = None) -> StructuralTag:
        """The replies that a request with tools asks for here.

        Parameters
        ----------
        request:
            ``tools``, a list, and what may stand beside them, as of a `ToolRequest`.
        tokenizer:
            The model's, or its chat template, where neither the request nor the operator names the style.

        Raises what `tool_calls` does.
        """
        said = {"style": self.settings.tool_style, "tokenizer": tokenizer, **request}
        tools = [_ruled(tool, self.settings.strict_tools) for tool in said.pop("tools")]
        return tool_calls(tools, **self.options("tools", said), **said)

    def _tools_wanted(self, request: JsonMap, templates: Iterable[object]) -> Iterator[Definition]:
        """The same for models of some chat templates, with each reasoning that prompts may leave room for."""
        if not self.has_tools:
            raise UnsupportedError(
                f"{self.name} asks for no tools", remedy="Warm what the engine makes of them: a structural tag."
            )
        by_prompt = self.reasons and "reasoning" not in request
        for template, reasoning in product(templates, (True, False, "auto") if by_prompt else (None,)):
            yield self.tools({**request, **({"reasoning": reasoning} if by_prompt else {})}, template)

    def asked(
        self, definition: Definition, said: AbstractSet[str], templates: Iterable[object]
    ) -> Iterator[tuple[str, Definition]]:
        """What is asked for here where a definition is written in a file, by what is said of the door in messages.

        Raises `UnsupportedError` as `wanted` does, and what making a definition of tools raises.
        """
        if isinstance(definition, ToolRequest):
            yield from ((self.name, each) for each in self._tools_wanted(definition.request, templates))
            return
        wanted = self.wanted(definition, said)
        yield self.name, wanted
        for template in templates:
            yield from ((f"{self.name} behind reasoning", each) for each in self.behind_reasoning(wanted, template))

    def behind_reasoning(self, definition: Definition, template: object) -> list[Definition]:
        """A definition that is wanted, behind all reasoning that a model with a chat template may be prompted to."""
        if not self.reasons or not isinstance(definition, JsonSchema):
            return []
        try:
            named = self.settings.tool_style
            style = detect_tool_style(template) if named == "auto" else tool_style(named)
        except DefinitionError:  # a template of no style that is known, so of no reasoning
            return []
        made = [behind_reasoning(definition, style, each) for each in _REASONING] if style.reasoning else []
        return [each for each in made if each is not None]


#: How a reply may reason.
_REASONING: tuple[Reasoning, ...] = (True, "auto")


def _ruled(tool: object, rule: str) -> object:
    """A tool that says whether its arguments follow its schema as the operator has it."""
    if rule == "said" or not isinstance(tool, Mapping):
        return tool
    inner = tool.get("function")
    if isinstance(inner, Mapping):
        return {**tool, "function": _ruled(inner, rule)}
    if rule == "always":
        return {name: value for name, value in tool.items() if name != "strict" or value is not False}
    return tool if tool.get("strict") is True else {**tool, "strict": False}


def _with(definition: Foreign, options: Mapping[str, Foreign], **text: str) -> Definition:
    """A definition with other options; itself where there is no difference."""
    new = {name: value for name, value in options.items() if getattr(definition, name) != value}
    made: Definition = replace(definition, **text, **new) if new else definition
    return made


def _of_text(definition: Definition) -> Definition:
    """Return a definition of the same text without options."""
    if isinstance(definition, Regex):
        return Regex(definition.pattern)
    if isinstance(definition, JsonSchema | StructuralTag | Grammar | Ebnf):
        return type(definition)(definition.text)
    assert isinstance(definition, Gbnf)
    return Gbnf(definition.text)


def said_in(schema: object) -> set[str]:
    """The options that a schema says itself, under ``x-guidance``."""
    if isinstance(schema, Mapping):
        schema = json.dumps({KEY: schema[KEY]}) if KEY in schema else ""
    return set(options_of(schema)) if isinstance(schema, str) else set()


def is_larks(text: str) -> bool:
    """Whether a grammar is in Lark's syntax, as engines tell: by no line, less its comment, with ``::=``."""
    return not any("::=" in line.split("#")[0].split("//")[0] for line in text.splitlines())


def engine_grammar(text: str, *, is_larks: bool) -> Gbnf | Grammar:
    """A grammar as engines take it: in XGrammar's EBNF, or, where only that has what is in it, llama.cpp's GBNF."""
    if is_larks:
        return Grammar(text)
    dialect = engine_dialect(text)
    return Ebnf(text, dialect=dialect) if dialect else Gbnf(text)


#: The kinds of definitions that a request can write.
_WRITTEN = ("json_schema", "regex", "grammar", "gbnf", "structural_tag")

#: How engines ask that have definitions as texts.
TEXTS = Door("an engine", "any", "any", has_options=False, kinds=_WRITTEN)

#: A program that compiles what it has written itself: definitions as they are, but for the operator's settings.
PROGRAM = Door("a program", has_tools=True)

#: The ways in which each engine asks, by its name.
ENGINES: dict[str, tuple[Door, ...]] = {
    **dict.fromkeys(ENGINE_NAMES, (PROGRAM,)),
    "vllm": (
        replace(TEXTS, name="vLLM's structured outputs"),
        Door("vLLM's logits processor", "any", "any", kinds=_WRITTEN, has_tools=True),
    ),
    "sglang": (replace(TEXTS, name="SGLang"),),
    "tensorrt-llm": (replace(TEXTS, name="TensorRT-LLM"),),
    "transformers": (
        PROGRAM,
        Door(
            "transformers serve", "single", "any", has_options=False, kinds=("json_schema", "structural_tag"),
            has_tools=True, reasons=True,
        ),
    ),
    "outlines": (PROGRAM, Door("Outlines", kinds=("json_schema", "regex", "grammar"))),
}  # fmt: skip


def door(engine: str, settings: Settings, number: int = 0) -> Door:
    """One of an engine's doors, with the operator's settings."""
    return replace(ENGINES[engine][number], settings=settings, engine=engine)


@dataclass(frozen=True)
class Wanted:
    """A definition as an engine asks for it, and the names of the doors that ask for it so."""

    engine: str
    doors: tuple[str, ...]
    definition: NamedDefinition


def wanted_by(
    engine: str, named: Iterable[NamedDefinition], settings: Settings, templates: Iterable[object] = ()
) -> list[Wanted | StructgenError]:
    """Return definitions as an engine asks for them, once each; an error for each that it does not ask for.

    ``templates``: the chat templates of its models, or tokenizers that have one.
    """
    templates = list(templates) or [None]  # which is enough where the operator says how the model writes
    doors = [replace(each, settings=settings) for each in ENGINES[engine]]
    found: list[Wanted | StructgenError] = []
    for each in named:
        asked: dict[str, tuple[list[str], Definition]] = {}
        refused: list[StructgenError] = []
        for opened in doors:
            try:
                for name, wanted in opened.asked(each.definition, each.said, templates):
                    names = asked.setdefault(wanted.canonical(), ([], wanted))[0]
                    names += [name] if name not in names else []
            except StructgenError as error:
                refused.append(error)
        if not asked:
            what = f"definition {each.name!r}: {refused[0].what}"
            found.append(type(refused[0])(what, where=each.where, remedy=refused[0].remedy))
        found += [Wanted(engine, tuple(names), replace(each, definition=made)) for names, made in asked.values()]
    return found


def definitions_for(
    engine: str, named: Iterable[NamedDefinition], *, settings: Settings | None = None, tokenizer: object = None
) -> list[NamedDefinition]:
    """Return definitions as an engine's requests ask for them, to be compiled ahead of time by `structgen.warm`.

    Parameters
    ----------
    engine:
        A name of `ENGINES`, such as ``"vllm"``.
    named:
        The definitions, from `structgen.load_definitions`.
    settings:
        The operator's settings. None: those of `settings_for`.
    tokenizer:
        A tokenizer with a chat template, or the template, where the model's reasoning is part of what a server asks
        for.

    Raises
    ------
    DefinitionError
        For an unknown engine, and for the first definition that the engine cannot ask for.
    """
    found = []
    settings = settings_for(engine) if settings is None else settings
    for each in wanted_by(engine, named, settings, [] if tokenizer is None else [tokenizer]):
        if isinstance(each, StructgenError):
            raise each
        found.append(each.definition)
    return found
