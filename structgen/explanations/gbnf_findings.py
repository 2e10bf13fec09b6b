"""Findings about the texts of a `Gbnf`: which rules could go on, and with what.

A text is followed through the rules as llama.cpp does it: a set of stacks of what is still to be read. Equal stacks
are one cell, so that sets of them are compared by numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..budget import Budget, Meter
from ..compiler.gbnf.dialects import DIALECTS
from ..compiler.gbnf.reader import read_with_places
from ..compiler.gbnf.syntax import (
    CharacterSet,
    Choice,
    External,
    FreeText,
    GbnfGrammar,
    Network,
    QuotedText,
    Reference,
    Repetition,
    Rule,
    Sequence,
)
from ..definitions import Gbnf
from ..errors import StructgenError
from ..runtime.index.index import Index
from ..system.types import Foreign
from .characters import TextCharacter, characters
from .values import Findings, Reason

#: Stacks that are looked at for one character, and for a text; what is named of them.
_MOST_STACKS, _MOST_STEPS, _MOST_NAMED = 10_000, 300_000, 12

#: Characters of a text in quotes, and ranges of a set, that are shown.
_LONGEST, _MOST_RANGES = 40, 8

_BUDGET = Budget(seconds=0.5)

#: The stack with nothing on it.
_EMPTY = 0


class _Frame(NamedTuple):
    """What is to be read: a node, of which some is done: characters of a text, turns of a repeat; or a rule's end."""

    node: int
    done: int = 0
    ends: int = -1  # the rule whose end this is


class RuleStacks:
    """Stacks of what is still to be read of a grammar's rules.

    Parameters
    ----------
    grammar, start:
        The rules, and the number of the first one.
    places:
        Lines and columns of nodes, as far as they are to be named.
    """

    def __init__(self, grammar: GbnfGrammar, start: int, places: Mapping[int, str] = MappingProxyType({})) -> None:
        self.grammar = grammar
        self._places = places
        self._numbers: dict[tuple[_Frame, int], int] = {}
        self.cells: list[tuple[_Frame, int]] = [(_Frame(-1), -1)]
        self._texts = {
            node: each.data.decode("utf-8", "replace")
            for node, each in enumerate(grammar.nodes)
            if isinstance(each, QuotedText)
        }
        self.start = self._push(_Frame(grammar.rules[start].root), self._push(_Frame(-1, ends=start), _EMPTY))
        self.steps = 0

    def _push(self, frame: _Frame, below: int) -> int:
        found = self._numbers.get((frame, below))
        if found is None:
            found = self._numbers[frame, below] = len(self.cells)
            self.cells.append((frame, below))
        return found

    def closed(self, stacks: Iterable[int]) -> list[int] | None:
        """Stacks that a character is read by, or that are empty; None where there are too many."""
        todo = list(dict.fromkeys(stacks))
        seen, found = set(todo), []
        for stack in todo:  # grows
            if len(todo) > _MOST_STACKS:
                return None
            frame, _ = self.cells[stack]
            if stack == _EMPTY or (frame.ends < 0 and isinstance(self._node(frame), QuotedText | CharacterSet)):
                found.append(stack)
                continue
            for after in self._opened(stack):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        self.steps += len(todo)
        return found

    def _node(self, frame: _Frame) -> object:
        return self.grammar.nodes[frame.node]

    def _opened(self, stack: int) -> list[int]:
        """What a stack stands for, whose uppermost frame reads nothing itself."""
        frame, below = self.cells[stack]
        if frame.ends >= 0:
            return [below]
        node = self._node(frame)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                below = self._push(_Frame(part), below)
            return [below]
        if isinstance(node, Choice):
            return [self._push(_Frame(option), below) for option in node.options]
        if isinstance(node, Reference):
            ends = self._push(_Frame(-1, ends=node.rule), below)
            return [self._push(_Frame(self.grammar.rules[node.rule].root), ends)]
        assert isinstance(node, Repetition)
        found = [below] if frame.done >= node.min else []
        if node.max is None or frame.done < node.max:
            done = min(frame.done + 1, node.min) if node.max is None else frame.done + 1
            found.append(self._push(_Frame(node.item), self._push(_Frame(frame.node, done), below)))
        return found

    def wanted(self, stack: int) -> tuple[tuple[int, int], ...]:
        """The characters that a closed stack reads next."""
        frame, _ = self.cells[stack]
        node = self._node(frame)
        if isinstance(node, CharacterSet):
            return node.ranges
        return ((ord(self._texts[frame.node][frame.done]),) * 2,)

    def after(self, stacks: Iterable[int], character: TextCharacter) -> list[int]:
        """Where a character leads."""
        found = []
        for stack in stacks:
            if stack != _EMPTY and character.is_in(self.wanted(stack)):
                frame, below = self.cells[stack]
                is_read = frame.node not in self._texts or frame.done + 1 == len(self._texts[frame.node])
                found.append(below if is_read else self._push(frame._replace(done=frame.done + 1), below))
        return found

    def described(self, stack: int) -> tuple[Rule, str]:
        """The rule that a closed stack is in, and what it reads next."""
        frame, below = self.cells[stack]
        while self.cells[below][0].ends < 0:
            below = self.cells[below][1]
        rule = self.grammar.rules[self.cells[below][0].ends]
        if frame.node in self._texts:
            text = self._texts[frame.node][frame.done :]
            wanted = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        else:
            wanted = _set(self.wanted(stack))
        place = self._places.get(frame.node)
        return rule, f"{wanted} ({place})" if place else wanted


def find(index: Index, definition: Gbnf, data: bytes, ended: bool, _: Foreign = None) -> Findings:
    """Which rules could go on in place of a text's last character, or of its end."""
    meter = Meter(_BUDGET)
    try:
        key = definition.canonical()
        known = index.explanations.get(key)
        if known is None:
            known = index.explanations[key] = read_with_places(definition.text, meter, DIALECTS[definition.notation])
    except StructgenError as error:
        return Findings((), "", (f"the rules are not looked into: {error}",))
    grammar, places = known
    if any(isinstance(node, FreeText | Network | External) for node in grammar.nodes):
        return Findings((), "", ("the rules are not looked into: they hold free text, a regex or tokens",))
    start = next(number for number, rule in enumerate(grammar.rules) if rule.name == definition.start)
    text = characters(data)
    if text is None:
        return Findings((Reason("rule", (), "the text is not UTF-8"),))
    rules = RuleStacks(grammar, start, places)
    stacks = rules.closed([rules.start])
    for character in text if ended else text[:-1]:
        if stacks is None or rules.steps > _MOST_STEPS:
            break
        stacks = rules.closed(rules.after(stacks, character))
    if stacks is None or rules.steps > _MOST_STEPS:
        return Findings((), "", ("the rules can be followed in too many ways to name those that are at work",))
    return _named(rules, stacks)


def _named(rules: RuleStacks, stacks: list[int]) -> Findings:
    by_rule: dict[str, list[str]] = {}
    for stack in stacks:
        if stack != _EMPTY:
            rule, wanted = rules.described(stack)
            found = by_rule.setdefault(f"{rule.name} ({rule.where})", [])
            if wanted not in found:
                found.append(wanted)
    where = tuple(by_rule)[:_MOST_NAMED]
    parts = [f"the rule {name} goes on with {' or '.join(by_rule[name][:_MOST_NAMED])}" for name in where]
    parts += ["the text ends there"] if _EMPTY in stacks else []
    parts += [f"{len(by_rule) - len(where)} other rules"] if len(by_rule) > len(where) else []
    return Findings((Reason("rule", where, "; ".join(parts)),), f"the rule {where[0]}" if where else "")


def _set(ranges: tuple[tuple[int, int], ...]) -> str:
    """A set of characters as a class."""
    parts = [chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in ranges[:_MOST_RANGES]]
    return f"[{''.join(parts)}{'…' if len(ranges) > _MOST_RANGES else ''}]".encode("unicode_escape").decode()
