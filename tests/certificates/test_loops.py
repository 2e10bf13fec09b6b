"""Counted loops of many turns, judged by closed formulas; and what lies behind as many turns as a text takes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import pytest

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.certificates.languages import GreibachLanguage
from structgen.certificates.loops import DoubledLoops

VOCABULARY = sg.Vocabulary.bytewise()


class Known(NamedTuple):
    """A pattern whose texts are known: how many, and the bytes of the shortest and of the longest."""

    pattern: str
    number: int
    shortest: int
    longest: int


def code(draw: random.Random) -> Known:
    """Words of which none begins another: what is put together of them is so in one way."""
    words = [""]
    for _ in range(draw.randint(1, 4)):
        at = words.pop(draw.randrange(len(words)))
        words += [at + "a", at + "b"]
    words = draw.sample(words, draw.randint(1, len(words)))
    lengths = [len(word) for word in words]
    return Known(f"(?:{'|'.join(words)})", len(words), min(lengths), max(lengths))


def powers(base: int, most: int) -> int:
    """The sum of the powers of a number up to one of them."""
    return most + 1 if base == 1 else (base ** (most + 1) - 1) // (base - 1)


def repeated(part: Known, least: int, most: int, end: str = "") -> Known:
    """So many turns of it, and an end that no part has."""
    number = powers(part.number, most) - powers(part.number, least - 1)
    pattern = f"(?:{part.pattern}{{{least},{most}}}{end})"
    return Known(pattern, number, part.shortest * least + len(end), part.longest * most + len(end))


def drawn(count: int) -> Iterator[Known]:
    """Loops, and loops in loops of a few turns."""
    draw = random.Random(8)
    for _ in range(count):
        least = draw.choice([0, 1, 2, 17, 300])
        known = repeated(code(draw), least, least + draw.choice([0, 1, 15, 16, 31, 700]), "c")
        yield repeated(known, draw.randint(0, 2), draw.randint(2, 3)) if draw.random() < 0.4 else known


def definition(kind: str, pattern: str) -> sg.Definition:
    """The same texts in another language."""
    if kind == "regex":
        return sg.Regex(pattern)
    if kind == "schema":
        return sg.JsonSchema({"type": "string", "pattern": f"^{pattern}$"})
    spelled = "".join(f'"{c}" ' if c in "abc" else c for c in pattern.replace("?:", ""))
    return sg.Gbnf(f"root ::= {spelled}")


@pytest.mark.parametrize("kind", ["regex", "gbnf", "schema"])
def test_many_turns(kind: str) -> None:
    quotes = 2 * (kind == "schema")
    for known in drawn(12):
        index = sg.compile(definition(kind, known.pattern), VOCABULARY, eager=False)
        certificate = sg.certify(index, items=["no_dead_end", "language", "shortest_and_longest"])
        ends = certificate["shortest_and_longest"].facts
        assert [item.verdict for item in certificate.items] == ["proved"] * 3, known
        assert certificate["language"].facts["digits"] == Decimal(known.number).adjusted() + 1, known
        assert certificate["language"].facts["texts"] == (known.number if known.number < 10**100 else None), known
        assert ends["shortest"]["bytes"] == known.shortest + quotes, known
        assert ends["longest"]["bytes"] == known.longest + quotes, known
        assert index.machine.match(ends["longest"]["text"].encode()).accepted


@pytest.mark.parametrize(("schema", "number", "longest"), [
    ({"type": "array", "items": {"enum": [True, 1, None]}, "maxItems": 3000},
     powers(3, 3000), 2 + 5 * 3000 - 1),
    ({"type": "string", "pattern": "^[a-z]*$", "maxLength": 20_000}, powers(26, 20_000), 20_002),
    ({"type": "array", "items": {"type": "string", "pattern": "^[xy]*$", "maxLength": 300}, "maxItems": 300},
     powers(powers(2, 300), 300), 2 + 303 * 300 - 1),
], ids=["items", "letters", "items of letters"])  # fmt: skip
def test_schemas(schema: object, number: int, longest: int) -> None:
    index = sg.compile(sg.JsonSchema(schema, whitespace="compact"), VOCABULARY, eager=False)
    certificate = sg.certify(index, items=["language", "shortest_and_longest"])
    assert certificate["language"].facts["digits"] == Decimal(number).adjusted() + 1
    assert certificate["shortest_and_longest"].facts["longest"]["bytes"] == longest


def test_doubling_is_as_turn_by_turn() -> None:
    """For texts of each symbol that both have, not only of the start."""
    for known in drawn(8):
        machine = sg.compile(sg.Regex(known.pattern), VOCABULARY, eager=False).machine
        meter = Meter(Budget())
        doubled = GreibachLanguage(DoubledLoops(machine, meter).productions, meter)
        plain = GreibachLanguage(machine.productions, meter)
        costs = dict(zip(plain.symbols, plain.cost, strict=True))
        both = [(symbol, cost) for symbol, cost in zip(doubled.symbols, doubled.cost, strict=True) if symbol in costs]
        assert all(costs[symbol] == cost for symbol, cost in both)
        assert len(both) > 1


def test_no_state_is_lost_where_a_length_and_a_pattern_are_followed_side_by_side() -> None:
    """An address of 39 bytes is no more than 253 characters long, and much more than the least number of them."""
    address = b"1111:2222:3333:4444:5555:6666:7777:8888"
    tokens = [*(bytes([i]) for i in range(256)), address, b".22.333.4", b"6666:7777:1.2", None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])
    schema = {"type": "string", "anyOf": [{"format": "hostname"}, {"format": "ipv4"}, {"format": "ipv6"}]}
    index = sg.compile(sg.JsonSchema(schema), vocabulary, eager=False)
    assert index.machine.match(b'"%s"' % address).accepted
    certificate = sg.certify(index, items=["no_dead_end", "never_allowed"])
    assert certificate["no_dead_end"].verdict == "proved"
    never = certificate["never_allowed"]
    assert {256, 257, 258}.isdisjoint(never.facts["ids"])
    assert never.verdict == "proved"
