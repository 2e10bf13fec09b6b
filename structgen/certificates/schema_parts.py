"""Parts of JSON Schemas: what no text can use, and what has no bound."""

from __future__ import annotations

from ..budget import Meter
from ..compiler.automata.dfa import Dfa, to_tables
from ..compiler.json_schema.alternatives import unused_alternatives
from ..compiler.json_schema.compiler import read_schema
from ..compiler.json_schema.normal_form.shapes import Value
from ..compiler.json_schema.strings.strings import StringSet
from ..compiler.patterns.lower import language
from ..compiler.patterns.parser import parse
from ..definitions import JsonSchema
from ..runtime.automaton.machine import AutomatonMachine
from ..system.depth_first import post_order
from ..vocabulary.vocabulary import Vocabulary
from .languages import GreibachLanguage
from .loops import DoubledLoops
from .values import Finding


def unused(definition: JsonSchema, meter: Meter) -> tuple[list[Finding], int]:
    """Branches, enum values, types, members, items that no text can use, of nested ones the outermost; and keywords
    and formats that check nothing."""
    found, looked = unused_alternatives(definition, meter)
    whole = {each.pointer for each in found if not _is_within(each.what)}
    findings = []
    for each in found:
        places = [*_above(each.pointer), *([each.pointer] if _is_within(each.what) else [])]
        if whole.isdisjoint(places):
            findings.append(Finding("warning", f"the {each.what} is used by no text", each.pointer or "#"))
    said = silent(definition, meter)
    findings += [Finding("warning", f"{what}. {remedy}", where) for what, where, remedy in said]
    return findings, looked + len(said)


def silent(definition: JsonSchema, meter: Meter) -> list[tuple[str, str, str]]:
    """Keywords and formats that check nothing: what, where, and the remedy."""
    return [(each.what, each.where, each.remedy) for each in read_schema(definition, meter).findings]


def _is_within(what: str) -> bool:
    """Whether a part has the pointer of the subschema that it is in."""
    return what.startswith(("enum value", "type"))


def _above(pointer: str) -> list[str]:
    """The pointers to what a place is in, the document left out."""
    parts = pointer.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def unbounded(definition: JsonSchema, meter: Meter) -> tuple[list[Finding], int]:
    """Strings, numbers, arrays, objects and gaps that can be as long as a model likes."""
    schema = read_schema(definition, meter)
    looked = _Endless(definition.escapes, meter)
    found: dict[tuple[str, str], None] = {}
    for value in meter.each(schema.values.values, "looking for what has no bound"):
        for what in looked.kinds(value):
            found[value.pointer or "#", what] = None
    circular: set[str] = set()
    values = schema.values.values
    for _ in post_order(
        [schema.values.root], lambda ref: values[ref].children(), lambda _, ref: circular.add(values[ref].pointer)
    ):
        pass
    found.update(dict.fromkeys((pointer or "#", "a value that can contain itself") for pointer in sorted(circular)))
    if definition.gap is not None and is_endless(language(parse(definition.gap), meter), meter):
        found["whitespace", "whitespace without a bound (max_whitespace)"] = None
    if any(is_endless(language(parse(each), meter), meter) for each in definition.separators):
        found["separators", "separators without a bound"] = None
    return [Finding("note", what, where) for where, what in found], sum(any(value[:-1]) for value in values)


class _Endless:
    """Which values have no longest text of their own kind; sets of strings and numbers are looked at once each."""

    def __init__(self, escapes: str, meter: Meter) -> None:
        self._escapes, self._meter = escapes, meter
        self._strings: dict[StringSet, bool] = {StringSet.ANY: True}

    def kinds(self, value: Value) -> list[str]:
        """What a value has without a bound."""
        found = []
        if value.strings is not None and self._is_endless(value.strings):
            found.append("a string without maxLength")
        if value.numbers is not None and is_endless(value.numbers.dfa(self._meter), self._meter):
            found.append("a number with as many digits as one likes")
        if any(shape.rest and shape.max_items is None for shape in value.arrays):
            found.append("an array without maxItems")
        for shape in value.objects:
            if shape.max_properties is None and any(self._is_endless(keys) for keys, _ in shape.others):
                found.append("an object with any number of members (additionalProperties, maxProperties)")
                break
        return found

    def _is_endless(self, strings: StringSet) -> bool:
        known = self._strings.get(strings)
        if known is None:
            known = False if strings.lengths is not None else is_endless(strings.body("raw", self._meter), self._meter)
            self._strings[strings] = known
        return known


def is_endless(dfa: Dfa, meter: Meter) -> bool:
    """Whether an automaton has texts of any length."""
    if not dfa.states:
        return False
    tables = to_tables(dfa, meter)
    machine = AutomatonMachine(tables, Vocabulary.bytewise())
    return GreibachLanguage(DoubledLoops(machine, meter).productions, meter).order() is None
