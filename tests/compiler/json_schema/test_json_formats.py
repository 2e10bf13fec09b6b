"""The automata of formats, against their RFCs' examples and against what `jsonschema` checks."""

from __future__ import annotations

import datetime
import itertools
import json
import random
import re
import subprocess
import unicodedata
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from shutil import which

import pytest
from judges.formats import FORMATS as FORMATS_OF_RFCS
from judges.formats import has_zone, is_leap_second

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.automata.dfa import Dfa
from structgen.compiler.json_schema.strings.formats import FORMATS, format_dfa
from structgen.compiler.json_schema.strings.strings import StringSet
from structgen.compiler.patterns import ecma
from structgen.errors import BudgetExceededError

for _checker in ("rfc3339_validator", "fqdn", "idna", "rfc3987", "uri_template", "isoduration", "jsonpointer"):
    pytest.importorskip(_checker)

#: By format: what is accepted, what is not. Cases of the JSON Schema Test Suite, of the RFCs, and of their borders.
CASES: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "json_formats.json").read_text("utf-8")
)


@cache
def members(name: str) -> StringSet:
    found = StringSet.format(name, Meter(Budget()))
    assert found is not None
    return found


@cache
def automaton(name: str) -> Dfa:
    dfa = format_dfa(name, Meter(Budget()))
    assert dfa is not None
    return dfa


def accepts(name: str, text: str) -> bool:
    return text in members(name)


class Sampler:
    """Random accepted texts: a walk that heads for the nearest end once it is long."""

    def __init__(self, dfa: Dfa, seed: int) -> None:
        self.dfa = dfa
        self.random = random.Random(seed)
        self.edges: list[list[tuple[int, int, int]]] = [[] for _ in range(dfa.states)]
        for state, low, high, target in zip(*(column.tolist() for column in dfa.edges()), strict=True):
            self.edges[state].append((low, high, target))
        self.distance = [0 if accepting else dfa.states for accepting in dfa.accepting.tolist()]
        changed = True
        while changed:
            nearest = [1 + min((self.distance[t] for *_, t in edges), default=dfa.states) for edges in self.edges]
            shorter = [min(a, b) for a, b in zip(self.distance, nearest, strict=True)]
            changed, self.distance = shorter != self.distance, shorter

    def text(self) -> str:
        stop, longest = self.random.choice([0.02, 0.1, 0.3]), self.random.choice([10, 40, 120])
        state, out = self.dfa.start, bytearray()
        while True:
            edges = self.edges[state]
            late = len(out) > longest
            if self.dfa.accepting[state] and (not edges or late or self.random.random() < stop):
                return out.decode()
            if late:
                edges = [edge for edge in edges if self.distance[edge[2]] < self.distance[state]]
            low, high, state = self.random.choice(edges)
            out.append(self.random.randint(low, high))


def test_the_cases_cover_every_format() -> None:
    assert CASES.keys() == FORMATS


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_cases(name: str) -> None:
    valid, invalid = CASES[name]["valid"], CASES[name]["invalid"]
    assert [text for text in valid if not accepts(name, text)] == []
    assert [text for text in invalid if accepts(name, text)] == []
    assert [text for text in valid if not conforms(name, text)] == []


def conforms(name: str, text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # re, of classes like [[a]
        return bool(FORMATS_OF_RFCS.conforms(text, name))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_is_accepted_is_valid(name: str) -> None:
    sampler = Sampler(automaton(name), seed=1)
    texts = [text for text in (sampler.text() for _ in range(1500)) if accepts(name, text)]
    assert len(texts) > (1000 if name == "hostname" else 1499)
    assert [text for text in texts if not conforms(name, text)] == []


#: Formats that are exactly what the judge accepts, of texts over an alphabet where its own slips don't show.
EXACT = {
    "date": "0123459-",
    "time": "01235:.+-ZzTt",
    "date-time": "01235679:.+-ZzTt ",
    "hostname": "aZ0-._",
    "ipv4": "01259.",
    "ipv6": "0aF:.12%",
    "uri": "aZ0:/?#[]@!%2f.-\\ v",
    "uri-reference": "aZ0:/?#[]@!%2f.-\\ v",
    "iri": "aZ0:/?#[]@!%2f.-\\ é\ue000",
    "iri-reference": "aZ0:/?#[]@!%2f.-\\ é\ue000",
    "uuid": "0aFg-",
    "json-pointer": "a/~01é",
    "relative-json-pointer": "0123/#~a",
}


@pytest.mark.parametrize("name", sorted(EXACT))
def test_what_is_valid_is_accepted(name: str) -> None:
    sampler = Sampler(automaton(name), seed=2)
    alphabet = EXACT[name]
    wrong = set()
    for _ in range(4000):
        text = sampler.text()
        for _ in range(sampler.random.choice([1, 1, 2, 3])):
            at = sampler.random.randint(0, len(text))
            text = text[:at] + sampler.random.choice(["", *alphabet]) + text[at + sampler.random.randint(0, 1) :]
        if accepts(name, text) != (conforms(name, text) and not is_slip(name, text)):
            wrong.add(text)
    assert wrong == set()


def is_slip(name: str, text: str) -> bool:
    """Where the judge accepts what the RFC does not, and a leap second whose offset is left out."""
    if name in ("time", "date-time") and is_leap_second(text):
        return not is_told_apart(name, text)
    return (name == "hostname" and text.endswith(".")) or (name == "uuid" and text.count("-") != 4)


def is_told_apart(name: str, text: str) -> bool:
    """Whether there are leap seconds at a time's offset."""
    return has_zone(text) if name == "date-time" else text[-1] in "Zz" or int(text[-2:]) % 30 == 0


@pytest.mark.parametrize("year", [1, 4, 99, 100, 400, 1600, 1900, 1999, 2000, 2023, 2024, 2100, 9996, 9999])
def test_dates_are_those_of_the_calendar(year: int) -> None:
    for month in range(14):
        for day in range(33):
            try:
                exists = datetime.date(year, month, day) is not None
            except ValueError:
                exists = False
            assert accepts("date", f"{year:04}-{month:02}-{day:02}") == exists


@pytest.mark.parametrize("name", ["time", "date-time"])
def test_leap_seconds_are_those_of_utc(name: str) -> None:
    """All local minutes of days around the end of months, with all offsets that are there."""
    days = ["1998-06-30T", "1999-07-01T", "0000-12-31t", "2017-01-01T", "1998-12-30T", "1998-01-02T", "1998-02-28T"]
    pick, seen = random.Random(6), 0
    for day in days if name == "date-time" else [""]:
        for offset in range(-23 * 60 - 30, 24 * 60, 30):
            hour, minute = divmod((23 * 60 + 59 + offset) % (24 * 60), 60)
            shown = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
            for there in (f"{hour:02}:{minute:02}", f"{pick.randint(0, 23):02}:{pick.choice([0, 29, 58, 59]):02}"):
                text = f"{day}{there}:60{pick.choice(['', '.0', '.123'])}{shown if offset else pick.choice('Zz')}"
                assert accepts(name, text) == (is_leap_second(text) and is_told_apart(name, text)), text
                seen += accepts(name, text)
    assert seen >= (95 if name == "time" else 35)


def test_leap_seconds_of_other_offsets_are_left_out() -> None:
    assert not accepts("time", "05:44:60+05:45")
    assert is_leap_second("05:44:60+05:45")


@pytest.mark.parametrize(
    ("name", "type_"), [("date", datetime.date), ("time", datetime.time), ("date-time", datetime.datetime)]
)
def test_types_are_what_python_parses(name: str, type_: type) -> None:
    """Of the format's texts, a type has those that Pydantic makes one of it from."""
    pydantic = pytest.importorskip("pydantic", reason="needs Pydantic")
    adapter = pydantic.TypeAdapter(type_)
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    index = sg.compile(sg.JsonSchema(type_), vocabulary, eager=False)
    sampler, seen = Sampler(automaton(name), seed=7), {True: 0, False: 0}
    for number in range(600):
        text = sampler.text()
        if name != "time" and number % 3 == 0:
            text = "0000" + text[4:]
        if not accepts(name, text):
            continue
        data = json.dumps(text).encode()
        try:
            is_parsed = bool(adapter.validate_json(data))
        except pydantic.ValidationError:
            is_parsed = False
        assert index.match(data).accepted == is_parsed, text
        seen[is_parsed] += 1
    assert min(seen.values()) > 50


def is_template(text: str) -> bool:
    """RFC 6570, 2, by taking a text in ASCII apart."""
    expression = re.compile(r"\{([^{}]*)\}")
    literal = re.compile(r"(?:[!#$&(-;=?-\[\]_a-z~]|%[0-9A-Fa-f]{2})*")
    if not literal.fullmatch(expression.sub("", text)):
        return False
    for inside in expression.findall(text):
        for variable in inside[inside[:1] in [*"+#./;?&=,!@|"] :].split(","):
            name, _, prefix = variable.removesuffix("*").partition(":")
            if ":" in variable and not (variable[-1] != "*" and prefix.isdigit() and 1 <= int(prefix) <= 9999):
                return False
            parts = [re.fullmatch(r"(?:\w|%[0-9A-Fa-f]{2})+", part) for part in name.split(".")]
            if prefix.startswith("0") or not all(parts):
                return False
    return True


def test_uri_templates_are_those_of_the_rfc() -> None:
    sampler = Sampler(automaton("uri-template"), seed=8)
    seen = {True: 0, False: 0}
    for _ in range(4000):
        text = sampler.text()
        for _ in range(sampler.random.choice([0, 1, 2])):
            at = sampler.random.randint(0, len(text))
            letter = sampler.random.choice(["", *"{}{},:*.%2a+=|1-^ "])
            text = text[:at] + letter + text[at + sampler.random.randint(0, 1) :]
        if not text.isascii():
            continue
        assert accepts("uri-template", text) == is_template(text), text
        seen[is_template(text)] += 1
    assert min(seen.values()) > 200


def test_labels_beyond_ascii_fit_into_dns() -> None:
    """The longest A-forms: letters from all over, which need the largest steps in Punycode."""
    import idna

    codes = (*range(0xDF, 0x180), 0x3CE, 0x45F, 0x3041, 0x3400, 0x9FD5, *range(0xAC00, 0xD7A4, 97))
    letters = [letter for letter in map(chr, codes) if accepts("idn-hostname", letter)]
    pick = random.Random(3)
    longest = 0
    for _ in range(3000):
        label = "".join(pick.choices(letters, k=11))
        assert accepts("idn-hostname", label)
        longest = max(longest, len(idna.alabel(label)))
    assert longest <= 60


def test_letters_are_pvalid() -> None:
    import idna

    for code in range(0x80, 0x12000):
        if accepts("idn-hostname", chr(code)):
            assert idna.alabel(chr(code))


EAST_ASIAN = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u3400-\u4db5\u4e00-\u9fd5\uac00-\ud7a3"


def is_left_out(label: str) -> bool:
    """Whether docs/guide/json_formats.md says that a label is left out, though it may be valid."""
    composing = {
        unicodedata.decomposition(char).split()[1]
        for char in map(chr, range(0x3100))
        if re.fullmatch("[0-9A-F]+ [0-9A-F]+", unicodedata.decomposition(char))
    }
    pairs = list(itertools.pairwise(label))
    is_mark = {char: unicodedata.category(char)[0] == "M" for char in label}
    is_rtl = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in label)
    return (
        len(label) > 11
        or any(unicodedata.category(char) == "Cn" or f"{ord(char):04X}" in composing for char in label)
        or re.search(f"[^!-\u1fff\u2c00-\u2dff\ua000-\uabff{EAST_ASIAN}]", label) is not None
        or any(unicodedata.combining(one) and unicodedata.combining(other) for one, other in pairs)
        or any(one == "-" and (other == "-" or is_mark[other]) for one, other in pairs)
        or (any(is_mark.values()) and any(char in label for char in "\u00b7\u0375\u05f3\u05f4"))
        or (is_rtl and any(unicodedata.combining(char) == 9 for char in label))
        or any(char in label for char in "\u30fb\u200c\u200d")
    )


def test_labels_of_all_scripts() -> None:
    """Random labels of one or two scripts, with digits, hyphens and what asks for its context."""
    import idna

    def is_valid(label: str) -> bool:
        try:
            return bool(idna.encode(label))
        except idna.IDNAError:
            return False

    pick, found = random.Random(6), Counter[tuple[bool, bool]]()
    known = [char for char in map(chr, range(0xA1, 0xAC00)) if unicodedata.category(char)[0] in "LMN"]
    blocks = [list(block) for _, block in itertools.groupby(known, key=lambda char: ord(char) >> 7)]
    in_context = [*"l\u00b7\u0375\u03ac\u05d0\u05f3\u05f4\u0660\u06f3\u200c\u200d\u094d\u0915\u09c7\u09be\u30fba1-"]
    for _ in range(6000):
        pool = pick.choice([[*pick.choice(blocks), *"ab1-"], pick.choice(blocks) + pick.choice(blocks), in_context])
        label = "".join(pick.choices(pool, k=pick.randrange(1, 9)))
        taken, valid = accepts("idn-hostname", label), is_valid(label)
        assert valid or not taken, ascii(label)
        assert taken or not valid or is_left_out(label), ascii(label)
        found[taken, valid] += 1
    assert found[True, True] > 1000
    assert found[False, False] > 1000
    for word in ["भारत", "বাংলা", "مثال", "דוגמה", "ไทย", "հայ", "col·lega", "क्‍ष"]:
        assert accepts("idn-hostname", word)


def test_patterns_are_read_by_every_reader() -> None:
    sampler = Sampler(automaton("regex"), seed=4)
    patterns = [sampler.text() for _ in range(2000)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for pattern in patterns:
            re.compile(pattern)
            ecma.parse(pattern)


@pytest.mark.skipif(not which("node"), reason="needs node")
def test_patterns_are_ecma_262() -> None:
    sampler = Sampler(automaton("regex"), seed=5)
    patterns = [sampler.text() for _ in range(2000)]
    script = "for (const p of JSON.parse(require('fs').readFileSync(0))) new RegExp(p)"
    subprocess.run(["node", "-e", script], input=json.dumps(patterns), text=True, check=True)


def test_labels_beside_those_from_right_to_left() -> None:
    """Names of labels that are right by themselves: as the Bidi Rule has it, once one goes from right to left."""
    import idna
    from idna.core import check_bidi

    labels = ["a", "0a", "a0", "a-b", "0", "1ä", "ä1", "é", "あ", "a\u02b9", "\u02b9", "भारत", "क्", "क्\u200d"]
    labels += ["۳a", "a۳", "\u05d0", "\u05d01", "\u0627\u0628\u0663"]
    rtl = {label for label in labels if any(unicodedata.bidirectional(char) in ("R", "AL") for char in label)}

    def is_right(label: str) -> bool:
        try:
            return check_bidi(label, check_ltr=True)
        except idna.IDNABidiError:
            return False

    for size in (1, 2, 3):
        for name in itertools.product(labels, repeat=size):
            valid = rtl.isdisjoint(name) or all(map(is_right, name))
            assert accepts("idn-hostname", ".".join(name)) == valid, name


@pytest.mark.parametrize(("length", "accepted"), [(252, True), (253, True), (254, False), (300, False)])
def test_host_names_have_at_most_253_characters(length: int, accepted: bool) -> None:
    text = ".".join(["a" * 62] * 5)[: length - 1] + "a"
    assert len(text) == length
    assert accepts("hostname", text) == conforms("hostname", text) == accepted


def test_other_names_are_annotations() -> None:
    assert [format_dfa(name, Meter(Budget())) for name in ("", "int32", "Date", "color", "host-name")] == [None] * 5


def test_the_budget_counts_the_states() -> None:
    with pytest.raises(BudgetExceededError, match="format 'ipv6'"):
        format_dfa("ipv6", Meter(Budget(states=100)))


@pytest.mark.parametrize(
    ("name", "states"),
    [("date", 32), ("time", 480), ("date-time", 1310), ("uuid", 37), ("email", 151), ("ipv6", 151), ("uri", 179),
     ("hostname", 125), ("idn-hostname", 53_000), ("regex", 716)],
)  # fmt: skip
def test_automata_are_small(name: str, states: int) -> None:
    dfa = automaton(name)
    assert dfa.states <= states
    assert not len(dfa.records)  # no counters: it could not be intersected
    assert members(name).body("minimal", Meter(Budget())).states <= 1.15 * states
