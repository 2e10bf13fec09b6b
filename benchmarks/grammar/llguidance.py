"""Grammars of structgen in the dialect of llguidance: the same rules, the same terminals.

Lark's loader expands a grammar first, so that imports, templates, repeats and extensions are gone; what is left is
plain rules and the regexes of terminals. llguidance has a dialect of Lark's syntax, and reads texts in another way:

====================  ==========================================  ====================================================
                      Lark (LALR), structgen                      llguidance
====================  ==========================================  ====================================================
lexer                 terminals in a fixed order, the first one   the longest match of all terminals that the parser
                      that matches; contextual or basic           could take, several at once
a keyword             is no identifier (basic lexer)              is one as well; ``& ~`` takes it out of the regex
ambiguity             conflicts shift: one derivation             all derivations (Earley)
regexes               Python's, with look-around and lazy repeats Rust's, without
====================  ==========================================  ====================================================

So it may accept a little more, and what can't be said is refused. What is ignored may stand behind a whole text only
if the text could still go on, so it is named there once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

import structgen as sg
from structgen.budget import Meter
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.load.rules import ContextFreeGrammar, Terminal

from ..engines import RefusedError

#: Exact masks: without it only the token that the tokenizer would choose is allowed where one text alone can follow.
OPTIONS = '%llguidance {"no_forcing": true, "allow_initial_skip": true}'

#: What Rust's regexes do not have, outside of escapes and classes.
_LOOK_AROUND = re.compile(r"\(\?(?:[=!]|<[=!]|\(|>|P=)")
_LAZY = re.compile(r"[*+?}][?+]")

#: In C: no comment begins with that slash, and none ends at that star, behind lines that a backslash joins.
_SLASH, _STAR_OF_COMMENT = re.compile(r"\\/\(\?!\\\*\)"), re.compile(r"\\\*\(\?!\(\?:.*?\)\*\\/\)", re.DOTALL)


def convert(grammar: sg.Grammar, *, reserve: bool | None = None) -> str:
    """A grammar as llguidance reads it.

    ``reserve`` takes out of a regex the strings that are terminals of their own, as Lark's basic lexer does; None
    does so for that lexer. Raises `RefusedError`.
    """
    reserve = grammar.lexer == "basic" if reserve is None else reserve
    if getattr(grammar, "postlex", None) is not None:
        raise RefusedError("indentation is not context-free")
    source = grammar.path or "<grammar>"
    try:
        loaded = load(grammar.text, grammar.start, Meter(sg.Budget()), source=source, imports=grammar.imports)
    except sg.Error as error:
        raise RefusedError(str(error)) from error
    return write(loaded, reserve=reserve)


def write(grammar: ContextFreeGrammar, *, reserve: bool) -> str:
    """Rules and terminals as a text. Raises `RefusedError` for a terminal that llguidance cannot express."""
    rules = _names(grammar.nonterminals, "r_", str.lower)
    names = rules | _names([t.name for t in grammar.terminals], "T_", str.upper)
    tail = " | ".join(names[name] for name in grammar.ignored)
    lines = [OPTIONS, f"start: {rules[grammar.start]}" + (f" ({tail})*" if tail else "")]
    for origin in grammar.nonterminals:
        expansions = [rule.expansion for rule in grammar.rules if rule.origin == origin]
        shown = (" ".join(names[symbol] for symbol in expansion) or '""' for expansion in expansions)
        lines.append(f"{rules[origin]}: " + "\n  | ".join(shown))
    for terminal in grammar.terminals:
        reserved = _reserved(terminal, grammar.terminals) if reserve else []
        without = f" & ~/{'|'.join(reserved)}/" if reserved else ""
        lines.append(f"{names[terminal.name]}: {_pattern(terminal)}{without}")
    lines += [f"%ignore {names[name]}" for name in grammar.ignored]
    return "\n".join(lines) + "\n"


def _names(symbols: Iterable[str], prefix: str, case: Callable[[str], str]) -> dict[str, str]:
    """Names that llguidance takes: theirs may not begin with two underscores, or hold a dot."""
    found: dict[str, str] = {}
    for symbol in symbols:
        name = plain = prefix + case(re.sub(r"\W", "_", symbol)).strip("_")
        number = 0
        while name in found.values():
            number += 1
            name = f"{plain}_{number}"
        found[symbol] = name
    return found


def _pattern(terminal: Terminal) -> str:
    if terminal.pattern is None:
        raise RefusedError(f"{terminal.name} is declared only: something beyond a regex makes it")
    if terminal.text is not None and not terminal.flags:
        return json.dumps(terminal.text, ensure_ascii=False)
    return f"/{_rust(terminal.pattern, terminal.name)}/"


def _rust(pattern: str, name: str) -> str:
    """A regex of Python's in Rust's syntax, as it stands between slashes.

    C's look-ahead is left out: what files have is read without.
    """
    pattern = pattern.removeprefix("(?!0[xX][0-9a-fA-F]*[eE][-+])")
    pattern = _STAR_OF_COMMENT.sub(r"\\*+[^*\/]", _SLASH.sub(r"\/", pattern))
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)
    if _LOOK_AROUND.search(bare) or _LAZY.search(bare) or re.search(r"\\[bBAZ0-9]", re.sub(r"\[.*?\]", "", pattern)):
        raise RefusedError(f"{name} has look-around, a lazy repeat or a reference: /{pattern}/")
    escaped = re.sub(r"\\.|/", lambda found: r"\/" if found[0] == "/" else found[0], pattern, flags=re.DOTALL)
    return escaped.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t")


def _reserved(terminal: Terminal, terminals: Iterable[Terminal]) -> list[str]:
    """Regexes of the strings that are not this terminal although its regex matches them."""
    if terminal.text is not None or terminal.pattern is None:
        return []
    whole = re.compile(terminal.pattern)
    return [
        _rust(other.pattern, other.name)
        for other in terminals
        if other.text is not None
        and other.pattern is not None
        and other.priority >= terminal.priority
        and whole.fullmatch(other.text)
    ]
