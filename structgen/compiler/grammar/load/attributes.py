"""Attributes of rules, in brackets behind their names: ``name[lazy, capture]: ...``. The notation is llguidance's.

Lark knows none of them. A rule with one that is about its lexeme (all but ``capture``) has a terminal for its body:

    name[suffix=";"]: /.*/    becomes    NAME_LEXEME: /.*/
                                         NAME_PLAIN: NAME_LEXEME
                                         name: NAME_LEXEME
                                         NAME_END: ";"

The first of these stays where the rule was, so that places in messages stay right. The second is what Lark takes
where a rule has the same regex without a name: the last terminal that has it. What the attributes say is entered in
the grammar when Lark has loaded it, by these names (`structgen.compiler.grammar.attributed`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from ....definitions.grammar_marks import REGEX, STRING
from ....errors import BudgetExceededError, DefinitionError
from .lexeme_rules import without_rules_in_lexemes

_UNFLAGGED = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"', r"/(?!/)[^/\\\n]*(?:\\.[^/\\\n]*)*/"
_VALUE = rf"{_UNFLAGGED[0]}i?|{_UNFLAGGED[1]}[imslux]*"

#: The head of a rule with attributes: nothing that Lark reads looks like this, but within regexes.
_HEAD = re.compile(
    rf"^(?P<before>[ \t]*)(?P<signs>[?!]*)(?P<name>_?[a-z]\w*)(?:[ \t]*(?P<priority>\.[ \t]*-?\d+))?[ \t]*"
    rf"\[(?P<attributes>(?:[^\[\]\"/\n]|{'|'.join(_UNFLAGGED)})*)\][ \t]*:",
    re.M | re.ASCII,
)
_PIECES = re.compile(rf"{_HEAD.pattern}|//[^\n]*|\#[^\n]*|{STRING}|{REGEX}", _HEAD.flags)

_ATTRIBUTE = re.compile(rf"\s*(?P<key>\w+)\s*(?:=\s*(?P<value>{_VALUE}|-?\d+(?:\.\d+)?|\w+)\s*)?(?:,|$)", re.ASCII)

#: A rule that is one symbol.
_ALONE = re.compile(r"(?:\s|\\\n)*(\w+)(?:[ \t\r]|\\\n)*(?://[^\n]*|\#[^\n]*)?(?:\n(?!\s*\|)|\Z)")

_NAME = r'"[^"\\\n]+"'
_TERMINAL = rf"{_VALUE}|_?[A-Z]\w*"

#: What may be said, and the form of its value.
_KNOWN = {
    "lazy": re.compile(""),
    "capture": re.compile(rf"(?:{_NAME})?"),
    "stop_capture": re.compile(_NAME),
    "suffix": re.compile(_TERMINAL),
    "stop": re.compile(_TERMINAL),
    "temperature": re.compile(r"\d{1,9}(?:\.\d{1,9})?"),  # see structgen.system.arguments
    "max_chars": re.compile(r"\d{1,9}"),
    "max_tokens": re.compile(r"\d{1,9}"),
}

#: What may be said of a definition that is a rule, besides its captures.
_OF_DEFINITIONS = {"temperature", "max_tokens"}

#: Characters of one rule's attributes, and rules that have some.
_LONGEST, _MOST_RULES = 10_000, 1 << 14


class RuleAttributes(NamedTuple):
    """What is said of a rule.

    Parameters
    ----------
    rule:
        Its name.
    lexeme:
        The terminal that is its text, up to ``ending``; None where it is no lexeme.
    capture:
        Under which name its text is given back, if it is.
    stop_capture:
        Under which name that of ``ending`` is.
    is_shortest:
        Whether the lexeme ends as soon as it may.
    plain:
        The terminal that is the same without attributes.
    ending:
        The terminal at its end that is hidden from captures.
    is_stop:
        Whether ``ending`` is there once only, where what follows begins with it.
    temperature:
        At which the lexeme is sampled.
    max_chars:
        How many characters the lexeme has at most, besides the ending.
    max_tokens:
        How many tokens have a byte of it at most, of the ending's, too.
    """

    rule: str
    lexeme: str | None
    capture: str | None
    stop_capture: str | None
    is_shortest: bool
    plain: str | None
    ending: str | None
    is_stop: bool
    temperature: float | None
    max_chars: int | None
    max_tokens: int | None

    @property
    def captures(self) -> bool:
        """Whether something is given back."""
        return self.capture is not None or self.stop_capture is not None


class AttributedText(NamedTuple):
    """A text without attributes, and what these were."""

    text: str
    attributes: tuple[RuleAttributes, ...]


def read_attributes(text: str, given: Collection[str] = ()) -> AttributedText:
    """Take the attributes of rules out of a grammar's text.

    A rule that is one of the ``given`` terminals, which are not lexed, may have a temperature and a number of tokens;
    that terminal is its lexeme.

    Raises `DefinitionError` for an attribute that there is not, or with a value that it can't have, and
    `BudgetExceededError` for thousands of them.
    """
    heads = []
    names = _NewNames(text)
    if "[" in text and _HEAD.search(text) is not None:
        text = without_rules_in_lexemes(text, _read, names.of)
        heads = [found for found in _PIECES.finditer(text) if found["name"] is not None]
    if len(heads) > _MOST_RULES:
        raise BudgetExceededError(f"more than {_MOST_RULES:,} rules have attributes")
    found: list[RuleAttributes] = []
    parts: list[str] = []
    added: list[str] = []
    at = line = 0
    for head in heads:
        parts.append(text[at : head.start()])
        line += parts[-1].count("\n")
        at = head.end()
        said = _read(head["attributes"], f"line {line + 1}, rule {head['name']}")
        rule = f"{head['signs']}{head['name']}{head['priority'] or ''}"
        alone = _ALONE.match(text, at)
        is_about_lexemes = not said.keys().isdisjoint(_OF_DEFINITIONS)
        body = alone[1] if alone is not None and alone[1] in given and is_about_lexemes else None
        if said.keys() - _OF_DEFINITIONS <= {"capture"} and (body is not None or not is_about_lexemes):
            found.append(_of(head["name"], said, body))
            parts.append(f"{head['before']}{rule}:")
            continue
        stem = head["name"].strip("_").upper()
        lexeme = names.of(f"{stem}_LEXEME")
        end, ending = None, said.get("suffix", said.get("stop"))
        plain = names.of(f"{stem}_PLAIN")
        added += [f"{rule}: {lexeme}", f"{plain}: {lexeme}"]
        if ending is not None and ending != '""':
            end = names.of(f"{stem}_END")
            added.append(f"{end}: {ending}")
        found.append(_of(head["name"], said, lexeme, plain, end))
        parts.append(f"{head['before']}{lexeme}:")
    parts.append(text[at:])
    return AttributedText("\n".join(["".join(parts), *added]), tuple(found))


class _NewNames:
    """Names of terminals that a text does not use."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def of(self, stem: str) -> str:
        """A new name that begins with a stem."""
        self._taken = self._taken or set(re.findall(r"\w+", self._text))
        n = self._last.get(stem, 0) + 1
        while (name := f"{stem}_{n}" if n > 1 else stem) in self._taken:
            n += 1
        self._last[stem] = n
        self._taken.add(name)
        return name


def _of(
    rule: str, said: dict[str, str], lexeme: str | None = None, plain: str | None = None, ending: str | None = None
) -> RuleAttributes:
    capture = (said["capture"][1:-1] or rule) if "capture" in said else None
    stop_capture = said["stop_capture"][1:-1] if "stop_capture" in said else None
    return RuleAttributes(
        rule, lexeme, capture, stop_capture, "lazy" in said or ending is not None, plain, ending, "stop" in said,
        float(said["temperature"]) if "temperature" in said else None,
        *(int(said[key]) if key in said else None for key in ("max_chars", "max_tokens")),
    )  # fmt: skip


def _read(attributes: str, where: str) -> dict[str, str]:
    """Attributes with their values as they are written, ``""`` for none."""
    said: dict[str, str] = {}
    at, end = 0, len(attributes.rstrip())
    while at < end:
        found = _ATTRIBUTE.match(attributes, at, end)
        if found is None or end > _LONGEST:
            what = f"{attributes[at : at + 40].strip()!r} is no attribute"
            raise DefinitionError(what, where=where, remedy="Write name, or name=value.")
        at = found.end()
        key, value = found["key"], found["value"] or ""
        if key not in _KNOWN:
            what = f"there is no attribute {key}"
            raise DefinitionError(what, where=where, remedy=f"There are {', '.join(_KNOWN)}.")
        if _KNOWN[key].fullmatch(value) is None:
            what = f"the attribute {key} is given {value}" if value else f"the attribute {key} is given nothing"
            remedy = (
                "stop and suffix take a string, a regex or a terminal's name, captures a name in quotes, max_chars "
                "and max_tokens digits, temperature a number with nine digits before and behind the point at most; "
                "lazy takes nothing."
            )
            raise DefinitionError(what, where=where, remedy=remedy)
        if key in said:
            raise DefinitionError(f"the attribute {key} is there twice", where=where, remedy="Leave one out.")
        said[key] = value
    if said.keys() >= {"stop", "suffix"}:
        raise DefinitionError("a rule has a stop or a suffix, not both", where=where, remedy="Leave one out.")
    if "stop_capture" in said and not said.keys() & {"stop", "suffix"}:
        what = "stop_capture is for rules with a stop or a suffix"
        raise DefinitionError(what, where=where, remedy="Give the rule one, or leave stop_capture out.")
    return said
