"""Grammars under ``max_tokens``: what distances promise, and texts that are complete in time."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from judges import grammars as texts
from judges.endings_judge import random_grammar
from judges.guides import EACH_BYTE, drawn, with_bytes, with_end
from judges.lark_judge import judge, parses
from judges.token_distances import allowed, check_bounds, check_budgets, searched
from tiers import draws

import structgen as sg
from structgen import grammars, kernels
from structgen.errors import DefinitionError, TokenBudgetError, UnsupportedError
from structgen.runtime import ids_of
from structgen.runtime.automaton.distances import NEVER
from structgen.runtime.grammar.distances import potential as grammar_gain
from structgen.runtime.grammar.distances import token_distances as grammar_distances
from structgen.runtime.grammar.tables import GrammarTables
from structgen.runtime.index.index import Index

PIECES = [
    b"((", b"))", b"((((((", b"  ", b"if ", b"()", b"};", b");", b"true", b"then", b"[[", b"]]", b'":', b"/*", b"*/",
    b"--", b"select ", b" from ", b"a,b", b"1+", b"+1", b")*(", b"{{", b"}}",
]  # fmt: skip

BYTES = with_bytes(*PIECES)

SHIPPED = ["json", "arithmetic", "sql", "c", "jsonc", "graphql", "go"]


def small(grammar: sg.Grammar, rng: random.Random, letters: bytes = b"abc ", tokens: int = 20) -> Index:
    words = [bytes([letter]) for letter in letters]
    words += [bytes(rng.choice(letters) for _ in range(rng.randint(2, 5))) for _ in range(tokens)]
    return sg.compile(grammar, with_end(words), eager=False)


def finished(index: Index, most: int, rng: random.Random, longest: int = 1 << 20) -> bytes:
    """A random text under a limit, complete in time, of tokens of no more than so many bytes where there are such."""
    guide, text, taken = sg.Guide(index, max_tokens=most), b"", 0
    lengths = np.diff(index.vocabulary.offsets.astype(np.int64))
    while not guide.is_finished():
        mask = ids_of(guide.bitmask())
        short = mask[lengths[mask] <= longest]
        token = int(rng.choice(short if len(short) else mask))
        assert guide.advance(token)
        text += index.vocabulary.token(token) or b""
        taken += 1
    assert taken <= most
    assert index.match(text).accepted
    return text


@pytest.mark.parametrize("seed", range(draws(60)))
def test_random_grammars_are_finished_in_time(seed: int) -> None:
    rng = random.Random(seed)

    def draw() -> Index:
        index = small(sg.Grammar(random_grammar(rng), lexer=rng.choice(["basic", "contextual"])), rng)
        index.shortest()
        return index

    index = drawn(draw, DefinitionError, UnsupportedError)
    check_bounds(index, rng, texts=6, steps=15)
    check_budgets(index, rng)


def test_bounds_of_random_grammars_are_close() -> None:
    """Held against a search over all configurations, where there are few."""
    found = {0: 0, 1: 0}
    for seed in range(300):
        rng = random.Random(seed)
        try:
            index = small(sg.Grammar(random_grammar(rng), lexer="basic"), rng)
            least = index.shortest()
            moves, exact = searched(index, 300)
        except (DefinitionError, UnsupportedError, AssertionError):
            continue
        for config in moves:
            assert exact[config] <= index.distances.distance(config) < NEVER
        found[min(1, least - exact[index.machine.start])] += 1
    assert found[0] > 20
    assert found[1] <= found[0] // 3


#: Grammars of which the cheapest text, by the rules, is not what the parser takes: a conflict was shifted.
SHIFTED = [
    'start: s\ns: "i" s | "i" s "e" s | "x"',
    'start: s "e" "q"\ns: "i" s | "i" s "e" s | "xxxx"',
    'start: e\ne: e "+" e | e "*" e | "(" e ")" | "a"\n%ignore " "',
    'start: a "c" | b "ccccc"\na: "x" y\nb: "x" y\ny: "b" | "b" "c"',
    'start: p+\np: "[" p* "]" | "[" "]" "b" | "a"',
]


@pytest.mark.parametrize("text", SHIFTED)
@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")
def test_conflicts_that_were_shifted(text: str, lexer: str) -> None:
    rng = random.Random(text)
    letters = "".join(sorted(set("ixeq+*()abc[] "))).encode()
    index = small(sg.Grammar(text, lexer=lexer), rng, letters, 60)
    try:
        index.shortest()
    except UnsupportedError as error:
        assert "no bound" in str(error)  # noqa: PT017
        return
    check_bounds(index, rng, texts=20)
    check_budgets(index, rng)
    parser = judge(text, lexer)
    for _ in range(20):
        assert parses(parser, finished(index, index.shortest() + rng.randint(0, 12), rng).decode())


@pytest.mark.parametrize("name", ["ARITHMETIC", "JSON", "STATEMENTS"])
@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")
def test_grammars_are_finished_in_time(name: str, lexer: str) -> None:
    rng = random.Random(name)
    source = getattr(texts, name)
    index = sg.compile(sg.Grammar(source, lexer=lexer), BYTES, eager=False)
    check_bounds(index, rng)
    check_budgets(index, rng, (0, 1, 3, 20))
    parser = judge(source, lexer)
    for _ in range(20):
        text = finished(index, index.shortest() + rng.randint(0, 25), rng)
        if text == text.decode("utf-8", "ignore").encode():
            assert parses(parser, text.decode())


@pytest.fixture(scope="module")
def shipped() -> dict[str, Index]:
    def compiled(name: str) -> Index:
        grammar = sg.Grammar(grammars.path(name), lexer="basic")
        return sg.compile(grammar, BYTES, eager=False, budget=sg.Budget(seconds=300))

    return {name: compiled(name) for name in SHIPPED}


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_grammars_are_finished_in_time(name: str, shipped: dict[str, Index]) -> None:
    rng, index = random.Random(name), shipped[name]
    check_bounds(index, rng, texts=6)
    for more in (0, 1, 2, 5, 10, 30, 80):
        finished(index, index.shortest() + more, rng)


@pytest.mark.parametrize("name", SHIPPED)
def test_masks_are_the_ordinary_ones_where_enough_is_left(name: str, shipped: dict[str, Index]) -> None:
    rng, index = random.Random(name), shipped[name]
    plain, guide = sg.Guide(index), sg.Guide(index, max_tokens=20_000)
    batch = sg.GuideBatch(BYTES)
    batch.add(index, max_tokens=20_000)
    for _ in range(150):
        assert (plain.bitmask() == guide.bitmask()).all()
        token = rng.choice(sorted(allowed(plain.bitmask())))
        assert plain.advance(token)
        assert guide.advance(token)
        assert batch.advance([token]).all()
        if plain.is_finished():
            break


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "go"])  # of which no such bound is known
def test_what_a_token_adds_is_bounded(name: str, shipped: dict[str, Index]) -> None:
    """The bound far from the end is one: no token adds more to it than is said, and no distance is larger."""
    rng, index = random.Random(name), shipped[name]
    distances: Any = index.distances
    gain = distances._potential
    assert gain is not None
    for _ in range(6):
        config: Any = index.machine.start
        before = 1 << 30
        for _ in range(60):
            bound = max(gain.bound(parse.stack) for parse, _, _ in config.threads)
            assert distances.distance(config) <= bound <= before + gain.most
            tokens = sorted(allowed(index.machine.row(config)) - set(BYTES.eos_ids))
            if not tokens:
                break
            opening = [t for t in tokens if set(BYTES.token(t) or b"-") <= set(b"([{")]
            config = index.machine.advance(config, rng.choice(opening or tokens))
            before = bound


def test_a_batch_and_its_rows(shipped: dict[str, Index]) -> None:
    index = shipped["json"]
    batch = sg.GuideBatch(BYTES)
    guides = [sg.Guide(index, max_tokens=most) for most in (2, 5, 30)]
    for most in (2, 5, 30):
        batch.add(index, max_tokens=most)
    with pytest.raises(TokenBudgetError, match="takes 2 tokens"):
        batch.add(index, max_tokens=1)
    rng = random.Random(0)
    for _ in range(30):
        rows = np.zeros((3, BYTES.words), np.int32)
        batch.fill_bitmask(rows)
        tokens = []
        for k, guide in enumerate(guides):
            mask = guide.bitmask()
            assert (rows[k] == mask).all()
            tokens.append(rng.choice(sorted(allowed(mask))))
            assert guide.advance(tokens[-1])
        assert batch.advance(tokens).all()
    assert all(guide.is_finished() for guide in guides)


def test_rollback_gives_back(shipped: dict[str, Index]) -> None:
    guide = sg.Guide(shipped["json"], max_tokens=6)
    masks = []
    for byte in b"[[[":
        masks.append(allowed(guide.bitmask()))
        assert guide.advance(byte)
    assert allowed(guide.bitmask()) == {ord("]"), 256 + PIECES.index(b"]]")}  # twice, and the EOS token
    guide.rollback(3)
    for byte, mask in zip(b"[[[", masks, strict=True):
        assert allowed(guide.bitmask()) == mask
        assert guide.advance(byte)


def test_deep_stacks_cost_no_recursion() -> None:
    index = sg.compile(sg.Grammar('start: "[" start? "]"'), BYTES, eager=False)
    guide = sg.Guide(index, max_tokens=9_002)
    for _ in range(6_000):
        assert guide.advance(ord("["))
    assert index.distances.distance(guide.path()[-1][0]) == 3_001  # type: ignore[index]
    assert allowed(guide.bitmask()) == {ord("]"), 256 + PIECES.index(b"]]")}


def test_memory_that_is_let_go_of_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_distances, "MEMO_ENTRIES", 40)
    rng = random.Random(0)
    index = sg.compile(sg.Grammar(texts.JSON), BYTES, eager=False)
    check_bounds(index, rng)
    check_budgets(index, rng)


def test_without_a_bound_on_what_tokens_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_gain, "_MOST_SPOTS", 0)
    rng = random.Random(0)
    index = sg.compile(sg.Grammar(texts.ARITHMETIC), BYTES, eager=False)
    assert index.distances._potential is None  # type: ignore[attr-defined]
    check_bounds(index, rng)
    check_budgets(index, rng)


def test_threads_share_distances(shipped: dict[str, Index]) -> None:
    index = shipped["arithmetic"]
    with ThreadPoolExecutor(4) as pool:
        for text in pool.map(lambda seed: finished(index, 25, random.Random(seed)), range(12)):
            assert index.match(text).accepted


REFUSED = {
    "definitions": ('start: "<" %json {"type": "integer"} ">"', {}),
    "special tokens": ("start: /a+/ <[280]>", {}),
    "cannot follow": ("start: A A | A B\nA: /a+/\nB: /b/", {}),
    "conflicts": ('start: e\ne: e "+" e | "a"', {"lexer": "basic", "ambiguity": "all"}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_bound_is_refused(what: str) -> None:
    source, options = REFUSED[what]
    index = sg.compile(sg.Grammar(source, **options), BYTES, eager=False)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=what) as refused:
        sg.Guide(index, max_tokens=100)
    with pytest.raises(UnsupportedError) as again:
        index.shortest()
    assert again.value is refused.value  # it was not looked for once more


def test_bytes_that_are_no_tokens_are_refused() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", b"d", b"bc", None], eos_ids=[4])
    index = sg.compile(sg.Grammar("start: /a|bc|bd+/"), vocabulary, eager=False)
    with pytest.raises(UnsupportedError, match="each single byte"):
        index.shortest()


@pytest.mark.parametrize("name", ["json", "c"])
def test_shipped_grammars_with_a_real_vocabulary(name: str, llama3: sg.Vocabulary) -> None:
    rng = random.Random(name)
    grammar = sg.Grammar(grammars.path(name), lexer="basic")
    index = sg.compile(grammar, llama3, eager=False, budget=sg.Budget(seconds=300))
    for more in (0, 3, 25):
        finished(index, index.shortest() + more, rng)
        finished(index, index.shortest() + more, rng, 3)


def test_what_lexemes_of_a_token_add_up_to() -> None:
    """The kernel, held against each token followed by itself, from each lexer state."""
    for source in (texts.ARITHMETIC, texts.STATEMENTS):
        machine: Any = sg.compile(sg.Grammar(source, lexer="basic"), BYTES, eager=False).machine
        tables: GrammarTables = machine.tables
        rng = np.random.default_rng(0)
        added = rng.integers(-1, 9, (tables.members + 1, tables.members))
        begins = np.searchsorted(tables.ends[:, 0], np.arange(len(tables.table) + 1))
        most = 0
        for piece in PIECES + EACH_BYTE:
            sums = {(state, tables.members): 0 for state in range(len(tables.table))}
            for byte in piece:
                c, after = int(tables.class_of[byte]), dict[tuple[int, int], int]()
                for (state, before), total in sums.items():
                    moves = [(int(tables.table[state, c]), before, total)]
                    for terminal, _ in tables.ends_of[state] if tables.goes_on[state, c] else ():
                        gain = int(added[before, terminal])
                        last = before if gain < 0 else terminal
                        begun = [int(tables.table[start, c]) for start in tables.starts.tolist()]
                        moves += [(target, last, total + max(0, gain)) for target in begun]
                    for target, last, value in moves:
                        if target >= 0:
                            after[target, last] = max(value, after.get((target, last), 0))
                sums = after
            most = max(most, *sums.values(), 0)
        trie = BYTES.trie
        assert most > 9
        arguments = (
            trie.byte, trie.depth, trie.skip, trie.first_token, tables.class_of, tables.table, tables.goes_on,
            np.ascontiguousarray(tables.ends[:, 1]), begins, added, tables.starts,
        )  # fmt: skip
        scratch = grammar_gain.completion_scratch(trie.max_depth, len(tables.table), len(added))
        assert kernels.most_completed(*arguments, 1 << 26, *scratch) == most
        assert kernels.most_completed(*arguments, 10, *scratch) == -1
