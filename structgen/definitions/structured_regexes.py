"""``%regex {...}``: what stands somewhere in a text, character by character, word by word, or chunk by chunk.

The notation, and what a word is, are llguidance's: letters, digits and ``_`` in a row, white space in a row, or other
characters in a row.
"""

from __future__ import annotations

import json
import re

from ..errors import DefinitionError

#: Characters of Unicode's property White_Space.
_WHITE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_WORDS = re.compile(rf"[{_WHITE}]+|\w+|[^\w{_WHITE}]+")

_REMEDY = 'Write %regex {"substring_words": "..."}, or substring_chars, or {"substring_chunks": ["...", "..."]}.'


#: Bytes of a text past which its parts are looked up and not lexed. An automaton has two states for each of them at
#: most, so that all shorter texts are within the usual budget of states.
LONG = 100_000


def is_long(text: str) -> bool:
    """Whether a structured regex, as JSON, is of so long a text. Raises `DefinitionError`."""
    return len(text) * 4 > LONG and sum(len(unit.encode("utf-8", "surrogatepass")) for unit in units_of(text)) > LONG


def units_of(text: str) -> list[str]:
    """What a structured regex has any run of, from its JSON text. Raises `DefinitionError`."""
    value = json.loads(text)
    if not isinstance(value, dict) or len(value) != 1:
        raise DefinitionError("%regex has one member that says what it is", where="%regex", remedy=_REMEDY)
    ((kind, source),) = value.items()
    if kind == "substring_chunks":
        if not isinstance(source, list) or not all(isinstance(each, str) for each in source):
            raise DefinitionError("substring_chunks is a list of texts", where="%regex", remedy=_REMEDY)
        return source
    if kind not in ("substring_words", "substring_chars"):
        raise DefinitionError(f"%regex does not know {kind}", where="%regex", remedy=_REMEDY)
    if not isinstance(source, str):
        raise DefinitionError(f"{kind} is a text", where="%regex", remedy=_REMEDY)
    return [*source] if kind == "substring_chars" else _WORDS.findall(source)
