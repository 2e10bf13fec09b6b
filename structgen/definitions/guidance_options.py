"""``"x-guidance"`` at the root of a JSON Schema: how its values are written, as llguidance's schemas say it."""

from __future__ import annotations

import json
import re

from ..errors import BudgetExceededError, DefinitionError, UnsupportedError
from ..system.types import Foreign
from .json_text import dumps

#: The member of a schema.
KEY = "x-guidance"

#: The letters that may stand behind a backslash; whether ``u`` among them writes any character, not controls alone.
_ESCAPES, _GENERAL = "json_allowed_escapes", "json_allow_general_unicode_escapes"

#: The letters, if nothing is said.
LETTERS = '"\\bfnrtu'

#: Options that come to nothing here, with the values by which they do: ``oneOf`` is honoured as it is.
_NOTHING: dict[str, tuple[object, ...]] = {
    "coerce_one_of": (True, False),
    _ESCAPES: (None,),
    _GENERAL: (True, False, None),
}

#: What ``\\s`` is in JSON.
_SPACE = r"[ \t\n\r]"

#: Separators, which are regexes here as well, and what they are if nothing is said.
_SEPARATORS = {"item_separator": ",", "key_separator": ":"}


def options_of(text: str) -> dict[str, Foreign]:
    """The options of a `JsonSchema` that its text says, by name.

    Raises `DefinitionError` for an option that means nothing, `UnsupportedError` for one that is not honoured.
    """
    if f'"{KEY}"' not in text and "\\u00" not in text:
        return {}
    try:
        schema = json.loads(text)
    except ValueError:
        return {}  # which is said when it is read
    except RecursionError as error:
        raise BudgetExceededError("the schema is nested too deeply to be read") from error
    given = schema.get(KEY) if isinstance(schema, dict) else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise DefinitionError(f"{KEY} is no object", where=f"/{KEY}", remedy="Leave it out.")
    found: dict[str, Foreign] = {}
    for name, value in given.items():
        found |= _option(name, value)
    if given.get(_GENERAL):
        found |= {"escapes": with_general(str(found.get("escapes", LETTERS)))}
    if given.get("whitespace_pattern") is not None:
        found |= {"whitespace": optional_whitespace(given["whitespace_pattern"])}
    return found


def optional_whitespace(pattern: str) -> str:
    """What a gap may be by a ``whitespace_pattern``: also nothing. ``\\s`` is that of JSON."""
    return f"(?:{json_spaces(pattern)})?"


def json_spaces(pattern: str) -> str:
    """A pattern with JSON's white space for ``\\s``, but for classes that say what they lack."""
    opening = ""

    def replaced(found: re.Match[str]) -> str:
        nonlocal opening
        if found[0] == r"\s" and not opening.startswith("[^"):
            return _SPACE[1:-1] if opening else _SPACE
        if found[0][0] in "[]" and not (opening and found[0][0] == "["):
            opening = found[0].removesuffix("]")
        return found[0]

    return re.sub(r"(?s:\\.)|\[\^?\]?|\]", replaced, pattern)


def with_general(letters: str) -> str:
    """The letters of escapes of which ``u`` writes any character, where it is among them."""
    return letters.replace("u", "U")


def _option(name: str, value: object) -> dict[str, Foreign]:
    if any(value is each for each in _NOTHING.get(name, ())) or (name, value) == ("whitespace_pattern", None):
        return {}
    if name == "lenient" and isinstance(value, bool):
        return {"lenient": value}
    if name == "whitespace_flexible" and isinstance(value, bool):
        return {"whitespace": "any", "max_whitespace": None} if value else {"whitespace": "compact"}
    if name == "whitespace_pattern" and isinstance(value, str):
        return {}
    if name in _SEPARATORS and isinstance(value, str):
        return {name: json_spaces(value)} if value != _SEPARATORS[name] else {}
    if name == _ESCAPES and isinstance(value, str) and set(value) <= set('nrbtf\\"u'):
        return {"escapes": value}
    raise UnsupportedError(
        f"llguidance's option {name!r} with {dumps(value)[:40]} is not honoured",
        where=f"/{KEY}",
        remedy="Say how values are written as arguments of sg.JsonSchema: whitespace=, item_separator=, escapes=.",
    )
