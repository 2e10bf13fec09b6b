"""What is ignored, but once in a row: llguidance's option ``ignore_once``, as rules that say where it may stand."""

from __future__ import annotations

from dataclasses import replace

from ...errors import DefinitionError, UnsupportedError
from .load.rules import ContextFreeGrammar, Production


def ignored_once(grammar: ContextFreeGrammar) -> ContextFreeGrammar:
    """The grammar in which what is ignored stands at most once at the beginning and behind each other terminal.

    Each rule is cut behind its terminals: ``x: A B`` is ``x: A x1 | A I x1`` and ``x1: B | B I`` for what is ignored,
    I. So what follows I is what follows A, also to the lexer.

    Raises `DefinitionError` for several terminals that are ignored, and for one that rules hold as well;
    `UnsupportedError` for captures, which are without what is ignored.
    """
    if not grammar.ignored:
        return grammar
    if len(grammar.ignored) > 1:
        what = "ignore_once is for one terminal, and the grammar ignores several"
        raise DefinitionError(what, where="%ignore", remedy="Ignore one regex with | in it.")
    (ignored,) = grammar.ignored
    held = next((rule.origin for rule in grammar.rules if ignored in rule.expansion), None)
    if held is not None:
        what = f"{ignored} is ignored once, and a rule holds it"
        raise DefinitionError(what, where=f"rule {held}", remedy="Give what the rule holds a regex of its own.")
    if grammar.captures:
        what = "captures beside ignore_once are not read"
        raise UnsupportedError(what, where=f"rule {grammar.captures[0].rule}", remedy="Leave one of the two out.")
    terminals = {each.name for each in grammar.terminals}
    taken = terminals | {rule.origin for rule in grammar.rules}

    def named(stem: str) -> str:
        while stem in taken:
            stem += "_"
        taken.add(stem)
        return stem

    start = named(f"{grammar.start}_or_{ignored}")
    rules = [Production(start, (grammar.start,)), Production(start, (ignored, grammar.start))]
    for rule in grammar.rules:
        origin, part = rule.origin, 0
        for at, name in enumerate(rule.expansion, 1):
            if name not in terminals:
                continue
            rest = [named(f"{rule.origin}_{len(rules)}")] if at < len(rule.expansion) else []
            before = rule.expansion[part:at]
            rules += [replace(rule, origin=origin, expansion=(*before, *i, *rest)) for i in ((), (ignored,))]
            origin, part = rest[0] if rest else origin, at
        if part < len(rule.expansion) or not rule.expansion:
            rules.append(replace(rule, origin=origin, expansion=rule.expansion[part:]))
    return replace(grammar, start=start, rules=tuple(rules), ignored=())
