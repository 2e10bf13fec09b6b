"""What a grammar's author is told: conflicts that were shifted, and matches that are not the longest."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from judges.guides import BYTES
from judges.preferred_matches import automaton
from lark import Lark

import structgen as sg
from structgen import grammar_store, grammars
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.diagnostics import preferences
from structgen.compiler.grammar.lexer import scanner
from structgen.compiler.grammar.lexer.positions import ProductStates
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.load.rules import Terminal
from structgen.errors import GrammarWarning


def warned(source: str | Path, **options: object) -> list[str]:
    grammar_store.forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sg.compile(sg.Grammar(source, **options), BYTES, eager=False)  # type: ignore[arg-type]
    assert all(each.category is GrammarWarning and each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def test_alternatives_that_hide_a_longer_match() -> None:
    (text,) = warned("start: T\nT: /a|ab/")
    assert "the terminal T matches 'ab', but takes 'a' of it" in text


def test_terminals_that_hide_a_longer_match() -> None:
    (text,) = warned('start: A | B\nA.2: "ab"\nB: /abc/')
    assert text == "of 'abc', which the terminal B matches, the lexer takes 'ab' as A, which is tried before it"


def test_a_conflict_that_is_shifted() -> None:
    source = 'start: s\ns: "i" s | "i" s "e" s | "x"'
    (text,) = warned(source)
    assert text == "two actions compete after I X, before E: reduce 's: I s' or shift in 's: I s . E s' (shifted)"
    assert warned(source, ambiguity="all") == []


QUIET = {
    "keywords": 'start: ("if" | "in" | "int" | NAME | "=" | "==" | "=>")+\nNAME: /[a-z_]\\w*/\n%ignore " "',
    "keywords in any case": 'start: ("select"i | NAME)+\nNAME: /[a-z_]\\w*/i\n%ignore " "',
    "comments": 'start: (NAME | "/" | COMMENT | LINE)+\nNAME: /\\w+/\n'
    "COMMENT: /\\/\\*(.|\\n)*?\\*\\//\nLINE: /\\/\\/[^\\n]*/",
    "strings": 'start: (S | T | /"""(?!")[^"]*"""/)+\nS: /"(?!"")(\\\\\\\\.|[^"\\\\\\\\])*"/\nT: /\'.*?\'/',
    "numbers": 'start: (NUMBER | SIGNED_FLOAT | "-" | ".")+\n%import common (NUMBER, SIGNED_FLOAT, WS)\n%ignore WS',
    "look-around": 'start: (IF | NAME)+\nIF.2: /if\\b/\nNAME: /[a-z]+/\n%ignore " "',
    "the longer one first": "start: (A | B)+\nA: /abc|ab|a/\nB: /x(y|yz)?w/",
}


@pytest.mark.parametrize("name", QUIET)
def test_common_patterns_are_no_news(name: str) -> None:
    assert warned(QUIET[name]) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", grammars.names())
def test_grammars_that_come_with_structgen_are_no_news(name: str) -> None:
    options: dict[str, object] = {"lexer": "contextual" if name in ("markdown", "python3", "toml") else "basic"}
    if name in ("c_names", "java"):
        options["ambiguity"] = "all"
    if name == "python3":
        options |= {"start": "file_input", "postlex": sg.Indentation()}
    assert warned(grammars.path(name), **options) == []
    if name in ("python3", "gnu_c"):
        return  # the others are imported, too
    rule = {"json": "value", "arithmetic": "sum"}.get(name, "start")
    ignored = '\n%ignore " "' if options["lexer"] == "basic" else ""  # an import leaves it behind
    assert warned(f"%import {name}.{rule} -> all\nstart: all{ignored}", **{**options, "start": "start"}) == []


def test_there_are_no_more_than_a_few() -> None:
    names = "ABCDEFGH"
    found = warned("\n".join([f"start: {' | '.join(names)}", *(f"{n}: /{n}|{n}x/" for n in names)]))
    assert len(found) == 6
    assert found[-1] == "and 3 more"


def test_an_index_from_the_cache_says_nothing(tmp_path: Path) -> None:
    definition = sg.Grammar("start: T\nT: /a|ab/")
    with sg.Cache(tmp_path) as cache:
        with pytest.warns(GrammarWarning):
            sg.compile(definition, BYTES, cache=cache)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sg.compile(definition, BYTES, cache=cache).origin == "cache"


def test_what_would_take_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preferences, "_MOST_STATES", 3)
    monkeypatch.setattr(preferences, "_MOST_PLACES", 0)
    assert warned("start: T\nT: /a|ab[xy]{9}/") == []
    assert warned('start: A | B\nA.2: "ab"\nB: /abc/') == []


# -- random regexes and terminals -----------------------------------------------------------------------------


def random_regex(random: Random, depth: int = 3) -> str:
    kind = random.random() if depth else 0
    if kind < 0.4:
        return random.choice(["a", "b", "ab", "[ab]"])
    parts = [random_regex(random, depth - 1) for _ in range(random.randint(2, 3))]
    if kind < 0.7:
        return "".join(parts)
    if kind < 0.9:
        return f"(?:{'|'.join(parts)})"
    return f"(?:{parts[0]}){random.choice(['?', '*', '+'])}"


def all_texts(longest: int) -> Iterator[str]:
    for length in range(1, longest + 1):
        yield from map("".join, itertools.product("ab", repeat=length))


def preferred_of(pattern: str, text: str) -> str | None:
    match = re.match(pattern, text)
    return match and match.group()


@pytest.mark.parametrize("seed", range(4))
def test_regexes_are_judged_by_re(seed: int) -> None:
    """A sentence if and only if some text is a match and not the one that `re` prefers, with a shortest such text."""
    random, told = Random(seed), 0
    for _ in range(150):
        pattern = random_regex(random)
        if re.fullmatch(pattern, ""):
            continue
        matcher = automaton(pattern)
        found = list(preferences.in_regexes((Terminal("T", pattern),), [matcher], Meter(Budget())))
        shortest = next((t for t in all_texts(7) if re.fullmatch(pattern, t) and preferred_of(pattern, t) != t), None)
        quoted = re.findall(r"'(\w+)'", found[0]) if found else []
        if shortest is not None:
            assert len(quoted[0]) == len(shortest), pattern
        if found:
            told += 1
            assert re.fullmatch(pattern, quoted[0]), pattern
            assert preferred_of(pattern, quoted[0]) == quoted[1] != quoted[0], pattern
    assert told > 10


@pytest.mark.parametrize("seed", range(4))
def test_lexers_are_judged_by_lark(seed: int) -> None:
    """A sentence where Lark's lexer takes less of some text than some terminal alone would."""
    random, told, silent = Random(seed), 0, 0
    for _ in range(60):
        names = "ABC"
        lines = [f"{n}{random.choice(['', '', '.1'])}: /{random_regex(random, 2)}/" for n in names]
        text = "\n".join([f"start: ({' | '.join(names)})*", *lines])
        meter = Meter(Budget())
        try:
            grammar = load(text, "start", meter)
            matchers = scanner.matchers(grammar.terminals, 0, meter)
        except sg.errors.DefinitionError:
            continue
        if list(preferences.in_regexes(grammar.terminals, matchers, meter)):
            continue
        places = ProductStates(matchers, meter)
        context = (1 << len(grammar.terminals)) - 1
        lexer = scanner.lexer([context], places, scanner.embedded(grammar.terminals, matchers, meter), 9, meter)
        found = list(preferences.among_terminals(grammar.terminals, lexer, places, meter))
        judge = Lark(text, parser="lalr", lexer="basic")
        patterns = {t.name: t.pattern.to_regexp() for t in judge.terminals}
        shortest = None
        for sample in all_texts(6):
            longest = max((m.end() for p in patterns.values() if (m := re.match(p, sample))), default=0)
            if longest == len(sample) and len(next(iter(judge.lex(sample)))) < longest:
                shortest = sample
                break
        if shortest is not None:
            assert found, (text, shortest)
        for sentence in found:
            whole, taken = re.findall(r"'(\w+)'", sentence)
            by, of = re.findall(r"\b([ABC])\b", sentence)[::-1]
            assert re.fullmatch(patterns[of], whole), (text, sentence)
            token = next(iter(judge.lex(whole)))
            assert (token.type, str(token)) == (by, taken), (text, sentence)
        told += bool(found)
        silent += not found
    assert told > 5
    assert silent > 2
