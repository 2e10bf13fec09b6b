"""Lexemes of which so many tokens have a byte at most: their automata, and how many tokens end them from each state.

Such a lexeme is not lexed. As a definition in the grammar it may end wherever its text is complete, and what it
counts is no part of the automaton (`structgen.runtime.grammar.embedded.BudgetedLexeme`). A definition becomes
such a lexeme where its configurations are few: they are the states. One that nests, or has more of them, keeps its
automaton with a stack (`structgen.runtime.pushdown.distances.budgeted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...definitions import Grammar
from ...errors import UnsupportedError
from ...runtime.automaton.distances import NEVER, AutomatonDistances
from ...runtime.core.bitsets import words_of
from ...runtime.grammar.embedded import BudgetedLexeme
from ...runtime.grammar.tables import GrammarTables
from ...runtime.pushdown.distances.budgeted import BudgetedDefinition
from ...runtime.pushdown.machine import PushdownMachine
from ...runtime.pushdown.stacks import Fork, Thread
from ...vocabulary.vocabulary import Vocabulary
from ..automata.dfa import Dfa, minimize, to_tables, trim
from ..patterns.empty_texts import without_empty
from ..patterns.lower import language
from ..patterns.parser import parse
from .compiler import read_rules
from .lexer import scanner
from .lexer.leftmost_dfa import LeftmostDfa, minimal
from .lexer.lengths import bounded
from .load.rules import Terminal
from .parser import equivalent

_DOING = "counting the tokens of a lexeme"

#: Configurations of a definition that are looked for.
_MOST_FLAT = 1 << 13

#: Bytes of one of these: a row of Python's numbers, threads and frames.
_BYTES_OF_CONFIGURATION = 4_000


def budgeted_lexemes(
    definition: Grammar, inner: Mapping[str, PushdownMachine], vocabulary: Vocabulary, meter: Meter
) -> dict[str, BudgetedLexeme | BudgetedDefinition]:
    """By name of a terminal: the lexemes of a grammar that have a budget of tokens, definitions among them.

    The ``inner`` machines are those of all definitions in the grammar.

    Raises
    ------
    UnsupportedError
        Where a lexeme looks ahead, or takes more tokens than it may have; where the members of objects that nest
        come in any order; where items or names must differ.
    BudgetExceededError, DefinitionError
        As `structgen.compiler.grammar.compiler.compile_grammar`.
    """
    if "max_tokens" not in definition.text:
        return {}
    found: dict[str, BudgetedLexeme | BudgetedDefinition] = {}
    for each in read_rules(definition, meter).terminals:
        if each.max_tokens is None:
            continue
        machine = inner.get(each.name)
        if machine is not None and len(machine.tables.distinct):
            raise UnsupportedError(
                "max_tokens is not supported for a definition of items or names that must differ",
                where=f"terminal {each.name}",
                remedy="Leave uniqueItems and unique_names out, or max_tokens.",
            )
        flat = _flat(machine, meter) if machine is not None else None
        if machine is None or flat is not None:
            whole = each if flat is None else replace(each, automaton=flat)
            found[each.name] = _lexeme(whole, each.max_tokens, vocabulary, meter)
        else:
            found[each.name] = _definition(each, machine, each.max_tokens, meter)
    return found


def _definition(terminal: Terminal, machine: PushdownMachine, most: int, meter: Meter) -> BudgetedDefinition:
    try:
        found = BudgetedDefinition(machine, most)
    except UnsupportedError as error:
        raise UnsupportedError(error.what, where=f"terminal {terminal.name}", remedy=error.remedy) from None
    if found.check(meter) > most:
        raise UnsupportedError(
            f"max_tokens={most}, and the shortest text takes more tokens",
            where=f"terminal {terminal.name}",
            remedy="Use a larger number.",
        )
    return found


def _nests(threads: Iterable[Thread]) -> bool:
    """Whether a state is twice on a stack, as far as that is seen: a stack that forks counts as one that nests."""
    for state, _, stack in threads:
        seen = {state}
        while stack is not None and not isinstance(stack, Fork):
            if stack.state in seen:
                return True
            seen.add(stack.state)
            stack = stack.below
        if stack is not None:
            return True
    return False


def _flat(machine: PushdownMachine, meter: Meter) -> Dfa | None:
    """The automaton of a definition's texts, whose states are all that its stacks come to; None where it nests."""
    number = {frozenset(machine.start_threads): 0}
    rows: list[list[int]] = []
    accepting: list[bool] = []
    todo = [machine.start_threads]
    for threads in meter.each(todo, _DOING):  # grows as it goes
        meter.check_memory(len(todo) * _BYTES_OF_CONFIGURATION, _DOING)
        row = [-1] * 256
        for byte in machine.candidates(threads):
            if after := machine.step(threads, byte):
                row[byte] = number.setdefault(frozenset(after), len(todo))
                if row[byte] == len(todo):
                    todo.append(after)
        rows.append(row)
        accepting.append(machine.may_end(threads))
        if len(todo) > _MOST_FLAT or _nests(threads):
            return None
    table = np.array(rows, np.int32)
    begins = np.append(True, (table[:, 1:] != table[:, :-1]).any(axis=0))
    return minimize(
        trim(
            Dfa(
                table[:, begins], np.cumsum(begins, dtype=np.int32) - np.int32(1), np.array(accepting, np.uint8),
                np.zeros((0, 5), np.int32), np.zeros((0, 2), np.int64), 0,
            )
        ),
        meter,
    )  # fmt: skip


def _lexeme(terminal: Terminal, most: int, vocabulary: Vocabulary, meter: Meter) -> BudgetedLexeme:
    matcher = _matcher(terminal, meter)
    distances = _distances(matcher, vocabulary, meter)
    if distances[0] > most:
        needed = f"{distances[0]} tokens" if distances[0] < NEVER else "bytes that no tokens have"
        raise UnsupportedError(
            f"max_tokens={most}, and the shortest text takes {needed}",
            where=f"terminal {terminal.name}",
            remedy=f"Use max_tokens={distances[0]} or more." if distances[0] < NEVER else "Use another vocabulary.",
        )
    return BudgetedLexeme(_tables(matcher, distances, most, meter), most, vocabulary)


def _matcher(terminal: Terminal, meter: Meter) -> LeftmostDfa:
    """The automaton of a lexeme's texts. Its start is state 0, which no byte leads to.

    Which match a regex prefers has no say in it: the lexeme ends wherever its text is complete.
    """
    (matcher,) = scanner.matchers((terminal,), 0, meter)  # which refuses what looks ahead
    assert matcher is not None
    if terminal.automaton is None and terminal.pattern is not None:
        tree = parse(terminal.pattern, 0, meter)
        tree = (without_empty(tree) if terminal.is_optional else None) or tree
        matcher = bounded(terminal, LeftmostDfa.of(language(tree, meter, edges=False, count=False)), meter)
    matcher = minimal(matcher, meter)
    copied = [0, *range(matcher.states)]
    table = matcher.table[copied]
    return LeftmostDfa(
        matcher.class_of, table + (table >= 0),
        [(), *(tuple(watch + 1 for watch in watches) for watches in matcher.ends)],
        matcher.beats[copied], matcher.lapses[copied], matcher.whole[copied],
    )  # fmt: skip


def _distances(matcher: LeftmostDfa, vocabulary: Vocabulary, meter: Meter) -> NDArray[np.int64]:
    """By state: how many tokens come to the end of the lexeme, and no further; `NEVER` where none do."""
    accepting = np.array([bool(ends) for ends in matcher.ends], np.uint8)
    dfa = Dfa(
        matcher.table, matcher.class_of.astype(np.int32), accepting, np.zeros((0, 5), np.int32),
        np.zeros((0, 2), np.int64), 0,
    )  # fmt: skip

    def look_at(nbytes: int) -> None:
        meter.check_time(_DOING)
        meter.check_memory(nbytes, _DOING)

    found = AutomatonDistances(to_tables(dfa, meter), vocabulary, look_at)
    end = int(bool(vocabulary.eos_ids))
    distances = np.array([found.distance(state) for state in range(matcher.states)], np.int64)
    return np.where(distances < NEVER, distances - end, NEVER)


def _tables(matcher: LeftmostDfa, distances: NDArray[np.int64], most: int, meter: Meter) -> GrammarTables:
    """The lexer whose only lexeme it is, which can become terminal ``d`` where ``d`` tokens lead to an end."""
    farthest = min(most, int(distances[distances < NEVER].max()))
    meter.check_memory(matcher.states * (farthest // 8 + 200), _DOING)
    names = tuple(f"within {tokens} tokens" for tokens in range(farthest + 1))
    members = len(names) + 1
    everything = (1 << len(names)) - 1
    futures = [everything >> each << each if each <= farthest else 0 for each in distances.tolist()]
    ends = [(state, 0, -1) for state, watches in enumerate(matcher.ends) if watches]
    nothing = np.zeros(matcher.states, np.uint8)
    return GrammarTables(
        class_of=matcher.class_of,
        table=matcher.table.astype(np.int32),
        ends=np.array(ends, np.int32).reshape(-1, 3),
        beats=nothing,
        lapses=nothing,
        future=words_of(futures, members),
        starts=np.zeros(1, np.int32),
        context=np.zeros(1, np.int32),
        ignored=words_of([0], members)[0],
        shift=np.zeros((0, 3), np.int32),
        goto=np.zeros((0, 3), np.int32),
        reduce=np.zeros((0, 3), np.int32),
        before=words_of([], members),
        defaults=np.zeros(1, np.uint8),
        same=equivalent.table_of([]),
        terminals=names,
    )
