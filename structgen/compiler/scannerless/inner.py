"""Definitions within a grammar that is part of another one: programs of their own, which its rules call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ...budget import Meter
from ...definitions import Gbnf, Grammar, JsonSchema, Regex
from ...errors import DefinitionError
from ..programs.program import First, Program, bytes_of

#: What a grammar may hold.
Inner: TypeAlias = JsonSchema | Gbnf | Regex | Grammar


class InnerPrograms:
    """The programs of the definitions that a grammar's rules name, each once.

    Parameters
    ----------
    definitions:
        By name of a terminal.
    compile_inner:
        What makes the program of one.
    """

    def __init__(self, definitions: Mapping[str, Inner], compile_inner: Callable[[Inner], Program]) -> None:
        self._definitions = definitions
        self._compile = compile_inner
        self._numbers: dict[Inner, int] = {}
        self._asked: set[str] = set()
        self.programs: list[Program] = []

    def number(self, name: str) -> int | None:
        """The number of a terminal's definition; None where it has none.

        Raises `DefinitionError` for one that has the empty text, and the errors of its compiler.
        """
        definition = self._definitions.get(name)
        if definition is None:
            return None
        self._asked.add(name)
        if definition not in self._numbers:
            program = self._compile(definition)
            # The rules say of a grammar where it is left out; see `structgen.compiler.grammar.compiler.read_rules`.
            if program.start in program.returns and not (isinstance(definition, Grammar) and program.leave_out_empty()):
                raise DefinitionError(
                    f"the definition {name} has the empty text", remedy="Let the rules say that it may be left out."
                )
            self._numbers[definition] = len(self.programs)
            self.programs.append(program)
        return self._numbers[definition]

    def check_asked(self, names: Iterable[str]) -> None:
        """Raise `DefinitionError` for definitions that no rule names."""
        for name in names:
            if name not in self._asked:
                raise DefinitionError(f"no rule has the terminal {name}", remedy="Use it in a rule, or leave it out.")

    def first_bytes(self, number: int) -> set[int]:
        """The bytes that a definition's texts begin with."""
        program = self.programs[number]
        return bytes_of(program.edges_at(program.start))


class AppendedPrograms:
    """Programs as the externals of rules that become part of the same program as they."""

    def __init__(self, program: Program, programs: list[Program], meter: Meter) -> None:
        self._program = program
        self._programs = programs
        self._meter = meter
        self._first: dict[int, First] = {}

    def tokens(self, number: int) -> None:
        """There are no tokens."""

    def waits(self, number: int) -> bool:
        """None waits to be lowered."""
        return False

    def first(self, number: int) -> First:
        """What the first state of a program does, which is taken over now, if it was not before."""
        if number not in self._first:
            start = self._program.append(self._programs[number])
            self._meter.check_states(len(self._program.edges), "putting definitions within definitions together")
            self._first[number] = First(self._program.edges_at(start))
        return self._first[number]
