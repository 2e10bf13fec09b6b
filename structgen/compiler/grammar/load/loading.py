"""Lark loads and expands a grammar's text; this turns what comes out into a `ContextFreeGrammar`.

Lark takes care of the whole syntax: EBNF, repeats, templates, aliases, priorities, imports, flags, `%ignore`,
`%declare`, `%override`, `%extend`. Its parser and its lexer are not used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias

from ....budget import Meter
from ....definitions.grammar_text import Imports
from ....errors import DefinitionError, StructgenError
from .growth import check_definitions, check_text
from .refusals import Places, no_start, refusal
from .rules import ContextFreeGrammar, Production, Terminal
from .stopping import stoppable

if TYPE_CHECKING:
    from lark.lexer import TerminalDef

#: Finds the path and the text of an import.
_Find: TypeAlias = Callable[[str | None, str], tuple[str, str]]

#: Where a text lies that is from no file: nothing lies beside it, and imports relative to it find nothing.
_NO_FILE = os.path.join(os.devnull, "grammar")


def load(
    text: str,
    start: str,
    meter: Meter,
    *,
    source: str = "<grammar>",
    imports: Imports | None = None,
    written: str = "",
    declared: Collection[str] = (),
    kept: Collection[str] = (),
) -> ContextFreeGrammar:
    """Read a grammar in Lark's syntax.

    Parameters
    ----------
    source:
        The absolute path of the file that the text is from, where relative imports are looked for; or just a name.
    imports:
        The files that it imports; None reads them now.
    written:
        The text as its author has it, which places in messages are of; empty where that is the same.
    declared:
        Terminals that the grammar may declare without a definition; they have no pattern.
    kept:
        Terminals that are read although no rule has them.

    Raises
    ------
    DefinitionError
        In Lark's words, with line and column where it has them.
    BudgetExceededError
        For groups nested too deeply, and for what is short and would keep Lark busy for ever.
    """
    from lark.load_grammar import GrammarBuilder

    source = source if os.path.isabs(source) else _NO_FILE
    places = Places(text, written or text)
    # Lark looks there first, and comes to no other place: where nothing is found, `find` raises what Lark lets pass.
    find = _checked((imports or Imports.read(text, "", ())).find, meter, places)
    builder = GrammarBuilder(import_paths=[find])  # type: ignore[no-untyped-call]
    try:
        check_text(text, meter)
        with stoppable(meter, "loading the grammar"):
            builder.load_grammar(text, source)
        meter.check_time("loading the grammar")
        found = builder._definitions.get(start)
        if found is None or found.is_term or found.params or found.tree is None:
            raise no_start(start, builder._definitions, places)
        check_definitions(builder._definitions, start, meter)
        with stoppable(meter, "loading the grammar"):
            terminals, rules, ignored = builder.build().compile([start], set(kept))
        terminals.sort(key=_order)
    except StructgenError:
        raise
    except Exception as error:
        raise refusal(error, builder._definitions, declared, source, places, meter) from error
    meter.check_time("loading the grammar")
    used = {symbol.name for rule in rules for symbol in rule.expansion}
    defined = {terminal.name for terminal in terminals}
    without = sorted(filter(_among(declared), used - defined))
    missing = {s.name for r in rules for s in r.expansion if not s.is_term} - {r.origin.name for r in rules}
    if missing:
        what = f"{min(missing)} is a template, used as a rule"
        where = places.of_definition(min(missing))
        raise DefinitionError(what, where=where, remedy="Give it arguments: name{...}")
    loaded = ContextFreeGrammar(
        start,
        tuple(
            Production(rule.origin.name, tuple(symbol.name for symbol in rule.expansion), rule.options.priority or 0)
            for rule in rules
        ),
        (*map(_terminal, terminals), *(Terminal(name, None) for name in without)),
        tuple(ignored),
    )
    _check_defined(loaded)
    return loaded


def _checked(find: _Find, meter: Meter, places: Places) -> _Find:
    """The same, with a look at the meter and at the text before Lark reads it."""

    def checked(folder: str | None, name: str) -> tuple[str, str]:
        meter.check_time("loading the grammar")
        try:
            file, text = find(folder, name)
        except DefinitionError as error:
            raise error.within(places.of_match(rf"%import\s+\.*{_dotted(name)}\b")) from error
        check_text(text, meter, file)
        return file, text

    return checked


def _dotted(name: str) -> str:
    """A regex for a file's name as `%import` has it."""
    return os.path.splitext(name)[0].replace(os.sep, r"\.")


def is_named(name: str, wanted: str) -> bool:
    """Whether a terminal has a name, or had it in a grammar that was imported.

    ``_INDENT`` is ``_python__INDENT`` then.
    """
    return name == wanted or (
        name.endswith(f"__{wanted.removeprefix('_')}") and name.startswith("_") == wanted.startswith("_")
    )


def _among(declared: Collection[str]) -> Callable[[str], bool]:
    """Whether a name is, or was in a grammar that was imported, one of some: as `is_named` for each of them."""
    wanted = frozenset(declared)
    lengths = {len(name.removeprefix("_")) for name in wanted}

    def is_among(name: str) -> bool:
        if name in wanted:
            return True
        mark = "_" if name.startswith("_") else ""
        ends = (name[-n:] for n in lengths if n and name[-n - 2 : -n] == "__")
        return any(mark + end in wanted and (mark or end[0] != "_") for end in ends)

    return is_among


def _order(terminal: TerminalDef) -> tuple[int, int, int, str]:
    """The order in which Lark's scanner tries terminals (`lark.lexer.BasicLexer`)."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name


def _terminal(terminal: TerminalDef) -> Terminal:
    pattern = terminal.pattern
    text = pattern.value if pattern.type == "str" else None
    return Terminal(
        terminal.name, pattern.to_regexp(), text, frozenset(pattern.flags), terminal.priority, not pattern.min_width
    )


def _check_defined(grammar: ContextFreeGrammar) -> None:
    """That every symbol is a rule or a terminal; declared terminals are neither."""
    known = {*grammar.nonterminals, *(t.name for t in grammar.terminals)}
    for name in grammar.ignored:
        if name not in known:
            raise DefinitionError(
                f"the terminal {name} is declared and not defined", where="%ignore", remedy="Define it."
            )
    for rule in grammar.rules:
        for name in rule.expansion:
            if name not in known:
                raise DefinitionError(
                    f"the terminal {name} is declared and not defined", where=f"rule {rule.origin}", remedy="Define it."
                )
