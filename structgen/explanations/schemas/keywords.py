"""What a schema's keywords say, as a person reads them, and where they stand in what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from ...compiler.json_schema.read.json_values import parse_json
from ...definitions.json_text import dumps
from ...system.types import Foreign
from ..values import Reason
from .probes import FIELDS, Atom, SchemaProbes

#: Characters of a value that is quoted, and alternatives that are listed.
_LONGEST, _MOST_LISTED = 60, 8

#: By the field of a subschema the keywords that can be behind it; the last where none of them is there.
_KEYWORDS = {
    "types": ("type",), "enum": ("const", "enum"), "not_": ("not",), "if_": ("if",), "else_": ("else",),
    "exclusive_minimum": ("exclusiveMinimum", "minimum"), "exclusive_maximum": ("exclusiveMaximum", "maximum"),
    "items": ("additionalItems", "items"), "prefix_items": ("items", "prefixItems"),
    "dependent_required": ("dependencies", "dependentRequired"),
    "dependent_schemas": ("dependencies", "dependentSchemas"),
}  # fmt: skip

_SAID = {
    "types": "it is of type {}", "enum": "it is {}", "pattern": "it matches {}", "format": "its format is {}",
    "min_length": "it has {} characters at least", "max_length": "it has {} characters at most",
    "minimum": "it is at least {}", "maximum": "it is at most {}",
    "exclusive_minimum": "it is more than {}", "exclusive_maximum": "it is less than {}",
    "multiple_of": "it is a multiple of {}",
    "min_digits": "it has {} digits at least", "max_digits": "it has {} digits at most",
    "required": "it has the members {}", "min_properties": "it has {} members at least",
    "max_properties": "it has {} members at most", "min_items": "it has {} items at least",
    "max_items": "it has {} items at most", "unique_items": "its items differ from one another",
}  # fmt: skip


#: The beginning of a number that may be equal to an integer: that integer, and more than its digits.
_WHOLE = re.compile(rb"(-?(?:0|[1-9][0-9]*))(?:\.0*(?:[eE].*)?|[eE].*)")


def _has(values: Iterable[Foreign], number: Decimal) -> bool:
    """Whether a number is among some values; ``true`` is none."""
    return any(isinstance(each, int | Decimal) and not isinstance(each, bool) and each == number for each in values)


#: By field: whether 0 is one of the numbers that it takes.
_TAKES_ZERO: dict[str, Callable[[Foreign], bool]] = {
    "minimum": lambda value: value <= 0,
    "exclusive_minimum": lambda value: value < 0,
    "enum": lambda values: _has(values, Decimal(0)),
}

#: Fields beside which numbers have no exponent.
_NUMERIC = frozenset(("minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of", "not_"))


class KeywordTexts:
    """Names of the keywords of one schema.

    Parameters
    ----------
    probes:
        The schema.
    """

    def __init__(self, probes: SchemaProbes) -> None:
        self._probes = probes
        self._document = parse_json(probes.definition.text)

    def node(self, pointer: str) -> object:
        """What stands at a JSON pointer, None where nothing does."""
        return self._walked(pointer)[0]

    def _walked(self, pointer: str) -> tuple[object, str]:
        """What stands at a pointer, and the pointer with its long names whole, which the reader of schemas cuts."""
        found: object = self._document
        whole = ""
        for segment in pointer.split("/")[1:]:
            name = segment.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name not in found and name.endswith("…"):
                cut = [each for each in found if each.startswith(name[:-1])]
                name = cut[0] if len(cut) == 1 else name
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdigit() and int(name[:9]) < len(found):
                found = found[int(name[:9])]
            else:
                return None, pointer
            whole += "/" + name.replace("~", "~0").replace("/", "~1")
        return found, whole

    def pointer(self, atom: Atom) -> str:
        """The JSON pointer of a keyword, or of what is in it; "" of a schema that is ``false`` itself."""
        *_, whole = self._walked(self._pointer(atom))
        return whole

    def _pointer(self, atom: Atom) -> str:
        schema = self._probes.schemas[atom.schema]
        if atom.field == "never":
            return schema.pointer
        child = self._child(atom)
        if child is not None and self._probes.schemas[child].never and self._probes.schemas[child].pointer:
            return self._probes.schemas[child].pointer
        keyword = self.keyword(atom)
        if atom.field == "enum" and schema.pointer.endswith("/const") and not self._says(schema.pointer, keyword):
            return schema.pointer  # a const beside an enum is a subschema of its own
        found = f"{schema.pointer}/{keyword}"
        return f"{found}/{atom.part}" if atom.part and atom.field in ("properties", "prefix_items") else found

    def _says(self, pointer: str, keyword: str) -> bool:
        node = self.node(pointer)
        return isinstance(node, dict) and keyword in node

    def keyword(self, atom: Atom) -> str:
        """The name of a field's keyword in the schema as it was written."""
        names = _KEYWORDS.get(atom.field) or (_camel_case(atom.field),)
        node = self.node(self._probes.schemas[atom.schema].pointer)
        return next((name for name in names if isinstance(node, dict) and name in node), names[-1])

    def reason(self, atom: Atom, path: str, names: Sequence[str] = (), number: bytes = b"") -> Reason:
        """A keyword that stands against a value, which has members of some names, or is a ``number`` so far."""
        node = self.node(self._probes.schemas[atom.schema].pointer)
        keyword = self.keyword(atom)
        is_closing = atom.field in ("additional_properties", "unevaluated_properties")
        is_option = is_closing and self._probes.definition.additional_properties is not True
        if is_option and isinstance(node, dict) and keyword not in node:
            return Reason("option", ("additional_properties",), "it has no members but those listed", path)
        said = self.said(atom)
        if atom.field == "required":
            missing = [_short(name) for name in self._probes.schemas[atom.schema].required if name not in names]
            said += f", of which {_listed(missing)} is missing" if missing else ""
        said += self._layout(atom, number)
        return Reason("keyword", (self.pointer(atom),), f"{said} ({keyword})", path)

    def _layout(self, atom: Atom, number: bytes) -> str:
        """How numbers are written that a keyword allows, where the one that it refuses may be their equal."""
        value: Foreign = getattr(self._probes.schemas[atom.schema], atom.field)
        whole = _WHOLE.fullmatch(number)
        if whole is not None:
            is_integer = atom.field == "types" and "integer" in value and "number" not in value
            if is_integer or (atom.field == "enum" and _has(value, Decimal(whole[1].decode()))):
                return ", written without a fraction or an exponent"
        if atom.field in _NUMERIC and number[-1:] in (b"e", b"E"):
            return ", written without an exponent"
        if number in (b"-", b"-0"):
            takes_zero = _TAKES_ZERO.get(atom.field)
            if takes_zero is not None and takes_zero(value):
                return ", and 0 is written without a sign"
        return ""

    def summary(self, schemas: list[int], kind: str) -> str:
        """What some subschemas say of a value, in a line."""
        atoms = [
            atom
            for each in schemas
            for field in FIELDS[kind]
            if field in self._probes.said[each] and field not in ("properties", "prefix_items")
            for atom in self._probes.parts(each, field)
        ]
        return _listed(list(dict.fromkeys(map(self.said, atoms))), "; ")

    def order(self, path: str) -> Reason:
        """Members that do not come in the schema's order, or twice."""
        what = "members come once each, declared ones in the schema's order (property_order='schema')"
        return Reason("option", ("property_order",), what, path)

    def said(self, atom: Atom) -> str:
        """What a keyword says."""
        schema = self._probes.schemas[atom.schema]
        child = self._child(atom)
        if child is not None and atom.field in ("properties", "prefix_items"):
            return f"it has no member {_short(atom.part)}" if atom.field == "properties" else "it has no such item"
        if atom.field == "additional_properties":
            names = [_short(name) for name in schema.properties]
            return f"it has no members but {_listed(names)}" if names else "it has no other members"
        if atom.field == "items" and child is not None:
            return f"it has {len(schema.prefix_items)} items at most"
        value = getattr(schema, atom.field)
        if atom.field == "types":
            return _SAID["types"].format(" or ".join(sorted(value)))
        if atom.field == "enum":
            return _SAID["enum"].format(_listed([_short(each) for each in value], " or "))
        if atom.field == "required":
            return _SAID["required"].format(_listed([_short(each) for each in value]))
        template = _SAID.get(atom.field)
        return template.format(_short(value)) if template else f"as '{self.keyword(atom)}' has it"

    def _child(self, atom: Atom) -> int | None:
        """The schema within a keyword that is meant, where one is that nothing satisfies."""
        schema = self._probes.schemas[atom.schema]
        if atom.field == "properties" and atom.part:
            return schema.properties[atom.part]
        if atom.field == "prefix_items" and atom.part:
            return schema.prefix_items[int(atom.part)]
        if atom.field in ("items", "additional_properties"):
            found: int | None = getattr(schema, atom.field)
            return found if found is not None and self._probes.schemas[found].never else None
        return None


def _camel_case(field: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), field)


def _listed(texts: list[str], last: str = ", ") -> str:
    more = [f"{len(texts) - _MOST_LISTED} more"] if len(texts) > _MOST_LISTED else []
    return last.join([*texts[:_MOST_LISTED], *more])


def _short(value: Foreign) -> str:
    """A JSON value as text in ASCII, cut where it is long."""
    text = str(value) if isinstance(value, Decimal) else dumps(value)
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
