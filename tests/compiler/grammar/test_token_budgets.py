"""Lexemes of so many tokens at most: `regex` and a count of tokens judge every mask, llguidance whole texts."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import regex
from judges.guides import BYTES
from judges.lexemes import Peer, random_regex

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.stuck import unfinished_text
from structgen.errors import BudgetExceededError, DefinitionError, UnsupportedError
from structgen.runtime.pushdown.distances import budgeted, pop_costs

LETTERS = ("a", "b", ";")
TOKENS = (*LETTERS, "ab", "b;", ";;", ";a", "a;b", "ba;", "bb", "aab")
VOCABULARY = sg.Vocabulary.from_bytes([*(token.encode() for token in TOKENS), None], eos_ids=[len(TOKENS)])


@dataclass(frozen=True)
class Part:
    """A string, or a lexeme with a budget; lazy ones are shortest matches."""

    pattern: str
    is_lazy: bool = False
    most: int | None = None

    def goes_on(self, text: str, tokens: int) -> bool:
        """Whether a string begins with a text; whether a lexeme may have another token."""
        return self.pattern.startswith(text) if self.most is None else tokens < self.most

    def is_in_time(self, text: str, tokens: int) -> bool:
        """Whether what tokens are left can complete a beginning, and end no later than that."""
        return self.most is None or self.needs(text, self.most - tokens) <= self.most - tokens

    @cache  # noqa: B019 - a few hundred short texts
    def is_whole(self, text: str) -> bool:
        if regex.fullmatch(self.pattern, text) is None:
            return False
        return not (self.is_lazy and any(self.is_whole(text[:length]) for length in range(1, len(text))))

    @cache  # noqa: B019
    def needs(self, text: str, most: int) -> int:
        """How many tokens complete a beginning, ``most + 1`` for more than that."""
        if self.is_whole(text) and text:
            return 0
        return 1 + min((self.needs(text + token, most - 1) for token in TOKENS), default=0) if most else 1


@dataclass(frozen=True)
class Place:
    """What was read of a part, in how many tokens before this one."""

    part: int
    text: str = ""
    tokens: int = 0


class Reader:
    """All ways to read tokens as the parts one after the other, by the definition alone."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    def closed(self, places: set[Place]) -> set[Place]:
        """With those behind parts that are complete, or may be left out."""
        for place in (todo := [*places]):
            if place.part < len(self.parts) and self.parts[place.part].is_whole(place.text):
                todo.append(Place(place.part + 1))
        return set(todo)

    def over(self, places: set[Place], token: str) -> set[Place]:
        """The places behind a token from which all lexemes that were begun can be completed in time."""
        for letter in token:
            places = {
                Place(place.part, place.text + letter, place.tokens)
                for place in self.closed(places)
                if place.part < len(self.parts) and self.parts[place.part].goes_on(place.text + letter, place.tokens)
            }
        found = (Place(place.part, place.text, place.tokens + 1) for place in places)
        return {place for place in found if self.parts[place.part].is_in_time(place.text, place.tokens)}

    def may_end(self, places: set[Place]) -> bool:
        return any(place.part == len(self.parts) for place in self.closed(places))


def random_definition(random: Random) -> tuple[str, str]:
    """A grammar in the grammar with a rule in itself, at an end or in the middle, and the same as a regex."""
    first, second, third = random.sample(LETTERS, 3)
    if random.random() < 0.6:  # which nests without bound
        inner, repeat = random.choice([third, third * 2]), random.choice(["", "?", "*", "+"])
        return (
            f'%lark {{\nstart: "{first}" start{repeat} "{second}" | "{inner}"\n}}',
            f"(?P<nested>{first}(?&nested){repeat}{second}|{inner})",
        )
    two, three = second + random.choice(["", "?", "*", "+"]), third + random.choice(["", "?", "*", "+"])
    rules = f'start: "{first}" start | "{first}" x\nx: "{two[0]}"{two[1:]} "{three[0]}"{three[1:]}'
    return f"%lark {{\n{rules}\n}}", f"{first}+{two}{three}"


def random_parts(random: Random) -> tuple[str, list[Part]]:
    """A grammar, and what a text of it is. Some of its lexemes are definitions."""
    rules, names, parts = list[str](), list[str](), list[Part]()
    for number in range(random.randint(1, 3)):
        if random.random() < 0.6:
            string = "".join(random.choices(LETTERS, k=random.randint(1, 2)))
            names.append(f'"{string}"')
            parts.append(Part(string))
        pattern, most = random_regex(random, 2).replace("!xyé", ""), random.randint(1, 3)
        if random.random() < 0.4:
            definition, pattern = random_definition(random)
            names.append(f"p{number}")
            rules.append(f"p{number}[max_tokens={most}]: {definition}")
            parts.append(Part(pattern, most=most))
            continue
        end = random.choice([None, None, "lazy", ";", "ab"])
        says = "" if end is None else "lazy, " if end == "lazy" else f'suffix="{end}", '
        names.append(f"p{number}")
        rules.append(f"p{number}[{says}max_tokens={most}]: /{pattern}/")
        whole = pattern if end in (None, "lazy") else f"(?:{pattern}){end}"
        parts.append(Part(whole, is_lazy=end is not None, most=most))
    return "\n".join([f"start: {' '.join(names)}", *rules]), parts


def test_masks_are_those_of_all_ways_to_read_tokens(tmp_path: Path) -> None:
    random, judged, refused = Random(1), 0, 0
    while judged < 60:
        grammar, parts = random_parts(random)
        budgets = [part for part in parts if part.most is not None]
        reader = Reader(parts)
        try:
            index = sg.compile(sg.Grammar(grammar), VOCABULARY, eager=judged % 2 == 0)
        except UnsupportedError:
            assert any(part.needs("", part.most or 0) > (part.most or 0) for part in budgets), grammar
            refused += 1
            continue
        assert all(part.needs("", part.most or 0) <= (part.most or 0) for part in budgets), grammar
        if judged % 3 == 0:
            index.save(tmp_path / "index")
            index = sg.Index.load(tmp_path / "index", VOCABULARY)
        judged += 1
        for _ in range(6):
            guide, places, text = sg.Guide(index), {Place(0)}, list[str]()
            for _ in range(9):
                expected = [bool(reader.over(places, token)) for token in TOKENS] + [reader.may_end(places)]
                assert [guide.allows(token) for token in range(len(TOKENS) + 1)] == expected, (grammar, text)
                mask = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")
                assert mask[: len(expected)].tolist() == expected, (grammar, text)
                some = [token for token in range(len(TOKENS)) if expected[token]]
                if not some:
                    break
                token = random.choice(some)
                assert guide.advance(token)
                text.append(TOKENS[token])
                places = reader.over(places, TOKENS[token])
    assert refused < 60


#: What tokens of JSON are made of.
LEAST, MORE = '[]{},:"a1;', '[[ ]] ]]] [] {"a": ": "a ],[ }, ]} 1, [1 ]; };'


def random_schema(random: Random, depth: int) -> dict[str, Any]:
    """A schema that may come to itself, by the name of x."""
    inner = {"$ref": "#/$defs/x"} if not depth or random.random() < 0.3 else random_schema(random, depth - 1)
    bounds = random.choice([{}, {}, {"minItems": 1}, {"maxItems": 2}, {"minItems": 1, "maxItems": 3}])
    members = {"properties": {"a": inner}, "required": random.choice([[], ["a"]]), "additionalProperties": False}
    return random.choice(
        [
            {"type": "array", "items": inner, **bounds},
            {"type": "object", **members},
            {"anyOf": [{"type": "array", "items": inner}, {"enum": [1, 11, "a"]}]},
            {"type": "array"},
        ]
    )


@pytest.mark.parametrize("bound", [None, 2])
def test_definitions_that_nest_are_complete_in_time(
    bound: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge tries all tokens after one another, on the definition by itself. Little may be remembered."""
    if bound is not None:
        monkeypatch.setattr(pop_costs, "MEMO_ENTRIES", bound)
        monkeypatch.setattr(budgeted, "_MOST_PLACES", bound)
    random, judged, refused = Random(5 if bound is None else 6), 0, 0
    while judged < (25 if bound is None else 6):
        base = {"anyOf": [{"enum": [1, []]}, random_schema(random, 2)]}
        schema = {**random_schema(random, 2), "$defs": {"x": base}}
        tokens = list(dict.fromkeys([*LEAST, *random.sample(MORE.split(), random.randint(4, 10))]))
        vocabulary = sg.Vocabulary.from_bytes([*(token.encode() for token in tokens), None], eos_ids=[len(tokens)])
        most = random.randint(1, 5)
        machine = sg.compile(sg.JsonSchema(schema), BYTES, eager=False).machine

        @cache
        def over(place: Any, token: str, machine: Any = machine) -> Any:
            for byte in token.encode():
                place = None if place is None else machine.advance(place, byte)
            return place

        @cache
        def is_in_time(
            place: Any, left: int, machine: Any = machine, over: Any = over, tokens: list[str] = tokens
        ) -> bool:
            if machine.is_accepting(place) or not left:
                return bool(machine.is_accepting(place))
            behind = {over(place, token) for token in tokens} - {None}
            return any(is_in_time(each, left - 1) for each in behind)

        grammar = f'start: a ";"\na[max_tokens={most}]: %json {json.dumps(schema)}'
        try:
            index = sg.compile(sg.Grammar(grammar), vocabulary, eager=judged % 2 == 0)
        except UnsupportedError:
            assert not is_in_time(machine.start, most), grammar
            refused += 1
            continue
        assert is_in_time(machine.start, most), grammar
        if judged % 3 == 0:
            index.save(tmp_path / "index")
            index = sg.Index.load(tmp_path / "index", vocabulary)
        judged += 1
        for _ in range(3):
            guide, place, text = sg.Guide(index), machine.start, list[str]()
            while place is not None:
                left = most - len(text)
                behind = {token: over(place, token) for token in tokens if left}
                some = [token for token, each in behind.items() if each is not None and is_in_time(each, left - 1)]
                ends = {token for token in tokens if token[-1] == ";" and is_whole(machine, over(place, token[:-1]))}
                ends = {token for token in ends if left or token == ";"}
                expected = [token in some or token in ends for token in tokens]
                mask = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")
                assert mask[: len(tokens)].tolist() == expected, (grammar, tokens, text)
                assert [guide.allows(token) for token in range(len(tokens))] == expected, (grammar, tokens, text)
                if not some:
                    break
                text.append(random.choice(some))
                place = behind[text[-1]]
                assert guide.advance(tokens.index(text[-1]))
    assert refused < 25


def is_whole(machine: Any, place: Any) -> bool:
    return place is not None and bool(machine.is_accepting(place))


#: Lexemes that end with any text of theirs.
BODIES = ("[ab]*", "(a|b;?){0,4}", "[ab]{0,3}", "(ab?){0,3}")


def test_texts_are_those_of_llguidance() -> None:
    """It cuts lexemes off: so they are such as end with any text of theirs, and go on with nothing that follows."""
    random, judged = Random(2), 0
    for _ in range(40):
        names = random.choices(["p", "q", '"x"'], k=random.randint(1, 3))
        rules = ["start: " + " ".join(f'{name} "!"' for name in names)]
        rules += [f"{name}[max_tokens={random.randint(1, 4)}]: /{random.choice(BODIES)}/" for name in "pq"]
        grammar = "\n".join(rules)
        index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
        guide, peer = sg.Guide(index), Peer(grammar)
        while (found := [token for token in range(257) if guide.allows(token)]) != [256]:
            assert found == peer.allowed(), grammar
            token = random.choice(found)
            assert guide.advance(token)
            assert peer.advance(token)
            judged += 1
        assert peer.allowed() == [256]
    assert judged > 150


NAMES = r"""
start: "Name: " name " Height: " height
name[max_tokens=3, capture, temperature=0.5]: /.*/
height[max_tokens=2, capture]: /.*/
"""
WORDS = sg.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), b"Em", b"ily", b" Carter", b" Height", b": ", b"\xc3\xa9", b": \xc3", None],
    eos_ids=[263],
)


def test_a_lexeme_is_over_when_its_tokens_are() -> None:
    guide = sg.Guide(sg.compile(sg.Grammar(NAMES), WORDS, eager=False))
    assert all(map(guide.advance, b"Name: "))
    assert guide.temperature == 0.5
    assert guide.forced_bytes() == b""
    fork = guide.fork()
    assert all(map(guide.advance, (256, 257, 258)))
    assert [token for token in range(264) if guide.allows(token)] == [ord(" "), 259]
    assert guide.forced_bytes() == b" Height: "
    guide.rollback(1)
    assert guide.allows(258)
    assert guide.allows(0xC2) is False  # the last token, and half a character
    assert guide.allows(261)
    assert all(map(fork.advance, (*b" H", *b"! Height", 262)))  # " H! Height" is no name: four tokens
    assert fork.allows(0xA9)


def test_what_begins_within_a_token_counts_it() -> None:
    guide = sg.Guide(sg.compile(sg.Grammar(NAMES), WORDS, eager=False))
    assert all(map(guide.advance, (*b"Name: A Height", 262, 0xA9)))
    assert [token for token in range(264) if guide.allows(token)] == [263]
    assert [(each.name, each.data) for each in guide.captures()] == [("name", b"A"), ("height", "é".encode())]


def test_batches_have_the_masks_of_guides() -> None:
    random, index = Random(3), sg.compile(sg.Grammar(NAMES), WORDS, eager=False)
    batch, guides = sg.GuideBatch(WORDS), [sg.Guide(index) for _ in range(3)]
    for _ in guides:
        batch.add(index)
    bitmask = np.zeros((3, WORDS.words), np.int32)
    for _ in range(12):
        batch.fill_bitmask(bitmask)
        for row, guide in zip(bitmask, guides, strict=True):
            assert (row == guide.bitmask()).all()
        tokens = [random.choice([t for t in range(264) if guide.allows(t)]) for guide in guides]
        batch.advance(np.array(tokens, np.int32))
        assert all(guide.advance(token) for guide, token in zip(guides, tokens, strict=True))


def test_tokens_finish_whatever_tokens_begin() -> None:
    """Also beside terminals that are lexed, with what is ignored between them, and in any lexer; or it is refused."""
    random, judged, refused = Random(4), 0, 0
    while judged < 25:
        rules = [f"{name}: /{random_regex(random, 2)}/".replace("[^a!xyé]", "[b;]") for name in "XY"]
        rules += [
            f"{name}[max_tokens={random.randint(1, 3)}]: /{random_regex(random, 2)}/".replace("[^a!xyé]", "[b;]")
            for name in "pq"
        ]
        names = random.choices(["X", "Y", "p", "q", '"a"', "(p|X)", "(q|Y)"], k=random.randint(2, 4))
        rules += ['%ignore ";"'] if random.random() < 0.3 else []
        grammar = "\n".join([f"start: {' '.join(names)}", *rules])
        try:
            index = sg.compile(
                sg.Grammar(grammar, lexer=random.choice(["basic", "contextual"])), VOCABULARY, eager=False
            )
        except DefinitionError:
            refused += 1
            continue
        judged += 1
        with suppress(BudgetExceededError):
            assert unfinished_text(index.machine, Meter(Budget(states=500))) is None, grammar
    assert refused < 40


@pytest.mark.parametrize(
    ("rules", "error", "what"),
    [
        ("a[max_tokens=0]: /x/", UnsupportedError, "the shortest text takes 1 token"),
        ("a[max_tokens=-1]: /x/", DefinitionError, "is given -1"),
        ("a[max_tokens]: /x/", DefinitionError, "is given nothing"),
        ("a[max_tokens=2]: /xxx/", UnsupportedError, "the shortest text takes 3 tokens"),
        ("a[max_tokens=2]: /x(?=y)/", UnsupportedError, "looks ahead"),
        ('a[max_tokens=2]: "x" b\nb: "y" b?', DefinitionError, "b"),
        ('a[max_tokens=2]: %json {"type": "array", "minItems": 4}', UnsupportedError, "the shortest text takes more"),
        ('a: b c\nb[max_tokens=2]: %json {"enum": [12]}\nc: "x" %json {"enum": [12]}', UnsupportedError, "several"),
        ('a[max_tokens=1]: %json {"enum": [12]}', UnsupportedError, "the shortest text takes 2 tokens"),
        ('a: ("1" | /1e5x/) b\nb[max_tokens=2]: /.+/', UnsupportedError, "may go on for several bytes"),
        ('a: ("1" | LONG) b\nLONG: "1e5x"\nb[max_tokens=2]: /.+/', UnsupportedError, "What may go on is LONG."),
    ],
)
def test_what_is_refused(rules: str, error: type[Exception], what: str) -> None:
    with pytest.raises(error) as raised:
        sg.compile(sg.Grammar(f"start: a\n{rules}"), BYTES, eager=False)
    assert what in str(raised.value)


def test_no_tokens_are_the_empty_text() -> None:
    index = sg.compile(sg.Grammar('start: "<" a ">"\na[max_tokens=0, capture]: /x*/'), BYTES, eager=False)
    assert index.match(b"<>").accepted
    assert not index.match(b"<x>").accepted


def test_certificates_miss_no_terminal_that_is_not_lexed() -> None:
    (item,) = sg.certify(sg.compile(sg.Grammar(NAMES), WORDS, eager=False), items=["terminals"]).items
    assert item.verdict == "proved"


def test_a_part_of_another_definition_has_no_budgets() -> None:
    tag = sg.StructuralTag({"type": "grammar", "grammar": "start: a\na[max_tokens=2]: /x/", "syntax": "lark"})
    with pytest.raises(UnsupportedError, match="max_tokens"):
        sg.compile(tag, BYTES, eager=False)


@pytest.mark.parametrize(
    ("rule", "budget"),
    [
        ("a[max_tokens=9, max_chars=2000]: /.{1,90000}/", Budget.request),
        (
            'a[max_tokens=9000]: %json {"type": "array", "items": {"$ref": "#"}, "maxItems": 8000}',
            Budget(memory=17 << 20),
        ),
    ],
    ids=["lexeme", "definition"],
)
def test_large_ones_keep_to_the_budget(rule: str, budget: Budget) -> None:
    with pytest.raises(BudgetExceededError, match=r"spelling out|counting the tokens"):
        sg.compile(sg.Grammar(f"start: a\n{rule}"), BYTES, budget=budget, eager=False)


@pytest.mark.parametrize(
    "text",
    [
        'start: "x" b ";"\nb[max_tokens=3]: /[^;]+/\n%ignore /#[^\\n]*/',
        'start: "x" b ";"\nb[max_tokens=3]: /[^;]+/\n%ignore /\\/\\/[^\\n]*/\n%ignore " "',
        'start: (a b ";")+\na: /1(e5)?/\nb[max_tokens=2]: /.+/',
        'start: (a b ";")+\na: /1(e5x?)*/\nb[max_tokens=2]: /e(5|6x|5e5)/',
    ],
)
def test_lexemes_before_it_that_may_go_on_as_they_are(text: str) -> None:
    """Line comments, whose next character may be half read. Masks are what steps take, and are never empty."""
    more = ["ab", "aé", "#é", "éx", "\nab", "b;", "1e", "e5", "e6", "5e", "5;", "e5e5", "e5x", "6x;", "x#", "//"]
    tokens = [*(bytes([each]) for each in range(256)), *(each.encode() for each in more), b"// \xc3", b"\xa9\n"]
    vocabulary = sg.Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])
    index, draw = sg.compile(sg.Grammar(text), vocabulary, eager=False), Random(1)
    for _ in range(8):
        guide = sg.Guide(index)
        for _ in range(8):
            allowed = [each for each in range(len(tokens)) if guide.allows(each)]
            assert allowed == [each for each in range(len(tokens)) if guide.fork().advance(each)], guide.tokens
            if not allowed:
                assert guide.is_accepting(), guide.tokens
                break
            long = [each for each in allowed if each >= 256 or tokens[each] in b";1e5"]
            assert guide.advance(draw.choice(long if long and draw.random() < 0.7 else allowed))
