"""The schemas of types, as Pydantic gives them, with all that Pydantic checks as far as a schema can say it.

Pydantic's JSON schemas leave out a part of what its validators ask: the digits of a `Decimal`, the names of a
``dict[int, str]``, the version of a `UUID`. Here they are patterns and bounds; what is no regular language, or is
decided by Python code or by the clock, is named by the keyword `UNCHECKED`, and listed in `Index.relaxations`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable
from datetime import date
from decimal import Decimal
from typing import TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from ..system.types import Foreign
from . import type_patterns as patterns
from .type_patterns import Bounds

#: The keyword that names what a validator checks besides.
UNCHECKED = "x-unchecked"

Json: TypeAlias = "dict[str, Foreign]"

#: Patterns of strings that are dates or times: from the year 0001 on, and to the second 59.
_YEAR, _SECOND = "^0{0,3}[1-9]", ":..:[0-5]"

#: The largest float.
_MOST = 1.7976931348623157e308


#: The seconds of the longest `timedelta`.
_SECONDS = 86_399_999_913_600

#: Fractions of numbers that are told by their count of digits alone.
_PLACES = 8

#: Functions of Pydantic's own that check what no schema says; all its others have a schema, or take whatever has.
_CHECKING = frozenset({
    "EncodedBytes.decode", "EncodedStr.decode_str", "PathType.validate_file", "PathType.validate_directory",
    "PathType.validate_new", "PaymentCardNumber.validate", "import_string", "pattern_bytes_validator",
    "apply_known_metadata.<locals>.val_func", "fraction_validator", "validate_str_is_valid_iana_tz",
})  # fmt: skip

#: E-mail addresses by the functions that check them.
_MAIL = {
    "EmailStr._validate": {"pattern": patterns.EMAIL, "maxLength": 254},
    "NameEmail._validate": {"pattern": patterns.NAMED_EMAIL, "maxLength": 254},
}

#: What a set may hold: arrays and objects become lists and dicts, which have no hash.
_HASHABLE = ["null", "boolean", "number", "string"]


def describe(adapter: TypeAdapter[Foreign]) -> Json:
    """The schema of what an adapter validates. Raises `PydanticUserError` for what is read from no JSON."""
    return adapter.json_schema(schema_generator=_Generator)


class _Generator(GenerateJsonSchema):
    """Pydantic's own, which says more."""

    # -- numbers

    def float_schema(self, schema: core_schema.FloatSchema) -> Json:
        found = super().float_schema(schema)
        if "multiple_of" not in schema:
            _round(found)
        if self._refuses_infinity(schema, default=True):
            _limit(found)
        return found

    def _refuses_infinity(self, schema: Foreign, *, default: bool) -> bool:
        allowed = schema.get("allow_inf_nan")
        if allowed is None:
            allowed = self._config.config_dict.get("allow_inf_nan", default)
        return not allowed

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> Json:
        bounds = Bounds(dict(schema))
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        is_finite = self._refuses_infinity(schema, default=False)
        number: Json = {"type": "number", **_numeric(bounds)}
        multiple = schema.get("multiple_of")
        if multiple is not None:
            number["multipleOf"] = float(multiple)
        elif digits is None:
            _round(number)
        if is_finite or digits is not None:
            _limit(number)
        text = patterns.number(bounds, patterns.digits(digits, places))
        if digits is not None and places is not None and digits <= places:  # there is no digit for a zero
            text, number["not"] = f"^(?=.*[1-9]){text[1:]}", {"const": 0}
        small = Decimal("1e-6")
        if (bounds.high is None or bounds.high >= small) and (not bounds.low or bounds.low <= -small):
            text = _with_exponents(text, bounds, digits, places)
        if digits is None and places is None and not bounds:
            text = patterns.DECIMAL
        if not is_finite:
            text = f"{text}|^(?:NaN|-?Infinity)$"
        string: Json = {"type": "string", "pattern": text}
        if multiple is not None:
            _note(string, f"it is a multiple of {multiple}")
        numbers = [number] if digits is None and places is None else _in_digits(number, digits, places)
        return {"anyOf": [*numbers, string]}

    def fraction_schema(self, schema: Foreign) -> Json:
        bounds = Bounds(dict(schema))
        number: Json = {"type": "number", **_numeric(bounds)}
        _round(number)
        _limit(number)
        sign = "[+-]?" if bounds.low is None or bounds.low < 0 else ""
        top = "0*[1-9][0-9]*" if bounds.low_is_open and bounds.low == 0 else "[0-9]+"
        string: Json = {"type": "string", "pattern": f"^{sign}{top}{patterns.DENOMINATOR}$"}
        if bounds and not (bounds.high is None and bounds.low == 0):
            _note(string, "it is within its bounds")
        return {"anyOf": [number, string]}

    def complex_schema(self, schema: core_schema.ComplexSchema) -> Json:
        return {"type": "string", "pattern": patterns.COMPLEX}

    # -- dates and times

    def date_schema(self, schema: core_schema.DateSchema) -> Json:
        bounds = {
            name: each.isoformat() for name in ("ge", "gt", "le", "lt") if isinstance(each := schema.get(name), date)
        }
        found = {**super().date_schema(schema), "pattern": patterns.dates(bounds) if bounds else _YEAR}
        return self._now(found, schema)

    def time_schema(self, schema: core_schema.TimeSchema) -> Json:
        found = {**super().time_schema(schema), "pattern": _SECOND}
        return self._zoned(found, schema, patterns.NAIVE_TIME)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> Json:
        found = {**super().datetime_schema(schema), "pattern": f"{_YEAR}.*{_SECOND}"}
        return self._now(self._zoned(found, schema, patterns.NAIVE), schema)

    def _zoned(self, found: Json, schema: Foreign, naive: str) -> Json:
        zone = schema.get("tz_constraint")
        if zone == "naive":  # to RFC 3339, and so to the format, they all have an offset
            del found["format"]
            found["pattern"] = naive
        elif isinstance(zone, int):
            _note(found, f"its offset from UTC is {zone:,} seconds")
        if any(schema.get(name) is not None for name in ("ge", "gt", "le", "lt")):
            _note(found, "it is within its bounds")
        return found

    def _now(self, found: Json, schema: Foreign) -> Json:
        if schema.get("now_op") is not None:
            _note(found, f"it is in the {schema['now_op']}")
        return found

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> Json:
        least = schema.get("ge", schema.get("gt"))
        is_positive = least is not None and least.total_seconds() >= 0
        text: Json = {"type": "string", "pattern": patterns.duration(is_positive=is_positive)}
        written = self._config.config_dict
        if written.get("ser_json_temporal") == "seconds" or written.get("ser_json_timedelta") == "float":
            seconds = {"type": "number", "minimum": 0 if is_positive else -_SECONDS, "maximum": _SECONDS}
            found: Json = {"anyOf": [text, seconds]}
        else:
            found = text
        named = [name for name in ("ge", "gt", "le", "lt") if schema.get(name) is not None]
        if named and not (named == ["ge"] and not least):
            _note(found, "it is within its bounds")
        return found

    # -- strings and bytes

    def str_schema(self, schema: core_schema.StringSchema) -> Json:
        found = super().str_schema(schema)
        if "pattern" in found:
            found["pattern"], unsure = patterns.portable(found["pattern"])
            flags = getattr(schema.get("pattern"), "flags", 0) & ~re.UNICODE
            if unsure or flags:
                _note(found, unsure or "the flags of its pattern")
        config: Json = {**self._config.config_dict}
        for keyword, option in (("minLength", "str_min_length"), ("maxLength", "str_max_length")):
            if keyword not in found and config.get(option):
                found[keyword] = config[option]  # which earlier versions leave out
        is_stripped = schema.get("strip_whitespace", self._config.config_dict.get("str_strip_whitespace"))
        if is_stripped and not found.keys().isdisjoint({"minLength", "pattern"}):
            found["allOf"] = [{"pattern": patterns.STRIPPED}]
        return found

    def bytes_schema(self, schema: core_schema.BytesSchema) -> Json:
        found = super().bytes_schema(schema)
        least, most = schema.get("min_length") or 0, schema.get("max_length")
        encoding = self._config.config_dict.get("val_json_bytes", "utf8")
        if encoding == "base64":
            text = "|".join(patterns.base64(letters, least, most) for letters in ("_-", "+/"))
            return {"type": "string", "pattern": text}
        if encoding == "hex":
            return {"type": "string", "pattern": patterns.hexadecimal(least, most)}
        if most is not None:  # of which a character has up to four
            found["anyOf"] = [{"pattern": "^[\\x00-\\x7f]*$"}, {"maxLength": most // 4}]
        return found

    def url_schema(self, schema: core_schema.UrlSchema) -> Json:
        return {**super().url_schema(schema), "pattern": patterns.urls(schema.get("allowed_schemes"))}

    def multi_host_url_schema(self, schema: core_schema.MultiHostUrlSchema) -> Json:
        pattern = patterns.urls(schema.get("allowed_schemes"), several=True)
        return {**super().multi_host_url_schema(schema), "pattern": pattern}

    def uuid_schema(self, schema: core_schema.UuidSchema) -> Json:
        version = schema.get("version")
        found: Json = {**super().uuid_schema(schema), "format": "uuid"}
        return found if version is None else {**found, "format": f"uuid{version}"}

    def json_schema(self, schema: core_schema.JsonSchema) -> Json:
        return _note(super().json_schema(schema), "the string is JSON, and valid")

    # -- values by name

    def literal_schema(self, schema: core_schema.LiteralSchema) -> Json:
        return self._readable(super().literal_schema(schema), schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> Json:
        return self._readable(super().enum_schema(schema), schema)

    def _readable(self, found: Json, schema: Foreign) -> Json:
        """Leave out the values that Pydantic itself does not read from JSON, such as bytes and tuples."""
        values = [found["const"]] if "const" in found else found["enum"]
        try:
            validator = SchemaValidator({**schema, "metadata": {}})
        except SchemaError:
            return found
        kept = [each for each in values if _reads(validator, each)]
        if not kept:
            return self.handle_invalid_for_json_schema(schema, "values that are read from no JSON")
        return found if len(kept) == len(values) else {**found, "enum": kept}

    # -- arrays and objects

    def set_schema(self, schema: core_schema.SetSchema) -> Json:
        return self._hashed(super().set_schema(schema))

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> Json:
        return self._hashed(super().frozenset_schema(schema))

    def _hashed(self, found: Json) -> Json:
        items = found.get("items")
        if not items or items is True:
            found["items"] = items = {"type": _HASHABLE}
        kinds = set(_kinds(items, self._definition))
        if not kinds <= {*_HASHABLE, "integer"}:
            _note(found, "its items have a hash")
        if found.get("minItems", 0) > 1 and not _are_distinct(items):
            _note(found, "so many of its items differ in Python")
        return found

    def _definition(self, reference: str) -> Json | None:
        try:
            return self.resolve_ref_schema({"$ref": reference})
        except RuntimeError:
            return None

    def dict_schema(self, schema: core_schema.DictSchema) -> Json:
        return self._named(super().dict_schema(schema), schema)

    def frozendict_schema(self, schema: Foreign) -> Json:
        return self._named(super().frozendict_schema(schema), schema)

    def ordered_dict_schema(self, schema: Foreign) -> Json:
        return self._named(super().ordered_dict_schema(schema), schema)

    def counter_schema(self, schema: Foreign) -> Json:
        return self._named(super().counter_schema(schema), schema)

    def _named(self, found: Json, schema: Foreign) -> Json:
        """Names are what the keys are read from; those that match no pattern have no value at all."""
        by_pattern = found.pop("patternProperties", None)
        if by_pattern is not None:
            (found["additionalProperties"],) = by_pattern.values()
        found.pop("propertyNames", None)
        if "keys_schema" in schema:
            keys = {**self.generate_inner(schema["keys_schema"])}
            keys.pop("title", None)
            names = self._digits_of(schema["keys_schema"]) or _names(keys, self._definition)
            if names not in ({"type": "string"}, {}):
                found["propertyNames"] = names
        return found

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> Json:
        self._cores = {each["ref"]: each for each in schema["definitions"] if "ref" in each}
        return super().definitions_schema(schema)

    def _digits_of(self, keys: Foreign) -> Json | None:
        """The names of enumerated keys some of which are read from other texts than their own."""
        keys = getattr(self, "_cores", {}).get(keys.get("schema_ref"), keys)
        if keys["type"] not in ("enum", "literal"):
            return None
        values = [getattr(each, "value", each) for each in keys.get("members", keys.get("expected", ()))]
        scalars = [each for each in values if isinstance(each, str | int)]
        texts = [each if isinstance(each, str) else json.dumps(each) for each in scalars]
        validator = SchemaValidator({"type": "dict", "keys_schema": {**keys, "metadata": {}}})
        kept = [each for each in texts if _reads(validator, {each: 0})]
        return {"enum": list(dict.fromkeys(kept))} if kept else _NEVER

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> Json:
        found = super().tagged_union_schema(schema)
        name = found.get("discriminator", {}).get("propertyName")
        if name is None:
            return _note(found, "what its discriminator chooses")
        # The tag is looked up before defaults are filled in.
        found["oneOf"] = [{**each, "required": sorted({*each.get("required", ()), name})} for each in found["oneOf"]]
        return found

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> Json:
        for name, field in schema["fields"].items():
            self._check_alias(name, field.get("validation_alias"))
        return super().model_fields_schema(schema)

    def _check_alias(self, name: str, alias: Foreign) -> None:
        paths = alias if isinstance(alias, list) and alias and isinstance(alias[0], list) else [alias]
        if self.by_alias and not any(not isinstance(path, list) or len(path) == 1 for path in paths):
            self.handle_invalid_for_json_schema({"type": "any"}, f"{name!r}, whose alias is a path")

    # -- what Python code decides

    def generate_inner(self, schema: Foreign) -> Json:
        found = super().generate_inner(schema)
        if schema["type"] == "lax-or-strict":  # whose schema may stand beside it
            schema = schema["lax_schema"]
        return self._function(found, schema) if schema["type"].startswith("function-") else found

    def _function(self, found: Json, schema: Foreign) -> Json:
        function: Foreign = schema["function"]["function"]
        function = getattr(function, "func", function)  # functools.partial
        name = getattr(function, "__qualname__", type(function).__name__)
        module = getattr(function, "__module__", "") or ""
        if name == "EncodedBytes.decode" and (letters := _letters(function.__self__)):
            return {**found, "pattern": patterns.base64(letters, 0, None, "\\n?")}
        if module == "pydantic.types" and name == "ByteSize._validate":
            text, number = found["anyOf"]
            return {**found, "anyOf": [{**text, "pattern": patterns.SIZE}, number]}
        if module == "pydantic.networks" and name in _MAIL:
            return {**found, **_MAIL[name]}
        if name in _CHECKING or module.partition(".")[0] not in ("pydantic", "ipaddress", "collections"):
            return _note({**found}, f"its validator {name}")
        return found

    def chain_schema(self, schema: core_schema.ChainSchema) -> Json:
        found = super().chain_schema(schema)
        for step in schema["steps"][1:]:
            if step["type"] == "is-instance" and step["cls"] is Hashable:
                found = {**found, "type": _HASHABLE}
            elif step["type"] != "function-wrap" or "pydantic" not in getattr(
                step["function"]["function"], "__module__", ""
            ):
                _note(found, f"a further step, {step['type']}")
        return found

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> Json:
        return self.handle_invalid_for_json_schema(schema, "a class, which is read from no JSON")

    def model_schema(self, schema: core_schema.ModelSchema) -> Json:
        found = super().model_schema(schema)
        if schema.get("custom_init"):
            _note(found, "its __init__")
        is_plain = schema.get("post_init") in (None, "init_private_attributes")
        return found if is_plain else _note(found, "its model_post_init")

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Json:
        found = super().dataclass_schema(schema)
        return _note(found, "its __post_init__") if schema.get("post_init") else found


def _note(found: Json, what: str) -> Json:
    """Name something that Pydantic checks and ``found`` does not say."""
    before = found.get(UNCHECKED)
    found[UNCHECKED] = f"{before}; {what}" if before else what
    return found


def _reads(validator: SchemaValidator, value: Foreign) -> bool:
    try:
        validator.validate_json(json.dumps(value))
    except ValidationError:
        return False
    return True


def _letters(encoded: Foreign) -> str:
    """The last two letters of the alphabet that an ``EncodedBytes`` is in, if that is Base64."""
    return {"Base64Encoder": "+/", "Base64UrlEncoder": "_-"}.get(getattr(encoded.encoder, "__name__", ""), "")


# -- numbers ---------------------------------------------------------------------------------------------------


def _numeric(bounds: Bounds) -> Json:
    found: Json = {}
    if bounds.low is not None:
        found["exclusiveMinimum" if bounds.low_is_open else "minimum"] = float(bounds.low)
    if bounds.high is not None:
        found["exclusiveMaximum" if bounds.high_is_open else "maximum"] = float(bounds.high)
    return found


def _round(found: Json) -> None:
    """Leave out the texts beside an open bound that are the bound itself as a `float`."""
    for name, toward, choose in (("inimum", math.inf, max), ("aximum", -math.inf, min)):
        bound = found.get(f"exclusiveM{name}")
        if bound is not None:
            beside = math.nextafter(float(bound), toward)
            found[f"m{name}"] = choose(found.get(f"m{name}", beside), beside)


def _limit(found: Json) -> None:
    """Leave out what is infinite as a `float`."""
    found["minimum"] = max(found.get("minimum", -_MOST), -_MOST)
    found["maximum"] = min(found.get("maximum", _MOST), _MOST)


def _in_digits(number: Json, digits: int | None, places: int | None) -> list[Json]:
    """Numbers with so many digits: for each count of places those that are below the power of ten that is left."""
    found = []
    most_places = places if digits is None or places is None else min(digits, places)
    sizes = [most_places] if most_places is not None else range(min(digits or 0, _PLACES) + 1)
    for size in sizes:
        each = {**number}
        if "multipleOf" not in each:
            each["multipleOf"] = float(f"1e-{size}") if size else 1
        whole = math.inf if digits is None else max(0, digits - size)
        if whole < 309:
            is_told = whole + size <= 15
            most = float(f"{'9' * int(whole) or 0}.{'9' * size}") if is_told else math.nextafter(10.0**whole, 0)
            each["maximum"], each["minimum"] = min(each["maximum"], most), max(each["minimum"], -most)
        found.append(each)
    return found


def _with_exponents(text: str, bounds: Bounds, digits: int | None, places: int | None) -> str:
    sign = "-?" if bounds.low is None or bounds.low < 0 else ""
    has_zero = not (bounds.low_is_open and bounds.low == 0) and (digits is None or places is None or digits > places)
    not_zero = "" if has_zero else "(?=.*[1-9].*E)"
    is_small = bounds.high is not None or bool(bounds.low)
    written = patterns.scientific(digits, places, is_small=is_small)
    return f"{text}|^{sign}{not_zero}(?:{written})$"


# -- names and items -------------------------------------------------------------------------------------------

_Definition: TypeAlias = "Callable[[str], Json | None]"


def _kinds(schema: Foreign, definition: _Definition) -> Iterable[str]:
    """The types of the values of a schema of Pydantic's; `any` where it does not say."""
    todo, seen = [schema], set()
    for each in todo:
        if "$ref" in each:
            target = definition(each["$ref"])
            if each["$ref"] not in seen:
                todo.append(target or {})
            seen.add(each["$ref"])
        elif "anyOf" in each or "oneOf" in each:
            todo += each.get("anyOf") or each["oneOf"]
        elif "enum" in each or "const" in each:
            pass
        else:
            kinds = each.get("type", "any")
            yield from [kinds] if isinstance(kinds, str) else kinds


def _are_distinct(items: Json) -> bool:
    """Whether values that differ in JSON differ in Python, too, as far as their schema shows."""
    is_text = items.get("type") == "string" and items.keys() <= {"type", "minLength", "maxLength"}
    return items.get("type") == "integer" or is_text


_NEVER: Json = {"not": {}}

_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}

#: Lengths of names that are not counted, since their automata would be too large.
_LONG = 1_000


def _names(keys: Json, definition: _Definition) -> Json:
    """The schema of the names that keys are read from: those of numbers are their digits."""
    kind = keys.get("type")
    if "$ref" in keys:
        target = definition(keys["$ref"])
        return keys if target is None or "enum" not in target else _names(target, definition)
    if "anyOf" in keys:
        choices = keys["anyOf"]
        if any(each.get("type") == "string" and each.get("pattern", "").startswith("^") for each in choices):
            # Of decimals and fractions, whose digits these strings are.
            choices = [each for each in choices if each.get("type") != "number"]
        found = [_names(each, definition) for each in choices]
        found = [each for each in found if each != _NEVER]
        rest = {name: value for name, value in keys.items() if name == UNCHECKED}
        return {**(found[0] if len(found) == 1 else {"anyOf": found} if found else _NEVER), **rest}
    if "enum" in keys or "const" in keys:
        values = [keys["const"]] if "const" in keys else keys["enum"]
        texts = [value for value in values if isinstance(value, str)]
        return {"enum": texts} if texts else _NEVER
    unchecked = {name: value for name, value in keys.items() if name == UNCHECKED}
    if kind in ("integer", "number"):
        return (
            {"pattern": _digits(keys), **unchecked}
            if "multipleOf" not in keys
            else _note({"pattern": _digits(keys), **unchecked}, f"it is a multiple of {keys['multipleOf']}")
        )
    if kind == "boolean":
        return {"enum": ["true", "false"]}
    if keys.get("maxLength", 0) > _LONG:
        return _note({name: value for name, value in keys.items() if name != "maxLength"}, "its length")
    return _NEVER if kind in ("null", "array", "object") else keys


def _digits(number: Json) -> str:
    """The pattern of the digits of numbers with these bounds."""
    is_finite = _MOST in (number.get("maximum"), -number.get("minimum", 0))
    limits = {
        name: number[keyword]
        for name, keyword in _LIMITS.items()
        if keyword in number and abs(number[keyword]) != _MOST
    }
    bounds = Bounds(limits)
    if number["type"] == "integer":
        return patterns.number(bounds, patterns.INTEGER)
    if not bounds:
        return patterns.FINITE if is_finite else patterns.DECIMAL
    whole = patterns.WHOLE if is_finite else "[0-9]+"
    text = patterns.number(bounds, patterns.digits(None, None, whole))
    above = bounds.high is None and bounds.low is not None and bounds.low <= 1
    return f"{text}|{patterns.LARGE}" if above else text
