"""Grammars for tests: their text, letters that their texts are made of, and what is hard about each."""

from __future__ import annotations

import structgen as sg

ARITHMETIC = r"""
?start: sum
?sum: product | sum "+" product -> add | sum "-" product
?product: atom | product "*" atom | product "/" atom
?atom: NUMBER | "-" atom | "(" sum ")"
%import common.NUMBER
%import common.WS
%ignore WS
"""

JSON = r"""
start: value
value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""

#: Keywords among identifiers, ``>>`` against ``>``, comments, an ambiguity that is shifted.
STATEMENTS = r"""
start: stmt*
stmt: "if" expr "then" stmt ["else" stmt] | NAME "=" expr ";" | "{" stmt* "}"
expr: NAME | INT | expr ">" part | expr ">>" part | NAME "(" [expr ("," expr)*] ")"
part: NAME | INT
NAME: /[a-z]+/
COMMENT: /\/\*(.|\n)*?\*\//
%import common.INT
%ignore /\s+/
%ignore COMMENT
"""

#: Matches that are not the longest ones.
PREFERENCES = r"""
start: (S | T | D | "é" | W)*
S: "<" /.*?/ ">"
T: /a+?b?/
D: ".." | "." /[0-9]/ | /[0-9]+\.?[0-9]*/
W: /x(?=y|z)[xyz]/ | /w(?!w)[a-w](?<=[ab])/
"""

#: Lexemes that turn out to be longer, several bytes after they could have ended.
UNDECIDED = r"""
start: (INT | FLOAT | NAME | "." | "+" | TEN)+
INT: /[0-9]+/
FLOAT: /[0-9]+e[+][0-9]+/
NAME: /[a-z]+/
TEN: "e+e+e"
"""

#: Priorities, flags, strings that regexes match in one case only, ranges, templates, aliases.
PRIORITIES = r"""
start: (word | pair{WORD, NUMBER} | hex)+ "!"~1..3
pair{a, b}: a ":" b | a "=" b
word: WORD -> plain | "BEGIN"i | "end"
hex: HEX
HEX.2: /0x[0-9a-f]+/i
NUMBER: /[0-9]+x?/
WORD.1: /[a-z]+/
LOW.-1: /[a-z]+-/
%ignore " "
"""

#: Lookaheads that promise too much: states of different contexts are one in LALR(1).
MERGED = r"""
start: "a" e "c" | "b" e "d" | "a" f "d"
e: x
f: "x" "x"
x: "x" | x "y"
"""

#: Empty rules, left and right recursion, nullable chains.
EMPTY = r"""
start: a b c d
a: | a "a"
b: [ "b" b ]
c: a2 b2
a2:
b2: ["-"]
d: "d" | "d" d
"""

#: Matches that depend on what follows them, at once or some bytes on.
LOOKAHEAD = r'''
start: (IF | NAME | STRING | LONG | OP | "?" | ABOUT | "y" "z" | "1")+
IF: /if\b/
NAME: /[a-e]+/
STRING: /"(?!"")[^"]*"/
LONG: /"""[^"]*"""/
OP: /[+*]|[?](?![a-c?])/
ABOUT: /x(?=yz)|xy?(?!\?)/
%ignore " "
'''

#: The same without anything that is ignored: some matches can never be followed by what they need.
STRICT_LOOKAHEAD = r"""
start: item+
item: A | B | C "!" | "b" | "."
A: /a(?=b)/
B: /a(?!b|\.)/
C: /a+(?=\.!|b\?|c)/
"""

#: A lexeme could end within a character, but whatever completes the character makes it longer.
CHARACTERS = r"""
start: ("k" N | DIGITS N?)+
N: /[^\x00-jl-\x7f]+/
DIGITS: /[0-9]+é?/
%ignore " "
"""

#: Statements within statements by how wide they are indented; for the `indentation` below.
BLOCKS = r"""
start: (_NEWLINE | statement)*
statement: NAME _NEWLINE | "if" NAME ":" _NEWLINE _INDENT statement+ _DEDENT
NAME: /[a-z]+/
_NEWLINE: /\r?\n[\t ]*/
%declare _INDENT _DEDENT
%ignore " "
"""

GRAMMARS = {
    "arithmetic": (ARITHMETIC, "0123 .e+-*/()"),
    "json": (JSON, '[]{}",:1e- .truefalsn\\ab'),
    "statements": (STATEMENTS, "ifthenelsx ={};>(),1/* \n"),
    "preferences": (PREFERENCES, "<>ab.01 éxyzw"),
    "undecided": (UNDECIDED, "0e+a.1 "),
    "priorities": (PRIORITIES, "begindBEGINx0f:=1! -"),
    "merged": (MERGED, "abcdxy"),
    "empty": (EMPTY, "ab-d"),
    "lookahead": (LOOKAHEAD, 'ifabc"?+* xyz1'),
    "strict lookahead": (STRICT_LOOKAHEAD, "ab.!?c"),
    "characters": (CHARACTERS, "k1éàß "),
}


def indentation(columns: int) -> sg.Indentation:
    """The postlex of `BLOCKS`."""
    return sg.Indentation(newline="_NEWLINE", indent="_INDENT", dedent="_DEDENT", columns=columns)
