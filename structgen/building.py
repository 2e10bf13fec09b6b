"""From a definition to the machine that follows it, without rows: the front ends, tables, and what is refused."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from .budget import Meter
from .definitions import Definition, Fsm, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from .definitions.token_sets import tokens_of
from .errors import DefinitionError, EmptyLanguageError, GrammarWarning, StructgenError
from .runtime.automaton.machine import AutomatonMachine
from .runtime.core.machine import CompiledMachine
from .runtime.grammar.embedded import Embedded, InnerMachine, TokenRange
from .runtime.grammar.machine import GrammarMachine
from .runtime.grammar.tables import GrammarTables
from .runtime.pushdown.machine import PushdownMachine
from .runtime.pushdown.tables import PushdownTables
from .runtime.rows.row_pool import RowPool
from .system.warning import warn
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from .cache.cache import Cache
    from .compiler.programs.program import Program
    from .compiler.structural_tags.marks import Marks

#: Warnings for one grammar.
_MOST_NOTES = 5

#: The bytes that UTF-8 has.
_IN_UTF8 = np.array([byte not in (0xC0, 0xC1, *range(0xF5, 0x100)) for byte in range(256)])


def build(
    definition: Definition,
    vocabulary: Vocabulary,
    meter: Meter,
    cache: Cache | None = None,
    *,
    on_demand: bool = False,
) -> tuple[CompiledMachine, tuple[str, ...]]:
    """The machine of a definition, and what was relaxed in it.

    The ``cache`` keeps the tables of grammars. What is built ``on_demand`` may have tables that grow as they are
    used; what is refused is refused here all the same.

    Raises
    ------
    DefinitionError, UnsupportedError, EmptyLanguageError
        A definition that is malformed, can't be honoured exactly, or matches nothing.
    BudgetExceededError
        A definition that needs more than the meter allows.
    VocabularyError
        A vocabulary that could get stuck: some text that it can begin, it cannot finish.

    Warns
    -----
    GrammarWarning
        What the author of a grammar may not expect; it points to where the caller of `build` was called.
    """
    if isinstance(definition, JsonSchema):
        from .runtime.pushdown.distinct.machine import distinct

        machine, relaxations = stack_machine(
            definition, vocabulary, meter, on_demand=on_demand, keeps_sets=_is_spelled(vocabulary)
        )
        return distinct(machine), relaxations
    if isinstance(definition, Gbnf):
        return stack_machine(definition, vocabulary, meter, on_demand=on_demand)
    if isinstance(definition, StructuralTag):
        return _tag_machine(definition, vocabulary, meter, on_demand=on_demand)
    if isinstance(definition, Grammar):
        return _grammar_machine(definition, vocabulary, meter, cache)
    return _automaton_machine(definition, vocabulary, meter), ()


def _automaton_machine(definition: Definition, vocabulary: Vocabulary, meter: Meter) -> AutomatonMachine:
    from .compiler.stuck import check_never_stuck

    if isinstance(definition, Regex):
        from .compiler.patterns.compiler import compile_regex

        tables = compile_regex(definition, meter)
    elif isinstance(definition, Fsm):
        from .compiler.automata.fsm import compile_fsm

        tables = compile_fsm(definition, meter)
    else:
        remedy = "Of tools, sg.tool_calls makes a definition, structgen warm --for ENGINE what that asks for."
        raise DefinitionError(f"there is no compiler for definitions of kind {definition.kind!r}", remedy=remedy)
    row_of = np.full(tables.states, -1, np.int32)
    machine = AutomatonMachine(tables, vocabulary, RowPool(vocabulary.spelled), row_of, [])
    check_never_stuck(machine, meter)
    return machine


def stack_machine(
    definition: JsonSchema | Gbnf | Regex | Grammar,
    vocabulary: Vocabulary,
    meter: Meter,
    *,
    on_demand: bool = False,
    keeps_sets: bool = False,
) -> tuple[PushdownMachine, tuple[str, ...]]:
    """`build` for what becomes an automaton with a stack.

    With ``keeps_sets`` the machine may be one for `structgen.runtime.pushdown.distinct`.
    """
    if on_demand and isinstance(definition, JsonSchema):
        return _growing_machine(definition, vocabulary, meter, keeps_sets=keeps_sets)
    program, relaxations = _program(definition, vocabulary, meter, keeps_sets=keeps_sets)
    machine = _machine_of(program, definition, vocabulary, meter)
    _tell(tuple(program.notes))
    return machine, relaxations


def _machine_of(program: Program, definition: Definition, vocabulary: Vocabulary, meter: Meter) -> PushdownMachine:
    from .compiler.programs.ambiguity import check_ambiguity
    from .compiler.programs.tables import to_tables
    from .compiler.stuck import check_stack_never_stuck

    machine = PushdownMachine(to_tables(program, meter), vocabulary)
    if isinstance(definition, Gbnf | Grammar):
        check_ambiguity(machine, program, meter)
    check_stack_never_stuck(machine, meter)
    return machine


def _growing_machine(
    definition: JsonSchema, vocabulary: Vocabulary, meter: Meter, *, keeps_sets: bool
) -> tuple[PushdownMachine, tuple[str, ...]]:
    """`stack_machine` on demand. No text of a schema can be read in ever more ways, so that is not looked for."""
    from .compiler.json_schema.compiler import begin_json_schema
    from .compiler.programs.program import Program
    from .compiler.programs.special_tokens import SpecialTokens
    from .compiler.programs.tables import to_tables
    from .compiler.stuck import check_stack_never_stuck

    special = SpecialTokens(vocabulary.special_tokens)
    program, relaxations = begin_json_schema(definition, meter, special, keeps_sets=keeps_sets)
    tables = to_tables(program, meter) if isinstance(program, Program) else program.tables()
    machine = PushdownMachine(tables, vocabulary)
    check_stack_never_stuck(machine, meter)
    return machine, relaxations


def _tag_machine(
    definition: StructuralTag, vocabulary: Vocabulary, meter: Meter, *, on_demand: bool
) -> tuple[CompiledMachine, tuple[str, ...]]:
    """`stack_machine` for a structural tag, whose program depends on the vocabulary's special tokens."""
    from .compiler.stuck import check_stack_never_stuck
    from .runtime.pushdown.distinct.machine import distinct

    tables, relaxations = _tag_tables(definition, vocabulary, meter, on_demand=on_demand)
    machine = PushdownMachine(tables, vocabulary)
    check_stack_never_stuck(machine, meter)
    return distinct(machine), relaxations


def _is_spelled(vocabulary: Vocabulary) -> bool:
    """Whether any value of JSON can be finished."""
    return not (_IN_UTF8 & ~vocabulary.single_bytes).any()


def marked_tag_machine(
    definition: StructuralTag, vocabulary: Vocabulary, meter: Meter
) -> tuple[CompiledMachine, Marks]:
    """A structural tag's machine that takes marks around the texts of formats with labels, lowered on demand."""
    from .compiler.structural_tags.marks import Marks
    from .runtime.pushdown.distinct.machine import distinct

    marks = Marks(vocabulary)
    tables, _ = _tag_tables(definition, vocabulary, meter, marks, on_demand=True)
    return distinct(PushdownMachine(tables, marks.vocabulary)), marks


def _tag_tables(
    definition: StructuralTag, vocabulary: Vocabulary, meter: Meter, marks: Marks | None = None, *, on_demand: bool
) -> tuple[PushdownTables, tuple[str, ...]]:
    """The tables of a structural tag's program, and what was relaxed.

    They grow ``on_demand``, unless the items of some arrays must differ.
    """
    from .compiler.programs.tables import to_tables
    from .compiler.structural_tags.linker import begin_program, whole_program

    keeps_sets = _is_spelled(vocabulary)
    if on_demand:
        growing, relaxations = begin_program(definition, vocabulary, meter, marks, keeps_sets=keeps_sets)
        if growing is not None:
            return growing.tables(), relaxations
    program, relaxations = whole_program(definition, vocabulary, meter, marks, keeps_sets=keeps_sets)
    return to_tables(program, meter), relaxations


def _program(
    definition: JsonSchema | Gbnf | Regex | Grammar, vocabulary: Vocabulary | None, meter: Meter, *, keeps_sets: bool
) -> tuple[Program, tuple[str, ...]]:
    """The pushdown program of a definition, and what was relaxed; without a vocabulary its texts are bytes alone."""
    if isinstance(definition, JsonSchema):
        from .compiler.json_schema.compiler import compile_json_schema
        from .compiler.programs.special_tokens import SpecialTokens

        special = SpecialTokens(vocabulary.special_tokens if vocabulary else {})
        return compile_json_schema(definition, meter, special, keeps_sets=keeps_sets)
    if isinstance(definition, Gbnf):
        from .compiler.gbnf.compiler import compile_gbnf

        return compile_gbnf(definition, meter, vocabulary), ()
    if isinstance(definition, Grammar):
        from .compiler.scannerless.inner import InnerPrograms
        from .compiler.scannerless.lowering import compile_rules_over_bytes

        relaxed: dict[str, None] = {}

        def compile_inner(each: JsonSchema | Gbnf | Regex | Grammar) -> Program:
            program, relaxations = _program(each, None, meter, keeps_sets=keeps_sets)
            relaxed.update(dict.fromkeys(relaxations))
            return program

        inner = InnerPrograms(_within(definition), compile_inner)
        program = compile_rules_over_bytes(definition, meter, inner)
        inner.check_asked(name for name, _ in definition.definitions if name not in definition.marked.references)
        return program, tuple(relaxed)
    from .compiler.patterns.compiler import regex_program

    return regex_program(definition, meter), ()


def _grammar_machine(
    definition: Grammar, vocabulary: Vocabulary, meter: Meter, cache: Cache | None
) -> tuple[GrammarMachine, tuple[str, ...]]:
    from .compiler.grammar.beginnings import check_beginnings
    from .compiler.grammar.completion.pop_summaries import find_completions
    from .compiler.stuck import check_lexer_never_stuck
    from .grammar_store import tables_of

    def compiled() -> GrammarTables:
        from .compiler.grammar.compiler import compile_grammar

        return compile_grammar(definition, meter)

    tables = tables_of(definition.canonical(), cache, compiled)
    embedded, relaxations, ends = _embedded(definition, tables, vocabulary, meter)
    check_beginnings(tables, embedded, meter)
    completions = find_completions(tables, embedded, meter)
    machine = GrammarMachine(tables, vocabulary, embedded=embedded, completions=completions)
    if machine.is_empty(meter):
        raise EmptyLanguageError(
            "the lexer can read no text that the grammar describes", where=f"rule {definition.start}",
            remedy="Some terminal always takes what another one needs: look at their regexes and priorities.",
        )
    check_lexer_never_stuck(machine, meter)
    _tell((*ends, *tables.notes))
    return machine, relaxations


def _tell(notes: tuple[str, ...]) -> None:
    more = len(notes) - _MOST_NOTES
    for note in (*notes[:_MOST_NOTES], *([f"and {more} more"] if more > 0 else [])):
        # past `_grammar_machine` or `stack_machine`, `build` and `compile`
        warn(GrammarWarning(note))


def _within(
    definition: Grammar, used: Container[str] | None = None
) -> dict[str, JsonSchema | Gbnf | Regex | Grammar]:
    """The definitions within a grammar, by the names of terminals; of those in its text the ``used`` ones."""
    marked = definition.marked
    inner: dict[str, JsonSchema | Gbnf | Regex | Grammar] = {}
    for name, text in marked.schemas.items():
        if used is None or name in used:
            with _placed(definition, name):
                inner[name] = JsonSchema(text)
    inner |= {name: definition.within(text) for name, text in marked.grammars.items() if used is None or name in used}
    return inner | {name: each for name, each in definition.definitions if used is None or name in used}


@contextmanager
def _placed(definition: Grammar, name: str) -> Iterator[None]:
    """Have errors say where a grammar has a definition or a token, by the name of a terminal."""
    try:
        yield
    except StructgenError as error:
        raise definition.marked.placed(error, name, definition.text) from error


def _embedded(
    definition: Grammar, tables: GrammarTables, vocabulary: Vocabulary, meter: Meter
) -> tuple[Embedded, tuple[str, ...], list[str]]:
    """What a grammar holds besides terminals that are lexed, what was relaxed in it, and notes on it."""
    from .compiler.grammar.substrings import substrings
    from .compiler.grammar.token_budgets import budgeted_lexemes
    from .runtime.pushdown.distinct.definition import within_grammar

    marked = definition.marked
    number = {name: t for t, name in enumerate(tables.terminals)}
    for name, _ in definition.definitions:
        unused = name not in number and name not in marked.references  # a rule that no text takes may have it
        if unused or name in marked.schemas or name in marked.tokens or name in marked.grammars:
            raise DefinitionError(f"no rule has the terminal {name}", remedy="Use it in a rule, or leave it out.")
    definitions: dict[str, PushdownMachine] = {}
    relaxed: list[str] = []
    notes: list[str] = []
    for name, each in _within(definition, number).items():
        with _placed(definition, name):
            program, relaxations = _program(each, None, meter, keeps_sets=_is_spelled(vocabulary))
        # The rules say of a grammar where it is left out; see `structgen.compiler.grammar.compiler.read_rules`.
        if program.returns[program.start] and not (isinstance(each, Grammar) and program.leave_out_empty()):
            raise DefinitionError(
                f"the definition {name} has the empty text", remedy="Let the rules say that it may be left out."
            )
        definitions[name] = _machine_of(program, each, vocabulary, meter)
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
        with _placed(definition, name):
            found = tokens_of(mark, vocabulary)
        tokens += (TokenRange(*each, number[name]) for each in found.among(vocabulary.known))
        if found.is_set:
            sets.append(number[name])
        elif any(first in vocabulary.eos_ids for first, _ in found.ranges):
            notes.append(f"{mark} is an EOS token: engines end the text there, whatever the grammar has behind it")
    numbered = tuple((number[name], machine) for name, machine in machines.items())
    return Embedded(numbered, tuple(tokens), tuple(sets), vocabulary.eos_ids), tuple(relaxed), notes
