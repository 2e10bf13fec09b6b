"""Random schemas with random options against the package jsonschema, in both directions.

``STRUCTGEN_SCHEMAS=10000`` and ``STRUCTGEN_FUZZ_SEED=1`` in the environment draw more of them; ``pytest -s``
prints what was judged.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st
from judges.closing_judge import ClosingJudge, judged
from judges.guides import BYTES
from judges.json_judge import Judge, NoVerdictError
from judges.json_schemas import VALUES, schemas
from judges.json_texts import accepts, random_text

import structgen as sg
from structgen.errors import BudgetExceededError, EmptyLanguageError, UnsupportedError

DRAWN = int(os.environ.get("STRUCTGEN_SCHEMAS", "40"))
SEED = int(os.environ.get("STRUCTGEN_FUZZ_SEED", "0"))

#: What was judged, by kind.
COUNTS: Counter[str] = Counter()

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "whitespace": st.sampled_from(["single", "compact", "any", r"( |\n *)?", 1]),
        "property_order": st.sampled_from(["schema", "any"]),
        "escapes": st.sampled_from(["minimal", "any", "ascii"]),
        "additional_properties": st.sampled_from([False, "unevaluated"]),
        "unique_names": st.just(True),
        "max_items": st.integers(0, 3),
        "item_separator": st.sampled_from([", ", ","]),
        "key_separator": st.sampled_from([": ", ":"]),
    },
).filter(lambda options: options.get("whitespace") == "compact" or "separator" not in str(options))


@pytest.fixture(scope="module", autouse=True)
def _counted() -> Iterator[None]:
    yield
    if "STRUCTGEN_SCHEMAS" in os.environ:
        print("\n" + "\n".join(f"{count:>9,} {kind}" for kind, count in sorted(COUNTS.items())), file=sys.stderr)


@seed(SEED)
@settings(max_examples=DRAWN, suppress_health_check=[*HealthCheck], database=None)
@given(schemas(), OPTIONS, st.lists(VALUES, min_size=1, max_size=6), st.integers(0, 99))
def test_schemas_with_options(schema: Any, options: dict[str, Any], values: list[Any], first: int) -> None:
    note(json.dumps([schema, options]))
    COUNTS["schemas"] += 1
    index: sg.Index | None = None
    try:
        index = sg.compile(
            sg.JsonSchema(schema, **options), BYTES, eager=False, budget=sg.Budget(seconds=5, states=50_000)
        )
    except EmptyLanguageError:
        COUNTS["schemas without a text"] += 1
    except (UnsupportedError, BudgetExceededError) as error:
        COUNTS[f"schemas refused: {type(error).__name__}"] += 1
        return
    judge = Judge(schema, "draft2020-12")
    closing = ClosingJudge(judge.loads(json.dumps(schema)))
    for number in range(first, first + 4):
        if index is not None:
            text = random_text(index, Random(number), 20)  # fails where one is stuck
            _judge_text(judge, closing, options, text)
    for value in values:
        _judge_value(judge, closing, options, index, value)


def _judge_text(judge: Judge, closing: ClosingJudge, options: dict[str, Any], text: bytes | None) -> None:
    """What an index lets through is valid, and written as the options say."""
    if text is None:
        return
    note(f"let through: {text!r}")
    members: list[list[tuple[str, Any]]] = []
    json.loads(text, object_pairs_hook=members.append)
    is_twice = any(len(dict(each)) < len(each) for each in members)
    assert not (is_twice and options.get("unique_names"))
    COUNTS["texts let through, a name twice" if is_twice else "texts let through"] += 1
    try:
        assert judge.is_valid(text, keep_last=True)  # as readers do
        if options.get("additional_properties") is False and not is_twice:
            assert judged(closing, judge.loads(text)) in ((True, True), None)
            COUNTS["texts let through, closed"] += 1
    except NoVerdictError:
        COUNTS["texts let through, without a verdict"] += 1
    if options.get("escapes") == "ascii":
        assert text.isascii()
    if options.get("whitespace") == "compact" and not {" "} & set(_separators(options)[0] + _separators(options)[1]):
        assert not re.search(rb"\s", re.sub(rb'"(\\.|[^"\\])*"', b"", text))


def _judge_value(
    judge: Judge, closing: ClosingJudge, options: dict[str, Any], index: sg.Index | None, value: Any
) -> None:
    """Valid values are let through, in some order, where the options leave them, and no others are."""
    text = json.dumps(value)
    try:
        expected = judge.is_valid(text)
    except NoVerdictError:
        COUNTS["values without a verdict"] += 1
        return
    kind, is_exact = "valid" if expected else "invalid", not _is_long(value, options)
    closes = options.get("additional_properties", True)
    if expected and closes is not True:
        verdict = judged(closing, judge.loads(text))
        is_exact = is_exact and not closes and verdict is not None and closing.is_exact
        if is_exact and verdict:
            expected = verdict[1]
            kind = f"valid and {'closed' if expected else 'not closed'}"
    found = index is not None and accepts(
        index, value, separators=_separators(options), ensure_ascii=options.get("escapes") == "ascii",
        indent=1 if options.get("whitespace") == 1 else None,
    )  # fmt: skip
    note(f"{text}: {expected}")
    COUNTS[f"values {kind}"] += 1
    if found or is_exact:
        assert found == expected


def _separators(options: dict[str, Any]) -> tuple[str, str]:
    is_compact, is_indented = (options.get("whitespace") == each for each in ("compact", 1))
    comma, colon = "," if is_compact or is_indented else ", ", ":" if is_compact else ": "
    return options.get("item_separator", comma), options.get("key_separator", colon)


def _is_long(value: Any, options: dict[str, Any]) -> bool:
    """Whether a value has an array that the options may leave out."""
    most = options.get("max_items")
    if most is None or not isinstance(value, (list, dict)):
        return False
    below = value if isinstance(value, list) else [*value.values()]
    return (isinstance(value, list) and len(value) > most) or any(_is_long(each, options) for each in below)
