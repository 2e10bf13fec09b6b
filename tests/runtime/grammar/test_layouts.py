"""What can follow a lexeme where indentation matters: masks against a search, and what is said when compiling."""

from __future__ import annotations

import itertools
import warnings
from random import Random
from string import ascii_lowercase, ascii_uppercase

import pytest
from judges.endings_judge import can_complete
from judges.guides import BYTES, EACH_BYTE, check_walk, with_end
from judges.lark_judge import judge
from judges.layout_judge import COLUMNS, agrees, parses, random_grammar
from lark.indenter import PythonIndenter
from tiers import draws

import structgen as sg
from structgen import grammar_store
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.compiler import compile_grammar
from structgen.errors import GrammarWarning
from structgen.runtime.grammar.completability.nesting import Nesting, NotNestedError
from structgen.runtime.grammar.lexer_threads import Thread
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.tables import GrammarTables

#: What the grammars here end with.
END = r"""
LPAR: "("
RPAR: ")"
%declare _INDENT _DEDENT
"""


#: What those have besides that are of a ``text`` without blocks.
BLOCK = '\nstart: text | "!" _NEWLINE _INDENT "!" _NEWLINE _DEDENT'


def compiled(text: str, lexer: str = "basic", columns: int = COLUMNS) -> GrammarMachine:
    definition = sg.Grammar(text + END, lexer=lexer, postlex=sg.Indentation(columns=columns))
    machine = sg.compile(definition, BYTES, eager=False).machine
    assert isinstance(machine, GrammarMachine)
    return machine


def tables_of(text: str, **options: object) -> GrammarTables:
    options = {"postlex": sg.Indentation(columns=COLUMNS), **options}
    return compile_grammar(sg.Grammar(text, **options), Meter(Budget(seconds=200)))  # type: ignore[arg-type]


# -- walls -----------------------------------------------------------------------------------------------

#: A grammar, the lexer, texts that can be completed, texts that can't.
WALLS: dict[str, tuple[str, str, list[bytes], list[bytes]]] = {
    "a comment where no line may end": (
        'text: line+\nline: A "=" (A | LPAR A RPAR) _NEWLINE\nA: "a"\nCOMMENT: /#[^\\n]*/\n_NEWLINE: /\\n */\n'
        '%ignore " "\n%ignore COMMENT', "basic", [b"a=a#c", b"a=(#c", b"a=(#c\n  a"], [b"a#", b"a=#", b"a=a\na=#"],
    ),
    "two words in a row, six words later": (
        'text: A B A B A A _NEWLINE | "z" A _NEWLINE\nA: /a+/\nB: /b+/\n_NEWLINE: /\\n */', "contextual",
        [b"z", b"za"], [b"a", b"ab"],
    ),
    "lines that merge, blocks later": (
        "text: A block | B _NEWLINE\nblock: _NEWLINE _INDENT (A _NEWLINE | A block | C _NEWLINE _NEWLINE) _DEDENT\n"
        "A: /a/\nB: /b/\nC: /cc/\n_NEWLINE: /(\\n *)+/", "basic", [b"b", b"a\n a\n  a"], [b"a\n c", b"a\n a\n  c"],
    ),
    "line ends that mean nothing separate words": (
        'text: (A A | LPAR A A RPAR | B) _NEWLINE\nA: /a+/\nB: "b"\n_NEWLINE: /\\n */', "basic",
        [b"(", b"(a", b"(a\na", b"b"], [b"a", b"(a\na\na"],
    ),
    "brackets that can't be followed, at any depth": (
        'text: (A s B | LPAR s RPAR) _NEWLINE\ns: LPAR s RPAR | A | "q" ")b"\nA: "a"\nB: "b"\n_NEWLINE: /\\n */',
        "basic", [b"((", b"((a", b"aa", b"(q)b)"], [b"a(", b"a((", b"a((a)"],
    ),
    "an indent that nothing ends": (
        'text: A block? _NEWLINE\nblock: _NEWLINE _INDENT A _NEWLINE A block _DEDENT | _NEWLINE _INDENT "b" _NEWLINE '
        "A _DEDENT\nA: /a/\n_NEWLINE: /\\n */", "basic", [b"a"], [b"a\n ", b"a\n a", b"a\n a\n a\n  "],
    ),
    "what is watched outlives the next lexeme": (
        'text: (T B | "x" U) _NEWLINE\nT: "a"\nU: /a +b/\nB: "b"\n_NEWLINE: /\\n/\n%ignore / +/', "basic",
        [b"x", b"xa ", b"ab"], [b"a ", b"a  "],
    ),
    "a conflict that is shifted for ever": (
        'text: ("x" s | "y") _NEWLINE\ns: "b" s "a" | r\nr: "a" "c" "a" | r r | "a" "b" "a"\n_NEWLINE: /\\n */\n'
        '%ignore " "', "basic", [b"y", b"xaca", b"xaba ac"], [b"xb", b"xba"],
    ),
    "line ends within brackets": (
        "text: LPAR A _NEWLINE RPAR _NEWLINE | B _NEWLINE\nA: /a/\nB: /b/\n_NEWLINE: /\\n */", "basic", [b"b"],
        [b"("],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WALLS)
def test_walls(name: str) -> None:
    text, lexer, right, wrong = WALLS[name]
    machine = compiled(text + BLOCK, lexer)
    letters = "".join(sorted({*(b"".join(right + wrong)).decode()} | {*"abc)\n "}))
    for sample in right:
        assert machine.match(sample).consumed == len(sample), sample
        assert can_complete(machine, sample, letters, 4000) is not False, sample
    for sample in wrong:
        assert machine.match(sample).consumed < len(sample), sample
        assert not can_complete(machine, sample, letters, 4000), sample


@pytest.mark.parametrize("seed", range(draws(7)))
def test_random_grammars_can_be_completed(seed: int) -> None:
    random = Random(seed)
    found = [agrees(random_grammar(random), lexer=random.choice(["basic", "contextual"])) for _ in range(8)]
    assert sum(each[0] for each in found if each) > 100


@pytest.mark.parametrize("seed", range(3))
def test_random_grammars_read_in_every_way_can_be_completed(seed: int) -> None:
    random = Random(seed)
    found = [agrees(random_grammar(random), lexer="basic", ambiguity="all", longest=2) for _ in range(8)]
    assert sum(each[0] for each in found if each) > 20


@pytest.mark.parametrize("seed", range(4))
def test_masks_and_moves_agree(seed: int) -> None:
    """Tokens of several lexemes: the mask, `advance` and the bytes say the same, and no guide is stuck."""
    random = Random(seed)
    tokens = ["".join(random.choices("ab() \n", k=random.randint(2, 4))).encode() for _ in range(40)]
    tokens = [*dict.fromkeys(tokens), *EACH_BYTE]
    vocabulary = with_end(tokens)
    depth_read = 0
    while depth_read < 4:
        definition = sg.Grammar(
            random_grammar(random), lexer=random.choice(["basic", "contextual"]), postlex=sg.Indentation(columns=4)
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GrammarWarning)
                index = sg.compile(definition, vocabulary, eager=False)
        except sg.errors.DefinitionError:
            continue
        depth_read += 1
        check_walk(index, random)


# -- nesting ---------------------------------------------------------------------------------------------

LINE = "\nA: /a+/\n_NEWLINE: /\\n */" + END


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ("start: line+\nline: A block | A _NEWLINE\nblock: _NEWLINE _INDENT line+ _DEDENT | LPAR line RPAR", ""),
        ("start: begin line+ _DEDENT\nbegin: _NEWLINE _INDENT\nline: A _NEWLINE", ""),
        ("start: line+ _INDENT _DEDENT\nline: open A close _NEWLINE\nopen: LPAR LPAR\nclose: RPAR A RPAR", ""),
        ("start: s _NEWLINE _INDENT _DEDENT\ns: LPAR s RPAR | A", ""),
        ("start: s _NEWLINE _INDENT A _DEDENT\ns: LPAR s | A", "brackets"),
        ("start: LPAR A _NEWLINE _INDENT _DEDENT", "brackets"),
        ("start: RPAR A LPAR _NEWLINE _INDENT _DEDENT", "brackets"),
        ("start: A s _NEWLINE _INDENT _DEDENT\ns: RPAR s LPAR | A", "brackets"),
        ("start: A _NEWLINE (_INDENT A | A) _DEDENT?", "blocks"),
        ("start: _DEDENT A _NEWLINE _INDENT", "blocks"),
    ],
)
def test_what_nests(rules: str, kind: str) -> None:
    tables = tables_of(rules + LINE)
    if kind:
        with pytest.raises(NotNestedError, match=kind):
            Nesting.of(tables, int)
        assert Nesting.find(tables, int) is None
    else:
        assert Nesting.of(tables, int) == Nesting.find(tables, int)


#: Brackets that no rule closes by itself, and blocks.
BLOCKS_THAT_NEST = r"""
    start: line+
    line: open A* close _NEWLINE | block
    open: LPAR A LPAR | LPAR half
    half: LPAR LPAR A RPAR
    close: RPAR RPAR
    block: begin line _DEDENT
    begin: A _NEWLINE _INDENT
    A: /a+/
    _NEWLINE: /\n */
    %ignore " "
"""


def test_whether_brackets_nest_is_metered() -> None:
    """The time is looked at rule by rule; here after the tenth."""
    tables = compiled(BLOCKS_THAT_NEST, columns=8).tables
    looks = itertools.count()

    def check() -> None:
        if next(looks) == 10:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        Nesting.find(tables, check)


def test_open_brackets_are_told_by_the_stack() -> None:
    """Along random texts: the level's brackets are the nets of the states on the stack."""
    machine = compiled(BLOCKS_THAT_NEST, columns=160)
    nesting = Nesting.of(machine.tables, int)
    random, deepest = Random(0), (0, 0)
    for _ in range(60):
        threads: tuple[Thread, ...] = (machine._reader.start,)
        for _ in range(40):
            found = [after for b in b"a() \n" if (after := machine._follow(threads, bytes([b])))]
            if not found:
                assert machine._reader.may_end(threads)
                break
            threads = random.choice(found)
            for parse, _, _ in threads:
                states = list(parse.stack.states())
                assert parse.level is not None
                assert sum(nesting.net[s] for s in states) == parse.level.brackets
                counts = parse.level.brackets, len(parse.level.columns) - 1
                deepest = max(deepest[0], counts[0]), max(deepest[1], counts[1])
    assert min(deepest) > 1


# -- what is said ----------------------------------------------------------------------------------------


def warned(source: str) -> list[str]:
    grammar_store.forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sg.compile(sg.Grammar(source, postlex=sg.Indentation()), BYTES, eager=False)
    assert all(each.category is GrammarWarning and each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def test_a_grammar_that_does_not_nest() -> None:
    text = "start: line+\nline: A half? A _NEWLINE | A _NEWLINE _INDENT line+ _DEDENT\nhalf: LPAR half RPAR"
    assert warned(f"{text} | A{LINE}") == []
    (said,) = warned(f"{text} | A | A LPAR{LINE}")
    assert "brackets do not nest in the texts of the rule half, so masks look three lexemes ahead" in said
    judged = judge(f"{text} | A | A LPAR{LINE}", "contextual", postlex=PythonIndenter())
    machine = compiled(f"{text} | A | A LPAR{LINE}".replace(END, ""), "contextual")
    for sample in ("a\n", "a\n a\n", "aa(\na\n", "a(a)a\n"):
        assert machine.match(sample.encode()).accepted == parses(judged, sample), sample


def test_lines_that_begin_at_columns_of_their_own() -> None:
    text = "start: line+\nline: A _NEWLINE | B _NEWLINE _INDENT line+ _DEDENT\nA: /a+/\nB: /b/\n"
    assert warned(f"{text}_NEWLINE: /\\n(  )*/{END}") == []
    (said,) = warned(f"{text}_NEWLINE: /\\n(  )+(?=[ab])|\\n/{END}")
    assert "_NEWLINE ends lines in several ways that differ in the columns" in said


def test_a_grammar_of_many_words_that_could_be_longer() -> None:
    words = [
        f'W{i}: "{a}"\nL{i}: /{a} +{b}/' for i, (a, b) in enumerate(zip(ascii_uppercase, ascii_lowercase, strict=True))
    ]
    named = " | ".join(f"W{i} | L{i}" for i in range(len(words)))
    text = "\n".join([f"start: line+\nline: ({named})+ _NEWLINE | A A _NEWLINE _INDENT line+ _DEDENT", *words])
    (said,) = warned(f'{text}\n%ignore " "{LINE}')
    assert "many lexemes could become longer ones" in said
