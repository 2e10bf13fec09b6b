"""The Python grammar that comes with structgen: `ast.parse` judges what it accepts, and what guides write."""

from __future__ import annotations

import ast
import re
import sysconfig
import tokenize
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

import lark.lexer
import numpy as np
import pytest
from judges.guides import with_bytes
from judges.lark_judge import parses
from lark import Lark
from lark.indenter import PythonIndenter

import structgen as sg
from structgen import grammars
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.parser import lalr
from structgen.runtime.grammar.lexer_threads import LexerThreads, Opening
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser.parser_driver import Parse

LIBRARY = Path(sysconfig.get_paths()["stdlib"])

WORDS = (
    "if elif else while for in not and or is None True lambda def class return yield await async with as try except "
    "finally raise import from global del pass match case _ x y f ( ) ( ) [ ] { } : : , , . = == := += -> * ** / @ ; "
    "... 0 1 1.5 2j 'a' \"b\" b'c' f'{ f\"{ }' }\" {x!r} :>3}"
)

#: Every kind of statement, expression, pattern and literal.
PROGRAM = r"""
a = b = c, *d = (yield)
a, (b, [*c]), d.e, f()[0] = [] = () = 1
(a) += 1
f().x -= yield
a: int
(a): int = 1, 2
a.b[0]: "c" = yield
f(a).b: c
[d][0]: e
del a, (b, [c.d]), e[0], ()
print(a, *b, c, d=1, *e, **f, g=2)
f(x for x in y)
f(a := 1, *b or c, d=lambda: 0,)
x[a:b, ::c, *d, ...], x[a := 1]
{**a, b: c}, {*a, b}, {a: b for a, b in c}, {a for a in b}, {}, [*a, b := 1], (a, b := 2)
[a async for a, *b in c if d if not e for (f) in g]
x = a if b else lambda *c, d=1, **e: f
x = not a < b <= c is not d not in e == -f ** -g @ h // ~i or await j ** k
lambda a, /, b=1, *, c, d=2, **e: (yield)
assert a, b; raise a from b; return *a, b
from . import a; from ...a.b import (c as d, e,); from .... import *; import a.b as c, d
global a, b; nonlocal c
match = case = _ = type = print
match.x, match[0], case(match), _.y
match(x); match (x)[0]; match - x
match(x, y=1, *z)[:]
match[x]: int
match in x if match else match is not y
match not in x; match or y; match ** z
0xF_f, 0b1_0, 0o17, 1_000, 0_0, 00, 1., .5e-1_0, 1e5j, 01.5, 09j, 1..real, 1 .real, 0x1.real
'' "a" r'\N' u"\x41\u00e9\U0010ffff\N{EM DASH}\N{LATIN SMALL LETTER A WITH DIAERESIS}" R'''a
b''' 'it\'s' '\q' "a\
b"
b'\u' rb"\x" Br'''
''' B"\xff"
f'' rf"\d{x}" F'{x!r:>{w!s}.{p.q()}}{{}}' f"{x = } {a['b']} {', '.join(c)} {d[1:2]:.2f} {e if f else g!s}"
f'''{"a"}''' 'h' f""
f'({",".join([f"{a!r}{b.c:>{d}}" for b in e])})' f"{f'{a}' f'' 'b' f'{...}'}" f'''{"a" 'b'}'''
f'{a:{b}{c!r}.{d:>10}{"1"}0}' if 0 else f"{a:{b(c)[d]}}}}}}{{" f'{a:#{b}x}{c!s:{d:>10}}'
"\N{GREEK SMALL LETTER ALPHA}\N{EM DASH} -" '\N{LATIN CAPITAL LETTER O WITH HORN}\'' u'''
\N{CYRILLIC SMALL LETTER ZHE}"# ''' f'\N{DIGIT ONE}}}{a:{b}}\N{DAGGER}\N{BULLET}' f'''{a}
\N{LONG RIGHTWARDS SQUIGGLE ARROW}"{{'''
f'{(lambda a, b: c)(d)!r:>3}{f(*a, b := 1, key=lambda: 2, **c)}' f"{(a := b)}{*c, d}{[*e]}{(f, *g)[0]}"
f'{yield}{yield a, *b:{(yield)}}'
f"{'a' '''b's''' r'c'}" f'{"" u"y"}' f'''{'a"'}'{"b'" 'c'}"{d:{"e"}.{'f'}}'''
f"{a if b else (yield from c)}"
f"{a!=b} {a==b=} {a<b} {f(c, *e, d=1)}" if 0 else 1
f"{ {1, *a, (b := 2)} }{ {'a': 1, **b,}['a']!r:>3}{ {}}{ {c: lambda: d for c in e if f}}{ {c for c in d}:#x}#"
f'{a[b:{c}]}{ {a: {b: {c}}} }{a:{ {b}}#{c}# }# \n\N{BULLET}'
f'{a: # x}{a:[{b}](c)}{x:=5}{a:{{b}}}{b for b in c}\f{d}# \'{ d }#'
f"{f'{ {a} }#{b:#x}# {c}'} {f'{a}#'} {x[{y: z}:{y}]}{a} # {{ \" {b}}} # \"" rf'{a}\d#{b} # \'{c}'
f"{f(c, *d, e=1)} {[x for x in y]} {a, b} {(c)} { -d } {not e} {f is not g} {x:%Y-%m-%d} {y:,}"
naïve = Ω = 变量 = 가 = 𝔘𝔫𝔦 = ℘· = กำ = µ.ｉｆ
x = (1 + # c
   2)
x = 1 + \
   2
if a: b; c;
if a:
  b
elif c:
        d

# c
   # d
else: e
while a := b: break
for a, *b in *c, d: continue
for x.y, (z) in (1): pass
with a, b as c, d as (e, *f): pass
with (a as b, c): pass
with (a, b): pass
with (a, b) as c, d: pass
with (a, b + 1, c as d,): pass
async def f(a, b: int = 1, /, c=2, *d: *e, f, g=3, **h: i) -> j: await k
def f(*, a): pass
class A(B, *C, metaclass=D, **E): pass
@a.b[c](d)
@e := f
class A: pass
try: a
except b: c
except (d, e) as f: g
except: h
else: i
finally: j
try: a
except* b as c: d
try: a
finally: b
match (a, b):
    case 1 | -2.5 | 3 + 4j | -5 - 6j | "a" "b" | b"c" | None | True: pass
    case [a, *_] | (b, c, *d) | (e) | [] | () | [f.g, h]: pass
    case {"a": b, c.d: _, -1: e, **f}: pass
    case A(b, c=d, e=f.g,) | h.i() as j if k := l: pass
    case a, *b: pass
    case *_,: pass
    case _: pass
match x, *y:
  case a: pass
match -x:
  case a: pass
match not x:
  case a: pass
match(x):
  case(a): pass
  case[b]: pass
  case-1: pass
  case{}: pass
  case*c, d: pass
  case"e": pass
match():
  case(): match(x)
match(x)[y] + ((z)), w: # c:
  case case(): case(x)
match[x]:
  case a: pass
match*x,:
  case a: pass
match(":", '("#'):
  case a: pass
match (  # c
    x):
  case a: pass
match"a":
  case a: pass
match.5:
  case a: pass
match in_: # no operator
  case a: pass
"""

#: More of strings with three quotes.
LONG = """f'{\"\"\"x\"y\"\"\" \"\"\"\"\"\" \"z\"}' f\"\"\"{'\"' "'" ''}\"{a["b"]}\"\"\" u\"\"\"
\\N{EM DASH}\"# \"\"\" f\"\"\"\"{a:{b}}\\N{DAGGER}\"\"\"
"""

#: Line ends in the brackets of a format string.
LINES = """f\'\'\'{
  a
  *\t
  b(
    c.d, [1
    , "e"
    ], *f, **g
  )[
    0
  ] == (
    None
    if h(i
      ) is
    not j else -
    1
  )
=!r:>{
  k
}}
# { {
  l: {
  m, n
  }
  , **o
} }\\N{BULLET}#\n\'\'\' f\"\"\"{a

}
{a}
\"\"\"
"""

#: None of these lines is Python.
REFUSED = r"""
f() = 1
a + 1 = 2
None = 1
x = True = 1
(a, f()) = 1
[a, 1] = 2
(*a) = 1
a if b else c = 1
'a' = 1
f'{a}' = 1
lambda: a = 1
(yield) = 1
(a, b) += 1
[a] += 1
a, b += 1
f() += 1
(a, b): int
a, b: int
(a).b: int
f(): int
del f()
del a + 1
del *a
del (a, *b)
for f() in a: pass
for a + b in c: pass
for 1 in a: pass
with a as f(): pass
with a as 1: pass
[a for f() in b]
[a for b in c, d]
[a for b in lambda: c]
[*a for b in c]
{**a for b in c}
{a: b, c}
{a, b: c}
{*a, **b}
{**a or b}
a := 1
(a.b := 1)
(a := b := c)
f(a=b := c)
lambda: a := 1
x[a := 1:2]
f(a=1, b)
f(**a, *b)
f(**a, b)
f(a.b=1)
f(None=1)
f((a)=1)
f(a for a in b, c)
f(a for a in b,)
f(yield)
class A(a for a in b): pass
def f(a=1, b): pass
def f(*): pass
def f(*, **a): pass
def f(/): pass
def f(a, /, b, /): pass
def f(*a, /): pass
def f(**a, b): pass
def f(*a, *b): pass
def f(*a=1): pass
def f(a=1, /, b): pass
def f((a, b)): pass
def True(): pass
lambda *: a
lambda a=1, b: c
lambda a: int: b
0777
1_
1__0
0_1
0x
0b12
1.e
1e+
0_x1
1._5
1.real
0or 1
1_000_
'a' b'b'
b'é'
'\x1'
'\u123'
'\U00110000'
'\N{NO SUCH NAME}'
'\N'
b'\xg'
'a
ur''
fb''
f'{'
f'}'
f'{}'
f'{a b}'
f'{a!x}'
f'{a!r }'
f'{a:{b:{c}}}'
f'{lambda: a}'
f'{f(x for x in y, z)}'
f'{f(**a, *b)}'
f'{f(a=1, b)}'
f'{(a.b := 1)}'
f'{*a}'
f'{(*a)}'
f'{*a or b, c}'
f'{a + yield}'
f'{f"{lambda: a}"}'
f'{ur"a"}'
f'{x"a"}'
f'{a:{b}'
f'{a:{b}}}'
f'{a:{b}}}}}x}'
f'{a:{b}x}}'
f'{ {**a or b}}'
f'{ {a: b, c}}'
f'{ {*a: b}}'
f'{ {a b} }'
f'{ {a}'
f'{ {a} + {b}'
f'{ {a}}}'
f'{{a} }'
f'{ {a}#}'
f'{a:{{b c}}}'
f'{ {a=} }'
f'{ {a!r} }'
f'{a:{b:{ {c}}}}'
f'{f"{a}#\\"}'
f'{f"{a:{b}}}"}'
f'\N{EM DASH }'
f'{a}\N{ EM DASH}'
f"{a}\N{EM DASH}}"
rf'{a}\N{EM DASH}'
'\N{EM DASH' '}'
'\N{EM  DASH}'
b'a' '\N{EM DASH}'
ur'\N{EM DASH}'
f'{a['b']}'
f'{f"{a['b']}"}'
f'{f"{a["b"]}"}'
f"{f'{'b'}'}"
f'{f"{f'{a}'}"}'
f'{f"a\n"}'
f'{f"{}"}'
f'{"\n"}'
f'{a:{}}'
f"{lambda: a}"
'a' f'{b}' b'c'
print 1
exec "a"
a <> b
a!b
a?
x inside y
x iffy else z
pass x
x = def
not = 1
a.if
await = 1
x not y
a - not b
a < not b
await -x
*a or b,
return yield
assert a, b, c
raise a, b
raise from a
global a.b
import a.b.c as d.e
import .a
from a import (*)
from a import ()
from a import b,
from . import a.b
from import a
if a, b: pass
while a: pass; else: pass
if a: pass else: pass
else: pass
async a
async class A: pass
match x: case 1: pass
match(x): int
match (x:
match x
match not x
match[]
xª² = 1
x€ = 1
ำ = 1
x＿ = ͺ
ifé (x): pass
x ifé else y
a²
a·b c
(a]
)
a;;b
"""

#: And none of these, of several lines.
REFUSED_BLOCKS = [
    "(f'{a\n}')\n",
    "(f'{a # b\n}')\n",
    "(f'{a \\\n}')\n",
    "(f'{ {a}\n}')\n",
    "(f'{ {a} # b\n}')\n",
    "(f'{ {a} \\\n}')\n",
    "(f'{a}# b\n')\n",
    "(f'{a} # b\\\n # c\n')\n",
    "(f'{a} \\\n # c \\\n\n')\n",
    "(f'{a}\\\n\n')\n",
    "(f'''{a}\\\n # \\x1\n''')\n",
    "(f'{a:{b}# c\n}')\n",
    "(f'{a: # c\n}')\n",
    "(f'{a,\n}')\n",
    "(f'''{a # b\n}''')\n",
    "(f'''{ {a} # b\n}''')\n",
    "(f'''{a\\\n}''')\n",
    "f'''{a\n b}'''\n",
    "f'''{a!r\n}'''\n",
    "f'''{f'{a\n}'}'''\n",
    "('\\N{EM DASH}# \\x1\n')\n",
    "('\\N{EM DASH\n}')\n",
    "(f'{a:{b} # c\n}')\n",
    'f\'{"""a""""}\'\n',
    'f"""{d[\'"""\']}"""\n',
    'f"""{"a"""}"""\n',
    'f"""{d[\'\n\']}"""\n',
    "try: a\n",
    "try: a\nexcept*: b\nexcept a, b: pass\n",
    "try: a\nexcept b: c\nexcept* d: e\n",
    "@a\nb = 1\n",
    "if a:\npass\n",
    "if a:\n  b\n   c\n",
    "if a:\n    b\n  c\n  a\n",
    "if a:\n  # b\n",
    "match x:\n  a\n",
    "match(x, y=1):\n  case 1: pass\n",
    "match(*x):\n  case 1: pass\n",
    "match *x:\n  case 1: pass\n",
    "match[x:y]:\n  case 1: pass\n",
    "match ** x:\n  case 1: pass\n",
    "match in x:\n  case 1: pass\n",
    "match.x:\n  case 1: pass\n",
    "match5:\n  case 1: pass\n",
    "match(x):\n  pass\n",
    "match(x):\n  casex: pass\n",
    "match(x):\n  case \uff3f: pass\n",
    "match (x)\n  case 1: pass\n",
    "match yield:\n  case 1: pass\n",
    "match x:\n  case a + b: pass\n",
    "match x:\n  case f(): pass\n  else: pass\n",
    "match x:\n  case 1j + 2: pass\n",
    "match x:\n  case a as _: pass\n",
    "match x:\n  case a as b.c: pass\n",
    "match x:\n  case _.a: pass\n",
    "match x:\n  case {**_}: pass\n",
    "match x:\n  case {a: b}: pass\n",
    "match x:\n  case {**a, 'b': c}: pass\n",
    "match x:\n  case A(b=c, d): pass\n",
    "match x:\n  case (*a): pass\n",
    "match x:\n  case +1: pass\n",
    "x = 1 \\ \ny\n",
]

#: `ast.parse` takes these, and the grammar does not: the file says so where it begins.
LEFT_OUT = [
    "match (x)",
    "match (\n x)\n",
    "match(\n x):\n  case 1: pass\n",
    "match((((x)))):\n  case 1: pass\n",
    "f'{(lambda *a: a)()}'\n",
    "f'{(a if b else lambda: c)}'\n",
    "f'{[lambda: a]}'\n",
    "f'{[a := 1]}'\n",
    "f'{a[b := 1]}'\n",
    "f'{a[*b]}'\n",
    "f'{a(b=1, *c)}'\n",
    "f'{a(**b, **c)}'\n",
    "f'{[a async for a in b]}'\n",
    "f'{[a for a.b in c]}'\n",
    'f\'{"a""b"}\'\n',
    "f'{a:\"}'\n",
    "f'''{a:\n}'''\n",
    "f'''{a:b\n}'''\n",
    "f'''{a.\nb}'''\n",
    "f'''{a and\nb}'''\n",
    "f'''{é\n}'''\n",
    "rf'{a}\\x'\n",
    "f'{(lambda a=1: a)()}'\n",
    "f'{b\"a\"}'\n",
    "f\"\"\"{'''a'''}\"\"\"\n",
    "f'{a:{b}\\\\x20}'\n",
    "if a:\n\tb\n",
    "1if a else b\n",
    "'\\N{SLEEPING FACE}'\n",
    "if a: b",
    "x\n  \fy\n",
    "if a:\n  b\n  \f\\\n  c\n",
]


def python(text: str) -> bool:
    """Whether CPython can parse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError:
            return False
    return True


@pytest.fixture(scope="module")
def vocabulary() -> sg.Vocabulary:
    return with_bytes(*WORDS.split(), " ", "\n    ", "\n", ":\n  ", " = ", ", ", " # c\n")


@pytest.fixture(scope="module")
def index(vocabulary: sg.Vocabulary) -> sg.Index:
    grammar = sg.Grammar(grammars.path("python3"), start="file_input", postlex=PythonIndenter())
    return sg.compile(grammar, vocabulary, eager=False, budget=Budget(seconds=120))


@pytest.fixture(scope="module")
def judge() -> Iterator[Lark]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lark.lexer, "has_interegular", False)  # it compares all terminals, for minutes
        text = grammars.path("python3").read_text()
        yield Lark(text, parser="lalr", postlex=PythonIndenter(), start="file_input")


def test_it_has_no_conflicts() -> None:
    text = grammars.path("python3").read_text()
    table = lalr.build(load(text, "file_input", Meter(Budget()), declared=("_INDENT", "_DEDENT")), Meter(Budget()))
    assert not table.conflicts


@pytest.mark.nightly
def test_a_program(judge: Lark, index: sg.Index) -> None:
    for text in (PROGRAM, PROGRAM.replace("\n", "\r\n"), PROGRAM + "# the end", LONG, LINES):
        assert python(text)
        judge.parse(text)
        match = index.match(text.encode())
        assert match.accepted, text.encode()[: match.consumed][-80:]


@pytest.mark.parametrize("text", [*(line + "\n" for line in REFUSED.strip().split("\n")), *REFUSED_BLOCKS])
def test_what_is_no_python(text: str, judge: Lark, index: sg.Index) -> None:
    assert not python(text)
    assert not parses(judge, text)
    assert not index.match(text.encode()).accepted


def test_what_is_left_out(judge: Lark, index: sg.Index) -> None:
    for text in LEFT_OUT:
        assert python(text)
        assert not parses(judge, text)
        assert not index.match(text.encode()).accepted


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("", True),
        ("\n", True),
        ("# c", True),
        ("  ", True),
        (" \t # c", True),
        ("  c", False),
        ("  # c\n\t\n\f\nx", True),
        (" x\n", False),
        ("\tx\n", False),
        ("\n x\n", False),
        ("\\\n x\n", False),
        ("x\n# c", True),
        ("if a:\n  b", True),
        ("if a:\n  b # c\n  # d", True),
        ("if a:\n    b\n  # c", True),
        ("if a:\n    b\n \t", True),
        ("if a:\n    b\n \t# c\n  \f # d", True),
        ("if a:\n    b\n  # c\n  d", False),
        ("if a:\n    # c", False),
        ("x \\", False),
        ("x \\\n", False),
        ("x \\\n ", True),
        ("x \\\n\\\n \\\n\ny\n", True),
        ("x \\\n# c", True),
        ("x \\\r\n \t# c\ny\n", True),
        ("x\n\\\n", False),
        ("x\n \\\n", False),
        ("x\n \\\n ", True),
        ("x\n \\\n# c", True),
        ("x\n \\\n  # c\ny\n", True),
        ("x\n\\\ny\n", True),
        ("x\n\\\n y\n", False),
        ("\\\n", False),
        ("\\\nx\n", True),
        (" \f\\\n\fx\n", True),
        (" \\\nx\n", False),
        ("(\\\n\n \\\n  # c\n\\\nx)\n", True),
        ("if a:\n  b\n\\\n  c\n", True),
        ("if a:\n  b\n\\\n \\\n  c\n", False),
        ("if a:\n  b\n  \\\n\f \t \\\n c\n  d", True),
        ("if a:\n  b\n \\\n  c\n", False),
        ("if a:\n  b\n\\\nelse: c\n", True),
        ("\fx\n", True),
        (" \f\fx\n", True),
        ("\f x\n", False),
        ("\n\fx\n", True),
        ("if a:\n  b\n \tc\n", False),
        ("a\rb\n", False),
        ("a\x00\n", False),
        ("# \x00\n", False),
        ("\ufeffa\n", False),
    ],
)
def test_lines(text: str, accepted: bool, judge: Lark, index: sg.Index) -> None:
    assert parses(judge, text) is accepted
    assert index.match(text.encode()).accepted is accepted
    if accepted:
        assert python(text)


def test_random_lines(judge: Lark, index: sg.Index) -> None:
    """What Python takes is refused for one of two reasons of those that the grammar's head names."""
    random, accepted = Random(3), 0
    left_out = re.compile(r" \f|if a:[^\n]*(\\\n[^\n]*)*\Z")
    for _ in range(3_000):
        pieces = random.choices(
            ["if a:\n", "b", "\n", " ", "  ", "# c", "\f", "\\\n", "(", ")"],
            [4, 5, 5, 3, 3, 3, 1, 4, 1, 1],
            k=random.randint(2, 12),
        )
        text = "if a:\n  b" * random.randint(0, 1) + "".join(pieces)
        taken = parses(judge, text)
        assert index.match(text.encode()).accepted == taken, repr(text)
        assert taken == python(text) or (not taken and left_out.search(text)), repr(text)
        accepted += taken
    assert accepted > 200


@pytest.mark.parametrize("text", ["import ", "x = ", "x + ", "def ", "@", "for a in ", "if a:\n  del "])
@pytest.mark.parametrize("comment", ["#", "# c\n", "#é"])
def test_no_comment_begins_where_no_line_may_end(text: str, comment: str, index: sg.Index) -> None:
    """Nothing could follow it: no character from beyond ASCII, nor a part of one, ends a comment."""
    assert index.match((text + comment).encode()).consumed == len(text)
    if not text.endswith(("import ", "def ")):
        within = (text + "(" + comment).encode()
        assert index.match(within).consumed == len(within)


@pytest.mark.nightly
def test_the_letters_of_names() -> None:
    """They are those of Unicode 14, as in Python 3.11; later versions have more."""
    text = grammars.path("python3").read_text()
    grammar = load(text, "file_input", Meter(Budget()), declared=("_INDENT", "_DEDENT"))
    names = [re.compile(t.pattern or "") for t in grammar.terminals if t.name in ("NAME", "F_NAME")]
    assert len(names) == 2
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    for before in ("", "x"):
        identifiers = [c for c in characters if c != "_" and (before + c).isidentifier()]
        for name in names:
            found = [c for c in characters if c != "_" and name.fullmatch(before + c)]
            assert set(found) <= set(identifiers)
            if unicodedata.unidata_version == "14.0.0":
                assert found == identifiers


def test_line_ends_are_all_that_three_quotes_change() -> None:
    """The rules of fields between three quotes are those of the others, but for names of rules and terminals."""
    text = grammars.path("python3").read_text()
    short, long = re.findall(r"(?ms)^[fl]_replacement.*?^[fl]_mapping[^\n]*$", text)
    short = short.replace("{string}", "").replace("| string\n", "| F_STRING\n")
    long = long.replace("(F_NAME | L_NAME)", "F_NAME").replace("(L_STRING_1 | L_STRING_2)+", "F_STRING")
    long = re.sub(r"\b(_?)l_", r"\1f_", long).replace("_L_NEXT_NESTED", "_NEXT_NESTED")
    assert re.sub(r"\b(_?)L_", r"\1F_", long) == short


def library(count: int, most: int) -> list[str]:
    """Some files of the standard library that CPython can parse, of at most so many bytes."""
    files = [file for file in sorted(LIBRARY.glob("*.py")) if 1000 < file.stat().st_size < most]
    found = []
    for file in Random(2).sample(files, count):
        with tokenize.open(file) as opened:
            found.append(opened.read())
    return found


def test_the_standard_library(judge: Lark, index: sg.Index) -> None:
    for text in library(12, 25_000):
        assert python(text)
        judge.parse(text)
    for text in library(6, 12_000):
        match = index.match(text.encode())
        assert match.accepted, text.encode()[: match.consumed][-80:]


def test_what_guides_write_is_python(vocabulary: sg.Vocabulary, index: sg.Index, judge: Lark) -> None:
    random, written = Random(1), 0
    closing = [t for t in range(vocabulary.size) if vocabulary.token(t) in (*b") ] } : x".split(), b"\n", b"'", b'"')]
    for _ in range(60):
        guide, text = sg.Guide(index), b""
        for step in range(150):
            row = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: vocabulary.size]
            if step < 30 and step % 10 == 0:
                assert [t for t in range(vocabulary.size) if guide.allows(t)] == np.flatnonzero(row).tolist(), text
            if guide.is_accepting() and (step > 40 or random.random() < 0.05):
                assert python(text.decode()), text
                judge.parse(text.decode())
                written += 1
                break
            words = [t for t in range(256, vocabulary.size - 1) if row[t]]
            ends = [t for t in closing if row[t]] if step > 30 else []
            letters = [t for t in range(128) if row[t]]
            token = random.choice(ends or words or letters or np.flatnonzero(row).tolist())
            text += vocabulary.token(token) or b""
            assert guide.advance(token)
    assert written > 30


def test_the_beginning_does_not_make_it_slow(index: sg.Index) -> None:
    """Blanks can follow every word, though no text begins with them: what can follow a word is no question."""
    assert isinstance(index.machine, GrammarMachine)
    endings = index.machine.tables.endings
    assert sum(endings.unconstrained) > len(endings.unconstrained) // 3


def test_what_can_follow_is_asked_once_for_all_columns(
    vocabulary: sg.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block is read again at other columns: but for its line ends, it is known what can follow there."""
    grammar = sg.Grammar(grammars.path("python3"), start="file_input", postlex=PythonIndenter())
    guide = sg.Guide(sg.compile(grammar, vocabulary, eager=False, budget=Budget(seconds=120)))
    asked, ask = [0], LexerThreads._is_any_possible

    def counted(threads: LexerThreads, parse: Parse, wanted: int, lexemes: int) -> Opening:
        asked[0] += 1
        return ask(threads, parse, wanted, lexemes)

    monkeypatch.setattr(LexerThreads, "_is_any_possible", counted)
    found = []
    for column in (0, 2, 5):
        before, blank = asked[0], b" " * column
        for byte in blank + b"if f(x, [y]):\n" + blank + b"  x = y.x(f, *x)\n":
            guide.bitmask()
            assert guide.advance(byte), (column, chr(byte))
        for byte in blank + b"  if x:\n" if column == 2 else b"":
            assert guide.advance(byte), (column, chr(byte))
        found.append(asked[0] - before)
    assert found[2] < 0.6 * found[0], found
