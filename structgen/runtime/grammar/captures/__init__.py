"""What rules' attributes mean to a text: parts that are given back, and temperatures.

Comes in: the pieces of a text, when somebody asks. Goes out: names with spans of bytes. Guides remember nothing for
that: the text is parsed once more, with a value on the parser's stack for each symbol (as in yacc: Johnson 1975).

Read `attributes` (what is stored), `spans` (the stack of spans), `recording` (threads that have one), `whole_stacks`
(the text parsed once more for explanations, which name the rules that are being written).
"""
