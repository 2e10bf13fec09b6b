"""The package jsonschema as a judge: formats asserted in every draft, numbers exact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pytest

from judges.formats import FORMATS as FORMATS  # those of the latest draft, whichever draft a schema names

jsonschema = pytest.importorskip("jsonschema", reason="the judge is not installed: pip install 'jsonschema[format]'")

#: Each draft's identifier, and the judge's class for it.
DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", jsonschema.Draft4Validator),
    "draft6": ("http://json-schema.org/draft-06/schema#", jsonschema.Draft6Validator),
    "draft7": ("http://json-schema.org/draft-07/schema#", jsonschema.Draft7Validator),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", jsonschema.Draft201909Validator),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", jsonschema.Draft202012Validator),
}

#: The largest exponent of a number that is judged.
_LARGEST = 1_000


class NoVerdictError(Exception):
    """The judge can't say: two members of one name, a number too long, a schema that it can't follow."""


class Judge:
    """Decides about texts under one schema.

    Parameters
    ----------
    schema:
        As `json.loads` gives it.
    draft:
        A key of `DRAFTS`; None follows ``$schema``, and takes Draft 2020-12 where there is none.
    """

    def __init__(self, schema: Any, draft: str | None = None) -> None:
        latest = jsonschema.Draft202012Validator
        named = DRAFTS[draft][1] if draft else jsonschema.validators.validator_for(schema, default=latest)
        self._integral = named is not jsonschema.Draft4Validator
        with exact_arithmetic():
            self._validator = named(self.loads(json.dumps(schema)), format_checker=FORMATS)

    def is_valid(self, text: bytes | str, *, keep_last: bool = False) -> bool:
        """Whether the text is of a valid value. Raises `NoVerdictError`, of names twice unless the last is kept."""
        with exact_arithmetic():
            value = self.loads(text, dict if keep_last else _object)
            try:
                answer: bool = self._validator.is_valid(value)
                return answer
            except Exception as error:  # an older draft's spelling, a reference or pattern that it can't follow
                raise NoVerdictError(repr(error)) from error

    def loads(self, text: bytes | str, hook: Any = None) -> Any:
        """A value whose numbers are int, or Decimal where there is a fraction; in Draft 4 1.0 is no integer."""
        return json.loads(text, parse_float=self._number, parse_int=int, object_pairs_hook=hook or _object)

    def _number(self, spelling: str) -> int | Decimal:
        try:
            value = Decimal(spelling)
        except InvalidOperation as error:
            raise NoVerdictError(spelling) from error
        if abs(value.adjusted()) > _LARGEST:
            raise NoVerdictError(spelling)
        return int(value) if self._integral and value == value.to_integral_value() else value


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """Decimals as long as the numbers that are judged."""
    with localcontext() as context:
        context.prec = 3 * _LARGEST
        yield


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise NoVerdictError("two members of one name")
    return found
