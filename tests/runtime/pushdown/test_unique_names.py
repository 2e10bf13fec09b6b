"""Objects whose names must differ: which have been there is part of the configuration.

The judges: Python's ``json``, by ``object_pairs_hook``, says which texts have a name twice, `jsonschema` which are
valid. Of schemas with finitely many texts all are spelled out, and a token is allowed if and only if some text goes
on with it. Of others what a text begins is tried with endings.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from judges.finite_texts import check_masks, is_valid
from judges.guides import allowed, with_bytes
from judges.json_judge import Judge

import structgen as sg
from structgen.correction.endings import shortest_ending
from structgen.definitions.canonical import definition_of
from structgen.errors import DefinitionError, EmptyLanguageError, UnsupportedError
from structgen.runtime.pushdown.distinct.machine import DistinctMachine

WORDS = [
    *b"""{"a": ,"a" "a": {"a":1,"a" {"a":1,"b" 1,"a":2 ,"b":{"a" "},"a": },"b": }," ":[{" ],"a": a":""".split(),
    b', "', b'", "', b'": "', b', "a": {', b'1, "b": 2, "b"', b'"}, "', rb'\u0061":',
]  # fmt: skip
VOCABULARY = with_bytes(*WORDS)

ONE, FLAG = {"const": 1}, {"type": "boolean"}


def named(pattern: str, value: Any, most: int, **more: Any) -> dict[str, Any]:
    found = {"type": "object", "patternProperties": {pattern: value}, "additionalProperties": False}
    return {**found, "maxProperties": most, **more}


DECLARED = {"properties": {"a": ONE, "c": FLAG}, "required": ["c"]}
MANY = dict.fromkeys("cdefg", ONE)

#: Schemas of finitely many texts, and options.
FINITE: dict[str, tuple[Any, dict[str, Any]]] = {
    "few": (named("^[ab]$", {"enum": [1, 2]}, 3), {}),
    "beginning alike": (named("^(a|ab|abc)$", {"enum": [1, 12]}, 3), {}),
    "up to two letters": (named("^[ab]{1,2}$", ONE, 2), {}),
    "of no letters": (named("^a?$", FLAG, 3), {}),
    "behind declared ones": (named("^[ab]$", {"enum": [1, "a"]}, 4, **DECLARED), {}),
    "beside declared ones": (named("^[abd]$", ONE, 3, **DECLARED), {"property_order": "any"}),
    "beside many": (named("^[abhi]$", ONE, 2, properties=MANY), {"property_order": "any"}),
    "within": (named("^[ab]$", named("^[ab]$", ONE, 2), 2), {}),
    "within declared ones": ({"type": "object", "properties": {"a": named("^[ab]$", FLAG, 3)}, "required": ["a"],
                              "additionalProperties": False}, {}),
    "in arrays": ({"type": "array", "items": named("^[ab]$", ONE, 2), "maxItems": 2}, {}),
    "in sets": ({"type": "array", "items": named("^[ab]$", ONE, 2), "maxItems": 2, "uniqueItems": True}, {}),
    "of sets": (
        named("^[ab]$", {"type": "array", "items": {"enum": [*range(13)]}, "maxItems": 1, "uniqueItems": True}, 2), {}
    ),
    "around sets of others": (
        named("^[ab]$", {"type": "array", "items": named("^[a]$", ONE, 1), "maxItems": 2, "uniqueItems": True}, 2), {}
    ),
    "either": ({"anyOf": [named("^[ab]$", ONE, 3), named("^[bc]$", FLAG, 2)]}, {}),
    "spelled": (named("^[ab]$", ONE, 2), {"escapes": "any"}),
    "spaced": (named("^[ab]$", ONE, 2), {"whitespace": "single"}),
    "indented": (named("^[ab]$", named("^[ab]$", ONE, 2), 2), {"whitespace": 1}),
}  # fmt: skip


def compiled(schema: Any, vocabulary: sg.Vocabulary = VOCABULARY, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, **{"unique_names": True, **options}), vocabulary, eager=False)


@pytest.mark.parametrize("name", FINITE)
def test_masks_by_all_texts(name: str) -> None:
    schema, options = FINITE[name]
    options = {"whitespace": "compact", **options}
    wanted, without = (sg.JsonSchema(schema, unique_names=each, **options) for each in (True, False))
    check_masks(wanted, without, lambda text: is_valid(schema, text))


TREE = {"type": "object", "properties": {"v": {"type": "integer"}}, "additionalProperties": {"$ref": "#"}}

#: Schemas of names without end, and options.
ENDLESS: dict[str, tuple[Any, dict[str, Any]]] = {
    "anything": (True, {}),
    "in any order": ({"type": "object", "properties": {"a": {}, "b": {}}}, {"property_order": "any"}),
    "beside many": ({"properties": {name: {} for name in "abcdefgh"}}, {"property_order": "any"}),
    "recursive": (TREE, {}),
    "patterns": ({"patternProperties": {"^a": {}, "b": {}}, "additionalProperties": False, "type": "object"}, {}),
    "at least": ({"type": "object", "minProperties": 3}, {}),
    "bounded": ({"type": "object", "additionalProperties": {"maxProperties": 2}}, {}),
    "required": ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}, {}),
    "some": ({"type": "object", "not": {"additionalProperties": {"type": "integer"}}}, {}),
    "sets": ({"type": ["array", "object"], "items": {}, "uniqueItems": True}, {}),
    "within sets": ({"items": {"uniqueItems": True}, "additionalProperties": {"uniqueItems": True}}, {}),
}


def spelled(value: Any, random: Random) -> str:
    """A value as JSON, with names again at times."""
    if isinstance(value, dict):
        members = [f"{spelled(name, random)}: {spelled(each, random)}" for name, each in value.items()]
        if members and random.random() < 0.2:
            again = f"{spelled(random.choice([*value]), random)}: {random.choice(['1', '[1]', '{}'])}"
            members.insert(random.randrange(len(members) + 1), again)
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spelled(each, random) for each in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(random.choice([letter, f"\\u{ord(letter):04x}"]) for letter in value) + '"'
    return json.dumps(value)


def drawn(random: Random, depth: int) -> Any:
    kind = random.randrange(4 if depth else 1)
    if kind == 0:
        return random.choice([None, 1, 2, "a", "a,"])
    if kind == 1:
        return [drawn(random, depth - 1) for _ in range(random.randrange(3))]
    names = random.sample(["a", "b", "ab", "v", "é"], random.randrange(4))
    return {name: drawn(random, depth - 1) for name in names}


def texts_of(name: str, random: Random) -> tuple[sg.Index, sg.Index, bytes]:
    """The index of a schema, one that takes names twice, and a text of the latter."""
    schema, options = ENDLESS[name]
    index, syntax = (compiled(schema, escapes="any", unique_names=each, **options) for each in (True, False))
    assert isinstance(index.machine, DistinctMachine)
    while True:
        text = spelled(drawn(random, 3), random).encode()
        if len(text) > 12 and syntax.match(text).accepted:
            return index, syntax, text


@pytest.mark.nightly
@pytest.mark.parametrize("name", ENDLESS)
def test_json_decides_texts(name: str) -> None:
    random, seen = Random(name), {True: 0, False: 0}
    for _ in range(400):
        index, _, text = texts_of(name, random)
        expected = is_valid(ENDLESS[name][0], text)
        assert index.match(text).accepted == expected, text
        seen[expected] += 1
        if min(seen.values()) > 15:
            break
    assert min(seen.values()) > 3


@pytest.mark.nightly
@pytest.mark.parametrize("name", ENDLESS)
def test_masks_are_what_can_be_completed(name: str) -> None:
    random, refused = Random(name), 0
    for _ in range(10):
        index, syntax, text = texts_of(name, random)
        guide, plain, begun = sg.Guide(index), sg.Guide(syntax), b""
        stop = random.randrange(len(text))
        for byte in text[:stop]:
            if byte not in allowed(guide):
                break
            assert guide.advance(byte)
            assert plain.advance(byte)
            begun += bytes((byte,))
        mask, without = set(allowed(guide)), set(allowed(plain))
        assert mask <= without
        for token in without & {*b'"\\,:]}{[ ab01u', *range(256, 256 + len(WORDS))}:
            after = begun + (VOCABULARY.token(token) or b"")
            can = any(is_valid(ENDLESS[name][0], each) for each in completed(syntax, after))
            assert (token in mask) == can, (after, token)
            refused += token not in mask
    assert refused


def completed(syntax: sg.Index, text: bytes) -> list[bytes]:
    """Texts that begin like one, if any does; a scalar in progress becomes one that is in no test, in some."""
    found = []
    for more in (b"", b"zq", b"7", b'"zq', b"0061zq", b"u0061zq", b"07", b' "zq'):
        guide = sg.Guide(syntax)
        if all(guide.advance(byte) for byte in text + more):
            endings = shortest_ending(syntax, guide.config), b'":"z"}', ended(syntax, text + more)
            found += [text + more + each for each in endings if each is not None]
    return found


def ended(syntax: sg.Index, text: bytes) -> bytes | None:
    """The brackets that end a text, behind some more members."""
    ending = b""
    for _ in range(8):
        if syntax.match(text + ending).accepted:
            return ending
        members = b'"ya":7,"yb":7,"yc":"z"}'
        before = (b",", b'",', b'":7,', b":7,", b"")
        longer = (ending + each for each in (*(some + members for some in before), b"}", b"]"))
        taken = (each for each in longer if syntax.match(text + each).consumed == len(text + each))
        ending = next(taken, ending)
    return None


def test_names_of_names_that_run_out() -> None:
    """What must be there has names for it, or is refused."""
    pattern = {"patternProperties": {"^[a-j]{2}$": {}}, "additionalProperties": False, "type": "object"}
    assert compiled({**pattern, "minProperties": 100}).match(b"{}").consumed == 1
    with pytest.raises(EmptyLanguageError):
        compiled({**pattern, "minProperties": 101})
    beside = {**pattern, "properties": {"x": {}, "aa": {}}}
    assert compiled({**beside, "minProperties": 99}).match(b"{}").consumed == 1
    with pytest.raises(UnsupportedError, match="unique_names"):
        compiled({**beside, "minProperties": 101})  # without "x" there is no text
    relaxed = compiled({**beside, "minProperties": 101}, lenient=True)
    assert any("unique_names" in each for each in relaxed.relaxations)
    some = {"not": {"patternProperties": {"^[a-j]{2}$": {"type": "integer"}}}}
    with pytest.raises(UnsupportedError, match="unique_names"):
        compiled({**pattern, **some})


INTEGER = {"type": "integer"}

#: Schemas in which a name that comes twice can change the verdict, without the option.
TOLD: dict[str, Any] = {
    "two members": {"minProperties": 2},
    "two beside one": {"properties": {"a": {}}, "required": ["a"], "minProperties": 3},
    "more than one": {"not": {"maxProperties": 1}},
    "none of some": {"minProperties": 3, "maxProperties": 3},
    "some other": {"not": {"additionalProperties": INTEGER}},
    "a name of a class": {"not": {"patternProperties": {"^a": INTEGER}}},
    "two kinds": {"not": {"anyOf": [{"additionalProperties": each} for each in (INTEGER, {"type": "string"})]}},
    "else": {"if": {"additionalProperties": INTEGER}, "else": {"minProperties": 2}},
    "then": {"if": {"additionalProperties": INTEGER}, "then": {"maxProperties": 1}},
    "one of": {"oneOf": [{"additionalProperties": INTEGER}, {"required": ["a"]}]},
    "unevaluated": {"not": {"properties": {"a": {}}, "unevaluatedProperties": INTEGER}},
    "either": {"anyOf": [{"minProperties": 2}, {"required": ["b"]}]},
    "within": {"additionalProperties": {"minProperties": 2}},
}

#: Schemas in which it cannot.
UNTOLD: dict[str, Any] = {
    "one member": {"minProperties": 1},
    "one beside one": {"properties": {"a": {}}, "required": ["a"], "minProperties": 2},
    "at most": {"maxProperties": 2},
    "all": {"additionalProperties": INTEGER, "properties": {"a": {"type": "null"}}},
    "names": {"not": {"propertyNames": {"pattern": "^a"}}},
    "closed": {"properties": {"a": {}, "b": {}, "v": {}}, "additionalProperties": False, "minProperties": 2},
    "few names": {"patternProperties": {"^[abv]$": {}}, "additionalProperties": False, "minProperties": 2},
}


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("name", [*TOLD, *UNTOLD])
def test_names_are_told_apart_where_they_matter(name: str, order: str) -> None:
    """Python's ``json`` keeps the last member of a name, and `jsonschema` judges that."""
    schema = {"type": "object", **{**TOLD, **UNTOLD}[name]}
    index = compiled(schema, unique_names=False, property_order=order, escapes="any")
    assert isinstance(index.machine, DistinctMachine) == (name in TOLD)
    judge, random, seen = Judge(schema), Random(name), [0, 0]
    for _ in range(400):
        names = random.sample(["a", "b", "ab", "v"], random.randint(1, 3))
        text = spelled({name: drawn(random, 1) for name in names}, random).encode()
        is_accepted = index.match(text).accepted
        is_twice = has_name_twice(text)
        if is_accepted:
            assert judge.is_valid(text, keep_last=True), text
        elif order == "any" and not is_twice:
            assert not judge.is_valid(text), text
        seen[is_twice] += is_accepted
    assert seen[False] > 3
    assert seen[True] > 3 or name not in ("one member", "at most", "names")


def has_name_twice(text: bytes) -> bool:
    """Whether an object of a text has a name twice."""
    found: list[bool] = []
    json.loads(text, object_pairs_hook=lambda members: found.append(len(dict(members)) < len(members)))
    return any(found)


def test_closed_objects_cost_nothing() -> None:
    flags = {"type": "array", "items": FLAG}
    closed = {"type": "object", "properties": {"a": FLAG, "b": flags}, "additionalProperties": False}
    assert not isinstance(compiled(closed).machine, DistinctMachine)
    assert not isinstance(compiled(True, unique_names=False).machine, DistinctMachine)


def test_guides_fork_roll_back_and_jump_forward() -> None:
    index = compiled({"type": "object", "patternProperties": {"^[ab]b*$": ONE}, "additionalProperties": False})
    guide = sg.Guide(index)
    for byte in b'{"a": 1, "':
        assert guide.advance(byte)
    fork = guide.fork()
    assert fork.advance(ord("a"))
    assert allowed(fork) == [ord("b")]
    assert fork.forced_bytes().startswith(b"b")
    for byte in b'b": 1, "ab':
        assert fork.advance(byte)
    assert ord('"') not in allowed(fork)
    fork.rollback(2)
    assert {ord("a"), ord("b")} <= {*allowed(fork)}
    assert guide.advance(ord("b"))
    assert ord('"') in allowed(guide)


def test_files_and_definitions_keep_the_option() -> None:
    definition = sg.JsonSchema(True, unique_names=True, max_items=3)
    index = sg.Index.from_buffer(compiled(True, max_items=3).to_bytes(), VOCABULARY)
    assert index.match(b'{"a": 1, "a": 1}').consumed == 11
    assert index.definition == definition.canonical()
    assert definition_of("json_schema", index.definition) == definition
    assert definition.canonical() != sg.JsonSchema(True, max_items=3).canonical()
    assert repr(definition) == "JsonSchema('true', max_items=3, unique_names=True)"
    with pytest.raises(DefinitionError, match="unique_names"):
        sg.JsonSchema(True, unique_names="yes")  # type: ignore[arg-type]


def test_structural_tags() -> None:
    def tags(*values: bool) -> sg.Index:
        schema = {"type": "json_schema", "json_schema": True}
        elements = [{**schema, "options": {"unique_names": each}} for each in values]
        return sg.compile(sg.StructuralTag({"type": "or", "elements": elements}), VOCABULARY, eager=False)

    text = b'[{"a": 1, "a": 1}]'
    assert [tags(*each).match(text).accepted for each in ((True,), (True, False), (False,))] == [False, True, True]
    common = sg.StructuralTag({"type": "json_schema", "json_schema": True}, unique_names=True)
    assert not sg.compile(common, VOCABULARY, eager=False).match(text).accepted


def test_tags_with_options_of_their_own_share_an_array() -> None:
    """Arrays of both are told apart from the same byte on, and the names of one of them alone."""
    schema = {"type": "array", "items": {"type": "object"}, "uniqueItems": True}
    elements = [
        {"type": "sequence", "elements": [
            {"type": "json_schema", "json_schema": schema, "options": {"unique_names": each}},
            {"type": "const_string", "value": end},
        ]} for each, end in ((True, "!"), (False, "?"))
    ]  # fmt: skip
    index = sg.compile(sg.StructuralTag({"type": "or", "elements": elements}), VOCABULARY, eager=False)
    for text, ends in ((b'[{"a": 1, "a": 2}]', "?"), (b'[{"a": 1}]', "!?"), (b'[{"a": 1, "a": 2}, {"a": 2}]', "")):
        assert "".join(end for end in "!?" if index.match(text + end.encode()).accepted) == ends


def test_reasons_and_certificates() -> None:
    index = compiled(True)
    (reason,) = sg.explain(index, b'{"a": {"b": 1, "b": 2}}').reasons
    assert reason.where == ("unique_names",)
    assert reason.path == "/a"
    assert sg.explain(index, b'{"a": {"b": 1}, "b": 2}').accepted
    certificate = sg.certify(index, items=["no_dead_end", "end_of_text"])
    assert {item.verdict for item in certificate.items} == {"proved"}


def test_where_no_set_is_kept() -> None:
    """Where members are in tags. Of values in them, which are JSON, it is."""
    free, style = {"type": "object"}, "qwen_xml"
    with pytest.raises(UnsupportedError, match="unique_names"):
        sg.compile(sg.JsonSchema(free, unique_names=True, style=style), VOCABULARY, eager=False)
    schema = {"properties": {"x": free, "y": free}, "additionalProperties": False, "type": "object"}
    index = sg.compile(sg.JsonSchema(schema, unique_names=True, style=style), VOCABULARY, eager=False)
    for x, y in ((b'{"a": 1}', b'{"a": 2}'), (b'{"a": 1, "a": 2}', b"{}"), (b"{}", b'{"a": {"b": 1, "b": 1}}')):
        text = b"<parameter=x>\n%s\n</parameter>\n<parameter=y>\n%s\n</parameter>" % (x, y)
        assert index.match(text).accepted == (x == b'{"a": 1}')
    with pytest.raises(UnsupportedError, match="max_tokens"):
        sg.Guide(compiled(free), max_tokens=10)


def test_long_objects() -> None:
    index = compiled(True)
    text = json.dumps({f"k{number}": number for number in range(400)}).encode()
    assert index.match(text).accepted
    assert index.match(text[:-1] + b', "k123": 1}').consumed == len(text) - 1 + len(b', "k123')
