"""Sets of JSON numbers against brute force: every short text, `Decimal`, and the `jsonschema` package."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.guides import BYTES
from judges.json_judge import Judge
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.automata.dfa import Dfa
from structgen.compiler.json_schema.numbers import dfa as dfa_module
from structgen.compiler.json_schema.numbers import numbers as numbers_module
from structgen.compiler.json_schema.numbers.interval_set import IntervalSet
from structgen.compiler.json_schema.numbers.numbers import NumberSet
from structgen.errors import BudgetExceededError, EmptyLanguageError

METER = Meter(Budget(seconds=100_000))  # from when the module is imported

PLAIN = re.compile(r"-?(0|[1-9]\d*)")
FRACTION = re.compile(r"-?(0|[1-9]\d*)\.\d+")
SCIENTIFIC = re.compile(r"-?[1-9](\.\d+)?[eE][+-]?(\d|0\d|[1-9]\d+)")
JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")

#: All texts of up to five of these characters, and a few that are longer.
TEXTS = ["".join(t) for n in range(6) for t in itertools.product("-.0125e", repeat=n)]
TEXTS += [m + e for m in ("1", "-2", "1.5", "2.01", "5.000", "9.99") for e in ("e-12", "E-12", "e+20", "e21", "e-05")]
TEXTS += ["100.5", "99.995", "-12.05", "21.250", "1200000000000", "-0.00001", "+1", "1e", "01", " 1", "1 "]

POINTS = [
    *map(Decimal, ("0", "1", "2", "5", "0.5", "1.5", "-1", "-2.5", "10", "12", "-12", "0.05", "1.2", "100", "-0.1")),
    *map(Decimal, ("21.25", "250", "2e1", "1e-3", "5e-12", "2e20", "-2.05e2", "20.1")),
]
DIVISORS = [
    *map(Decimal, ("1", "2", "5", "0.5", "3", "7", "10", "0.25", "2.5", "0.1", "20", "100", "0.01", "12", "1e-3")),
    *map(Decimal, ("1e-6", "6.5", "8", "15")),
]


def d(text: str) -> Decimal:
    return Decimal(text)


def accepts(dfa: Dfa, text: str) -> bool:
    state = dfa.start if dfa.states else -1
    for byte in text.encode():
        if state < 0:
            return False
        state = int(dfa.table[state, dfa.classes[byte]])
    return state >= 0 and bool(dfa.accepting[state])


def interval(rng: random.Random) -> NumberSet:
    low, high = rng.choice([*POINTS, None]), rng.choice([*POINTS, None])
    if low is not None and high is not None and low > high:
        low, high = high, low
    return NumberSet.interval(low, high, rng.random() < 0.5, rng.random() < 0.5)


def atom(rng: random.Random) -> NumberSet:
    kind = rng.randrange(4)
    if kind == 0:
        return NumberSet.literal(rng.sample(POINTS, rng.randrange(4)))
    if kind == 1:
        return rng.choice([NumberSet.INTEGERS, NumberSet.PLAIN_INTEGERS])
    return NumberSet.multiples(rng.choice(DIVISORS)) if kind == 2 else interval(rng)


def combined(rng: random.Random, depth: int) -> NumberSet:
    if depth == 0:
        return atom(rng)
    a, kind = combined(rng, depth - 1), rng.randrange(3)
    if kind == 0:
        return a.complement(METER)
    b = combined(rng, rng.randrange(depth))
    return a.intersect(b, METER) if kind == 1 else a.union(b, METER)


# -- spellings against membership --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(draws(60)))
def test_spellings_are_of_members_and_of_each(seed: int) -> None:
    rng = random.Random(seed)
    numbers = combined(rng, rng.randrange(4))
    dfa = numbers.dfa(METER)
    for text in TEXTS:
        if accepts(dfa, text):
            assert JSON_NUMBER.fullmatch(text), text
            assert Decimal(text) in (numbers if PLAIN.fullmatch(text) else numbers.other), text
            continue
        plain = PLAIN.fullmatch(text) and text != "-0"
        if plain or (FRACTION.fullmatch(text) and Decimal(text) % 1 and not text.endswith("0")):
            assert Decimal(text) not in numbers, text


@pytest.mark.parametrize("seed", range(draws(60)))
def test_only_free_numbers_have_exponents(seed: int) -> None:
    rng = random.Random(seed)
    numbers = interval(rng)
    for _ in range(rng.randrange(3)):
        numbers = numbers.union(interval(rng), METER)
    if numbers.values(1000) is not None:
        return
    beside = numbers.union(NumberSet.multiples(rng.choice(DIVISORS)), METER)
    for each in (numbers, beside, beside.complement(METER)):
        if each.values(1000) is None:
            dfa = each.dfa(METER)
            assert all(accepts(dfa, text) == each.is_any() for text in filter(SCIENTIFIC.fullmatch, TEXTS))


@settings(max_examples=draws(200))
@given(st.decimals(allow_nan=False, allow_infinity=False, places=3), st.integers(0, 10**6), st.integers(-3, 3))
def test_near_a_bound(bound: Decimal, seed: int, step: int) -> None:
    rng = random.Random(seed)
    exclusive = rng.random() < 0.5
    low = rng.random() < 0.5
    numbers = NumberSet.interval(bound, None, exclusive) if low else NumberSet.interval(None, bound, False, exclusive)
    exact = int(bound.scaleb(3)) + step if abs(bound) < 10**20 else 0
    value = Decimal(exact).scaleb(-3)
    text = f"{value:f}" + "0" * rng.randrange(3)
    if exact or numbers.intersect(NumberSet.interval(None, d("0"), False, True), METER).is_empty() is False:
        assert accepts(numbers.dfa(METER), text) == (value in numbers)


@settings(max_examples=draws(100))
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_floats_as_python_writes_them(value: float, bound: float) -> None:
    dfa, text = NumberSet.interval(Decimal(repr(bound))).dfa(METER), json.dumps(value)
    assert accepts(NumberSet.ANY.dfa(METER), text)
    if value or bound < 0:
        assert accepts(dfa, f"{Decimal(text):f}") == (value >= bound)
        assert accepts(dfa, text) == (value >= bound and "e" not in text)


@settings(max_examples=draws(100))
@given(st.integers(-(10**7), 10**7), st.integers(1, 60), st.integers(0, 3))
def test_multiples(value: int, divisor: int, places: int) -> None:
    number, unit = Decimal(value).scaleb(-places), Decimal(divisor).scaleb(-2)
    numbers = NumberSet.multiples(unit)
    assert (number in numbers) == (number % unit == 0)
    if value:
        assert accepts(numbers.dfa(METER), f"{number:f}") == (number % unit == 0)


@pytest.mark.parametrize("keyword", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
def test_jsonschema_agrees(keyword: str) -> None:
    """On numbers that floats hold exactly; elsewhere `multipleOf` in floats is off, and the exact answer counts."""
    for limit in ("1", "2", "5", "0.5", "2.5", "10", "12.25"):
        schema: dict[str, Any] = {keyword: float(limit)}
        bounds = {keyword: d(limit)}
        numbers = (
            NumberSet.multiples(d(limit))
            if keyword == "multipleOf"
            else NumberSet.interval(
                bounds.get("minimum", bounds.get("exclusiveMinimum")),
                bounds.get("maximum", bounds.get("exclusiveMaximum")),
                "exclusiveMinimum" in bounds,
                "exclusiveMaximum" in bounds,
            )
        )
        validator = jsonschema.Draft202012Validator(schema)
        dfa = numbers.dfa(METER)
        for text in ("0", "1", "-1", "2", "2.5", "2.50", "10", "12.25", "12.5", "12.24", "0.25", "5.0", "-10", "1e2"):
            assert accepts(dfa, text) == ("e" not in text and validator.is_valid(json.loads(text))), (limit, text)


def drawn(rng: random.Random) -> Decimal:
    """A number of any size that schemas and programs have."""
    return Decimal(rng.randrange(-(10 ** rng.randrange(1, 9)), 10 ** rng.randrange(1, 9))).scaleb(rng.randrange(-9, 9))


def assertions(rng: random.Random, met: list[Decimal], depth: int = 1) -> dict[str, Any]:
    """Random bounds and divisors, whose numbers are added to ``met``."""
    schema: dict[str, Any] = {}
    for names in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"), ("multipleOf",)):
        if rng.random() < 0.5:
            value = rng.choice(DIVISORS) if names == ("multipleOf",) else drawn(rng)
            schema[rng.choice(names)] = float(value)
            met.append(Decimal(repr(float(value))))
    if depth and rng.random() < 0.5:
        inner = assertions(rng, met, depth - 1)
        keyword = rng.choice(["not", "anyOf", "oneOf", "if"])
        schema[keyword] = inner if keyword in ("not", "if") else [inner, assertions(rng, met, depth - 1)]
        if keyword == "if":
            schema["then"] = assertions(rng, met, depth - 1)
    return schema


def spellings_near(rng: random.Random, value: Decimal) -> Iterator[str]:
    """A number at or beside another, as a decimal without needless zeros, and in other ways."""
    step = Decimal(rng.choice([0, 0, 1, -1])).scaleb(rng.randrange(-6, 3))
    number = (value + step) * rng.choice([1, 1, 2, 3, -1])
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if number:
        yield text
        yield text + ("0" if "." in text else ".0")
        yield from (json.dumps(float(number)), f"{number:e}", f"{number.normalize():E}")


@pytest.mark.parametrize("seed", range(draws(150)))
def test_random_assertions_against_jsonschema(seed: int) -> None:
    """Nothing invalid is taken, in whatever spelling, and all that is valid is, as a decimal."""
    rng = random.Random(seed)
    met: list[Decimal] = [Decimal(1)]
    schema = {"type": "number", **assertions(rng, met)}
    judge, index = Judge(schema), None
    with contextlib.suppress(EmptyLanguageError):
        index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False, base_rows=False)
    for _ in range(60):
        value = rng.choice(met) if rng.random() < 0.7 else drawn(rng)
        for k, text in enumerate(spellings_near(rng, value)):
            is_taken, is_valid = index is not None and index.match(text.encode()).accepted, judge.is_valid(text)
            assert is_valid or not is_taken, (schema, text)
            if k == 0:
                assert is_taken or not is_valid, (schema, text)


# -- how integers and literals are written -----------------------------------------------------------------


def spelled(numbers: NumberSet, *texts: str) -> list[bool]:
    dfa = numbers.dfa(METER)
    return [accepts(dfa, text) for text in texts]


def test_any_number_is_the_grammar_of_json() -> None:
    dfa = NumberSet.ANY.dfa(METER)
    for text in TEXTS:
        assert accepts(dfa, text) == bool(JSON_NUMBER.fullmatch(text)), text


def test_integers_are_written_without_a_fraction() -> None:
    assert spelled(NumberSet.INTEGERS, "0", "-0", "12", "-7", "1.0", "1e2", "01", "-") == [True] * 4 + [False] * 4
    assert d("1.0") in NumberSet.INTEGERS
    assert d("1.0") not in NumberSet.PLAIN_INTEGERS
    assert d("1.0") in NumberSet.PLAIN_INTEGERS.complement(METER)


def test_not_an_integer() -> None:
    assert spelled(NumberSet.INTEGERS.complement(METER), "1", "1.0", "1.05", "5e-07") == [False, False, True, False]
    assert spelled(NumberSet.PLAIN_INTEGERS.complement(METER), "1", "1.0", "1.05") == [False, True, True]


def test_whole_multiples_may_have_a_fraction() -> None:
    assert spelled(NumberSet.multiples(d("1")), "10", "10.0", "10.00", "10.01") == [True, True, True, False]
    assert spelled(NumberSet.multiples(d("1e-8")), "1e-05", "0.00000001", "0.000000015") == [False, True, False]


def test_no_minus_sign_leads_to_zero_alone() -> None:
    assert spelled(NumberSet.interval(d("0")), "0", "-0", "-0.0", "0.0") == [True, False, False, True]
    assert spelled(NumberSet.interval(d("-1")), "0", "-0", "-0.0") == [True, True, True]


def test_literals_are_written_as_writers_do() -> None:
    numbers = NumberSet.literal([d("1"), d("2.0"), d("2.50"), d("1e22"), d("0.00001")])
    dfa = numbers.dfa(METER)
    for text in ("1", "2", "2.0", "2.5", "1e+22", "1e22", "1e-05", "1e-5", "0.00001", "1" + "0" * 22):
        assert accepts(dfa, text) == (text != "1" + "0" * 22 or d(text) in numbers), text
    for text in ("1.0", "2.00", "2.50", "2.5e0", "3", ""):
        assert not accepts(dfa, text), text


def test_an_integer_literal_in_an_enum_of_floats() -> None:
    """``"enum": [0.9, 1.0]``: what Python reads and writes as 1.0 stays possible."""
    assert spelled(NumberSet.literal([d("0.9"), d("1.0")]), "0.9", "1.0", "1") == [True, True, True]


# -- algebra -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(draws(60)))
def test_laws(seed: int) -> None:
    rng = random.Random(seed)
    a, b, c = (combined(rng, rng.randrange(3)) for _ in range(3))
    values = [Decimal(rng.randrange(-4000, 4000)).scaleb(-rng.randrange(4)) for _ in range(200)] + POINTS + DIVISORS
    both, either, none = a.intersect(b, METER), a.union(b, METER), a.complement(METER)
    for value in values:
        assert (value in both) == (value in a and value in b)
        assert (value in either) == (value in a or value in b)
        assert (value in none) == (value not in a)
    assert a.intersect(none, METER).is_empty()
    assert a.union(none, METER).is_any()
    assert a.intersect(a, METER) == a
    assert both == b.intersect(a, METER)
    assert either == b.union(a, METER)
    assert not either.complement(METER).intersect(a, METER).values(5)
    distributed = both.union(a.intersect(c, METER), METER)
    for value in values:
        assert (value in distributed) == (value in a.intersect(b.union(c, METER), METER))


def test_equal_sets_have_equal_keys() -> None:
    integers = NumberSet.INTEGERS
    equal = [
        (
            integers.intersect(NumberSet.interval(d("0.5")), METER),
            integers.intersect(NumberSet.interval(d("1")), METER),
        ),
        (NumberSet.interval(d("3"), d("3")), NumberSet.literal([d("3.0")])),
        (NumberSet.multiples(d("2")).intersect(NumberSet.multiples(d("3")), METER), NumberSet.multiples(d("6.0"))),
        (NumberSet.interval(None, d("5")).union(NumberSet.interval(d("4")), METER), NumberSet.ANY),
        (integers.intersect(NumberSet.interval(d("1.2"), d("1.8")), METER), NumberSet.EMPTY),
        (NumberSet.interval(d("1e2")), NumberSet.interval(d("100.0"))),
        (NumberSet.ANY.complement(METER), NumberSet.EMPTY),
    ]
    for a, b in equal:
        assert a == b
        assert hash(a) == hash(b)
    assert NumberSet.literal([d("1")]) != NumberSet.literal([d("2")])


def test_values() -> None:
    small = NumberSet.INTEGERS.intersect(NumberSet.interval(d("-1.5"), d("2"), False, True), METER)
    assert small.values(3) == [d("-1"), d("0"), d("1")]
    assert small.values(2) is None
    assert NumberSet.interval(d("0"), d("1")).values(100) is None
    assert NumberSet.INTEGERS.values(100) is None
    assert NumberSet.EMPTY.values(0) == []
    quarters = NumberSet.multiples(d("0.25")).intersect(NumberSet.interval(d("0"), d("1")), METER)
    assert quarters.values(5) == [d("0"), d("0.25"), d("0.5"), d("0.75"), d("1")]
    assert NumberSet.literal([d("2"), d("1"), d("2.0")]).values(2) == [d("1"), d("2")]
    tens = NumberSet.multiples(d("1e1")).intersect(NumberSet.interval(d("10"), d("30")), METER)
    assert list(map(str, tens.values(9) or [])) == ["10", "20", "30"]


# -- numbers from strangers --------------------------------------------------------------------------------


def test_few_states() -> None:
    """About one state for each digit of a bound, for each final zero of a divisor."""
    assert NumberSet.INTEGERS.intersect(NumberSet.interval(d("0"), d("100")), METER).dfa(METER).states <= 6
    assert NumberSet.interval(None, d("99999999999.99")).dfa(METER).states < 60
    assert NumberSet.multiples(d("1e30")).dfa(METER).states < 40
    assert NumberSet.INTEGERS.intersect(NumberSet.interval(d("0"), d("1e400")), METER).dfa(METER).states < 820


def test_a_set_is_spelled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for its number of states, and again to be lowered."""
    spelled: list[object] = []
    original = dfa_module.number_dfa

    def counted(plain: IntervalSet, written: IntervalSet, meter: Meter, *, free: bool) -> Dfa:
        spelled.append(plain)
        return original(plain, written, meter, free=free)

    monkeypatch.setattr(numbers_module, "number_dfa", counted)
    sg.compile(sg.JsonSchema({"type": "number", "multipleOf": 641}), BYTES, eager=False)
    multiples = NumberSet.multiples(d("641"))
    assert multiples.dfa(METER).states > 641
    assert spelled.count(multiples.plain) == 2


def test_a_large_divisor_in_bounds_is_listed() -> None:
    numbers = NumberSet.multiples(d("123456789")).intersect(NumberSet.interval(d("0"), d("1e10")), METER)
    assert spelled(numbers, "123456789", "9876543120", "123456780", "9999999999") == [True, True, False, False]


ABSURD = ["1e400", "-1e400", "1e-400", "1e999999999", "-1e999999999", "1e-999999999", "1" * 10**5]
ABSURD += ["0." + "3" * 10**5, "3e-150000", "7e15000", "1" * 15_000]


@pytest.mark.parametrize("text", ABSURD, ids=range(len(ABSURD)))
def test_absurd_numbers_end(text: str) -> None:
    began = time.monotonic()
    value = Decimal(text)
    makes: list[Callable[[], NumberSet]] = [
        lambda: NumberSet.literal([value]),
        lambda: NumberSet.interval(value),
        lambda: NumberSet.interval(None, value, False, True).complement(METER),
        lambda: NumberSet.interval(value).intersect(NumberSet.INTEGERS, METER),
        lambda: NumberSet.interval(value).intersect(NumberSet.multiples(d("7")), METER),
        lambda: NumberSet.multiples(value.copy_abs()),
        lambda: NumberSet.multiples(value.copy_abs()).intersect(NumberSet.interval(d("-1"), d("1")), METER),
        lambda: NumberSet.multiples(value.copy_abs()).union(NumberSet.multiples(d("0.3")), METER).complement(METER),
    ]
    for make in makes:
        with contextlib.suppress(BudgetExceededError):
            numbers = make()
            assert isinstance(numbers.is_empty(), bool)
            numbers.values(3)
            assert (value in numbers) != (value in numbers.complement(METER))
            numbers.dfa(Meter(Budget(states=20_000, seconds=5)))
    assert time.monotonic() - began < 30


def test_too_many_divisors() -> None:
    primes = [p for p in range(2, 80) if all(p % q for q in range(2, p))]
    sets = [NumberSet.multiples(Decimal(prime)) for prime in primes]
    with pytest.raises(BudgetExceededError, match="more than 512 ways"):
        functools.reduce(lambda a, b: a.union(b, METER), sets)


@pytest.mark.parametrize("divisor", ["0", "-1", "Infinity"])
def test_divisors_are_positive(divisor: str) -> None:
    with pytest.raises(ValueError, match="positive"):
        NumberSet.multiples(d(divisor))
