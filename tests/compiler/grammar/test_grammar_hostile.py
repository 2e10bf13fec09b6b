"""Grammars from strangers: each ends in an index or in a typed error that says what and where, within its budget."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judges.grammars import GRAMMARS
from judges.guides import BYTES, with_end

import structgen as sg
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, UnsupportedError, VocabularyError

pytestmark = pytest.mark.nightly

SECONDS = 2.0

#: Processor seconds beyond the budget: what lies between two looks at the clock, some of it in Lark.
MARGIN = 4.0


BUDGET = sg.Budget(seconds=SECONDS)


def compiled(source: Any, vocabulary: sg.Vocabulary = BYTES, budget: sg.Budget = BUDGET, **options: Any) -> sg.Index:
    return sg.compile(sg.Grammar(source, **options), vocabulary, eager=False, budget=budget)


def lines(*parts: str) -> str:
    return "\n".join(parts)


# -- what is no grammar ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("", "there is no rule 'start'", ""),
        ('begin: "a"', "there is no rule 'start'", ""),
        ('START: "a"', "there is no rule 'start'", ""),
        ("start{x}: x", "there is no rule 'start'", ""),
        ("start: (", "Unclosed parenthesis", "line 1, column 9"),
        ('start: "a")', "Unexpected token Token('_RPAR', ')')", "line 1, column 11"),
        ('start "a"', "missing colon", "line 1, column 7"),
        ('start: "a"\n\n  b: ?', "Expecting a value", "line 3, column 6"),
        ('start: "a"\nAa: "b"', "Unexpected token Token('RULE', 'a')", "line 2, column 2"),
        ("start: §", "Unexpected input", "line 1, column 8"),
        ('start: "a"\n%nothing', "Unexpected input", "line 2, column 1"),
        ("\0\1\2\x7f", "Unexpected input", "line 1, column 1"),
        ("start: '\x00'", "Unexpected input", "line 1, column 8"),
        ('start: "a', "the string is never closed", "line 1, column 8"),
        ('start: b\nb: "\\"', "the string is never closed", "line 2, column 4"),
        ("start: /a\\/", "the regex is never closed", "line 1, column 8"),
        ('start: "a" // "\n  | "b', "the string is never closed", "line 2, column 5"),
        ('start: "\0"', "null bytes", ""),
        ('start: "\ud800"', "surrogates not allowed", ""),
        ('start: "\\x4"', "truncated \\xXX escape", "line 1, column 8"),
        ("start: a\na: /\\u{43}/", "truncated \\uXXXX escape", "line 2, column 4"),
        ("start: /a\nb/", "newlines in regular expressions", "line 1, column 8"),
        ("start: /(/", "missing ), unterminated subpattern", "line 1, column 8: /(/ of start, column 1"),
        ("start: A\nA: /a[b/i", "unterminated character set", "/a[b/i of A, column 2"),
        ('start: "a".."bc"', "has ends that are not one character", "line 1, column 8: start"),
        ('start: "a"i.."z"', 'the range "a"i.."z" has a flag', "line 1, column 8: start"),
        ('start: "\\x4".."z"', "truncated \\xXX escape", "line 1, column 8: start"),
        ('start: "b".."a"', 'the range "b".."a" ends before it begins', "line 1, column 8: start"),
        ("start: b", "Rule 'b' used but not defined (in rule start)", "line 1, column 8"),
        ('start: "b" // b\n  | b', "Rule 'b' used but not defined (in rule start)", "line 2, column 5"),
        ("start: B", "Rule 'B' used but not defined (in rule start)", "line 1, column 8"),
        ("start: A\nA: B", "Terminal used but not defined: B", "line 2, column 4"),
        ('start: A\nA: b\nb: "x"', "Rules aren't allowed inside terminals", "line 2, column 4"),
        ('start: x\nx[lazy]: /a/ b\nb: "x" b?', "Rules aren't allowed inside terminals", "line 2"),
        ('start: A\nA: "x" A', "Recursion in terminal 'A'", "line 2, column 1"),
        ("start: A\nA: B\nB: C\nC: A", "Recursion in terminal 'A'", ""),
        ('start: A\nA: "x" -> y', "Aliasing not allowed in terminals", ""),
        ("start: A\nA:", "Terminals cannot be empty (A)", "line 2, column 1"),
        ('start: "a"\nstart: "b"', "Rule 'start' defined more than once", "line 2, column 1"),
        ('start: "a" "b"? -> x | "a" "b" -> y', "Rules defined twice", ""),
        ('start: "a"~3..2', "Bad Range", "line 1, column 11"),
        ('start: "a"{3,2}', "Bad Range", "line 1"),
        ("start: <[9-1]>", "names no ids of tokens", "line 1, column 8"),
        ('start: A\nA: "b" <|x|>', "which is no text for a lexer", "line 2: terminal A"),
        ('start: A\nA: "a"~3..2', "Bad Range", ""),
        ('start: "a"~' + "9" * 5000, "does not load", ""),
        ('?_start: "a"\nstart: _start', "Inlined rules", ""),
        ('start: _a\n_a: "x" -> y', "isn't allowed to have aliases", ""),
        ('start: __a\n__a: "x"', "Unexpected input", "line 1, column 8"),
        ('start: t{"a", "b"}\nt{x}: x', "Wrong number of template arguments", ""),
        ('start: t{"a"}', "Template 't' used but not defined", "line 1, column 8"),
        ('start: t{"a", "b"}\nt{x, x}: x', "Duplicate Template Parameter", ""),
        ('start: t{"a"}\nt{u}: u\nu: "b"', "Template Parameter conflicts", ""),
        ("start: t\nt{x}: x", "t is a template, used as a rule", ""),
        ('%override start: "a"', "Cannot override a nonexisting rule start", ""),
        ('%extend start: "a"', "Can't extend rule start", ""),
        ('start: "a"\n%ignore A', "marked to ignore but were not defined", ""),
        ('start: "a"\n%ignore b', "Rules aren't allowed inside terminals", ""),
        ('%declare A\nstart: "b"\n%ignore A', "the terminal A is declared and not defined", "%ignore"),
        ("%declare start", "there is no rule 'start'", ""),
        ("start: A\n%import nowhere.A", "there is no grammar nowhere.lark to import", ""),
        ("start: A\n%import .nowhere.deep.A", "there is no grammar nowhere/deep.lark to import", ""),
        ("start: A\n%import common.A", "A", ""),
        ("start: A\n%import common", "Nothing was imported from grammar", ""),
        ("start: A\n%import common.INT -> A\nA: /a/", "Terminal 'A' defined more than once", ""),
        ("start: INT\n%import ..common.INT", "Unexpected", "line 2"),
        ("start: " + "x" * 2_000_000, "used but not defined", ""),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_no_grammar(text: str, message: str, where: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        compiled(text)
    assert message in caught.value.what
    assert where in caught.value.where
    assert len(str(caught.value).encode()) < 4_000


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (b"start: /a/", {}, "a grammar is a str with its text, or a path, got bytes"),
        (None, {}, "a grammar is a str"),
        (5, {}, "a grammar is a str"),
        ("start: /a/", {"lexer": "dynamic"}, "lexer is 'dynamic'"),
        ("start: /a/", {"lexer": ["basic"]}, "lexer is"),
        ("start: /a/", {"strict": "yes"}, "strict is 'yes'"),
        ("start: /a/", {"strict": 1}, "strict is 1"),
        ("start: /a/", {"start": ""}, "start is ''"),
        ("start: /a/", {"start": ["start"]}, "start is"),
        ("start: /a/", {"import_paths": 5}, "import_paths is 5"),
        ("start: /a/", {"import_paths": "folder"}, "import_paths is 'folder'"),
        ("start: /a/", {"import_paths": [None]}, "import_paths is"),
    ],
    ids=str,
)
def test_options_of_wrong_types(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        sg.Grammar(source, **options)
    assert message in str(caught.value)


# -- what cannot be parsed, or read ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (lines("start: a | b", 'a: "x"', 'b: "x"'), DefinitionError, "after X, before $END: reduce 'a: X' or"),
        (lines("start: a", 'a: a | "x"'), DefinitionError, "after X, before $END: reduce 'start: a' or reduce 'a: a"),
        (lines("start: A", "A: /\\b/"), UnsupportedError, "terminal A"),
        (lines("start: A", "A: /(?!b)a*/"), DefinitionError, "the terminal matches the empty string (terminal A)"),
        (lines("start: A", "A: /[^\\s\\S]/"), DefinitionError, "the terminal matches nothing (terminal A)"),
        (lines("start: A", "A: /\\ud800/"), DefinitionError, "the terminal matches nothing (terminal A)"),
        (lines("start: A", "A: /(a)\\1/"), UnsupportedError, "terminal A, column 4"),
        (lines("start: A", "A: /(?P<x>a)(?P=x)/"), UnsupportedError, "terminal A"),
        ('start: start "a"', EmptyLanguageError, "no text can ever complete the rule start"),
        (lines("start: a", 'a: "x" b', 'b: "y" a'), EmptyLanguageError, "no text can ever complete the rule"),
        (lines('start: "b" w w', "w: /a+/"), EmptyLanguageError, "the lexer can read no text"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_grammars_without_a_parser(text: str, kind: type[sg.Error], message: str, lexer: str) -> None:
    with pytest.raises(kind) as caught:
        compiled(text, lexer=lexer)
    assert message in str(caught.value)


def test_strict_grammars_refuse_what_is_shifted() -> None:
    text = lines("start: s", 's: "i" s | "i" s "e" s | "x"')
    assert compiled(text).match(b"iixex").accepted
    with pytest.raises(DefinitionError, match=r"after I X, before E: reduce 's: I s' or shift in 's: I s . E s'"):
        compiled(text, strict=True)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([b"1", b"+"], "no token is just the byte 0x"),
        ([b"+", b" ", b"-"], "the vocabulary"),
        ([b"12", b"ab"], "the vocabulary"),
    ],
)
def test_vocabularies_that_cannot_spell_a_terminal(tokens: list[bytes], message: str) -> None:
    vocabulary = with_end(tokens)
    with pytest.raises(VocabularyError, match=message):
        compiled(GRAMMARS["arithmetic"][0], vocabulary)


# -- size -----------------------------------------------------------------------------------------------------

#: Grammars that cannot be had within a budget, with what is said of them. Lark alone would never end for most.
TOO_LARGE = {
    "groups": ("start: " + "(" * 60_000 + '"a"' + ")" * 60_000, "nested more than 1,000 deep"),
    "groups that never close": ("start: " + "[" * 60_000, "nested more than 1,000 deep"),
    "groups within Lark's recursion": ("start: " + "(" * 900 + '"a"' + ")" * 900, "nested too deeply"),
    "groups of a regex": ("start: /" + "(" * 900 + "a" + ")" * 900 + "/", "nested"),
    "options": ("start: " + '"a"? ' * 60, "more than 200,000 symbols"),
    "choices": ("start: " + '("a" | "b" "c") ' * 40, "more than 200,000 symbols"),
    "brackets": ("start: " + '["a"] ' * 40, "more than 200,000 symbols"),
    "repeated choices": ('start: ("a" | "b")~49', "more than 200,000 symbols"),
    "repeated repeats": ('start: ((("a" | "b")~2..9)~2..9)~2..9', "more than 200,000 symbols"),
    "stars": ("start: " + '"a"* "b"* ' * 30, "more than 200,000 symbols"),
    "options in a template": ('start: t{"a"}\nt{x}: ' + "x? " * 40, "more than 200,000 symbols"),
    "a template of templates": ('start: a{"x"}\na{x}: x | a{b{x}}\nb{x}: x x', "more and more arguments"),
    "a template that doubles": ('start: a{"x"}\na{x}: x | a{b{x, x}}\nb{x, y}: x y', "more and more arguments"),
    "terminals of terminals": (
        lines("start: T0", *(f"T{i}: T{i + 1} T{i + 1}" for i in range(40)), 'T40: "a"'), "too many times over"
    ),
    "a circle of terminals": (
        lines("start: T0", *(f"T{i}: T{i + 1} T{i + 1}" for i in range(40)), "T40: T0"), "too many times over"
    ),
    "deep terminals": (
        lines("start: T0", *(f"T{i}: T{i + 1}" for i in range(2_000)), 'T2000: "a"'), "more than 150 deep"
    ),
    "unused rules": (
        lines('start: "a"', *(f"r{i}: r{i + 1}" for i in range(8_000)), 'r8000: "a"'), "unused rules|seconds"
    ),
    "blank lines": ('start: "a"' + "\n" * 200_000, "more than 2,000 line ends in a row"),
    "a million rules": ("start: a\n" * 1_000_000, "seconds"),
    "a counted regex": ("start: A\nA: /a{1,100000000}/", "automaton states"),
    "a counted terminal": ('start: A\nA: "a"~1..100000000', "automaton states"),
    "subsets": ("start: A\nA: /(a|b)*a(a|b){25}c/", "automaton states|seconds"),
    "counts in counts": ("start: A\nA: /((a{1,1000}){1,1000}){1,1000}/", "automaton states|seconds"),
    "terminals side by side": (
        lines(
            "start: " + " | ".join(f"A{i}" for i in range(20)),
            *(f"A{i}: /[a-z]*{chr(97 + i)}[a-z]{{{i + 5}}}!/" for i in range(20)),
        ),
        "automaton states|seconds",
    ),
}  # fmt: skip

#: Grammars that look as bad, and are none: they compile.
HARMLESS = {
    "a million times": 'start: "a"~1000000',
    "up to a million times": 'start: "a"~0..1000000 "b"',
    "many options": 'start: "a"~0..200 "b"',
    "for backtracking": "start: A B\nA: /(a+a+)+b/\nB: /(x*)*y/",
    "keywords of a bad regex": 'start: (A | "' + "a" * 60 + '")+\nA: /(a|aa)+b?/',
    "many words": "start: (" + " | ".join(f'"w{i}"' for i in range(2_000)) + ")+",
    "a long rule": "start: " + '"a" ' * 5_000,
    "a long regex": "start: /" + "|".join(f"x{i}" for i in range(5_000)) + "/",
    "many rules": lines("start: r0", *(f'r{i}: "x{i}" r{i + 1} | "y"' for i in range(400)), 'r400: "a"'),
    "long comments": 'start: "a"\n' + "// nothing \\\\\\\\\\\\ \" ' / ((((\n" * 2_000,
    "backslashes": 'start: "' + "\\" * 2_000 + '"',
    "a terminal often": lines("start: A", 'B: "b" | "c"', "A: " + "B " * 500),
    "nested templates": 'start: a{a{a{a{a{a{a{"x"}}}}}}}\na{x}: "(" x ")"',
    "a template that uses itself": 'start: a{"x"}\na{x}: x | "(" a{x} ")"',
    "a terminal overridden": lines("start: A B", "A: B", '%override A: "x"', 'B: A "y"'),
}

#: Runs cases in a process that gets no more than 3 GiB of addresses, where the libraries take the first.
SCRIPT = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import structgen as sg
from judges.guides import BYTES
sg.compile(sg.Grammar('start: "a"'), BYTES)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = {}
for name, text in json.load(sys.stdin).items():
    began = time.process_time()
    try:
        index = sg.compile(sg.Grammar(text), BYTES, eager=False, budget=sg.Budget(seconds=SECONDS))
        said = ["", "compiled", bool(sg.Guide(index).bitmask().any())]
    except sg.Error as error:
        said = [type(error).__name__, str(error), error.remedy]
    found[name] = [*said, time.process_time() - began]
print(json.dumps([found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
"""


def in_a_process(texts: dict[str, str], seconds: float) -> tuple[dict[str, tuple[str, str, str, float]], int]:
    """By name: the error's kind, its text and remedy, and the processor time; and by how many KiB the memory grew."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("SECONDS", str(seconds))],
        input=json.dumps(texts), cwd=Path(__file__).parents[2], timeout=300,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2_000:]
    return tuple(json.loads(done.stdout))  # type: ignore[return-value]


@pytest.mark.nightly
def test_grammars_that_grow_beyond_measure_end_in_time_and_memory() -> None:
    found, memory = in_a_process({name: text for name, (text, _) in TOO_LARGE.items()}, SECONDS)
    for name, (kind, message, remedy, seconds) in found.items():
        assert kind == "BudgetExceededError", (name, message)
        assert any(part in message for part in TOO_LARGE[name][1].split("|")), (name, message)
        assert remedy, name
        assert len(message.encode()) < 4_000
        assert seconds < SECONDS + MARGIN, name
    assert memory < 1_200_000


@pytest.mark.nightly
def test_large_but_harmless_grammars_compile() -> None:
    found, memory = in_a_process(HARMLESS, 20.0)
    assert {name: message for name, (_, message, *_) in found.items()} == dict.fromkeys(HARMLESS, "compiled")
    assert memory < 1_200_000


def test_each_budget_is_kept() -> None:
    text = GRAMMARS["statements"][0] + "\n// tables of no other test\n"
    with pytest.raises(BudgetExceededError, match="compiling takes longer than 1e-06 seconds"):
        compiled(text, budget=sg.Budget(seconds=1e-6))
    with pytest.raises(BudgetExceededError, match=r"needs at least .* automaton states, the budget is 50"):
        compiled("start: /a{90}/", budget=sg.Budget(states=50))
    with pytest.raises(BudgetExceededError, match="written out, the rules come to more than 50 symbols"):
        compiled(text, budget=sg.Budget(states=50))
    with pytest.raises(BudgetExceededError, match=r"needs at least .* bytes, the budget is 1,000"):
        sg.compile(sg.Grammar(text), BYTES, budget=sg.Budget(memory=1_000))
    with pytest.raises(BudgetExceededError, match=r"groups are nested more than 1 deep \(line 1, column 9\)"):
        compiled('start: (("a"))', budget=sg.Budget(depth=1))
    assert compiled('start: ("a")', budget=sg.Budget(depth=1)).match(b"a").accepted


# -- files ----------------------------------------------------------------------------------------------------


def test_files_that_vanish(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"the grammar cannot be read: .*missing\.lark"):
        sg.Grammar(tmp_path / "missing.lark")
    outer, inner = tmp_path / "outer.lark", tmp_path / "inner.lark"
    outer.write_text("%import .inner.x\nstart: x")
    inner.write_text('x: "a"')
    definition = sg.Grammar(outer)
    outer.unlink()
    assert sg.compile(definition, BYTES, eager=False).match(b"a").accepted, "it was read before"
    inner.unlink()
    assert sg.compile(definition, BYTES, eager=False).match(b"a").accepted, "so was what it imports"
    outer.write_text("%import .inner.x\nstart: x")
    definition = sg.Grammar(outer)
    assert definition.canonical()
    message = r"there is no grammar inner\.lark to import .line 1, column 1.. Name its folder"
    with pytest.raises(DefinitionError, match=message):
        sg.compile(definition, BYTES)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x: \xed\xa0\x80", bytes(range(256))], ids=repr)
def test_files_of_binary_garbage(data: bytes, tmp_path: Path) -> None:
    garbage, outer = tmp_path / "garbage.lark", tmp_path / "outer.lark"
    garbage.write_bytes(data)
    outer.write_text("%import .garbage.x\nstart: x")
    with pytest.raises(DefinitionError, match="the grammar cannot be read: 'utf-8' codec can't decode"):
        sg.Grammar(garbage)
    assert sg.Grammar(outer).canonical()
    with pytest.raises(DefinitionError, match="the grammar does not load: 'utf-8' codec can't decode"):
        compiled(outer)


def test_folders_and_names_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="cannot be read"):
        sg.Grammar(tmp_path)
    with pytest.raises(DefinitionError, match="cannot be read"):
        sg.Grammar(tmp_path / "a\0b")
    (tmp_path / "folder.lark").mkdir()
    for name in ("folder", "x" * 5_000, ".".join("y" * 300)):
        definition = sg.Grammar(f"%import {name}.z\nstart: z", import_paths=(str(tmp_path),))
        assert definition.canonical()
        with pytest.raises(DefinitionError, match=r"there is no grammar .*\.lark to import"):
            sg.compile(definition, BYTES)


def test_folders_whose_names_no_file_can_have() -> None:
    definition = sg.Grammar("%import a.z\nstart: z", import_paths=("no\0where",))
    assert definition.canonical()
    with pytest.raises(DefinitionError, match=r"there is no grammar a\.lark to import"):
        sg.compile(definition, BYTES)


def test_errors_in_imported_files_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "inner.lark").write_text('x: "a"\n§')
    with pytest.raises(DefinitionError, match=r"Unexpected input \(.*inner\.lark, line 2, column 1\)"):
        compiled("%import inner.x\nstart: x", import_paths=(str(tmp_path),))


def test_imports_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "one.lark").write_text("%import .two.x\ny: x")
    (tmp_path / "two.lark").write_text("%import .one.y\nx: y")
    (tmp_path / "self.lark").write_text('%import .self.start -> other\nstart: "a" other')
    for name in ("one", "self"):
        definition = sg.Grammar(tmp_path / f"{name}.lark", start="start" if name == "self" else "y")
        assert definition.canonical()
        began = time.process_time()
        with pytest.raises(BudgetExceededError, match="nested too deeply, or imports itself"):
            sg.compile(definition, BYTES)
        assert time.process_time() - began < MARGIN


# -- texts changed at random ----------------------------------------------------------------------------------

SNIPPETS = [
    "%import common.INT\n", "%ignore /x/\n", "%declare A\n", "%override start: /a/\n", "%extend start: /b/\n",
    *"\n()[]{}\"/\\|?*+:!_$^\0é\ud800", "~2", "~3..1", "->", "..", ".1", "// ", '"a"', "i ", "start", "t{a}",
    "NUMBER", "/(a|b)*?/", "/a(?=b)/", "/(?<!x)y/", "\\b", "(?", "[^", "{2}",
]  # fmt: skip


def mutated(random: Random) -> str:
    text = random.choice(list(GRAMMARS.values()))[0]
    for _ in range(random.randint(1, 4)):
        at, length = random.randint(0, len(text)), random.choice([0, 0, 1, 5, 20])
        other = random.choice(list(GRAMMARS.values()))[0]
        begin = random.randint(0, len(other))
        put = random.choice([random.choice(SNIPPETS), "", other[begin : begin + random.randint(1, 12)]])
        text = text[:at] + put + text[at + length :]
    return text


@pytest.mark.parametrize("seed", range(2))
def test_grammars_changed_at_random_end_in_an_index_or_a_typed_error(seed: int) -> None:
    random, compiles = Random(seed), 0
    silent: list[str] = []
    for _ in range(60):
        text = mutated(random)
        try:
            index = compiled(text, lexer=random.choice(["contextual", "basic"]))
        except sg.Error as error:
            silent = [*silent, *([] if error.what.strip() else [text])]
        else:
            compiles += 1
            sg.Guide(index).bitmask()
    assert 0 < compiles < 60
    assert not silent


@pytest.mark.parametrize(
    "text",
    [
        "start: A\nx[" + '""i' * 60,
        "start: A\nx[" + "/a/iiiii" * 60,
        "start: A[\nx" + " " * 400_000,
        'start: A\nA: & "' + '\\"' * 400_000,
        "start: A\nA: & /" + "\\/" * 400_000,
        "start: A\nA: & p::_ " + "\r" * 400_000,
        "start: A\nA: & p::_ " + "\r " * 400_000,
        "start: A & p::_ A{1," + " " * 400_000,
        'start: %lark { "' + '\\"' * 400_000,
        "start: %lark { /" + "\\/" * 400_000,
    ],
    ids=str.__len__,
)
def test_texts_that_patterns_could_be_lost_in(text: str) -> None:
    with pytest.raises((DefinitionError, BudgetExceededError)):  # at once, where it could take years
        sg.compile(sg.Grammar(text), BYTES, eager=False)


@pytest.mark.parametrize(
    ("before", "rest", "where"),
    [
        ('%llguidance {\n"no_forcing": true\n}\n', "x: ( )) ", "line 5, column 7"),
        ('y: %json {\n"type": "string"\n}\n', "x: ( )) ", "line 5, column 7"),
        ('y: %regex\n{"substring_chars": "abc"\n} "b"\n', "x: ( )) ", "line 5, column 7"),
        ('y: %lark {\nstart: "a"\n}\n', "x: ( )) ", "line 5, column 7"),
        ('p::_: "a"\n | "b"\n\n', "x: p::0 )", "line 5"),
        ('y[lazy]: "a"\n', "x: y{2} )", "line 3"),
        ('Y: ~"a"\n', 'X: ~"a" )', "line 3"),
        ("", 'p::_: "a" "b" -> \nx: p::0', "rule p"),
    ],
)
def test_places_are_those_of_the_text_as_it_is_written(before: str, rest: str, where: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        sg.compile(sg.Grammar(f"start: x\n{before}{rest}\n"), BYTES, eager=False)
    assert caught.value.where == where
