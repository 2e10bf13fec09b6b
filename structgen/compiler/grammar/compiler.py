"""The grammar front end: a grammar's text in, the tables of its lexer and parser out."""

from __future__ import annotations

import numpy as np

from ...budget import Meter
from ...definitions import Grammar
from ...errors import EmptyLanguageError
from ...runtime.grammar_tables import GrammarTables, words_of
from . import conflicts, lalr, scanner
from .lalr import Lalr
from .loading import load
from .rules import ContextFreeGrammar


def compile_rules(grammar: ContextFreeGrammar, meter: Meter, *, lexer: str = "contextual", strict: bool = False) -> GrammarTables:
    """The tables of a loaded grammar.

    Parameters
    ----------
    lexer:
        ``"contextual"`` or ``"basic"``, as in Lark.
    strict:
        Refuse shift/reduce conflicts, too.

    Raises `DefinitionError` for conflicts and terminals that can't be read, `EmptyLanguageError`, and
    `BudgetExceededError`.
    """
    table = lalr.build(grammar, meter)
    conflicts.check(table, strict=strict)
    missing = next(conflicts.unproductive(table.symbols), None)
    if missing is not None:
        raise EmptyLanguageError(
            f"no text can ever complete the rule {table.symbols.names[missing]}",
            remedy="Give it a way out that does not contain itself.",
        )
    dfas = scanner.matchers(grammar.terminals, 0, meter)
    contexts = _contexts(grammar, table, lexer)
    distinct = list(dict.fromkeys(contexts))
    found = scanner.lexer(
        distinct, scanner.positions(dfas, meter), scanner.embedded(grammar.terminals, dfas), meter
    )
    number = {context: i for i, context in enumerate(distinct)}
    members = len(grammar.terminals) + 1
    reductions = [
        (state, len(table.symbols.rules[rule][1]), table.symbols.rules[rule][0], terminals)
        for state, there in enumerate(table.reductions)
        for rule, terminals in there.items()
    ]
    return GrammarTables(
        class_of=found.class_of,
        table=found.table,
        label=found.label,
        future=words_of(found.future, members),
        starts=found.starts,
        context=np.array([number[context] for context in contexts], np.int32),
        ignored=words_of([_ignored(grammar)], members)[0],
        shift=_moves(table.shifts),
        goto=_moves(table.gotos),
        reduce=np.array([r[:3] for r in reductions], np.int32).reshape(-1, 3),
        before=words_of([r[3] for r in reductions], members),
        certain=np.array(_certain(table), np.uint8),
        terminals=tuple(t.name for t in grammar.terminals),
    )


def compile_grammar(definition: Grammar, meter: Meter) -> GrammarTables:
    """Load a grammar and build its tables. Raises the errors of `load` and `compile_rules`."""
    rules = load(
        definition.text, definition.start, meter,
        source=definition.path or "<grammar>", import_paths=definition.import_paths,
    )  # fmt: skip
    return compile_rules(rules, meter, lexer=definition.lexer, strict=definition.strict)


def _certain(table: Lalr) -> list[bool]:
    """By state: whether all that it can do is to reduce one rule, so that what comes next is up to what that uncovers."""
    contested = {conflict.state for conflict in table.conflicts}
    return [
        len(reductions) == 1 and not shifts and state not in contested
        for state, (shifts, reductions) in enumerate(zip(table.shifts, table.reductions, strict=True))
    ]


def _ignored(grammar: ContextFreeGrammar) -> int:
    return sum(1 << t for t, terminal in enumerate(grammar.terminals) if terminal.name in grammar.ignored)


def _contexts(grammar: ContextFreeGrammar, table: Lalr, lexer: str) -> list[int]:
    """By parser state: the terminals that the lexer tries there."""
    everything = (1 << len(grammar.terminals)) - 1
    if lexer == "basic":
        return [everything] * table.states
    ignored = _ignored(grammar)
    found = []
    for shifts, reductions in zip(table.shifts, table.reductions, strict=True):
        accepted = sum(1 << terminal for terminal in shifts)
        for terminals in reductions.values():
            accepted |= terminals
        found.append(accepted & everything | ignored)
    return found


def _moves(moves: list[dict[int, int]]) -> np.ndarray:
    found = [(state, symbol, target) for state, there in enumerate(moves) for symbol, target in sorted(there.items())]
    return np.array(found, np.int32).reshape(-1, 3)
