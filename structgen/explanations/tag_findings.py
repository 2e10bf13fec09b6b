"""Findings about the texts of a `StructuralTag`: which formats were being written, and what stands against theirs.

Every format is given its own JSON pointer for a label, and the automaton with marks (`structgen.replies.spans`)
says which of them the text breaks off in, and where their texts begin. What a schema, a pattern or a grammar within
says of its own text is asked of their readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..budget import Budget, Meter
from ..building import build
from ..building.stacks import marked_tag_machine
from ..definitions import Definition, Ebnf, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ..definitions.grammar_text import is_larks
from ..definitions.json_text import loads
from ..definitions.token_sets import engine_dialect
from ..definitions.values import TAG_OPTIONS
from ..errors import StructgenError
from ..replies.spans import Opened, Spans
from ..runtime.index.index import Index
from ..system.types import Foreign
from ..vocabulary.vocabulary import Vocabulary
from . import gbnf_findings, grammar_findings, pattern_findings
from .schemas import findings as schema_findings
from .values import Findings, Reason

#: Ways to read a text, and formats around the innermost one, that are described; characters of a tag that are shown.
_MOST_WAYS, _LONGEST = 6, 40

#: What labelling a tag, or compiling a grammar within it, may cost.
_BUDGET = Budget(seconds=1.0)

#: Keys of formats that hold values of other kinds.
_OTHER = frozenset({"json_schema", "options", "grammar", "pattern"})


def _of_grammar(index: Index, definition: Grammar, data: bytes, ended: bool) -> Findings:
    """What a grammar says of its own text, which is followed by a machine of its own."""
    key = definition.canonical()
    inner = index.explanations.get(key)
    if inner is None:
        try:
            machine, _ = build(definition, Vocabulary.bytewise(), Meter(_BUDGET), on_demand=True)
        except StructgenError as error:
            return Findings((), "", (f"the grammar is not looked into: {error}",))
        inner = index.explanations[key] = Index("grammar", key, machine, origin="compiled")
    data = data if ended else data[:-1]
    consumed, config = inner.machine.reach(inner.machine.start, data)
    if consumed < len(data):
        return Findings((), "", ("the grammar alone reads the text otherwise, and is not looked into",))
    return grammar_findings.find(inner, [(-1, data)], config)


_READERS: dict[type, Callable[[Index, Foreign, bytes, bool], Findings]] = {
    JsonSchema: schema_findings.find, Regex: pattern_findings.find,
    Gbnf: gbnf_findings.find, Ebnf: gbnf_findings.find, Grammar: _of_grammar,
}  # fmt: skip


class _Labelled(NamedTuple):
    """A format's automaton, and its formats by their labels."""

    spans: Spans
    formats: dict[str, dict[str, Foreign]]


def find(index: Index, definition: StructuralTag, data: bytes, ended: bool, _: Foreign = None) -> Findings:
    """Which formats could go on in place of a text's last byte, or of its end."""
    before = data if ended else data[:-1]
    try:
        labelled = index.explanations.get(definition.text)
        if labelled is None:
            labelled = index.explanations[definition.text] = _labelled(definition, index)
        ways = labelled.spans.opened(before)
    except StructgenError as error:
        return Findings((), "", (f"the formats are not looked into: {error}",))
    found = [_of(index, definition, labelled, way, data, ended) for way in ways[:_MOST_WAYS]]
    notes = [note for each in found for note in each.notes]
    if len(ways) > _MOST_WAYS:
        notes.append(f"{len(ways) - _MOST_WAYS} more formats could go on there")
    reasons = tuple(dict.fromkeys(reason for each in found for reason in each.reasons))
    writing = " or ".join(dict.fromkeys(each.writing for each in found if each.writing))
    if len(reasons) > 1:
        what = "none of the formats that could go on there does"
        where = tuple(dict.fromkeys(place for reason in reasons for place in reason.where))
        reasons = (Reason("tag", where, what, "", tuple((reason,) for reason in reasons)),)
    return Findings(reasons, writing, tuple(dict.fromkeys(notes)))


def _labelled(definition: StructuralTag, index: Index) -> _Labelled:
    """The same definition, each format in it with its JSON pointer for a label."""
    formats: dict[str, dict[str, Foreign]] = {}
    root = loads(definition.text)
    todo: list[tuple[str, Foreign]] = [("", root)]
    for pointer, value in todo:  # grows
        if isinstance(value, list):
            todo += ((f"{pointer}/{i}", each) for i, each in enumerate(value))
        elif isinstance(value, dict):
            if isinstance(value.get("type"), str):
                value["label"] = pointer or "/"
                formats[pointer or "/"] = value
            todo += ((f"{pointer}/{name}", each) for name, each in value.items() if name not in _OTHER)
    options = {name: getattr(definition, name) for name in TAG_OPTIONS}
    marked = StructuralTag(root, **options)
    return _Labelled(Spans(*marked_tag_machine(marked, index.vocabulary, Meter(_BUDGET))), formats)


def _of(
    index: Index, definition: StructuralTag, labelled: _Labelled, way: tuple[Opened, ...], data: bytes, ended: bool
) -> Findings:
    """What stands against a text in one way to read it: formats in one another, with where their texts begin."""
    named = [each for each in way if each.label.name in labelled.formats]
    path = " > ".join(_shown(labelled.formats[each.label.name]) for each in named)
    if not named:
        return Findings((Reason("tag", (), "nothing goes on so behind the formats that are over"),), "the whole text")
    innermost = named[-1]
    pointer, format_ = innermost.label.name, labelled.formats[innermost.label.name]
    writing = f"{path} ({pointer})"
    inner = _inner(definition, format_)
    if inner is None:
        what = f"{_shown(format_)} does not go on so"
        return Findings((Reason("tag", (pointer,), what),), writing)
    found = _READERS[type(inner)](index, inner, data[innermost.start :], ended)
    branch = (found.reasons,) if found.reasons else ()
    what = f"{_shown(format_)} does not go on so"
    reason = Reason("tag", (pointer,), what, "", branch)
    writing = f"{writing}, {found.writing}" if found.writing else writing
    return Findings((reason,), writing, found.notes)


def _inner(definition: StructuralTag, format_: dict[str, Foreign]) -> Definition | None:
    """The definition that a format stands for, where its text is read here."""
    kind = format_.get("type")
    try:
        if kind == "json_schema":
            style = {"style": format_["style"]} if "style" in format_ else {}
            return definition.schema(format_["json_schema"], **style, **format_.get("options", {}))
        if kind == "regex":
            return Regex(format_["pattern"], format_.get("flags", 0), format_.get("dialect", "re"))
        if kind == "grammar":
            text = format_["grammar"]
            if format_.get("syntax") == "lark" or (not format_.get("syntax") and is_larks(text)):
                return Grammar(text, **{"start": format_.get("start", "start"), **format_.get("options", {})})
            start = format_.get("start", "root")
            dialect = format_.get("dialect", "" if format_.get("syntax") else engine_dialect(text))
            return Ebnf(text, start=start, dialect=dialect) if dialect else Gbnf(text, start=start)
    except (StructgenError, KeyError, TypeError):
        return None
    return None


def _shown(format_: dict[str, Foreign]) -> str:
    """A format in a word: a tag by how it begins, a text by itself."""
    kind = str(format_["type"])
    text = format_.get("begin", format_.get("value"))
    return f"{kind} {_cut(text)}" if isinstance(text, str) and text else kind


def _cut(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
