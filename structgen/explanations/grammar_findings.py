"""Findings about the texts of a grammar: the terminals that the parser accepts, and the rules that are being written.

The terminals are read off the index's own machine: those that the parser accepts behind the last lexeme, as Lark's
``UnexpectedToken.accepts`` has them, or where that lexeme can't end here, those it might become. The names of rules
are kept beside its tables (`structgen.runtime.grammar.parser.provenance`), and read on the first question. Which are
being written is up to the whole stack of the parser, of which steps keep less: the text is parsed once more for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from ..definitions.canonical import grammar_text
from ..errors import StructgenError, UnsupportedError
from ..runtime.core.digraph import bits
from ..runtime.core.machine import Config
from ..runtime.grammar.machine import GrammarMachine
from ..runtime.grammar.parser.parser_driver import Parse
from ..runtime.grammar.parser.provenance import Provenance, WrittenTerminal
from ..runtime.index.index import Index
from ..system.types import Foreign
from .values import Findings, Reason

#: Terminals that are described, rules that are said to be written, states of a stack that are looked at for them.
_MOST_DESCRIBED, _MOST_RULES, _MOST_STATES = 40, 6, 24

#: What Lark makes of a part of a rule that is repeated.
_REPEATED = re.compile(r"__\w+_(?:star|plus)_\d+")


class _Names(NamedTuple):
    """What a grammar's text says of numbers, and where names are defined."""

    provenance: Provenance
    places: dict[str, tuple[int, int]]


#: Tokens with their bytes; an id of -1 is bytes alone.
_Pieces: TypeAlias = Sequence[tuple[int, bytes]]


def find(index: Index, pieces: _Pieces, config: Config) -> Findings:
    """What the grammar expects behind a text, of which ``pieces`` are what was read and led to a configuration."""
    machine = _machine(index)
    names, notes = _names(index)
    between, within = machine.readings(config)
    if between:
        expected = _accepted(machine, between)
        begun = ""
    else:
        expected = _becoming(machine, within)
        begun = ", as far as it was read"
    terminals = tuple(sorted(_named(machine, expected)))
    described = [_described(name, names) for name in terminals[:_MOST_DESCRIBED]]
    more = [f"{len(terminals) - _MOST_DESCRIBED} more"] if len(terminals) > _MOST_DESCRIBED else []
    what = f"the grammar goes on with {', '.join([*described, *more])}{begun}"
    rules: list[str] = []
    if names:
        whole = machine.whole_readings(config, pieces)
        parses = whole.between or [parse for parse, _ in whole.within]
        rules = list(islice(_rules(parses, names), _MOST_RULES))
        if not parses:
            notes = [*notes, "rules are not named: the text can't be read once more"]
    writing = "; ".join(rules)
    return Findings((Reason("terminal" if terminals else "unknown", terminals, what),), writing, tuple(notes))


def expected_terminals(index: Index, config: Config) -> frozenset[str]:
    """The names of the terminals that may come behind a configuration whose last lexeme is over, with ``$END``."""
    machine = _machine(index)
    between, _ = machine.readings(config)
    return frozenset(_named(machine, _accepted(machine, between)))


def _machine(index: Index) -> GrammarMachine:
    """The machine of an index whose kind is ``"grammar"``."""
    machine: Foreign = index.machine
    known: GrammarMachine = machine
    return known


def _accepted(machine: GrammarMachine, parses: Iterable[Parse]) -> int:
    found = 0
    for parse in parses:
        terminals, layout = machine.parses.accepted(parse).terminals, machine.tables.layout
        if layout is not None and parse.level is not None and parse.level.brackets:  # line ends mean nothing in them
            terminals &= ((2 << machine.tables.end) - 1) & ~(1 << layout.newline)
        found |= terminals
    return found & ~machine.ignored


def _becoming(machine: GrammarMachine, within: Iterable[tuple[Parse, int]]) -> int:
    """The terminals that lexemes can still become, of those that the parser accepts."""
    found = 0
    for parse, state in within:
        accepted = machine.parses.accepted(parse).terminals
        found |= accepted & machine.futures_of(state) if state >= 0 else accepted & machine.embedded.terminals
    return found


def _named(machine: GrammarMachine, terminals: int) -> set[str]:
    tables = machine.tables
    layout, first = tables.layout, tables.end + 1
    found = {tables.terminals[t] for t in bits(terminals & (1 << tables.end) - 1)}
    if terminals >> tables.end & 1:
        found.add("$END")
    if layout is not None and terminals >> first:
        found.add(tables.terminals[layout.newline])
    return found


# -- names ----------------------------------------------------------------------------------------------------


def _names(index: Index) -> tuple[_Names | None, list[str]]:
    """What the index says of names, and remembers; None where it is not known."""
    known = index.explanations.get("")
    if known is None:
        try:
            known = _load(index), []
        except StructgenError as error:
            known = None, [f"rules are not named: {error}"]
        index.explanations[""] = known
    names: _Names | None = known[0]
    return names, [*known[1]]


def _load(index: Index) -> _Names:
    section = _machine(index).tables.names
    if not len(section):
        what = "the index holds no names"
        raise UnsupportedError(what, remedy="Compile it again; of very large grammars none are kept.")
    provenance = Provenance.from_section(section, "index")
    return _Names(provenance, _places(grammar_text(index.definition)))


#: Where a rule or a terminal is defined.
_DEFINED = re.compile(r"[ \t]*[?!]*(\w+)[ \t]*(?:\{[^}]*\})?(?:\.-?\d+)?[ \t]*:")


def _places(text: str) -> dict[str, tuple[int, int]]:
    """Line and column of each definition in a grammar's text."""
    places: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if ":" in line and (found := _DEFINED.match(line)):
            places.setdefault(found[1], (number, found.start(1) + 1))
    return places


def _described(name: str, names: _Names | None) -> str:
    """A terminal as a person knows it: a text in quotes, or its name with the place of its definition."""
    if name == "$END":
        return "the end of the text"
    terminal = names.provenance.terminal(name) if names else None
    if names is None or terminal is None:
        return name
    if terminal.text is not None:
        return f"{terminal.text!r} ({name})" if name in names.places else repr(terminal.text)
    return f"{name}{_place(name, names)}" if name in names.places else _anonymous(terminal)


def _anonymous(terminal: WrittenTerminal) -> str:
    return f"{terminal.name} (/{terminal.pattern}/)" if terminal.pattern else terminal.name


def _place(name: str, names: _Names) -> str:
    found = names.places.get(name)
    return f" (line {found[0]}, column {found[1]})" if found else ""


def _rules(parses: Iterable[Parse], names: _Names) -> Iterator[str]:
    """The rules that are being written, the innermost first."""
    seen: set[int] = set()
    for parse in parses:
        for rule, origin, expansion in names.provenance.begun(islice(parse.stack.states(), _MOST_STATES)):
            if rule not in seen and not origin.startswith(("$", "__")):
                yield f"{origin}{_place(origin, names)}: {_REPEATED.sub('(…)*', expansion)}"
            seen.add(rule)
