"""Lark loads and expands a grammar's text; this turns what comes out into a `ContextFreeGrammar`.

Lark takes care of the whole syntax: EBNF, repeats, templates, aliases, priorities, imports, flags, `%ignore`,
`%declare`, `%override`, `%extend`. Its parser and its lexer are not used.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...budget import Meter
from ...errors import BudgetExceededError, DefinitionError, StructgenError
from ...grammars import FOLDER
from .rules import ContextFreeGrammar, Rule, Terminal

#: Groups that may be open at once in a grammar's text: Lark walks what it read by recursion.
_MOST_OPEN = 60


def load(
    text: str,
    start: str,
    meter: Meter,
    *,
    source: str = "<grammar>",
    import_paths: Sequence[str] = (),
    declared: Collection[str] = (),
) -> ContextFreeGrammar:
    """Read a grammar in Lark's syntax.

    Parameters
    ----------
    source:
        The file that the text is from; relative imports are looked for beside it.
    import_paths:
        Folders in which absolute imports are looked for, besides Lark's own grammars.
    declared:
        Terminals that the grammar may declare without a definition; they have no pattern.

    Raises
    ------
    DefinitionError
        In Lark's words, with line and column where it has them.
    BudgetExceededError
        For groups nested too deeply.
    """
    from lark.exceptions import GrammarError, LarkError, UnexpectedInput
    from lark.load_grammar import load_grammar

    _check_nesting(text, min(meter.budget.depth, _MOST_OPEN))
    try:
        loaded, _ = load_grammar(  # type: ignore[no-untyped-call]
            text, source, [*import_paths, str(FOLDER)], False
        )
        meter.check_time("loading the grammar")
        if start not in {name for name, *_ in loaded.rule_defs}:
            raise DefinitionError(f"there is no rule {start!r}", remedy="Name the rule that a whole text is: start=...")
        terminals, rules, ignored = loaded.compile([start], set())
        terminals.sort(key=_order)
    except UnexpectedInput as error:
        raise DefinitionError(_first_line(error), where=f"line {error.line}, column {error.column}") from error
    except (GrammarError, LarkError, OSError) as error:
        raise DefinitionError(_first_line(error)) from error
    except RecursionError as error:
        raise BudgetExceededError(
            "the grammar is nested too deeply", remedy="Give inner groups rules of their own."
        ) from error
    except StructgenError:
        raise
    except Exception as error:  # of `re`, or an assertion: Lark does not foresee all that a text can hold
        raise DefinitionError(f"the grammar does not load: {_first_line(error)}") from error
    meter.check_time("loading the grammar")
    used = {symbol.name for rule in rules for symbol in rule.expansion}
    defined = {terminal.name for terminal in terminals}
    without = sorted(name for name in used - defined if any(is_named(name, wanted) for wanted in declared))
    found = ContextFreeGrammar(
        start,
        tuple(
            Rule(rule.origin.name, tuple(symbol.name for symbol in rule.expansion), rule.options.priority or 0)
            for rule in rules
        ),
        (*map(_terminal, terminals), *(Terminal(name, None) for name in without)),
        tuple(ignored),
    )
    _check_defined(found)
    return found


def is_named(name: str, wanted: str) -> bool:
    """Whether a terminal has a name, or had it in a grammar that was imported: ``_INDENT`` is ``_python__INDENT`` then."""
    return name == wanted or (
        name.endswith(f"__{wanted.removeprefix('_')}") and name.startswith("_") == wanted.startswith("_")
    )


def _order(terminal: Any) -> tuple[int, int, int, str]:
    """The order in which Lark's scanner tries terminals (`lark.lexer.BasicLexer`)."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name


def _terminal(terminal: Any) -> Terminal:
    pattern = terminal.pattern
    text = pattern.value if pattern.type == "str" else None
    return Terminal(terminal.name, pattern.to_regexp(), text, frozenset(pattern.flags), terminal.priority)


def _check_defined(grammar: ContextFreeGrammar) -> None:
    """That every symbol is a rule or a terminal; declared terminals are neither."""
    known = {*grammar.nonterminals, *(t.name for t in grammar.terminals)}
    for rule in grammar.rules:
        for name in rule.expansion:
            if name not in known:
                raise DefinitionError(
                    f"the terminal {name} is declared and not defined",
                    where=f"rule {rule.origin}",
                    remedy="Define it.",
                )


def _check_nesting(text: str, most: int) -> None:
    """Count open groups, without a parser: what stands in strings and regexes counts as well, if in pairs that don't match."""
    depth = 0
    for char in text:
        if char in "([":
            depth += 1
            if depth > 50 * most:
                raise BudgetExceededError(
                    f"groups are nested more than {50 * most} deep", remedy="Give inner groups rules of their own."
                )
        elif char in ")]" and depth:
            depth -= 1


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
