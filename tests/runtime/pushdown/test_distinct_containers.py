"""Arrays whose items must differ where items are arrays and objects.

The judges: of schemas with finitely many texts all are spelled out, and Python's ``json`` says which of them repeat
an item; then a token is allowed if and only if some text goes on with it. Of others `jsonschema` says which texts are
valid.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import jsonschema
import pytest
from judges.finite_texts import check_masks
from judges.guides import allowed, with_bytes

import structgen as sg
from structgen.correction.endings import shortest_ending
from structgen.runtime.pushdown.distinct.machine import DistinctMachine
from structgen.runtime.pushdown.distinct.places import PlaceReader

BYTES = with_bytes()

BOOLEANS = {"type": "boolean"}


def array(item: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "uniqueItems": True, **more}


def record(required: list[str] | None = None, **members: Any) -> dict[str, Any]:
    needed = {"required": [*members] if required is None else required}
    return {"type": "object", "properties": members, "additionalProperties": False, **needed}


LISTED = {"additionalProperties": False, "type": "object", "maxProperties": 2}

PAIR = {"prefixItems": [BOOLEANS, {"enum": [1, 1.5]}], "items": False, "type": "array"}

#: Schemas of finitely many texts, and options.
FINITE: dict[str, tuple[Any, dict[str, Any]]] = {
    "booleans": (array(record(a=BOOLEANS, b=BOOLEANS), maxItems=3), {}),
    "optional": (array(record([], a=BOOLEANS, bb={"enum": ["x", "xy"]}), maxItems=2), {}),
    "any order": (array(record([], a=BOOLEANS, b={"enum": [1, 12]}), maxItems=2), {"property_order": "any"}),
    "names again": (
        array({**LISTED, "patternProperties": {"^[ab]$": {"enum": [1, 2]}}, "minProperties": 1}, maxItems=2),
        {},
    ),
    "one name": (array({**LISTED, "patternProperties": {"^a$": {"enum": [1, 2]}}}, maxItems=3), {}),
    "arrays": (array({"type": "array", "items": {"enum": [1, 12, "a"]}, "maxItems": 2}, maxItems=2), {}),
    "pairs": (array(PAIR, maxItems=3), {}),
    "sets of sets": (array(array({"enum": ["a", [1], [2]]}, maxItems=2), maxItems=2), {}),
    "sets in records": (
        array(record(a=array(BOOLEANS, maxItems=2), b=array({"enum": [[], {}]}, maxItems=1)), maxItems=2),
        {},
    ),
    "either": (
        {"type": "array", "maxItems": 3, "anyOf": [array(record(a=BOOLEANS)), {"items": record(a={"const": True})}]},
        {},
    ),
    "mixed": (array({"anyOf": [record([], a={"enum": [1, {"b": None}, {}]}), {"enum": [1, "{", []]}]}, maxItems=3), {}),
    "escapes": (array(record(a={"enum": ["a", "b"]}), maxItems=2), {"escapes": "any"}),
    "at least": (array(record([], a=BOOLEANS), prefixItems=[record(a=BOOLEANS)], minItems=2, maxItems=3), {}),
    "contained": (array(record([], a=BOOLEANS, b={"enum": [1, 12]}), contains={"required": ["a"]}, maxItems=2), {}),
    "within": (
        record(
            x=array(record(a=BOOLEANS), maxItems=2),
            y=array({"type": "array", "items": BOOLEANS, "maxItems": 1}, maxItems=2),
        ),
        {},
    ),
}


def plain(schema: Any) -> Any:
    """The schema without ``uniqueItems``."""
    return json.loads(json.dumps(schema).replace('"uniqueItems": true', '"uniqueItems": false'))


#: Options of some of them.
OPTIONS: dict[str, dict[str, Any]] = {"marked": {"property_order": "any"}}


def compiled(schema: Any, vocabulary: sg.Vocabulary = BYTES, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, **options), vocabulary, eager=False)


def is_valid(schema: Any, text: bytes) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize("name", FINITE)
def test_masks_by_all_texts(name: str) -> None:
    schema, options = FINITE[name]
    options = {"whitespace": "compact", **options}
    wanted, without = (sg.JsonSchema(each, **options) for each in (schema, plain(schema)))
    check_masks(wanted, without, partial(is_valid, schema))


SETS = array(record(a=BOOLEANS), maxItems=2)

NESTED = array(
    {"type": "array", "maxItems": 2, "items": {"enum": [True, [], [True]]}, "uniqueItems": False}, maxItems=2
)

EQUAL = {"type": "array", "maxItems": 3, "items": record(a={"const": True})}


def part(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": schema}


def is_set(text: str) -> bool:
    return is_valid(SETS, text.encode())


#: Formats of finitely many texts, and which of the texts are valid that are so without ``uniqueItems``.
TAGS: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
    "within a tag": (
        {"type": "tag", "begin": "<t>", "content": part(SETS), "end": "</t>"},
        lambda text: is_set(text.removeprefix("<t>").removesuffix("</t>")),
    ),
    "one behind another": (
        {"type": "sequence", "elements": [part(SETS), {"type": "const_string", "value": ";"}, part(SETS)]},
        lambda text: all(map(is_set, text.split(";"))),
    ),
    "begun at either byte": (
        {"type": "sequence", "elements": [{"type": "regex", "pattern": r"\[?"}, part(NESTED)]},
        lambda text: is_valid(NESTED, text.encode()) or (text[0] == "[" and is_valid(NESTED, text[1:].encode())),
    ),
    "of one or of another kind": (
        {"type": "or", "elements": [
            part(SETS), {"type": "sequence", "elements": [part(EQUAL), {"type": "const_string", "value": "!"}]},
        ]},
        lambda text: text.endswith("!") or is_set(text),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAGS)
def test_masks_of_tags(name: str) -> None:
    format_, is_right = TAGS[name]
    wanted, without = (sg.StructuralTag(each, whitespace="compact") for each in (format_, plain(format_)))
    check_masks(wanted, without, lambda text: is_right(text.decode()))


def test_tags_behind_free_text() -> None:
    numbers = array({"type": "number"})
    tag = {"begin": "<t>", "content": part(numbers), "end": "</t>"}
    format_ = {"type": "triggered_tags", "triggers": ["<t>"], "tags": [tag]}
    vocabulary = with_bytes(b"<t>[1,", b"[1,1]", b"1,1", b"],", b"]</t>", b"]</t> <t>[", b"</t><t>[1,1]</t>", b", 1")
    tokens = [(token, vocabulary.token(token) or b"") for token in range(vocabulary.size)]
    indexes = [sg.compile(sg.StructuralTag(format_), vocabulary, eager=eager) for eager in (True, False)]
    random, found = Random(19), Counter[bool]()
    for _ in range(120):
        spellings = ["1", "1.0", "10e-1", "2", "12", "3"]
        sets = [random.choices(spellings, k=random.randrange(4)) for _ in range(2)]
        text = " ".join(f"[1,1] <t>[{', '.join(each)}]</t>" for each in sets[: random.randrange(1, 3)])
        bodies = re.findall("<t>(.*?)</t>", text)
        is_right = all(is_valid(numbers, body.encode()) for body in bodies)
        found[is_right] += 1
        for index in indexes:
            assert index.match(text.encode()).accepted == is_right, text
            guide = sg.Guide(index)
            rest, is_taken = text.encode(), True
            while rest and is_taken:
                token = random.choice([token for token, data in tokens if data and rest.startswith(data)])
                is_taken = token in allowed(guide)
                assert guide.advance(token) == is_taken
                rest = rest[len(vocabulary.token(token) or b"") :]
            assert is_taken == is_right, text
    assert min(found[True], found[False]) > 20


#: Formats that take tokens as such, or count them.
WHOLE_TOKENS = [{"type": "token", "token": 65}, {"type": "any_text", "max_tokens": 2}]


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("end", WHOLE_TOKENS, ids=["id", "any"])
def test_tags_whose_tokens_are_taken_whole(end: Any, eager: bool) -> None:
    """Of such strings others can always follow: a text goes on unless one that is over repeats one before."""
    words = array({"type": "string", "pattern": "^[ab]*$"})
    vocabulary = with_bytes(b'","', b'a"', b'"]', b'"]A', b'"]zz', b'["a', b'a","a"', b'"a","b"', b"]x", b"[")
    wanted, without = (
        sg.compile(
            sg.StructuralTag({"type": "sequence", "elements": [each, end]}, whitespace="compact"),
            vocabulary,
            eager=eager,
        )
        for each in (part(words), part(plain(words)))
    )
    assert isinstance(wanted.machine, DistinctMachine)

    def repeats(text: bytes) -> bool:
        found = re.findall(rb'"([ab]*)"', text.split(b"]")[0])
        return len({*found}) < len(found)

    random, refused, ended = Random(str(end)), 0, 0
    for _ in range(40):
        guide, plain_guide, text = sg.Guide(wanted), sg.Guide(without), b""
        for _ in range(14):
            tokens = allowed(plain_guide)
            found = [token for token in tokens if not repeats(text + (vocabulary.token(token) or b""))]
            assert allowed(guide) == found, text
            refused += len(tokens) - len(found)
            token = random.choice([token for token in found if token not in {*b" \n\r\t"}])
            ended += vocabulary.token(token) is None
            assert guide.advance(token)
            assert plain_guide.advance(token)
            text += vocabulary.token(token) or b""
            again = guide.fork()
            again.rollback(1)
            assert allowed(again) == found
    assert refused
    assert ended


#: Records that no breadth-first search completes.
WORDS: Any = {name: {"enum": ["x", "xy"]} for name in "abcde"}
FAR = array(record(**WORDS), minItems=2, maxItems=4)

#: Schemas of items without end.
ENDLESS: dict[str, Any] = {
    "anything": array({}),
    "objects": array({"type": "object", "properties": {"a": {}, "b": {"type": "number"}}}),
    "arrays": array({"type": "array"}, minItems=2),
    "sets": array(array({}), maxItems=40),
    "pairs": array(record(a={"type": "string"}, b={"type": ["number", "object", "array"]})),
    "marked": array(record([], **{name: {} for name in "abcdef"})),
    "within": {"type": "object", "properties": {"x": array(record(a={}))}, "additionalProperties": array({})},
}


def spelled(value: Any, random: Random) -> str:
    """A value as JSON, in one of its many spellings."""
    if isinstance(value, dict):
        members = [f"{spelled(name, random)}: {spelled(each, random)}" for name, each in value.items()]
        if members and random.random() < 0.1:
            members.insert(0, spelled(random.choice([*value]), random) + ": " + random.choice(["1", "[1]", "{}"]))
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + random.choice([",", ", "]).join(spelled(each, random) for each in value) + "]"
    if isinstance(value, str) and value:
        return '"' + "".join(random.choice([letter, f"\\u{ord(letter):04x}"]) for letter in value) + '"'
    if isinstance(value, int) and not isinstance(value, bool):
        return random.choice([f"{value}", f"{value}.0", f"{value}e0", f"{value}0e-1" if value else "-0"])
    return json.dumps(value)


def drawn(random: Random, depth: int) -> Any:
    """A value of few, so that items are often equal."""
    kind = random.randrange(3 if depth else 1)
    if kind == 0:
        return random.choice([None, True, 0, 1, 12, "", "a", "ab", 0.5])
    if kind == 1:
        return [drawn(random, depth - 1) for _ in range(random.randrange(3))]
    return {name: drawn(random, depth - 1) for name in random.sample("aabc", random.randrange(3))}


@pytest.mark.parametrize("name", ENDLESS)
def test_jsonschema_decides_texts(name: str) -> None:
    schema, random = ENDLESS[name], Random(name)
    options: dict[str, Any] = {"escapes": "any", **OPTIONS.get(name, {})}
    index, syntax = compiled(schema, **options), compiled(plain(schema), **options)
    assert isinstance(index.machine, DistinctMachine)
    seen = {True: 0, False: 0}
    while min(seen.values()) < 40:
        items = [drawn(random, 3) for _ in range(random.randrange(2, 5))]
        if name != "anything":
            kind: type = {"objects": dict, "pairs": dict, "marked": dict, "within": dict}.get(name, list)
            items = [each if isinstance(each, kind) else kind() for each in items]
        if name == "pairs":
            items = [{"a": random.choice("ab"), "b": random.choice([1, 2, {}, [], each])} for each in items]
        if random.random() < 0.5:
            items.append(random.choice(items))
        spelling = spelled(items, random)
        text = (f'{{"x": {spelling}}}' if name == "within" else spelling).encode()
        if not syntax.match(text).accepted:
            continue
        expected = is_valid(schema, text)
        assert index.match(text).accepted == expected, text
        seen[expected] += 1


#: Items that can differ without end, whatever they begin with, and such that can't.
ROOMY: dict[str, Any] = {
    "required": array(record(a={"type": "string"}, b={"type": "array", "items": record([], a={}, c=array({}))})),
    "few names": array(record(a={"enum": ["a", "aa"]}, b=array(array({"type": "integer"})))),
    "contained": array({"type": "array", "items": BOOLEANS, "maxItems": 1}, contains={"enum": [[True], []]}),
    "contained too": array(record([], a={"const": 1}, b=BOOLEANS), contains={"enum": [{"a": 1}, {"b": True}, {}]}),
    "two records": array(record(a=BOOLEANS)),
    "three lists": array({"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 1}),
    "names": {"type": "object", "properties": {"b": BOOLEANS}, "additionalProperties": array(record(a={"const": 1}))},
    "few records": array(record([], a={"const": 1}, b=record([], a={"type": "array", "items": {"type": "object"}}))),
    "one of two": array({"anyOf": [record(a={"type": "string"}), record(b=BOOLEANS, c={"type": "array"})]}),
    "or two values": array({"anyOf": [record(a={"type": "string"}), record(b=BOOLEANS)]}),
    "or two lists": array({"anyOf": [{"type": "array", "items": BOOLEANS, "maxItems": 1}, {"type": "object"}]}),
    "bounded": array(record(a={"type": "string"}, b={"type": "object"}), maxItems=3),
}

#: Ends of items and beginnings of others.
JOINTS = rb"""
    },{ },{"a },{"b },{"a":" "},{" "},{"a": {"a":"a" {"b":true {"b":false ]},{ ]],[ ],["a" [],[ {},{ []},{} "}],"b":[
    },"b ,{},{ "a": "a" 1},{"a": true},{"a": :false} },{"a":true ,[1],[ "],[1 true}, false}, 1}, 1], a"], ,{"a":1 ],[
    ,[true] ,[false] ,[] true],
""".split()


@pytest.mark.parametrize("name", [*ROOMY, *ENDLESS, "mixed", "sets in records", "names again"])
def test_tokens_that_are_not_followed_repeat_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge follows each token. Most end items and begin others."""
    random, answers = Random(name), Counter[bool]()
    weights = 3, 4, 3, 4, 5, 2, 5, 2, 1
    letters = [bytes(random.choices(b'[]{},:"a1', weights, k=random.randint(2, 5))) for _ in range(60)]
    vocabulary = with_bytes(*{*JOINTS, *letters})
    asked = PlaceReader.is_roomy_around

    def is_roomy_around(*args: Any) -> bool:
        answers[found := asked(*args)] += 1
        return found

    monkeypatch.setattr(PlaceReader, "is_roomy_around", is_roomy_around)
    schema, options = FINITE.get(name) or (ROOMY.get(name) or ENDLESS[name], {})
    index = sg.compile(sg.JsonSchema(schema, **{"whitespace": "compact", **options}), vocabulary, eager=False)
    machine = index.machine
    assert isinstance(machine, DistinctMachine)
    texts = [(token, text) for token in range(vocabulary.size) if (text := vocabulary.token(token))]
    likely = {token for token, text in texts if not {*text} - {*b'[]{},:"ab1truefalse'}}
    for _ in range(12):
        guide, places = sg.Guide(index), machine.byte_state(machine.start)
        for _ in range(30):
            followed = {token: after for token, text in texts if (after := machine.places.followed(places, text))}
            assert [token for token in allowed(guide) if vocabulary.token(token)] == [*followed]
            if not followed:
                break
            token = random.choice([*(likely & {*followed} or followed)])
            assert guide.advance(token)
            places = followed[token]
    assert answers[True] or name not in {"required", "one of two", "bounded"}
    assert answers[False] or name not in {"or two values", "or two lists"}


@pytest.mark.parametrize(("more", "is_seen"), [({}, True), ({"contains": {"enum": ["ab"]}}, False)])
def test_room_around_is_seen_by_the_stack(more: dict[str, Any], is_seen: bool) -> None:
    """An item that may be one which must be contained is read letter by letter, with no frame of the array below it."""
    machine = compiled(array({"type": "string"}, **more)).machine
    assert isinstance(machine, DistinctMachine)
    ((config, seen),) = machine.places.followed(machine.byte_state(machine.start), b'["a')
    assert seen is not None
    assert machine.places.is_roomy_around(config, seen, [b"", b'"']) == is_seen


@pytest.mark.parametrize("name", [*FINITE, *ENDLESS, "far"])
def test_endings_repeat_nothing(name: str) -> None:
    schema, options = (FAR, {"property_order": "any"}) if name == "far" else FINITE.get(name) or (ENDLESS[name], {})
    index, random = compiled(schema, **options), Random(name)
    for _ in range(6):
        guide, text = sg.Guide(index), b""
        for _ in range(random.randrange(30)):
            tokens = [token for token in allowed(guide) if token < 256 and token != ord("e") and token != ord("E")]
            structure = [token for token in tokens if token in b'[]{},:"abtrue01']
            if not tokens:
                break
            token = random.choice(structure or tokens)
            assert guide.advance(token)
            text += bytes((token,))
        ending = shortest_ending(index, guide.config)
        assert ending is not None, text
        assert is_valid(schema, text + ending), (text, ending)


def test_long_and_deep_items() -> None:
    index = compiled(ENDLESS["anything"])
    items = [{"id": number // 2, "of": ["a", number % 2]} for number in range(120)]
    text = json.dumps(items).encode()
    assert index.match(text).accepted
    assert not index.match(text[:-1] + b"," + json.dumps({"of": ["a", 0], "id": 40}).encode() + b"]").accepted
    deep = b"[" * 300 + b"]" * 300
    for other, is_other in ((deep, False), (b"[" * 300 + b"1" + b"]" * 300, True)):
        both = b"[" + deep + b"," + other + b"]"
        assert index.match(both).accepted == is_other


def test_guides_fork_and_roll_back() -> None:
    index = compiled(ENDLESS["pairs"])
    guide = sg.Guide(index)
    for byte in b'[{"a": "x", "b": 1}, {"a": "x", "b": ':
        assert guide.advance(byte)
    fork = guide.fork()
    assert fork.advance(ord("1"))
    assert ord("}") not in allowed(fork)
    for byte in b"2}":
        assert fork.advance(byte)
    fork.rollback(2)
    assert ord("}") not in allowed(fork)
    assert guide.advance(ord("2"))
    assert ord("}") in allowed(guide)
