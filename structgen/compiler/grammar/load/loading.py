"""Lark loads and expands a grammar's text; this turns what comes out into a `ContextFreeGrammar`.

Lark takes care of the whole syntax: EBNF, repeats, templates, aliases, priorities, imports, flags, `%ignore`,
`%declare`, `%override`, `%extend`. Its parser and its lexer are not used.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ....budget import Meter
from ....definitions.grammar_text import Imports
from ....errors import BudgetExceededError, DefinitionError, StructgenError
from .dialects import foreign_notation
from .growth import check_definitions, check_text
from .rules import ContextFreeGrammar, Production, Terminal

if TYPE_CHECKING:
    from lark.lexer import TerminalDef
    from lark.load_grammar import Definition

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

    places = _Places(text, written or text)
    source = source if os.path.isabs(source) else _NO_FILE
    # Lark looks there first, and comes to no other place: where nothing is found, `find` raises what Lark lets pass.
    find = _checked((imports or Imports.read(text, "", ())).find, meter)
    builder = GrammarBuilder(import_paths=[find])  # type: ignore[no-untyped-call]
    try:
        check_text(text, meter)
        builder.load_grammar(text, source)
        meter.check_time("loading the grammar")
        found = builder._definitions.get(start)
        if found is None or found.is_term or found.params or found.tree is None:
            raise DefinitionError(
                f"there is no rule {start!r}", remedy="Name the rule that a whole text is: start=..."
            )
        check_definitions(builder._definitions, start, meter)
        terminals, rules, ignored = builder.build().compile([start], set(kept))
        terminals.sort(key=_order)
    except StructgenError:
        raise
    except Exception as error:
        raise (
            _bad_literal(builder._definitions, meter)
            or (_given_in_terminal(builder._definitions, declared) if isinstance(error, AssertionError) else None)
            or foreign_notation(text, places.of)
            or _as_ours(error, source, places)
        ) from error
    meter.check_time("loading the grammar")
    used = {symbol.name for rule in rules for symbol in rule.expansion}
    defined = {terminal.name for terminal in terminals}
    without = sorted(filter(_among(declared), used - defined))
    missing = {s.name for r in rules for s in r.expansion if not s.is_term} - {r.origin.name for r in rules}
    if missing:
        raise DefinitionError(f"{min(missing)} is a template, used as a rule", remedy="Give it arguments: name{...}")
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


def _checked(find: _Find, meter: Meter) -> _Find:
    """The same, with a look at the meter and at the text before Lark reads it."""

    def checked(folder: str | None, name: str) -> tuple[str, str]:
        meter.check_time("loading the grammar")
        file, text = find(folder, name)
        check_text(text, meter, file)
        return file, text

    return checked


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
                    f"the terminal {name} is declared and not defined",
                    where=f"rule {rule.origin}",
                    remedy="Define it.",
                )


def _given_in_terminal(definitions: Mapping[str, Definition], declared: Collection[str]) -> DefinitionError | None:
    """What is wrong with the first terminal that holds another one without a pattern."""
    for name, definition in definitions.items():
        if definition.is_term and definition.tree is not None:
            names = definition.tree.scan_values(lambda each: getattr(each, "name", each) in declared)
            if (inner := next((getattr(each, "name", each) for each in names), None)) is not None:
                return DefinitionError(
                    f"the terminal {name} holds {inner}, which is no text for a lexer: a special token, a schema, or"
                    " another definition",
                    where=f"terminal {name}",
                    remedy="Name it in a rule; names of rules are in small letters.",
                )
    return None


def _bad_literal(definitions: Mapping[str, Definition], meter: Meter) -> DefinitionError | None:
    """What is wrong with the first regex that `re` can't read; what Lark says of it varies with what is installed.

    And with the first range that ends before it begins. Raises `BudgetExceededError`.
    """
    from lark.load_grammar import _literal_to_pattern
    from lark.utils import sre_parse  # type: ignore[attr-defined]

    for name, definition in definitions.items():
        for parts in definition.tree.find_data("range") if definition.tree is not None else ():
            first, last = (ast.literal_eval(token) for token in parts.children)
            if first > last:
                return DefinitionError(
                    f"the range {parts.children[0]}..{parts.children[1]} ends before it begins",
                    where=f"{name}, line {parts.children[0].line}, column {parts.children[0].column}",
                    remedy="Turn it round.",
                )
        for literal in definition.tree.find_data("literal") if definition.tree is not None else ():
            token = literal.children[0]
            if token.type != "REGEXP":
                continue
            meter.check_time("loading the grammar")
            try:
                pattern = _literal_to_pattern(token)  # type: ignore[no-untyped-call]
                sre_parse.parse(pattern.to_regexp())
            except re.error as error:
                column = (error.pos or 0) + 1 - len("(?i:") * len(pattern.flags)
                if column < 1:
                    what = f"the regex has a flag that is none: {error.msg}"
                    return DefinitionError(what, where=f"{token} of {name}", remedy="Flags are i, m, s, u and x.")
                return DefinitionError(
                    f"the regex cannot be read: {error.msg}", where=f"{token} of {name}, column {column}"
                )
            except Exception:  # what is wrong with it has been said
                return None
    return None


#: Lark's messages with a place: an empty line and an excerpt follow.
_PLACE = re.compile(r"(?P<what>.*?),? at line (?P<line>\d+),? col(?:umn)? (?P<column>\d+)(?: in (?P<file>.*):)?")


class _Places(NamedTuple):
    """A text whose lines are those that its author wrote, but for rewriting within them and rules at its end."""

    text: str
    written: str

    def of(self, line: int, column: int) -> str:
        """Where a place in the text is for its author: the line alone, or the rule, where more would be wrong."""
        ours, theirs = (each.split("\n")[line - 1 : line] for each in self)
        if ours == theirs:
            return f"line {line}, column {column}"
        name = re.match(r"[?!]*(\w+)", ours[0]) if ours and line > self.written.count("\n") + 1 else None
        return f"rule {name[1]}" if name else f"line {line}"


def _as_ours(error: Exception, source: str, places: _Places) -> StructgenError:
    """What Lark raised, with its place as `where`; that names the file as well, if it is an imported one."""
    from lark.exceptions import GrammarError, LarkError, VisitError

    if isinstance(error, VisitError):  # around what went wrong in a part
        error = error.orig_exc
    if isinstance(error, GrammarError) and len(error.args) > 1:  # what it is about, and why
        return DefinitionError(f"{error.args[1]}, in {error.args[0]!r}")
    if isinstance(error, RecursionError):
        return BudgetExceededError(
            "the grammar is nested too deeply, or imports itself", remedy="Give inner groups rules of their own."
        )
    line = _first_line(error)
    if not isinstance(error, LarkError):  # of `re`, or an assertion: Lark does not foresee all that a text can hold
        return DefinitionError(f"the grammar does not load: {line}")
    found = _PLACE.match(line)
    if found is None:
        return DefinitionError(line)
    if found["file"] not in (None, source):
        return DefinitionError(
            found["what"], where=f"{found['file']}, line {found['line']}, column {found['column']}"
        )
    return DefinitionError(found["what"], where=places.of(int(found["line"]), int(found["column"])))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for part in (str(error), *map(str, error.args)) for line in part.splitlines()]
    return next((line.rstrip(".") for line in lines if len(line) > 1), type(error).__name__)
