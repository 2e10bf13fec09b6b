"""Grammars in Lark's syntax, as llguidance and XGrammar read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..compiler.patterns.respelled import as_python
from ..definitions import Definition, Grammar, Regex
from ..definitions.grammar_marks import REGEX, STRING, in_groups, read_marks, with_names
from ..errors import BudgetExceededError, UnsupportedError
from .migrated import Migrated

_EARLEY = (
    'Ambiguous rules are followed in all ways, by ambiguity="all"; of a terminal the longest match counts, and of'
    " those that match the same the first in Lark's order."
)
_IGNORED = "What is ignored may also stand before the first lexeme, and behind the last."
_FOLDED = "In strings without regard to case an i is equal to İ and ı as well, as it is to Python's re."

#: Flags of regexes in a grammar; u is always meant.
FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "u": 0}

#: Where JSON's strings are imported, which Lark has without line ends in them, and the engines with.
_IMPORT = re.compile(
    r"^([ \t]*)%import[ \t]+common(?:\.(ESCAPED_STRING)(?:[ \t]*->[ \t]*(\w+))?|[ \t]*\(([^()]*)\))", re.M
)
_QUOTED = r'/"(?:[^"\\]|\\.)*"/'

#: Characters of regexes that are written for a grammar: some fifteen hundred ``\\w`` of Rust's.
_MOST_CHARACTERS = 1 << 24

#: Grammars within a grammar, those within these counted each time; one holds fewer levels than may recur.
_MOST_GRAMMARS = 100

#: Strings, regexes, names with hyphens, and what holds none.
_PIECES = re.compile(
    rf"(?://|#)[^\n]*|(?P<string>{STRING})|(?P<regex>{REGEX})|<[^<>\s]*>|@[\w-]+"
    r"|(?P<head>^[ \t]*[?!]*)?(?<![\w-])(?P<name>[A-Za-z_]\w*-[\w-]*)(?!>)"
    r"(?P<opening>[ \t]*(?:\.[ \t]*-?\d+[ \t]*)?\[)?"
    r"|(?P<capture>\bcapture(?=\s*[,\]]))|(?P<end>[\]\n])",
    re.MULTILINE,
)
_ESCAPE = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\(?:x(?P<code>[0-9a-fA-F]{2})|(?s:.))"
)
#: What is equal to an i, in a string.
_AN_I = re.compile(r"[iIİı]|\\u0(?:0[46]9|13[01])")


def lark_grammar(
    text: str,
    schema: Callable[[str], Migrated],
    regex: Callable[[str, int], Migrated],
    named: Mapping[str, Definition | str] | None = None,
) -> Migrated:
    """A grammar in Lark's syntax, with those that it holds by ``@name``, and these.

    Its schemas, ``%json {...}``, become definitions with the options that ``schema`` gives them; its regexes are what
    ``regex`` says of a pattern and its flags.
    """
    text = re.sub(r"\A%llguidance\s*\{\s*\}", "", text)  # without an option it says whose the grammar is
    changes: dict[str, None] = {_EARLEY: None}

    def read(schema_text: str) -> Definition:
        found = schema(schema_text)
        changes.update(dict.fromkeys(found.changes))
        return found.definition

    def spell(text: str) -> str:
        if re.search(r"^\s*%ignore\b", text, re.M) is not None:
            changes[_IGNORED] = None
        return _plain(text, regex, changes)

    grammar = _holding(text, read, spell, named or {}, (), [])
    return Migrated(grammar, tuple(changes))


def _plain(text: str, regex: Callable[[str, int], Migrated], changes: dict[str, None]) -> str:
    """A text with regexes as Python's, strings as Lark's, and names without hyphens.

    JSON in it means what it meant: its strings are spelled in a way that both read.
    """
    taken = set(re.findall(r"\w+", text))
    names: dict[str, str] = {}
    captured: str | None = None  # the name of the rule whose attributes these are
    written = 0
    plains: dict[str, str | None] = {}

    def name_of(name: str) -> str:
        if name not in names:
            plain = name.replace("-", "_")
            while plain in taken:
                plain += "_"
            taken.add(plain)
            names[name] = plain
        return names[name]

    def piece(found: re.Match[str]) -> str:
        nonlocal captured, written
        if found["end"] is not None:
            captured = None
        if found["string"] is not None:
            if found[0].endswith("i") and _AN_I.search(found[0][:-1]) is not None:
                changes[_FOLDED] = None
            return _ESCAPE.sub(_plain_escape, found[0])
        if found["regex"] is not None:
            pattern, _, flags = found[0][1:].rpartition("/")
            if not set(flags) <= FLAGS.keys():  # which the grammar is told with its place
                return found[0]
            if found[0] not in plains:
                meant = regex(pattern, sum(FLAGS[flag] for flag in set(flags)))
                changes.update(dict.fromkeys(meant.changes))
                assert isinstance(meant.definition, Regex)
                plains[found[0]] = as_python(meant.definition, pattern)
            plain = plains[found[0]]
            written += len(plain or "")
            if written > _MOST_CHARACTERS:
                what = f"the regexes take more than {_MOST_CHARACTERS:,} characters in the spelling of re"
                remedy = "Give classes such as \\w that come again a terminal of their own."
                raise BudgetExceededError(what, remedy=remedy)
            return found[0] if plain is None else f"/{plain}/"
        if found["name"] is not None:
            head, opening = found["head"], found["opening"] or ""
            captured = found["name"] if opening and head is not None else captured
            return (head or "") + name_of(found["name"]) + opening
        return found[0] if found["capture"] is None or captured is None else f'capture="{captured}"'

    return _PIECES.sub(piece, text)


def _plain_escape(found: re.Match[str]) -> str:
    r"""An escape of JSON, or ``\x41``, as both JSON and Lark have it."""
    if found["pair"] is not None:
        return bytes.fromhex(found[0].replace("\\u", "")).decode("utf-16-be")
    if found["code"] is not None:
        return f"\\u00{found['code']}"
    return {"\\/": "/", "\\b": "\\u0008"}.get(found[0], found[0])


def _imported(found: re.Match[str]) -> str:
    """An import without ESCAPED_STRING, and that defined."""
    indent, alone, alias, several = found.groups()
    if alone is not None:
        return f"{indent}{alias or alone}: {_QUOTED}"
    names = [name.strip() for name in several.split(",")]
    if "ESCAPED_STRING" not in names:
        return found[0]
    others = [name for name in names if name != "ESCAPED_STRING"]
    imports = f"{indent}%import common ({', '.join(others)})\n" if others else ""
    return f"{imports}{indent}ESCAPED_STRING: {_QUOTED}"


def _holding(
    text: str,
    schema: Callable[[str], Definition],
    spell: Callable[[str], str],
    named: Mapping[str, Definition | str],
    within: tuple[str, ...],
    held_so_far: list[str],
) -> Grammar:
    """A grammar with those that it holds. Raises `UnsupportedError` for one that holds itself, and for too many."""
    text, schemas, grammars = with_names(text)
    text = in_groups(spell(_IMPORT.sub(_imported, text)))
    held: dict[str, Definition] = {name: schema(each) for name, each in schemas.items()}
    for name, each in grammars.items():
        _count("%lark", (), held_so_far)
        held[name] = _holding(each, schema, spell, named, within, held_so_far)
    for terminal, reference in read_marks(text).references.items() if named else ():
        if terminal in held:
            continue
        inner = named.get(reference[1:])
        _count(reference, within, held_so_far)
        if isinstance(inner, str):
            inner = _holding(inner, schema, spell, named, (*within, reference), held_so_far)
        if inner is not None:
            held[terminal] = inner
    return Grammar(text, ambiguity="all", matches="longest", definitions=held)


def _count(name: str, within: tuple[str, ...], held_so_far: list[str]) -> None:
    """Count a grammar that is held. Raises `UnsupportedError` for one within itself, and for too many."""
    held_so_far.append(name)
    if name in within or len(held_so_far) > _MOST_GRAMMARS:
        what = "itself" if name in within else f"more than {_MOST_GRAMMARS} grammars, each where it is named"
        remedy = "Write their rules into one grammar."
        raise UnsupportedError(f"the grammar {(*within, name)[0]} holds {what}", remedy=remedy)
