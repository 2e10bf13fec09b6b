"""What guides capture: Lark's own trees judge, whose positions come from a parser that shares nothing."""

from __future__ import annotations

import pickle
import re
import warnings
from itertools import product
from pathlib import Path
from random import Random

import pytest
from judges.guides import BYTES, allowed, with_bytes, with_end
from judges.lark_judge import judge
from judges.random_lark import LETTERS, random_grammar
from lark import Lark, Tree
from lark.exceptions import LarkError

import structgen as sg
from structgen.errors import GrammarWarning, UnsupportedError

Spans = list[tuple[str, int, int]]


def spans(parser: Lark, text: str) -> Spans:
    """The rules that Lark finds in an ASCII text, inner ones first, but for empty ones."""
    tree = parser.parse(text)
    found: Spans = []
    todo: list[tuple[object, bool]] = [(tree, False)]
    while todo:
        node, is_done = todo.pop()
        if isinstance(node, Tree):
            if is_done and not node.meta.empty:
                found.append((str(node.data), node.meta.start_pos, node.meta.end_pos))
            elif not is_done:
                todo.append((node, True))
                todo += [(child, False) for child in reversed(node.children)]
    return found


def compile_text(grammar: str) -> sg.Index:
    return sg.compile(sg.Grammar(grammar), BYTES, eager=False)


def captured(guide: sg.Guide) -> Spans:
    return [(capture.name, *capture.span) for capture in guide.captures()]


@pytest.mark.nightly
def test_random_grammars_capture_what_lark_finds() -> None:
    random, judged = Random(7), 0
    vocabulary = with_end([letter.encode() for letter in LETTERS] + [b"if", b"<=", b" a", b"1.", b"ab "])
    for _ in range(250):
        grammar = random_grammar(random)
        marked = re.sub(r"^([a-z]+):", r"\1[capture]:", grammar, flags=re.M)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GrammarWarning)
                index = sg.compile(sg.Grammar(marked), vocabulary, eager=False)
            parser = judge(grammar, "contextual", propagate_positions=True, keep_all_tokens=True)
        except (sg.Error, LarkError):
            continue
        for _ in range(4):
            guide = sg.Guide(index)
            earlier: list[tuple[sg.Guide, Spans]] = []
            for _ in range(random.randint(1, 14)):
                ids = [token for token in allowed(guide) if token not in vocabulary.eos_ids]
                if not ids:
                    break
                guide.advance(random.choice(ids))
                if guide.is_accepting():
                    text = b"".join(vocabulary.token(token) or b"" for token in guide.tokens()).decode()
                    expected = spans(parser, text)
                    assert captured(guide) == expected, (marked, text)
                    assert all(set(before) <= set(expected) for _, before in earlier), (marked, text)
                    judged += bool(expected)
                else:
                    earlier.append((guide.fork(), captured(guide)))
            assert all(captured(each) == before for each, before in earlier)
    assert judged > 300


NESTED = r"""
start: (item ";")+
item[capture]: name "(" [name ("," name)*] ")" note?
name[capture="id"]: /[a-zé]+/
note[capture, suffix="-->", stop_capture="end"]: "<!--" /.*/
%ignore " "
"""


def test_nested_and_repeated_captures_with_bytes_and_tokens() -> None:
    vocabulary = with_bytes("fé(", "a, b", ");", " g", "x -", "->;")
    guide = sg.Guide(sg.compile(sg.Grammar(NESTED), vocabulary, eager=False))
    pieces = ["fé(", "a, b", ");", " g", *"()<!--", "x -", "->;"]
    ids = [next(i for i in range(vocabulary.size) if vocabulary.token(i) == piece.encode()) for piece in pieces]
    assert all(map(guide.advance, ids))
    text = "".join(pieces).encode()
    found = guide.captures()
    assert [(each.name, each.data.decode(), each.tokens) for each in found] == [
        ("id", "fé", (0, 1)), ("id", "a", (1, 2)), ("id", "b", (1, 2)), ("item", "fé(a, b)", (0, 3)),
        ("id", "g", (3, 4)), ("end", "-->", (10, 12)), ("note", "<!--x ", (6, 11)), ("item", "g()<!--x -->", (3, 12)),
    ]  # fmt: skip
    assert all(each.data == text[slice(*each.span)] for each in found)
    assert guide.advance(vocabulary.eos_ids[0])
    assert guide.captures() == found
    guide.rollback(4)
    assert [each.name for each in guide.captures()] == ["id", "id", "id", "item", "id"]


@pytest.mark.parametrize(
    ("grammar", "text", "expected"),
    [
        ("start: a\na[capture, lazy]: /.*<end>/", "foo<end>", {"a": "foo<end>"}),
        ('start[capture]: a "b"\na[capture, suffix="<end>", stop_capture="z"]: /.*/', "foo<end>b",
         {"z": "<end>", "a": "foo", "start": "foo<end>b"}),
        ('start: a "b"\na[capture, stop="<end>"]: /.*/', "foo<end>b", {"a": "foo"}),
        ('start: o "x"\no[capture]: a "<end>"\na[capture, stop="<end>"]: /.*/', "foo<end>x",
         {"a": "foo", "o": "foo<end>"}),
        ('start: a c\nc[capture]: "ab" "c" | "ab" "d"\na[capture, stop="ab"]: /[0-9a]*/', "1abc",
         {"a": "1", "c": "abc"}),
        ('start: a "abc"\na[capture, stop="ab"]: /[0-9a]*/', "abc", {"a": ""}),
        ('start: a b\na[capture]: /[0-9]*/\nb[capture]: "x"', "x", {"b": "x"}),
        ('start: "x" j "y"\nj[capture]: %json {"type": "array"}', "x[1, [2]]y", {"j": "[1, [2]]"}),
        ('start: n "y"?\nn[capture="number"]: %json {"type": "integer"}', "12", {"number": "12"}),
        ("start: a\na[capture, suffix=END]: /x+/\nEND: /[;,]/", "xx,", {"a": "xx"}),
    ],
)  # fmt: skip
def test_ends(grammar: str, text: str, expected: dict[str, str]) -> None:
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    guide = sg.Guide(index)
    assert all(map(guide.advance, text.encode()))
    assert {each.name: each.data.decode() for each in guide.captures()} == expected


def test_special_tokens_and_prefixes() -> None:
    vocabulary = sg.Vocabulary.from_bytes(
        [*(bytes([i]) for i in range(256)), None, None, b"re: a"], eos_ids=[256], special_tokens={"<|go|>": 257}
    )
    grammar = "start: word <|go|> word\nword[capture]: /[a-z]+/"
    index = sg.compile(sg.Grammar(grammar), vocabulary, eager=False)
    guide = sg.Guide(index)
    assert all(map(guide.advance, [*b"ab", 257, *b"cd"]))
    assert [(each.data, each.span, each.tokens) for each in guide.captures()] == [
        (b"ab", (0, 2), (0, 2)),
        (b"cd", (2, 4), (3, 5)),
    ]


def test_tokens_by_their_ids_have_bytes() -> None:
    vocabulary = with_bytes("go")
    grammar = "start: a b\na[capture]: word <[256]>\nb[capture]: word\nword[capture]: /[a-z]+/"
    guide = sg.Guide(sg.compile(sg.Grammar(grammar), vocabulary, eager=False))
    assert all(map(guide.advance, [*b"ab", 256, *b"cd"]))
    assert captured(guide) == [("word", 0, 2), ("a", 0, 4), ("word", 4, 6), ("b", 4, 6)]


def test_indexes_and_guides_keep_captures(tmp_path: Path) -> None:
    grammar = 'start: a+\na[capture, temperature=0.5, suffix=";"]: /[a-z]+/'
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    index.save(tmp_path / "index")
    guide = sg.Guide(sg.Index.load(tmp_path / "index"), max_rollback=1, max_tokens=300)
    assert all(map(guide.advance, b"ab;" * 60))
    expected = [("a", i, i + 2) for i in range(0, 180, 3)]
    assert captured(guide) == expected
    assert captured(pickle.loads(pickle.dumps(guide))) == expected
    assert guide.temperature == 0.5


def test_definitions_without_rules_capture_nothing() -> None:
    guide = sg.Guide(sg.compile(sg.Regex("a+"), BYTES))
    assert guide.advance(ord("a"))
    assert guide.captures() == ()
    assert guide.temperature is None


def test_texts_with_one_parse_have_captures_with_all_parses_too() -> None:
    text = 'start: (item ";")+\nitem[capture]: word | "(" item ")"\nword[capture]: /[a-z]+/'
    found = [sg.Guide(sg.compile(sg.Grammar(text, ambiguity=each), BYTES)) for each in ("all", "resolve")]
    for guide in found:
        assert all(map(guide.advance, b"ab;((c));"))
    assert captured(found[0]) == captured(found[1])
    assert ("word", 5, 6) in captured(found[0])


#: Grammars whose texts have several parses, which differ in what is empty.
EMPTY = [
    'start: s | "c"\ns: maybe maybe maybe\nmaybe: "a" |',
    'start: s "c"\ns: maybe "b" maybe\nmaybe: "a" | nothing\nnothing: "d"? "d"?',
    'start: z x "c"\nx: "a" |\nz: "b" y y "d"\ny: x |',
]


@pytest.mark.parametrize("grammar", EMPTY)
def test_parses_that_differ_in_what_is_empty_have_the_same_captures(grammar: str) -> None:
    parser = Lark(grammar, parser="earley", lexer="basic", propagate_positions=True, keep_all_tokens=True)
    marked = re.sub(r"^([a-z]+):", r"\1[capture]:", grammar, flags=re.M)
    index = sg.compile(sg.Grammar(marked, ambiguity="all"), BYTES, eager=False)
    judged = 0
    for text in ("".join(letters) for length in range(7) for letters in product("abcd", repeat=length)):
        guide = sg.Guide(index)
        try:
            expected = spans(parser, text)
        except LarkError:
            assert not all(map(guide.advance, text.encode())) or not guide.is_accepting(), text
            continue
        assert all(map(guide.advance, text.encode())), text
        assert guide.is_accepting(), text
        assert sorted(captured(guide)) == sorted(expected), text
        judged += 1
    assert judged > 3


def test_what_has_several_parses_is_refused() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="themselves"):
        sg.compile(sg.Grammar('start: s\ns[capture]: s e | "a"\ne:', ambiguity="all"), BYTES)
    with pytest.raises(UnsupportedError, match="one parse"):
        sg.compile(sg.Grammar('start: pair | pair "a"\npair[capture]: "a" | "a" "a"', ambiguity="all"), BYTES)
    with pytest.raises(UnsupportedError, match="part of another"):
        sg.compile(sg.sequence("x", sg.Grammar('start[capture]: "a"')), BYTES)


# -- temperatures -------------------------------------------------------------------------------------------------


def test_temperatures_are_those_of_the_lexemes_that_may_come() -> None:
    grammar = 'start: "x" hot ("," cold)? "!"\nhot[temperature=1.5]: /[a-z]+/\ncold[temperature=0]: /[0-9]+/'
    guide = sg.Guide(sg.compile(sg.Grammar(grammar), BYTES, eager=False), max_tokens=20)
    found = [guide.temperature]
    for byte in b"xab,12!":
        assert guide.advance(byte)
        found.append(guide.temperature)
    assert found == [None, 1.5, 1.5, 1.5, 0.0, 0.0, 0.0, None]


def test_temperatures_of_definitions() -> None:
    grammar = 'start: "x" j "y" k?\nj[temperature=0.5, capture]: %json {"type": "array"}\nk: %json {"type": "null"}'
    guide = sg.Guide(sg.compile(sg.Grammar(grammar), BYTES, eager=False))
    found = [guide.temperature]
    for byte in b"x[1]ynu":
        assert guide.advance(byte)
        found.append(guide.temperature)
    assert found == [None, 0.5, 0.5, 0.5, None, None, None, None]  # nothing can follow the bracket
    assert captured(guide) == [("j", 1, 4)]
    with pytest.raises(UnsupportedError, match="several rules have JSON"):
        compile_text('start: j %json {"type": "null"}\nj[temperature=0.5]: %json {"type": "null"}')
