"""The grammar front end: a grammar's text in, the tables of its lexer and parser out."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...definitions import Grammar, Indentation
from ...definitions.grammar_marks import MARKED, spelled
from ...definitions.shipped import is_shipped, that_need_basic
from ...definitions.structured_regexes import is_long
from ...definitions.values import check_levels
from ...errors import BudgetExceededError, DefinitionError, EmptyLanguageError, StructgenError, UnsupportedError
from ...runtime.core.bitsets import words_of
from ...runtime.core.digraph import set_of
from ...runtime.grammar.captures.attributes import CapturedSymbol, GrammarAttributes, TemperedTerminal
from ...runtime.grammar.indentation import IndentationTerminals
from ...runtime.grammar.parser.provenance import LONGEST, Provenance, WrittenTerminal
from ...runtime.grammar.tables import GrammarTables
from .attributed import with_attributes, without_budgeted
from .completion.endings import with_endings
from .diagnostics import collisions, preferences
from .diagnostics.foresight import unforeseen
from .ignored_once import ignored_once
from .lexer import algebra, scanner
from .lexer import minimise as merging
from .lexer.leftmost_dfa import by_column
from .lexer.positions import ProductStates
from .load.attributes import read_attributes
from .load.dialects import IGNORE_ONCE, read_options
from .load.growth import check_text
from .load.loading import is_named, load
from .load.operators import without_operators
from .load.parametric import without_parameters
from .load.refusals import Places
from .load.rules import ContextFreeGrammar
from .parser import conflicts, equivalent, lalr, looping
from .parser.ambiguity import check_ambiguity
from .parser.empty_rules import with_texts, without_cycles, without_empty_rules
from .parser.lalr import Lalr
from .parser.symbols import Symbols
from .unlexed import not_lexed, unlexed

#: Places in rules, and in the parser's states, of which names are kept.
_MOST_NAMED = 1 << 17


def compile_rules(
    grammar: ContextFreeGrammar,
    meter: Meter,
    *,
    lexer: str = "contextual",
    strict: bool = False,
    ambiguity: str = "resolve",
    indentation: Indentation | None = None,
    tell: bool = False,
    written: str = "",
) -> GrammarTables:
    """The tables of a loaded grammar.

    Parameters
    ----------
    lexer:
        ``"contextual"`` or ``"basic"``, as in Lark.
    strict:
        Refuse shift/reduce conflicts, too, and terminals that match the same text.
    ambiguity:
        ``"resolve"``: as Lark does; ``"all"``: all actions that compete are followed.
    indentation:
        How line ends become indents and dedents.
    tell:
        Look for what the author may not expect: conflicts that were shifted, matches of the lexer that are not the
        longest, and what it takes to see whether texts can be completed. Of structgen's own grammars it is known.
    written:
        The author's text, for the places of errors.

    Raises `DefinitionError` for conflicts and terminals that can't be read, `EmptyLanguageError`, and
    `BudgetExceededError`.
    """
    table = parser_of(grammar, meter, ambiguity, strict, written)
    layout = _layout(grammar, indentation)
    matchers = scanner.matchers(grammar.terminals, 0, meter)
    if indentation is not None and layout is not None:
        newline = matchers[layout.newline]
        if newline is not None:
            matchers[layout.newline] = by_column(newline, indentation.tab, layout.columns, meter)
    first = len(grammar.terminals) + 1
    always = ignored_by(grammar) | (1 << layout.newline if layout else 0)
    contexts = contexts_of(grammar, table, lexer, always)
    distinct = list(dict.fromkeys(contexts))
    if strict:
        collisions.check(grammar.terminals, matchers, distinct, meter)
    positions = ProductStates(matchers, meter)
    found = scanner.lexer(distinct, positions, scanner.embedded(grammar.terminals, matchers, meter), first, meter)
    notes: list[str] = []
    if tell:
        notes += conflicts.shifted(table, meter) if ambiguity == "resolve" else ()
        notes += preferences.in_regexes(grammar.terminals, matchers, meter)
        notes += preferences.among_terminals(grammar.terminals, found, positions, meter)
    found = merging.merged(found, meter)
    start_of = dict(zip(distinct, found.starts, strict=True))
    starts = list(dict.fromkeys(found.starts))
    number = {start: i for i, start in enumerate(starts)}
    members = first + (layout.columns + 2 if layout else 0)
    reductions = [
        (state, len(table.symbols.rules[rule][1]), table.symbols.rules[rule][0], terminals)
        for state, there in enumerate(table.reductions)
        for rule, terminals in there.items()
    ]
    defaults = _defaults(table)
    # With conflicts kept a stack has several moves before one terminal; that is not what is compared.
    same = equivalent.replacements(table, defaults, contexts, meter) if ambiguity == "resolve" else []
    ends = [(state, *end) for state, there in enumerate(found.ends) for end in there]
    tables = GrammarTables(
        class_of=found.class_of,
        table=found.table,
        ends=np.array(ends, np.int32).reshape(-1, 3),
        beats=np.array(found.beats, np.uint8),
        lapses=np.array(found.lapses, np.uint8),
        future=words_of(merging.futures(found, meter), members),
        starts=np.array(starts, np.int32),
        context=np.array([number[start_of[context]] for context in contexts], np.int32),
        ignored=words_of([ignored_by(grammar)], members)[0],
        shift=_moves(table.shifts),
        goto=_moves(table.gotos),
        reduce=np.array([r[:3] for r in reductions], np.int32).reshape(-1, 3),
        before=words_of([r[3] for r in reductions], members),
        defaults=np.array(defaults, np.uint8),
        same=equivalent.table_of(same),
        terminals=tuple(t.name for t in grammar.terminals),
        layout=layout,
        attributes=_attributes(grammar, table),
        names=_names(grammar, table),
        notes=tuple(notes),
    )
    given = set_of(t for t, matcher in enumerate(matchers) if matcher is None)
    if layout is not None:
        given &= ~(1 << layout.indent | 1 << layout.dedent)
    check_ambiguity(table, tables, given, meter)
    tables = with_endings(tables, table, given, meter, is_resolved=ambiguity == "resolve")
    if not tell:
        return tables
    return replace(tables, notes=(*notes, *unforeseen(tables, table.symbols, meter)))


def parser_of(grammar: ContextFreeGrammar, meter: Meter, ambiguity: str, strict: bool, written: str) -> Lalr:
    """The parser, without rules that no text can complete: an ignored terminal, for one, never comes to the parser.

    Where actions compete such a rule may decide what the parser does, and lead it astray; that is refused.
    """
    table = lalr.build(grammar, meter, resolve=ambiguity == "resolve")
    if ambiguity == "all":
        if conflicts.comes_to_itself(table.symbols):
            if meter.budget.bounded_steps:
                raise BudgetExceededError(
                    "a rule comes to itself without having read anything, so that steps may look for any amount",
                    remedy="Have no rule be just itself, nor begin with itself behind something that may be empty.",
                )
            grammar = without_cycles(grammar, meter)
            table = lalr.build(grammar, meter, resolve=False)
    else:
        if any(conflict.winner is None for conflict in table.conflicts) and any(table.symbols.nullable):
            grammar, table = _without_conflicts_of_empty_rules(grammar, table, meter)
        conflicts.check(table, meter, strict=strict, places=Places(written, written))
        looping.check(table, meter)
    never = {name for name in grammar.ignored if name in table.symbols.names}
    dead = conflicts.unproductive(table.symbols, never)
    if grammar.start in dead:
        raise EmptyLanguageError(
            f"no text can ever complete the rule {grammar.start}",
            where=f"rule {grammar.start}",
            remedy="Give it a way out that does not contain itself, or a terminal that is ignored.",
        )
    without = dead | never
    rules = tuple(rule for rule in grammar.rules if without.isdisjoint((rule.origin, *rule.expansion)))
    if len(rules) == len(grammar.rules):
        return table
    if table.conflicts and ambiguity == "resolve":
        rule = next(rule for rule in grammar.rules if not without.isdisjoint((rule.origin, *rule.expansion)))
        raise DefinitionError(
            f"no text can ever complete '{rule}', and the grammar has conflicts that it may decide",
            where=f"rule {rule.origin}",
            remedy="Leave it out, or give it a way out that does not contain itself or a terminal that is ignored.",
        )
    part = lalr.build(replace(grammar, rules=rules), meter, resolve=ambiguity == "resolve")
    return replace(part, expected=lalr.expected_by(table, part))


def _without_conflicts_of_empty_rules(
    grammar: ContextFreeGrammar, table: Lalr, meter: Meter
) -> tuple[ContextFreeGrammar, Lalr]:
    """A grammar without empty rules and its parser, if that leaves nothing undecided, as in ``("a"?)*``; or these."""
    rules = without_empty_rules(grammar, (), (), meter)
    found = lalr.build(rules, meter)
    is_better = all(conflict.winner is not None for conflict in found.conflicts)
    return (rules, found) if is_better else (grammar, table)


def _names(grammar: ContextFreeGrammar, table: Lalr) -> NDArray[np.uint8]:
    """What the text calls the parser's numbers; nothing where that is much."""
    symbols, kernels = table.symbols, table.automaton.kernels
    called = symbols.names
    if len(table.automaton.items.rule) + sum(map(len, kernels)) > _MOST_NAMED:
        return np.zeros(0, np.uint8)

    def short(text: str | None) -> str | None:
        return text if text is None or len(text) <= LONGEST else None

    terminals = [WrittenTerminal(t.name, short(t.text), short(t.pattern)) for t in grammar.terminals]
    rules = (f"{called[origin]}: {' '.join(called[s] for s in expansion)}" for origin, expansion in symbols.rules)
    items = (" ".join(map(str, kernel)) for kernel in kernels)
    return Provenance.of(terminals, rules, items).to_section()


def _attributes(grammar: ContextFreeGrammar, table: Lalr) -> GrammarAttributes:
    """What is captured, and temperatures, by number."""
    number = {name: symbol for symbol, name in enumerate(table.symbols.names)}
    return GrammarAttributes(
        tuple(CapturedSymbol(number[each.rule], *each[1:]) for each in grammar.captures if each.rule in number),
        tuple(
            TemperedTerminal(t, each.temperature)
            for t, each in enumerate(grammar.terminals)
            if each.temperature is not None
        ),
    )


def _layout(grammar: ContextFreeGrammar, indentation: Indentation | None) -> IndentationTerminals | None:
    """Names as numbers; those of this grammar come before those that it imported."""
    if indentation is None:
        return None

    def numbers(names: tuple[str, ...]) -> list[int]:
        found = []
        for wanted in names:
            exact = [t for t, terminal in enumerate(grammar.terminals) if terminal.name == wanted]
            found += exact or [t for t, terminal in enumerate(grammar.terminals) if is_named(terminal.name, wanted)]
        return found

    lines: list[int] = []
    for wanted in (indentation.newline, indentation.indent, indentation.dedent):
        there = numbers((wanted,))
        if len(there) != 1:
            raise DefinitionError(
                f"the indentation needs {indentation.newline}, {indentation.indent} and {indentation.dedent}, and"
                f" {f'{len(there)} terminals have' if there else 'no rule has'} {wanted}",
                remedy="Name the terminals of this grammar; %declare those for indents and dedents.",
            )
        lines += there
    opening, closing = numbers(indentation.opening), numbers(indentation.closing)
    newline, indent, dedent = lines
    return IndentationTerminals(newline, indent, dedent, frozenset(opening), frozenset(closing), indentation.columns)


def read_rules(definition: Grammar, meter: Meter, levels: int = 0) -> ContextFreeGrammar:
    """Load a grammar, which is in so many ``levels`` of others.

    What the grammar holds besides Lark's syntax are terminals in it that nothing lexes; see
    `structgen.definitions.grammar_marks`. Raises the errors of `load`, and `BudgetExceededError`.
    """
    check_levels(levels + 1)
    indentation = definition.postlex
    marked = definition.marked
    names = [name for name, _ in definition.definitions]
    options = read_options(marked.options)
    if unknown := next((name for name in marked.references if name not in names), None):
        reference = marked.references[unknown]
        raise DefinitionError(
            f"there is no grammar {reference}",
            where=Places(definition.text, definition.text).of_match(rf"{re.escape(reference)}(?![\w-])"),
            remedy=f"Give its definition: sg.Grammar(..., definitions={{{unknown!r}: ...}}).",
        )
    known = {word for line in re.findall(r"%declare([^\n]*)", marked.text) for word in re.findall(r"\w+", line)}
    undeclared = [name for name in names if name not in known]
    declares = f"\n%declare {' '.join(undeclared)}\n" if undeclared else ""
    check_text(marked.text, meter)  # what is never closed would be looked through from each of its quotation marks
    attributed, attributes = read_attributes(marked.text, {*marked.schemas, *marked.grammars, *names})
    plain = without_parameters(attributed, meter)
    text = without_operators(plain, definition.text, definition.imports)
    grammar = load(
        spelled(text) + declares, definition.start, meter,
        source=definition.path or "<grammar>", imports=definition.imports, written=definition.text,
        declared=(
            *((indentation.indent, indentation.dedent) if indentation else ()),
            *marked.tokens, *marked.schemas, *marked.grammars, *names,
        ),
        kept=[each.ending for each in attributes if each.ending is not None],
    )  # fmt: skip
    if indentation and (captured := next((each.rule for each in attributes if each.captures), None)):
        raise _uncaptured("indentation", captured)
    grammar = with_attributes(grammar, attributes, meter)
    if text != plain or marked.structured:
        grammar = _with_automata(grammar, marked.structured, meter)
    if definition.matches == "longest":
        grammar = replace(grammar, terminals=tuple(replace(each, takes_longest=True) for each in grammar.terminals))
    found = _with_optional_terminals(grammar, _empty_grammars(definition, meter, levels + 1), meter)
    if not options.get(IGNORE_ONCE):
        return found
    if indentation:
        raise UnsupportedError("ignore_once beside indentation is not read", remedy="Leave one of the two out.")
    return ignored_once(found)


def _empty_grammars(definition: Grammar, meter: Meter, levels: int) -> set[str]:
    """The terminals that stand for grammars which may be empty. Raises the errors of `read_rules`."""
    inner = {name: definition.within(text) for name, text in definition.marked.grammars.items()}
    inner |= {name: each for name, each in definition.definitions if isinstance(each, Grammar)}
    found = set()
    for name, each in inner.items():
        try:
            rules = read_rules(each, meter, levels)
        except StructgenError as error:
            raise definition.marked.placed(error, name, definition.text) from error
        symbols = Symbols.of(rules)
        if symbols.nullable[symbols.names.index(rules.start)]:
            found.add(name)
    return found


def _with_automata(grammar: ContextFreeGrammar, structured: tuple[str, ...], meter: Meter) -> ContextFreeGrammar:
    """The grammar with automata of terminals that no regex says, which come first among those of their priority.

    Raises the errors of `algebra.automaton`, and of `unlexed`.
    """
    long = {algebra.named(number): text for number, text in enumerate(structured) if is_long(text)}
    terminals = (
        unlexed(each, long[each.pattern], grammar)
        if each.pattern in long
        else replace(each, automaton=algebra.automaton(each.pattern, structured, meter))
        if each.pattern is not None and not MARKED.isdisjoint(each.pattern)
        else each
        for each in grammar.terminals
    )
    in_order = sorted(terminals, key=lambda each: (-each.priority, not each.is_shortest, each.automaton is None))
    return _without_barren(replace(grammar, terminals=tuple(in_order)))


def _without_barren(grammar: ContextFreeGrammar) -> ContextFreeGrammar:
    """The grammar without alternatives that hold an automaton of no texts; where none is left, the lexer says so."""
    barren = {each.name for each in grammar.terminals if each.automaton is not None and not each.automaton.states}
    terminals = tuple(each for each in grammar.terminals if each.name not in barren)
    rules = with_texts([*grammar.rules], {each.name for each in terminals}) if barren else []
    origins = {rule.origin for rule in rules}
    if grammar.start not in origins:
        return grammar
    return replace(
        grammar,
        rules=tuple(rules),
        terminals=terminals,
        ignored=tuple(name for name in grammar.ignored if name not in barren),
        captures=tuple(each for each in grammar.captures if each.rule in origins),
    )


def _with_optional_terminals(grammar: ContextFreeGrammar, empty: set[str], meter: Meter) -> ContextFreeGrammar:
    """The grammar with rules that say where terminals are left out, in place of terminals that match nothing.

    Lark refuses these; llguidance means this by them. Besides what is lexed, those with ``empty`` names are left out.
    Raises `DefinitionError` and `BudgetExceededError`.
    """
    optional, only_empty = scanner.optional(grammar.terminals, meter)
    optional |= empty.intersection(each.name for each in grammar.terminals)
    only_empty |= {each.name for each in grammar.terminals if 0 in (each.max_tokens, each.max_chars)} & optional
    optional -= only_empty
    if not optional and not only_empty:
        return grammar
    rules = without_empty_rules(grammar, optional, only_empty, meter)
    terminals = (
        replace(terminal, is_optional=terminal.name in optional)
        for terminal in grammar.terminals
        if terminal.name not in only_empty
    )
    ignored = tuple(name for name in grammar.ignored if name not in only_empty)
    return replace(rules, terminals=tuple(terminals), ignored=ignored)


def compile_grammar(definition: Grammar, meter: Meter) -> GrammarTables:
    """Load a grammar and build its tables.

    Raises the errors of `load` and `compile_rules`, and `UnsupportedError` for captures where texts may have several
    parses.
    """
    grammar, ambiguity = _decided(definition, without_budgeted(read_rules(definition, meter)), meter)
    tables = compile_rules(
        grammar, meter, lexer=definition.lexer, strict=definition.strict, ambiguity=ambiguity,
        indentation=definition.postlex, tell=not is_shipped(definition.path), written=definition.text,
    )  # fmt: skip
    split: list[str] = []
    if definition.lexer == "contextual":
        files = definition.path, *(str(file) for file, _ in definition.imports.files)
        split = [
            f'the grammar {name} is written for lexer="basic"; the contextual one splits words, as a keyword need not'
            " end where a word does"
            for name in that_need_basic(definition.text, files)
        ]
    return replace(tables, notes=(*split, *not_lexed(grammar), *tables.notes))


def _decided(definition: Grammar, grammar: ContextFreeGrammar, meter: Meter) -> tuple[ContextFreeGrammar, str]:
    """A grammar and how to decide its conflicts; where there are captures all parses are the one that has them.

    Nothing that is empty is captured, so that parses which differ in what is empty have the same captures.
    """
    if definition.ambiguity == "resolve" or not grammar.captures:
        return grammar, definition.ambiguity
    table = lalr.build(grammar, meter)
    if table.conflicts and any(table.symbols.nullable):
        if conflicts.comes_to_itself(table.symbols):
            raise _uncaptured("rules that come to themselves without having read anything", grammar.captures[0].rule)
        grammar = without_empty_rules(grammar, (), (), meter)
        table = lalr.build(grammar, meter)
    if table.conflicts:
        raise _uncaptured('conflicts that ambiguity="all" keeps', grammar.captures[0].rule)
    return grammar, "resolve"


def _uncaptured(what: str, rule: str) -> UnsupportedError:
    return UnsupportedError(
        f"captures need one parse of a text: they are not known with {what}",
        where=f"rule {rule}",
        remedy="Leave the attribute capture out.",
    )


def _defaults(table: Lalr) -> list[bool]:
    """By state: whether all it can do is to reduce one rule, so that what comes next is up to what that uncovers."""
    contested = {conflict.state for conflict in table.conflicts}
    return [
        len(reductions) == 1 and not shifts and state not in contested
        for state, (shifts, reductions) in enumerate(zip(table.shifts, table.reductions, strict=True))
    ]


def ignored_by(grammar: ContextFreeGrammar) -> int:
    """The terminals that a grammar ignores, as a set."""
    ignored = frozenset(grammar.ignored)
    return set_of(t for t, terminal in enumerate(grammar.terminals) if terminal.name in ignored)


def contexts_of(grammar: ContextFreeGrammar, table: Lalr, lexer: str, always: int) -> list[int]:
    """By parser state: the terminals that the lexer tries there, those that it ``always`` tries among them."""
    everything = (1 << len(grammar.terminals)) - 1
    if lexer == "basic":
        return [everything] * table.states
    return [expected & everything | always for expected in table.expected]


def _moves(moves: list[dict[int, int]]) -> np.ndarray:
    found = [(state, symbol, target) for state, there in enumerate(moves) for symbol, target in sorted(there.items())]
    return np.array(found, np.int32).reshape(-1, 3)
