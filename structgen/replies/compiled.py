"""What a reader of replies has of its definition, shared by all its forks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..budget import Meter
from ..building import build
from ..building.stacks import marked_tag_machine
from ..compiler.structural_tags.formats import Format, Inner
from ..definitions import StructuralTag
from ..definitions.labels import ARGUMENTS, CALL, CONTENT, GEMMA, ID, NULL_CONTENT, REASONING
from ..definitions.styles import STYLES
from ..errors import DefinitionError
from ..runtime.core.machine import CompiledMachine
from ..system.depth_first import post_order
from ..vocabulary.vocabulary import Vocabulary
from .arguments import Arguments, GemmaArguments, JsonArguments, TaggedArguments
from .spans import Spans

_KNOWN = frozenset({CONTENT, NULL_CONTENT, REASONING, ID, ARGUMENTS, GEMMA})


def is_id(label: str) -> bool:
    """Whether a label is that of an id."""
    return label == ID or label.startswith(f"{ID}:")


class CallFormat(NamedTuple):
    """How a tool is called: its arguments, if they have a label, and whether the model writes an id."""

    arguments: Format | None
    has_id: bool


class Compiled:
    """The automaton with marks, and how each tool is called.

    Raises
    ------
    DefinitionError
        For labels that there are not, or none; and whatever compiling the definition raises.
    """

    def __init__(self, definition: StructuralTag, vocabulary: Vocabulary, meter: Meter) -> None:
        self._definition = definition
        self._meter = meter
        machine, marks = marked_tag_machine(definition, vocabulary, meter)
        self.spans = Spans(machine, marks)
        self.no_content = None if any(each.label == NULL_CONTENT for each in marks.formats) else ""
        self._calls: dict[str, CallFormat] = {}
        for name, call in _calls(marks.formats):  # of which a tool may have several
            self._calls[name] = call._replace(has_id=call.has_id or self.writes_id(name))
        self._schemas: dict[str, CompiledMachine] = {}

    def writes_id(self, name: str) -> bool:
        """Whether the model writes, or may write, ids of a tool's calls."""
        return name in self._calls and self._calls[name].has_id

    def arguments(self, name: str) -> Arguments:
        """What reads the arguments of a tool's calls."""
        found = self._calls[name].arguments
        if found is not None and found.label == GEMMA:
            return GemmaArguments()
        style = STYLES.get(found.options.get("style", "")) if isinstance(found, Inner) else None
        return JsonArguments() if style is None else TaggedArguments(style, lambda: self._schema(name))

    def _schema(self, name: str) -> CompiledMachine:
        """The JSON of a tool's arguments in any layout, made when it is first asked for."""
        machine = self._schemas.get(name)
        if machine is None:
            inner = self._calls[name].arguments
            assert isinstance(inner, Inner)
            options = {key: value for key, value in inner.options.items() if key not in ("style", "excludes")}
            layout = {"whitespace": "any", "max_whitespace": None, "escapes": "any"}
            schema = self._definition.schema(inner.value, **{**options, **layout})
            self._meter.begin_again()
            try:
                machine, _ = build(schema, Vocabulary.bytewise(), self._meter, on_demand=True)
            except DefinitionError:  # of a lenient definition, else it would not have been compiled
                schema = self._definition.schema({"type": "object"}, **{**options, **layout})
                machine, _ = build(schema, Vocabulary.bytewise(), self._meter, on_demand=True)
            self._schemas[name] = machine
        return machine


def _calls(formats: list[Format]) -> Iterator[tuple[str, CallFormat]]:
    """How each tool is called. Raises `DefinitionError` for labels that there are not."""
    labelled = [each for each in formats if each.label]
    if not labelled:
        raise DefinitionError(
            "no format has a label, so nothing says what a text is",
            remedy='Use structgen.tool_calls, or give formats a "label".',
        )
    for format_ in labelled:
        label = format_.label
        if label.startswith(CALL) and label != CALL:
            within = {each.label: each for each in post_order([format_], lambda each: each.children)}
            has_id = any(is_id(each) for each in within)
            yield label.removeprefix(CALL), CallFormat(within.get(ARGUMENTS, within.get(GEMMA)), has_id)
        elif label not in _KNOWN and not is_id(label):
            raise DefinitionError(
                f"there is no label {label!r}",
                where=format_.where or "/",
                remedy=f"Use one of {', '.join(sorted(_KNOWN))}, or call:NAME.",
            )
