"""From the JSON of a structural tag to `Format`\\ s.

The names and fields are XGrammar's (its ``structural_tag.py``); what its server-side shorthands mean is spelled out
here, so that few kinds are left.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from ...budget import Meter
from ...definitions.gemma import gemma_format
from ...definitions.grammar_text import is_larks
from ...definitions.token_sets import engine_dialect
from ...definitions.values import LARK_OPTIONS
from ...errors import BudgetExceededError, DefinitionError, StructgenError, UnsupportedError
from ...system.depth_first import fold
from ...system.types import Foreign
from .formats import AnyText, AnyTokens, ConstText, Format, Inner, InRow, OneOf, OneToken, PlainTag, Repeated, Tagged
from .plain_tags import SeenTag

#: A JSON value, where it stands, and how deep.
_Part: TypeAlias = tuple[Foreign, str, int]

#: The parts of a format, and what makes it of them.
_Plan: TypeAlias = tuple[list[_Part], Callable[[list[Format]], Format]]

#: What is seen of a marshalled tag, so deep in a format.
_LookAt: TypeAlias = Callable[[bytes, int], "SeenTag | None"]

_T = TypeVar("_T")

#: The largest bound of characters, tokens or turns.
_MOST = (1 << 31) - 1

_DOING = "reading the structural tag"


def read(value: Foreign, meter: Meter, look: _LookAt | None = None) -> Format:
    """Read a format, in which tags may be marshalled. Those of which a ``look`` says enough are not read further.

    Raises
    ------
    DefinitionError
        For what is no format, with its JSON pointer: unknown types and fields, values of other types, tags that no
        trigger or several begin.
    BudgetExceededError
        For formats that are nested too deeply.
    """

    return _read((value, "", 0), meter, look)


def read_tag(tag: PlainTag, meter: Meter) -> Tagged:
    """Read a tag that was looked at."""
    found = _read((tag.value, tag.where, tag.depth), meter)
    assert isinstance(found, Tagged)
    return replace(found, begin=tag.begin)


def _read(root: _Part, meter: Meter, look: _LookAt | None = None) -> Format:
    def expand(part: _Part) -> _Plan:
        value, where, depth = part
        meter.check_time(_DOING)
        if type(value) is bytes:
            seen = look(value, depth) if look is not None else None
            if seen is not None:
                return _leaf(_plain_tag(part, seen))
            value = _as_tag(marshal.loads(value), where)
        if depth > meter.budget.depth:
            what = f"formats are nested deeper than {meter.budget.depth:,} levels"
            raise BudgetExceededError(what, where=where or "/", remedy="Nest less.")
        return _plan(_Fields(value, where, depth))

    return fold(root, expand)


def _plain_tag(part: _Part, seen: SeenTag) -> PlainTag:
    value, where, depth = part
    begin = ConstText(f"{where}/begin", seen.begin)
    return PlainTag(where, begin, value, depth, seen.nullable, seen.work, seen.texts, seen.styles)


class _Fields:
    """The fields of one format; each is asked for once, and those that nobody asked for are unknown."""

    def __init__(self, value: Foreign, where: str, depth: int) -> None:
        self.where = where
        self.depth = depth
        if not isinstance(value, dict):
            raise DefinitionError(
                "a format is an object with a type", where=where or "/", remedy='Write {"type": ...}.'
            )
        self._left = dict(value)
        self.type = self.take("type", str)

    def take(self, name: str, kind: type[_T] | tuple[type[_T], ...], default: Foreign = ...) -> Foreign:
        """A field's value. Raises `DefinitionError` where it is missing, or of another type."""
        value = self._left.pop(name, default)
        if value is ...:
            raise DefinitionError(f"a format has no {name}", where=self.where or "/", remedy=f"Write its {name}.")
        if value is default or (isinstance(value, kind) and not (isinstance(value, bool) and kind is int)):
            return value
        kinds = kind if isinstance(kind, tuple) else (kind,)
        remedy = f"Make it a {' or '.join(each.__name__ for each in kinds)}."
        raise DefinitionError(f"{name} is {_shown(value)}", where=f"{self.where}/{name}", remedy=remedy)

    def flag(self, name: str, default: bool = False) -> bool:
        """A bool."""
        return bool(self.take(name, bool, default))

    def bound(self, name: str) -> int | None:
        """A number of something, or None."""
        value = self.take(name, int, None)
        if value is not None and not 0 <= value <= _MOST:
            raise DefinitionError(f"{name} is {value}", where=f"{self.where}/{name}", remedy=f"Use 0 to {_MOST:,}.")
        return None if value is None else int(value)

    def items(self, name: str, kind: type[_T] | tuple[type[_T], ...], default: Foreign = ...) -> list[Foreign]:
        """A list of values of a type."""
        values = self.take(name, list, default)
        for number, value in enumerate(values):
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                kinds = kind if isinstance(kind, tuple) else (kind,)
                remedy = f"Make it a {' or '.join(each.__name__ for each in kinds)}."
                where = f"{self.where}/{name}/{number}"
                raise DefinitionError(f"{name} has {_shown(value)}", where=where, remedy=remedy)
        return list(values)

    def texts(self, name: str, default: Foreign = ...) -> tuple[str, ...]:
        """Strings that are not empty, each once."""
        values = self.items(name, str, default)
        if "" in values:
            raise DefinitionError(f"{name} has an empty string", where=f"{self.where}/{name}", remedy="Leave it out.")
        return tuple(dict.fromkeys(values))

    def tokens(self, name: str, default: Foreign = ...) -> tuple[int | str, ...]:
        """Ids and names of tokens, each once."""
        return tuple(dict.fromkeys(self.items(name, (int, str), default)))

    def part(self, name: str) -> _Part:
        """A format within."""
        return self.take(name, dict), f"{self.where}/{name}", self.depth + 1

    def parts(self, name: str, kind: type | tuple[type, ...] = dict) -> list[_Part]:
        """A list of formats within, at least one."""
        values = self.items(name, kind)
        if not values:
            raise DefinitionError(f"{name} is empty", where=f"{self.where}/{name}", remedy="Put a format in it.")
        return [(value, f"{self.where}/{name}/{number}", self.depth + 1) for number, value in enumerate(values)]

    def rules(self, kind: tuple[type, ...]) -> tuple[list[Foreign], list[_Part]]:
        """Pairs of what triggers a format, and the format."""
        found = self.items("rules", (list, tuple))
        for number, pair in enumerate(found):
            if len(pair) != 2 or not isinstance(pair[0], kind) or isinstance(pair[0], bool) or pair[0] == "":
                raise DefinitionError(
                    "a rule is a pattern and a format",
                    where=f"{self.where}/rules/{number}",
                    remedy='Write ["<a>", {"type": ...}].',
                )
        parts = [(pair[1], f"{self.where}/rules/{n}/1", self.depth + 1) for n, pair in enumerate(found)]
        return [pair[0] for pair in found], parts

    def finish(self) -> None:
        """Raise `DefinitionError` where a field is left."""
        for name in self._left:
            what = f"a {self.type} has no field {name!r}"
            raise DefinitionError(what, where=self.where or "/", remedy="Leave it out.")


def _plan(fields: _Fields) -> _Plan:
    reader = _READERS.get(fields.type)
    if reader is None:
        what = f"there is no format of type {_shown(fields.type)}"
        raise DefinitionError(what, where=fields.where or "/", remedy=f"Use one of {', '.join(_READERS)}.")
    parts, make = reader(fields)
    label = fields.take("label", str, "")
    fields.finish()
    return parts, (lambda made: replace(make(made), label=label)) if label else make


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:59]}…"


# -- the formats ---------------------------------------------------------------------------------------------


def _leaf(found: Format) -> _Plan:
    return [], lambda _: found


def _const_string(fields: _Fields) -> _Plan:
    return _leaf(ConstText(fields.where, fields.take("value", str)))


def _regex(fields: _Fields) -> _Plan:
    options = {"flags": fields.take("flags", int, 0), "dialect": fields.take("dialect", str, "re")}
    return _leaf(Inner(fields.where, "regex", fields.take("pattern", str), options))


def _grammar(fields: _Fields) -> _Plan:
    text, syntax = fields.take("grammar", str), fields.take("syntax", str, "")
    if syntax not in ("", "gbnf", "lark"):
        raise DefinitionError(f"syntax is {_shown(syntax)}", where=f"{fields.where}/syntax", remedy="gbnf or lark.")
    kind = syntax or ("lark" if is_larks(text) else "gbnf")
    options = {"start": fields.take("start", str, "start" if kind == "lark" else "root")}
    if kind == "lark":
        options |= fields.take("options", dict, {})
        if unknown := options.keys() - {"start", *LARK_OPTIONS}:
            what = f"the options of a grammar are {', '.join(LARK_OPTIONS)}, not {_shown(min(unknown))}"
            raise DefinitionError(what, where=f"{fields.where}/options", remedy="Leave it out.")
    elif dialect := fields.take("dialect", str, "" if syntax else engine_dialect(text)):
        options["dialect"] = dialect
    return _leaf(Inner(fields.where, kind, text, options))


def _json_schema(fields: _Fields) -> _Plan:
    options = dict(fields.take("options", dict, {}))
    style = fields.take("style", str, "json")
    if style == "gemma" and not options:
        return _gemma(fields)
    if style != "json":
        options["style"] = style
    if fields.flag("any_order"):
        options["property_order"] = "any"
    if (gap := fields.bound("max_whitespace_cnt")) is not None:
        options |= {"whitespace": "any", "max_whitespace": gap}
    if excludes := fields.texts("excludes", []):
        options["excludes"] = excludes
    return _leaf(Inner(fields.where, "json_schema", fields.take("json_schema", (dict, bool)), options))


def _gemma(fields: _Fields) -> _Plan:
    """Gemma's notation, which is made of other formats."""
    excludes, place = fields.texts("excludes", []), f"{fields.where}/json_schema"
    for option in ("any_order", "max_whitespace_cnt"):
        if fields.take(option, (bool, int), None):
            what = f"{option} is of no meaning in Gemma's notation, whose members are in order, without whitespace"
            raise UnsupportedError(what, where=f"{fields.where}/{option}", remedy="Leave it out.")
    try:
        format_ = gemma_format(fields.take("json_schema", (dict, bool)), alphabetical=False, excludes=excludes)
    except StructgenError as error:
        raise error.within(place) from error
    return [(format_, place, fields.depth + 1)], lambda made: made[0]


def _qwen_xml_parameter(fields: _Fields) -> _Plan:
    options = {"style": "qwen_xml"}
    return _leaf(Inner(fields.where, "json_schema", fields.take("json_schema", (dict, bool)), options))


def _any_text(fields: _Fields) -> _Plan:
    bounds = fields.bound("max_chars"), fields.bound("max_tokens")
    return _leaf(AnyText(fields.where, fields.texts("excludes", []), *bounds))


def _token(fields: _Fields) -> _Plan:
    return _leaf(OneToken(fields.where, (fields.take("token", (int, str)),)))


def _exclude_token(fields: _Fields) -> _Plan:
    return _leaf(OneToken(fields.where, fields.tokens("exclude_tokens", []), complement=True))


def _any_tokens(fields: _Fields) -> _Plan:
    return _leaf(AnyTokens(fields.where, fields.tokens("exclude_tokens", []), fields.bound("max_tokens")))


def _sequence(fields: _Fields) -> _Plan:
    return fields.parts("elements"), lambda parts: InRow(fields.where, tuple(parts))


def _or(fields: _Fields) -> _Plan:
    return fields.parts("elements"), lambda parts: OneOf(fields.where, tuple(parts))


def _repeat(low: int, high: int | None) -> Callable[[_Fields], _Plan]:
    return lambda fields: ([fields.part("content")], lambda parts: Repeated(fields.where, parts[0], low, high))


def _bounded_repeat(fields: _Fields) -> _Plan:
    low, high = fields.take("min", int), fields.take("max", int)
    if not (0 <= low <= _MOST and (high == -1 or low <= high <= _MOST)):
        what = f"min is {low}, max is {high}"
        raise DefinitionError(what, where=fields.where or "/", remedy="Use a max of at least min, or -1.")
    return _repeat(low, None if high == -1 else high)(fields)


def _tag(fields: _Fields) -> _Plan:
    begin = _edge(fields, "begin", fields.take("begin", (str, dict)))
    end = fields.take("end", (str, list, dict))
    if isinstance(end, list) and not end:
        raise DefinitionError("end is empty", where=f"{fields.where}/end", remedy='Use "" for a tag without an end.')
    ends = tuple(_edge(fields, "end", each) for each in (end if isinstance(end, list) else [end]))
    return [fields.part("content")], lambda parts: Tagged(fields.where, begin, parts[0], ends)


def _edge(fields: _Fields, name: str, value: Foreign) -> ConstText | OneToken:
    """Where a tag begins or ends."""
    where = f"{fields.where}/{name}"
    if isinstance(value, str):
        return ConstText(where, value)
    if isinstance(value, dict) and value.get("type") == "token":
        inner = _Fields(value, where, 0)
        token = inner.take("token", (int, str))
        inner.finish()
        return OneToken(where, (token,))
    raise DefinitionError(f"{name} is {_shown(value)}", where=where, remedy="Use a string, or a token format.")


def _tags(fields: _Fields) -> list[_Part]:
    """The tags of a format that is about several."""
    parts = fields.parts("tags", (dict, bytes))
    return [part if type(part[0]) is bytes else (_as_tag(part[0], part[1]), *part[1:]) for part in parts]


def _as_tag(value: dict[str, Foreign], where: str) -> dict[str, Foreign]:
    """The JSON of a tag, which need not say that it is one."""
    if value.get("type", "tag") != "tag":
        raise DefinitionError(
            f"{_shown(value['type'])} stands where a tag must",
            where=where,
            remedy='Write {"type": "tag", "begin": ..., "content": ..., "end": ...}.',
        )
    return {"type": "tag", **value}


def _triggered_tags(fields: _Fields) -> _Plan:
    triggers, excludes = fields.texts("triggers"), fields.texts("excludes", [])
    return _tags(fields), _behind(fields, triggers, lambda rules, again: AnyText(
        fields.where, excludes, triggers=rules, again=again
    ), _rest_of_text)  # fmt: skip


def _token_triggered_tags(fields: _Fields) -> _Plan:
    triggers, excludes = fields.tokens("trigger_tokens"), fields.tokens("exclude_tokens", [])
    return _tags(fields), _behind(fields, triggers, lambda rules, again: AnyTokens(
        fields.where, excludes, triggers=rules, again=again
    ), _rest_of_token)  # fmt: skip


def _rest_of_text(trigger: Foreign, tag: Tagged | PlainTag) -> Format | None:
    """A tag without the trigger that it begins with; None where it does not."""
    if not isinstance(tag.begin, ConstText):
        raise DefinitionError(
            "a token begins a tag that a string triggers",
            where=tag.where,
            remedy="Use token_triggered_tags, or begin the tag with the string.",
        )
    if not tag.begin.value.startswith(trigger):
        return None
    return tag.without(trigger)


def _rest_of_token(trigger: Foreign, tag: Tagged | PlainTag) -> Format | None:
    if isinstance(tag, PlainTag) or not isinstance(tag.begin, OneToken):
        raise DefinitionError(
            "a string begins a tag that a token triggers",
            where=tag.where,
            remedy="Use triggered_tags, or begin the tag with the token.",
        )
    if tag.begin.names != (trigger,):
        return None
    return replace(tag, begin=ConstText(tag.begin.where, ""))


def _behind(
    fields: _Fields,
    triggers: tuple[Foreign, ...],
    text: Callable[[tuple[tuple[Foreign, Format], ...], bool], Format],
    rest: Callable[[Foreign, Tagged | PlainTag], Format | None],
) -> Callable[[list[Format]], Format]:
    """Tags in free text, each behind the one trigger that begins it. A label is that of the text."""
    label = fields.take("label", str, "")
    at_least_one, once = fields.flag("at_least_one"), fields.flag("stop_after_first")
    if not triggers:
        raise DefinitionError("there are no triggers", where=fields.where or "/", remedy="Name what tags begin with.")

    def make(tags: list[Format]) -> Format:
        if at_least_one and once:
            return OneOf(fields.where, tuple(tags))
        behind: dict[Foreign, list[Format]] = {trigger: [] for trigger in triggers}
        for tag in tags:
            assert isinstance(tag, (Tagged, PlainTag))
            found = [(trigger, after) for trigger in triggers if (after := rest(trigger, tag)) is not None]
            if len(found) != 1:
                begun = "no trigger begins" if not found else f"{found[0][0]!r} and {found[1][0]!r} both begin"
                raise DefinitionError(f"{begun} this tag", where=tag.where, remedy="Have one trigger begin each tag.")
            behind[found[0][0]].append(found[0][1])
        for trigger, rests in behind.items():
            if not rests:
                what = f"no tag begins with the trigger {trigger!r}"
                raise DefinitionError(what, where=fields.where or "/", remedy="Leave it out.")
        rules = tuple((trigger, OneOf(fields.where, tuple(rests))) for trigger, rests in behind.items())
        found_text = replace(text(rules, not once), label=label)
        return InRow(fields.where, (OneOf(fields.where, tuple(tags)), found_text)) if at_least_one else found_text

    return make


def _tags_with_separator(fields: _Fields) -> _Plan:
    at_least_one, once = fields.flag("at_least_one"), fields.flag("stop_after_first")
    separator = ConstText(f"{fields.where}/separator", fields.take("separator", str))

    def make(tags: list[Format]) -> Format:
        found: Format = OneOf(fields.where, tuple(tags))
        if not once:
            more = Repeated(fields.where, InRow(fields.where, (separator, found)), 0, None)
            found = InRow(fields.where, (found, more))
        return found if at_least_one else Repeated(fields.where, found, 0, 1)

    return _tags(fields), make


def _dispatch(fields: _Fields) -> _Plan:
    patterns, parts = fields.rules((str,))
    excludes, again = fields.texts("excludes", []), fields.flag("loop", True)
    return parts, lambda made: AnyText(
        fields.where, excludes, triggers=_by_pattern(fields, patterns, made), again=again, is_dispatch=True
    )


def _token_dispatch(fields: _Fields) -> _Plan:
    patterns, parts = fields.rules((int, str))
    excludes, again = fields.tokens("exclude_tokens", []), fields.flag("loop", True)
    return parts, lambda made: AnyTokens(
        fields.where, excludes, triggers=_by_pattern(fields, patterns, made), again=again, is_dispatch=True
    )


def _by_pattern(fields: _Fields, patterns: list[Foreign], made: Iterable[Format]) -> tuple[tuple[Foreign, Format], ...]:
    """The formats behind each pattern."""
    found: dict[Foreign, list[Format]] = {}
    for pattern, each in zip(patterns, made, strict=True):
        found.setdefault(pattern, []).append(each)
    return tuple((pattern, OneOf(fields.where, tuple(formats))) for pattern, formats in found.items())


_READERS: dict[str, Callable[[_Fields], _Plan]] = {
    "const_string": _const_string,
    "json_schema": _json_schema,
    "qwen_xml_parameter": _qwen_xml_parameter,
    "any_text": _any_text,
    "token": _token,
    "exclude_token": _exclude_token,
    "any_tokens": _any_tokens,
    "grammar": _grammar,
    "regex": _regex,
    "sequence": _sequence,
    "or": _or,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "token_triggered_tags": _token_triggered_tags,
    "tags_with_separator": _tags_with_separator,
    "optional": _repeat(0, 1),
    "plus": _repeat(1, None),
    "star": _repeat(0, None),
    "repeat": _bounded_repeat,
    "dispatch": _dispatch,
    "token_dispatch": _token_dispatch,
}
