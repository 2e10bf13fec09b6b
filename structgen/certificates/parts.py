"""The items about a definition's parts: which of them no text can use, and which can be repeated without a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..budget import Meter
from ..definitions import Gbnf, Grammar, JsonSchema, Regex
from ..errors import BudgetExceededError, StructgenError
from . import grammar_parts, pattern_parts, schema_parts
from .texts import Texts, language
from .values import CertificateItem, Finding

#: Findings of one kind that are told.
_MOST_TOLD = 100

#: What finds something in a definition of its kind: findings, and how many parts were looked at.
Finder: TypeAlias = Callable[..., tuple[list[Finding], int]]

_UNUSED: dict[type, Finder] = {
    JsonSchema: schema_parts.unused,
    Regex: pattern_parts.unused,
    Gbnf: grammar_parts.unused_in_gbnf,
    Grammar: grammar_parts.unused,
}
_UNBOUNDED: dict[type, Finder] = {
    JsonSchema: schema_parts.unbounded,
    Regex: pattern_parts.unbounded,
    Gbnf: grammar_parts.unbounded_in_gbnf,
    Grammar: grammar_parts.unbounded,
}


def unused_parts(texts: Texts, meter: Meter) -> CertificateItem:
    """Alternatives, properties, enum values, rules that no text can use."""
    name = "unused_parts"
    found = _found(texts, _UNUSED, meter)
    if isinstance(found, str):
        return CertificateItem(name, "undecided", found)
    findings, looked = found
    facts = {"looked_at": looked, "unused": len(findings)}
    if not findings:
        return CertificateItem(name, "proved", f"each of {looked:,} parts is used by some text", facts)
    says = f"{len(findings):,} of {looked:,} parts are used by no text"
    return CertificateItem(name, "refuted", says, facts, tuple(findings[:_MOST_TOLD]))


def terminals(texts: Texts, meter: Meter) -> CertificateItem:
    """Terminals of a grammar that another always beats, and what its author may not expect of the lexer."""
    name, definition = "terminals", texts.definition
    if not isinstance(definition, Grammar):
        says = "there is no lexer" if texts.index.kind != "grammar" else texts.no_source
        return CertificateItem(name, "proved" if texts.index.kind != "grammar" else "undecided", says)
    never, looked, notes = grammar_parts.never_lexed(definition, texts.machine.tables, meter)
    findings = [Finding("warning", "no text has it: another terminal always comes first", each) for each in never]
    findings += [Finding("note", note) for note in notes]
    facts = {"terminals": looked, "never": never}
    if not never:
        return CertificateItem(name, "proved", f"the lexer can read all {looked:,}", facts, tuple(findings))
    says = f"{len(never):,} of {looked:,} terminals are never read"
    return CertificateItem(name, "refuted", says, facts, tuple(findings[:_MOST_TOLD]))


def unbounded_repetition(texts: Texts, meter: Meter) -> CertificateItem:
    """Where a model can go on and on."""
    name = "unbounded_repetition"
    whole = language(texts, meter)
    if whole.facts.get("finite") or whole.facts.get("texts") == 0:
        return CertificateItem(name, "proved", "there are finitely many texts, so each repetition has an end")
    found = _found(texts, _UNBOUNDED, meter)
    if isinstance(found, str) or not found[0]:
        pump = whole.facts.get("pump")
        if pump is None:
            why = found if isinstance(found, str) else "no place was found"
            return CertificateItem(name, "undecided", why)
        what = Finding("note", "this can come ever again", "", pump["again"] + pump["more"])
        return CertificateItem(name, "refuted", "there are infinitely many texts", {}, (what,))
    findings, _ = found
    says = f"{len(findings):,} places can be repeated without a bound"
    facts = {"places": len(findings)}
    return CertificateItem(name, "refuted", says, facts, tuple(findings[:_MOST_TOLD]))


def _found(texts: Texts, finders: dict[type, Finder], meter: Meter) -> tuple[list[Finding], int] | str:
    """What a finder found; else why there is none."""
    definition = texts.definition
    finder = finders.get(type(definition))
    if finder is None or definition is None:
        return texts.no_source or f"not looked at in definitions of kind {texts.index.kind!r}"
    try:
        return finder(definition, meter)
    except BudgetExceededError:
        raise
    except StructgenError as error:
        return f"the source can't be looked at: {error}"
