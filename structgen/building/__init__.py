"""From a definition to the machine that follows it, without rows: the front ends, tables, and what is refused.

Each engine has a module, which loads its front ends: `automata`, `stacks`, `grammars`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..budget import Meter
from ..definitions import Definition, Gbnf, Grammar, JsonSchema, StructuralTag
from ..runtime.core.machine import CompiledMachine
from ..vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..cache.cache import Cache


def build(
    definition: Definition, vocabulary: Vocabulary, meter: Meter, cache: Cache | None = None, *, on_demand: bool = False
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
    if isinstance(definition, Grammar):
        from .grammars import grammar_machine

        return grammar_machine(definition, vocabulary, meter, cache)
    if isinstance(definition, JsonSchema | Gbnf | StructuralTag):
        from .stacks import schema_machine, stack_machine, tag_machine

        if isinstance(definition, JsonSchema):
            return schema_machine(definition, vocabulary, meter, on_demand=on_demand)
        if isinstance(definition, StructuralTag):
            return tag_machine(definition, vocabulary, meter, on_demand=on_demand)
        return stack_machine(definition, vocabulary, meter, on_demand=on_demand)
    from .automata import automaton_machine

    return automaton_machine(definition, vocabulary, meter), ()
