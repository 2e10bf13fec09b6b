"""What a whole reply is like: text, sections and tool calls, each as it may be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import TYPE_CHECKING

from ..errors import DefinitionError
from .values import Composable, JsonSchema

if TYPE_CHECKING:
    from ..system.types import Foreign
    from ..vocabulary.vocabulary import Vocabulary

#: The `type` of what holds a format, as servers are sent it.
STRUCTURAL_TAG = "structural_tag"


@dataclass(frozen=True)
class StructuralTag(Composable):
    """The texts of a format: free text, tagged sections, tool calls, and definitions of other kinds within them.

    Formats are XGrammar's structural tags: ``{"type": "tag", "begin": "<a>", "content": {...}, "end": "</a>"}``; see
    docs/guide/structural_tags.md. They are read when they are compiled.

    Parameters
    ----------
    format:
        A dict with a format; JSON text of one; either within ``{"type": "structural_tag", "format": ...}``, as
        servers are sent it; or the older ``{"structures": [...], "triggers": [...]}``.
    whitespace, max_whitespace, property_order, escapes, additional_properties, lenient:
        What `JsonSchema` has them mean, for all schemas in the format that do not say otherwise.

    Raises
    ------
    DefinitionError
        For what is no JSON object, or an option without meaning.
    BudgetExceededError
        For JSON nested too deeply to be read.
    """

    format: InitVar[object]
    _: KW_ONLY
    whitespace: str | int = "single"
    max_whitespace: int | None = 20
    property_order: str = "schema"
    escapes: str = "minimal"
    additional_properties: bool = True
    lenient: bool = False
    text: str = field(init=False)

    kind = STRUCTURAL_TAG

    def __post_init__(self, format: object) -> None:
        from .json_text import dumps

        object.__setattr__(self, "text", dumps(_format_of(format)))
        self.schema(True)  # which checks the options

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name in SCHEMA_OPTIONS if (value := getattr(self, name)) != _DEFAULTS[name]]
        return f"StructuralTag({', '.join([repr(self.text), *given])})"

    def schema(self, schema: object, **options: Foreign) -> JsonSchema:
        """A schema in the format, with the options of all but for those that it has of its own."""
        common = {name: getattr(self, name) for name in SCHEMA_OPTIONS}
        return JsonSchema(schema, **common | options)

    def special_names(self, vocabulary: Vocabulary) -> list[tuple[str, int]]:
        """The special tokens of a vocabulary whose names stand in the format: what its bytes don't tell."""
        from json.encoder import encode_basestring_ascii as quote

        named = sorted(vocabulary.special_tokens.items())
        return [(name, token) for name, token in named if quote(name)[1:-1] in self.text]

    def canonical(self) -> str:
        """The kind, the options and the format's text, as JSON."""
        options = self.schema(True).canonical()
        return f'["{self.kind}",{options},{self.text}]'


#: The options of `StructuralTag` that are its schemas'.
SCHEMA_OPTIONS = (
    "whitespace", "max_whitespace", "property_order", "escapes", "additional_properties", "lenient",
)  # fmt: skip


_DEFAULTS = {each.name: each.default for each in fields(StructuralTag)}


def _format_of(value: object) -> object:
    """The format that a value stands for. Raises `DefinitionError`."""
    if isinstance(value, str):
        from .json_text import loads

        value = loads(value)
    if not isinstance(value, Mapping):
        raise DefinitionError(
            f"a structural tag is an object, got {type(value).__name__}",
            remedy='Pass a dict such as {"type": "tag", ...}, or JSON text of one.',
        )
    if value.get("type") == STRUCTURAL_TAG and "format" in value:
        return _format_of(value["format"])
    if "structures" in value:
        return _triggered(value)
    return value


def _triggered(value: Mapping[object, object]) -> object:
    """The older form: a schema for each begin and end, and the triggers."""
    structures = value["structures"]
    if not isinstance(structures, list | tuple):
        raise DefinitionError("structures is no list", where="/structures")
    tags = []
    for number, each in enumerate(structures):
        if not isinstance(each, Mapping) or not {"begin", "end"} <= each.keys():
            raise DefinitionError("a structure has a begin, a schema and an end", where=f"/structures/{number}")
        content = {"type": "json_schema", "json_schema": each.get("schema", True)}
        tags.append({"type": "tag", "begin": each["begin"], "content": content, "end": each["end"]})
    return {"type": "triggered_tags", "triggers": value.get("triggers", []), "tags": tags}
