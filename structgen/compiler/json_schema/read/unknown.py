"""Keywords and formats that check nothing: annotations, which are silent, and those that may be misspelt.

To JSON Schema a keyword that nobody knows is an annotation, so ``minLenght`` bounds nothing. Extensions (``x-...``,
and names with a mark or a namespace) and the annotations of OpenAPI, of editors and of generators are known here by
name; any other is a finding, with the keyword that it is likely to stand for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from .document import Json, SchemaFinding
from .drafts import DRAFT4, DRAFT6, DRAFT7, DRAFT2019, DRAFT2020, Dialect


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Keywords of some draft, or of a tool that many use, that say nothing about values.
ANNOTATIONS = _words("""
    $schema $id id $anchor $dynamicAnchor $recursiveAnchor $comment $defs definitions $vocabulary title description
    default examples readOnly writeOnly deprecated contentMediaType contentEncoding contentSchema links base media
    nullable discriminator xml externalDocs example
    markdownDescription enumDescriptions markdownEnumDescriptions enumNames enumTitles enumDeprecated enumVarnames
    defaultSnippets errorMessage patternErrorMessage deprecationMessage markdownDeprecationMessage doNotSuggest
    suggestSortText allowComments allowTrailingCommas headerTemplate propertyOrder propertyOrdering propertiesOrder
    tsType tsEnumNames javaType javaName existingJavaType javaInterfaces javaEnumNames extendsJavaClass
    customAnnotations meta version author license copyright comment comments note notes name summary label placeholder
    help tooltip hint unit units order group category tags since see source url uri code icon widget ui hidden visible
    priority scope sensitive secret fileMatch hasDescription inherits metadata annotations extension extensions
    display displayName displayname displayType self alias aliases preferredOrder info documentation longDescription
    message messages details form faker chance fake enumSource strictProperties defaultProperties watch inputType
    stability searchable index multiple
""")

#: An extension of somebody's: a namespace, a mark at the beginning, or a sentence.
_EXTENSION = re.compile(r"[xX][-_].*|[^A-Za-z$].*|\$\$.*|.*[^\w$].*", re.DOTALL)

#: What other languages and libraries call a keyword.
_MEANT = {
    "min": "minimum", "max": "maximum", "gte": "minimum", "lte": "maximum", "ge": "minimum", "le": "maximum",
    "gt": "exclusiveMinimum", "lt": "exclusiveMaximum", "length": "minLength and maxLength", "regex": "pattern",
    "regexp": "pattern", "match": "pattern", "values": "enum", "choices": "enum", "options": "enum",
    "allowedvalues": "enum", "enumeration": "enum", "literal": "const", "union": "anyOf", "either": "anyOf",
    "optional": "required", "mandatory": "required", "fields": "properties",
    "attributes": "properties", "members": "properties", "element": "items", "elements": "items",
    "constant": "const", "minvalue": "minimum", "maxvalue": "maximum", "switch": "oneOf",
    "extends": "allOf", "disallow": "not", "divisibleby": "multipleOf", "reference": "$ref", "ref": "$ref",
    "extra": "additionalProperties", "unique": "uniqueItems", "elif": "else", "elseif": "else",
    "property": "properties", "patternproperty": "patternProperties",
}  # fmt: skip

#: Of these, what is long enough to be misspelt itself.
_MEANT_LONG = {word: keyword for word, keyword in _MEANT.items() if len(word) > 5}

#: Parts of keywords that are cut short.
_LENGTH, _PROPERTIES = (r"(?i)(?<=min|max)_?len$", "Length"), (r"(?i)(?<=.)props?$", "Properties")
_EXCLUSIVE = (r"(?i)^exclusive_?(min|max)$", r"exclusive\1imum")

#: Keywords of a tool or a request, whose schema is in them.
_WRAPPERS = {"parameters", "input_schema", "inputSchema", "function", "response_format", "json_schema", "schema"}

#: What is said of values in formats that nobody can check, or that only say how a value is shown.
_SHOWN = _words("""
    binary byte password base64 base64url base64-url char commonmark html http-date media-range markdown text textarea
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 integer int long short float double decimal decimal128 number
    double-int unixtime json json-string path file-path directory-path multi-host-uri name-email fraction string
    color hex-color money currency country phone style file data-url object boolean
""")

#: Other names of formats.
_FORMATS = {
    "datetime": "date-time", "timestamp": "date-time", "iso8601": "date-time", "iso-8601": "date-time",
    "rfc3339": "date-time", "url": "uri", "href": "uri", "link": "uri", "ip": "ipv4", "ip-address": "ipv4",
    "ipaddress": "ipv4", "host-name": "hostname", "host": "hostname", "domain": "hostname", "guid": "uuid",
    "mail": "email", "timedelta": "duration", "jsonpointer": "json-pointer", "regexp": "regex",
}  # fmt: skip

#: Characters of a name that may be a slip.
_LONGEST = 80

#: Findings of one schema; of each name the first place counts.
_MOST = 100


class Unknown:
    """The keywords and formats of a document that check nothing, each name once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], SchemaFinding] = {}

    def findings(self) -> tuple[SchemaFinding, ...]:
        """All that was noted, in order."""
        return tuple(self._found.values())

    def keyword(self, name: str, value: Json, pointer: str, draft: Dialect, known: frozenset[str]) -> None:
        """Note a keyword for which the draft has no handler; ``known``: those that some draft has one for."""
        if ("keyword", name) in self._found or len(self._found) >= _MOST or len(name) > _LONGEST:
            return
        if _EXTENSION.fullmatch(name):
            return
        where = f"{pointer}/{_segment(name)}"
        meant: str | None = name
        if name in known:
            what = f"the keyword {name!r} means nothing in {_DRAFTS.get(draft, 'this draft')}"
            remedy = "Name the draft that has it in $schema, or write what this one has."
        elif name in _WRAPPERS and not pointer:
            what = f"the keyword {name!r} means nothing in a schema"
            remedy = "Pass the schema that is in it; tools go to sg.tool_calls."
        else:
            what = f"the keyword {name!r} is unknown, and checks nothing"
            meant = _meant(name, known)
            if _MEANT.get(_simple(name)) == "enum" and not isinstance(value, list):
                return  # options of an editor
            remedy = f"Did you mean {meant!r}?" if meant else "Remove it, or begin its name with x- if it is a note."
        self._found["keyword", name] = SchemaFinding(what, where, remedy, meant is not None)

    def format(self, name: str, pointer: str, types: Json) -> None:
        """Note the format of strings, if it is none."""
        of_strings = types == "string" or (isinstance(types, list) and "string" in types)
        is_known = ("format", name) in self._found
        if not of_strings or is_known or len(self._found) >= _MOST or len(name) > _LONGEST:
            return
        if name in _SHOWN or name in _formats() or _EXTENSION.fullmatch(name.replace("-", "")):
            return
        simple = name.casefold().replace("_", "-").replace(" ", "-")
        near = _FORMATS.get(simple) or nearest(simple, dict(zip(_formats(), _formats(), strict=True)))
        remedy = f"Did you mean {near!r}?" if near else "Write a pattern."
        what = f"the format {name!r} is unknown, and checks nothing"
        self._found["format", name] = SchemaFinding(what, f"{pointer}/format", remedy, near is not None)


@cache
def _formats() -> tuple[str, ...]:
    from ..strings.formats import FORMATS

    return tuple(sorted(FORMATS))


def _meant(name: str, known: frozenset[str]) -> str | None:
    """The keyword that is likely meant by another word."""
    simple = _simple(re.sub(*_LENGTH, re.sub(*_PROPERTIES, re.sub(*_EXCLUSIVE, name))))
    spelled = _spelled(known)
    found = _MEANT.get(simple) or spelled.get(simple) or nearest(simple, spelled)
    if found == "definitions" and name[0] == "$":
        return "$defs"
    return found if found is None or name[0] != "$" or found[0] == "$" else None


@cache
def _spelled(known: frozenset[str]) -> dict[str, str]:
    annotations = ("$defs", "definitions", "description", "examples", "readOnly")
    spelled = {_simple(each): each for each in sorted(known - ANNOTATIONS)}
    return {**spelled, **_MEANT_LONG, **{_simple(each): each for each in annotations}}


def nearest(word: str, known: Mapping[str, str]) -> str | None:
    """The value of the key that a word is a slip of: as many as a third of its letters, at most three."""
    most = min(3, max(1, len(word) // 3 - 1))
    near = [each for each in known if abs(len(each) - len(word)) <= most]
    near = [each for each in near if len(_letters(each) ^ _letters(word)) <= 2 * most]  # a change brings two letters in
    found = [(_slips(word, each), each[:1] != word[:1], each) for each in near]
    slips, _, name = min(found, default=(most + 1, True, ""))
    return known[name] if slips <= most else None


@lru_cache(maxsize=1_024)
def _letters(word: str) -> frozenset[str]:
    return frozenset(word)


def _slips(one: str, other: str) -> int:
    """The letters that are added, left out, changed, or swapped with their neighbours."""
    before, last = list[int](), list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, wanted in enumerate(other, 1):
            slips = min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (letter != wanted))
            if at > 1 < to and letter == other[to - 2] and one[at - 2] == wanted:
                slips = min(slips, before[to - 2] + 1)
            row.append(slips)
        before, last = last, row
    return last[-1]


def _simple(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


_DRAFTS = {
    DRAFT4: "Draft 4", DRAFT6: "Draft 6", DRAFT7: "Draft 7", DRAFT2019: "Draft 2019-09", DRAFT2020: "Draft 2020-12",
}  # fmt: skip


def _segment(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
