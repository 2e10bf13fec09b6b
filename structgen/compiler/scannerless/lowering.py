"""A grammar in Lark's syntax as rules over bytes: its parser's language and its lexer's, intersected.

Which texts Lark's LALR parser and its lexer read together is said by rules and by a regular constraint on where
lexemes end, and the intersection of the two is given by the construction of Bar-Hillel, Perles and Shamir (1961):
a nonterminal becomes one for each control that it can begin with and each that it can end with, ``N[control ->
control]``. Controls are the lexer's (`structgen.compiler.scannerless.lexemes`), with the terminals against
which conflicts were decided. Only what texts come to is made: controls are found by tabulation, as in Earley's
algorithm (1970), from the first on.

Nothing in a program may begin with itself, and LR grammars do. What can begin with each other becomes one automaton,
in which the end of a nonterminal goes on with the rules that begin with it (left corners: Rosenkrantz & Lewis 1970).
So does what can end with several controls: a call of it would have to say with which, at each level of an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ...budget import Meter
from ...definitions import Grammar
from ...definitions.structured_regexes import LONG
from ...errors import EmptyLanguageError, UnsupportedError
from ...runtime.core.digraph import set_of, solve
from ..gbnf.compiler import rules_of
from ..gbnf.facts import establish
from ..gbnf.interiors import Interiors
from ..gbnf.lowering import Lowering
from ..gbnf.syntax import External, GbnfGrammar, Network, Node, NodeId, Reference, Rule, Sequence
from ..grammar.compiler import contexts_of, ignored_by, parser_of, read_rules
from ..grammar.diagnostics import collisions
from ..grammar.lexer import minimise as merging
from ..grammar.lexer import scanner
from ..grammar.lexer.positions import ProductStates
from ..grammar.parser.symbols import Symbol
from ..programs.program import Program
from . import controls
from .annotated import AnnotatedGrammar, AnnotatedRule, Step, accepted, annotated
from .controls import Control, LexerStates
from .inner import AppendedPrograms, InnerPrograms
from .lexemes import Lexemes

_DOING = "putting the grammar's rules and its lexer together"

#: Bytes of an item, and of a move of an automaton.
_BYTES_OF_ITEM, _BYTES_OF_MOVE = 600, 200

#: A nonterminal and the control before it; with the control behind it.
_Goal: TypeAlias = tuple[int, Control]
_Triple: TypeAlias = tuple[int, Control, Control]

#: A definition within the grammar, and the control before it.
_Begun: TypeAlias = tuple[Symbol, Control]

#: What is read on a way: a nonterminal with its controls, a definition, or a terminal.
_Label: TypeAlias = "_Triple | _Begun | Network"


class _Item(NamedTuple):
    """A place in a rule of a nonterminal, and the control there."""

    nonterminal: int
    rule: int
    place: int
    control: Control


def lower_grammar(definition: Grammar, meter: Meter, inner: InnerPrograms | None = None) -> GbnfGrammar:
    """The rules of a grammar over bytes; the first is the start. Externals are the definitions ``inner`` to it.

    Raises
    ------
    UnsupportedError
        For what is no text of its own: indentation, special tokens, other definitions. For rules that begin with
        themselves behind something empty.
    DefinitionError, EmptyLanguageError, BudgetExceededError
        As `structgen.compiler.grammar.compiler.compile_grammar`.
    """
    if definition.postlex is not None:
        raise UnsupportedError(
            "a grammar with indentation cannot be part of another definition", remedy="Compile it alone, as a Grammar."
        )
    grammar = read_rules(definition, meter)
    definitions: dict[Symbol, int] = {}
    for t, terminal in enumerate(grammar.terminals):
        if terminal.substring is not None:
            raise UnsupportedError(
                f"the grammar is part of another definition and has a text of more than {LONG:,} bytes",
                where=f"terminal {terminal.name}",
                remedy="Shorten the text, or compile it alone, as a Grammar.",
            )
        if terminal.max_tokens is not None:
            raise UnsupportedError(
                "the grammar is part of another definition and has max_tokens, which counts tokens",
                where=f"terminal {terminal.name}",
                remedy="Bound the characters, [max_chars=200], or compile it alone, as a Grammar.",
            )
        if terminal.pattern is not None:
            continue
        number = None if inner is None or terminal.name in grammar.ignored else inner.number(terminal.name)
        if number is None:
            raise UnsupportedError(
                f"the grammar is part of another definition and has {terminal.name}, which nothing lexes",
                where=f"terminal {terminal.name}",
                remedy="Put special tokens and schemas beside the grammar, in a sequence, or compile it alone.",
            )
        definitions[t] = number
    if grammar.captures or any(terminal.temperature is not None for terminal in grammar.terminals):
        raise UnsupportedError(
            "the grammar is part of another definition, where captures and temperatures are not known",
            remedy="Leave these attributes out, or compile it alone, as a Grammar.",
        )
    table = parser_of(grammar, meter, definition.ambiguity, definition.strict, definition.text)
    ignored = ignored_by(grammar)
    contexts = contexts_of(grammar, table, definition.lexer, ignored)
    matchers = scanner.matchers(grammar.terminals, 0, meter)
    distinct = list(dict.fromkeys(contexts))
    if definition.strict:
        collisions.check(grammar.terminals, matchers, distinct, meter)
    words = scanner.embedded(grammar.terminals, matchers, meter)
    lexer = scanner.lexer(distinct, ProductStates(matchers, meter), words, len(grammar.terminals) + 1, meter)
    lexer = merging.merged(lexer, meter)
    start_of = dict(zip(distinct, lexer.starts, strict=True))
    states = LexerStates(lexer, ignored, table.symbols.end, meter, set_of(definitions))
    follow = accepted(table)
    starts = controls.contexts(states, [start_of[context] for context in contexts], follow)
    rules = annotated(table, starts, follow, meter)
    first_bytes = {t: inner.first_bytes(number) for t, number in definitions.items()} if inner else {}
    lexemes = Lexemes(states, rules.follow, first_bytes, meter)
    return _Construction(rules, lexemes, definitions, meter).run(Control(starts[0]))


def compile_rules_over_bytes(definition: Grammar, meter: Meter, inner: InnerPrograms) -> Program:
    """The program of a grammar's texts, with the definitions in it. Raises the errors of `lower_grammar`."""
    facts = establish(lower_grammar(definition, meter, inner), meter)
    interiors = Interiors(Program())
    externals = AppendedPrograms(interiors.program, inner.programs, meter) if inner.programs else None
    return Lowering(*rules_of(facts, 0, meter), meter, interiors, externals).run(0)


class _Construction:
    """The nonterminals with their controls, and their rules."""

    def __init__(self, rules: AnnotatedGrammar, lexemes: Lexemes, definitions: dict[Symbol, int], meter: Meter) -> None:
        self._rules = rules
        self._lexemes = lexemes
        self._definitions = definitions  # by terminal: their numbers
        self._meter = meter
        self._corners = _Corners(rules, meter)
        #: By goal: the controls that it can end with, and the items that wait for more.
        self._outs: dict[_Goal, dict[Control, None]] = {}
        self._waiting: dict[_Goal, list[tuple[_Goal, _Item]]] = {}
        self._todo: list[tuple[_Goal, _Item]] = []
        self._seen: set[tuple[_Goal, _Item]] = set()
        self._number: dict[_Triple | _Begun, int] = {}
        self._called: list[_Triple | _Begun] = []

    def run(self, start: Control) -> GbnfGrammar:
        """All rules, the first of them a whole text."""
        self._tabulate((0, start))
        nodes: list[Node] = []
        rules: list[Rule] = []
        goal = 0, start
        ends = [(out, last) for out in self._outs[goal] if (last := self._lexemes.last(out)).empty]
        if not ends:
            raise EmptyLanguageError(
                "no text can ever complete the grammar",
                remedy="Have its terminals told apart by what follows them, or %ignore what may stand between.",
            )
        for out, last in ends:
            nodes += [Reference(self._rule((*goal, out))), last]
        parts = [move for i in range(len(ends)) for move in ((0, 2 * i, 2 + i), (2 + i, 2 * i + 1, 1))]
        nodes.append(Network(2 + len(ends), parts=tuple(parts)))
        rules.append(Rule("start", "", 0, len(nodes) - 1))
        held = 0
        while len(rules) <= len(self._number):
            called = self._called[len(rules) - 1]
            first = len(nodes)
            if len(called) == 2:
                nodes += self._begun(called, first)
                rules.append(Rule("definition", "", first, len(nodes) - 1))
                continue
            labels, network = self._nodes(called, first)
            nodes += [*labels, network]
            held += len(labels) + len(network.parts) + len(network.empty)
            self._meter.check_memory(held * _BYTES_OF_MOVE, _DOING)
            rules.append(Rule(self._rules.names[called[0]], "", first, len(nodes) - 1))
        return GbnfGrammar(tuple(nodes), tuple(rules))

    def _rule(self, called: _Triple | _Begun) -> int:
        """The number of a rule, which is made some time."""
        if called not in self._number:
            self._called.append(called)
            self._number[called] = len(self._called)
        return self._number[called]

    # -- controls --------------------------------------------------------------------------------------

    def _tabulate(self, goal: _Goal) -> None:
        """Find the controls that all nonterminals can end with which a goal comes to."""
        self._outs_of(goal)
        for done, (goal, item) in enumerate(self._todo):  # grows as it goes
            if done % 64 == 0:
                self._meter.check_time(_DOING)
                self._meter.check_memory(len(self._todo) * _BYTES_OF_ITEM, _DOING)
            rule = self.rule(item)
            if item.place == len(rule.steps):
                self._add_out(goal, self.behind(item))
                continue
            step = rule.steps[item.place]
            if isinstance(step, int):
                self._waiting.setdefault((step, item.control), []).append((goal, item))
            for after in self.after(item.control, step):
                self._come_to(goal, item, after)

    def _outs_of(self, goal: _Goal) -> dict[Control, None]:
        if goal not in self._outs:
            self._outs[goal] = {}
            nonterminal, control = goal
            for rule in range(len(self._rules.rules[nonterminal])):
                self._add_item(goal, _Item(nonterminal, rule, 0, control))
        return self._outs[goal]

    def _add_out(self, goal: _Goal, control: Control) -> None:
        if control not in self._outs[goal]:
            self._outs[goal][control] = None
            for waiting, item in self._waiting.get(goal, ()):
                self._come_to(waiting, item, control)

    def _come_to(self, goal: _Goal, item: _Item, control: Control) -> None:
        self._add_item(goal, item._replace(place=item.place + 1, control=control))

    def _add_item(self, goal: _Goal, item: _Item) -> None:
        if (goal, item) not in self._seen:
            self._seen.add((goal, item))
            self._todo.append((goal, item))

    def rule(self, item: _Item) -> AnnotatedRule:
        """The rule of an item."""
        return self._rules.rules[item.nonterminal][item.rule]

    def behind(self, item: _Item) -> Control:
        """The control behind a rule that ends with an item."""
        return item.control._replace(barred=item.control.barred | self.rule(item).lost)

    def after(self, control: Control, step: Step) -> list[Control]:
        """The controls behind a step, as far as they are known."""
        if isinstance(step, int):
            return [*self._outs_of((step, control))]
        return [after for _, after in self._lexemes.after(control, step)]

    # -- rules -----------------------------------------------------------------------------------------

    def _nodes(self, triple: _Triple, first: NodeId) -> tuple[list[Node], Network]:
        """The nodes of a rule, which are to have numbers from ``first`` on, and the one that is all of it."""
        ways = _Ways(self, triple, self._begun_within(*triple[:2]), self._meter)
        nodes: dict[Node, NodeId] = {}
        parts, empty = [], []
        for here, label, there in ways.useful():
            if label is None:
                empty.append((here, there))
            else:
                node = Reference(self._rule(label)) if isinstance(label, tuple) else label
                parts.append((here, nodes.setdefault(node, first + len(nodes)), there))
        return [*nodes], Network(ways.states, parts=tuple(parts), empty=tuple(empty))

    def _begun(self, begun: _Begun, first: NodeId) -> list[Node]:
        """The nodes of a definition, with what is ignored before it."""
        terminal, control = begun
        before = self._lexemes.before(control, terminal)
        return [before, External(self._definitions[terminal]), Sequence((first, first + 1))]

    def _begun_within(self, nonterminal: int, control: Control) -> frozenset[int]:
        """What a nonterminal begins with that is no call within it, and it: see the module."""
        found = {nonterminal: None}
        for here in (todo := [nonterminal]):  # grows as it goes
            firsts = {rule.steps[0] for rule in self._rules.rules[here] if rule.steps} - found.keys()
            new = [
                step
                for step in firsts
                if isinstance(step, int)
                and (self._corners.begin_each_other(here, step) or len(self._outs.get((step, control), ())) > 1)
            ]
            found |= dict.fromkeys(new)
            todo += new
        return frozenset(found)

    def labels(self, control: Control, step: Step) -> Iterator[tuple[_Label, Control]]:
        """How a step is read from a control on, and the control behind it."""
        if isinstance(step, int):
            yield from (((step, control, out), out) for out in self._outs[step, control])
        elif step[0] in self._definitions:
            yield from (((step[0], control), after) for _, after in self._lexemes.after(control, step))
        else:
            for watched, after in self._lexemes.after(control, step):
                yield self._lexemes.network(control, step[0], watched), after

    def beginnings(self, nonterminal: int, control: Control) -> Iterator[_Item]:
        """Items at the beginning of all rules of a nonterminal."""
        return (_Item(nonterminal, rule, 0, control) for rule in range(len(self._rules.rules[nonterminal])))


class _Ways:
    """The automaton of a nonterminal with its controls, over those that it does not begin together with.

    State 0 is the start, state 1 the end; there is a state for each item, and one for each nonterminal that was read
    from the start on, with the control behind it.
    """

    def __init__(self, construction: _Construction, goal: _Triple, like: frozenset[int], meter: Meter) -> None:
        self._construction = construction
        self._like = like
        self._number: dict[_Item | tuple[int, Control], int] = {}
        self._todo: list[_Item | tuple[int, Control]] = []
        self._moves: list[tuple[int, _Label | None, int]] = []
        nonterminal, control, out = goal
        beginnings = [item for each in like for item in construction.beginnings(each, control)]
        #: Items that begin with one of those, by it.
        self._behind: dict[Step, list[_Item]] = {}
        for item in beginnings:
            steps = construction.rule(item).steps
            if steps and steps[0] in like:
                self._behind.setdefault(steps[0], []).append(item)
            else:
                self._go_on(0, item)
        for each in meter.each(self._todo, _DOING):  # grows as it goes
            if isinstance(each, _Item):
                self._go_on(self._number[each], each)
            else:
                items = (item._replace(place=1, control=each[1]) for item in self._behind.get(each[0], ()))
                self._moves += ((self._number[each], None, self._state(item)) for item in items)
        if (done := self._number.get((nonterminal, out))) is not None:
            self._moves.append((done, None, 1))

    def _state(self, place: _Item | tuple[int, Control]) -> int:
        if place not in self._number:
            self._number[place] = 2 + len(self._number)
            self._todo.append(place)
        return self._number[place]

    def _go_on(self, state: int, item: _Item) -> None:
        rule = self._construction.rule(item)
        if item.place == len(rule.steps):
            done = item.nonterminal, self._construction.behind(item)
            self._moves.append((state, None, self._state(done)))
            return
        for label, after in self._construction.labels(item.control, rule.steps[item.place]):
            there = self._state(item._replace(place=item.place + 1, control=after))
            self._moves.append((state, label, there))

    @property
    def states(self) -> int:
        """How many there are."""
        return 2 + len(self._number)

    def useful(self) -> Iterator[tuple[int, _Label | None, int]]:
        """The moves on ways to the end."""
        into: list[list[int]] = [[] for _ in range(self.states)]
        for here, _, there in self._moves:
            into[there].append(here)
        kept = {1}
        for there in (todo := [1]):  # grows as it goes
            new = {*into[there]} - kept
            kept |= new
            todo += new
        return (move for move in self._moves if move[2] in kept)


class _Corners:
    """Which nonterminals begin with which. Raises `UnsupportedError` where one does so behind something empty."""

    def __init__(self, grammar: AnnotatedGrammar, meter: Meter) -> None:
        self._grammar = grammar
        meter.check_memory(len(grammar.rules) ** 2 // 8, _DOING)
        relation = [sorted({each for _, each in self._beginnings(n)}) for n in range(len(grammar.rules))]
        self._reached = [1 << n for n in range(len(relation))]
        solve(self._reached, relation, lambda: meter.check_time(_DOING))
        for nonterminal in range(len(relation)):
            for place, each in self._beginnings(nonterminal):
                if place and self._reached[each] >> nonterminal & 1:
                    raise UnsupportedError(
                        f"the rule {grammar.names[nonterminal]} can begin with itself behind something empty",
                        remedy="Leave out what may be empty there, or compile the grammar alone.",
                    )

    def _beginnings(self, nonterminal: int) -> Iterator[tuple[int, int]]:
        """Nonterminals that one of a nonterminal's rules begins with, each with its place in it."""
        for rule in self._grammar.rules[nonterminal]:
            for place, step in enumerate(rule.steps):
                if not isinstance(step, int):
                    break
                yield place, step
                if not self._grammar.nullable[step]:
                    break

    def begin_each_other(self, one: int, other: int) -> bool:
        """Whether two nonterminals do."""
        return bool(self._reached[one] >> other & self._reached[other] >> one & 1)
