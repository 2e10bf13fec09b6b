"""What Lark would come to with a grammar, reckoned before it begins.

Lark cannot be stopped, and a short text may keep it busy for ever: a string that is never closed (its regexes
backtrack), options in a row (each doubles the expansions), a template that names ever new templates, a terminal of
two terminals of two terminals. `check_text` looks at the text alone; `check_definitions` at what was read, before it
is written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...budget import Meter
from ...errors import BudgetExceededError, DefinitionError
from ...grammar_text import GAP

#: A text in the pieces that matter here. `otherwise` is a quotation mark or a slash that begins nothing.
_PIECES = re.compile(
    rf"""(?P<blank>\s+) | (?P<comment>//[^\n]*|\#[^\n]*)
      | (?P<override>%override\b) | (?P<head>_?[A-Z][A-Z0-9_]*{GAP}(?:\.{GAP}[+-]?\d+{GAP})?:) | (?P<word>\w+)
      | (?P<literal>"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\(?s:.)|[^/\\])*/)
      | (?P<open>[(\[{{]) | (?P<close>[)\]}}]) | (?P<otherwise>["/]) | (?P<other>[^\w\s"/\#(){{}}\[\]])""",
    re.VERBOSE,
)

#: Line ends in a row: Lark's time grows with their square.
_MOST_BLANK = 2_000

#: Pieces of a text, and symbols of rules, that Lark gets through in a second; steps over definitions, likewise.
_PIECES_A_SECOND = 30_000
_SYMBOLS_A_SECOND = 200_000
_STEPS_A_SECOND = 500_000
_TERMINALS_A_SECOND = 30_000_000

#: Terminals within terminals.
_DEEPEST = 150

#: Uses of a template with different arguments, and characters of the name that Lark gives to one.
_MOST_INSTANCES = 2_000
_LONGEST_NAME = 4_000

#: Repeats that Lark writes out as they are, and the most that a rule has of the others (`lark.load_grammar`).
_FEW, _STEP = 50, 5

#: From here on a number is just large.
_LARGE = 10**12


def check_text(text: str, meter: Meter) -> None:
    """Look for what is never closed, for nesting, blank lines, terminals that grow beyond measure, and sheer length.

    Raises `DefinitionError` for the first, `BudgetExceededError` for the others.
    """
    most = meter.work(_PIECES_A_SECOND)
    depth = 0
    for pieces, found in enumerate(_PIECES.finditer(text)):
        kind = found.lastgroup
        if kind == "open":
            depth += 1
            if depth > meter.budget.depth:
                raise BudgetExceededError(
                    f"groups are nested more than {meter.budget.depth:,} deep",
                    where=_place(text, found.start()),
                    remedy="Give inner groups rules of their own.",
                )
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "blank" and found[0].count("\n") > _MOST_BLANK:
            raise BudgetExceededError(
                f"there are more than {_MOST_BLANK:,} line ends in a row",
                where=_place(text, found.start()),
                remedy="Leave some out.",
            )
        elif kind == "otherwise":
            what = "string" if found[0] == '"' else "regex"
            raise DefinitionError(
                f"the {what} is never closed", where=_place(text, found.start()), remedy=f"Close it with {found[0]}"
            )
        if pieces > most:
            raise meter.out_of_time("reading the grammar")
    _check_terminals(_terminals_within(text), meter)


def check_definitions(definitions: Mapping[str, Any], start: str, meter: Meter) -> None:
    """Raise `BudgetExceededError` for definitions that grow beyond measure when Lark writes them out.

    ``definitions`` are those of Lark's `GrammarBuilder`: each has ``is_term``, ``params`` and ``tree``, which is None
    for one that is declared only.
    """
    rules = {name: d for name, d in definitions.items() if not d.is_term and d.tree is not None}
    _check_unused(rules, start, meter)
    size = _Size()
    for definition in rules.values():
        if not definition.params:
            size.add(definition.tree)
    for tree in _instances(rules):
        size.add(tree)
    most = min(meter.budget.states, meter.work(_SYMBOLS_A_SECOND))
    if size.symbols > most:
        raise BudgetExceededError(
            f"written out, the rules come to more than {most:,} symbols",
            where="options and choices in a row multiply",
            remedy="Give parts rules of their own, or write x~0..n for x? x? x?",
        )


# -- terminals ------------------------------------------------------------------------------------------------


def _terminals_within(text: str) -> dict[str, list[str]]:
    """By terminal, the terminals that it is made of."""
    found: dict[str, list[str]] = {}
    here: list[str] = []
    overriding = False
    for piece in _PIECES.finditer(text):
        if piece.lastgroup == "override":
            here, overriding = [], True
        elif piece.lastgroup == "head":
            name = re.split(r"\W", piece[0], maxsplit=1)[0]
            here = [] if overriding else found.get(name, [])
            found[name], overriding = here, False
        elif piece[0] in (":", "%"):  # what follows is of a rule, or of a statement that defines nothing
            here = []
        elif piece.lastgroup == "word" and piece[0].isupper():
            here.append(piece[0])
    return found


def _check_terminals(within: dict[str, list[str]], meter: Meter) -> None:
    """Lark puts terminals into terminals, and walks each once for every part of it, as if nothing were shared."""
    weights: dict[str, int] = {}
    reached: dict[str, set[str]] = {}

    def weigh(name: str, depth: int) -> None:
        if name in weights or name not in within:
            return
        if depth > _DEEPEST:
            raise BudgetExceededError(
                f"terminals are made of terminals more than {_DEEPEST} deep",
                remedy="Write the inner ones as one regex.",
            )
        weights[name] = 1  # until it is known: a terminal within itself is Lark's to refuse
        for part in within[name]:
            weigh(part, depth + 1)
        weights[name] = min(_LARGE, 1 + sum(weights.get(part, 1) for part in within[name]))
        reached[name] = {name}.union(*(reached.get(part, ()) for part in within[name]))

    most, steps = meter.work(_TERMINALS_A_SECOND), 0
    for name in within:
        weigh(name, 0)
        steps += sum(weights[part] for part in reached[name]) * len(reached[name])
        if steps > most:
            raise BudgetExceededError(
                "terminals are made of terminals too many times over",
                where=f"terminal {name}",
                remedy="Write the inner ones as one regex.",
            )


# -- rules ----------------------------------------------------------------------------------------------------


def _check_unused(rules: Mapping[str, Any], start: str, meter: Meter) -> None:
    """Lark takes unused rules away in layers, looking at all rules each time."""
    uses = {name: {n for n in _rules_in(d.tree) if n in rules and n != name} for name, d in rules.items()}
    users = dict.fromkeys(rules, 0)
    for used in uses.values():
        for name in used:
            users[name] += 1
    layer, layers = [name for name, count in users.items() if not count and name != start], 0
    while layer:
        layers += 1
        after = []
        for name in layer:
            for used_name in uses[name]:
                users[used_name] -= 1
                if not users[used_name] and used_name != start:
                    after.append(used_name)
        layer = after
    if layers * sum(map(len, uses.values())) > meter.work(_STEPS_A_SECOND):
        raise BudgetExceededError(
            f"unused rules use each other {layers:,} deep", where="taking them away", remedy="Leave them out."
        )


def _rules_in(tree: Any) -> Iterator[str]:
    for value in tree.find_data("value"):
        if hasattr(value.children[0], "name"):
            yield value.children[0].name
    for usage in tree.find_data("template_usage"):
        yield usage.children[0].name


class _Size:
    """Counts the symbols of rules as Lark writes them out: without groups, one expansion for each way through."""

    def __init__(self) -> None:
        self.symbols = 0

    def add(self, tree: Any) -> None:
        """Count a rule, with the rules that its repeats become."""
        self._count(*self._ways(tree))

    def _count(self, ways: int, symbols: int) -> None:
        self.symbols = min(_LARGE, self.symbols + ways + symbols)

    def _ways(self, tree: Any) -> tuple[int, int]:
        """How many expansions a tree comes to, and how many symbols these have."""
        if tree.data == "expansions":
            return _sum([self._ways(child) for child in tree.children])
        if tree.data == "expansion":
            ways, symbols = 1, 0
            for child in tree.children:
                ways, symbols = _product((ways, symbols), self._ways(child))
            return ways, symbols
        if tree.data == "alias":
            return self._ways(tree.children[0])
        if tree.data == "maybe":
            return _sum([self._ways(tree.children[0]), (1, 1)])
        if tree.data == "expr":
            return self._repeated(self._ways(tree.children[0]), *tree.children[1:])
        return 1, 1

    def _repeated(self, inner: tuple[int, int], operator: str, *counts: str) -> tuple[int, int]:
        if operator == "?":
            return _sum([inner, (1, 0)])
        if operator in ("*", "+"):
            self._count(*_sum([inner, _product((1, 1), inner)]))
            return (1, 1) if operator == "+" else (2, 1)
        least, most = (max(0, int(count)) for count in (counts[0], counts[-1]))
        if most < _FEW:
            return _sum([_power(inner, n) for n in range(least, most + 1)])
        for _ in range(most.bit_length()):  # no more rules than that, each of which repeats `_STEP` times at most
            self._count(*_sum([_power(inner, n) for n in range(_STEP + 1)]))
        return 1, 2


def _sum(parts: list[tuple[int, int]]) -> tuple[int, int]:
    return min(_LARGE, sum(ways for ways, _ in parts)), min(_LARGE, sum(symbols for _, symbols in parts))


def _product(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return min(_LARGE, left[0] * right[0]), min(_LARGE, left[1] * right[0] + left[0] * right[1])


def _power(inner: tuple[int, int], n: int) -> tuple[int, int]:
    found = (1, 0)
    for _ in range(n):
        found = _product(found, inner)
    return found


# -- templates ------------------------------------------------------------------------------------------------


def _instances(rules: Mapping[str, Any]) -> Iterator[Any]:
    """The tree of a template, for each set of arguments that it is used with."""
    seen: set[str] = set()
    todo: list[tuple[Any, dict[str, str]]] = [(d.tree, {}) for d in rules.values() if not d.params]

    def use(usage: Any, names: dict[str, str]) -> str:
        template, *arguments = usage.children
        name = names.get(template.name, template.name)
        given = [named(argument, names) for argument in arguments]
        whole = f"{name}{{{','.join(given)}}}"
        if whole not in seen:
            seen.add(whole)
            if len(seen) > _MOST_INSTANCES or len(whole) > _LONGEST_NAME:
                raise BudgetExceededError(
                    f"the template {name} is used with more and more arguments",
                    where="writing templates out",
                    remedy="Let no template use one with arguments made of its own.",
                )
            if name in rules:
                todo.append((rules[name].tree, dict(zip(rules[name].params, given, strict=False))))
        return whole

    def named(value: Any, names: dict[str, str]) -> str:
        child = value.children[0]
        if not hasattr(child, "children"):
            return names.get(child.name, str(child.name))
        return use(child, names) if child.data == "template_usage" else str(child.children)

    while todo:
        tree, names = todo.pop()
        if names:
            yield tree
        for usage in tree.find_data("template_usage"):
            use(usage, names)


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"
