"""Grammars in Lark's syntax, as llguidance and XGrammar read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..definitions import Definition, Grammar
from ..definitions.grammar_marks import in_groups, read_marks, with_names
from ..errors import UnsupportedError
from .migrated import Migrated

_EARLEY = (
    'Ambiguous rules are followed in all ways, by ambiguity="all"; regexes of terminals are Python\'s, of which the'
    ' longest match counts, by matches="longest".'
)


#: Grammars within a grammar, those within these counted each time; one holds fewer levels than may recur.
_MOST_GRAMMARS = 100


def lark_grammar(
    text: str, schema: Callable[[str], Migrated], named: Mapping[str, Definition | str] | None = None
) -> Migrated:
    """A grammar in Lark's syntax, with those that it holds by ``@name``, and these.

    Its schemas, ``%json {...}``, become definitions with the options that ``schema`` gives them.
    """
    text = re.sub(r"\A%llguidance\s*\{\s*\}", "", text)  # without an option it says whose the grammar is
    changes: dict[str, None] = {_EARLEY: None}

    def read(schema_text: str) -> Definition:
        found = schema(schema_text)
        changes.update(dict.fromkeys(found.changes))
        return found.definition

    grammar = _holding(text, read, named or {}, (), [])
    return Migrated(grammar, tuple(changes))


def _holding(
    text: str,
    schema: Callable[[str], Definition],
    named: Mapping[str, Definition | str],
    within: tuple[str, ...],
    held_so_far: list[str],
) -> Grammar:
    """A grammar with those that it holds. Raises `UnsupportedError` for one that holds itself, and for too many."""
    text, schemas, grammars = with_names(in_groups(text))
    held: dict[str, Definition] = {name: schema(each) for name, each in schemas.items()}
    for name, each in grammars.items():
        _count("%lark", (), held_so_far)
        held[name] = _holding(each, schema, named, within, held_so_far)
    for terminal, reference in read_marks(text).references.items() if named else ():
        if terminal in held:
            continue
        inner = named.get(reference[1:])
        _count(reference, within, held_so_far)
        if isinstance(inner, str):
            inner = _holding(inner, schema, named, (*within, reference), held_so_far)
        if inner is not None:
            held[terminal] = inner
    return Grammar(text, ambiguity="all", matches="longest", definitions=held)


def _count(name: str, within: tuple[str, ...], held_so_far: list[str]) -> None:
    """Count a grammar that is held. Raises `UnsupportedError` for one within itself, and for too many."""
    held_so_far.append(name)
    if name in within or len(held_so_far) > _MOST_GRAMMARS:
        what = "itself" if name in within else f"more than {_MOST_GRAMMARS} grammars, each where it is named"
        remedy = "Write their rules into one grammar."
        raise UnsupportedError(f"the grammar {(*within, name)[0]} holds {what}", remedy=remedy)
