"""Index files that somebody made, not structgen: what kernels index with is checked, and can't be changed later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judges.grammars import GRAMMARS
from judges.naive import small_vocabulary
from make_golden import SCHEMAS
from numpy.typing import NDArray

import structgen as sg
from structgen import kernels
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.shared_masks import SharedMasks
from structgen.runtime.pushdown.walker import ROOM, no_agreement, stack_scratch
from structgen.runtime.rows.subtrees import heights
from structgen.storage.container import pack, unpack

VOCABULARY = small_vocabulary()

Sections = dict[str, NDArray[Any]]

DEFINITIONS: dict[str, sg.Definition] = {
    "regex": sg.Regex("a{3,90}b|[a-f]+|xyz"),
    "schema": sg.JsonSchema(SCHEMAS["schema"]),
    "gbnf": sg.Gbnf('root ::= "a" root "b" | "c"'),
    "lark": sg.Grammar(GRAMMARS["statements"][0]),
    "definition": sg.Grammar('start: "b" X', definitions={"X": sg.Gbnf('root ::= "a"+')}),
}


Change = Callable[[dict[str, Any], Sections], object]


def damaged(name: str, change: Change) -> bytes:
    """A file without its vocabulary, in which something was changed."""
    index = sg.compile(DEFINITIONS[name], VOCABULARY)
    meta, sections = unpack(index.to_bytes(with_vocabulary=False))
    own = dict(sections)
    change(meta, own)
    return pack(meta, own)


def opened(name: str, change: Change) -> sg.Index:
    return sg.Index.from_buffer(damaged(name, change), VOCABULARY)


# -- residual lists --------------------------------------------------------------------------------------------------

#: A node far outside whose number is 1 if it is summed up in 32 bits; a node again and again; one after itself.
LISTS = {
    "wraps": [0xFFFF] * 32000 + [0] + [0xFFFF] * 33537 + [2],
    "repeats": [5] + [0] * 3_000_000,
    "twice": [3, 1, 0],
    "outside": [0xFFFF, 0xFFF0],
}

each_list = pytest.mark.parametrize("gaps", LISTS.values(), ids=list(LISTS))


def with_list(gaps: list[int]) -> Change:
    """Puts these gaps in place of every residual list of an index."""

    def change(meta: dict[str, Any], sections: Sections) -> None:
        count = len(sections["resume_start"]) - 1
        sections["resume_start"] = (np.arange(count + 1) * len(gaps)).astype(np.uint32)
        sections["resume_gaps"] = np.array(gaps * count, np.uint16)

    return change


@each_list
def test_a_resume_list_that_is_no_ascending_list_of_nodes_is_refused(gaps: list[int]) -> None:
    machine = opened("schema", with_list(gaps)).machine
    assert isinstance(machine, PushdownMachine)
    rows = machine.rows
    rows.parts.store(rows.parts.stored[:0])  # so that a walk enters at the list
    number = next(number for number in range(2, len(rows.residuals)) if number not in rows.residuals._shared)
    with pytest.raises(sg.errors.FormatError, match="residual list"):
        rows.decide(number, machine.tables.start, 0)


@each_list
def test_the_same_of_a_grammar(gaps: list[int]) -> None:
    machine = opened("lark", with_list(gaps)).machine
    assert isinstance(machine, GrammarMachine)
    with pytest.raises(sg.errors.FormatError, match="residual list"):
        machine.lexeme_masks.decide(2, int(machine.tables.starts[0]), (1,))


@each_list
def test_the_same_of_shared_rows(gaps: list[int]) -> None:
    bits = [np.zeros(VOCABULARY.words, np.uint32)]
    good = SharedMasks([0], bits, [np.array([3, 4, 9], np.int32)])
    (again,) = SharedMasks.from_sections(good.to_sections(), VOCABULARY, "here").residuals
    assert again.tolist() == [3, 4, 9]
    damage: Sections = {"resume_start": np.array([0, len(gaps)], np.uint32), "resume_gaps": np.array(gaps, np.uint16)}
    damaged = SharedMasks.from_sections(good.to_sections() | damage, VOCABULARY, "here")
    with pytest.raises(sg.errors.FormatError, match="residual list"):
        damaged.residuals[0]


def test_lists_without_nodes_are_no_error_of_a_step() -> None:
    """Those of a grammar with definitions, whose masks go through them by the depths of their nodes."""

    def change(meta: dict[str, Any], sections: Sections) -> None:
        assert sections["resume_gaps"].size
        sections["resume_start"] = np.zeros_like(sections["resume_start"])
        sections["resume_gaps"] = sections["resume_gaps"][:0]

    guide = sg.Guide(opened("definition", change))
    for byte in b"baa":
        guide.bitmask()
        assert guide.advance(byte)
    assert guide.is_accepting()


# -- classes of bytes ------------------------------------------------------------------------------------------------


def test_a_class_without_bytes_is_no_error_of_a_step() -> None:
    classes = int(unpack(damaged("lark", lambda *_: None))[1]["lex_class"].max()) + 1
    assert classes > 2
    for empty in range(classes - 1):

        def change(meta: dict[str, Any], sections: Sections, empty: int = empty) -> None:
            class_of = sections["lex_class"].copy()
            class_of[class_of == empty] = classes - 1
            sections["lex_class"] = class_of

        assert opened("lark", change).match(b"").consumed == 0


# -- moves -----------------------------------------------------------------------------------------------------------


def test_a_move_that_pushes_more_than_a_walk_has_cells_is_refused() -> None:
    def change(meta: dict[str, Any], sections: Sections) -> None:
        starts = sections["move_start"].astype(np.uint32)
        starts[-1] += 200_000
        sections["move_start"] = starts
        sections["sequence"] = np.append(sections["sequence"], np.zeros(200_000, np.uint8))

    with pytest.raises(sg.errors.FormatError, match="'move_start' has a part of 20000"):
        opened("gbnf", change)


def test_the_frames_of_a_base_are_counted_with_what_is_pushed() -> None:
    """A state whose one edge pushes thousands of states and enters one that stays where it is."""
    count = 8000

    def change(meta: dict[str, Any], sections: Sections) -> None:
        none, one, starts = np.zeros(0, np.uint8), np.zeros(1, np.uint8), np.array([0, 1], np.uint8)
        meta |= {"states": 2, "start": 0}
        sections.update(edge_start=np.arange(3, dtype=np.uint8), edge_low=np.repeat(one, 2), like=np.repeat(one, 2))
        sections.update(edge_high=np.repeat(one + 255, 2), edge_target=np.array([3, 2], np.uint8), returns=one)
        sections.update(group_start=starts, move_record=one, move_start=starts * np.uint16(count))
        sections.update(sequence=np.append(np.zeros(count - 1, np.uint8), one + 1))
        sections.update(dict.fromkeys(("set_resume", "set_state", "set_row", "set_next"), none))

    machine = opened("gbnf", change).machine
    assert isinstance(machine, PushdownMachine)
    walk = machine.rows.walker()
    assert walk.base(0) is None  # with so many frames, which a walk of two of them has no cells for
    ids, below = walk.narrow(np.zeros(1, np.int32), (0, 0))
    assert (len(ids), len(below)) == (sum(map(bool, map(VOCABULARY.token, range(VOCABULARY.size)))), 0)


def test_kernels_refuse_a_stack_without_room_for_it() -> None:
    machine = opened("gbnf", lambda meta, sections: None).machine
    assert isinstance(machine, PushdownMachine)
    walk = machine.rows.walker()
    deep, flat = np.zeros(6 * ROOM, np.int64), np.zeros(2, np.int64)
    ids, below = np.empty(VOCABULARY.size, np.int32), np.empty(len(VOCABULARY.trie.byte), np.int32)
    root = np.zeros(1, np.int32)
    scratch = stack_scratch(ROOM, walk._deepest)
    walked = kernels.walk_stack(
        *walk._trie, VOCABULARY.trie.upper, walk.arena, root, deep, 1000, 1000, *scratch, ids, below
    )
    assert walked == (0, 0, 0)
    for one, other in ((deep, flat), (flat, deep)):
        found = kernels.walk_stack_difference(
            *walk._trie, VOCABULARY.trie.upper, heights(VOCABULARY), walk.arena, one, other, 1000,
            *scratch, np.empty((2, kernels.NOTES), np.int64), *no_agreement(), ids, below,
        )  # fmt: skip
        assert found[0] == kernels.TOO_FAR


# -- files that are changed while they are used ----------------------------------------------------------------------


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("eager", [True, False])
def test_a_file_that_is_changed_after_it_was_opened_changes_nothing(name: str, eager: bool, tmp_path: Path) -> None:
    """But for whole mask rows: they index nothing."""
    path = tmp_path / "index.sgx"
    compiled = sg.compile(DEFINITIONS[name], VOCABULARY, eager=eager)
    sg.Guide(compiled).bitmask()
    compiled.save(path)
    data = path.read_bytes()
    index = sg.Index.load(path, VOCABULARY)
    expected = sg.Index.from_buffer(data, VOCABULARY)
    _, sections = unpack(data)
    with path.open("r+b") as file:  # in place: the same pages are mapped
        for section_name, section in sections.items():
            if section_name not in ("bases", "sh_bits"):
                file.seek(_address(section) - _address(np.frombuffer(data, np.uint8)))
                file.write(b"\xff" * section.nbytes)
    one, other = sg.Guide(index), sg.Guide(expected)
    for _ in range(8):
        row = other.bitmask()
        np.testing.assert_array_equal(one.bitmask(), row)
        token = int(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))[0])
        assert one.advance(token) == other.advance(token)
    assert index.to_bytes() == expected.to_bytes()


# -- the meta section ------------------------------------------------------------------------------------------------

NUMBERS: list[Any] = [10**12, 1 << 31, -1, 10**30, 10**400, float("nan"), float("inf"), None, True, "3", [], {}, 0.5]


@pytest.mark.parametrize("name", ["regex", "schema", "gbnf"])
@pytest.mark.parametrize("field", ["states", "start"])
@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:12])
def test_numbers_of_states_that_cannot_be(name: str, field: str, value: Any) -> None:
    with pytest.raises(sg.errors.FormatError):
        opened(name, lambda meta, _: meta.update({field: value}))


@pytest.mark.parametrize("value", [value for value in NUMBERS if value != 0.5], ids=lambda value: str(value)[:12])
def test_times_that_cannot_be(value: Any) -> None:
    with pytest.raises(sg.errors.FormatError, match="compile_seconds"):
        opened("regex", lambda meta, _: meta.update(compile_seconds=value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", ["regex"]), ("kind", "shared"), ("kind", None), ("definition", 1), ("vocabulary", [1]),
        ("relaxations", "none"), ("relaxations", [1]),
    ],
)  # fmt: skip
def test_texts_that_are_none(field: str, value: Any) -> None:
    with pytest.raises(sg.errors.FormatError, match=field):
        opened("regex", lambda meta, _: meta.update({field: value}))


@pytest.mark.parametrize("tokens", [[[0]], [[1 << 30, 0]], [[0, -1]], [[0, 10**30]], [["0", 0]], [0], {}, None])
def test_special_tokens_that_cannot_be(tokens: Any) -> None:
    with pytest.raises(sg.errors.FormatError, match="tokens"):
        opened("lark", lambda meta, _: meta.update(tokens=tokens))


# -- tables that contradict themselves -------------------------------------------------------------------------------


def test_a_state_that_leads_to_no_complete_text() -> None:
    def change(meta: dict[str, Any], sections: Sections) -> None:
        sections["edge_target"] = np.ones_like(sections["edge_target"])  # all lead back to the start
        sections["returns"] = np.zeros_like(sections["returns"])

    index = opened("gbnf", change)
    with pytest.raises(sg.errors.FormatError, match="contradict themselves"):
        index.shortest()


@pytest.mark.parametrize(
    ("name", "section", "value", "message"),
    [
        ("regex", "row_base", 250, r"'row_base' has the value 250, must be below \d+"),
        ("regex", "row_gaps", 0xFFFE, r"'row_gaps' has a list that comes to \d+, must be below \d+"),
        ("regex", "live", -2, "'live' has the value -2, must be at least -1"),
        ("regex", "loops", 0, "'loops' has the value 0 in column 1, must be at least 1"),
        ("gbnf", "edge_start", 200, r"'edge_low' has \d+ rows, must have 200"),
        ("gbnf", "set_next", 99, "'set_next' has the value 99, must be below"),
        ("lark", "lr_context", 77, "'lr_context' has the value 77, must be below"),
        ("lark", "pl_watches", 9, r"'pl_watched' has \d+ rows, must have 9"),
    ],
)
def test_messages_name_the_section_the_value_and_the_bound(name: str, section: str, value: int, message: str) -> None:
    def change(meta: dict[str, Any], sections: Sections) -> None:
        found = sections[section].copy()
        found.reshape(-1)[-1] = value
        sections[section] = found

    with pytest.raises(sg.errors.FormatError, match=message):
        opened(name, change)
