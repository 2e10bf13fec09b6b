"""`SchemaProbes`: what a few keywords of a schema, taken alone, make of a piece of a text.

The keywords become a schema of their own, which is compiled as any schema is, but for one vocabulary of bytes: that
takes about a millisecond, and is remembered. So a keyword means here what it means in the index, in every draft and
with every option, and no second reading of it can disagree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import NamedTuple

from ...budget import Budget, Meter
from ...compiler.json_schema.algebra.assertions import INTEGER_DIGITS, NUMBER_DIGITS
from ...compiler.json_schema.algebra.sharing import said
from ...compiler.json_schema.compiler import bring_to_normal_form, lower_schema
from ...compiler.json_schema.read.document import Document, Schema, SchemaId
from ...compiler.json_schema.read.dynamic import without_dynamic_references
from ...compiler.json_schema.read.reader import read
from ...compiler.programs.tables import to_tables
from ...definitions import JsonSchema
from ...errors import EmptyLanguageError, StructgenError
from ...runtime.core.machine import CompiledMachine
from ...runtime.pushdown.distinct import distinct
from ...runtime.pushdown.machine import PushdownMachine
from ...system.memo import Memo
from ...vocabulary.vocabulary import Vocabulary

#: What is remembered: compiled keywords, and answers about pieces of so many bytes.
_MOST_MACHINES, _MOST_ANSWERS, _LONGEST = 1 << 9, 1 << 13, 1 << 11

#: What compiling some keywords may cost.
_BUDGET = Budget(states=50_000, memory=256 << 20, seconds=0.5)

#: Values in values whose indentation is looked at.
_DEEPEST = 64

#: The fields that keywords of any value are in, and those of each type.
_ANY = ("types", "enum")
_DIGITS = tuple(sorted(INTEGER_DIGITS | NUMBER_DIGITS))
FIELDS = {
    "string": (*_ANY, "min_length", "max_length", "pattern", "format"),
    "number": (*_ANY, "minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of", *_DIGITS),
    "word": _ANY,
    "object": (
        *_ANY, "properties", "required", "additional_properties", "min_properties", "max_properties",
        "dependent_required",
    ),
    "array": (*_ANY, "prefix_items", "items", "min_items", "max_items"),
}  # fmt: skip

#: Fields whose keywords look at what is in a value; the others see a 0 in place of each member's value and item.
_COMBINING = ("not_", "if_", "one_of", "any_of")
DEEP_FIELDS = {
    "string": _COMBINING,
    "number": _COMBINING,
    "word": _COMBINING,
    "object": (*_COMBINING, "property_names", "dependent_schemas", "unevaluated_properties"),
    "array": (*_COMBINING, "contains", "unique_items", "unevaluated_items"),
}
DEEP = frozenset({"enum"}.union(*DEEP_FIELDS.values()))

#: Other fields that say what a field means.
_CONTEXT = {
    "required": ("properties",),
    "additional_properties": ("properties", "pattern_properties"),
    "items": ("prefix_items",),
    "contains": ("min_contains", "max_contains"),
    "if_": ("then", "else_"),
    "types": ("integer_is_exact",),
    **dict.fromkeys(_DIGITS, ("types",)),
}


class Atom(NamedTuple):
    """A keyword: a subschema's field, and a part of it.

    Of ``properties`` and the like, which of the schemas in it is meant, or none; of ``if_`` the branches that are
    taken not to be there.
    """

    schema: SchemaId
    field: str
    part: str = ""


@cache
def _bytes() -> Vocabulary:
    return Vocabulary.bytewise()


class SchemaProbes:
    """Asks questions about a schema's keywords.

    Parameters
    ----------
    definition:
        The schema, with its options.

    Raises
    ------
    StructgenError
        Where the schema can't be read.
    """

    def __init__(self, definition: JsonSchema) -> None:
        self._whole = _as_json(definition)
        #: Of the keywords alone: how many items there are without any, or names alike, is none of their matter.
        unbounded = dict.fromkeys(("max_items", "max_string_length", "max_digits"))
        self.definition = with_options(self._whole, **unbounded, unique_names=False)
        self.max_items, self.unique_names = definition.max_items, definition.unique_names
        self.max_string_length, self.max_digits = definition.max_string_length, definition.max_digits
        meter = Meter(Budget())
        document = read(definition.text, meter, additional_properties=definition.additional_properties)
        schemas, self.root = without_dynamic_references(document, meter)
        self._draft = document.draft
        indented = definition.indent is not None
        # With an indentation what is within must end somewhere; a 0 stands for it in any case.
        scalars = Schema("", types=frozenset({"null", "boolean", "number", "string"}))
        self.anything, self.never, self._scalars = range(len(schemas), len(schemas) + 3)
        self.schemas = (*schemas, scalars if indented else Schema(""), Schema("", never=True), scalars)
        self.said = tuple(map(said, self.schemas))
        self._machines: Memo[tuple[frozenset[Atom], str, int], CompiledMachine | bool] = Memo(_MOST_MACHINES)
        self._answers: Memo[tuple[frozenset[Atom], str, int, bytes, bool], bool] = Memo(_MOST_ANSWERS)
        #: Questions whose keywords could not be compiled.
        self.unanswered = 0

    def alive(
        self, atoms: frozenset[Atom], data: bytes, *, whole: bool, depth: int = 0, deepest: int = 1, option: str = ""
    ) -> bool:
        """Whether some keywords together take a value's text, or where it is not ``whole``, its beginning.

        Parameters
        ----------
        atoms:
            The keywords; with none of them any JSON value is taken.
        depth:
            In how many arrays and objects the value stands, which an indentation shows.
        deepest:
            In how many others values within it lie; with an indentation a schema has to bound that.
        option:
            An option of the definition's that is taken not to be there: ``"property_order"``, ``"whitespace"``,
            ``"escapes"``, ``"excludes"``, ``"item_separator"``, ``"key_separator"``, ``"max_items"``,
            ``"max_string_length"``, ``"max_digits"``, ``"unique_names"``.
        """
        if self.definition.indent is None or option == "whitespace":
            depth = 0
        elif deepest > _DEEPEST:
            self.unanswered += 1
            return True
        else:
            atoms |= {Atom(-1, "nested", str(deepest))}
        if (b"{" in data or b"[" in data[1:]) and any(atom.field == "unique_items" for atom in atoms):
            self.unanswered += 1  # arrays and objects are not told apart
            return True
        key = atoms, option, depth, data, whole
        known = self._answers.get(key)
        if known is None:
            machine = self._machine(atoms, option, depth)
            known = machine if isinstance(machine, bool) else self._takes(machine, data, whole, depth)
            if len(data) <= _LONGEST:
                self._answers[key] = known
        return known

    def written(self, data: bytes, *, whole: bool, deepest: int, option: str = "") -> bool:
        """Whether a text, or its beginning, is written as the options have it, whatever value it is.

        False where that can't be told of another value of the option: what else is written has no room for it.
        """
        probes = _of_any_value(with_options(self.definition, text="true", additional_properties=True))
        found = probes.alive(frozenset(), data, whole=whole, deepest=deepest, option=option)
        return found and not (option and probes.is_untold(option))

    def is_untold(self, option: str) -> bool:
        """Whether it can't be told what is written with another value of an option."""
        return self._machines.get((frozenset(), option, 0)) is True

    def revived(self, removed: frozenset[Atom], data: bytes, *, whole: bool, option: str = "") -> bool:
        """Whether the whole schema takes a text when some keywords are taken out of it."""
        key = frozenset({Atom(-2, "", ""), *removed}), option, 0
        machine = self._machines.get(key)
        if machine is None:
            schemas = list(self.schemas)
            for atom in removed:
                schemas[atom.schema] = without(schemas[atom.schema], atom, self.anything)
            definition = _without_option(self._whole, option)
            machine = self._machines[key] = self._compiled(schemas, self.root, definition)
        return machine if isinstance(machine, bool) else self._takes(machine, data, whole, 0)

    def parts(self, schema: SchemaId, field: str) -> list[Atom]:
        """The keyword in a field; for ``properties`` and the like also each schema in it that nothing satisfies, for
        the others count where there is a value alone."""
        value = getattr(self.schemas[schema], field)
        if field in ("additional_properties", "items"):
            return [Atom(schema, field)] if self.schemas[value].never else []
        if field not in ("properties", "prefix_items"):
            return [Atom(schema, field)]
        named = value.items() if isinstance(value, Mapping) else enumerate(value)
        never = [Atom(schema, field, str(name)) for name, child in named if self.schemas[child].never]
        return [Atom(schema, field), *never] if field == "properties" else never

    def is_name(self, pattern: str, name: str) -> bool:
        """Whether a member's name matches a pattern of ``patternProperties``."""
        text = json.dumps(name).encode()
        return self.alive(frozenset({Atom(-1, "pattern", pattern)}), text, whole=True, option="escapes")

    def _takes(self, machine: CompiledMachine, data: bytes, whole: bool, depth: int) -> bool:
        before, after = self._wrapping(depth)
        found = machine.match(before + data + (after if whole else b""))
        return found.accepted if whole else found.consumed == len(before) + len(data)

    def _wrapping(self, depth: int) -> tuple[bytes, bytes]:
        """What stands before and after a value that lies in so many arrays, indented."""
        indent = self.definition.indent or 0
        ends = [b"\n" + b" " * (indent * level) for level in range(depth + 1)]
        return b"".join(b"[" + ends[level + 1] for level in range(depth)), b"".join(
            end + b"]" for end in reversed(ends[:depth])
        )

    def _machine(self, atoms: frozenset[Atom], option: str, depth: int) -> CompiledMachine | bool:
        key = atoms, option, depth
        known = self._machines.get(key)
        if known is None:
            schemas = [*self.schemas]
            parts: tuple[SchemaId, ...] = ()
            for atom in sorted(atoms):
                schemas += self._nested(len(schemas), atom) if atom.field == "nested" else [self._alone(atom)]
                parts = (*parts, len(schemas) - 1)
            schemas.append(Schema("", all_of=parts))
            for _ in range(depth):
                schemas.append(Schema("", items=len(schemas) - 1, types=frozenset({"array"})))
            definition = _without_option(self.definition, option)
            known = self._machines[key] = self._compiled(schemas, len(schemas) - 1, definition)
        return known

    def _compiled(self, schemas: list[Schema], root: SchemaId, definition: JsonSchema) -> CompiledMachine | bool:
        """The machine of a schema. False where it has no text, True where that can't be told."""
        meter = Meter(_BUDGET)
        document = Document(tuple(schemas), root, self._draft)
        try:
            program = lower_schema(bring_to_normal_form(document, definition, meter), meter, keeps_sets=True)
            return distinct(PushdownMachine(to_tables(program, meter), _bytes()))
        except EmptyLanguageError:
            return False
        except StructgenError:
            self.unanswered += 1
            return True

    def _nested(self, at: int, atom: Atom) -> list[Schema]:
        """Any values that lie in so many others at most; the last schema is theirs."""
        levels = range(at - 1, at - 1 + int(atom.part))
        return [
            Schema("", **dict.fromkeys(("items", "additional_properties"), self.anything if each < at else each))
            for each in levels
        ]

    def _alone(self, atom: Atom) -> Schema:
        """A subschema that has one keyword, and what says what it means."""
        if atom.schema < 0:
            return Schema("", pattern=atom.part)
        source = self.schemas[atom.schema]
        names = (atom.field, *_CONTEXT.get(atom.field, ()))
        if atom.field.startswith("unevaluated"):
            names = (*self.said[atom.schema],) if not atom.part else (*(self.said[atom.schema] - {atom.field}),)
        fields = {name: getattr(source, name) for name in names}
        if atom.field == "unique_items":
            fields["items"] = self._scalars
        if atom.field == "if_":
            fields.update(dict.fromkeys(atom.part.split()))
        alone = Schema("", **fields)
        if atom.field in DEEP:
            return alone
        return alone.with_children(
            [name for name in names if name in _WITH_CHILDREN],
            lambda child: self.never if self.schemas[child].never and self._is_meant(atom, child) else self.anything,
        )

    def _is_meant(self, atom: Atom, child: SchemaId) -> bool:
        source = self.schemas[atom.schema]
        if atom.field == "properties":
            return bool(atom.part) and source.properties[atom.part] == child
        if atom.field == "prefix_items":
            return bool(atom.part) and source.prefix_items[int(atom.part)] == child
        return child in (source.additional_properties, source.items)


_WITH_CHILDREN = frozenset({"properties", "pattern_properties", "additional_properties", "prefix_items", "items"})


@lru_cache(maxsize=32)
def _of_any_value(definition: JsonSchema) -> SchemaProbes:
    """What all schemas with the same options share."""
    return SchemaProbes(definition)


def _as_json(definition: JsonSchema) -> JsonSchema:
    """The definition with its values written as JSON, as those within tags are."""
    return with_options(definition, style="json") if definition.style != "json" else definition


def _without_option(definition: JsonSchema, option: str) -> JsonSchema:
    loose: Mapping[str, Mapping[str, object]] = {
        "property_order": {"property_order": "any"},
        "whitespace": {"whitespace": "any", "max_whitespace": None},
        "escapes": {"escapes": "any"},
        "excludes": {"excludes": ()},
        "item_separator": {"item_separator": None},
        "key_separator": {"key_separator": None},
        "max_items": {"max_items": None},
        "max_string_length": {"max_string_length": None},
        "max_digits": {"max_digits": None},
        "unique_names": {"unique_names": False},
    }
    return with_options(definition, **loose[option]) if option else definition


def with_options(definition: JsonSchema, **options: object) -> JsonSchema:
    """The definition with other options, its text not read again."""
    copy = object.__new__(JsonSchema)
    own = {each.name: getattr(definition, each.name) for each in fields(definition)}  # and nothing worked out of them
    for name, value in {**own, **options}.items():
        object.__setattr__(copy, name, value)
    return copy


def without(schema: Schema, atom: Atom, anything: SchemaId) -> Schema:
    """A subschema without a keyword."""
    if atom.field == "never":
        return Schema(schema.pointer)
    names = [name for name in (atom.field, *_CONTEXT.get(atom.field, ())) if name not in _KEPT]
    if atom.part:
        value = getattr(schema, atom.field)
        loose = (
            {**value, atom.part: anything}
            if isinstance(value, Mapping)
            else tuple(anything if i == int(atom.part) else child for i, child in enumerate(value))
        )
        return schema.changed({atom.field: loose})
    return schema.changed({name: getattr(Schema, name) for name in names})


_KEPT = frozenset({"properties", "pattern_properties", "prefix_items", "integer_is_exact"})
