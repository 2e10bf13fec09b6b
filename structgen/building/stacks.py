"""JSON Schemas, GBNF, structural tags, and what stands within grammars: their machine has a stack."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..budget import Meter
from ..compiler.stuck_stacks import check_stack_never_stuck
from ..definitions import Definition, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ..errors import GrammarWarning, StructgenError
from ..runtime.core.machine import CompiledMachine
from ..runtime.pushdown.distinct import distinct
from ..runtime.pushdown.machine import PushdownMachine
from ..runtime.pushdown.tables import PushdownTables
from ..system.warning import warn
from ..vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..compiler.programs.program import Program
    from ..compiler.structural_tags.marks import Marks

#: Warnings for one grammar.
_MOST_NOTES = 5

#: The bytes that UTF-8 has.
_IN_UTF8 = np.array([byte not in (0xC0, 0xC1, *range(0xF5, 0x100)) for byte in range(256)])


def schema_machine(
    definition: JsonSchema, vocabulary: Vocabulary, meter: Meter, *, on_demand: bool
) -> tuple[CompiledMachine, tuple[str, ...]]:
    """`stack_machine` for a schema alone, whose arrays may have items that must differ."""
    machine, relaxations = stack_machine(
        definition, vocabulary, meter, on_demand=on_demand, keeps_sets=is_spelled(vocabulary)
    )
    return distinct(machine), relaxations


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
    program, relaxations = program_of(definition, vocabulary, meter, keeps_sets=keeps_sets)
    machine = machine_of(program, definition, vocabulary, meter)
    tell(tuple(program.notes))
    return machine, relaxations


def machine_of(program: Program, definition: Definition, vocabulary: Vocabulary, meter: Meter) -> PushdownMachine:
    """The machine of a program. Raises as `build`."""
    from ..compiler.programs.ambiguity import check_ambiguity
    from ..compiler.programs.tables import to_tables

    machine = PushdownMachine(to_tables(program, meter), vocabulary)
    if isinstance(definition, Gbnf | Grammar):
        check_ambiguity(machine, program, meter)
    check_stack_never_stuck(machine, meter)
    return machine


def _growing_machine(
    definition: JsonSchema, vocabulary: Vocabulary, meter: Meter, *, keeps_sets: bool
) -> tuple[PushdownMachine, tuple[str, ...]]:
    """`stack_machine` on demand. No text of a schema can be read in ever more ways, so that is not looked for."""
    from ..compiler.json_schema.compiler import begin_json_schema
    from ..compiler.programs.program import Program
    from ..compiler.programs.special_tokens import SpecialTokens
    from ..compiler.programs.tables import to_tables

    special = SpecialTokens(vocabulary.special_tokens)
    program, relaxations = begin_json_schema(definition, meter, special, keeps_sets=keeps_sets)
    tables = to_tables(program, meter) if isinstance(program, Program) else program.tables()
    machine = PushdownMachine(tables, vocabulary)
    check_stack_never_stuck(machine, meter)
    return machine, relaxations


def tag_machine(
    definition: StructuralTag, vocabulary: Vocabulary, meter: Meter, *, on_demand: bool
) -> tuple[CompiledMachine, tuple[str, ...]]:
    """`stack_machine` for a structural tag, whose program depends on the vocabulary's special tokens."""

    tables, relaxations = _tag_tables(definition, vocabulary, meter, on_demand=on_demand)
    machine = PushdownMachine(tables, vocabulary)
    check_stack_never_stuck(machine, meter)
    return distinct(machine), relaxations


def is_spelled(vocabulary: Vocabulary) -> bool:
    """Whether any value of JSON can be finished."""
    return not (_IN_UTF8 & ~vocabulary.single_bytes).any()


def marked_tag_machine(
    definition: StructuralTag, vocabulary: Vocabulary, meter: Meter
) -> tuple[CompiledMachine, Marks]:
    """A structural tag's machine that takes marks around the texts of formats with labels, lowered on demand."""
    from ..compiler.structural_tags.marks import Marks

    marks = Marks(vocabulary)
    tables, _ = _tag_tables(definition, vocabulary, meter, marks, on_demand=True)
    return distinct(PushdownMachine(tables, marks.vocabulary)), marks


def _tag_tables(
    definition: StructuralTag, vocabulary: Vocabulary, meter: Meter, marks: Marks | None = None, *, on_demand: bool
) -> tuple[PushdownTables, tuple[str, ...]]:
    """The tables of a structural tag's program, and what was relaxed.

    They grow ``on_demand``, unless the items of some arrays must differ.
    """
    from ..compiler.programs.tables import to_tables
    from ..compiler.structural_tags.linker import begin_program, whole_program

    keeps_sets = is_spelled(vocabulary)
    if on_demand:
        growing, relaxations = begin_program(definition, vocabulary, meter, marks, keeps_sets=keeps_sets)
        if growing is not None:
            return growing.tables(), relaxations
    program, relaxations = whole_program(definition, vocabulary, meter, marks, keeps_sets=keeps_sets)
    return to_tables(program, meter), relaxations


def program_of(
    definition: JsonSchema | Gbnf | Regex | Grammar, vocabulary: Vocabulary | None, meter: Meter, *, keeps_sets: bool
) -> tuple[Program, tuple[str, ...]]:
    """The pushdown program of a definition, and what was relaxed; without a vocabulary its texts are bytes alone."""
    if isinstance(definition, JsonSchema):
        from ..compiler.json_schema.compiler import compile_json_schema
        from ..compiler.programs.special_tokens import SpecialTokens

        special = SpecialTokens(vocabulary.special_tokens if vocabulary else {})
        return compile_json_schema(definition, meter, special, keeps_sets=keeps_sets)
    if isinstance(definition, Gbnf):
        from ..compiler.gbnf.compiler import compile_gbnf

        return compile_gbnf(definition, meter, vocabulary), ()
    if isinstance(definition, Grammar):
        from ..compiler.scannerless.inner import InnerPrograms
        from ..compiler.scannerless.lowering import compile_rules_over_bytes

        relaxed: dict[str, None] = {}

        def compile_inner(each: JsonSchema | Gbnf | Regex | Grammar) -> Program:
            program, relaxations = program_of(each, None, meter, keeps_sets=keeps_sets)
            relaxed.update(dict.fromkeys(relaxations))
            return program

        inner = InnerPrograms(within(definition), compile_inner)
        program = compile_rules_over_bytes(definition, meter, inner)
        inner.check_asked(name for name, _ in definition.definitions if name not in definition.marked.references)
        return program, tuple(relaxed)
    from ..compiler.patterns.compiler import regex_program

    return regex_program(definition, meter), ()


def within(definition: Grammar, used: Container[str] | None = None) -> dict[str, JsonSchema | Gbnf | Regex | Grammar]:
    """The definitions within a grammar, by the names of terminals; of those in its text the ``used`` ones."""
    marked = definition.marked
    inner: dict[str, JsonSchema | Gbnf | Regex | Grammar] = {}
    for name, text in marked.schemas.items():
        if used is None or name in used:
            with placed(definition, name):
                inner[name] = JsonSchema(text)
    inner |= {name: definition.within(text) for name, text in marked.grammars.items() if used is None or name in used}
    return inner | {name: each for name, each in definition.definitions if used is None or name in used}


@contextmanager
def placed(definition: Grammar, name: str) -> Iterator[None]:
    """Have errors say where a grammar has a definition or a token, by the name of a terminal."""
    try:
        yield
    except StructgenError as error:
        raise definition.marked.placed(error, name, definition.text) from error


def tell(notes: tuple[str, ...]) -> None:
    """Warn of what the author of a grammar may not expect."""
    more = len(notes) - _MOST_NOTES
    for note in (*notes[:_MOST_NOTES], *([f"and {more} more"] if more > 0 else [])):
        warn(GrammarWarning(note))
