"""What can follow a lexeme, up to the end of the text: endings against plain loops, masks against a search."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from judges.endings_judge import agrees, can_complete, random_grammar
from judges.grammars import BLOCKS, GRAMMARS, indentation
from judges.guides import BYTES, EACH_BYTE, check_walk, with_end
from judges.lark_judge import judge, parses
from lark.indenter import PythonIndenter
from tiers import draws

import structgen as sg
from structgen import grammars
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.compiler import compile_grammar
from structgen.compiler.grammar.completion.pop_summaries import find_completions
from structgen.runtime import ids_of
from structgen.runtime.core.digraph import bits
from structgen.runtime.grammar.completability import pop_summaries as outcomes
from structgen.runtime.grammar.completability.boundaries import Boundaries
from structgen.runtime.grammar.completability.completions import Completions
from structgen.runtime.grammar.embedded import Embedded
from structgen.runtime.grammar.lexer_threads import LexerThreads
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser.parser_driver import ParserDriver
from structgen.runtime.grammar.tables import GrammarTables

LINES = indentation(5)

#: Grammars whose endings are all unconstrained: nothing of them is asked when masks are made.
LOOSE = {
    "json": sg.Grammar(grammars.path("json"), start="value"),
    "markdown": sg.Grammar(grammars.path("markdown")),
    "arithmetic": sg.Grammar(grammars.path("arithmetic"), start="sum"),
    "c": sg.Grammar(grammars.path("c"), lexer="basic"),
    "gnu_c": sg.Grammar(grammars.path("gnu_c"), lexer="basic"),
    "c_names": sg.Grammar(grammars.path("c_names"), lexer="basic", ambiguity="all"),
    "sql": sg.Grammar(grammars.path("sql"), lexer="basic"),
    "jsonc": sg.Grammar(grammars.path("jsonc")),
    "go": sg.Grammar(grammars.path("go"), lexer="basic"),
    "graphql": sg.Grammar(grammars.path("graphql"), lexer="basic"),
    "toml": sg.Grammar(grammars.path("toml")),
}

#: Others.
TIGHT = {
    "words": sg.Grammar('start: A C A A | B "d"\nA: /a+/\nB: /b+a/\nC: "c" | /cc+b/\n'),
    "blocks": sg.Grammar(BLOCKS, postlex=LINES),
    "python3": sg.Grammar(grammars.path("python3"), start="file_input", postlex=PythonIndenter()),
    "java": sg.Grammar(grammars.path("java"), lexer="basic", ambiguity="all"),
    "given": sg.Grammar("start: A NUMBER\nA: /a+/\n", definitions={"NUMBER": {"type": "integer"}}),
}


#: Blocks with brackets and comments, which a line end has to follow, and names that no digit may.
BRACKETS = (
    BLOCKS.replace("NAME _NEWLINE |", "value _NEWLINE |")
    + r"""
value: NAME | LPAR value* RPAR
LPAR: "("
RPAR: ")"
COMMENT: /#[a-z]*/
%ignore COMMENT
"""
)


def tables_of(definition: sg.Grammar) -> GrammarTables:
    return compile_grammar(definition, Meter(Budget(seconds=200)))


@pytest.mark.parametrize("name", LOOSE)
def test_loose_grammars(name: str) -> None:
    endings = tables_of(LOOSE[name]).endings
    assert endings.is_unconstrained
    assert not len(endings)


@pytest.mark.parametrize("name", TIGHT)
def test_endings(name: str) -> None:
    """The endings that lexemes can come to, where nothing else is watched."""
    tables = tables_of(TIGHT[name])
    found = tables.endings
    names = list(zip(found.terminal, found.boundary, strict=True))
    assert not found.is_unconstrained
    assert len(names) == len(set(names)) == len(found)
    rows = tables.table.tolist()
    into: list[set[int]] = [set() for _ in rows]
    for state, row in enumerate(rows):
        for target in {*row} - {-1}:
            into[target].add(state)
    expected: list[set[tuple[int, tuple[int, ...]]]] = [set() for _ in rows]
    for state, terminal, watch in tables.ends.tolist():
        ending = terminal, (watch,) if watch >= 0 else ()
        todo = [state]
        for before in todo:  # grows as it goes
            if ending not in expected[before]:
                expected[before].add(ending)
                todo += into[before]
    assert [{names[ending] for ending in bits(found.future[state])} for state in range(len(rows))] == expected


def test_what_is_watched_is_the_same_where_it_does_the_same() -> None:
    """Behind names, one state is watched for all of them."""
    tables = tables_of(sg.Grammar('start: NAME+\nNAME: /[a-c]{1,9}/ | /[d-f]{1,9}/\n%ignore " "'))
    assert len({*tables.ends[:, 2].tolist()}) < len(tables.ends)
    index = sg.compile(sg.Grammar('start: NAME+\nNAME: /[a-c]{2}|[d-f]{2}/\n%ignore " "'), BYTES, eager=False)
    assert index.match(b"abde fd").accepted
    assert not index.match(b"abd").accepted


# -- walls -----------------------------------------------------------------------------------------------

#: A grammar, whether the lexer is contextual, texts that can be completed, texts that can't.
WALLS: dict[str, tuple[str, str, list[bytes], list[bytes]]] = {
    "two words in a row, six words later": (
        'start: A B A B A A | "z" A\nA: /a+/\nB: /b+/',
        "contextual",
        [b"z", b"za"],
        [b"a", b"ab"],
    ),
    "brackets that can't be followed, at any depth": (
        'start: "<" s ">" | "[" s "]"\ns: "(" s ")" | "w" | "q" ")>"',
        "basic",
        [b"<", b"<w>", b"<q)>>", b"[(((", b"[((w))]"],
        [b"<(", b"<((((((", b"[((w)>"],
    ),
    "a terminal that others hide": (
        'start: "x" B | "y" A\nA.2: /b/\nB: /b/\n%ignore " "',
        "basic",
        [b"y", b"y "],
        [b"x", b" x"],
    ),
    "what is watched outlives the next lexeme": (
        'start: T B | "x" U\nT: "a"\nU: /a +b/\nB: "b"\n%ignore / +/',
        "basic",
        [b"x", b"xa ", b"ab"],
        [b"a ", b"a  "],
    ),
    "what is watched outlives four lexemes": (
        'start: "a" "b" "c" "d" "e" | "x" LONG\nLONG: "abcde"',
        "basic",
        [b"x", b"xabc"],
        [b"a", b"ab"],
    ),
    "a conflict that is shifted for ever": (
        'start: "x" s | "y"\ns: "b" s "a" | r\nr: "a" "c" "a" | r r | "a" "b" "a"\n%ignore " "',
        "basic",
        [b"y", b"xaca", b"xaba ac"],
        [b"xb", b"xba"],
    ),
    "a text may not end": ('start: A* "b" A\nA: /a(?=b)/', "contextual", [], []),
}


@pytest.mark.parametrize("name", WALLS)
def test_walls(name: str) -> None:
    text, lexer, right, wrong = WALLS[name]
    if not right:
        with pytest.raises(sg.errors.EmptyLanguageError):
            sg.compile(sg.Grammar(text, lexer=lexer), BYTES, eager=False)
        return
    machine = sg.compile(sg.Grammar(text, lexer=lexer), BYTES).machine
    assert isinstance(machine, GrammarMachine)
    letters = "".join(sorted({*(b"".join(right + wrong)).decode()} | {*"abcde)>]w"}))
    for sample in right:
        assert machine.match(sample).consumed == len(sample), sample
        assert can_complete(machine, sample, letters) is not False, sample
    for sample in wrong:
        assert machine.match(sample).consumed < len(sample), sample
        assert not can_complete(machine, sample, letters), sample


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.parametrize("seed", range(draws(6)))
def test_random_grammars_can_be_completed(seed: int, lexer: str) -> None:
    random = Random(seed)
    refused = [agrees(random_grammar(random), lexer=lexer) for _ in range(6)]
    assert max(refused) > 0


@pytest.mark.parametrize("seed", range(3))
def test_random_grammars_with_conflicts_can_be_completed(seed: int) -> None:
    """Terminals that the lexer always finds, and rules that a parser has to choose between."""
    random = Random(seed)
    for _ in range(8):
        alternatives = (" | ".join(expansion(random) for _ in range(random.randint(2, 3))) for _ in range(2))
        rules = [f"r{i}: {each}" for i, each in enumerate(alternatives)]
        agrees("\n".join(["start: r0", *rules, '%ignore " "']), lexer="basic", longest=5)


def expansion(random: Random) -> str:
    return " ".join(random.choice(['"a"', '"b"', '"c"', "r0", "r1"]) for _ in range(random.randint(1, 3)))


@pytest.mark.parametrize(
    ("text", "is_proved"),
    [
        ('start: s\ns: "if" s | "if" s "else" s | "x"', True),
        ('start: e\ne: e "+" e | e "*" e | "-" e | "x"', True),
        ('start: "a" start "a" | "a"', False),
        (WALLS["a conflict that is shifted for ever"][0], False),
    ],
)
def test_what_is_proved_of_conflicts(text: str, is_proved: bool) -> None:
    """Endings are unconstrained only where the parser can complete what it has taken."""
    assert tables_of(sg.Grammar(text + '\n%ignore "_"')).endings.is_unconstrained == is_proved


@pytest.mark.parametrize("seed", range(draws(5)))
def test_random_grammars_read_in_every_way_can_be_completed(seed: int) -> None:
    random = Random(seed)
    refused = [agrees(random_grammar(random), lexer="basic", ambiguity="all") for _ in range(6)]
    assert max(refused) > 0


def tokens_of(letters: str, random: Random) -> sg.Vocabulary:
    tokens = ["".join(random.choices(letters, k=random.randint(2, 4))).encode() for _ in range(40)]
    return with_end([*dict.fromkeys(tokens), *EACH_BYTE])


@pytest.mark.parametrize("seed", range(draws(6)))
def test_masks_and_moves_agree(seed: int) -> None:
    """Tokens of several lexemes: the mask, `advance` and the bytes say the same, and no guide is stuck."""
    random = Random(seed)
    vocabulary = tokens_of("abc ", random)
    depth_read = 0
    while depth_read < 4:
        text = random_grammar(random)
        try:
            definition = sg.Grammar(text, lexer=random.choice(["basic", "contextual"]))
            index = sg.compile(definition, vocabulary, eager=False)
        except sg.errors.DefinitionError:
            continue
        if index.machine.tables.endings.is_unconstrained:  # type: ignore[attr-defined]
            continue
        depth_read += 1
        check_walk(index, random)


@pytest.mark.parametrize("seed", range(4))
def test_masks_and_moves_agree_where_all_ways_are_followed(seed: int) -> None:
    """Masks ask for all endings at once, moves for one; what masks remember holds for the stacks of other walks."""
    random, left = Random(seed), 5
    while left:
        try:
            definition = sg.Grammar(random_grammar(random), lexer="basic", ambiguity="all")
            index = sg.compile(definition, tokens_of("abc ", random), eager=False)
        except sg.errors.DefinitionError:
            continue
        machine = index.machine
        assert isinstance(machine, GrammarMachine)
        if machine.tables.endings.is_unconstrained or machine.tables.is_deterministic:
            continue
        left -= 1
        for _ in range(3):
            check_walk(index, random, 5)


def test_masks_of_all_ways_remember_how_far_down_they_looked() -> None:
    """Of two `a+` in a row the first takes all. Whether one comes behind it the lowest state of the stack tells."""
    text = 'start: "x" f A | "y" f B\nf: "(" f | h | k\nh: A | "c"\nk: A\nA: /a+/\nB: "b"'
    index = sg.compile(sg.Grammar(text, lexer="basic", ambiguity="all"), sg.Vocabulary.bytewise(), eager=False)
    for first, expected in zip("xyxy", ["(c", "(ac"] * 2, strict=True):
        for depth in range(5):
            guide = sg.Guide(index)
            assert all(map(guide.advance, f"{first}{'(' * depth}".encode()))
            assert bytes(ids_of(guide.bitmask()).tolist()).decode() == expected


#: What a text begins with is told apart at its end. Until then nothing but the lowest states of the stacks differ.
FAR_BELOW = 'start: h e "x" | k e "y" | m e "x" "z"\nh: A\nk: A\nm: A | "b"\ne: "(" e ")" | "[" e "]" | "c"\nA: "a"'


@pytest.mark.parametrize("text", [FAR_BELOW, FAR_BELOW.replace('"c"', "C | C C") + "\nC: /c+/"])
def test_masks_of_threads_that_differ_far_below(text: str) -> None:
    """Threads with the same state on top are one for their mask; moves follow each by itself."""
    random = Random(0)
    tokens = {"".join(random.choices(")])]xyz", k=random.randint(2, 5))).encode() for _ in range(60)}
    vocabulary = with_end([*sorted(tokens), b"c))x", b"c])yz", b"a((", b"a([c])x", *EACH_BYTE])
    index = sg.compile(sg.Grammar(text, lexer="basic", ambiguity="all"), vocabulary, eager=False)
    machine = index.machine
    assert isinstance(machine, GrammarMachine)
    threads = machine._reader.read((machine._reader.start,), b"a([(")
    assert len([*machine.parses.together(threads)]) == 1 < len(threads)
    for seed in range(4):
        check_walk(index, Random(seed), 8)


def test_texts_of_what_much_can_follow_prove_more() -> None:
    """Little can come behind a `>` that stands before another one: for that, nothing but blanks is doubtful."""
    text = r"""
        start: (type NAME ";")*
        type: NAME ("<" type close)?
        close: TIGHT | ">"
        TIGHT.1: />(?=>)/
        NAME: /[ab]/
        %ignore " "
    """
    endings = tables_of(sg.Grammar(text)).endings
    assert len({*endings.terminal}) == len(endings) == sum(endings.unconstrained) + 2
    assert agrees(text, lexer="basic", letters="a<>;", longest=4) > 0
    java = tables_of(TIGHT["java"]).endings
    assert len(java) - 25 < sum(java.unconstrained) < len(java)


@pytest.mark.parametrize("seed", range(draws(6)))
def test_what_follows_is_known_of_a_complete_index(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its masks are those of a lazy one, and are made without Python."""
    random = Random(seed)
    done = seed % 3  # of these grammars one that is indented
    while done < 3:
        text, letters = (BRACKETS, "ab#:() \n") if not done else (random_grammar(random), "abc ")
        postlex = replace(LINES, opening=("LPAR",), closing=("RPAR",)) if not done else None
        definition = sg.Grammar(text, lexer=random.choice(["basic", "contextual"]), postlex=postlex)
        try:
            lazy = sg.compile(definition, tokens_of(letters, random), eager=False)
        except sg.errors.DefinitionError:
            continue
        machine = lazy.machine
        assert isinstance(machine, GrammarMachine)
        if machine.tables.endings.is_unconstrained:
            continue
        done += 1
        eager = sg.compile(definition, lazy.vocabulary)
        stored = sg.Index.from_buffer(eager.to_bytes())
        with monkeypatch.context() as forbidden:
            forbidden.setattr(LexerThreads, "is_surely_followed", None)
            known = [walk_of(index, seed) for index in (eager, stored)]
        assert known == [walk_of(lazy, seed)] * 2


def walk_of(index: sg.Index, seed: int) -> list[bytes]:
    """The masks along some random texts."""
    random, found = Random(seed), []
    for _ in range(6):
        guide = sg.Guide(index)
        for _ in range(24):
            mask = guide.bitmask()
            found.append(mask.tobytes())
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
            if not guide.advance(random.choice(allowed)) or guide.is_finished():
                break
    return found


def test_definitions_and_tokens_that_can_not_follow() -> None:
    inner = {"SEVENS": sg.Regex("7+"), "OTHERS": sg.Regex("8+")}
    vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, None, None], eos_ids=[256], special_tokens={"<|end|>": 257})
    text = 'start: "x" D SEVENS | "y" D OTHERS | "z" L <|end|> D D | "z" <|end|>\nD: /[0-7]+/\nL: /l(?=m)/'
    guide = sg.Guide(sg.compile(sg.Grammar(text, definitions=inner), vocabulary, eager=False))
    assert not guide.allows(ord("x"))  # the digits would take the sevens
    assert guide.advance(ord("z"))
    assert not guide.allows(ord("l"))  # no m follows
    assert guide.advance(257)
    guide.reset()
    assert guide.advance(ord("y"))
    assert guide.advance(ord("5"))
    assert guide.advance(ord("8"))
    assert guide.is_accepting()


def test_a_match_that_is_certain_is_not_put_off() -> None:
    """``b`` is taken as C before A is tried; so what A looks ahead for says nothing about it."""
    text = "start: A B | C\nA: /b(?!a)/\nB: /a(?=b)/\nC.2: /ba?/\n"
    index = sg.compile(sg.Grammar(text), BYTES, eager=False)
    for sample in (b"b", b"ba", b"bab", b"bb"):
        assert index.match(sample).accepted == parses(judge(text, "contextual"), sample.decode())


def completions(tables: GrammarTables, pause: Callable[[int], object]) -> Completions:
    endings = tables.endings
    borders = Boundaries(tables, endings.future.__getitem__, endings.number)
    return Completions(tables, ParserDriver(tables).parser, borders, Embedded(), pause)


@pytest.mark.parametrize("name", WALLS)
def test_outcomes_are_found_slice_by_slice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step comes to more than was looked at when compiling, and between slices others have their turn."""
    tables = tables_of(sg.Grammar(WALLS[name][0], lexer="basic"))
    found: list[list[tuple[bool, dict[tuple[int, int], int]]]] = []
    pauses: list[int] = []
    for steps in (1, 1 << 20):
        monkeypatch.setattr(outcomes, "_STEPS", steps)
        whole = completions(tables, int)
        whole.find_all()
        some = completions(tables, pauses.append)
        found.append([])
        for state in range(len(tables.context)):
            for ending in range(len(tables.endings) + 1):
                outcome = some._summaries.find(state, ending)
                found[-1].append((outcome.succeeds, {} if outcome.succeeds else dict(outcome.found)))
        if steps == 1:
            assert len(pauses) + len(found[0]) >= len(some._summaries._known)  # no slice begins with more than one
            assert pauses == sorted(pauses)  # they keep what was found before
            pauses.clear()
    assert found[0] == found[1]


#: Behind each letter longer matches may be open, by how many letters were read in each of four counts.
PILED_UP = "/[b]([a-z]{2})*1|[c]([a-z]{3})*1|[d]([a-z]{5})*1|[f]([a-z]{7})*1|[a-z]/"


def test_a_terminal_whose_lexemes_pile_up_is_named() -> None:
    """And the remedies help."""

    def compile(terminal: str) -> sg.Index:
        grammar = sg.Grammar(f'start: A+ "1"\nA: {terminal}')
        return sg.compile(grammar, BYTES, eager=False, budget=sg.Budget.request)

    with pytest.raises(sg.errors.BudgetExceededError, match="longer ones stay open") as raised:
        compile(PILED_UP)
    assert raised.value.where == "terminal A"
    assert "Begin its long matches with what no short match has, or leave one" in raised.value.remedy
    assert compile(re.sub(r"\[([bcdf])\]", lambda found: found[1].upper(), PILED_UP)).match(b"aB11").accepted
    assert compile(PILED_UP.replace("|[a-z]/", "/")).match(b"b11").accepted


@pytest.mark.parametrize("budget", [sg.Budget(memory=400), sg.Budget(seconds=1)], ids=["memory", "time"])
def test_what_completes_texts_is_looked_at_when_compiling(budget: sg.Budget) -> None:
    tables = tables_of(sg.Grammar(WALLS["brackets that can't be followed, at any depth"][0], lexer="basic"))
    seconds = itertools.count()
    with pytest.raises(sg.errors.BudgetExceededError, match="looking for what completes texts"):
        find_completions(tables, Embedded(), Meter(budget, clock=lambda: next(seconds) * 0.5))


@pytest.mark.parametrize("budget", [sg.Budget(), sg.Budget.request], ids=["plain", "request"])
def test_only_budgets_of_strangers_bound_steps(budget: sg.Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(sg.Grammar(WALLS["brackets that can't be followed, at any depth"][0], lexer="basic"))
    assert find_completions(tables, Embedded(), Meter(budget)) is not None
    monkeypatch.setattr("structgen.compiler.grammar.completion.pop_summaries._MOST_BYTES", -1)
    is_found = find_completions(tables, Embedded(), Meter(budget)) is not None
    assert is_found == budget.bounded_steps


@pytest.mark.parametrize("name", WALLS)
def test_outcomes_are_forgotten_where_they_are_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(sg.Grammar(WALLS[name][0], lexer="basic"))
    keys = [(state, ending) for state in range(len(tables.context)) for ending in range(len(tables.endings) + 1)]
    all_kept, forgetful = completions(tables, int)._summaries, completions(tables, int)._summaries
    kept = [all_kept.find(*key) for key in keys]
    monkeypatch.setattr(outcomes, "_MOST_BYTES", 0)
    for key, here in zip(keys, kept, strict=True):
        there = forgetful.find(*key)
        assert here.succeeds == there.succeeds
        assert here.succeeds or here.found == there.found
    assert len(forgetful._known) < len(all_kept._known)


def test_whether_a_grammar_has_texts_is_metered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at on the way; afterwards nothing of it is left."""
    monkeypatch.setattr(outcomes, "_STEPS", 1)
    tables = tables_of(sg.Grammar(WALLS["a text may not end"][0]))
    machine = GrammarMachine(tables, BYTES)
    seconds = itertools.count()
    with pytest.raises(sg.errors.BudgetExceededError, match="looking for a text of the grammar"):
        machine.is_empty(Meter(Budget(seconds=1), clock=lambda: next(seconds) * 10))
    assert machine.is_empty(Meter(Budget()))


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_an_index_keeps_its_endings(name: str) -> None:
    text, _ = GRAMMARS[name]
    tables = tables_of(sg.Grammar(text))
    again = GrammarTables.from_sections(tables.to_sections(), "here")
    for attribute in ("ends", "watched", "words"):
        assert (getattr(again.endings, attribute) == getattr(tables.endings, attribute)).all()


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        (r"/[b]([a-z]{2})*1|[c]([a-z]{3})*1|[d]([a-z]{5})*1|[f]([a-z]{7})*1|[a-z]/", "abcdf1"),
        (r"/x([xy]{4})*\.|y([xy]{7})*\.|z([x-z]{9})*\.|[xz]([x-z]{11})*\.|[x-z]/", "xyz."),
    ],
)
@pytest.mark.parametrize("rules", ["start: A+", 'start: (A ";")+', 'start: (A | B)+ ";"\nB: "!"\n%ignore " "'])
def test_lexemes_that_pile_up_compile(rules: str, text: str, letters: str) -> None:
    """Their sets are too many to be looked at one by one. Lark is the judge, of texts and of what is allowed."""
    grammar = f"{rules}\nA: {text}"
    parser = judge(grammar, "contextual")
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False, budget=sg.Budget(seconds=200))
    draw = Random(3)
    for _ in range(40):
        drawn = "".join(draw.choice(letters + "!; ") for _ in range(draw.randrange(1, 4)))
        drawn = "".join(draw.choice(letters) for _ in range(draw.randrange(30))) + drawn
        assert index.match(drawn.encode()).accepted == parses(parser, drawn), drawn
    guide = sg.Guide(index)
    for _ in range(120):
        allowed = [token for token in range(256) if guide.allows(token)]
        assert allowed, guide.tokens
        assert guide.advance(draw.choice(allowed))
