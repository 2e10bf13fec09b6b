"""Rules within rules that are one lexeme: terminals with the same texts in their places.

The body of ``a[max_chars=9]: "x" b`` is a terminal's, and terminals hold no rules. Where nothing is ignored, a rule
that does not come to itself has a regular language, which a terminal can say:

    b: "y" c                     has    B_TEXT: "y" C_TEXT
    b[max_chars=5]: /c*/                B_BODY: /c*/
                                        B_TEXT: B_BODY & /(?s:.){0,5}/
    b[suffix=";"]: /c*/                 B_WHOLE: B_BODY ";"
                                        B_TEXT: B_WHOLE & ~(B_WHOLE /(?s:.)+/)

The last is the shortest match: no text of the rule has one before its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ....definitions.grammar_marks import in_groups
from ....system.depth_first import post_order
from .dialects import blanked

#: What reads attributes, and what finds a new name that begins with a stem.
Read: TypeAlias = "Callable[[str, str], Mapping[str, str]]"
Named: TypeAlias = "Callable[[str], str]"

#: Where a rule or a terminal is defined, and statements, in a text without strings, regexes and comments.
_BEGIN = re.compile(r"^[ \t]*(?:[?!]*(?P<name>\w+)[ \t]*(?P<rest>[^:\n|]*):|%)", re.M | re.ASCII)
_RULE = re.compile(r"(?<![\w%@])_?[a-z]\w*", re.ASCII)

#: A text with these is left as it is: what is ignored, changed elsewhere, has parameters or another name.
_OTHERS = re.compile(r"^[ \t]*%(?:ignore|extend|override)\b|::|->|\{[^\d,]", re.M)

#: What is said of rules in others that terminals can say.
_SAID = {"suffix", "max_chars", "max_tokens"}

#: Rules within lexemes, each where it is named; past that they are left as they are.
_MOST_RULES = 1 << 14


class _Definition(NamedTuple):
    """A rule: its attributes, as they are written, and where its body is."""

    attributes: str
    begin: int
    end: int


def without_rules_in_lexemes(text: str, read: Read, named: Named) -> str:
    """A grammar's text in which bodies of lexemes name terminals, as far as rules can be said by these.

    ``read`` is given attributes and their place, and may raise what it does for those that there are not.
    """
    blank = blanked(text)
    if _OTHERS.search(blank) is not None:
        return text
    return _LexemeRules(text, blank, read, named).run()


class _LexemeRules:
    def __init__(self, text: str, blank: str, read: Read, named: Named) -> None:
        self._text, self._blank = text, blank
        self._read, self._named = read, named
        self._definitions: dict[str, _Definition | None] = {}
        self._named_by: dict[str, list[str]] = {}
        self._terminals: dict[str, str] = {}
        begins = [*_BEGIN.finditer(blank)]
        for here, end in zip(begins, [*(each.start() for each in begins[1:]), len(text)], strict=True):
            name = here["name"]
            if name is not None:
                written = text[slice(*here.span("rest"))].strip()
                known = name not in self._definitions and (not written or written[0] + written[-1] == "[]")
                self._definitions[name] = _Definition(written[1:-1], here.end(), end) if known else None

    def run(self) -> str:
        """The text."""
        changed: list[tuple[int, int, str]] = []
        left = _MOST_RULES
        for rule, definition in self._definitions.items():
            if definition is None or not definition.attributes or not self._rules(rule):
                continue
            said = self._said(rule)
            if said.keys() <= {"capture"}:
                continue
            order = self._order(rule)
            left -= len(order)
            if left >= 0 and order and all(self._can_be_said(each, said) for each in order):
                for each in order:
                    self._terminals.setdefault(each, self._named(f"{each.strip('_').upper()}_TEXT"))
                changed.append((definition.begin, definition.end, self._body(definition)))
        parts, at = [], 0
        for begin, end, body in sorted(changed):
            parts += [self._text[at:begin], body]
            at = end
        added = [line for rule in self._terminals for line in self._terminal(rule)]
        return "\n".join(["".join([*parts, self._text[at:]]), *added]) if changed else self._text

    def _said(self, rule: str) -> Mapping[str, str]:
        definition = self._definitions.get(rule)
        if definition is None or not definition.attributes:
            return {}
        line = self._text.count("\n", 0, definition.begin) + 1
        return self._read(definition.attributes, f"line {line}, rule {rule}")

    def _rules(self, rule: str) -> list[str]:
        """The rules that one names, each once."""
        definition = self._definitions.get(rule)
        if rule not in self._named_by:
            span = (0, 0) if definition is None else definition[1:]
            self._named_by[rule] = list(dict.fromkeys(_RULE.findall(self._blank, *span)))
        return self._named_by[rule]

    def _order(self, rule: str) -> list[str]:
        """All rules within one; none where one of them comes to itself."""
        circles: list[str] = []
        order = [*post_order([rule], self._rules, lambda _, found: circles.append(found))]
        return [] if circles else order[:-1]

    def _can_be_said(self, rule: str, around: Mapping[str, str]) -> bool:
        """Whether a terminal can say a rule, in one with some attributes; it has no fewer tokens than that one."""
        said = self._said(rule)
        tokens = int(said["max_tokens"]) if "max_tokens" in said else None
        most = int(around["max_tokens"]) if "max_tokens" in around else None
        is_within = tokens is None or (most is not None and most <= tokens)
        return self._definitions.get(rule) is not None and said.keys() <= _SAID and is_within

    def _body(self, definition: _Definition) -> str:
        """A body with terminals in place of rules, and regexes that stay apart from what is beside them."""
        parts, at = [], definition.begin
        for found in _RULE.finditer(self._blank, definition.begin, definition.end):
            parts += [self._text[at : found.start()], self._terminals[found[0]]]
            at = found.end()
        return in_groups("".join([*parts, self._text[at : definition.end]]))

    def _terminal(self, rule: str) -> Iterator[str]:
        """The lines that define the terminal of a rule."""
        definition, said, name = self._definitions[rule], self._said(rule), self._terminals[rule]
        assert definition is not None
        most, end = said.get("max_chars"), said.get("suffix", '""')
        body = name if most is None and end == '""' else self._named(f"{name}_BODY")
        yield f"{body}: {self._body(definition)}"
        if most is not None:
            short, body = body, name if end == '""' else self._named(f"{name}_SHORT")
            yield f"{body}: {short} & /(?s:.){{0,{int(most)}}}/"
        if end != '""':
            whole = self._named(f"{name}_WHOLE")
            yield f"{whole}: {body} {end}"
            yield f"{name}: {whole} & ~({whole} /(?s:.)+/)"
