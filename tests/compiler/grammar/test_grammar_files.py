"""Files of grammars: stored places are used as they are, damage is refused or harmless, tables are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hostile.index_fuzzer import use
from judges.grammars import BLOCKS, GRAMMARS, indentation
from judges.guides import EACH_BYTE, allowed

import structgen as sg
from structgen import grammar_store
from structgen.compiler.grammar import compiler
from structgen.compiler.grammar.load import loading
from structgen.definitions.grammar_text import Imports
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser.provenance import SECTION as NAMES
from structgen.runtime.grammar.partial_masks import LexemeMasks
from structgen.runtime.rows import residuals
from structgen.runtime.rows.row_pool import RowPool
from structgen.storage.container import pack, unpack

#: What is watched; something, or nothing, that is ignored everywhere; columns; conflicts that are kept.
DEFINITIONS = {
    "undecided": sg.Grammar(GRAMMARS["undecided"][0], lexer="basic"),
    "contextual": sg.Grammar(GRAMMARS["statements"][0]),
    "tight": sg.Grammar('start: "b" | "b" w w | "c" w d\nw: /a+/\nd: w | "b"'),
    "blocks": sg.Grammar(BLOCKS, lexer="basic", postlex=indentation(12)),
    "ambiguous": sg.Grammar('start: a+\na: "a" | "a" "a" | "(" a ")"\n%ignore " "', ambiguity="all"),
}

LETTERS = 'abcifthenels01+.e :=(){};/*"\n'

each_definition = pytest.mark.parametrize("name", DEFINITIONS)


def small_vocabulary(seed: int = 0) -> sg.Vocabulary:
    random = Random(seed)
    tokens: list[bytes | None] = [*EACH_BYTE]
    tokens += ["".join(random.choices(LETTERS, k=random.randint(2, 5))).encode() for _ in range(150)]
    return sg.Vocabulary.from_bytes([*tokens, b"if a:\n b\n", b"aa", b" a", None], eos_ids=[len(tokens) + 3])


VOCABULARY = small_vocabulary()


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    grammar_store.forget()
    yield
    grammar_store.forget()


def walk(first: sg.Index, second: sg.Index, seed: int, steps: int = 12) -> None:
    """Both indexes allow the same along a random text."""
    random, one, other = Random(seed), sg.Guide(first), sg.Guide(second)
    for _ in range(steps):
        ids = allowed(one)
        assert ids == allowed(other)
        ids = [token for token in ids if token not in first.vocabulary.eos_ids]
        if not ids:
            break
        token = random.choice(ids)
        assert one.advance(token)
        assert other.advance(token)


@each_definition
def test_places_are_used_as_they_are_stored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(DEFINITIONS[name], VOCABULARY)
    for seed in range(8):
        walk(index, index, seed)
    stored = sg.Index.from_buffer(index.to_bytes(with_vocabulary=False), VOCABULARY)
    assert stored.to_bytes() == index.to_bytes()
    monkeypatch.setattr(LexemeMasks, "_walk", None)  # all of them are there
    for seed in range(8):
        walk(index, stored, seed)


@each_definition
def test_places_are_added_to_those_that_were_stored(name: str) -> None:
    """A lazy index that is stored now and then knows as much as one that was in memory all the time, and goes on."""
    eager = sg.compile(DEFINITIONS[name], VOCABULARY)
    index = sg.compile(DEFINITIONS[name], VOCABULARY, eager=False)
    for seed in range(6):
        walk(eager, index, seed, steps=2 * seed)
        known = index.machine.known_rows
        index = sg.Index.from_buffer(index.to_bytes(with_vocabulary=False), VOCABULARY)
        assert index.machine.known_rows == known
        walk(eager, index, 100 + seed, steps=3)
        assert index.machine.known_rows >= known
    index.machine.fill(threads=1, meter=None)
    again = sg.Index.from_buffer(index.to_bytes(with_vocabulary=False), VOCABULARY)
    assert again.machine.known_rows == index.machine.known_rows == eager.machine.known_rows
    assert again.to_bytes() == index.to_bytes()


def test_no_residual_list_is_decoded_to_add_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(DEFINITIONS["contextual"], VOCABULARY)
    stored = sg.Index.from_buffer(index.to_bytes(with_vocabulary=False), VOCABULARY)
    assert isinstance(index.machine, GrammarMachine)
    assert isinstance(stored.machine, GrammarMachine)
    known, lists = index.machine.lexeme_masks.residuals, stored.machine.lexeme_masks.residuals
    monkeypatch.setattr(residuals, "decode_gaps", None)
    assert [lists.add(known[number]) for number in range(len(known))] == [0, 1, *range(2, len(known))]
    assert lists.add(np.array([3, 5, 6, 8, 9], np.int32)) == len(known) > 9


@pytest.mark.parametrize("stored", [False, True])
def test_the_pools_lists_one_after_another(stored: bool) -> None:
    pool, random = RowPool(300_000), Random(0)
    rows = [sorted(random.sample(range(300_000), k)) for k in (3, 1, 40, 2, 9)] + [[299_999], [0], [65_535, 131_070]]
    numbers = [pool.add_ids(np.array(ids, np.uint32)) for ids in rows]
    dense = pool.add_dense(np.full(pool.words, 0x0F0F0F0F, np.uint32))
    if stored:
        pool = RowPool.from_sections(pool.to_sections(), {"spelled": 300_000}, "pool")
    starts, ids, is_list = pool.lists()
    assert ids.dtype == starts.dtype == np.int32
    assert not is_list[dense]
    for number, expected in zip(numbers, rows, strict=True):
        assert is_list[number]
        assert ids[starts[number] : starts[number + 1]].tolist() == expected


# -- damage ------------------------------------------------------------------------------------------------------


@each_definition
def test_every_section_is_needed(name: str) -> None:
    index = sg.compile(DEFINITIONS[name], VOCABULARY, eager=name != "contextual")
    meta, sections = unpack(index.to_bytes(with_vocabulary=False))
    for section in sections.keys() - {NAMES}:  # which is for people; test_explained_grammars.py has files without it
        without = {name: array for name, array in sections.items() if name != section}
        with pytest.raises(sg.errors.FormatError, match=section):
            sg.Index.from_buffer(pack(meta, without), VOCABULARY)


def test_places_that_lead_round_in_circles_are_refused() -> None:
    index = sg.compile(DEFINITIONS["contextual"], VOCABULARY)
    assert isinstance(index.machine, GrammarMachine)
    meta, sections = unpack(index.to_bytes(with_vocabulary=False))
    starts = set(index.machine.tables.starts.tolist())
    place = next(
        number
        for number, (_, state) in enumerate(sections["pl_place"].tolist())
        if state in starts and sections["pl_ends"][number] < sections["pl_ends"][number + 1]
    )
    ends = sections["pl_end"].copy()
    ends[sections["pl_ends"][place], 1] = sections["pl_place"][place, 0]
    with pytest.raises(sg.errors.FormatError, match="in circles"):
        sg.Index.from_buffer(pack(meta, {**sections, "pl_end": ends}), VOCABULARY)


def test_ways_that_are_there_twice_are_followed() -> None:
    """The kernel asks for the place of one, and finds that of the other; it must not ask for ever."""
    index = sg.compile(DEFINITIONS["contextual"], VOCABULARY, eager=False)
    walk(index, index, 0)
    meta, sections = unpack(index.to_bytes(with_vocabulary=False))
    for value in range(len(sections["lex_beats"])):
        same = np.full_like(sections["pl_watched"], value)
        found = sg.Index.from_buffer(pack(meta, {**sections, "pl_watched": same}), VOCABULARY)
        for seed in range(2):
            use(found, Random(seed), 5)


# -- tables ------------------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The grammars that Lark loads meanwhile."""
    found: list[str] = []
    load = loading.load

    def counting(text: str, *args: Any, **kwargs: Any) -> Any:
        found.append(text)
        return load(text, *args, **kwargs)

    monkeypatch.setattr(compiler, "load", counting)
    return found


def kinds(cache: sg.Cache) -> list[str]:
    return sorted(entry.kind for entry in cache.entries())


def test_a_grammar_is_loaded_once(tmp_path: Path, loaded: list[str]) -> None:
    definition = DEFINITIONS["tight"]
    with sg.Cache(tmp_path) as cache:
        first = sg.compile(definition, VOCABULARY, cache=cache)
        assert loaded == [definition.text]
        second = sg.compile(definition, small_vocabulary(1), cache=cache)
        sg.compile(definition, VOCABULARY)
        assert kinds(cache) == ["grammar", "grammar", "tables"]
        grammar_store.forget()  # as in another process
        for entry in cache.entries():
            if entry.kind == "grammar":
                cache.discard(entry.key)
        again = sg.compile(definition, VOCABULARY, cache=cache)
        assert (first.origin, second.origin, again.origin) == ("compiled",) * 3
        assert loaded == [definition.text]
    first.compile_seconds = again.compile_seconds = 0
    assert again.to_bytes() == first.to_bytes()
    grammar_store.forget()
    sg.compile(definition, VOCABULARY)
    assert len(loaded) == 2
    sg.compile(sg.Grammar(definition.text, lexer="basic"), VOCABULARY)
    assert len(loaded) == 3


@each_definition
def test_tables_that_were_kept_are_the_same(name: str, tmp_path: Path) -> None:
    definition = DEFINITIONS[name]
    with sg.Cache(tmp_path) as cache:
        first = sg.compile(definition, VOCABULARY, eager=False, cache=cache)
        del first
        grammar_store.forget()
        again = sg.compile(definition, small_vocabulary(1), cache=cache)
    grammar_store.forget()
    afresh = sg.compile(definition, small_vocabulary(1))
    afresh.compile_seconds = again.compile_seconds = 0
    assert again.to_bytes() == afresh.to_bytes()


def test_files_that_are_imported_count(tmp_path: Path, loaded: list[str]) -> None:
    (tmp_path / "words.lark").write_text('w: "a"')
    text, paths = "%import .words.w\nstart: w", (str(tmp_path),)
    definition = sg.Grammar(text, import_paths=paths)
    assert sg.compile(definition, VOCABULARY).match(b"a").accepted
    (tmp_path / "words.lark").write_text('w: "b"')
    assert sg.compile(sg.Grammar(text, import_paths=paths), VOCABULARY).match(b"b").accepted
    assert len(loaded) == 2
    assert sg.compile(definition, small_vocabulary(1)).match(b"a").accepted
    assert len(loaded) == 2


def test_a_file_that_is_edited_while_its_grammar_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is read once, so that what is kept under a key is what the key was made of."""
    inner, outer, read = tmp_path / "inner.lark", "%import .inner.w\nstart: w", 0
    contents = Path.read_bytes

    def edited(path: Path) -> bytes:
        nonlocal read
        data = contents(path)
        if path == inner:
            read += 1
            inner.write_text(f'w: "{"abcdefgh"[read]}"')
        return data

    inner.write_text('w: "a"')
    monkeypatch.setattr(Path, "read_bytes", edited)
    with sg.Cache(tmp_path / "cache") as cache:
        index = sg.compile(sg.Grammar(outer, import_paths=(str(tmp_path),)), VOCABULARY, cache=cache)
        assert (read, index.match(b"a").accepted) == (1, True)
        inner.write_text('w: "a"')
        read = 0
        grammar_store.forget()
        again = sg.compile(sg.Grammar(outer, import_paths=(str(tmp_path),)), VOCABULARY, cache=cache)
        assert again.origin == "cache"
        assert again.match(b"a").accepted


def test_grammars_that_come_with_lark_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of Lark may have others."""
    text = "%import common.INT\nstart: INT"
    before = sg.Grammar(text).canonical()
    contents = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: contents(path) + b"\n")
    assert sg.Grammar(text).canonical() != before


def test_a_grammar_that_imports_without_end_is_refused() -> None:
    with pytest.raises(sg.errors.BudgetExceededError, match="names more than 10000 files"):
        sg.Grammar("".join(f"%import a{n}.x\n" for n in range(10_000)) + "start: x")


def test_an_import_that_comes_again_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    depth_read = 0
    candidates = Imports._candidates

    def counted(*arguments: Any) -> Iterator[Path]:
        nonlocal depth_read
        depth_read += 1
        return candidates(*arguments)

    monkeypatch.setattr(Imports, "_candidates", counted)
    sg.Grammar("%import a.b.x\n" * 1_000 + "%import a . b.x\nstart: x")
    assert depth_read == 1


def test_damaged_tables_are_made_anew(tmp_path: Path, loaded: list[str]) -> None:
    definition = DEFINITIONS["tight"]
    with sg.Cache(tmp_path) as cache:
        expected = sg.compile(definition, VOCABULARY, cache=cache)
        entry = next(entry for entry in cache.entries() if entry.kind == "tables")
        buffer = cache.get(entry.key)
        assert buffer is not None
        good = bytes(buffer)
        meta, sections = unpack(good)
        broken = [
            good[:-1], good[:-1] + b"\xff", b"", pack({**meta, "definition": "another"}, sections),
            pack({**meta, "kind": "grammar"}, sections),
            pack({**meta, "notes": "none"}, sections),
            pack(meta, {**sections, "lex_table": sections["lex_table"] + 9}),
        ]  # fmt: skip
        for times, value in enumerate(broken, 2):
            grammar_store.forget()
            cache.put(entry.key, value, kind="tables")
            found = sg.compile(definition, small_vocabulary(times), cache=cache)
            assert len(loaded) == times
            assert found.match(b"caa").consumed == expected.match(b"caa").consumed
            mended = cache.get(entry.key)
            assert mended is not None
            assert bytes(mended) == good


def test_what_is_refused_is_refused_again(tmp_path: Path, loaded: list[str]) -> None:
    with sg.Cache(tmp_path) as cache:
        for _ in range(2):
            with pytest.raises(sg.errors.DefinitionError):
                sg.compile(sg.Grammar("start: a"), VOCABULARY, cache=cache)
        assert len(cache) == 0
        assert len(loaded) == 2
        stuck = sg.Vocabulary.from_bytes([b"b", b"ba", None], eos_ids=[2])
        for _ in range(2):  # the grammar is all right, the vocabulary can't spell it
            with pytest.raises(sg.errors.VocabularyError):
                sg.compile(DEFINITIONS["tight"], stuck, cache=cache)
        assert kinds(cache) == ["tables"]


def test_what_a_compile_warns_of_is_not_lost(tmp_path: Path) -> None:
    definition = sg.Grammar('start: s\ns: "i" s | "i" s "e" s | "x"')
    with sg.Cache(tmp_path) as cache:
        for step in range(3):  # compiled, remembered, from the cache
            if step == 2:
                grammar_store.forget()
            with pytest.warns(sg.errors.GrammarWarning, match="two actions compete after I X, before E"):
                sg.compile(definition, small_vocabulary(step), cache=cache)


def test_few_tables_are_remembered(monkeypatch: pytest.MonkeyPatch, loaded: list[str]) -> None:
    monkeypatch.setattr(grammar_store, "_MOST_REMEMBERED", 2)
    for word in ("a", "b", "a", "c", "a", "b"):
        sg.compile(sg.Grammar(f'start: "{word}"'), VOCABULARY)
    assert [text[-2] for text in loaded] == ["a", "b", "c", "b"]
