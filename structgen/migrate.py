"""Definitions from what other engines take, with a report of what changed on the way.

Each function takes what its engine's own calls take, as text or as the engine's object, and imports no engine. What
an engine honours and structgen does not is refused by name, here or when the definition is compiled; what means
something else here is among the `changes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from .compiler.json_schema.read.drafts import UNDECLARED
from .definitions import (
    Definition,
    Ebnf,
    Fsm,
    Gbnf,
    Grammar,
    Indentation,
    JsonSchema,
    Regex,
    StructuralTag,
    as_definition,
    one_of,
    sequence,
)
from .definitions.grammar_marks import REGEX, STRING, read_marks
from .definitions.guidance_options import LETTERS, json_spaces, optional_whitespace, with_general
from .definitions.json_text import dumps, loads
from .errors import DefinitionError, UnsupportedError
from .system.types import Foreign


@dataclass(frozen=True)
class Migrated:
    """What became of another engine's definition.

    Parameters
    ----------
    definition:
        To be compiled as any other.
    changes:
        What is not as it was there, a sentence for each; empty where the texts are the same.
    """

    definition: Definition
    changes: tuple[str, ...] = ()


_EARLEY = 'Ambiguous rules are followed in all ways, by ambiguity="all"; regexes of terminals are Python\'s.'
_ANY_ESCAPE = 'Strings may be spelled with any escape of JSON, by escapes="any".'


#: A regex of a grammar, and what else may hold slashes.
_REGEX = re.compile(rf"(?://|#)[^\n]*|{STRING}|<[^<>\s]*>|(?P<regex>{REGEX})")
_FLAGS = re.compile(r"(?:\(\?[a-zA-Z]+\))*")


def _in_groups(text: str) -> str:
    """A grammar whose regexes with | are groups: Lark puts terminals together as texts, ``"x" /a|b/`` as ``xa|b``."""

    def piece(found: re.Match[str]) -> str:
        if found["regex"] is None or "|" not in found[0]:
            return found[0]
        regex, _, flags = found[0][1:].rpartition("/")
        begin = _FLAGS.match(regex)
        at = begin.end() if begin is not None else 0
        return f"/{regex[:at]}(?:{regex[at:]}{'' if 'x' not in flags else chr(10)})/{flags}"

    return _REGEX.sub(piece, text)


def _lark(text: str, named: Mapping[str, Definition | str] | None = None) -> Migrated:
    """A grammar in Lark's syntax, with those that it holds by ``@name``; `UnsupportedError` where these hold more."""
    text = _in_groups(text)
    text = re.sub(r"\A%llguidance\s*\{\s*\}", "", text)  # without an option it says whose the grammar is
    held: dict[str, Definition] = {}
    for terminal, reference in read_marks(text).references.items() if named else ():
        inner = named.get(reference[1:]) if named else None
        if isinstance(inner, str):
            if more := read_marks(inner).references:
                what = f"the grammar {reference} holds {min(more.values())}, and only the first one may hold others"
                raise UnsupportedError(what, remedy="Write their rules into one grammar.")
            inner = Grammar(_in_groups(inner), ambiguity="all")
        if inner is not None:
            held[terminal] = inner
    return Migrated(Grammar(text, ambiguity="all", definitions=held), (_EARLEY,))


#: A grammar that is one regex, as llguidance's ``grammar_from_regex`` and guidance's ``regex`` write it.
_ONE_REGEX = re.compile(
    rf"\s*(?:%llguidance\s*\{{\s*\}})?\s*start\s*:\s*(?:(?P<name>[A-Z_]+)\s*\n\s*(?P=name)\s*:\s*)?(?P<regex>{REGEX})\s*"
)


def _llguidance_lark(text: str, named: Mapping[str, Definition | str] | None = None) -> Migrated:
    """A grammar in Lark's syntax; one that is a regex has all its texts, not those that a lexer prefers."""
    found = _ONE_REGEX.fullmatch(text)
    if found is None:
        return _lark(text, named)
    regex, _, flags = found["regex"][1:].rpartition("/")
    return Migrated(Regex(f"(?{flags}){regex}" if flags else regex, dialect="rust"))


def _rules(text: str) -> Migrated:
    return Migrated(Gbnf(text)) if "::=" in text else _llguidance_lark(text)


# -- llguidance and guidance ----------------------------------------------------------------------------------


def from_llguidance(grammar: str | Mapping[str, Foreign], format: str = "") -> Migrated:
    """What ``llguidance.LLMatcher`` takes, or ``llguidance.grammar_from(format, text)``.

    Parameters
    ----------
    grammar:
        Lark's syntax, a schema, a regex, a list of choices, or what ``LLMatcher.grammar_from_...`` returned.
    format:
        A format of ``grammar_from``; left out, a JSON object is llguidance's own, and all else Lark's syntax.

    Raises `DefinitionError`, and `UnsupportedError` for options of schemas and for grammars within grammars.
    """
    if not isinstance(grammar, str | Mapping):
        raise DefinitionError(f"a {type(grammar).__name__} is no grammar of llguidance's", remedy="Pass its text.")
    text = grammar if isinstance(grammar, str) else dumps(dict(grammar))
    format = format or ("llguidance" if text.lstrip().startswith("{") else "lark")
    if format not in _LLGUIDANCE:
        raise DefinitionError(f"llguidance has no format {format!r}", remedy=f"Use one of {', '.join(_LLGUIDANCE)}.")
    return _LLGUIDANCE[format](text)


def _llguidance(text: str) -> Migrated:
    whole: Foreign = loads(text)
    grammars = whole.get("grammars") if isinstance(whole, dict) else None
    if not isinstance(grammars, list) or not grammars or not all(isinstance(each, dict) for each in grammars):
        raise DefinitionError("this is no grammar of llguidance's", remedy='It is {"grammars": [{...}]}.')
    if whole.get("max_tokens") is not None:
        raise UnsupportedError("max_tokens of a grammar is not read", remedy="Use sg.Guide(max_tokens=...).")
    if isinstance(lark := grammars[0].get("lark_grammar"), str):
        if grammars[0].get("json_schema") is not None:
            what = "a grammar of llguidance's is both a schema and Lark's syntax"
            raise DefinitionError(what, where="/grammars/0", remedy="Leave one out.")
        return _llguidance_lark(lark, {str(each.get("name")): _named(each) for each in grammars[1:]})
    return _llguidance_schema(dumps(grammars[0].get("json_schema")))


def _named(grammar: Mapping[str, Foreign]) -> Definition | str:
    lark = grammar.get("lark_grammar")
    return lark if isinstance(lark, str) else _llguidance_schema(dumps(grammar.get("json_schema"))).definition


def _llguidance_schema(text: str) -> Migrated:
    schema = loads(text)
    given = schema.pop("x-guidance", {}) if isinstance(schema, dict) else {}
    if not isinstance(given, dict):
        raise DefinitionError("x-guidance is no object", where="/x-guidance", remedy="Write its options into one.")
    given = {name: value for name, value in given.items() if value is not None}
    options: dict[str, Foreign] = {"whitespace": "any", "max_whitespace": None, "escapes": LETTERS}
    if not given.pop("whitespace_flexible", True):
        options |= {"whitespace": "compact"}
    if "whitespace_pattern" in given:
        pattern = given.pop("whitespace_pattern")
        options["whitespace"] = optional_whitespace(pattern) if isinstance(pattern, str) else pattern
    options["lenient"] = bool(given.pop("lenient", False))
    changes = []
    if given.pop("coerce_one_of", False):
        changes.append("oneOf means exactly one of them, not any.")
    for name in ("item_separator", "key_separator"):
        if name in given:
            separator = given.pop(name)
            options[name] = json_spaces(separator) if isinstance(separator, str) else separator
    if "json_allowed_escapes" in given:
        options["escapes"] = given.pop("json_allowed_escapes")
    if given.pop("json_allow_general_unicode_escapes", False) and isinstance(options["escapes"], str):
        options["escapes"] = with_general(options["escapes"])
    if given:
        what = f"the option {min(given)} of x-guidance is not read"
        raise UnsupportedError(what, where="/x-guidance", remedy="Leave it out; see the options of sg.JsonSchema.")
    return Migrated(JsonSchema(schema, **options), tuple(changes))


def _choice(text: str) -> Migrated:
    words: Foreign = loads(text)
    if not isinstance(words, list):
        raise DefinitionError("a choice of llguidance's is no list of strings", remedy='Write ["yes", "no"].')
    return Migrated(Regex.choice(words))


_LLGUIDANCE: dict[str, Callable[[str], Migrated]] = {
    "lark": _llguidance_lark,
    **dict.fromkeys(("gbnf", "ebnf", "cfg", "grammar"), _rules),
    **dict.fromkeys(("json_schema", "json"), _llguidance_schema),
    "regex": lambda text: Migrated(Regex(text, dialect="rust")),
    "choice": _choice,
    "llguidance": _llguidance,
}


def from_guidance(grammar: object) -> Migrated:
    """What guidance has a model generate: a grammar of its functions, which writes itself down for llguidance.

    Raises as `from_llguidance`, and `DefinitionError` for what is no grammar of guidance's.
    """
    for name in ("ll_grammar", "ll_serialize"):
        if callable(write := getattr(grammar, name, None)):
            return from_llguidance(write())
    if isinstance(grammar, str):
        return Migrated(Regex(re.escape(grammar)))
    raise DefinitionError(f"a {type(grammar).__name__} is no grammar of guidance's", remedy="Pass what you append.")


# -- XGrammar -------------------------------------------------------------------------------------------------


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
    changes = [_ANY_ESCAPE]
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
        raise DefinitionError(f"named_grammars is a {type(named).__name__}", remedy="Use a dict, by name.")
    held = {name: _plain_lark(each) if isinstance(each, str) else Ebnf(str(each)) for name, each in named.items()}
    return _lark(_plain_lark(text), held)


def _xgrammar_regex(pattern: Foreign) -> Migrated:
    if not isinstance(pattern, str):
        raise DefinitionError(f"a {type(pattern).__name__} is no regex", remedy="Pass its text.")
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


# -- syncode --------------------------------------------------------------------------------------------------


def from_syncode(grammar: object) -> Migrated:
    """What syncode takes: a grammar in Lark's syntax, as text or as a ``syncode`` grammar with its ``ebnf``.

    Lark reads it there with the basic lexer. Where it declares ``_INDENT`` and ``_DEDENT``, indents are made as in
    syncode's Python: behind ``_NL``, or ``_NEWLINE``, with tabs of four columns.

    Raises `DefinitionError` for anything else.
    """
    text = getattr(grammar, "ebnf", grammar)
    if not isinstance(text, str):
        raise DefinitionError(f"a {type(grammar).__name__} is no grammar of syncode's", remedy="Pass its text.")
    if re.search(r"^\s*%declare\b[^\n]*\b_INDENT\b", text, re.MULTILINE) is None:
        return Migrated(Grammar(text, lexer="basic"))
    newline = "_NL" if re.search(r"^\s*_NL\b[^:\n]*:", text, re.MULTILINE) else "_NEWLINE"
    return Migrated(Grammar(text, lexer="basic", postlex=Indentation(newline, tab=4)))


# -- Outlines, llama.cpp, lm-format-enforcer ------------------------------------------------------------------


def from_outlines(output_type: Any) -> Migrated:
    """What ``outlines.Generator(model, output_type)`` takes: its own types, Python's, and Pydantic's.

    Raises `DefinitionError` for what is none, and what making the definition raises.
    """
    make = _OUTLINES.get(type(output_type).__name__)
    if make is not None and not isinstance(output_type, Definition):
        return make(output_type)
    if get_origin(output_type) is Literal:
        return Migrated(Regex.choice(str(each) for each in get_args(output_type)))
    if isinstance(output_type, type) and issubclass(output_type, Enum):
        return Migrated(Regex.choice(str(each.value) for each in output_type))
    if isinstance(output_type, type) and output_type in _OUTLINES_PYTHON:
        return Migrated(Regex(_OUTLINES_PYTHON[output_type], dialect="rust"))
    return Migrated(as_definition(output_type), _OUTLINES_JSON)


def _outlines_schema(output_type: Any) -> Migrated:
    pattern = getattr(output_type, "whitespace_pattern", None)
    schema, changes = _corrected(output_type.schema, _untyped, "Beside const and enum, unknown types mean nothing.")
    return Migrated(JsonSchema(schema, whitespace="single" if pattern is None else pattern), changes)


def _untyped(schema: dict[str, Foreign]) -> bool:
    """Take away a ``type`` that outlines-core does not look at."""
    named, is_listed = schema.get("type"), "const" in schema or "enum" in schema
    return is_listed and isinstance(named, str) and named not in _TYPES and schema.pop("type") is not None


_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def _corrected(
    schema: Foreign, correct: Callable[[dict[str, Foreign]], bool], change: str
) -> tuple[Foreign, tuple[str, ...]]:
    """A schema each of whose subschemas ``correct`` has corrected, and the ``change`` where it says that it did."""
    root: Foreign = loads(schema if isinstance(schema, str) else dumps(schema))
    todo, is_changed = [root], False
    while todo:
        each = todo.pop()
        if not isinstance(each, dict):
            continue
        is_changed |= correct(each)
        for keyword, value in each.items():
            if keyword in UNDECLARED.several and isinstance(value, list):
                todo += value
            elif keyword in UNDECLARED.one:
                todo.append(value)
            elif keyword in UNDECLARED.several and isinstance(value, dict):
                todo += value.values()
    return (dumps(root), (change,)) if is_changed else (schema, ())


_OUTLINES_JSON = (
    'White space is one space or none; whitespace="any" lets there be more.',
    "Lists, tuples, dicts and unions are JSON: true and null, not True and None.",
)

#: What Outlines writes down for Python's types by themselves (``outlines.types``).
_INTEGER = "[+-]?(0|[1-9][0-9]*)"
_DATE, _TIME = r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", "([0-1][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])"
_OUTLINES_PYTHON: dict[type, str] = {
    str: '"[^"]*"', int: _INTEGER, float: rf"{_INTEGER}(\.[0-9]+)?([eE][+-]?[0-9]+)?", bool: "True|False",
    date: _DATE, time: _TIME, datetime: rf"{_DATE}\s{_TIME}",
}  # fmt: skip

#: Terms of Outlines' within one another.
_DEEPEST_TERM = 100

#: How a term comes again, by the name of its class.
_QUANTIFIERS: dict[str, Callable[[Any], str]] = {
    "KleeneStar": lambda term: "*",
    "KleenePlus": lambda term: "+",
    "Optional": lambda term: "?",
    "QuantifyExact": lambda term: f"{{{int(term.count)}}}",
    "QuantifyMinimum": lambda term: f"{{{int(term.min_count)},}}",
    "QuantifyMaximum": lambda term: f"{{0,{int(term.max_count)}}}",
    "QuantifyBetween": lambda term: f"{{{int(term.min_count)},{int(term.max_count)}}}",
}


def _outlines_term(term: Any, depth: int = 0) -> str:
    """The regex of a term of Outlines'. Raises `UnsupportedError` for schemas and grammars in one."""
    name = type(term).__name__
    if depth > _DEEPEST_TERM:
        raise UnsupportedError("the term is nested too deeply", remedy="Give a regex instead.")
    if name == "String":
        return re.escape(str(term.value))
    if name == "Regex":
        return f"({term.pattern})"
    if name == "Choice":
        return f"({'|'.join(re.escape(str(item)) for item in term.items)})"
    if name in ("Sequence", "Alternatives"):
        parts = [_outlines_term(each, depth + 1) for each in term.terms]
        return "".join(parts) if name == "Sequence" else f"({'|'.join(parts)})"
    if name in _QUANTIFIERS:
        return f"({_outlines_term(term.term, depth + 1)}){_QUANTIFIERS[name](term)}"
    what = f"a {name} within a term of Outlines' is not read"
    raise UnsupportedError(what, remedy="Put definitions together with sg.sequence and sg.one_of.")


def _outlines_regex(term: Any) -> Migrated:
    pattern = term.pattern if type(term).__name__ == "Regex" else _outlines_term(term)
    if re.search(r"\(\?<?[=!]", pattern) is None:
        return Migrated(Regex(pattern, dialect="rust"))
    return Migrated(Regex(pattern), ("The regex has look-around, and is read as Python's: Rust's have none.",))


#: By the name of a class of ``outlines.types``.
_OUTLINES: dict[str, Callable[[Any], Migrated]] = {
    **dict.fromkeys(("Regex", "String", "Sequence", "Alternatives", *_QUANTIFIERS), _outlines_regex),
    "CFG": lambda given: _lark(given.definition),  # which llguidance reads there
    "JsonSchema": _outlines_schema,
    "Choice": lambda given: Migrated(Regex.choice(str(each) for each in given.items)),
}


_NO_END = "No space stands behind the whole text."


def from_llama_cpp(grammar: object) -> Migrated:
    """What llama-cpp-python takes: the text of a grammar, also in UTF-8, a ``LlamaGrammar``, a ``response_format``.

    Raises `DefinitionError` for anything else.
    """
    if isinstance(grammar, Mapping):
        if grammar.get("type") != "json_object":
            raise DefinitionError("the response_format is none of llama.cpp's", remedy='Its type is "json_object".')
        schema = grammar.get("schema") or {"type": "object"}  # {} is any object, too
        schema, changes = _corrected(schema, _same_items, "A prefixItems that is no array is items.")
        closed = JsonSchema(schema, escapes="any", additional_properties=False)
        return Migrated(closed, (_ANY_ESCAPE, "Objects that list properties have no others.", _NO_END, *changes))
    text = getattr(grammar, "_grammar", grammar)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise DefinitionError(f"the grammar is not UTF-8: {error}", remedy="Pass its text.") from error
    if not isinstance(text, str):
        raise DefinitionError(f"a {type(grammar).__name__} is no grammar", remedy="Pass its text.")
    return Migrated(Gbnf(text, start=getattr(grammar, "_root", "root")))


def _same_items(schema: dict[str, Foreign]) -> bool:
    """Name a schema ``items`` that llama.cpp takes for such."""
    if isinstance(schema.get("prefixItems", []), list):
        return False
    schema.setdefault("items", schema.pop("prefixItems"))
    return True


_ANY_CHARACTER = "Any character of Unicode may stand where those of an alphabet may there."


def from_lm_format_enforcer(parser: object) -> Migrated:
    """What lm-format-enforcer takes: a parser of its own, as it was made, or what these are made of.

    That is the dict of a schema, None for any value, or a str with a regex.

    Raises `DefinitionError` for anything else, and `UnsupportedError` for what is nested too deeply.
    """
    if parser is None or isinstance(parser, Mapping):
        return _enforced_schema(True if parser is None else parser)
    if isinstance(parser, str):
        return Migrated(Regex(parser, re.ASCII), (_ANY_CHARACTER,))
    changes: dict[str, None] = {}
    return Migrated(_enforced(parser, changes), tuple(changes))


def _enforced(parser: Any, changes: dict[str, None], depth: int = 0) -> Definition:
    """The definition of a parser of lm-format-enforcer's; what it changes is added."""
    name = type(parser).__name__
    if depth > _DEEPEST_TERM:
        raise UnsupportedError("the parser is nested too deeply", remedy="Write a grammar instead.")
    if name in ("UnionParser", "SequenceParser"):
        parts = [_enforced(each, changes, depth + 1) for each in parser.parsers]
        return one_of(*parts) if name == "UnionParser" else sequence(*parts)
    if name == "StringParser":
        return Regex(re.escape(parser.target_str))
    if name == "RegexParser":
        found = Migrated(Fsm(parser.context.pattern), (_ANY_CHARACTER,))
    elif name == "JsonSchemaParser":
        found = _enforced_schema(_plain_schema(parser.context.model_class), parser.config)
    else:
        what = f"a {name} is no parser of lm-format-enforcer's"
        raise DefinitionError(what, remedy="Pass a JsonSchemaParser, RegexParser or StringParser, or a schema.")
    changes.update(dict.fromkeys(found.changes))
    return found.definition


def _enforced_schema(schema: object, config: object = None) -> Migrated:
    changes = [_ANY_CHARACTER, "No space stands around the whole text."]
    in_order = getattr(config, "force_json_field_order", False)
    if in_order:
        changes.append("Members come in the schema's order, not in that of its required ones.")
    closed = JsonSchema(
        schema, whitespace="any", escapes="any", additional_properties=False,
        max_whitespace=getattr(config, "max_consecutive_whitespaces", 12),
        max_items=getattr(config, "max_json_array_length", 20), property_order="schema" if in_order else "any",
    )  # fmt: skip
    return Migrated(closed, tuple(changes))


def _plain_schema(value: Any, depth: int = 0) -> Foreign:
    """The JSON of a ``JsonSchemaObject``, which keeps what it does not know beside its fields."""
    if depth > _DEEPEST_TERM:
        raise UnsupportedError("the schema is nested too deeply", remedy="Pass its dict.")
    if isinstance(value, Mapping):
        return {name: _plain_schema(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain_schema(each, depth + 1) for each in value]
    if not hasattr(value, "extras"):
        return value
    named = {"ref": "$ref", "id": "$id"}
    fields = sorted(name for name in value.model_fields_set if name != "extras")
    known = {named.get(name, name): _plain_schema(getattr(value, name), depth + 1) for name in fields}
    return {name: each for name, each in known.items() if each is not None} | dict(value.extras)
