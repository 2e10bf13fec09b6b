"""What masks of types let through, Pydantic parses; and what Pydantic writes of values, the masks let through.

What Pydantic checks and no schema says is named in `Index.relaxations`. The judge is Pydantic itself.
"""

from __future__ import annotations

import collections
import datetime as dt
import ipaddress
import json
import pathlib
import random
import re
import sys
import typing
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pydantic
import pytest
from judges.guides import BYTES
from judges.json_texts import random_text
from pydantic import Field

import structgen as sg
from structgen.errors import DefinitionError

#: Fixed, so that each process collects the same tests.
RANDOM_ID = uuid.UUID("3442a02c-85c4-445b-9e96-c60b5f2cf60a")
TIME_ID = uuid.UUID("d89a4d16-eb8b-11f1-a6dd-02fc00000001")


class Colour(Enum):
    RED = "red"
    TWO = 2
    NONE = None


class Level(IntEnum):
    LOW = 1
    HIGH = 20


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    name: str = ""
    kind: Literal["dog"] = "dog"
    barks: float = 0


class Line(pydantic.BaseModel):
    sku: Annotated[str, Field(pattern=r"^\w{2,4}-\S+$")]
    price: Annotated[Decimal, Field(max_digits=8, decimal_places=2, ge=0)]
    per_month: dict[int, Decimal] = Field(default_factory=dict)


class Invoice(pydantic.BaseModel):
    number: pydantic.UUID4
    day: dt.date
    due: pydantic.NaiveDatetime
    site: pydantic.HttpUrl
    lines: list[Line]
    total: Decimal


class Pair(NamedTuple):
    left: Decimal
    right: dt.date = dt.date(2020, 1, 1)


@dataclass
class Job:
    after: dt.timedelta
    retries: Annotated[int, Field(gt=2)] = 3


class Stripped(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(str_strip_whitespace=True, str_min_length=2)
    text: str


class Encoded(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
    some: bytes
    few: Annotated[bytes, Field(min_length=1, max_length=4)]


class Hex(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(val_json_bytes="hex", ser_json_bytes="hex")
    few: Annotated[bytes, Field(min_length=1, max_length=4)]


def decimal(**bounds: Any) -> Any:
    return Annotated[Decimal, Field(**bounds)]


def text(**options: Any) -> Any:
    return Annotated[str, pydantic.StringConstraints(**options)]


#: Strings whose pattern names of members are held to.
Some: Any = text(pattern="^a+$")
Short: Any = text(min_length=2, max_length=3, pattern="a")

#: Types whose masks are what Pydantic parses, with values that it writes.
EXACT: list[tuple[Any, list[Any]]] = [
    (float, [0.1, 1e300, -5e-324]),
    (Annotated[float, Field(gt=0)], [0.00012, 1.5]),
    (pydantic.NegativeFloat, [-0.1, -123456789.25]),
    (pydantic.FiniteFloat, [123456789.25, 0.0]),
    (Decimal, [Decimal("1.50"), Decimal("1E+3"), Decimal("-1E-7"), Decimal("0E-10")]),
    (decimal(max_digits=5), [Decimal("12345"), Decimal("0.00001"), Decimal("-12.345")]),
    (decimal(decimal_places=2), [Decimal("1.50"), Decimal("1E+3"), Decimal("123456789.01")]),
    (decimal(max_digits=5, decimal_places=2), [Decimal("999.99"), Decimal("-0.01"), Decimal("1E+2")]),
    (decimal(max_digits=30, decimal_places=10, gt=0), [Decimal("0.0000000001"), Decimal(10**19)]),
    (decimal(ge=0, le=Decimal("9.99")), [Decimal("9.99"), Decimal("0"), Decimal("9.0000")]),
    (decimal(gt=Decimal("-12.5"), lt=Decimal("100.25")), [Decimal("-12.4999"), Decimal("100.2")]),
    (decimal(gt=Decimal("-0.001"), lt=Decimal("0.001")), [Decimal("-7E-9"), Decimal("0.0009")]),
    (decimal(max_digits=2, decimal_places=4), [Decimal("0.01"), Decimal("-0.5")]),
    (decimal(max_digits=2, decimal_places=2), [Decimal("0.01"), Decimal("-0.5")]),
    (decimal(allow_inf_nan=True), [Decimal("NaN"), Decimal("-Infinity"), Decimal("1.5")]),
    (complex, [1.5 + 2j, -1e30j, 2 + 0j]),
    (Fraction, [Fraction(3, 4), Fraction(-7)]),
    (Annotated[Fraction, Field(gt=0)], [Fraction(3, 4)]),
    (dt.date, [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (Annotated[dt.date, Field(ge=dt.date(2020, 5, 17), lt=dt.date(2021, 3, 1))], [dt.date(2020, 5, 17)]),
    (pydantic.AwareDatetime, [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)]),
    (pydantic.NaiveDatetime, [dt.datetime(2020, 2, 29, 1, 2, 3, 5), dt.datetime(1, 1, 1)]),
    (dt.timedelta, [dt.timedelta.max, dt.timedelta.min, dt.timedelta(400, 5, 6), dt.timedelta(-1, 5)]),
    (Annotated[dt.timedelta, Field(ge=dt.timedelta(0))], [dt.timedelta.max, dt.timedelta(0)]),
    (uuid.UUID, [RANDOM_ID, TIME_ID]),
    (pydantic.UUID1, [TIME_ID]),
    (pydantic.UUID4, [RANDOM_ID]),
    (pydantic.UUID5, [uuid.uuid5(uuid.NAMESPACE_DNS, "a")]),
    (ipaddress.IPv4Address, [ipaddress.IPv4Address("1.2.3.4")]),
    (ipaddress.IPv6Address, [ipaddress.IPv6Address("::1")]),
    (ipaddress.IPv4Network, [ipaddress.IPv4Network("10.0.0.0/8"), ipaddress.IPv4Network("1.2.3.4")]),
    (ipaddress.IPv6Network, [ipaddress.IPv6Network("2001:db8::/32"), ipaddress.IPv6Network("1::1")]),
    (ipaddress.IPv4Interface, [ipaddress.IPv4Interface("1.2.3.4/8")]),
    (ipaddress.IPv6Interface, [ipaddress.IPv6Interface("1::2/8")]),
    (pydantic.IPvAnyAddress, [ipaddress.IPv4Address("1.2.3.4"), ipaddress.IPv6Address("::1")]),
    (pydantic.IPvAnyNetwork, [ipaddress.IPv4Network("10.0.0.0/8")]),
    (pydantic.IPvAnyInterface, [ipaddress.IPv4Interface("1.2.3.4/8")]),
    (pydantic.AnyUrl, ["https://a.example:8/b?c#d", "mailto:a@b.example", "x:///y", "foo://u:p@h/"]),
    (pydantic.HttpUrl, ["https://example.com/a?b=c#d", "http://127.0.0.1:8000/", "http://[::1]/"]),
    (pydantic.WebsocketUrl, ["wss://example.com/"]),
    (pydantic.FtpUrl, ["ftp://example.com/a"]),
    (pydantic.FileUrl, ["file:///etc/hosts"]),
    (pydantic.PostgresDsn, ["postgres://u:p@a:1,b:2/d", "postgresql+asyncpg://a/d"]),
    (pydantic.RedisDsn, ["redis://a:1/0"]),
    (pydantic.MongoDsn, ["mongodb://a,b/c"]),
    (pydantic.AmqpDsn, ["amqp://a/b"]),
    (pydantic.KafkaDsn, ["kafka://a:1"]),
    (pydantic.NatsDsn, ["nats://a:1"]),
    (pydantic.MySQLDsn, ["mysql://a/b"]),
    (pydantic.Base64Bytes, [b"abc", b"a" * 100]),
    (pydantic.Base64UrlBytes, [b"\xff\xef"]),
    (pydantic.SecretStr, []),
    (pydantic.ByteSize, [1024]),
    (text(pattern=r"^\D+$"), ["é-"]),
    (text(pattern=r"^\W\S[^\w]+$"), ["-a-"]),
    (text(pattern=r"^(?P<first>[^\s@]+)@\w+\z"), ["a@b"]),
    (text(pattern=r"(?i)^(?:ab|[]c]{2})$"), ["AB", "]C"]),
    (text(strip_whitespace=True, min_length=2), ["a b"]),
    (text(strip_whitespace=True, pattern="^[a-z ]+$"), ["a b"]),
    (text(to_upper=True, pattern="^[a-z]+$"), []),
    (Annotated[bytes, Field(min_length=2, max_length=8)], [b"ab", b"abcdefgh"]),
    (re.Pattern, []),
    (pathlib.Path, [pathlib.Path("a/b")]),
    (set, [{1, "a"}]),
    (set[Any], [{1, "a"}]),
    (frozenset[dt.date], [frozenset({dt.date(2020, 1, 1)})]),
    (Annotated[set[int], Field(min_length=2)], [{1, 2}]),
    (collections.deque[int], [collections.deque([1])]),
    (dict[int, str], [{1: "a", -20: "b", 0: ""}]),
    (dict[pydantic.PositiveInt, int], [{1: 1, 1000: 2}]),
    (dict[Annotated[int, Field(ge=-3, lt=250)], str], [{-3: "a", 249: "b"}]),
    (dict[float, int], [{1.5: 1, 1e30: 2, -5e-324: 3}]),
    (dict[Decimal, int], [{Decimal("1.5"): 1, Decimal("1E+3"): 1}]),
    (dict[bool, int], [{True: 1}]),
    (dict[Colour, int], [{Colour.RED: 1}]),
    (dict[Level, int], [{Level.HIGH: 1}]),
    (dict[Literal["a", "b"], int], [{"a": 1}]),
    (dict[Optional[int], int], [{1: 1}]),  # noqa: UP045
    (dict[int | dt.date, int], [{1: 1, dt.date(2020, 1, 1): 2}]),
    (dict[tuple[int, int], int], [{}]),
    (dict[dt.date, float], [{dt.date(2020, 1, 1): 1.5}]),
    (dict[dt.timedelta, int], [{dt.timedelta(5): 1}]),
    (dict[uuid.UUID, int], [{RANDOM_ID: 1}]),
    (dict[pydantic.UUID4, int], [{RANDOM_ID: 1}]),
    (dict[ipaddress.IPv4Address, int], [{ipaddress.IPv4Address("1.2.3.4"): 1}]),
    (dict[Some, int], [{"a": 1, "aa": 2}]),
    (dict[Short, int], [{"ab": 1}]),
    (dict[str, dict[int, set[dt.date]]], [{"a": {1: {dt.date(2020, 1, 1)}}}]),
    (collections.OrderedDict[int, int], [collections.OrderedDict({1: 2})]),
    (collections.Counter[int], [collections.Counter([1, 1])]),
    (typing.Mapping[int, dt.date], [{1: dt.date(2020, 1, 1)}]),
    (Literal["a", 1, True, None], ["a", None]),
    (Colour, list(Colour)),
    (Annotated[Cat | Dog, Field(discriminator="kind")], [Cat(), Dog(name="a")]),
    (list[Annotated[Dog | Cat, Field(discriminator="kind")]], [[Cat(), Dog(name="a", barks=1)]]),
    (Invoice, [
        Invoice(
            number=RANDOM_ID, day=dt.date(2026, 11, 28), due=dt.datetime(2026, 12, 28, 12), total=Decimal("19.98"),
            site=pydantic.HttpUrl("https://example.com/"),
            lines=[Line(sku="ab-1", price=Decimal("9.99"), per_month={1: Decimal("1.5")})],
        ),
    ]),
    (Pair, [Pair(Decimal("1.5"))]),
    (Job, [Job(dt.timedelta(1))]),
    (Stripped, [Stripped(text="a b")]),
    (Encoded, [Encoded(some=b"\xff\xef", few=b"a"), Encoded(some=b"", few=b"abcd")]),
    (Hex, [Hex(few=b"\x00\xff")]),
    (pydantic.JsonValue, [[1, {"a": None}]]),
]  # fmt: skip


def shown(value: object) -> str | None:
    if isinstance(value, list):  # some hold sets, and workers have to agree on a name
        return None
    return re.sub(r"\s+|<[^>]*>", "", str(getattr(value, "__name__", value)))[:60]


def parses(adapter: Any, data: bytes) -> bool:
    try:
        adapter.validate_json(data)
    except pydantic.ValidationError:
        return False
    return True


@pytest.mark.parametrize(("annotation", "values"), EXACT, ids=shown)
def test_masks_of_types_are_what_pydantic_parses(annotation: Any, values: list[Any]) -> None:
    adapter, rng = pydantic.TypeAdapter(annotation), random.Random(1)
    index = sg.compile(annotation, BYTES, eager=False)
    assert index.relaxations == ()
    texts = {found for _ in range(40) if (found := random_text(index, rng, rng.choice([5, 20, 40]))) is not None}
    assert texts
    assert [each for each in texts if not parses(adapter, each)] == []
    for value in values:
        written = adapter.dump_json(adapter.validate_python(value) if isinstance(value, str) else value)
        assert index.match(written).accepted, written


def test_floats_within_bounds_are_written_without_an_exponent() -> None:
    index = sg.compile(pydantic.FiniteFloat, BYTES, eager=False)
    for value in (1.7976931348623157e308, -5e-324, 1e22):
        assert index.match(f"{Decimal(repr(value)):f}".encode()).accepted
        assert not index.match(pydantic.TypeAdapter(float).dump_json(value)).accepted
    assert not index.match(f"{Decimal('1.8e308'):f}".encode()).accepted


#: Types of which Pydantic checks more than a schema can say, and what is said of that.
RELAXED: list[tuple[Any, str]] = [
    (pydantic.PastDate, "in the past"),
    (pydantic.FutureDatetime, "in the future"),
    (Annotated[dt.time, Field(ge=dt.time(8))], "within its bounds"),
    (Annotated[dt.timedelta, Field(lt=dt.timedelta(1))], "within its bounds"),
    (decimal(multiple_of=Decimal("0.25")), "a multiple of 0.25"),
    (pydantic.Json[list[int]], "is JSON"),
    (pydantic.Base64Str, "decode_str"),
    (pydantic.FilePath, "validate_file"),
    (pydantic.ImportString, "import_string"),
    (pydantic.PaymentCardNumber, "PaymentCardNumber.validate"),
    (set[list[int]], "have a hash"),
    (Annotated[set[dt.datetime], Field(min_length=2)], "differ in Python"),
    (Annotated[int, pydantic.AfterValidator(lambda value: value)], "its validator"),
    (text(pattern=r"^a\b"), "word boundaries"),
    (Annotated[str, Field(pattern=re.compile("a b", re.VERBOSE))], "flags of its pattern"),
]


@pytest.mark.parametrize(("annotation", "said"), RELAXED, ids=shown)
@pytest.mark.parametrize("is_within", [False, True])
def test_what_no_schema_says_is_named(annotation: Any, said: str, is_within: bool) -> None:
    wrapped: Any = dict[str, list[annotation | None]] if is_within else annotation
    index = sg.compile(wrapped, BYTES, eager=False)
    (relaxation,) = index.relaxations
    assert "Pydantic checks more than its schema says" in relaxation
    assert said in relaxation
    assert sg.compile(sg.JsonSchema(wrapped), BYTES).relaxations == index.relaxations


def test_validators_in_models_are_named_with_their_place() -> None:
    class Even(pydantic.BaseModel):
        count: int

        @pydantic.field_validator("count")
        @classmethod
        def is_even(cls, value: int) -> int:
            if value % 2:
                raise ValueError
            return value

    (relaxation,) = sg.compile(Even, BYTES, eager=False).relaxations
    assert relaxation.startswith("/properties/count: ")
    assert relaxation.endswith("Even.is_even")


class Deep(pydantic.BaseModel):
    value: int = Field(validation_alias=pydantic.AliasPath("values", 0))


@pytest.mark.parametrize("annotation", [Literal[b"x"], Enum("Tuple", {"A": (1, 2)}), type[int], Deep], ids=shown)
def test_what_is_read_from_no_json_is_refused(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match="no JSON schema for"):
        sg.JsonSchema(annotation)


def test_a_package_that_a_type_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "email_validator", None)
    monkeypatch.setattr("pydantic.networks.email_validator", None)
    with pytest.raises(DefinitionError, match="email-validator is not installed"):
        sg.JsonSchema(pydantic.EmailStr)


@pytest.mark.parametrize("annotation", [pydantic.EmailStr, pydantic.NameEmail], ids=shown)
def test_addresses_are_those_of_email_validator(annotation: Any) -> None:
    pytest.importorskip("email_validator")
    test_masks_of_types_are_what_pydantic_parses(annotation, ["john.doe+a@example.com", "a@b-c.example.org"])


def test_names_that_no_key_is_read_from_have_no_value() -> None:
    index = sg.compile(dict[dt.date, float], BYTES, eager=False)
    assert index.match(b'{"2020-02-29": 1.5}').accepted
    for name in ("0000-09-07", "2021-02-29", "x", ""):
        assert not index.match(json.dumps({name: 1.5}).encode()).accepted
        assert not index.match(json.dumps({name: "x"}).encode()).accepted


def test_strict_schemas_keep_to_what_openai_takes() -> None:
    class Bill(pydantic.BaseModel):
        total: Decimal = Field(decimal_places=2)
        when: pydantic.PastDate
        pet: Annotated[Cat | Dog, Field(discriminator="kind")]

    assert "x-unchecked" not in sg.JsonSchema.openai_strict(Bill).text
