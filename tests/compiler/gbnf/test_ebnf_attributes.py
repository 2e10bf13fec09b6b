"""Attributes of rules in XGrammar's EBNF: judged by XGrammar where texts have one reading, else by all readings."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from structgen.errors import BudgetExceededError, DefinitionError, FormatError, GrammarWarning, UnsupportedError
from structgen.runtime.pushdown.captures.labels import LabelledState, RuleLabel, StateLabels

BYTES = sg.Vocabulary.bytewise()
PIECES = sg.Vocabulary.from_bytes(
    [b"a", b"b", b"c", b"ab", b"ba", b"aa", b"bc", b"cab", b"aab;", b";", None], eos_ids=[10]
)


def index_of(text: str, vocabulary: sg.Vocabulary = BYTES) -> sg.Index:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return sg.compile(sg.Ebnf(text), vocabulary, eager=False)


def walked(index: sg.Index, text: str) -> sg.Guide:
    guide = sg.Guide(index)
    assert all(map(guide.advance, text.encode())), text
    return guide


def captured(index: sg.Index, text: str) -> list[tuple[str, bytes]]:
    return [(part.name, part.data) for part in walked(index, text).captures()]


class Theirs:
    """XGrammar's matcher, byte by byte."""

    def __init__(self, text: str) -> None:
        package = pytest.importorskip("xgrammar")
        info = package.TokenizerInfo([*(bytes([byte]) for byte in range(256)), b"<eos>"], stop_token_ids=[256])
        compiler = package.GrammarCompiler(info, cache_enabled=False, max_threads=1)
        self._package, self._compiled = package, compiler.compile_grammar(package.Grammar.from_ebnf(text))

    def walked(self, text: str) -> Any:
        matcher = self._package.GrammarMatcher(self._compiled)
        assert all(map(matcher.accept_token, text.encode())), text
        return matcher


def delimited(draw: random.Random) -> tuple[str, list[str]]:
    """A grammar whose rules begin and end with what they do not hold, and texts of it.

    (XGrammar gives back what rules captured on ways to read a text that came to nothing, too.)
    """
    bodies = [
        ("[0-9]+", ["7", "12", "305"]), ("[a-c]*", ["", "a", "cab"]), ('"x" | "xy"', ["x", "xy"]),
        ('"(" r0 ")" | "x"', ["x"]), ("[a-b] r1 | [a-b]", ["a", "ba"]),
    ]  # fmt: skip
    rules, texts = [], [""]
    picked = draw.sample(range(len(bodies)), 3)
    for number, which in enumerate(picked):
        body, samples = bodies[which]
        name = f"r{number}"
        body = body.replace("r0", name).replace("r1", name)
        attribute = draw.choice(["", "[capture]", '[capture="n"]', "[temperature=0.5]", "[capture, temperature=1.5]"])
        rules.append(f"{name}{attribute} ::= {body}")
        begin, end = "<>/"[number], draw.choice([";", "!", "]"])
        repeat = draw.choice(["", "*", "{1,2}"])
        rules.append(f'p{number}{draw.choice(["", "[capture]", "[temperature=0.25]"])} ::= "{begin}" {name} "{end}"')
        rules.append(f"q{number} ::= p{number}{repeat}")
        turns = {"": (1,), "*": (0, 1, 2), "{1,2}": (1, 2)}[repeat]
        texts = [
            text + "".join(begin + draw.choice(samples) + end for _ in range(draw.choice(turns)))
            for text in texts
            for _ in "ab"
        ]
    attribute = draw.choice(["", "[capture]", "[temperature=0.75]"])
    return "\n".join([f"root{attribute} ::= q0 q1 q2", *rules]), texts


def test_captures_and_temperatures_beside_xgrammar() -> None:
    draw = random.Random(1)
    seen = heated = 0
    for _ in range(40):
        text, samples = delimited(draw)
        index, theirs = index_of(text), Theirs(text)
        for sample in dict.fromkeys(samples):
            if not index.match(sample.encode()).accepted:
                continue
            # What is empty is captured there, and not here.
            expected = [(name, data) for name, data in theirs.walked(sample).get_captures() if data]
            assert captured(index, sample) == expected, (text, sample)
            seen += len(expected)
            for end in range(len(sample) + 1):
                temperature = walked(index, sample[:end]).temperature
                assert temperature == theirs.walked(sample[:end]).temperature, (text, sample[:end])
                heated += temperature is not None
    assert seen > 100
    assert heated > 100


# -- all readings of a text, without an automaton ------------------------------------------------------------

#: A regular expression: a text, or parts in a row, options, turns, or a rule.
Tree = tuple[str, Any]


def random_tree(draw: random.Random, deep: int, names: list[str]) -> Tree:
    kind = draw.random()
    if deep == 0 or kind < 0.3:
        return "text", draw.choice(["a", "b", "ab", "aa"])
    if kind < 0.5 and names:
        return "rule", draw.choice(names)
    if kind < 0.7:
        return "row", [random_tree(draw, deep - 1, names) for _ in range(2)]
    if kind < 0.85:
        return "any", [random_tree(draw, deep - 1, names) for _ in range(2)]
    return "turns", random_tree(draw, deep - 1, names)


def shown(tree: Tree) -> str:
    kind, inner = tree
    if kind == "text":
        return f'"{inner}"'
    if kind == "rule":
        return str(inner)
    if kind == "turns":
        return f"({shown(inner)})*"
    return "(" + (" " if kind == "row" else " | ").join(map(shown, inner)) + ")"


#: What a reading does: at an offset a rule begins, or the last one ends.
Event = tuple[int, str]


def readings(tree: Tree, rules: dict[str, Tree], text: str, at: int) -> Iterator[tuple[int, tuple[Event, ...]]]:
    """The offsets behind a tree's texts, with events; a rule that reads nothing is none."""
    kind, inner = tree
    if kind == "text":
        if text.startswith(inner, at):
            yield at + len(inner), ()
    elif kind == "rule":
        for end, events in readings(rules[inner], rules, text, at):
            yield end, ((at, inner), *events, (end, "")) if end > at else ()
    elif kind == "row":
        for middle, before in readings(inner[0], rules, text, at):
            for end, after in readings(inner[1], rules, text, middle):
                yield end, before + after
    elif kind == "any":
        for option in inner:
            yield from readings(option, rules, text, at)
    else:
        yield at, ()
        for middle, before in readings(inner, rules, text, at):
            if middle > at:
                for end, after in readings(tree, rules, text, middle):
                    yield end, before + after


def preferred(ways: set[tuple[Event, ...]], order: list[str]) -> list[tuple[str, int, int]]:
    """The captures of the reading that begins rules first, and then ends them last."""

    def rank(events: tuple[Event, ...]) -> list[tuple[int, int, int]]:
        return [*((0, at, order.index(name)) if name else (2, -at, 0) for at, name in events), (1, 0, 0)]

    begun: list[Event] = []
    parts = []
    for at, name in min(ways, key=rank):
        if name:
            begun.append((at, name))
        else:
            start, rule = begun.pop()
            parts.append((rule, start, at))
    return parts


def test_captures_of_texts_with_many_readings() -> None:
    draw = random.Random(2)
    texts = ["".join(letters) for size in range(1, 6) for letters in itertools.product("ab", repeat=size)]
    many = told = 0
    for _ in range(60):
        rules = {"y": random_tree(draw, 2, []), "x": random_tree(draw, 2, ["y"])}
        root = "row", [("turns", random_tree(draw, 2, ["x", "y"])) for _ in range(2)]
        text = f"root ::= {shown(root)}\n" + "".join(f"{n}[capture] ::= {shown(t)}\n" for n, t in rules.items())
        try:
            index = index_of(text)
        except UnsupportedError:  # too ambiguous to follow
            continue
        whole: dict[str, list[tuple[str, int, int]]] = {}
        for each in texts:
            ways = {events for end, events in readings(root, rules, each, 0) if end == len(each)}
            assert index.match(each.encode()).accepted == bool(ways), (text, each)
            if not ways:
                continue
            found = [(part.name, *part.span) for part in walked(index, each).captures()]
            assert found in [preferred(ways, order) for order in (["x", "y"], ["y", "x"])], (text, each)
            whole[each] = found
            many += len(ways) > 1
            told += len(found)
        for each, found in whole.items():
            for end in range(len(each)):  # what is told before is so in the end
                part = walked(index, each[:end])
                if not part.is_accepting():
                    assert {(p.name, *p.span) for p in part.captures()} <= {*found}, (text, each, end)
    assert many > 100
    assert told > 500


# -- budgets of tokens ----------------------------------------------------------------------------------------


def fits(tokens: list[int], most: int) -> bool:
    """Whether some text of ``"b"? x ";" x`` is what tokens spell, an x of a, b and c in ``most`` tokens each."""
    data = b"".join(PIECES.token(token) or b"" for token in tokens)
    ends = [*itertools.accumulate(len(PIECES.token(token) or b"") for token in tokens)]
    at = data.find(b";")
    if at < 0 or data.count(b";") != 1:
        return False

    def takes(begin: int, end: int) -> int:
        spans = zip([0, *ends], ends, strict=False)
        return sum(1 for first, stop in spans if begin < stop and first < end) if begin < end else 0

    starts = [0, 1] if data[:1] == b"b" else [0]
    return any(takes(start, at) <= most for start in starts) and takes(at + 1, len(data)) <= most


@pytest.mark.parametrize("most", [1, 2, 3])
def test_budgets_of_tokens_by_all_splits(most: int) -> None:
    index = index_of(f'root ::= "b"? x ";" x\nx[max_tokens={most}] ::= [a-c]*', PIECES)
    done: list[list[int]] = [[]]
    for tokens in done:  # grows as it goes
        guide = sg.Guide(index)
        assert all(map(guide.advance, tokens))
        assert guide.is_accepting() == fits(tokens, most), tokens
        for token in range(10) if len(tokens) < 4 else ():
            # Whatever is begun can be finished by ";" and nothing.
            possible = fits([*tokens, token], most) or fits([*tokens, token, 9], most)
            assert guide.allows(token) == possible, (tokens, token)
            if possible:
                done.append([*tokens, token])
    assert len(done) > 100


@pytest.mark.parametrize(
    "text",
    [
        'root ::= x ";" x\nx[max_tokens=2] ::= [a-c]*',
        'root ::= "a" x ("b" | ";")\nx[max_tokens=3] ::= y\ny ::= [a-b] y | [a-b]',
        'root ::= ("a" x ";")*\nx[max_tokens=1, capture] ::= [a-b]+',
        'root ::= x ";"\nx[max_tokens=2, max_chars=3] ::= [^;]*',
        'root ::= x "b"\nx[lazy, max_tokens=2] ::= [a-b]+',
        "root[max_tokens=3, temperature=0.5] ::= [a]*",
    ],
)
def test_budgets_of_tokens_beside_xgrammar(text: str) -> None:
    """Tokens are bytes: one that began before the rule is counted here, and not there."""
    index, theirs = index_of(text), Theirs(text)
    row = theirs._package.allocate_token_bitmask(1, 257)
    for letters in itertools.product("ab;", repeat=4):
        guide, matcher = sg.Guide(index), theirs.walked("")
        for letter in "".join(letters).encode():
            matcher.fill_next_token_bitmask(row)
            mine = [guide.allows(token) for token in b"ab;\x80c"]
            assert mine == [bool(int(row[0, token // 32]) >> token % 32 & 1) for token in b"ab;\x80c"], letters
            if not guide.advance(letter):
                break
            assert matcher.accept_token(letter)


def test_a_budget_that_finds_no_end_is_told_and_goes_on_to_the_next_one() -> None:
    with pytest.warns(GrammarWarning, match="x need not be at an end behind max_tokens=2, and goes on there"):
        index = sg.compile(sg.Ebnf('root ::= "<" x ">"\nx[max_tokens=2] ::= ([a-z]* " ")+'), BYTES, eager=False)
    guide = walked(index, "<abcd")
    assert guide.allows(ord("e"))
    assert guide.advance(ord(" "))
    assert not guide.allows(ord("e"))
    assert walked(index, "<a ").allows(ord(">"))
    with pytest.warns(GrammarWarning, match="m reads nothing, so nothing is captured of it"):
        sg.compile(sg.Ebnf('root ::= "a" m\nm[capture] ::= ""'), BYTES, eager=False)
    characters = walked(index_of('root ::= x ";"\nx[max_tokens=1] ::= [^;]*'), "")
    assert all(map(characters.advance, "é".encode()))  # the rest of what was begun may follow
    assert not characters.allows(ord("a"))


# -- the rest -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sample", "expected"),
    [
        (
            'root[capture="outer"] ::= r "z"\n'
            'r[capture="inner", capture_hidden_suffix_bytes=1, stop_capture="end"] ::= [a-y]* "!"',
            "ab!z", [("end", b"!"), ("inner", b"ab"), ("outer", b"ab!z")],
        ),
        (
            'root ::= r "z"\nr[capture="r", capture_hidden_stop_bytes=1, capture_hidden_body_rule_id=2,'
            ' capture_hidden_marker_rule_id=3, stop_capture="end", lazy] ::= Regex("[a-z]*!!+")\n'
            'b ::= Regex("[a-z]*")\nm ::= Regex("!!+")',
            "ab!!z", [("end", b"!!"), ("r", b"ab")],
        ),
        ('root ::= v+\nv[capture] ::= "a"+ | ""', "aaa", [("v", b"aaa")]),
        ('root[capture] ::= "(" root ")" | "x"', "((x))", [("root", b"x"), ("root", b"(x)"), ("root", b"((x))")]),
        ('root ::= v "."\nv[capture] ::= sum\nsum ::= sum "+" n | n\nn[capture] ::= [0-9]+', "1+23.",
         [("n", b"1"), ("n", b"23"), ("v", b"1+23")]),
    ],
)  # fmt: skip
def test_what_is_captured(text: str, sample: str, expected: list[tuple[str, bytes]]) -> None:
    assert captured(index_of(text), sample) == expected


def test_tokens_by_their_ids_are_captured_and_read_back_from_a_file(tmp_path: Path) -> None:
    marked = sg.Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), None, None], eos_ids=[256])
    index = index_of("root ::= Token(257) v Token(257)\nv[capture, temperature=0.5, max_tokens=4] ::= [a-z]+", marked)
    index.save(tmp_path / "labels.sgx")
    for each in (index, sg.Index.load(tmp_path / "labels.sgx")):
        guide = sg.Guide(each)
        assert all(map(guide.advance, (257, *b"ab")))
        assert guide.temperature == 0.5
        assert guide.captures() == ()
        fork = guide.fork()
        assert fork.advance(257)
        assert [(part.data, part.span, part.tokens) for part in fork.captures()] == [(b"ab", (0, 2), (1, 3))]
        assert all(map(guide.advance, b"cd"))
        assert not guide.allows(ord("e"))


def test_temperatures_of_readings_that_go_on_alike() -> None:
    """The highest of all readings counts, and no stack is left out for one that goes on as another does."""
    index = index_of('root ::= (x | y | w) ";"\nx[temperature=0.5] ::= y\ny ::= [a-b]+\nw[temperature=1.5] ::= y "b"')
    assert [walked(index, text).temperature for text in ("", "a", "ab;")] == [1.5, 1.5, None]
    assert Theirs('root ::= (x | y) ";"\nx[temperature=0.5] ::= y\ny ::= [a-b]+').walked("a").temperature == 0.5
    assert walked(index_of('root ::= (x | y) ";"\nx[temperature=0.5] ::= y\ny ::= [a-b]+'), "a").temperature == 0.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('root ::= x\nx[max_tokens=0] ::= "a"', "expected a number from 1 on behind max_tokens="),
        ('root[temperature=-1] ::= "a"', "expected a temperature"),
        ('root[temperature=1e999] ::= "a"', "expected a temperature"),
        ('root[lazy, lazy] ::= "a"', "the attribute lazy is there twice"),
        ('root[greedy] ::= "a"', "no attribute is named greedy"),
        ('root[capture=""] ::= "a"', "an empty text"),
        ('root[max_chars=] ::= "a"', "expected a number from 0 on"),
    ],
)
def test_attributes_that_are_written_wrong(text: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said) as raised:
        index_of(text)
    assert raised.value.where
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('root ::= x\nx[max_tokens=3] ::= "(" x ")" | "a"', "in which x mentions itself"),
        ('root ::= x\nx[max_tokens=3] ::= y\ny[capture] ::= "a"', "that mentions y, which has attributes"),
        ("root ::= x\nx[max_tokens=3] ::= Token(5)*", "with tokens"),
        ('root ::= x\nx[capture] ::= x "a" | "b"', "x begins with itself, and has attributes"),
        ('root ::= x\nx[capture="c", capture_hidden_suffix_bytes=1, capture_hidden_body_rule_id=0,'
         ' capture_hidden_marker_rule_id=2] ::= m\nm ::= "a"+', "an end whose texts are of several lengths"),
    ],
)  # fmt: skip
def test_attributes_that_cannot_be_honoured(text: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said) as raised:
        index_of(text)
    assert raised.value.where
    assert raised.value.remedy


def test_within_other_definitions_they_are_refused() -> None:
    grammar = 'root ::= x\nx[capture] ::= "a"'
    tag = sg.StructuralTag({"type": "grammar", "grammar": grammar})
    for definition in (tag, sg.Grammar("start: X", definitions={"X": sg.Ebnf(grammar)})):
        with pytest.raises(UnsupportedError, match="part of another definition, where captures") as raised:
            sg.compile(definition, BYTES, eager=False)
        assert "rule x" in str(raised.value)


@pytest.mark.parametrize("definition", [sg.Ebnf('root ::= "a" Token(256)'), sg.Gbnf('root ::= "a" <[256]>')])
def test_an_eos_token_by_its_id_is_told(definition: sg.Definition) -> None:
    with pytest.warns(GrammarWarning, match=r"<\[256\]> is an EOS token: engines end the text there"):
        sg.compile(definition, BYTES, eager=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.compile(sg.Gbnf('root ::= "a" !<[5]>'), BYTES, eager=False)


def test_what_a_long_substring_takes_is_told() -> None:
    text = f'root ::= "x" Substring("{random.Random(3).randbytes(400).hex()}")'
    with pytest.raises(BudgetExceededError, match="substring_chars") as raised:
        sg.compile(sg.Ebnf(text), BYTES, eager=False, budget=sg.Budget(states=500))
    assert raised.value.where == "line 1, column 14"
    assert sg.compile(sg.Ebnf(text), BYTES, eager=False, budget=sg.Budget(states=5000)).match(b"x").accepted


@pytest.mark.parametrize(
    "text",
    [
        b'{"states": [{"state": 9, "label": {}}]}', b'{"states": [{"state": 1, "label": {"temperature": -1.0}}]}',
        b'{"states": [{"state": 1}]}', b'{"states": 1}', b"[",
    ],
)  # fmt: skip
def test_labels_of_files_are_checked(text: bytes) -> None:
    with pytest.raises(FormatError):
        StateLabels.from_section(text, 9, "here")


def test_labels_of_a_file_on_states_that_no_rule_is_called_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may say them of any state: what is read by way of one is told as a damaged file, whatever the text."""
    index = index_of('root ::= "a" x y\nx[capture] ::= [a-c]+\ny ::= "<" root ">" | "z" y | "z"')
    told = 0
    for state in range(index.machine.tables.labels.states[-1].state + 1):
        labels = StateLabels((LabelledState(state, RuleLabel("c", "e", 1, 0.5)),)).to_sections()
        with monkeypatch.context() as patched:
            patched.setattr(StateLabels, "to_sections", lambda _, found=labels: found)
            damaged = sg.Index.from_buffer(index.to_bytes(), BYTES)
        for text in ("", "a", "aa", "aabz", "aabzz", "aa<aaz>"):
            guide = walked(damaged, text)
            assert guide.temperature in (None, 0.5)
            try:
                guide.captures()
            except FormatError:
                told += 1
    assert told


@pytest.mark.nightly
def test_long_texts_that_may_be_read_otherwise_are_bounded() -> None:
    """The readings have nothing in common, and are compared behind each byte."""
    index = index_of("root ::= (x* | y*) tail\nx[capture] ::= [a-z]\ny[capture] ::= [a-z]\ntail ::= [a-z]*")
    assert len(walked(index, "a" * 300).captures()) == 300
    with pytest.raises(BudgetExceededError, match="what the text captures takes more than"):
        walked(index, "a" * 12_000).captures()
