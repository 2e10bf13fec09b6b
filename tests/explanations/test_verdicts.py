"""What is read off a piece of a text is what an automaton of the same keywords says of it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

import structgen as sg
from structgen.explanations.schemas.json_places import JsonPlace
from structgen.explanations.schemas.pieces import TextPieces
from structgen.explanations.schemas.probes import Atom

VOCABULARY = sg.Vocabulary.bytewise()
TYPES = ["string", "integer", "number", "object", "array", "null", "boolean"]
NAMES = ["a", "ab", "b", "ba", "é"]
EDITS = [b"", b"1", b'"', b"}", b"]", b",", b"a", b'"a', b'"b"', b" ", b"-", b"null", b"\xc3"]


def random_schema(draw: random.Random, depth: int = 2) -> dict[str, Any]:
    """A schema of the keywords that are read off a text, with some others."""
    some: dict[str, Any] = {
        "type": draw.sample(TYPES, draw.choice([1, 5])),
        "enum": draw.sample(["a", "ab", "ba", "", 1, 12, True, None, {"a": 1}, [1]], draw.choice([2, 6])),
        "minLength": draw.randrange(3), "maxLength": draw.randrange(4), "pattern": draw.choice(["^a", "b"]),
        "minimum": draw.randrange(20), "maximum": draw.randrange(20), "exclusiveMaximum": draw.randrange(20),
        "required": draw.sample(NAMES, draw.randrange(3)), "additionalProperties": False,
        "minProperties": draw.randrange(3), "maxProperties": draw.randrange(4),
        "dependentRequired": {draw.choice(NAMES): [draw.choice(NAMES)]},
        "minItems": draw.randrange(3), "maxItems": draw.randrange(3), "items": draw.choice([False, {}]),
    }  # fmt: skip
    schema = {name: some[name] for name in draw.sample(list(some), draw.randrange(6))}
    if depth:
        inner = [draw.choice([False, random_schema(draw, depth - 1)]) for _ in range(3)]
        if draw.random() < 0.7:
            schema["properties"] = dict(zip(draw.sample(NAMES, 3), inner, strict=True))
        if draw.random() < 0.3:
            schema["prefixItems"] = inner
        if draw.random() < 0.3:
            schema["allOf"] = [random_schema(draw, depth - 1)]
    return schema


def random_value(draw: random.Random, depth: int = 2) -> Any:
    kind = draw.randrange(8) if depth else draw.randrange(4)
    if kind > 4:
        return {name: random_value(draw, depth - 1) for name in draw.sample(NAMES, draw.randrange(4))}
    if kind == 4:
        return [random_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return draw.choice([draw.choice(NAMES), draw.randrange(25), draw.random() < 0.5, "", None, 1.5, -3])


@pytest.mark.nightly
@pytest.mark.parametrize("order", ["schema", "any"])
def test_what_is_read_off_is_what_an_automaton_says(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[tuple[str, bool | None]] = Counter()

    def takes(self: TextPieces, atoms: Iterable[Atom], place: JsonPlace, *, ordered: bool = False) -> bool:
        asked = frozenset(atoms)
        known, unanswered = self._read(asked, place, ordered), self._probes.unanswered
        said = self._asked(asked, place, ordered)
        if self._probes.unanswered == unanswered:
            assert known in (None, said), (asked, self._piece(place, deep=False), ordered)
        counts[place.kind, known] += 1
        return said

    monkeypatch.setattr(TextPieces, "takes", takes)
    draw = random.Random(order)
    for _ in range(400):
        definition = sg.JsonSchema(random_schema(draw), property_order=order)
        try:
            index = sg.compile(definition, VOCABULARY, eager=False, base_rows=False)
        except sg.Error:
            continue
        for _ in range(4):
            data = bytearray(json.dumps(random_value(draw), ensure_ascii=False).encode())
            at = draw.randrange(len(data) + 1)
            data[at : draw.choice([at, at + 1, len(data)])] = draw.choice(EDITS)
            sg.explain(index, bytes(data), completion=False)
    for kind in ("object", "array", "string", "number", "word"):
        assert min(counts[kind, True], counts[kind, False]) > 0, counts
    assert sum(counts[key] for key in counts if key[1] is None) < 0.4 * sum(counts.values()), counts
