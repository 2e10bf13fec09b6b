"""Definitions of XGrammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..definitions import Definition, Ebnf, JsonSchema, Regex, StructuralTag
from ..errors import DefinitionError, UnsupportedError
from ..system.types import Foreign, with_article
from .lark import lark_grammar
from .migrated import ANY_ESCAPE, Migrated


def from_xgrammar(grammar: object, format: str = "", **options: Foreign) -> Migrated:
    """What ``xgrammar.Grammar.from_...`` takes, or an ``xgrammar.Grammar``, compiled or not.

    Parameters
    ----------
    grammar:
        The grammar, or the text, dict or type of the format.
    format:
        ``"ebnf"``, ``"json_schema"``, ``"regex"``, ``"lark"`` or ``"structural_tag"``. Left out, a str is EBNF, a
        structural tag is one as an object or as a dict that says so, and any other dict or type is a schema.
    options:
        Those of that call, such as ``any_whitespace=False``.

    Raises `DefinitionError`, and `UnsupportedError` for options that are not honoured.
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
        changes.append("Objects are closed by additional_properties=False; arrays keep their items.")
    if order.pop("any_order", False):
        options["property_order"] = "any"
        changes.append("In any order, members are still required, and come once.")
    if order:
        raise TypeError(min(order))
    return Migrated(JsonSchema(schema, **options), tuple(changes))


#: Of a regex: anchors within it, which mean nothing to XGrammar, and dots, which are all but a line feed.
_XGRAMMAR_REGEX = re.compile(r"\[\^?(?:\\(?s:.)|[^\]\\])*\]|\\(?s:.)|(?P<anchor>(?<!\A)\^|\$(?!\Z))|(?P<dot>\.)")
_SPACE = r"\s is all white space of Unicode, as in JavaScript; before 0.2.9 XGrammar had less."
_CASE = "Without regard to case letters are equal as in JavaScript; XGrammar knows those of ASCII alone."


def _javascript(pattern: str, flags: int) -> Migrated:
    """The regex, and what changes."""
    dot = "." if flags & re.DOTALL else r"[^\n]"
    spelled = _XGRAMMAR_REGEX.sub(lambda found: "" if found["anchor"] else dot if found["dot"] else found[0], pattern)
    changes = [_SPACE] * (r"\s" in pattern.lower()) + [_CASE] * bool(flags & re.IGNORECASE)
    return Migrated(Regex(spelled, flags, "ecma"), tuple(changes))


def _xgrammar_lark(
    text: str, *, named_grammars: Mapping[str, object] | None = None, tokenizer_info: object = None
) -> Migrated:
    named = {} if named_grammars is None else named_grammars
    if not isinstance(named, Mapping):
        raise DefinitionError(f"named_grammars is {with_article(type(named))}", remedy="Use a dict, by name.")
    held = {name: each if isinstance(each, str) else Ebnf(str(each)) for name, each in named.items()}
    return lark_grammar(text, _xgrammar_schema, _javascript, held)


def _xgrammar_regex(pattern: Foreign) -> Migrated:
    if not isinstance(pattern, str):
        raise DefinitionError(f"{with_article(type(pattern))} is no regex", remedy="Pass its text.")
    return _javascript(pattern, re.DOTALL)


def _xgrammar_tag(tag: object) -> Migrated:
    write = getattr(tag, "model_dump_json", None)
    return Migrated(StructuralTag(write() if callable(write) else tag, whitespace="any"))


_XGRAMMAR: dict[str, Callable[..., Migrated]] = {
    "ebnf": _xgrammar_ebnf,
    "json_schema": _xgrammar_schema,
    "regex": _xgrammar_regex,
    "lark": _xgrammar_lark,
    "structural_tag": _xgrammar_tag,
}
