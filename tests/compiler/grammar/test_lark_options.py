r"""Lark's syntax, feature by feature: Lark judges texts, changed at random, byte by byte and token by token."""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from judges.guides import BYTES
from judges.lark_judge import agrees, judge, parses
from judges.patterns import patterns
from lark import Lark
from lark.exceptions import LarkError

import structgen as sg
from structgen.definitions.canonical import definition_of

each_lexer = pytest.mark.parametrize("lexer", ["contextual", "basic"])


class Case(NamedTuple):
    """A grammar, letters to change its texts with, texts that it describes, some that it doesn't, and its lexers."""

    grammar: str
    letters: str
    texts: tuple[str, ...]
    refused: tuple[str, ...] = ()
    lexers: tuple[str, ...] = ("contextual", "basic")


RULES = {
    "option": Case('start: "a" "b"? "c"', "abc", ("ac", "abc"), ("abbc",)),
    "star": Case('start: "a" ("b" "c")* "d"', "abcd", ("ad", "abcbcd"), ("abd",)),
    "plus": Case('start: ("a" | "b" "c")+', "abc", ("a", "bcaabc"), ("", "b")),
    "exactly": Case('start: "a"~2 "b"~0 ("c" "d")~1', "abcd", ("aacd",), ("acd", "aaacd", "aabcd")),
    "between": Case('start: "a"~2..4 "b"~0..1', "ab", ("aa", "aaaab"), ("a", "aaaaa")),
    "many": Case('start: "a"~60..70 "b"', "ab", ("a" * 60 + "b", "a" * 70 + "b"), ("a" * 59 + "b", "a" * 71 + "b")),
    "many exactly": Case('start: ("a" | "b")~53', "ab", ("ab" * 26 + "a",), ("a" * 52, "b" * 54)),
    "groups": Case('start: ("a" ("b" | "c" ("d" | "e")?)+ | "f")', "abcdef", ("abcdce", "f"), ("ad", "af")),
    "brackets": Case('start: "a" ["b" ["c"] | "d"] "e"', "abcde", ("ae", "abce", "ade"), ("ace",)),
    "empty ways": Case('start: "a" (| "b") b\nb: | "c" | "d" b', "abcd", ("a", "abddc"), ("abb",)),
    "line breaks": Case('start: "a"\n     | "b" // one\n\n     | \\\n "c"\n# two\n', "abc", ("a", "b", "c"), ("ab",)),
    "aliases": Case('start: x\nx: "a" x -> more\n | "b" -> last', "ab", ("b", "aab"), ("a",)),
    "inlined": Case('?start: _x | y\n_x: "a" _x | "b"\n?y: "c" y | "d"', "abcd", ("aab", "ccd"), ("ad",)),
    "kept": Case('!start: "a" x "a"\n!?x: "b" | "c" x', "abc", ("aba", "accba"), ("aa",)),
    "filtered": Case('start: _A x _B\nx: _A _A\n_A: "a"\n_B: "b" | "c"', "abc", ("aaab", "aaac"), ("aab",)),
    "left and right": Case('start: l r\nl: l "a" | "b"\nr: "a" "c" r | "d"', "abcd", ("bd", "baaacd"), ("bacad",)),
    "a rule without a text": Case(
        'start: NAME q | LONG | "." LONG\nq: ":" q\nNAME.2: /[ab]+/\nLONG: /[ab]{3}1/',
        "ab1.",
        (".aba1", ".bbb1"),
        ("aba1", "ab"),
        ("contextual",),
    ),
    "shifted": Case('start: s\ns: "i" s | "i" s "e" s | "x"', "iex", ("iixex", "ixeixex"), ("ie", "xe")),
}

TEMPLATES = {
    "one": Case('start: list{"a", ","}\nlist{item, by}: item (by item)*', "a,b", ("a", "a,a,a"), ("a,", ",a")),
    "of templates": Case(
        'start: list{pair{"a", B}} ";"\nlist{x}: "[" [x ("," x)*] "]"\npair{k, v}: k ":" v\nB: /b+/',
        "ab[],:;",
        ("[];", "[a:b,a:bbb];"),
        ("[a:];", "[a:b"),
    ),
    "recursive": Case(
        'start: nest{"a"} | nest{"b"}\nnest{x}: x | "(" nest{x} ")"', "ab()", ("a", "((b))"), ("(a", "((b)")
    ),
    "within itself": Case(
        'start: twice{twice{twice{"a"}}} "b"\ntwice{x}: x x', "ab", ("a" * 8 + "b",), ("a" * 7 + "b", "a" * 9 + "b")
    ),
    "handed on": Case(
        'start: apply{wrap, "a"}\napply{t, x}: t{x} "!"\nwrap{x}: "<" x ">"', "<a>!", ("<a>!",), ("<>!", "a!")
    ),
    "inlined": Case('start: _sep{/[a-c]/, "-"}\n_sep{x, s}: x (s x)*', "abc-", ("a", "a-b-c"), ("a--b",)),
}

PRIORITIES = {
    "of terminals": Case(
        'start: (A | B | C)+ "!"\nA.2: "ab"\nB: /[a-c]+/\nC.-1: /[a-d]+/', "abcd!", ("abc!", "cab!", "d!"), ("abd",)
    ),
    "of rules": Case('start: a "!" | b "!" "?"\na.1: "x"\nb.2: "x"', "x!?", ("x!?",), ("x!",)),
    "width and length": Case('start: (A | B | "aa" | "a")+ "b"\nA: /a{1,3}/\nB: /aaa?/', "ab", ("ab", "aaaab"), ("b",)),
    "names": Case('start: A "1" | B "2"\nA: /[xy]/\nB: /[yx]/', "xy12", ("x1", "y1"), ("x2", "12")),
    "longest way in a terminal": Case('start: A "c"\nA: "a" | "ab" | "abb"', "abc", ("ac", "abbc"), ("abbbc",)),
    "shortest match": Case('start: A B\nA: /a.*?b/\nB: /b*/ "c"', "abc", ("abc", "acbbc"), ("ac",)),
}

TERMINALS = {
    "ranges": Case('start: A+ "_" B\nA: "a".."f" | "0".."3"\nB: "à".."é"', "af03_gà4éêb", ("a0_é", "f3_à"), ("g_à",)),
    "composed": Case(
        'start: NAME "=" NUM\nNAME: (LOW | "_") (LOW | "_" | DIGIT)*\n'
        'NUM: DIGIT~1..3 ["." DIGIT+]\nLOW: /[a-z]/\nDIGIT: "0".."9"',
        "az_09=.",
        ("_a0=12", "z=1.0", "a=123.99"),
        ("0=1", "a=1234", "a=1."),
    ),
    "repeats": Case(
        'start: A B C\nA: "a"~3\nB: ("b" | "cd")~2..3\nC: "e"* "f"?  "g"', "abcdefg", ("aaabcdeg",), ("aabbg",)
    ),
    "escapes": Case(
        r'start: "\n" "\t" "\"" "\\" "/" "\x41" "\u00e9" /\// /\\/ /\n/ /[\]\-]/ /"/ "' + "'" + '"',
        "\n\t\"\\/Aé]-'",
        ('\n\t"\\/Aé/\\\n]"\'', '\n\t"\\/Aé/\\\n-"\''),
        ("\\n",),
        ("contextual",),
    ),
    "special characters": Case(
        r'start: "." "*" "(" ")" "[" "]" "?" "+" "|" "^" "$" "{2}" " " "#" "//" "%ignore"',
        ".*()[]?+|^${2} #/%ignore",
        (".*()[]?+|^${2} #//%ignore",),
        ("",),
    ),
    "unicode": Case(
        'start: "é" /[α-ω]+/ "日本" /\\w/ "😀"', "éαω日本😀ab e", ("éαω日本ß😀", "éβ日本_😀"), ("eα日本a😀",)
    ),
    "classes": Case(
        r"start: /\d+/ /\s/ /\w+/ /\S/ /./ /[^a]/", "0٣ \t\u00a0éab-\n", ("0٣\u00a0éa-b-",), ("\n",), ("contextual",)
    ),
    "groups of a regex": Case(
        r"start: A A\nA: /(?:a|b)(?P<x>c)?(d|e){2}/".replace(r"\n", "\n"), "abcde", ("acdeadd",), ("acd",)
    ),
    "look-around": Case(
        r"start: (A | B)+" + "\n" + r"A: /a(?!b)[a-c]/" + "\n" + r"B: /b(?<!a)b*(?=c)c/",
        "abc",
        ("aabc", "bbc"),
        ("abab",),
    ),
}

FLAGS = {
    "strings": Case('start: "ab"i "cd" "é"i', "abcdABCDéÉ", ("aBcdÉ", "ABcdé"), ("abCD",)),
    "case": Case("start: /a[b-d]/i /e/", "abcdeABCDE", ("Abe", "aDe"), ("abE",)),
    "dot": Case('start: /a.b/s /c./ "!"', "abc!\n", ("a\nbca!",), ("a\nbc\n!",)),
    "lines": Case('start: A "c"\nA: /a$\\n(?:b$\\n)?/m', "abc\n", ("a\nc", "a\nb\nc"), ("abc",)),
    "verbose": Case('start: /a  b # c\n   [ ]d/x "e"', "ab de#", ("ab de",), ("a  b", "abde")),
    "unicode": Case('start: /\\w+/u "!"', "aé_!", ("aé!",), ("!",)),
    "several": Case('start: /a . b/isx "!"', "abAB!\n ", ("A\nb!", "a B!"), ("ab!",)),
    "composed": Case('start: A "x"\nA: "a"i /b/ /c./s', "abcABCx\n", ("Abc\nx", "abccx"), ("aBccx", "abCcx")),
    "inline": Case('start: /(?i:a)b/ "c"', "abcABC", ("abc", "Abc"), ("aBc",)),
}

KEYWORDS = {
    "of names": Case(
        'start: ("if" NAME | NAME "=" NAME)+ ";"\nNAME: /[a-z]+/\n%ignore " "',
        "ifab =;",
        ("if a;", "a=b;", "a = b if c;"),
        ("if;",),
    ),
    "in any case": Case('start: "IF"i NAME\nNAME: /[a-z]+/\n%ignore " "', "ifIFab ", ("if a", "If b"), ("iF",)),
    "in any case both": Case(
        'start: ("end"i | NAME)+ "."\nNAME: /[a-z]+/i\n%ignore " "', "endEND .", ("end.", "eNd e."), ("",)
    ),
    "of higher priority": Case('start: KEY NAME\nKEY.1: "if"\nNAME: /[a-z]+/', "ifab", ("ifa", "ifif"), ("if",)),
    "several names": Case(
        'start: "in" A | "on" B\nA: /[a-o]+/\nB: /[m-z]+/\n%ignore " "',
        "inon mz",
        ("in in", "on z"),
        ("in z",),
        ("contextual",),
    ),
    "of operators": Case(
        'start: X (OP X)*\nX: /[xy]/\nOP: "<" | "<=" | "=="\n%ignore / /', "xy<= ", ("x<=y", "x < y==x"), ("x=y",)
    ),
}

IGNORED = {
    "a string": Case('start: "a" "b"\n%ignore "-"', "ab-", ("ab", "-a--b-"), ("a",)),
    "a regex": Case('start: "a" "b"\n%ignore /[ \\n]+/', "ab \n", ("a\n b ",), ("a",)),
    "a terminal": Case(
        'start: "a" B\nB: /b+/\nC: "#" /[^\\n]*/ "\\n"\n%ignore C\n%ignore " "', "ab# \n", ("a #b\nbb",), ("a #b",)
    ),
    "a choice": Case('start: "a" "b"\n%ignore " " | /;+/', "ab ;", ("a ;;b",), (";",)),
    "what rules use": Case('start: "a" [" "] "b" S?\nS: "_"\n%ignore S\n%ignore " "', "ab _", ("a b", "_a_b_"), ("a",)),
    "twice": Case('start: "a" "b"\n%ignore " "\n%ignore " "', "ab ", ("a  b",), ("",)),
}

IMPORTED = {
    "common": Case(
        "start: (ESCAPED_STRING | SIGNED_NUMBER | CNAME | WORD)+ CPP_COMMENT?\n"
        "%import common (ESCAPED_STRING, SIGNED_NUMBER)\n%import common.CNAME\n"
        "%import common.WORD\n%import common.WS\n%import common.CPP_COMMENT\n%ignore WS",
        'ab_1.e+-" \\\n/',
        ('"a\\"b" -1.5e+3 a_1 //x', "+1 ab\t_"),
        ('"a', "-"),
    ),
    "with a name": Case(
        "start: N N\n%import common.INT -> N\n%import common.WS_INLINE -> _S\n%ignore _S", "12 a", ("1 2",), ("12",)
    ),
    "comments": Case(
        'start: "a"*\n%import common (C_COMMENT, SH_COMMENT, SQL_COMMENT, NEWLINE)\n'
        "%ignore C_COMMENT\n%ignore SH_COMMENT\n"
        "%ignore SQL_COMMENT\n%ignore NEWLINE",
        "a/*#-\n\r",
        ("a/*a\n*/a#a", "--a\r\na"),
        ("-a", "/*a"),
    ),
    "unicode": Case("start: A WS A\n%import unicode.WS\nA: /a/", "a \u00a0\t", ("a\u00a0 a",), ("aa",)),
    "python": Case(
        'start: (name "=" HEX_NUMBER)+\n%import python (name, HEX_NUMBER)\n%ignore /[ \\t]+/',
        "ab=0x1_match ",
        ("a = 0x1b b=0x1", "match=0X0_1"),
        ("if", "a=01"),
        ("contextual",),
    ),
    "lark": Case(
        'start: (name "=" priority REGEXP)+\n%import lark (name, priority, REGEXP)\n%ignore / +/',
        "aB=.1/x\\ ",
        ("a = .1/a/x", "_B=.10 /\\//"),
        ("a", "a=1/"),
    ),
    "shipped": Case(
        'start: "(" value ")"\n%import json (value, WS)\n%ignore WS',
        '()[]{}",:1tru e\n',
        ('([{"e": true}, 1])', "( 1\n)"),
        ("()",),
    ),
    "rules and others of a name": Case(
        'start: sum "," other\nother: "x" NAME\nNAME: /[a-c]/\n%import arithmetic.sum\n%ignore " "',
        "abcx,1+(d)",
        ("d+1,xa", "(a),xc"),
        ("a,xd",),
        ("contextual",),
    ),
    "overridden": Case(
        '%import arithmetic (start, NAME)\n%override NAME: "x" | "y"\n%ignore " "',
        "xyz+1*() ",
        ("x+y*(1)", "y()"),
        ("z",),
    ),
    "overridden rule": Case(
        '%import json (value, object, WS)\n%override object: "<" value ">"\nstart: value',
        '<>[],1{}"',
        ("<[<1>,1]>",),
        ("{}", "<>"),
    ),
    "extended": Case(
        '%import json (start, value, NUMBER)\n%extend value: "None" | "(" value ")"\n%extend NUMBER: "inf"',
        "[],None()inf1",
        ("[None,(inf)]", "((1))"),
        ("inf1", "()"),
    ),
    "extended here": Case(
        'start: a A\na: "x"\nA: "1"\n%extend a: "y" a | "z"\n%extend A: "22"', "xyz12", ("yyx22", "z1"), ("y1", "z2")
    ),
    "overridden here": Case(
        'start: a\na: "x"\n%override a: "y" B\nB.1: "b"\n%override B: /c+/', "xybc", ("yc", "ycc"), ("x", "yb")
    ),
}

CASES = {
    f"{kind}: {name}": case
    for kind, cases in {
        "rules": RULES,
        "templates": TEMPLATES,
        "priorities": PRIORITIES,
        "terminals": TERMINALS,
        "flags": FLAGS,
        "keywords": KEYWORDS,
        "ignored": IGNORED,
        "imported": IMPORTED,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("name", "lexer"), [(name, lexer) for name, case in CASES.items() for lexer in case.lexers])
def test_a_feature(name: str, lexer: str) -> None:
    case = CASES[name]
    parser = judge(case.grammar, lexer)
    if lexer == "contextual":
        assert [text for text in case.texts if not parses(parser, text)] == []
    assert [text for text in case.refused if parses(parser, text)] == []
    found = agrees(case.grammar, case.letters, lexer=lexer, texts=(*case.texts, *case.refused), rounds=5)
    assert found[False], found
    assert found[True], found


# -- imports of files -----------------------------------------------------------------------------------------


def files(folder: Path, **texts: str) -> Path:
    """Grammars in a folder; a name's two underscores stand for a folder's slash."""
    for name, text in texts.items():
        file = folder.joinpath(*name.split("__")).with_suffix(".lark")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@each_lexer
@pytest.mark.parametrize(
    ("text", "examples"),
    [
        ("%import .inner.word\nstart: word+", ("aab",)),
        ("%import .inner (word, B)\nstart: word B", ("ab", "bb")),
        ("%import .inner.word -> other\nstart: other word\nword: /c/", ("ac", "bc")),
        ("%import .deep.down.x\nstart: x x", ("aa", "dd", "da")),
        ("%import.inner.word\nstart: word", ("a",)),
        ("%import .json.value\nstart: value", ("mine",)),
        ("%import .inner (word, B)\n%override B: /d+/\n%extend word: B\nstart: word B", ("addd", "d")),
    ],
    ids=["one", "several", "with a name", "of a folder", "no space", "named as a shipped one", "changed"],
)
def test_relative_imports(text: str, examples: tuple[str, ...], lexer: str, tmp_path: Path) -> None:
    files(
        tmp_path,
        outer=text,
        inner='word: "a" | B\nB: "b"\n%ignore " "',
        deep__down='%import .side.D\nx: D | "a"',
        deep__side='D: "d"',
        json='value: "mine"',
    )
    source = tmp_path / "outer.lark"
    parser = Lark(text, parser="lalr", lexer=lexer, source_path=str(source))
    index = sg.compile(sg.Grammar(source, lexer=lexer), BYTES, eager=False)
    texts = [*examples, *(a + b for a in "abcdm" for b in ("", "a", "b", "c", "dd", " ", "ine"))]
    verdicts = {text: parses(parser, text) for text in texts}
    assert verdicts == {text: index.match(text.encode()).accepted for text in texts}
    assert any(verdicts.values())


@each_lexer
def test_import_paths(lexer: str, tmp_path: Path) -> None:
    files(tmp_path, one__words='word: "a" | other\n%import .more.other', one__more='other: "b"', two__words='word: "c"')
    files(tmp_path, two__common='INT: "number"', two__json='value: "text"')
    text = "%import words.word\n%import common.INT\n%import json.value\nstart: word INT value"
    for first, second in (("one", "two"), ("two", "one")):
        paths = (str(tmp_path / first), str(tmp_path / second))
        found = agrees(
            text, "abcnumbertx1", lexer=lexer, texts=("anumbertext", "bnumbertext", "cnumbertext"), import_paths=paths
        )
        assert found[True]
        index = sg.compile(sg.Grammar(text, lexer=lexer, import_paths=paths), BYTES, eager=False)
        assert index.match(b"cnumbertext").accepted == (first == "two"), (
            "the first folder counts, before what is built in"
        )


@pytest.mark.parametrize(
    "statement", ["%import .inner.x", "%import.inner.x", "%import \\\n . inner . x", "%import\t.inner (x)"]
)
def test_every_import_is_part_of_what_a_definition_means(statement: str, tmp_path: Path) -> None:
    files(tmp_path, outer=f'start: x\n  \x0b{statement} // "\n', inner="%import .more.y -> x", more='y: "a"')
    assert sg.compile(sg.Grammar(tmp_path / "outer.lark"), BYTES, eager=False).match(b"a").accepted
    before = sg.Grammar(tmp_path / "outer.lark").canonical()
    files(tmp_path, more='y: "b"')
    assert sg.Grammar(tmp_path / "outer.lark").canonical() != before


def test_a_text_of_no_file_imports_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, inner='x: "a"')
    monkeypatch.chdir(tmp_path)
    text = "%import .inner.x\nstart: x"
    with pytest.raises(sg.errors.DefinitionError, match=r"there is no grammar inner\.lark to import"):
        sg.compile(sg.Grammar(text), BYTES)
    assert sg.compile(sg.Grammar(text, import_paths=(str(tmp_path),)), BYTES, eager=False).match(b"a").accepted


# -- other ways to say it -------------------------------------------------------------------------------------


@each_lexer
def test_starts(lexer: str) -> None:
    text = 'start: "a" other\nother: "b" | "c" start'
    for start in ("start", "other"):
        found = agrees(text, "abc", lexer=lexer, start=start, texts=("ab", "b", "cab", "acab"))
        assert min(found.values()) > 10


def test_conditionals_of_the_regex_package() -> None:
    text = 'start: NAME ("," NAME)*\nNAME: /(?(?=1)1+a?|[ab1]+)/'
    parser, index = Lark(text, parser="lalr", regex=True), sg.compile(sg.Grammar(text), BYTES, eager=False)
    for length in range(6):
        for sample in map("".join, itertools.product("1a,b", repeat=length)):
            assert index.match(sample.encode()).accepted == parses(parser, sample), sample


def test_what_is_declared_needs_a_definition() -> None:
    with pytest.raises(sg.errors.DefinitionError, match=r"the terminal A is declared and not defined \(rule start\)"):
        sg.compile(sg.Grammar('%declare A\nstart: "b" A'), BYTES)
    with pytest.raises(sg.errors.DefinitionError, match="A"):
        sg.compile(sg.Grammar('%declare A\nstart: "b"\n%ignore A'), BYTES)
    index = sg.compile(sg.Grammar('%declare A\nstart: "b" | x\nx: "c"'), BYTES, eager=False)
    assert index.match(b"c").accepted, "what nothing uses does no harm"


@pytest.mark.parametrize(
    "text", ['start: "a"', "start: /a/", 'start: A\nA: "a" "b"?', '?start: "a" -> b', '!_start: "a"']
)
def test_small_ones(text: str) -> None:
    start = "_start" if "_start" in text else "start"
    try:
        Lark(text, parser="lalr", start=start)
    except LarkError:
        with pytest.raises(sg.errors.DefinitionError):
            sg.compile(sg.Grammar(text, start=start), BYTES)
    else:
        assert sg.compile(sg.Grammar(text, start=start), BYTES, eager=False).match(b"a").accepted


def longest_matches(pattern: str, text: str) -> bool:
    """Whether a text is longest matches of a pattern and letters c."""
    at = 0
    while at < len(text):
        ends = (end for end in range(len(text), at, -1) if re.fullmatch(pattern, text[at:end]))
        end = at + 1 if text[at] == "c" else next(ends, 0)
        if not end:
            return False
        at = end
    return bool(text)


def test_longest_matches() -> None:
    """Of a terminal, alone and as part of another definition; some are not the ones that `re` prefers."""
    texts = ["".join(each) for n in range(6) for each in itertools.product("abc", repeat=n)]
    differ = 0
    for pattern in patterns(60):
        if re.fullmatch(pattern, ""):
            continue
        source = f'start: (A | "c")+\nA: /{pattern}/'
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no longer match is hidden
            longest = sg.Grammar(source, matches="longest")
            alone = sg.compile(longest, BYTES, eager=False)
        part = sg.compile(sg.sequence(longest), BYTES, eager=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            preferred = sg.compile(sg.Grammar(source), BYTES, eager=False)
        for text in texts:
            verdict = longest_matches(pattern, text)
            assert alone.match(text.encode()).accepted is verdict, (pattern, text)
            assert part.match(text.encode()).accepted is verdict, (pattern, text)
            differ += preferred.match(text.encode()).accepted is not verdict
    assert differ


def test_what_is_lazy_or_looks_around_keeps_to_the_preferred_match() -> None:
    for regex, text in (("a.*?b", "abb"), ("a(?!b)|ab", "abb")):
        grammar = sg.Grammar(f'start: A "b"\nA: /{regex}/', matches="longest")
        assert sg.compile(grammar, BYTES, eager=False).match(text.encode()).accepted


def test_grammars_in_braces_match_as_the_grammar_around_them() -> None:
    inner = 'start: "<" %lark { start: A "c"\nA: /a|ab/ } ">"'
    assert sg.compile(sg.Grammar(inner, matches="longest"), BYTES, eager=False).match(b"<abc>").accepted
    assert not sg.compile(sg.Grammar(inner), BYTES, eager=False).match(b"<abc>").accepted


def test_the_option_is_part_of_the_definition() -> None:
    longest = sg.Grammar("start: /a|ab/", matches="longest")
    assert definition_of("grammar", longest.canonical()) == longest
    assert definition_of("grammar", sg.Grammar("start: /a|ab/").canonical()) != longest
    with pytest.raises(sg.Error, match="matches"):
        sg.Grammar("start: /a|ab/", matches="shortest")


def munched(patterns: list[str], text: str) -> bool:
    """Whether a text is lexemes, each the longest that one of the patterns matches there."""
    while text:
        longest = max((n for n in range(1, len(text) + 1) for p in patterns if re.fullmatch(p, text[:n])), default=0)
        if not longest:
            return False
        text = text[longest:]
    return True


def test_longest_matches_of_several_terminals() -> None:
    """None hides a longer one of its priority, by itself and as a part; those of a higher one do."""
    draw, seen = Random(5), set[bool]()
    pool = ["a", "b", "a+", "ab", "ab?a", "[ab]b", "(ab)+", "b+a", "aab|b", "a(ba){2}"]
    texts = ["".join(each) for n in range(1, 7) for each in itertools.product("ab", repeat=n)]
    for _ in range(12):
        patterns = draw.sample(pool, 3)
        rules = "\n".join(f"T{i}: /{pattern}/" for i, pattern in enumerate(patterns))
        grammar = sg.Grammar(f"start: (T0 | T1 | T2)+\n{rules}", lexer="basic", matches="longest")
        indexes = [sg.compile(each, BYTES, eager=False) for each in (grammar, sg.sequence(grammar))]
        for text in texts:
            right = munched(patterns, text)
            seen.add(right)
            for index in indexes:
                assert index.match(text.encode()).accepted == right, (patterns, text)
    assert seen == {True, False}
    high = sg.Grammar("start: NUM | DATE\nNUM.2: /[0-9]+/\nDATE: /[0-9]+-[0-9]+/", matches="longest")
    assert not sg.compile(high, BYTES, eager=False).match(b"12-34").accepted
    plain = sg.Grammar("start: NUM | DATE\nNUM: /[0-9]+/\nDATE: /[0-9][0-9]-[0-9][0-9]/", matches="longest")
    assert sg.compile(plain, BYTES, eager=False).match(b"12-34").accepted
