"""Grammars in which indentation matters, judged by Lark with its `Indenter`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from judges.guides import allowed, with_end
from lark import Lark
from lark.exceptions import LarkError
from lark.indenter import Indenter, PythonIndenter
from tiers import draws

import structgen as sg
from structgen import grammars
from structgen.runtime.grammar.indentation import IndentationTerminals, LevelTable

TREE = r"""
start: _NL? tree
tree: NAME _NL [_INDENT tree+ _DEDENT]
NAME: /[a-z]+/
_NL: /(\r?\n[\t ]*)+/
%declare _INDENT _DEDENT
%import common.WS_INLINE
%ignore WS_INLINE
"""

BLOCKS = r"""
start: (_NEWLINE | statement)*
statement: simple _NEWLINE | "if" value ":" suite ["else" ":" suite]
simple: value ["=" value]
suite: simple _NEWLINE | _NEWLINE _INDENT statement+ _DEDENT
?value: NAME | LSQB [value ("," value)* ","?] RSQB | value LSQB value RSQB
LSQB: "["
RSQB: "]"
NAME: /[a-z]+/
COMMENT: /#[^\n]*/
_NEWLINE: (/\r?\n[\t ]*/ | COMMENT)+
%declare _INDENT _DEDENT
%ignore /[\t \f]+/
%ignore /\\[\t \f]*\r?\n/
%ignore COMMENT
"""


class TreeIndenter(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar[list[str]] = []
    CLOSE_PAREN_types: ClassVar[list[str]] = []
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


GRAMMARS: dict[str, tuple[str, type[Indenter], str]] = {
    "tree": (TREE, TreeIndenter, "ab \t\n\r"),
    "blocks": (BLOCKS, PythonIndenter, "ifelsa:=[], \t\n#\\"),
}

#: The tokens of one byte.
BYTES: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), None]

#: Pieces that texts are made of, more often than of single letters.
PIECES = [
    "\n",
    "\n ",
    "\n  ",
    "\n    ",
    "\n\t",
    " ",
    "a\n",
    ":\n  ",
    "if a:",
    "if a:\n ",
    "else:",
    "[",
    "]\n",
    "],",
    "a",
    "b=",
    "#c\n",
]

each_grammar = pytest.mark.parametrize("name", GRAMMARS)
each_lexer = pytest.mark.parametrize("lexer", ["contextual", "basic"])


@cache
def lark(name: str, lexer: str) -> Lark:
    text, indenter, _ = GRAMMARS[name]
    return Lark(text, parser="lalr", lexer=lexer, postlex=indenter())


def parses(name: str, lexer: str, text: str) -> bool:
    try:
        lark(name, lexer).parse(text)
    except (LarkError, AssertionError, IndexError):  # a bracket too many; a line end that has no line end in it
        return False
    return True


@cache
def vocabulary(name: str) -> sg.Vocabulary:
    letters = sorted({*GRAMMARS[name][2].encode(), *b"a"})
    tokens: list[bytes | None] = [bytes([b]) for b in letters]
    tokens += [piece.encode() for piece in PIECES if set(piece.encode()) <= set(letters) and len(piece) > 1]
    random = Random(1)
    tokens += ["".join(random.choices(GRAMMARS[name][2], k=random.randint(2, 5))).encode() for _ in range(40)]
    return with_end(tokens)


@cache
def compiled(name: str, lexer: str) -> sg.Index:
    text, indenter, _ = GRAMMARS[name]
    return sg.compile(sg.Grammar(text, lexer=lexer, postlex=indenter()), vocabulary(name), eager=False)


@each_grammar
@each_lexer
@pytest.mark.parametrize("seed", range(3))
def test_masks_and_ends_of_random_walks(name: str, lexer: str, seed: int) -> None:
    random, index, ended = Random(seed), compiled(name, lexer), 0
    for _ in range(12):
        guide, text = sg.Guide(index), b""
        for _ in range(25):
            ids = allowed(guide)
            assert ids == [t for t in range(index.vocabulary.size) if guide.allows(t)], text
            assert guide.is_accepting() == parses(name, lexer, text.decode()), text
            ended += guide.is_accepting()
            ids = [t for t in ids if t not in index.vocabulary.eos_ids]
            assert ids, f"stuck after {text!r}"
            token = random.choice(ids)
            text += index.vocabulary.token(token) or b""
            assert guide.advance(token)
    assert ended > 20


@each_grammar
@each_lexer
def test_texts_are_judged_as_lark_does(name: str, lexer: str) -> None:
    random, index = Random(name + lexer), compiled(name, lexer)
    judged = {False: 0, True: 0}
    for _ in range(80):
        guide, whole = sg.Guide(index), b""
        for _ in range(random.randint(1, 30)):
            token = random.choice([t for t in allowed(guide) if t not in index.vocabulary.eos_ids])
            guide.advance(token)
            whole += index.vocabulary.token(token) or b""
        for _ in range(10):
            text = list(whole.decode()[: random.randint(0, len(whole))])
            for _ in range(random.randint(0, 2)):
                at = random.randint(0, len(text))
                text[at : at + random.randint(0, 1)] = random.choice(["", " ", "\n", "\n\n", "\t", "a", "]"])
            changed = "".join(text)
            verdict = parses(name, lexer, changed)
            found = index.match(changed.encode())
            assert found.accepted == verdict, changed
            judged[verdict] += 1
            if verdict:
                assert found.consumed == len(changed.encode()), changed
    assert min(judged.values()) > 20, judged


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("if a:\n  b\n  if c:\n\td\n  e\nf\n", True),
        ("if a:\n    b\n  c\n", False),  # a column that no line around it has
        ("if a:\nb\n", False),
        ("a = [b,\nc,\n      d]\n", True),  # line ends within brackets
        ("a]\n", False),
        ("if a:\n  b\n\n\n  # c\n  d\n", True),  # blank lines and comments
        ("if a: b\nelse:\n\tc\n", True),
        ("if a:\n  b", False),
        ("a = \\\n  b\n", True),
        ("a # c", False),  # Lark needs a line end in it
    ],
)
def test_texts(text: str, accepted: bool) -> None:
    assert parses("blocks", "contextual", text) == accepted
    assert compiled("blocks", "contextual").match(text.encode()).accepted == accepted


def test_a_line_can_begin_as_far_right_as_was_asked_for() -> None:
    narrow = sg.compile(sg.Grammar(BLOCKS, postlex=sg.Indentation(columns=5)), vocabulary("blocks"), eager=False)
    assert narrow.match(b"if a:\n     b\n").accepted
    assert narrow.match(b"if a:\n      b\n").consumed == len(b"if a:\n      ")
    assert narrow.match(b"[\n                b]\n").accepted, "within brackets it does not matter"


#: Blocks that must come: one, two within each other, after words that run into each other, and behind others.
MUST = {
    "one": ('line: NAME _NL | NAME ":" _NL _INDENT line+ _DEDENT\nNAME: "a"', ("a", ":", "a:")),
    "two": (
        'line: "a" _NL | "b:" _NL _INDENT inner+ _DEDENT\ninner: "a:" _NL _INDENT line+ _DEDENT',
        ("a", "a:", "b:"),
    ),
    "words": (
        'line: NAME _NL | NAME block | NAME LPAR NAME? RPAR block\nblock: ":" _NL _INDENT line+ _DEDENT\nNAME: /a+/',
        ("a", "a(", ")", ":", "(\n"),
    ),
    "behind": (
        'line: "a" _NL | ":" _NL _INDENT line _DEDENT more\nmore: "b" _NL | "c" _NL _INDENT line _DEDENT',
        ("a", ":", "b", "c"),
    ),
}


class NarrowIndenter(PythonIndenter):
    """Lark's, which refuses wider columns."""

    NL_type = "_NL"
    columns = 2

    def handle_NL(self, token: Any) -> Any:
        assert self.paren_level or len(token.rpartition("\n")[2]) <= self.columns
        return super().handle_NL(token)


@pytest.mark.parametrize(
    "options", [{"eager": False}, {"eager": True}, {"eager": False, "budget": sg.Budget.request}], ids=str
)
@pytest.mark.parametrize("columns", [1, 2, 12])
@pytest.mark.parametrize("name", MUST)
def test_no_text_ends_at_the_widest_column(name: str, columns: int, options: dict[str, Any]) -> None:
    """Those that can be completed are let through, and no others."""
    rules, pieces = MUST[name]
    text = f"start: line+\n{rules}\n_NL: /(\\n *)+/\n%declare _INDENT _DEDENT\n"
    if "LPAR" in rules:
        text += 'LPAR: "("\nRPAR: ")"\n'
    indenter = NarrowIndenter()
    indenter.columns = columns
    lark = Lark(text, parser="lalr", postlex=indenter)
    pieces = (*pieces, *("\n" + " " * n for n in sorted({0, *range(max(1, columns - 2), columns + 2)})))
    vocab = with_end([*(bytes([byte]) for byte in range(256)), *(each.encode() for each in pieces if len(each) > 1)])

    def compile(widest: int) -> sg.Index:
        lines = sg.Indentation(newline="_NL", opening=("LPAR",), closing=("RPAR",), columns=widest)
        return sg.compile(sg.Grammar(text, postlex=lines), vocab, **options)

    def judge(text: str) -> bool:
        try:
            lark.parse(text)
        except (LarkError, AssertionError):
            return False
        return True

    def walk(index: sg.Index) -> tuple[str, sg.Guide]:
        guide, whole = sg.Guide(index), ""
        for _ in range(random.randint(1, 16)):
            token = random.choice([token for token in allowed(guide) if token not in vocab.eos_ids])
            assert guide.advance(token)
            whole += (vocab.token(token) or b"").decode()
        return whole, guide

    random, narrow, wide = Random(name), compile(columns), compile(60)
    ended = 0
    for _ in range(60):
        whole, guide = walk(narrow)
        todo, seen = [(whole, guide)], {guide.config}
        for each, guide in todo:  # grows as it goes
            if judge(each):
                break
            for token in allowed(guide):
                after = guide.fork()
                if token not in vocab.eos_ids and after.advance(token) and after.config not in seen:
                    seen.add(after.config)
                    todo.append((each + (vocab.token(token) or b"").decode(), after))
        else:
            pytest.fail(f"nothing completes {whole!r}")
        whole = each if random.random() < 0.5 else walk(wide)[0]
        for end in range(len(whole) + 1):
            if judge(whole[:end]):
                ended += 1
                found = narrow.match(whole[:end].encode())
                assert found.accepted, whole[:end]
    assert ended > 20


def test_of_blocks_that_rules_share_it_is_said_that_room_is_supposed() -> None:
    text = 'start: (begin "a" _NL end)+\nbegin: ":" _NL _INDENT\nend: _DEDENT\n_NL: /\\n */\n%declare _INDENT _DEDENT'
    with pytest.warns(sg.errors.GrammarWarning, match="have room, also close to the widest column"):
        sg.compile(
            sg.Grammar(text, postlex=sg.Indentation(newline="_NL")), sg.Vocabulary.from_bytes(BYTES, eos_ids=[256])
        )


def test_python_at_the_widest_column() -> None:
    index = sg.compile(grammars.load("python3"), sg.Vocabulary.from_bytes(BYTES, eos_ids=[256]), eager=False)
    for column, found in (160, False), (159, True):
        text = b"if a:\n" + b" " * column + b"match x:"
        assert (index.match(text).consumed == len(text)) == found


def test_eager_stored_and_cached_are_the_same(tmp_path: Path) -> None:
    lazy = compiled("blocks", "contextual")
    definition = sg.Grammar(BLOCKS, postlex=PythonIndenter())
    with sg.Cache(tmp_path / "cache") as cache:
        eager = sg.compile(definition, vocabulary("blocks"), cache=cache)
        cached = sg.compile(definition, vocabulary("blocks"), cache=cache)
    assert cached.origin == "cache"
    eager.save(tmp_path / "index")
    stored = sg.Index.load(tmp_path / "index", vocabulary("blocks"))
    assert stored.to_bytes() == eager.to_bytes()
    random, guides = Random(0), [sg.Guide(index) for index in (lazy, eager, cached, stored)]
    for _ in range(40):
        ids = allowed(guides[0])
        assert all(allowed(guide) == ids for guide in guides)
        token = random.choice([t for t in ids if t not in lazy.vocabulary.eos_ids])
        assert all(guide.advance(token) for guide in guides)


class Own(PythonIndenter):
    def handle_NL(self, token: Any) -> Any:
        return super().handle_NL(token)


class Choosy(PythonIndenter):
    @property
    def always_accept(self) -> tuple[str, ...]:  # type: ignore[override]
        return ()


@pytest.mark.parametrize(
    ("postlex", "error", "match"),
    [
        (Own(), sg.errors.UnsupportedError, "handle_NL of its own"),
        (Choosy(), sg.errors.UnsupportedError, "always_accept of its own"),
        (object(), sg.errors.DefinitionError, "postlex is an object"),
        ("python", sg.errors.DefinitionError, "postlex is a str"),
    ],
)
def test_what_is_no_indentation(postlex: Any, error: type[sg.errors.StructgenError], match: str) -> None:
    with pytest.raises(error, match=match):
        sg.Grammar(BLOCKS, postlex=postlex)


def test_an_indentation_of_other_terminals_is_refused() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="no rule has _INDENT"):
        sg.compile(sg.Grammar('start: "a" _NEWLINE\n_NEWLINE: "\\n"', postlex=PythonIndenter()), vocabulary("blocks"))
    with pytest.raises(sg.errors.DefinitionError, match="columns is 0"):
        sg.Indentation(columns=0)


@pytest.mark.parametrize("seed", range(draws(5)))
def test_levels_that_are_made_together(seed: int) -> None:
    """They are those that are made one by one; what is not known yet may be known sooner."""
    random = Random(seed)
    layout = IndentationTerminals(3, 4, 5, frozenset({1}), frozenset({2}), 20)
    together, single = LevelTable(layout, 10, 2), LevelTable(layout, 10, 2)
    operations = range(layout.columns + 4)
    for _ in range(200):
        number = random.randrange(min(len(together), 40))
        moves, after = together._moves[number], together._levels[number]
        missing = [(number, each) for each in operations if moves[each] != -1 and after[each] < 0]
        wanted = random.sample(missing, random.randint(0, len(missing)))
        together.follow_all(wanted)
        for each, operation in wanted:
            single.follow(single.number(together.level(each)), operation)
    assert len(together) == len(single) > 40
    for number in range(len(together)):
        level = together.level(number)
        other = single.number(level)
        for one, another in zip(together._tables[:3], single._tables[:3], strict=True):
            assert np.array_equal(one[number], another[other])
        assert together._dedents[number] == single._dedents[other]
        assert together._levels[number, -1] == single._levels[other, -1]
        for operation in operations:
            after = int(together._levels[number, operation])
            assert level is not None
            assert after < 0 or together.level(after) == together._after(layout, level, operation)
