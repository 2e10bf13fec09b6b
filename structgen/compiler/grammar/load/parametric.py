"""Rules with a parameter, ``p::_: "a" p::set_bit(0) %if bit_clear(0) | ...``, spelled out for each that is used.

From the parameters that rules without one begin with, those that rules lead on to are found; each makes a rule of its
own. Alternatives whose condition fails are left out, and with them what can't do without them. (The notation is
llguidance's, which spells rules out as a text comes to them.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ....budget import Meter
from ....definitions.grammar_marks import COUNT, REGEX, STRING
from ....errors import BudgetExceededError, DefinitionError
from .parameters import Change, Condition, ParameterReader

_DOING = "spelling out rules with parameters"

_WRITTEN = "Write name::_: ... for the rule, %if behind its alternatives, name::incr(_) or name::0 where it is used."

#: Where a parameter may be.
_USED = re.compile(r"\w[ \t]*::[ \t]*\w|%if\b")

_PIECES = re.compile(
    rf"""(?P<gap>\s*//[^\n]*|\s*\#[^\n]*|[^\S\n]+|\\[ ]*\n)"""
    rf"""|(?P<head>(?<![\w%])[?!]*_?[a-z]\w*[ \t]*::[ \t]*_[ \t]*(?:\.\s*[+-]?\d+\s*)?:(?!:))"""
    rf"""|(?P<use>(?<![\w%])_?[a-z]\w*[ \t]*::[ \t]*(?=\w))|(?P<if>%if\b)"""
    rf"""|(?P<atom>{STRING}(?:\s*\.\.\s*{STRING})?|{REGEX}|\w+|->)|(?P<postfix>[?*+]|{COUNT}|~\s*\d+(?:\s*\.\.\s*\d+)?)"""
    rf"""|(?P<choice>\s*\|)|(?P<last>\n\s*)|(?P<opening>[(\[])|(?P<closing>[)\]])|(?s:.)"""
)
_HEAD = re.compile(r"([?!]*)(\w+)\s*::\s*_\s*([^:]*):")

#: What may be there no times.
_MAY_BE_NONE = re.compile(r"[?*]|\{\s*(?:0|,)|~\s*0")

#: Groups within groups, and characters that are written for all rules together.
_DEEPEST, _MOST_WRITTEN = 100, 1 << 21


@dataclass
class _Use:
    """A mention of a rule, with its parameter."""

    name: str
    change: Change
    depends: bool
    postfix: str = ""


@dataclass
class _Group:
    """Alternatives, each with its condition; in brackets, or a whole body."""

    opening: str = ""
    closing: str = ""
    postfix: str = ""
    alternatives: list[tuple[list[_Item], list[Condition]]] = field(default_factory=lambda: [([], [])])


_Item: TypeAlias = "str | _Use | _Group"

#: A rule with the parameter that it has.
_Instance: TypeAlias = tuple[str, int]


def without_parameters(text: str, meter: Meter) -> str:
    """A grammar's text with rules that have no parameters, the same where none has one.

    Raises `DefinitionError` for what can't be read, and `BudgetExceededError` for rules that come to too many.
    """
    if _USED.search(text) is None:
        return text
    read = _Text(text, meter)
    return _Expansion(read, meter).text() if read.uses or read.rules else text


class _Text:
    """What is outside of rules with parameters, and these."""

    def __init__(self, text: str, meter: Meter) -> None:
        self.text = text
        self.outside: list[str | _Use] = []
        self.rules: dict[str, tuple[str, _Group]] = {}
        self.uses = 0
        at, meter_at = 0, 0
        while (found := _PIECES.match(text, at)) is not None:
            at, meter_at = found.end(), meter_at + 1
            if meter_at % 1024 == 0:
                meter.check_time(_DOING)
            if found.lastgroup == "head":
                at = self._rule(found[0], found.start(), at)
                self.outside.append("\n" * text.count("\n", found.start(), at))
            elif found.lastgroup == "use":
                use, at = self._use(found[0], at)
                if use.depends:
                    raise self._error("a rule without a parameter has none to make another one of", found.start())
                self.outside.append(use)
                self.uses += 1
            elif found.lastgroup == "if":
                raise self._error("%if is for alternatives of rules that have a parameter", found.start())
            else:
                self.outside.append(found[0])

    def _error(self, what: str, at: int) -> DefinitionError:
        column = at - self.text.rfind("\n", 0, at)
        where = f"line {self.text.count(chr(10), 0, at) + 1}, column {column}"
        return DefinitionError(what, where=where, remedy=_WRITTEN)

    def _use(self, piece: str, at: int) -> tuple[_Use, int]:
        reader = ParameterReader(self.text, at, self._error)
        change, depends = reader.change()
        return _Use(piece.split(":")[0].strip(), change, depends), reader.at

    def _rule(self, head: str, begin: int, at: int) -> int:
        """Read a rule, from its body on; returns where it ends."""
        found = _HEAD.fullmatch(head)
        assert found is not None
        modifiers, name, priority = found.groups()
        if name in self.rules:
            raise self._error(f"the rule {name} is defined twice", begin)
        groups = [_Group()]
        while at < len(self.text) and (piece := _PIECES.match(self.text, at)) is not None:
            if piece.lastgroup == "last" or piece.lastgroup == "head":
                break
            at = self._piece(piece, groups)
        if len(groups) > 1:
            raise self._error(f"{groups[-1].opening} is never closed", begin)
        self.rules[name] = f"{modifiers}{{name}}{priority.strip()}", groups[0]
        return at

    def _piece(self, piece: re.Match[str], groups: list[_Group]) -> int:
        at, kind = piece.end(), piece.lastgroup
        items, conditions = groups[-1].alternatives[-1]
        if conditions and kind not in ("gap", "choice", "closing"):
            raise self._error("%if stands behind all of an alternative", piece.start())
        if kind == "opening":
            groups.append(_Group(piece[0]))
            if len(groups) > _DEEPEST:
                raise BudgetExceededError(f"groups in a rule with a parameter are nested more than {_DEEPEST} deep")
        elif kind == "closing":
            if len(groups) == 1:
                raise self._error(f"{piece[0]} closes nothing", piece.start())
            group = groups.pop()
            group.closing = piece[0]
            groups[-1].alternatives[-1][0].append(group)
        elif kind == "choice":
            groups[-1].alternatives.append(([], []))
        elif kind == "if":
            reader = ParameterReader(self.text, at, self._error)
            conditions.append(reader.condition())
            at = reader.at
        elif kind == "use":
            use, at = self._use(piece[0], at)
            items.append(use)
        elif kind == "postfix" and (last := _last_of(items)) is not None:
            last.postfix = piece[0]
        else:
            items.append(" " if kind == "gap" else piece[0])
        return at


def _last_of(items: list[_Item]) -> _Use | _Group | None:
    """The mention or group that items end with, if they do and nothing says yet how often it comes."""
    last = next((item for item in reversed(items) if item != " "), None)
    return None if last is None or isinstance(last, str) or last.postfix else last


class _Expansion:
    """Rules by the parameters that they are used with."""

    def __init__(self, read: _Text, meter: Meter) -> None:
        self._read, self._meter = read, meter
        self._stem = "__p"
        while self._stem in read.text:
            self._stem += "p"
        #: By rule: those that mention it.
        self._used_by: dict[_Instance, list[_Instance]] = {}
        #: Those without an alternative.
        self._dead: set[_Instance] = set()

    def text(self) -> str:
        """All of the grammar."""
        outside = [each if isinstance(each, str) else self._mention(each, 0) for each in self._read.outside]
        found = [*self._used_by]
        written = 0
        for number, instance in enumerate(found):  # grows as it goes
            if number % 64 == 0:
                self._meter.check_time(_DOING)
            for use, weight in self._uses(self._body(instance), instance[1]):
                written += weight
                if use is not None:
                    target = self._instance(use, instance[1])
                    if target not in self._used_by:
                        self._used_by[target] = []
                        found.append(target)
                    self._used_by[target].append(instance)
            if written > _MOST_WRITTEN:
                raise BudgetExceededError(
                    f"rules with parameters come to more than {len(found):,} rules",
                    where=f"rule {instance[0]}",
                    remedy="Have parameters take fewer values.",
                )
        self._find_dead(found)
        rules = (self._written(instance) for instance in self._meter.each(found, _DOING))
        return "".join(outside) + "\n" + "\n".join(rules) + "\n"

    def _body(self, instance: _Instance) -> _Group:
        return self._read.rules[instance[0]][1]

    def _instance(self, use: _Use, parameter: int) -> _Instance:
        if use.name not in self._read.rules:
            where = f"rule {use.name}"
            raise DefinitionError(
                f"no rule {use.name} has a parameter", where=where, remedy=f"Define it: {use.name}::_: ..."
            )
        return use.name, use.change(parameter)

    def _mention(self, use: _Use, parameter: int) -> str:
        instance = self._instance(use, parameter)
        self._used_by.setdefault(instance, [])
        return self._name(instance) + use.postfix

    def _name(self, instance: _Instance) -> str:
        return f"{instance[0]}{self._stem}{instance[1]:x}"

    def _uses(self, group: _Group, parameter: int) -> Iterator[tuple[_Use | None, int]]:
        """What a rule mentions, and about how many characters it takes to write each part of it."""
        for items in _held(group, parameter):
            for item in items:
                if isinstance(item, _Group):
                    yield from self._uses(item, parameter)
                else:
                    yield (None, len(item)) if isinstance(item, str) else (item, len(item.name) + 20)

    def _find_dead(self, instances: list[_Instance]) -> None:
        todo = instances
        while todo:
            dead = [each for each in todo if each not in self._dead and self._text(self._body(each), each[1]) is None]
            self._dead |= {*dead}
            self._meter.check_time(_DOING)
            todo = [*dict.fromkeys(user for each in dead for user in self._used_by[each])]

    def _written(self, instance: _Instance) -> str:
        head, body = self._read.rules[instance[0]]
        name = self._name(instance)
        text = self._text(body, instance[1])
        # What has no text is two of itself: no conflict comes of that, and compiling leaves it out.
        return f"{head.format(name=name)}: {f'{name} {name}' if text is None else text}"

    def _text(self, group: _Group, parameter: int) -> str | None:
        """What is left of a group, None where that is nothing."""
        found = (self._sequence(items, parameter) for items in _held(group, parameter))
        texts = [text for text in found if text is not None]
        return f"{group.opening}{' | '.join(texts)}{group.closing}{group.postfix}" if texts else None

    def _sequence(self, items: list[_Item], parameter: int) -> str | None:
        parts: list[str] = []
        for item in items:
            if isinstance(item, str):
                parts.append(item)
                continue
            if isinstance(item, _Group):
                text, may_be_none = self._text(item, parameter), item.opening == "["
            else:
                is_dead = self._instance(item, parameter) in self._dead
                text, may_be_none = None if is_dead else self._mention(item, parameter), False
            if text is None and not may_be_none and not _MAY_BE_NONE.match(item.postfix):
                return None
            parts.append(text or "")
        return "".join(parts)


def _held(group: _Group, parameter: int) -> Iterator[list[_Item]]:
    """The alternatives of which the conditions hold."""
    for items, conditions in group.alternatives:
        if all(condition(parameter) for condition in conditions):
            yield items
