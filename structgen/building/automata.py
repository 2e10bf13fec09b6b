"""Regexes and automata: their machine has no stack."""

from __future__ import annotations

from ..budget import Meter
from ..compiler.stuck import check_never_stuck
from ..definitions import Definition, Fsm, Regex
from ..errors import DefinitionError
from ..runtime.automaton.machine import AutomatonMachine
from ..vocabulary.vocabulary import Vocabulary


def automaton_machine(definition: Definition, vocabulary: Vocabulary, meter: Meter) -> AutomatonMachine:
    """The machine of a `Regex` or a `Fsm`. Raises `DefinitionError` for what nothing compiles, and as `build`."""
    if isinstance(definition, Regex):
        from ..compiler.patterns.compiler import compile_regex

        tables = compile_regex(definition, meter)
    elif isinstance(definition, Fsm):
        from ..compiler.automata.fsm import compile_fsm

        tables = compile_fsm(definition, meter)
    else:
        remedy = "Of tools, sg.tool_calls makes a definition, structgen warm --for ENGINE what that asks for."
        raise DefinitionError(f"there is no compiler for definitions of kind {definition.kind!r}", remedy=remedy)
    machine = AutomatonMachine(tables, vocabulary)
    check_never_stuck(machine, meter)
    return machine
