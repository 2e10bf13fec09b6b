"""Definitions of llguidance and guidance."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..definitions import Definition, Gbnf, JsonSchema, Regex
from ..definitions.grammar_marks import REGEX
from ..definitions.guidance_options import LETTERS, json_spaces, optional_whitespace, with_general
from ..definitions.json_text import dumps, loads
from ..errors import DefinitionError, UnsupportedError
from ..system.types import Foreign, with_article
from .lark import FLAGS, lark_grammar
from .migrated import Migrated, kept_to, subschemas

#: A grammar that is one regex, as ``llguidance.grammar_from_regex`` and guidance's ``regex`` write it: by a name,
#: or by a name of a name.
_ONE_REGEX = re.compile(
    r"\s*(?:%llguidance\s*\{\s*\})?\s*start\s*:\s*"
    rf"(?:(?P<name>[A-Z_][A-Z_0-9]*)\s*\n\s*(?P=name)\s*:\s*)*(?P<regex>{REGEX})\s*"
)


def _rust(pattern: str, flags: int = 0) -> Migrated:
    return Migrated(Regex(pattern, flags, "rust"))


def _llguidance_lark(text: str, named: Mapping[str, Definition | str] | None = None) -> Migrated:
    """A grammar in Lark's syntax; one that is a regex has all its texts, not those that a lexer prefers."""
    found = _ONE_REGEX.fullmatch(text)
    regex, _, flags = ("" if found is None else found["regex"][1:]).rpartition("/")
    if found is None or not set(flags) <= FLAGS.keys():
        return lark_grammar(text, _llguidance_schema, _rust, named)
    return _rust(regex, sum(FLAGS[flag] for flag in set(flags)))


def _rules(text: str) -> Migrated:
    return Migrated(Gbnf(text)) if "::=" in text else _llguidance_lark(text)


def from_llguidance(grammar: str | Mapping[str, Foreign], format: str = "") -> Migrated:
    """Convert a grammar of ``llguidance.LLMatcher`` or ``llguidance.grammar_from(format, text)``.

    Parameters
    ----------
    grammar:
        A grammar in Lark's syntax, a schema, a regex, a list of choices, or the result of
        ``LLMatcher.grammar_from_...``.
    format:
        A format of ``grammar_from``. Empty: a JSON object is llguidance's own format, any other text is Lark's
        syntax.

    Raises
    ------
    DefinitionError
        For a malformed grammar or an unknown format.
    UnsupportedError
        For options of schemas, and for grammars within grammars.
    """
    if not isinstance(grammar, str | Mapping):
        raise DefinitionError(f"{with_article(type(grammar))} is no grammar of llguidance's", remedy="Pass its text.")
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
        named = {str(each.get("name")): _named(each, number) for number, each in enumerate(grammars[1:], 1)}
        return _llguidance_lark(lark, named)
    return _schema_of(grammars[0], 0)


def _schema_of(grammar: Mapping[str, Foreign], number: int) -> Migrated:
    if not isinstance(schema := grammar.get("json_schema"), dict | bool):
        remedy = 'Give it "lark_grammar", a text, or "json_schema", an object.'
        raise DefinitionError("a grammar of llguidance's has no text", where=f"/grammars/{number}", remedy=remedy)
    return _llguidance_schema(dumps(schema))


def _named(grammar: Mapping[str, Foreign], number: int) -> Definition | str:
    lark = grammar.get("lark_grammar")
    return lark if isinstance(lark, str) else _schema_of(grammar, number).definition


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
    changes = _schema_changes(schema)
    if given.pop("coerce_one_of", False):
        changes.append("oneOf means exactly one of them, not any.")
    if "whitespace_pattern" in given:
        changes.append("White space is JSON's, whatever else the pattern matches.")
    if given.get("json_allow_general_unicode_escapes"):
        changes.append("Any character may be escaped, also where a pattern or a list of values says the text.")
    if "json_allowed_escapes" in given:
        changes.append("U+007F may stand as it is.")
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


#: Keywords of which llguidance makes less than JSON Schema, or refuses them.
_LESS = frozenset({"oneOf", "not", "if", "patternProperties", "format", "multipleOf"})


def _schema_changes(schema: Foreign) -> list[str]:
    """What is not as it is to llguidance, of a schema by itself."""
    changes = [*kept_to(schema, "llguidance", _LESS, is_whole=True)]
    if any("properties" in each and each.get("additionalProperties") is not False for each in subschemas(schema)):
        changes.append("Names that no schema lists are escaped as other strings are, not in any way.")
    return changes


def _choice(text: str) -> Migrated:
    words: Foreign = loads(text)
    if not isinstance(words, list):
        raise DefinitionError("a choice of llguidance's is no list of strings", remedy='Write ["yes", "no"].')
    return Migrated(Regex.choice(words))


_LLGUIDANCE: dict[str, Callable[[str], Migrated]] = {
    "lark": _llguidance_lark,
    **dict.fromkeys(("gbnf", "ebnf", "cfg", "grammar"), _rules),
    **dict.fromkeys(("json_schema", "json"), _llguidance_schema),
    "regex": _rust,
    "choice": _choice,
    "llguidance": _llguidance,
}


def from_guidance(grammar: object) -> Migrated:
    """Convert a grammar of guidance, built from its functions.

    Parameters
    ----------
    grammar:
        The grammar, which guidance serialises for llguidance.

    Raises
    ------
    DefinitionError
        For anything but a grammar of guidance. Also the errors of `from_llguidance`.
    """
    for name in ("ll_grammar", "ll_serialize"):
        if callable(write := getattr(grammar, name, None)):
            return from_llguidance(write())
    if isinstance(grammar, str):
        return Migrated(Regex(re.escape(grammar)))
    what = f"{with_article(type(grammar))} is no grammar of guidance's"
    raise DefinitionError(what, remedy="Pass what you append.")
