"""The official JSON Schema Test Suite, and what guides write under its schemas.

The suite's cases lie in ``cases/json_schema_suite`` (MIT licence, see there), one line for each schema. Every
instance is written as `json.dumps` does, in an order that the guide takes, and must be let through to the end
exactly where it is valid. What a guide lets through at random must be valid.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES
from judges.json_judge import DRAFTS, FORMATS, Judge, NoVerdictError
from judges.json_texts import accepts, dumps, is_text, random_text

import structgen as sg
from structgen.errors import BudgetExceededError, EmptyLanguageError, UnsupportedError

FOLDER = Path(__file__).parents[2] / "cases" / "json_schema_suite"

#: Subjects in which the package jsonschema has another opinion than the suite and is followed, and why.
JSONSCHEMA_DECIDES = {
    "format": "the suite takes formats for annotations from Draft 2019-09 on; here they are asserted",
    "optional/content": "contentMediaType and contentEncoding are annotations, as from Draft 2019-09 on",
    "optional/dependencies-compatibility": "a document that names Draft 2019-09 or later keeps to it",
}

#: Formats are what both of them accept (docs/guide/json_formats.md says in which cases they differ), and sometimes
#: less.
BOTH_DECIDE = "optional/format/"
NARROWER = {
    "optional/format/idn-hostname": "IDNA2008 is no regular language",
    "optional/format/regex": "nested groups are no regular language",
}

#: The judge's patterns are Python's.
JSONSCHEMA_IS_SILENT = "optional/ecmascript-regex"

#: Cases that structgen refuses, by subject and description, and why.
REFUSED = {("multipleOf", "float division = inf"): "0.123456789 has as many remainders"}


@cache
def cases(draft: str) -> dict[str, list[dict[str, Any]]]:
    """A draft's cases, by subject."""
    found: dict[str, list[dict[str, Any]]] = {}
    for case in json.loads((FOLDER / f"{draft}.json").read_text("utf-8")):
        found.setdefault(case["subject"], []).append(case)
    return found


SUBJECTS = [(draft, subject) for draft in DRAFTS for subject in cases(draft)]


def schema_of(case: dict[str, Any], draft: str) -> Any:
    """The schema with its draft named, as the older ones leave that out."""
    schema = case["schema"]
    return {"$schema": DRAFTS[draft][0], **schema} if isinstance(schema, dict) else schema


def is_refused(case: dict[str, Any]) -> bool:
    return (case["subject"], case["case"]) in REFUSED


def compiled(case: dict[str, Any], draft: str) -> sg.Index | None:
    """An index, None where no instance is valid. Raises `UnsupportedError` and `BudgetExceededError`."""
    try:
        return sg.compile(sg.JsonSchema(schema_of(case, draft)), BYTES, eager=False)
    except EmptyLanguageError:
        return None


def verdict(subject: str, judge: Judge, data: Any, valid: bool) -> bool:
    """Whether an instance is to be let through; ``valid`` is what the suite says."""
    if subject in JSONSCHEMA_DECIDES:
        return judge.is_valid(dumps(data))
    return valid and (not subject.startswith(BOTH_DECIDE) or judge.is_valid(dumps(data)))


@pytest.mark.parametrize(("draft", "subject"), SUBJECTS)
def test_instances_are_let_through_exactly_where_they_are_valid(draft: str, subject: str) -> None:
    wrong = []
    for case in cases(draft)[subject]:
        try:
            index = compiled(case, draft)
        except (UnsupportedError, BudgetExceededError) as error:
            if not is_refused(case):
                wrong.append(f"{case['case']}: {error}")
            continue
        judge = Judge(schema_of(case, draft), draft)
        for description, data, valid in case["tests"]:
            if not is_text(data):
                continue
            expected = verdict(subject, judge, data, valid)
            found = index is not None and accepts(index, data, integral=expected or draft != "draft4")
            if expected != found and not (expected and subject in NARROWER):
                wrong.append(f"{case['case']}: {description}: should be {'accepted' if expected else 'refused'}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("draft", "subject"), [each for each in SUBJECTS if each[1] != JSONSCHEMA_IS_SILENT])
def test_what_a_guide_lets_through_is_valid(draft: str, subject: str) -> None:
    wrong = []
    random = Random(f"{draft} {subject}")
    for case in cases(draft)[subject]:
        index = None if is_refused(case) else compiled(case, draft)
        texts = [random_text(index, random) for _ in range(3)] if index is not None else []
        judge = Judge(schema_of(case, draft), draft)
        for text in filter(None, texts):
            try:
                if not judge.is_valid(text):
                    wrong.append(f"{case['case']}: {text!r}")
            except NoVerdictError:
                continue
    assert not wrong, "\n".join(wrong)


def test_what_is_listed_as_refused_is() -> None:
    for draft in DRAFTS:
        for case in (case for subject in cases(draft).values() for case in subject if is_refused(case)):
            with pytest.raises((UnsupportedError, BudgetExceededError)):
                compiled(case, draft)


def test_the_judge_knows_the_formats() -> None:
    assert {"date", "ipv4", "uuid", "json-pointer", "idn-hostname", "uri", "duration"} <= set(FORMATS.checkers)
