"""The C grammar that comes with structgen: real code, Lark as the judge of what guides write, and typedef names."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest
from judges.c_judge import HAS_GCC, complaints, syntax_errors
from judges.guides import with_bytes
from judges.lark_judge import parses
from lark import Lark

import structgen as sg
from structgen import grammars

WORDS = (
    "int char void struct return if else while for ( ) { } ; ; ; ) } x y f 0 1 = + * & , . -> ++ == static "
    "const unsigned enum union sizeof switch case break default: goto do [ ] ? size_t"
)

PROGRAM = r"""
/* every kind of declaration, statement and expression */
typedef unsigned long size;
typedef struct node { struct node *next; union { int i; double d; } value[4]; unsigned flag : 1, : 0; } node;
enum colour { RED, GREEN = 1 << 3, BLUE, };
static const char *const names[] = { [RED] = "red", [GREEN] = u8"gr\u00fcn", "b\x6c" "ue" };
extern int (*handlers[])(int, void *), printf(const char *restrict format, ...);
_Static_assert(sizeof(int) >= 2, "int is too short");
_Noreturn void fail(void);
inline static double half(double x) { return x / 2.; }

int main(int argc, char *argv[static 1])
{
    size_t n = 0x1FuL, i; float f = .5e-3f, g = 0x1.8p3F; _Bool b = !n; char c = '\'', d = L'\n';
    for (int k = 0, m = argc; k < m; ++k, m--) { if (k % 2) continue; else break; }
    do { n <<= 1; } while (n && n != 8 || ~n);
    again: switch (n) { case 1: case 'x': n = n ? n : -1; break; default: goto again; }
    node a = (node){ .value[0].d = 1.0, .flag = 1 }, *p = &a; p->next = (struct node *)0;
    p -> value[i = 1].i += sizeof *p + sizeof(int[3]) + _Alignof(max_align_t);
    return _Generic(n, int: 1, default: 0), (*handlers[0])(argc, argv), half(f) > g ^ b | c & d;
}
"""


@pytest.fixture(scope="module")
def vocabulary() -> sg.Vocabulary:
    return with_bytes(*WORDS.split(), " ", ");\n", "(x)", " = 0;\n", "/* */", '"a"')


def grammar(*names: str) -> str:
    text = grammars.path("c").read_text()
    return text + f"\n%extend typedef_name: {' | '.join(map(repr, names))}\n".replace("'", '"') if names else text


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_a_program(lexer: str, vocabulary: sg.Vocabulary) -> None:
    index = sg.compile(sg.Grammar(grammar("size", "node"), lexer=lexer), vocabulary, eager=False)
    assert index.match(PROGRAM.encode()).accepted
    for broken in (PROGRAM.replace("return x / 2.", "return x / "), PROGRAM.replace("do {", "do"), PROGRAM + "}"):
        assert not index.match(broken.encode()).accepted


def test_a_typedefs_name_is_what_makes_a_declaration(vocabulary: sg.Vocabulary) -> None:
    text = b"int f(void) { list (*p); list * q; return sizeof(list); }"
    known = sg.compile(sg.Grammar(grammar("list"), lexer="basic"), vocabulary, eager=False)
    assert known.match(text).accepted
    assert known.match(b"list a; struct list list_of(list list);").consumed == 39
    unknown = sg.compile(sg.Grammar(grammars.path("c"), lexer="basic"), vocabulary, eager=False)
    assert unknown.match(text).accepted, "a product, and a call"
    assert not unknown.match(b"list a;").accepted


# -- comments -------------------------------------------------------------------------------------------------

#: What stands in a function, and whether that is C.
COMMENTS = {
    "x = a /* b;": False, "x = a / * b;": True, "x = a /* b */ / b;": True, "x /= a;": True, "x = a /**/;": True,
    "x = a /* * */;": True, "x = a /*/;": False, "x = a /***/;": True, "/* // */ x = a;": True, "x = a; // \\": False,
    "x = a // \\\n;": False, "x = a; // \\\n b": True, "x = a; // \\ \r\n b\n;": True, "x = a; // \\b\n;": True,
    "x = a; // /*\n;": True, "x = a; /* *\\\n/ * */": False, "x = a; /* *\\ */": True, "x = a; /* *\\\n */": True,
}  # fmt: skip


def function(text: str) -> bytes:
    return f"void f(int x, int a, int *b) {{ {text}\n}}".encode()


@pytest.fixture(scope="module")
def of_comments(vocabulary: sg.Vocabulary) -> sg.Index:
    return sg.compile(sg.Grammar(grammars.path("c"), lexer="basic"), vocabulary, eager=False)


@pytest.mark.parametrize("text", COMMENTS)
def test_a_comment_that_does_not_end_is_nothing_else(text: str, of_comments: sg.Index) -> None:
    assert of_comments.match(function(text)).accepted is COMMENTS[text]
    assert (not syntax_errors(complaints(function(text)))) is COMMENTS[text] or not HAS_GCC


def test_comments_as_gcc_reads_them(of_comments: sg.Index) -> None:
    rng, pieces, accepted = Random(5), ["/", "*", "/*", "*/", "//", "\\\n", "\\ \n", "\n", "a", ";", " "], 0
    for _ in range(1500):
        text = function("x = a" + "".join(rng.choices(pieces, k=rng.randrange(1, 9))) + ";")
        if of_comments.match(text).accepted:
            accepted += 1
            assert accepted > 40 or not syntax_errors(complaints(text)), text
    assert accepted > 40


# -- typedef names that nobody declared -----------------------------------------------------------------------

#: What is C for some choice of types, and what is not.
CHOICES = {
    "a * b;": True,  # nothing but declarations outside of functions: a pointer
    "list a; struct list list_of(list list);": True,
    "int f(void) { a * b; }": True,
    "int f(void) { a * b * c; }": True,
    "int f(void) { a b * c; }": False,
    "int f(void) { a b, * c; }": True,
    "int f(void) { (a)(b); (a)-b; (a)b; (a)(b)(c); (a *)b; }": True,
    "int f(void) { (a * b)c; }": False,
    "int f(void) { return sizeof(a) + sizeof(a *) + sizeof a * 2; }": True,
    "int f(a, b) a * b; c d; { a (*e)[2] = { 0 }; }": True,
    "int f(a b, c (*)(d e), ...) { b: a (c); a (*d); }": True,
    "a b c;": False,
    "const a b; a const b; static a const * const b;": True,
    "a f(b (c)) { for (a b = 0; ; ) (void)b; }": True,
    "int f(void) { if (a) b * c; else (d) * e; }": True,
    "int f(void) { a; b c; d }": False,
    "int f(void) { x = (struct { a b; } *)c; }": True,
}


@pytest.fixture(scope="module")
def by_choice(vocabulary: sg.Vocabulary) -> sg.Index:
    definition = sg.Grammar(grammars.path("c_names"), lexer="basic", ambiguity="all")
    return sg.compile(definition, vocabulary, eager=False)


def test_any_name_may_be_a_types(by_choice: sg.Index) -> None:
    folder = str(grammars.FOLDER)
    source = grammars.path("c_names").read_text()
    judge = Lark(source, parser="earley", lexer="basic", import_paths=[folder], ambiguity="forest")
    random = Random(4)
    for text, verdict in CHOICES.items():
        assert by_choice.match(text.encode()).accepted == verdict == parses(judge, text), text
        words = re.findall(r"\w+|\W", text)
        for _ in range(3):  # a word less, or two in each other's place
            at = random.randrange(len(words))
            moved = random.choice([[], [words[at]]])
            sample = "".join([*words[:at], *words[at + 1 : at + 2], *moved, *words[at + 2 :]])
            assert by_choice.match(sample.encode()).accepted == parses(judge, sample), sample


def test_a_program_whose_names_nobody_declared(by_choice: sg.Index) -> None:
    assert by_choice.match(PROGRAM.encode()).accepted
    for broken in (PROGRAM.replace("return x / 2.", "return x / "), PROGRAM.replace("do {", "do"), PROGRAM + "}"):
        assert not by_choice.match(broken.encode()).accepted


def test_what_guides_write_by_choice(by_choice: sg.Index) -> None:
    random, vocabulary = Random(2), by_choice.vocabulary
    words = range(256, vocabulary.size - 1)
    for _ in range(8):
        guide, text = sg.Guide(by_choice), b""
        for step in range(40):
            row = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: vocabulary.size]
            if step % 5 == 0:
                assert [t for t in range(vocabulary.size) if guide.allows(t)] == np.flatnonzero(row).tolist(), text
            assert row.any(), text
            token = random.choice([t for t in words if row[t]] or [t for t in range(128) if row[t]])
            text += vocabulary.token(token) or b""
            assert guide.advance(token)
            config: Any = guide.config
            assert len(config.threads) <= 16


def test_a_declaration_has_a_type_and_a_struct_no_other(vocabulary: sg.Vocabulary) -> None:
    index = sg.compile(sg.Grammar(grammars.path("c"), lexer="basic"), vocabulary, eager=False)
    for text in (b"const (size_t);", b"static x;", b"struct s enum e x;", b"struct { size_t int x; };"):
        assert not index.match(text).accepted, text
    for text in (b"int const long x;", b"struct s const static x;", b"int (size_t);", b"size_t const size_t;"):
        assert index.match(text).accepted, text


def test_what_guides_write_parses(vocabulary: sg.Vocabulary) -> None:
    index = sg.compile(sg.Grammar(grammars.path("c"), lexer="basic"), vocabulary, eager=False)
    judge = Lark(grammars.path("c").read_text(), parser="lalr", lexer="basic")
    random, written = Random(1), 0
    closing = [t for t in range(vocabulary.size) if vocabulary.token(t) in (b";", b")", b"}", b"]", b"x", b" ", b'"')]
    for _ in range(40):
        guide, text = sg.Guide(index), b""
        for step in range(300):
            row = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: vocabulary.size]
            if step < 40 and step % 10 == 0:
                assert [t for t in range(vocabulary.size) if guide.allows(t)] == np.flatnonzero(row).tolist(), text
            if guide.is_accepting() and (step > 50 or random.random() < 0.1):
                judge.parse(text.decode())
                if b"typedef" not in text:  # the name that one declares is a type from there on
                    assert not syntax_errors(complaints(text)), text
                written += 1
                break
            words = [t for t in range(256, vocabulary.size - 1) if row[t]]
            ends = [t for t in closing if row[t]] if step > 40 else []
            letters = [t for t in range(128) if row[t]]
            token = random.choice(ends or words or letters)
            text += vocabulary.token(token) or b""
            assert guide.advance(token)
    assert written > 15


def test_names() -> None:
    assert {"c", "c_names", "gnu_c", "sql"} <= set(grammars.names())
    with pytest.raises(KeyError, match="no grammar"):
        grammars.path("cobol")
