"""Definitions of XGrammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..definitions import Definition, Ebnf, JsonSchema, Regex, StructuralTag
from ..definitions.grammar_marks import REGEX, STRING
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
    options: dict[str, Foreign] = {"whitespace": "any", "max_whitespace": max_whitespace_cnt, "escapes": "any"}
    if not any_whitespace:
        options["whitespace"] = "compact" if indent is None else indent
        del options["max_whitespace"]
        usual = (", ", ": ") if indent is None else (",", ": ")
        if separators is not None and len(separators) != 2:
            raise DefinitionError(f"{separators!r} is no pair of separators", remedy='Pass such as (", ", ": ").')
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


#: Of XGrammar's Lark: a regex, a name with hyphens, and what holds none.
_XGRAMMAR_PIECES = re.compile(
    rf"(?://|#)[^\n]*|{STRING}|(?P<regex>{REGEX})|<[^<>\s]*>|@[\w-]+|(?<![\w-])(?P<name>[A-Za-z_]\w*-[\w-]*)(?!>)"
)

#: What JavaScript spells otherwise than Python's `re`: escapes, and groups with names. Classes hold no names, and no
#: anchors, which mean nothing to XGrammar.
_ESCAPE = r"\\u\{(?P<code>[0-9a-fA-F]{1,6})\}|\\c(?P<control>[A-Za-z])|\\(?s:.)"
_GROUP_NAME = re.compile(rf"(?P<other>{_ESCAPE}|\[(?:\\(?s:.)|[^\]\\])*\])|(?P<name>\(\?<(?=[A-Za-z_]))|[\^$]")


def _python_escape(found: re.Match[str]) -> str:
    if found["code"] is not None:
        return rf"\U{int(found['code'], 16):08x}"
    return found[0] if found["control"] is None else rf"\x{ord(found['control']) & 31:02x}"


def _python_regex(regex: str) -> str:
    named = _GROUP_NAME.sub(lambda found: found["other"] or ("(?P<" if found["name"] else ""), regex)
    return re.sub(_ESCAPE, _python_escape, named)


def _plain_lark(text: str) -> str:
    """XGrammar's Lark with regexes as Python's, and names without hyphens."""
    taken = set(re.findall(r"\w+", text))
    names: dict[str, str] = {}

    def piece(found: re.Match[str]) -> str:
        if found["regex"] is not None:
            return _python_regex(found[0])
        if found["name"] is None:
            return found[0]
        if found[0] not in names:
            name = found[0].replace("-", "_")
            while name in taken:
                name += "_"
            taken.add(name)
            names[found[0]] = name
        return names[found[0]]

    return _XGRAMMAR_PIECES.sub(piece, text)


def _xgrammar_lark(
    text: str, *, named_grammars: Mapping[str, object] | None = None, tokenizer_info: object = None
) -> Migrated:
    named = {} if named_grammars is None else named_grammars
    if not isinstance(named, Mapping):
        raise DefinitionError(f"named_grammars is {with_article(type(named))}", remedy="Use a dict, by name.")
    held = {name: _plain_lark(each) if isinstance(each, str) else Ebnf(str(each)) for name, each in named.items()}
    return lark_grammar(_plain_lark(text), _xgrammar_schema, held)


def _xgrammar_regex(pattern: Foreign) -> Migrated:
    if not isinstance(pattern, str):
        raise DefinitionError(f"{with_article(type(pattern))} is no regex", remedy="Pass its text.")
    changes = (r"\s is all white space of Unicode, as in JavaScript.",) if r"\s" in pattern.lower() else ()
    return Migrated(Regex(pattern, re.DOTALL, "ecma"), changes)


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
