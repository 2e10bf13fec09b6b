"""What Lark would come to with a grammar, reckoned before it begins.

Lark cannot be stopped, and a short text may keep it busy for ever: a string that is never closed (its regexes
backtrack), options in a row (each doubles the expansions), a template that names ever new templates, a terminal of
two terminals of two terminals, a long regex in many terminals. `check_text` looks at the text alone;
`check_definitions` at what was read, before it is written out. Both reckon in microseconds, with rates that are
about half of what was measured, and in bytes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lark import Token, Tree
from lark.grammar import Symbol

from ....budget import Meter
from ....definitions.grammar_text import GAP
from ....errors import BudgetExceededError, DefinitionError

if TYPE_CHECKING:
    from lark.load_grammar import Definition

#: A part of a definition as Lark reads it. Its leaves are tokens, which are strings, and symbols, which have names.
_Tree: TypeAlias = "Tree[Token | Symbol]"

#: The trees of rules, and the parameters of those that are templates.
_Rules: TypeAlias = "Mapping[str, tuple[_Tree, Sequence[str]]]"

#: A text in the pieces that matter here. `otherwise` is a quotation mark or a slash that begins nothing.
_PIECES = re.compile(
    rf"""(?P<blank>\s+) | (?P<comment>//[^\n]*|\#[^\n]*)
      | (?P<override>%override\b) | (?P<head>_?[A-Z][A-Z0-9_]*{GAP}(?:\.{GAP}[+-]?\d+{GAP})?:) | (?P<word>\w+)
      | (?P<literal>"[^"\\\n]*(?:\\.[^"\\\n]*)*"|/(?!/)[^/\\]*(?:\\(?s:.)[^/\\]*)*/)
      | (?P<open>[(\[{{]) | (?P<close>[)\]}}]) | (?P<otherwise>["/]) | (?P<other>[^\w\s"/\#(){{}}\[\]])""",
    re.VERBOSE,
)

#: Line ends in a row: Lark's time grows with their square.
_MOST_BLANK = 2_000

#: Microseconds that Lark takes to read a piece of a text, and as many characters as take one microsecond.
_PIECE, _CHARACTERS = 33, 2

#: Bytes for each character of a text, and of a string or regex, which Lark and Python's `re` take to parts.
_BYTES_OF_TEXT, _BYTES_OF_CHARACTER = 16, 300

#: Strings and regexes that are longer are looked at by themselves.
_LONG = 4_096

#: Microseconds for each: a node of a terminal as it is written out, one of a template, one of a rule; a literal of a
#: rule, an expansion that a rule comes to, a symbol in one; a character of a regex (Python's `re` takes it to parts).
_NODE, _COPY, _BRANCH, _LITERAL, _EXPANSION, _SYMBOL, _PARSED = 30, 30, 20, 80, 25, 3, 2

#: Where branches of a regex begin alike, that takes the product of their lengths: so many of it are one character.
_ALIKE = 1 << 15

#: What begins and ends branches of a regex, escapes and classes passed over; a regex in which that is not so.
_BRANCHES = re.compile(r"\\.|\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\]|[(|)]", re.DOTALL)
_VERBOSE = re.compile(r"\(\?[a-zA-Z-]*x|/[a-z]*x[a-z]*\Z")

#: In a microsecond: parts of terminals, rules that are gone through for a template, nodes within a group.
_PARTS, _RULES, _NODES = 30, 10, 10

#: Terminals within terminals.
_DEEPEST = 150

#: Uses of a template with different arguments, and characters of the name that Lark gives to one.
_MOST_INSTANCES = 2_000
_LONGEST_NAME = 4_000

#: Repeats that Lark writes out as they are, and the most that a rule has of the others (`lark.load_grammar`).
_FEW, _STEP = 50, 5

#: From here on a number is just large.
_LARGE = 10**12


def check_text(text: str, meter: Meter, file: str = "") -> None:
    """Look for what is never closed, for nesting, blank lines, terminals that grow beyond measure, and sheer length.

    Raises `DefinitionError` for the first, `BudgetExceededError` for the others; ``file`` is what they name.
    """
    meter.check_memory(_BYTES_OF_TEXT * len(text), "reading the grammar")
    most = meter.work(1_000_000) - len(text) // _CHARACTERS
    depth = 0
    for pieces, found in enumerate(_PIECES.finditer(text)):
        kind = found.lastgroup
        if kind == "open":
            depth += 1
            if depth > meter.budget.depth:
                raise BudgetExceededError(
                    f"groups are nested more than {meter.budget.depth:,} deep",
                    where=_place(text, found.start(), file),
                    remedy="Give inner groups rules of their own.",
                )
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "blank" and found[0].count("\n") > _MOST_BLANK:
            raise BudgetExceededError(
                f"there are more than {_MOST_BLANK:,} line ends in a row",
                where=_place(text, found.start(), file),
                remedy="Leave some out.",
            )
        elif kind == "literal" and len(found[0]) > _LONG:
            meter.check_memory(_BYTES_OF_CHARACTER * len(found[0]), "reading the grammar")
        elif kind == "otherwise":
            what = "string" if found[0] == '"' else "regex"
            raise DefinitionError(
                f"the {what} is never closed",
                where=_place(text, found.start(), file),
                remedy=f"Close it with {found[0]}",
            )
        if pieces * _PIECE > most:
            raise meter.out_of_time("reading the grammar")
    _check_terminals(_terminals_within(text), meter)


def check_definitions(definitions: Mapping[str, Definition], start: str, meter: Meter) -> None:
    """Raise `BudgetExceededError` for definitions that grow beyond measure when Lark writes them out."""
    trees = _Trees()
    terminals = [trees.weight(d.tree) for d in definitions.values() if d.is_term and d.tree is not None]
    _check_terminals_written_out(terminals, meter)
    rules = {name: (d.tree, d.params) for name, d in definitions.items() if not d.is_term and d.tree is not None}
    size = _Size()
    for rule, params in rules.values():
        if not params:
            size.add(rule)
    copied = instances = 0
    for tree in _instances(rules):
        instances += 1
        copied += trees.weight(tree).nodes
        size.add(tree)
        if size.symbols > meter.budget.states:
            break
    if size.symbols > meter.budget.states:
        raise BudgetExceededError(
            f"written out, the rules come to more than {meter.budget.states:,} symbols",
            where="options and choices in a row multiply",
            remedy="Give parts rules of their own, or write x~0..n for x? x? x?",
        )
    meter.check_memory(_BYTES_OF_CHARACTER // 2 * size.longest, "writing out the rules of the grammar")
    spent = size.symbols * _SYMBOL + size.ways * _EXPANSION + size.literals * _LITERAL + size.nodes * _BRANCH
    spent += size.steps + copied * _COPY + instances * (len(rules) + instances) // _RULES + size.parsed * _PARSED
    spent += sum(each.nodes * _NODE + each.parsed * _PARSED for each in terminals)
    spent += size.nodes * size.deepest // _NODES
    layers = _unused_layers(rules, start)
    if layers and spent + (layers + instances) * size.deepest * size.symbols > meter.work(1_000_000):
        raise BudgetExceededError(
            f"unused rules use each other {layers:,} deep", where="taking them away", remedy="Leave them out."
        )
    if spent > meter.work(1_000_000):
        raise meter.out_of_time("writing out the rules of the grammar")


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

    most, steps = meter.work(_PARTS * 1_000_000), 0
    for name in within:
        weigh(name, 0)
        steps += sum(weights[part] for part in reached[name]) * len(reached[name])
        if steps > most:
            raise _too_many_times(f"terminal {name}")


def _too_many_times(where: str = "") -> BudgetExceededError:
    return BudgetExceededError(
        "terminals are made of terminals too many times over", where=where, remedy="Write the inner ones as one regex."
    )


class _Weight(NamedTuple):
    """What a tree comes to when nothing in it is shared.

    Parameters
    ----------
    nodes:
        Of the tree.
    characters:
        Of its regex.
    parse:
        What Python's `re` takes to parse that, in characters.
    parsed:
        What it takes for the widths of all parts: alternatives are sorted by them.
    """

    nodes: int
    characters: int
    parse: int
    parsed: int


class _Trees:
    """The weights of Lark's trees, in which terminals share what they are made of."""

    def __init__(self) -> None:
        self._known: dict[int, _Weight] = {}

    def weight(self, tree: _Tree) -> _Weight:
        """The weight of a tree; of those within it, children first."""
        todo = [(tree, False)]
        while todo:
            node, is_ready = todo.pop()
            if is_ready:
                self._known[id(node)] = self._weighed(node)
            elif id(node) not in self._known:
                todo.append((node, True))
                todo += ((child, False) for child in _within(node))
        return self._known[id(tree)]

    def _weighed(self, node: _Tree) -> _Weight:
        if node.data == "literal":
            (literal,) = _words(node)
            return _Weight(1, 8 + 2 * len(literal), _parse(literal), 0)
        within = [self._known[id(child)] for child in _within(node)]
        nodes, characters, parse, parsed = (sum(each) for each in zip((1, 8, 8, 0), *within, strict=True))
        if len(within) > 1 and node.data == "expansions":
            parsed += parse
            parse += min(each.characters for each in within) * characters // _ALIKE
        return _Weight(*(min(_LARGE, each) for each in (nodes, characters, parse, parsed)))


def _within(node: _Tree) -> list[_Tree]:
    return [child for child in node.children if isinstance(child, Tree)]


def _words(node: _Tree) -> list[str]:
    return [child for child in node.children if isinstance(child, Token)]


def _names(node: _Tree) -> list[str]:
    return [str(child.name) for child in node.children if isinstance(child, Symbol)]


def _parse(literal: str) -> int:
    """What Python's `re` takes to parse a string or regex, in characters.

    What all branches of a group begin with is taken away one by one, from each branch.
    """
    size = len(literal)
    if size < _LONG or literal[0] != "/":
        return size
    if _VERBOSE.search(literal):  # comments may hold anything
        return size + size * size // _ALIKE
    alike, end = 0, size
    groups = [(1, 1, size)]  # the open ones: where it begins, where its last branch does, the shortest of the others
    for found in itertools.chain(_BRANCHES.finditer(literal), [None]):
        mark, at = (found[0], found.start()) if found else (")", end)
        if mark == "(":
            groups.append((at, at, size))
        elif mark in ("|", ")") and groups:
            begin, branch, shortest = groups.pop()
            if mark == "|":
                groups.append((begin, at, min(shortest, at - branch)))
            elif shortest < size:
                alike += min(shortest, at - branch) * (at - begin)
    return size + alike // _ALIKE


def _check_terminals_written_out(terminals: list[_Weight], meter: Meter) -> None:
    """Lark writes each terminal out as one regex, as if nothing were shared."""
    nodes = sum(each.nodes for each in terminals)
    characters = sum(each.characters for each in terminals)
    longest = max((each.characters for each in terminals), default=0)
    if nodes > meter.budget.states * _NODE:
        raise _too_many_times()
    meter.check_memory(characters + _BYTES_OF_CHARACTER // 2 * longest, "writing out the terminals of the grammar")
    parsed = sum(each.parse + each.parsed for each in terminals)
    if nodes * _NODE + parsed * _PARSED > meter.work(1_000_000):
        raise meter.out_of_time("writing out the terminals of the grammar")


# -- rules ----------------------------------------------------------------------------------------------------


def _unused_layers(rules: _Rules, start: str) -> int:
    """Lark takes unused rules away in layers, looking at all rules each time."""
    uses = {name: {n for n in _rules_in(tree) if n in rules and n != name} for name, (tree, _) in rules.items()}
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
    return layers


def _rules_in(tree: _Tree) -> Iterator[str]:
    for value in tree.find_data("value"):
        yield from _names(value)
    for usage in tree.find_data("template_usage"):
        yield from _names(usage)


class _Size:
    """Counts what rules come to as Lark writes them out: without groups, one expansion for each way through.

    Attributes
    ----------
    symbols, ways:
        Symbols of expansions, and expansions.
    nodes, literals:
        Nodes of the rules' trees; strings and regexes, and uses of templates.
    parsed, longest:
        Characters of regexes in the rules, as `_Weight.parsed`, and those of the longest one.
    steps:
        Nodes that Lark looks at while it writes groups out, one after the other.
    deepest:
        How deep groups lie within groups.
    """

    def __init__(self) -> None:
        self.symbols = self.ways = self.nodes = self.literals = self.parsed = self.longest = self.steps = 0
        self.deepest = 1
        self._depth = 1

    def add(self, tree: _Tree) -> None:
        """Count a rule, with the rules that its repeats become."""
        self._count(*self._ways(tree))

    def _count(self, ways: int, symbols: int) -> None:
        self.symbols = min(_LARGE, self.symbols + ways + symbols)
        self.ways = min(_LARGE, self.ways + ways)

    def _ways(self, tree: _Tree) -> tuple[int, int]:
        """How many expansions a tree comes to, and how many symbols these have."""
        self.nodes += 1
        if tree.data == "expansions":
            self._depth += 1
            self.deepest = max(self.deepest, self._depth)
            found = [self._ways(child) for child in _within(tree)]
            self._depth -= 1
            return _sum(found)
        if tree.data == "expansion":
            # Groups are written out one by one, each for all ways through those before it.
            before, visits = self.nodes, 0
            so_far = 1, 0
            for child in _within(tree):
                so_far = _product(so_far, self._ways(child))
                if child.data != "value" and child.children[-1] != "+":
                    visits += so_far[0]
            self.steps = min(_LARGE, self.steps + visits * (1 + self.nodes - before))
            return so_far
        if tree.data == "alias":
            return self._ways(_within(tree)[0])
        if tree.data == "maybe":
            return _sum([self._ways(_within(tree)[0]), (1, 1)])
        if tree.data == "expr":
            return self._repeated(self._ways(_within(tree)[0]), *_words(tree))
        for leaf in _within(tree):
            self.literals += 1
            for literal in _words(leaf)[:1]:
                self.parsed += _parse(literal)
                self.longest = max(self.longest, len(literal))
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


def _instances(rules: _Rules) -> Iterator[_Tree]:
    """The tree of a template, for each set of arguments that it is used with."""
    seen: set[str] = set()
    todo: list[tuple[_Tree, dict[str, str]]] = [(tree, {}) for tree, params in rules.values() if not params]
    while todo:
        tree, names = todo.pop()
        if names:
            yield tree
        for usage in tree.find_data("template_usage"):
            _use(rules, usage, names, seen, todo)


def _use(
    rules: _Rules, usage: _Tree, names: dict[str, str], seen: set[str], todo: list[tuple[_Tree, dict[str, str]]]
) -> str:
    """The name that Lark gives to a template with its arguments; one that is new waits."""
    (template,) = _names(usage)
    name = names.get(template, template)
    given = [_argument(rules, argument, names, seen, todo) for argument in _within(usage)]
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
            tree, params = rules[name]
            todo.append((tree, dict(zip(params, given, strict=False))))
    return whole


def _argument(
    rules: _Rules, value: _Tree, names: dict[str, str], seen: set[str], todo: list[tuple[_Tree, dict[str, str]]]
) -> str:
    for name in _names(value):
        return names.get(name, name)
    (child,) = _within(value)
    is_usage = child.data == "template_usage"
    return _use(rules, child, names, seen, todo) if is_usage else str(child.children)


def _place(text: str, at: int, file: str) -> str:
    return f"{file and f'{file}, '}line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"
