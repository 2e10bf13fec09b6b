"""Definitions of XGrammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..definitions import Definition, Ebnf, JsonSchema, Regex, StructuralTag
from ..definitions.json_text import dumps, loads
from ..definitions.schema_sources import schema_text
from ..definitions.structural_tag import read_format
from ..errors import DefinitionError, UnsupportedError
from ..system.types import Foreign, with_article
from .lark import lark_grammar
from .migrated import ANY_ESCAPE, Migrated, kept_to, whole_patterns

_CLOSED = "Objects are closed by additional_properties=False; arrays keep their items."
_ANY_ORDER = "In any order, members are still required, and come once."


def from_xgrammar(grammar: object, format: str = "", **options: Foreign) -> Migrated:
    """Convert a grammar of XGrammar, or the argument of ``xgrammar.Grammar.from_...``.

    Parameters
    ----------
    grammar:
        An ``xgrammar.Grammar``, compiled or not; or the text, dict or type of the format.
    format:
        ``"ebnf"``, ``"json_schema"``, ``"regex"``, ``"lark"`` or ``"structural_tag"``. Empty: a str is EBNF, a
        structural tag is recognised by its type or its ``type`` key, any other dict or type is a schema.
    options:
        Options of that call, such as ``any_whitespace=False``.

    Raises
    ------
    DefinitionError
        For a malformed grammar or an unknown format.
    UnsupportedError
        For options that are not honoured.
    """
    name = "" if isinstance(grammar, Definition) else type(grammar).__name__
    if name in ("Grammar", "CompiledGrammar"):  # of which nothing says what it was made of
        return Migrated(Ebnf(str(getattr(grammar, "grammar", grammar))))
    if not format and (name == "StructuralTag" or isinstance(grammar, Mapping)):
        is_tag = not isinstance(grammar, Mapping) or grammar.get("type") == "structural_tag"
        format = "structural_tag" if is_tag else "json_schema"
    format = format or ("json_schema" if isinstance(grammar, type) else "ebnf")
    if format not in _XGRAMMAR:
        raise DefinitionError(f"XGrammar has no format {format!r}", remedy=f"Use one of {', '.join(_XGRAMMAR)}.")
    options = {name: value for name, value in options.items() if not name.startswith("print_")}
    try:
        return _XGRAMMAR[format](grammar, **options)
    except TypeError as error:
        raise UnsupportedError(f"an option of {format} is not read: {error}", remedy="Leave it out.") from error


def _xgrammar_ebnf(text: object, *, root_rule_name: str = "root") -> Migrated:
    changes = ["Look-ahead behind rules changes no text, and is read over."] if "(=" in str(text) else []
    return Migrated(Ebnf(text, start=root_rule_name), tuple(changes))


def _as_pattern(separator: object) -> object:
    """A separator as a pattern that matches nothing else."""
    is_plain = not isinstance(separator, str) or not separator.strip(" \t\n\r,:")
    return separator if is_plain else re.escape(str(separator))


def _xgrammar_schema(
    schema: object,
    *,
    any_whitespace: bool = True,
    indent: int | None = None,
    separators: Sequence[str] | None = None,
    strict_mode: bool = True,
    max_whitespace_cnt: int | None = None,
    **order: bool,
) -> Migrated:
    changes = [ANY_ESCAPE]
    if separators is not None and len(separators) != 2:
        raise DefinitionError(f"{separators!r} is no pair of separators", remedy='Pass such as (", ", ": ").')
    options: dict[str, Foreign] = {"whitespace": "any", "max_whitespace": max_whitespace_cnt, "escapes": "any"}
    usual = (",", ":")
    if not any_whitespace:
        options["whitespace"] = "compact" if indent is None else indent
        del options["max_whitespace"]
        usual = (", ", ": ") if indent is None else (",", ": ")
    if not any_whitespace or tuple(separators or usual) != usual:
        options["item_separator"], options["key_separator"] = map(_as_pattern, separators or usual)
    if strict_mode:
        options["additional_properties"] = False
        changes.append(_CLOSED)
    if order.pop("any_order", False):
        options["property_order"] = "any"
        changes.append(_ANY_ORDER)
    if order:
        raise TypeError(min(order))
    schema, spelled = _xgrammar_patterns(schema_text(schema))
    return Migrated(JsonSchema(schema, **options), (*changes, *spelled))


#: Keywords of which XGrammar makes less than JSON Schema, or refuses them.
_LESS = frozenset(
    {"uniqueItems", "contains", "minContains", "maxContains", "dependentRequired", "dependentSchemas", "dependencies",
     "allOf", "oneOf", "not", "if", "format", "minProperties", "maxProperties", "multipleOf"}
)  # fmt: skip


def _xgrammar_patterns(schema: Foreign) -> tuple[Foreign, tuple[str, ...]]:
    """A schema with patterns as XGrammar means them, and what changes."""
    schema, changes = whole_patterns(schema, _plain, names=True)
    return schema, (*changes, *kept_to(schema, "XGrammar", _LESS))


#: Of a regex: anchors within it, which mean nothing to XGrammar, and dots, which are all but a line feed.
_XGRAMMAR_REGEX = re.compile(r"\[\^?(?:\\(?s:.)|[^\]\\])*(?:\]|\Z)|\\(?s:.)|(?P<anchor>(?<!\A)\^|\$(?!\Z))|(?P<dot>\.)")
_SPACE = r"\s is all white space of Unicode, as in JavaScript; before 0.2.9 XGrammar had less."
_CASE = "Without regard to case letters are equal as in JavaScript; XGrammar knows those of ASCII alone."


_ENDS = "Text with a suffix or a stop ends with it, and a lazy rule has a character; in XGrammar neither has to."


def _javascript(pattern: str, flags: int) -> Migrated:
    """The regex, and what changes."""
    spelled = _plain(pattern, "." if flags & re.DOTALL else r"[^\n]")
    changes = [_SPACE] * (r"\s" in pattern.lower()) + [_CASE] * bool(flags & re.IGNORECASE)
    return Migrated(Regex(spelled, flags, "ecma"), tuple(changes))


def _plain(pattern: str, dot: str = ".") -> str:
    """A regex as JavaScript has it: without anchors within it, and with what its dots are."""
    return _XGRAMMAR_REGEX.sub(lambda found: "" if found["anchor"] else dot if found["dot"] else found[0], pattern)


def _xgrammar_lark(
    text: str, *, named_grammars: Mapping[str, object] | None = None, tokenizer_info: object = None
) -> Migrated:
    named = {} if named_grammars is None else named_grammars
    if not isinstance(named, Mapping):
        raise DefinitionError(f"named_grammars is {with_article(type(named))}", remedy="Use a dict, by name.")
    held = {name: each if isinstance(each, str) else Ebnf(str(each)) for name, each in named.items()}
    found = lark_grammar(text, _xgrammar_schema, _javascript, held)
    texts = [text, *(each for each in named.values() if isinstance(each, str))]
    ends = any(re.search(r"\b(?:suffix|stop)\s*=|\blazy\b", each) for each in texts)
    return Migrated(found.definition, (*found.changes, *([_ENDS] if ends else [])))


def _xgrammar_regex(pattern: Foreign) -> Migrated:
    if not isinstance(pattern, str):
        raise DefinitionError(f"{with_article(type(pattern))} is no regex", remedy="Pass its text.")
    return _javascript(pattern, re.DOTALL)


def _xgrammar_tag(tag: object) -> Migrated:
    write = getattr(tag, "model_dump_json", None)
    root: Foreign = loads(dumps(read_format(write() if callable(write) else tag)))
    changes: dict[str, None] = {}
    todo = [root]
    while todo:
        each = todo.pop()
        todo += each if isinstance(each, list) else []
        if not isinstance(each, dict):
            continue
        if "json_schema" in each:
            schema, found = _xgrammar_patterns(each["json_schema"])
            each["json_schema"] = loads(schema) if isinstance(schema, str) else schema
            changes |= dict.fromkeys([ANY_ESCAPE, _CLOSED, *([_ANY_ORDER] if each.get("any_order") else []), *found])
        elif each.get("type") == "regex" and isinstance(each.get("pattern"), str):
            changes |= dict.fromkeys(_javascript(each["pattern"], re.DOTALL).changes)
            each |= {"pattern": _plain(each["pattern"]), "dialect": "ecma", "flags": int(re.DOTALL)}
        elif each.get("type") == "grammar":
            changes |= dict.fromkeys(_xgrammar_ebnf(each.get("grammar")).changes)
        todo += [value for name, value in each.items() if name != "json_schema"]
    made = StructuralTag(root, whitespace="any", max_whitespace=None, escapes="any", additional_properties=False)
    return Migrated(made, tuple(changes))


_XGRAMMAR: dict[str, Callable[..., Migrated]] = {
    "ebnf": _xgrammar_ebnf,
    "json_schema": _xgrammar_schema,
    "regex": _xgrammar_regex,
    "lark": _xgrammar_lark,
    "structural_tag": _xgrammar_tag,
}
