"""Grammars in Lark's syntax, as llguidance and XGrammar read them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..definitions import Definition, Grammar
from ..definitions.grammar_marks import in_groups, read_marks
from ..errors import UnsupportedError
from .migrated import Migrated

_EARLEY = (
    'Ambiguous rules are followed in all ways, by ambiguity="all"; regexes of terminals are Python\'s, of which the'
    ' longest match counts, by matches="longest".'
)


#: Grammars within a grammar, those within these counted each time; one holds fewer levels than may recur.
_MOST_GRAMMARS = 100


def lark_grammar(text: str, named: Mapping[str, Definition | str] | None = None) -> Migrated:
    """A grammar in Lark's syntax, with those that it holds by ``@name``, and these."""
    text = re.sub(r"\A%llguidance\s*\{\s*\}", "", text)  # without an option it says whose the grammar is
    return Migrated(_holding(text, named or {}, (), []), (_EARLEY,))


def _holding(
    text: str, named: Mapping[str, Definition | str], within: tuple[str, ...], held_so_far: list[str]
) -> Grammar:
    """A grammar with those that it holds. Raises `UnsupportedError` for one that holds itself, and for too many."""
    text = in_groups(text)
    held: dict[str, Definition] = {}
    for terminal, reference in read_marks(text).references.items() if named else ():
        inner = named.get(reference[1:])
        held_so_far.append(reference)
        if reference in within or len(held_so_far) > _MOST_GRAMMARS:
            what = "itself" if reference in within else f"more than {_MOST_GRAMMARS} grammars, each where it is named"
            remedy = "Write their rules into one grammar."
            raise UnsupportedError(f"the grammar {(*within, reference)[0]} holds {what}", remedy=remedy)
        if isinstance(inner, str):
            inner = _holding(inner, named, (*within, reference), held_so_far)
        if inner is not None:
            held[terminal] = inner
    return Grammar(text, ambiguity="all", matches="longest", definitions=held)
