"""Grammars: their machine has a lexer and a parser, and machines of the definitions within."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..budget import Meter
from ..compiler.stuck_lexers import check_lexer_never_stuck
from ..definitions import Grammar
from ..definitions.token_sets import tokens_of
from ..errors import DefinitionError, EmptyLanguageError
from ..runtime.grammar.embedded import Embedded, InnerMachine, TokenRange
from ..runtime.grammar.machine import GrammarMachine
from ..runtime.grammar.tables import GrammarTables
from ..runtime.pushdown.machine import PushdownMachine
from ..vocabulary.vocabulary import Vocabulary
from .stacks import is_spelled, machine_of, placed, program_of, tell, within

if TYPE_CHECKING:
    from ..cache.cache import Cache


def grammar_machine(
    definition: Grammar, vocabulary: Vocabulary, meter: Meter, cache: Cache | None
) -> tuple[GrammarMachine, tuple[str, ...]]:
    """The machine of a grammar, whose tables the ``cache`` keeps, and what was relaxed in it. Raises as `build`."""
    from ..compiler.grammar.beginnings import check_beginnings
    from ..compiler.grammar.completion.pop_summaries import find_completions
    from ..grammar_store import tables_of

    def compiled() -> GrammarTables:
        from ..compiler.grammar.compiler import compile_grammar

        return compile_grammar(definition, meter)

    tables = tables_of(definition.canonical(), cache, compiled)
    embedded, relaxations, ends = _embedded(definition, tables, vocabulary, meter)
    check_beginnings(tables, embedded, meter)
    completions = find_completions(tables, embedded, meter)
    machine = GrammarMachine(tables, vocabulary, embedded=embedded, completions=completions)
    if machine.is_empty(meter):
        raise EmptyLanguageError(
            "the lexer can read no text that the grammar describes",
            where=f"rule {definition.start}",
            remedy="Some terminal always takes what another one needs: look at their regexes and priorities.",
        )
    check_lexer_never_stuck(machine, meter)
    tell((*ends, *tables.notes))
    return machine, relaxations


def _embedded(
    definition: Grammar, tables: GrammarTables, vocabulary: Vocabulary, meter: Meter
) -> tuple[Embedded, tuple[str, ...], list[str]]:
    """What a grammar holds besides terminals that are lexed, what was relaxed in it, and notes on it."""
    from ..compiler.grammar.substrings import substrings
    from ..compiler.grammar.token_budgets import budgeted_lexemes
    from ..runtime.pushdown.distinct.definition import within_grammar

    marked = definition.marked
    number = {name: t for t, name in enumerate(tables.terminals)}
    for name, _ in definition.definitions:
        unused = name not in number and name not in marked.references  # a rule that no text takes may have it
        if unused or name in marked.schemas or name in marked.tokens or name in marked.grammars:
            raise DefinitionError(f"no rule has the terminal {name}", remedy="Use it in a rule, or leave it out.")
    definitions: dict[str, PushdownMachine] = {}
    relaxed: list[str] = []
    notes: list[str] = []
    for name, each in within(definition, number).items():
        with placed(definition, name):
            program, relaxations = program_of(each, None, meter, keeps_sets=is_spelled(vocabulary))
        # The rules say of a grammar where it is left out; see `structgen.compiler.grammar.compiler.read_rules`.
        if program.start in program.returns and not (isinstance(each, Grammar) and program.leave_out_empty()):
            raise DefinitionError(
                f"the definition {name} has the empty text", remedy="Let the rules say that it may be left out."
            )
        definitions[name] = machine_of(program, each, vocabulary, meter)
        notes += program.notes
        relaxed += [f"{name}: {relaxation}" for relaxation in relaxations]
    machines: dict[str, InnerMachine] = {name: within_grammar(each) for name, each in definitions.items()}
    machines |= budgeted_lexemes(definition, definitions, vocabulary, meter)
    machines |= substrings(definition, vocabulary, meter)
    tokens: list[TokenRange] = []
    sets: list[int] = []
    for name, mark in marked.tokens.items():
        if name not in number:
            continue
        with placed(definition, name):
            found = tokens_of(mark, vocabulary)
        tokens += (TokenRange(*each, number[name]) for each in found.among(vocabulary.known))
        if found.is_set:
            sets.append(number[name])
        elif any(first in vocabulary.eos_ids for first, _ in found.ranges):
            notes.append(f"{mark} is an EOS token: engines end the text there, whatever the grammar has behind it")
    numbered = tuple((number[name], machine) for name, machine in machines.items())
    return Embedded(numbered, tuple(tokens), tuple(sets), vocabulary.eos_ids), tuple(relaxed), notes
