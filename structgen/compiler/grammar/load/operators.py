"""``&`` and ``~`` between the parts of terminals, as brackets that Lark takes for text.

Lark puts a terminal together out of those that it names, as one regex. So each operator becomes a noncharacter of
Unicode in that regex (U+FDD0 to U+FDD5, which stand in no text), and what it applies to is bracketed by others; the
regex is read, and the operators are worked out, by `structgen.compiler.grammar.lexer.algebra`. ``~`` binds before
``*``, ``+``, ``?`` and counts, ``&`` before ``|`` and after a sequence. What they apply to is there once, ``~1``:
Lark joins regexes as they are, so that ``/a|b/`` would fall into two by itself. (The notation is llguidance's.)
"""

from __future__ import annotations

import re

from ....definitions.grammar_marks import COUNT, MARKS, REGEX, STRING
from ....definitions.grammar_text import Imports
from ....errors import DefinitionError

#: Begins an intersection, stands between what is intersected, begins a complement, ends either; what stands before
#: and behind the number of a regex in JSON.
BOTH, AND, NOT, END, NUMBER, LAST = [*MARKS]

#: A noncharacter that stands for something here, by itself or as an escape.
_MARKED = re.compile(rf"[{MARKS}]|\\[uU]0*[fF][dD][dD][0-5]")

_OPERATOR = re.compile(r"&|~\s*[^\s\d]")

_PIECES = re.compile(
    rf"""(?P<gap>\s*//[^\n]*|\s*\#[^\n]*|[^\S\n]+|\\[ ]*\n)"""
    rf"""|(?P<head>(?<![\w%])_?[A-Z][A-Z0-9_]*\s*(?:\.\s*[+-]?\d+\s*)?:(?!:)|%ignore\b)"""
    rf"""|(?P<atom>{STRING}(?:\s*\.\.\s*{STRING})?|{REGEX}|\w+|{COUNT})"""
    rf"""|(?P<choice>\s*\|)|(?P<last>\n\s*)|(?P<opening>[(\[])|(?P<closing>[)\]])"""
    rf"""|(?P<number>~\s*\d+)|(?P<negation>~)|(?P<conjunction>&)|(?s:.)"""
)


def without_operators(text: str, written: str, imports: Imports) -> str:
    """A grammar's text with brackets in place of the operators in its terminals, the same where it has none.

    ``written`` is the text as its author has it. Raises `DefinitionError` where that, or what it imports, has
    characters that are written for the brackets.
    """
    bodies = _Bodies()
    if _OPERATOR.search(text) is not None:
        for found in _PIECES.finditer(text):
            bodies.add(found.lastgroup, found[0])
        bodies.end()
    imported = (data.decode("utf-8", "replace") for _, data in imports.files)
    is_marked = bodies.has_operators or f"/{NUMBER}" in text
    if is_marked and any(map(_MARKED.search, (written, *imported))):
        raise DefinitionError(
            "the grammar has %regex, & or ~, and a character from U+FDD0 to U+FDD5, which stand for these",
            remedy="Leave the character out: it stands for nothing in any text.",
        )
    return "".join(bodies.parts) if bodies.has_operators else text


class _Bodies:
    """A text, piece by piece, with brackets in the bodies of its terminals."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.has_operators = False
        #: By group that is open, the body itself first: where its current alternative begins; what is behind the last
        #: ``&`` there, 0 without one; how many complements it is the operand of. Empty outside of bodies.
        self._groups: list[list[int]] = []
        self._negations = 0  # of what comes next
        self._end = 0  # of the parts but for comments and gaps behind the last

    def add(self, kind: str | None, piece: str) -> None:
        """Go on with a piece."""
        if kind == "head":
            self.end()
            self._put(piece)
            self._groups = [[len(self.parts), 0, 0]]
        elif not self._groups or kind == "gap":
            self.parts.append(piece)
        elif kind == "number":
            self._put(piece)
        elif kind == "negation":
            self._put(f"(/{NOT}/ (")
            self._negations += 1
            self.has_operators = True
        elif kind == "conjunction":
            self._check_negated()
            self._check_operand()
            self._put(f")~1 /{AND}/ (")
            self._groups[-1][1] = len(self.parts)
            self.has_operators = True
        elif kind == "opening":
            self._put(piece)
            self._groups.append([len(self.parts), 0, self._negations])
            self._negations = 0
        elif kind == "closing":
            self._end_alternative()
            self._put(piece)
            self._end_negations(self._groups.pop()[2])
        elif kind == "choice":
            self._end_alternative()
            self._put(piece)
            if self._groups:
                self._groups[-1][:2] = len(self.parts), 0
        elif kind == "last":
            self.end()
            self._put(piece)
        else:
            self._put(piece)
            self._end_negations(self._negations)
            self._negations = 0

    def end(self) -> None:
        """The end of a body."""
        while self._groups:
            self._end_alternative()
            self._groups.pop()
        self._negations = 0

    def _put(self, piece: str) -> None:
        self.parts.append(piece)
        self._end = len(self.parts)

    def _end_alternative(self) -> None:
        begin, last, _ = self._groups[-1]
        self._check_negated()
        if last:
            self._check_operand()
            inner, gaps = self.parts[begin : self._end], self.parts[self._end :]
            self.parts[begin:] = [f" (/{BOTH}/ (", *inner, f")~1 /{END}/)", *gaps]

    def _check_operand(self) -> None:
        """That something stands before an ``&``, or behind the last one."""
        begin, last, _ = self._groups[-1]
        if self._end <= (last or begin):
            what = "& has nothing on one of its sides"
            raise DefinitionError(what, where=self._place(), remedy='Write A & B, or "" for no text.')

    def _check_negated(self) -> None:
        """That something stands behind a ``~``."""
        if self._negations:
            what = "~ has nothing behind it"
            raise DefinitionError(what, where=self._place(), remedy='Write ~A, or ~"" for all but the empty text.')

    def _place(self) -> str:
        return f"line {''.join(self.parts).count(chr(10)) + 1}"

    def _end_negations(self, count: int) -> None:
        if count:
            self._put(f")~1 /{END}/)" * count)
