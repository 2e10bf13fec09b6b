"""The Java grammar that comes with structgen: javac's parser judges it.

What the parser of javac 25 says of some texts is kept beside the tests (`JavacTask.parse`). Where there is such a
javac it judges these again, and others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from judges.guides import BYTES, EACH_BYTE, with_end
from judges.lark_judge import spelled
from lark import Lark

import structgen as sg
from structgen import grammars

#: Right texts by hand, others made of them with whether javac takes them, and what it takes beyond the grammar.
CASES = json.loads((Path(__file__).resolve().parents[2] / "cases" / "java_texts.json").read_text(encoding="utf-8"))
TEXTS: list[str] = CASES["texts"]

#: Lexemes, roughly.
_LEXEME = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"\"\"(?:[^\\]|\\.)*?\"\"\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[\w$]+|\s+"
    r"|->|::|\.\.\.|&&|\|\||\+\+|--|[-=!<>+*/%&|^]=|<<=?|.",
    re.DOTALL,
)
SIGNS = [
    *re.findall(r'"([^"\\\s]+)"', grammars.path("java").read_text(encoding="utf-8")), " ", "\n", ">", ">>",
    ">>>", ">=", "x", "A", "1", "0x1F", "1.5f", ".5", "'a'", '"s"', '"""\n s"""', "//c\n", "/*c*/", "@A", "A<B>",
    "(a)", "(A) x", "()", "x ->", "(a, b) ->", "::new", "[]", "[0]", "new A()", "case A a", "int x", "= 1", "{}",
    "non-sealed", "<T>",
]  # fmt: skip

#: What a letter becomes.
LETTERS = "aeixX_0189.'\"\\/*\n\t{}()[]<-+=`:;,&^|~@L>?u"


@cache
def definition() -> sg.Grammar:
    return sg.Grammar(grammars.path("java"), lexer="basic", ambiguity="all")


@cache
def index() -> sg.Index:
    return sg.compile(definition(), BYTES, eager=False)


@cache
def wide() -> sg.Index:
    """With words and signs of the texts as tokens, blanks behind them or not."""
    pieces = {word.encode() for text in TEXTS for word in re.findall(r"\w+ ?|[^\w\s]+|\s+", text)}
    return sg.compile(definition(), with_end(dict.fromkeys([*sorted(pieces), *EACH_BYTE])), eager=False)


def changed(text: str, random: Random) -> str:
    """The text with a few lexemes left out, put in, in place of others, or changed in a character."""
    lexemes = _LEXEME.findall(text)
    for _ in range(random.choice([1, 1, 2, 3])):
        at = random.randrange(len(lexemes))
        what = random.randrange(6)
        if what == 5:
            letters = list(lexemes[at])
            letters[random.randrange(len(letters))] = random.choice(LETTERS)
            piece = "".join(letters)
        else:
            piece = random.choice(["", random.choice(SIGNS), f" {random.choice(SIGNS)} ", random.choice(lexemes)])
        lexemes[at : at + random.randint(0, 1)] = [piece] if piece else []
        lexemes = lexemes or [""]
    return "".join(lexemes)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_right_texts(text: str) -> None:
    assert index().match(text.encode()).accepted
    assert index().match(text.encode() + b"\n// last").accepted


def test_verdicts_of_javac() -> None:
    verdicts = Counter(verdict for _, verdict in CASES["changed"])
    assert min(verdicts.values()) > 60, verdicts
    for text, verdict in CASES["changed"]:
        assert index().match(text.encode()).accepted == verdict, text


def test_in_tokens_of_any_length() -> None:
    random = Random(3)
    for text, verdict in [*((text, True) for text in TEXTS), *random.sample(CASES["changed"], 15)]:
        assert spelled(wide(), text.encode(), random) == verdict, text


@pytest.mark.parametrize("text", CASES["beyond"], ids=range(len(CASES["beyond"])))
def test_what_javac_takes_and_the_grammar_does_not(text: str) -> None:
    """What the file says is not in it; anybody who adds some of it takes it out of there."""
    assert not index().match(text.encode()).accepted


@pytest.mark.parametrize(("code", "verdict"), [
    ("x = (a) -> b;", True),
    ("x = (a) - b;", True),
    ("x = (A) b;", True),
    ("x = (A & B) b;", True),
    ("x = (a & b) + c;", True),
    ("x = (a + b) c;", False),
    ("x = (a, b);", False),
    ("x = (a, b) -> c;", True),
    ("x = (int) -> c;", False),
    ("x = (A<B> c) -> d;", True),
    ("x = (A<B>) d;", True),
    ("x = (a < b);", True),
    ("x = (var a, B c) -> d;", False),
    ("x = (a, B c) -> d;", False),
    ("f(a < b, c > d);", True),
    ("f(A<B, C>::d);", True),
    ("f(a < b, c >::d);", True),
    ("A<B> c;", True),
    ("a < b;", False),
    ("a < b = c;", False),
    ("A<B<C>>= d;", False),
    ("A<B<C>> d = e >>= f;", True),
    ("x = a > > b;", False),
    ("x = a > >= b;", False),
    ("A<?>== b;", False),
    ("x = a instanceof A<B> && b;", True),
    ("x = a instanceof A<B>(var c) && b;", True),
    ("x = a instanceof var b;", False),
    ("yield (a);", True),
    ("yield(a, b);", False),
    ("x = yield(a);", False),
    ("a.yield(b);", True),
    ("record a = b;", False),
    ("var a, b;", False),
    ("var a[] = b;", False),
    ("int _;", False),
    ("int _ = a;", True),
    ("new A<>();", True),
    ("new A<B><>();", False),
    ("new A<B>.C<>();", True),
    ("new int[1] {2};", False),
    ("x = new int[1][][0];", False),
    ("x = new int[][] {{1}}[0];", True),
    ("a.<?>b();", False),
    ("switch (a) { case (b) -> c(); }", True),
    ("switch (a) { case (b -> c) -> d(); }", False),
    ("switch (a) { case B c when f(d -> e) -> d(); }", True),
    ("switch (a) { case B c when (d -> e) -> d(); }", False),
    ("switch (a) { case b -> c; }", False),
    ("x = switch (a) { case b -> c; };", True),
    ("if (a) int b;", False),
    ("try { }", False),
    ("try (a) { }", True),
    ("a + b;", False),
    ("static class A { }", False),
    ("sealed class A { }", False),
    ("int x = 2147483648;", False),
    ("int x = - 2147483648;", True),
    ("int x = 08;", False),
    ("x = (A) (byte) b;", True),
    ("x = (A) (byte) -b;", True),
    ("x = (A) ++b;", False),
    ("x = (A<B>) -c;", True),
    ("x = (A & B[]) -c;", True),
    ("x = (A & B.C) ++c;", False),
    ("x = (A[] & B) -c;", True),
    ("x = (byte) () -> b;", True),
    ("x = a instanceof @B int[] && b instanceof int;", True),
    ("f(@A B<C>::d, A @B []::new, int @B [][]::new, A<B>[] @C []::new);", True),
    ("f(A<B> @C []::new);", False),
    ("f(A @B [].class);", False),
    ("x = (A) @B C::d;", False),
    ("x = (A[]) @B C::d;", True),
    ("x = (int... _) -> b;", True),
    ("try (this) { }", True),
    ("try (A.this; a) { }", True),
    ("try (super) { }", False),
    ("switch (a) { case b = c, d: }", True),
    ("char c = '\\u0027';", False),
    ("char c = '\\u0022';", True),
    ("char c = '😀';", False),
    ('String s = """ a""";', False),
    ('String s = """\n a\\\n "" \\""" """;', True),
    ("/* \\u */", False),
])  # fmt: skip
def test_statements(code: str, verdict: bool) -> None:
    assert index().match(f"class A {{ void f() {{ {code} }} }}".encode()).accepted == verdict


@pytest.mark.parametrize(("text", "verdict"), [
    ("sealed class A permits B { }", True),
    ("non-sealed class A permits B { }", False),
    ("class A permits B { }", False),
    ("class record { }", False),
    ("record A(int x) { int y; }", False),
    ("record A(int x) { static int y; A { } }", True),
    ("record A(int x) { { } }", False),
    ("class A { void f() throws a.@B C, @D E { } }", True),
    ("class A { void f() throws a.@B C<D> { } }", False),
    ("class A { A(B.C<D> B.C.this) { } }", True),
    ("class A { A(B this.x) { } }", False),
    ("interface A { int x; }", False),
    ("interface A { A(); }", False),
    ("enum A { B; C }", False),
    ("enum A { ; int x; }", True),
    ("import a.b; ; import c.d;", False),
    ("package a; void f() { }", False),
    (";record A() { }", False),
    ("module a { requires transitive transitive; }", True),
    ("module a { } class B { }", False),
])  # fmt: skip
def test_declarations(text: str, verdict: bool) -> None:
    assert index().match(text.encode()).accepted == verdict


# -- where there is a JDK ---------------------------------------------------------------------------------------

#: Reads texts as JSON strings, one in a line, and writes the codes of the errors that the parser finds in each.
_JUDGE = """
import com.sun.source.util.JavacTask;
import java.net.URI;
import java.util.List;
import java.util.stream.Collectors;
import javax.tools.*;

public class Judge {
    static class Text extends SimpleJavaFileObject {
        final String text;

        Text(String text) {
            super(URI.create("string:///A.java"), Kind.SOURCE);
            this.text = text;
        }

        @Override public CharSequence getCharContent(boolean ignored) {
            return text;
        }
    }

    public static void main(String[] arguments) throws java.io.IOException {
        var in = new java.io.DataInputStream(new java.io.BufferedInputStream(System.in));
        var compiler = ToolProvider.getSystemJavaCompiler();
        for (int count = in.readInt(); count > 0; count--) {
            var text = new Text(new String(in.readNBytes(in.readInt()), java.nio.charset.StandardCharsets.UTF_8));
            var found = new DiagnosticCollector<JavaFileObject>();
            ((JavacTask) compiler.getTask(null, null, found, List.of("-proc:none"), null, List.of(text))).parse();
            System.out.println(found.getDiagnostics().stream().filter(one -> one.getKind() == Diagnostic.Kind.ERROR)
                .map(one -> one.getCode().replace("compiler.err.", "")).collect(Collectors.joining(" ")));
        }
    }
}
"""

#: Errors in what the grammar does not compare, behind which javac goes on.
_COMPARED = {"repeated.modifier", "invalid.meth.decl.ret.type.req", "fp.number.too.large", "fp.number.too.small"}

#: Of each text whether javac's parser takes it; None where that depends on the name of an enum.
Judge = Callable[[list[str]], list[bool | None]]


def _home() -> Path:
    """Where a JDK is. Skips the test where it is none of 25 or later."""
    found = [os.environ.get("JAVA_HOME", ""), str(Path(shutil.which("javac") or "").resolve().parent.parent)]
    found += sorted(map(str, Path("/usr/lib/jvm").glob("*")))
    for home in (Path(each) for each in found if each):
        release = home / "release"
        version = re.search(r'JAVA_VERSION="(\d+)', release.read_text() if release.is_file() else "")
        if version and int(version[1]) >= 25 and (home / "bin" / "javac").is_file():
            return home
    pytest.skip("needs javac 25 or later")


@pytest.fixture(scope="module")
def javac(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    home, folder = _home(), tmp_path_factory.mktemp("javac")
    (folder / "Judge.java").write_text(_JUDGE)
    subprocess.run([home / "bin" / "javac", "-d", folder, folder / "Judge.java"], check=True)

    def judge(texts: list[str]) -> list[bool | None]:
        encoded = [text.encode() for text in texts]
        told = b"".join(len(text).to_bytes(4, "big") + text for text in encoded)
        run = [str(home / "bin" / "java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(folder), "Judge"]
        said = subprocess.run(run, input=len(texts).to_bytes(4, "big") + told, capture_output=True, check=True)
        lines = said.stdout.decode().splitlines()
        assert len(lines) == len(texts)
        return [_verdict(line.split()) for line in lines]

    return judge


def _verdict(errors: list[str]) -> bool | None:
    others = [error for error in errors if error not in _COMPARED]
    return None if others[:1] == ["enum.constant.not.expected"] else not others


def test_javac_still_says_so(javac: Judge) -> None:
    assert all(javac([*TEXTS, *CASES["beyond"]]))
    texts, verdicts = zip(*CASES["changed"], strict=True)
    assert javac(list(texts)) == list(verdicts)


def test_as_javac_reads_it(javac: Judge) -> None:
    """Nothing is wrongly accepted; the few texts that javac takes besides are of what the grammar's file names."""
    random = Random(7)
    texts = [changed(random.choice(TEXTS), random) for _ in range(200)]
    found = Counter(zip(javac(texts), (index().match(text.encode()).accepted for text in texts), strict=True))
    assert not found[False, True], found
    assert found[True, False] < 10, found
    assert min(found[True, True], found[False, False]) > 20, found


def test_javac_takes_what_the_rules_derive(javac: Judge) -> None:
    """With ``ambiguity="all"`` guides know no way to an end, so texts are derived from the rules themselves."""
    texts = list(_derived(Random(8), 150))
    assert all(index().match(text.encode()).accepted for text in texts)
    assert not [text for text, verdict in zip(texts, javac(texts), strict=True) if verdict is False]
    assert len({text for text in texts if len(text) > 40}) > 40


#: Lexemes of the terminals that are no strings. Nothing is put between one that ends with "\b" and the next.
_SPELLED = {
    "IDENT": ["a", "b", "A", "B"], "NON_SEALED": ["non-sealed"], "GT": [">"], "GT_ADJ": [">\b"],
    "INT": ["1", "7L"], "INT_MIN": ["2147483648"], "FLOAT": ["1.5", ".5f"], "CHAR": ["'a'"], "STRING": ['"s"'],
    "TEXT_BLOCK": ['"""\n s"""'],
}  # fmt: skip


def _derived(random: Random, count: int) -> Iterator[str]:
    """Random texts of the grammar: what was taken least is taken first, and what is smallest once it gets long."""
    lark = Lark(grammars.path("java").read_text(encoding="utf-8"), parser="earley", lexer="dynamic")
    written = {one.name: [one.pattern.value] for one in lark.terminals if one.pattern.type == "str"} | _SPELLED
    rules: dict[str, list[list[str]]] = {}
    for rule in lark.rules:
        rules.setdefault(rule.origin.name, []).append([symbol.name for symbol in rule.expansion])
    heights = dict.fromkeys(written, 0)
    while len(heights) < len(written) + len(rules):
        known = {
            name: 1 + min(max((heights[each] for each in one), default=0) for one in ready)
            for name, ones in rules.items()
            if name not in heights and (ready := [one for one in ones if heights.keys() >= set(one)])
        }
        heights |= known
    smallest = {
        name: min(ones, key=lambda one: max((heights[each] for each in one), default=0)) for name, ones in rules.items()
    }
    taken: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for _ in range(count):
        text, stack, most = "", ["start"], random.choice([8, 15, 30, 60])
        while stack:
            name = stack.pop()
            if name in written:
                text = f"{text}{random.choice(written[name])} ".replace("\b ", "")
                continue
            weights = [(1 + taken[name, tuple(one)]) ** -0.5 for one in rules[name]]
            short = len(stack) + len(text) // 4 < most
            chosen = random.choices(rules[name], weights)[0] if short else smallest[name]
            taken[name, tuple(chosen)] += 1
            stack.extend(reversed(chosen))
        yield text


def test_files_of_the_jdk_itself(javac: Judge) -> None:
    source = _home() / "lib" / "src.zip"
    if not source.is_file():
        pytest.skip("needs javac 25 or later")
    with zipfile.ZipFile(source) as archive:
        names = [each.filename for each in archive.infolist() if 0 < each.file_size < 9_000]
        chosen = Random(9).sample(sorted(name for name in names if name.endswith(".java")), 12)
        texts = [archive.read(name).decode() for name in chosen]
    for name, text, verdict in zip(chosen, texts, javac(texts), strict=True):
        assert index().match(text.encode()).accepted == verdict, name
