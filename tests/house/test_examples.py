"""The example definitions: they compile, and accept what their names promise."""

from __future__ import annotations

import datetime
import functools
import ipaddress
import json
import os
import random
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from judges.guides import EACH_BYTE

import structgen as sg
from structgen.definitions.loading import NamedDefinition, load_definitions

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load_examples() -> dict[str, NamedDefinition]:
    """The folder's definitions, and the types of `examples/models.py`, as the demo names them."""
    before = os.getcwd()
    os.chdir(EXAMPLES.parent)
    try:
        types = [f"examples.models:{name}" for name in ("Recipe", "book_table")]
        return {named.name: named for named in load_definitions(["examples/definitions", *types])}
    finally:
        os.chdir(before)


DEFINITIONS = load_examples()

#: For each definition, texts that fit and texts that don't.
CASES: dict[str, tuple[list[str], list[str]]] = {
    "access_log": (
        [
            '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 '
            '"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
            '255.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "HEAD / HTTP/2.0" 304 - "-" "curl/8.5.0"',
        ],
        [
            '256.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "HEAD / HTTP/2.0" 304 - "-" "curl/8.5.0"',
            '1.2.3.4 - - [32/Jan/2026:00:00:00 +0000] "HEAD / HTTP/2.0" 304 - "-" "curl/8.5.0"',
            '1.2.3.4 - - [01/Jan/2026:00:00:00 +0000] "HEAD / HTTP/2.0" 304 - "-" "a"b"',
            '1.2.3.4 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "' + "a" * 81 + '"',
        ],
    ),
    "colour": (["#fff", "#FFaa09"], ["#ffff", "fff", "#ggg"]),
    "date": (["2024-02-29", "2000-02-29", "1999-12-31"], ["2023-02-29", "1900-02-29", "2024-04-31", "0000-01-01"]),
    "email": (["a@b", "first.last+tag@mail.example.org"], ["a@", "@b", "a@-b.org", "a@b..org", "é@b.org"]),
    "book_table": (
        [
            '{"name": "Ada", "guests": 2, "day": "2026-02-28"}',
            '{"name":"","guests":12,"day":"2024-02-29","inside":false}',
        ],
        [
            '{"name": "Ada", "guests": 0, "day": "2026-02-28"}',
            '{"name": "Ada", "guests": 2, "day": "2026-02-29"}',
            '{"name": "Ada", "guests": 2}',
            '{"name": "Ada", "guests": 2, "day": "2026-02-28", "vip": true}',
        ],
    ),
    "invoice": (
        [
            '{"number": "INV-000001", "issued": "2026-01-31", "currency": "EUR", "customer": {"name": "Ü AG", '
            '"vat": "DE123456789"}, "lines": [{"item": "", "quantity": 999, "price": 19.99}], "paid": false}',
            '{"number":"INV-123456","issued":"2024-02-29","currency":"JPY","customer":{"name":"\\"A\\"",'
            '"born":"1999-12-31"},"lines":[{"item":"b","quantity":1,"price":0},{"item":"c","quantity":10,'
            '"price":10000}],"paid":true,"paid_on":"2024-03-01"}',
        ],
        [
            "{}",
            '{"number": "INV-000001", "issued": "2026-01-31", "currency": "EUR", "customer": {"name": "A"}, '
            '"lines": [{"item": "", "quantity": 1, "price": 1}], "paid": false}',
            '{"number": "INV-000001", "issued": "2026-01-31", "currency": "EUR", "customer": {"name": "A", '
            '"vat": "DE123456789"}, "lines": [{"item": "", "quantity": 1, "price": 1.005}], "paid": false}',
            '{"number": "INV-000001", "issued": "2026-01-31", "currency": "EUR", "customer": {"name": "A", '
            '"vat": "DE123456789"}, "lines": [{"item": "", "quantity": 1, "price": 1}], "paid": true}',
            '{"number": "INV-000001", "issued": "2026-01-31", "currency": "EUR", "customer": {"name": "A", '
            '"vat": "DE123456789"}, "lines": [], "paid": false}',
        ],
    ),
    "ipv6": (["::", "2001:db8::1", "::ffff:192.0.2.1"], ["1::2::3", ":::", "12345::", "::1.2.3.256"]),
    "month": (["May", "September"], ["may", "Sept"]),
    "nouns": (["time", "volcano"], ["times", "", "Time"]),
    "password": (
        ["Abcdefghij1!", "Zz9~Zz9~Zz9~Zz9~Zz9~Zz9~"],
        [
            "Abcdefghij1",
            "abcdefghij1!",
            "ABCDEFGHIJ1!",
            "Abcdefghijk!",
            "Abcdefghijk1",
            "Mypassword1!",
            "Abcdefgh123!",
            "Abc defghij1!",
        ],
    ),
    "person": (["Ada Lovelace", "Jean-Luc Ponty", "Åsa Öberg"], ["ada Lovelace", "Ada", "Ada  Lovelace"]),
    "phone_e164": (["+14155550123", "+4930123456"], ["+0123456789", "14155550123", "+1234567890123456"]),
    "phone_us": (["(415) 555-0123", "+1 415-555-0123", "415.555.0123"], ["(115) 555-0123", "415-155-0123"]),
    "Recipe": (
        [
            '{"title": "Tea", "difficulty": "easy", "minutes": 5, "ingredients": [{"name": "tea", "grams": 2}]}',
            '{"title":"","difficulty":"hard","minutes":null,"ingredients":[{"name":"é","grams":5000,"allergen":true}]}',
        ],
        [
            '{"title": "Tea", "difficulty": "tricky", "minutes": 5, "ingredients": [{"name": "tea", "grams": 2}]}',
            '{"title": "Tea", "difficulty": "easy", "minutes": 4, "ingredients": [{"name": "tea", "grams": 2}]}',
            '{"title": "Tea", "difficulty": "easy", "ingredients": [{"name": "tea", "grams": 2}]}',
            '{"title": "Tea", "difficulty": "easy", "minutes": 5, "ingredients": [{"name": "", "grams": 2}]}',
        ],
    ),
    "semver": (
        ["0.0.4", "1.0.0-alpha.1+build.5", "2.0.0-rc.1", "1.0.0-0A.is.legal", "1.0.0--"],
        ["1", "1.2", "01.1.1", "1.2.3-01", "1.2.3.DEV", "1.2.3-", "1.2.3+", "١.٢.٣"],
    ),
    "sentence": (["This is fine.", "No, it is not!"], ["too small.", "Two words.", "No end here", "No,space here."]),
    "timestamp": (
        ["2024-05-06T07:08Z", "2024-05-06T07:08:09,5+02:00", "2024-05-06T07:08:09.123456789"],
        ["2024-05-06 07:08Z", "2024-13-06T07:08Z", "2024-05-06T24:08Z", "2024-05-06T07:08:60Z"],
    ),
    "url": (
        ["https://example.org", "http://a.b-c.example:8080/x/%20y;z?q=1&r=/#top"],
        ["ftp://example.org", "https://example", "https://-a.example.org", "https://example.org/%zz", "https://a..org"],
    ),
    "uuid": (
        ["123e4567-e89b-12d3-a456-426614174000", "0190B0C4-7E1A-7CC3-98C4-DC0C0C07398F"],
        [
            "123e4567-e89b-92d3-a456-426614174000",
            "123e4567-e89b-12d3-c456-426614174000",
            "123e4567e89b12d3a456426614174000",
        ],
    ),
}


@functools.cache
def vocabulary() -> sg.Vocabulary:
    """Every byte, a few longer tokens, and EOS."""
    return sg.Vocabulary.from_bytes([*EACH_BYTE, b"20", b"http", b"://", b"time", "é".encode(), None], [261])


@functools.cache
def index(name: str) -> sg.Index:
    return sg.compile(DEFINITIONS[name].definition, vocabulary(), eager=False)


def python_accepts(named: NamedDefinition, text: str) -> bool:
    if isinstance(named.definition, sg.JsonSchema):
        return is_instance(named.definition, text)
    assert isinstance(named.definition, sg.Regex)
    return re.fullmatch(named.definition.pattern, text, named.definition.flags) is not None


def is_instance(definition: sg.JsonSchema, text: str) -> bool:
    """Whether a text is JSON and its value valid."""
    try:
        schema, value = (json.loads(each, parse_float=Decimal) for each in (definition.text, text))
    except ValueError:
        return False
    checker = Draft202012Validator.FORMAT_CHECKER
    return bool(Draft202012Validator(schema, format_checker=checker).is_valid(value))


def is_canonical(named: NamedDefinition, text: str) -> bool:
    """Whether it is spelled in the layout of its definition, as far as Python can tell: an index may take more."""
    if not isinstance(named.definition, sg.JsonSchema):
        return True
    value = json.loads(text)
    return text in [json.dumps(value, ensure_ascii=False, separators=pair) for pair in ((", ", ": "), (",", ":"))]


def accepts(name: str, text: str) -> bool:
    return index(name).match(text.encode()).accepted


def test_every_example_has_cases() -> None:
    assert set(CASES) == set(DEFINITIONS)


@pytest.mark.parametrize("name", CASES)
def test_accepts_what_its_name_promises(name: str) -> None:
    for texts, expected in zip(CASES[name], (True, False), strict=True):
        for text in texts:
            assert python_accepts(DEFINITIONS[name], text) is expected, text
            assert accepts(name, text) is expected, text


@pytest.mark.parametrize("name", CASES)
def test_a_guide_follows_the_texts_byte_by_byte(name: str) -> None:
    for text in CASES[name][0]:
        guide = sg.Guide(index(name))
        assert all(guide.advance(byte) for byte in text.encode()), text
        assert guide.advance(261), text
        assert guide.is_finished()


@pytest.mark.parametrize("name", CASES)
def test_mutations_are_judged_as_python_does(name: str) -> None:
    generator = random.Random(name)
    alphabet = "".join(CASES[name][0]) + "aZ09-:. é"
    for _ in range(150):
        letters = list(generator.choice(CASES[name][0]))
        for _ in range(generator.randint(1, 2)):
            place = generator.randrange(len(letters) + 1)
            letters[place : place + generator.randint(0, 1)] = generator.choice([[], [generator.choice(alphabet)]])
        text = "".join(letters)
        judged = accepts(name, text)
        assert judged <= python_accepts(DEFINITIONS[name], text), text
        if python_accepts(DEFINITIONS[name], text) and is_canonical(DEFINITIONS[name], text):
            assert judged, text


def test_date_agrees_with_the_calendar() -> None:
    def exists(year: int, month: int, day: int) -> bool:
        try:
            datetime.date(year, month, day)
        except ValueError:
            return False
        return True

    for year in (0, 1, 4, 100, 400, 1700, 1900, 1996, 2000, 2023, 2024, 2100, 9996, 9999):
        for month in range(14):
            for day in (0, 1, 9, 10, 28, 29, 30, 31, 32):
                text = f"{year:04}-{month:02}-{day:02}"
                assert accepts("date", text) is exists(year, month, day), text


def test_ipv6_agrees_with_ipaddress() -> None:
    def is_address(text: str) -> bool:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return False
        return True

    generator = random.Random(6)
    pieces = ["::", ":", ":", ":", "1", "ab", "FFFF", "1.2.3.4", "256.1.1.1", "01.2.3.4", "12345"]
    addresses = [str(ipaddress.IPv6Address(generator.getrandbits(128))) for _ in range(100)]
    texts = ["".join(generator.choices(pieces, k=generator.randint(1, 15))) for _ in range(3000)]
    assert any(map(is_address, texts))
    for text in addresses + texts:
        assert accepts("ipv6", text) is is_address(text), text


def test_nouns_are_five_hundred_different_words() -> None:
    path = EXAMPLES / "definitions/nouns.words"
    words = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(words) == len(set(words)) == 500
    for word in words:
        assert accepts("nouns", word)
        for other in (word + "s", word[:-1], word.title()):
            assert accepts("nouns", other) is (other in words), other


def test_readme_names_every_file() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (EXAMPLES / "definitions").iterdir()}
    assert set(re.findall(r"^\| `([\w.]+)`", readme, re.M)) == files


def test_the_trace_is_written_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = subprocess.run([sys.executable, EXAMPLES / "trace.py", page], capture_output=True, text=True, check=True)
    value = json.loads(done.stdout)
    assert len(value["title"]) <= 30
    assert value["stars"] in range(1, 6)
    assert value["verdict"] in ("read", "skip")
    html = page.read_text(encoding="utf-8")
    assert all(f'class="box {kind}' in html for kind in ("forced", "steered", "free"))
