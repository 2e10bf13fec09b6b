"""Damages index files in ways that hurt, as their declarations tell them, and uses whatever still opens.

``python tests/hostile/index_fuzzer.py COUNT SEED FOLDER`` damages those that `write_originals` put there, so many
times, with correct checksums, and prints what became of them. What is not refused must work, or raise an error of
structgen's; a file with which anything else happens is left in the folder, and the status is 1. Some come in a
bundle, with right digests. It runs with `CHECKED` as its environment: kernels check no bounds otherwise.
"""

from __future__ import annotations

import faulthandler
import json
import struct
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from judges.grammars import BLOCKS, GRAMMARS, indentation
from judges.guides import EACH_BYTE, ids_of_bits
from numpy.typing import NDArray

import structgen as sg
from structgen import kernels
from structgen.cache import archive
from structgen.cache.entry import Entry
from structgen.compiler.programs.program import Program, TokenBound, TokenSet
from structgen.compiler.programs.tables import to_tables
from structgen.runtime.automaton.machine import AutomatonMachine
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser import stack as parser_stack
from structgen.runtime.pushdown.distinct.definition import DistinctInnerMachine
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.storage import columns, container
from structgen.storage.columns import Column, Field, Sizes, Total, total
from structgen.storage.container import Buffer, pack

Array: TypeAlias = NDArray[Any]

#: The environment in which kernels look at every index: Numba compiles them then.
CHECKED = {"NUMBA_BOUNDSCHECK": "1", "STRUCTGEN_KERNELS": "jit"}

#: Seconds that one file may take before it counts as hung; what a test machine does under load is far less.
HUNG = 120

REPLY = r"""
start: THOUGHT (call+ | answer) <|eom|>
THOUGHT: /<t>(.|\n)*?<\/t>/
call[capture]: "<c>" PERSON "</c>" | "<c>" "n" %json {"type": "integer", "minimum": 0} "</c>"
answer[capture="words"]: "A:" word+ | <[260]> DATE
word[temperature=0.5, max_chars=9, capture]: /[a-z]+/
%ignore /[ \n]+/
"""

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer"}},
    "required": ["name"],
}

OBJECT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 2, "maxLength": 40},
        "n": {"anyOf": [{"type": "number"}, {"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 9}]},
        "me": {"$ref": "#"},
    },
    "required": ["id"],
}


def of_tokens() -> Program:
    """``a`` or ``b`` as often as one likes, in at most three tokens, and between these any tokens but some."""
    program = Program()
    entry, text, only = program.state("entry"), program.state("text"), program.state("only")
    end, other = program.state("end", returns=True), program.state("other")
    for state in (entry, text):
        program.edge(state, 97, 98, text)
        program.token_edge(state, TokenSet((97, 258, 270)), text, other)
    for state in (entry, text, only):
        program.edge(state, 123, 123, end)
    program.edge(end, 48, 57, end)
    program.token_edge(entry, TokenSet((257,)))
    program.token_edge(other, TokenSet((257, 258), complement=True), other)
    program.token_edge(other, TokenSet((258,)))
    program.token_bounds[text] = TokenBound(3, only)
    return program


DEFINITIONS: dict[str, sg.Definition | Program] = {
    "regex": sg.Regex(r"(ab|c[d-f]*)+ \d{4}"),
    "counted": sg.Regex(r'"([^"\\]|\\.){3,200}"(a{2,90}b){2}'),
    "look-around": sg.Regex(r"\b(?!foo)[a-z]+(?<!a)(, [a-z]+)*"),
    "object": sg.JsonSchema(OBJECT),
    "any order": sg.JsonSchema(OBJECT, property_order="any"),
    "distinct": sg.JsonSchema({"type": "array", "items": {"type": ["string", "number"]}, "uniqueItems": True}),
    "nested": sg.JsonSchema({"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}),
    "gbnf": sg.Gbnf('root ::= ("a" root "b" | "a" root "c" | "ab" | [x-z]{2,30})*'),
    "lark": sg.Grammar(GRAMMARS["statements"][0]),
    "watched": sg.Grammar(GRAMMARS["undecided"][0], lexer="basic"),
    "blocks": sg.Grammar(BLOCKS, lexer="basic", postlex=indentation(6)),
    "ambiguous": sg.Grammar('start: a+\na: "a" | "a" "a" | "(" a ")"\n%ignore " "', ambiguity="all"),
    "definitions": sg.Grammar(REPLY, definitions={"PERSON": PERSON, "DATE": sg.Regex(r"\d{4}-\d\d(-\d\d)?")}),
    "budgets": sg.Grammar('start: a "c" b\na[max_tokens=3, suffix=";"]: /[ab;]*/\nb[max_tokens=2]: /[^n]+/'),
    "budget of a tree": sg.Grammar('start: "<" a ">"\na[max_tokens=4]: %json {"type": "array", "maxItems": 40}'),
    "distinct in a grammar": sg.Grammar('start: "<" a ">"\na: %json {"type": "array", "uniqueItems": true}'),
    "tokens": of_tokens(),
}


def vocabulary() -> sg.Vocabulary:
    """All bytes, special tokens, and some two hundred tokens of several bytes."""
    random = Random(0)
    letters = 'ab<>/tcA:n"{}()=;ifthenels01+.e ,\n'
    tokens: list[bytes | None] = [*EACH_BYTE]
    tokens += [None] * 8
    tokens += ["".join(random.choices(letters, k=random.randint(2, 6))).encode() for _ in range(180)]
    tokens += [b'{"id"', b'":"', b'"}', b'"}</c>', b"if a:\n b\n", b"aa", b"aaaaaaaa", b" a", b"</t>", b'"name":']
    return sg.Vocabulary.from_bytes(tokens, eos_ids=[256], special_tokens={"<|eom|>": 257})


# -- what is declared ------------------------------------------------------------------------------------------------


class Declared:
    """What the reader of one file declares of its sections, by where they lie, and of its meta fields, by name."""

    def __init__(self, data: bytes, vocabulary: sg.Vocabulary) -> None:
        self.columns: dict[tuple[int, int], tuple[Column, Sizes]] = {}
        self.fields: dict[str, tuple[Field, Sizes]] = {}
        read, read_meta = columns.read, columns.read_meta

        def reading(sections: Any, declared: Any, sizes: Sizes, where: str) -> Any:
            self.columns |= {_at(sections[each.name]): (each, sizes) for each in declared if each.name in sections}
            return read(sections, declared, sizes, where)

        def reading_meta(meta: Any, declared: Any, sizes: Sizes, where: str) -> Any:
            self.fields |= {each.name: (each, sizes) for each in declared}
            return read_meta(meta, declared, sizes, where)

        meta, sections = unpack(data)
        with patch.object(columns, "read", reading), patch.object(columns, "read_meta", reading_meta):
            sg.Index.from_buffer(data, vocabulary)
            if "token_bytes" in sections:
                sg.Vocabulary.from_sections(meta, sections, "file")
        self.undeclared = [name for name, section in sections.items() if _at(section) not in self.columns]

    def of(self, section: Array) -> tuple[Column, Sizes]:
        return self.columns[_at(section)]


def unpack(data: Buffer) -> tuple[dict[str, Any], dict[str, Array]]:
    """The sections of a file, where they lie, to be changed."""
    meta, sections = container.unpack(data)
    return meta, dict(sections)


def _at(section: Array) -> tuple[int, int]:
    return section.__array_interface__["data"][0], section.nbytes


# -- damage ----------------------------------------------------------------------------------------------------------


def boundary(column: Column, sizes: Sizes, which: int, dtype: np.dtype[Any], random: Random) -> int:
    """A number at the edge of what may be there, or beyond."""
    limits = np.iinfo(dtype)
    fields: tuple[tuple[int, Total], ...] = column.fields or ((column.least, column.below or 256),)
    least, below = fields[which % len(fields)]
    bound = total(below, sizes)
    sums = [total(each, sizes) for each in (column.starts, column.gaps, column.members) if each is not None]
    chosen = random.choice(
        [bound, bound - 1, bound - 1, bound + 1, least, least - 1, 0, 1, 2, limits.max, limits.max // 2 + 1,
         limits.min, kernels.LONG_GAP, kernels.LONG_GAP - 1, 1 << 30, random.randrange(max(1, bound)), *sums,
         *(each - 1 for each in sums)]
    )  # fmt: skip
    return max(limits.min, min(chosen, limits.max))


#: What is done to a section.
KINDS = ["set"] * 8 + ["swap", "move", "repeat", "reverse", "cut", "add", "zeros", "dtype", "shape", "random"]


def damaged(section: Array, column: Column, sizes: Sizes, kind: str, random: Random) -> Array:
    """A section with numbers changed, moved, left out or repeated, or of another shape or dtype."""
    found: Array = section.copy()
    flat = found.reshape(-1)
    if not found.size and kind in ("set", "swap", "move", "repeat", "reverse", "random"):
        kind = "zeros"
    if kind == "set":
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            at = random.randrange(flat.size)
            flat[at] = boundary(column, sizes, at, found.dtype, random)
    elif kind == "swap":
        i, j = random.randrange(len(found)), random.randrange(len(found))
        found[[i, j]] = found[[j, i]]
    elif kind == "move":
        at = random.randrange(flat.size)
        limits = np.iinfo(found.dtype)
        flat[at] = max(limits.min, min(int(flat[at]) + random.choice((-1, 1, 2, -2)), limits.max))
    elif kind == "repeat":
        i = random.randrange(len(found))
        found[i : i + random.randrange(1, 8)] = found[i]
    elif kind == "reverse":
        i = random.randrange(len(found))
        found[i:] = found[i:][::-1]
    elif kind == "random":
        flat[:] = np.frombuffer(random.randbytes(found.nbytes), found.dtype)
    elif kind == "cut":
        return found[: random.randrange(len(found) + 1)]
    elif kind == "add":
        return np.concatenate([found, found[: random.randrange(len(found) + 1)]])
    elif kind == "zeros":
        more = random.choice((1, 2, 40, 100_000))
        return np.concatenate([found, np.full((more, *found.shape[1:]), random.choice((0, 0, 1)), found.dtype)])
    elif kind == "dtype":
        return found.astype(random.choice((np.uint8, np.uint16, np.uint32, np.int32)))
    elif kind == "shape":
        return found.reshape(-1, random.choice((1, 2, 3))) if found.size % 6 == 0 else found.reshape(1, -1)
    return found


#: What is put into fields of the meta section.
VALUES: list[Any] = [
    10**12, 1 << 31, (1 << 31) - 1, -1, 10**30, 10**400, 0, 1, 2, 10**6, float("nan"), float("inf"), -float("inf"),
    1e300, 0.5, True, False, None, "", "regex", "grammar", "gbnf", "\ud800", "x" * 100_000, [], [[]], [[0, 0]],
    [0, 10**30], [[1, 10**30]], [[-1, -1]], {}, {"a": -1}, {"a": 10**30},
]  # fmt: skip


def damage_sections(
    meta: dict[str, Any], sections: dict[str, Array], declared: Declared, random: Random
) -> tuple[str, bytes]:
    """One or two sections damaged, or left out, or exchanged; or those of a file within the file."""
    sections = dict(sections)
    inner = [name for name in sections if name.startswith(("inner_", "definition"))]
    if inner and random.random() < 0.5:
        name = random.choice(inner)
        kind, data = damage_sections(*unpack(sections[name].data), declared, random)
        return kind, pack(meta, {**sections, name: np.frombuffer(data, np.uint8)})
    names = [name for name in sections if name not in inner] or inner
    kind = random.choice(("left out", "exchanged", *[random.choice(KINDS)] * 31))
    if kind == "left out":
        del sections[random.choice(names)]
    elif kind == "exchanged":
        one, other = random.choice(names), random.choice(names)
        sections[one], sections[other] = sections[other], sections[one]
    else:
        for name in random.sample(names, min(len(names), random.choice((1, 1, 1, 2)))):
            sections[name] = damaged(sections[name], *declared.of(sections[name]), kind, random)
    return kind, pack(meta, sections)


def damage_meta(
    meta: dict[str, Any], sections: dict[str, Array], declared: Declared, random: Random
) -> tuple[str, bytes]:
    """A field with a value that it can't have, or one at the edge."""
    field, sizes = declared.fields[random.choice(list(declared.fields))]
    value = random.choice(VALUES)
    if field.kind is int and random.random() < 0.5:
        value = total(field.below, sizes) + random.choice((-1, 0, 1)) if not isinstance(field.below, list) else -1
    elif random.random() < 0.2:
        return "meta", pack({name: old for name, old in meta.items() if name != field.name}, sections)
    return "meta", pack({**meta, field.name: value}, sections)


def damage_bytes(data: bytes, random: Random) -> tuple[str, bytes]:
    """Some bytes changed, cut or repeated; length and checksum are made right."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at, kind = random.randrange(32, len(found)), random.random()
        if kind < 0.5:
            found[at] ^= 1 << random.randrange(8)
        elif kind < 0.8:
            found[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind < 0.9:
            del found[at : at + random.randrange(1, 40)]
        else:
            found[at:at] = found[at : at + random.randrange(1, 40)]
    struct.pack_into("<Q", found, 16, len(found))
    struct.pack_into("<I", found, 28, zlib.crc32(found[32:]))
    return "bytes", bytes(found)


def damage(data: bytes, declared: Declared, random: Random) -> tuple[str, bytes]:
    """What was done, and the file after it."""
    kind = random.random()
    if kind < 0.1:
        return damage_bytes(data, random)
    return (damage_meta if kind < 0.2 else damage_sections)(*unpack(data), declared, random)


# -- use -------------------------------------------------------------------------------------------------------------


def use(index: sg.Index, random: Random, questions: int) -> None:
    """Some of what an index can be asked; contradictions may come to light as errors of structgen's."""
    for ask in random.sample((rows, walk, batch, distances, save), questions):
        with suppress(sg.Error):
            ask(index, random)


def allowed(row: Array, size: int) -> list[int]:
    ids = ids_of_bits(row)
    assert all(token < size for token in ids)
    return ids


def walk(index: sg.Index, random: Random, max_tokens: int | None = None) -> None:
    guide = sg.Guide(index, max_tokens=max_tokens)
    for _ in range(6):
        ids = allowed(guide.bitmask(), index.vocabulary.size)
        if not ids or not guide.advance(random.choice(ids)):
            guide.advance(random.randrange(index.vocabulary.size))
        assert (guide.temperature or 0) >= 0
    assert all(0 <= part.span[0] <= part.span[1] for part in guide.captures())
    texts = (b'"abc\\n', b"if a then b = 1; aa(a)\n b", b'{"id": "abcd", "n": [1', b"aaxyb", b"<t>a</t><c>n 1",
             b'["a",1,"\\u0061')  # fmt: skip
    for text in texts:
        index.match(text)


def rows(index: sg.Index, random: Random) -> None:
    """What states decide, those that are stored and others."""
    machine = index.machine
    pick = random.choices
    if isinstance(machine, AutomatonMachine):
        for state in range(min(80, machine.tables.states)):
            config = state + machine.tables.states * random.choice((0, 0, 1, 5, 300))
            allowed(machine.row(config), index.vocabulary.size)
    elif isinstance(machine, PushdownMachine):
        _decide(machine, random)
    else:
        assert isinstance(machine, GrammarMachine)
        places, states = machine.lexeme_masks, range(len(machine.tables.table))
        for residual in pick(range(len(places.residuals)), k=6):
            for state in pick(states, k=4):
                for _, row in places.decide(residual, state, ()).groups:
                    allowed(places.pool.dense(row), index.vocabulary.size)
                places.decide(residual, state, (random.choice(states),))
        for _, inner in machine.embedded.definitions:
            if isinstance(inner, PushdownMachine | DistinctInnerMachine):
                _decide(inner.inner if isinstance(inner, DistinctInnerMachine) else inner, random)
            for residual in pick(range(len(inner.rows.residuals)), k=4):
                for row in inner.decide(inner.start_threads, residual)[0]:
                    allowed(inner.pool.dense(row), index.vocabulary.size)
    machine.fill(threads=1, meter=None)


def _decide(machine: PushdownMachine, random: Random) -> None:
    decided, states = machine.rows, range(machine.tables.states)
    for residual in random.choices(range(len(decided.residuals)), k=8):
        for state in random.choices(states, k=5):
            row, _ = decided.decide(residual, state, random.choice((0, 0, 1, 3, 39)))
            allowed(decided.pool.dense(row), machine.vocabulary.size)


def batch(index: sg.Index, random: Random) -> None:
    found = sg.GuideBatch(index.vocabulary)
    for _ in range(3):
        found.add(index)
    for _ in range(3):
        mask = found.bitmask()
        found.advance([random.choice(allowed(row, index.vocabulary.size) or [0]) for row in mask])


def distances(index: sg.Index, random: Random) -> None:
    walk(index, random, index.shortest() + random.choice((0, 1, 5)))


def save(index: sg.Index, random: Random) -> None:
    again = sg.Index.from_buffer(index.to_bytes(with_vocabulary=random.random() < 0.5), index.vocabulary)
    walk(again, random)


# -- the run ---------------------------------------------------------------------------------------------------------

#: So many files are asked two things each; of more, each is asked everything.
FEW = 2000


@contextmanager
def watched(path: Path, data: bytes) -> Iterator[None]:
    """Leave a file behind where the process ends, or hangs, or an error is raised that is none of structgen's."""
    path.write_bytes(data)
    faulthandler.dump_traceback_later(HUNG, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
    path.unlink()


#: How files are opened, in turns: as they are; in a bundle, which is mapped.
WAYS = ("file", "bundle")


def opened(data: bytes, known: sg.Vocabulary, way: str, folder: Path) -> sg.Index:
    """Open a file. Raises what `Index.from_buffer` does."""
    if way == "file":
        return sg.Index.from_buffer(data, known)
    path, entry = folder / "fuzzed.sgb", Entry("damaged", "", "index", len(data), 0.0, 0.0)
    archive.write(path, [entry], lambda _: memoryview(data))
    value = sg.Cache(path).get("damaged")
    assert value is not None
    assert bytes(value) == data
    return sg.Index.from_buffer(value, known)


def tried(open_index: Callable[[], sg.Index], random: Random, questions: int) -> str:
    """Open a file, and use it. Returns "refused" or "used"."""
    try:
        index = open_index()
    except (sg.errors.FormatError, sg.errors.VocabularyMismatchError):
        return "refused"
    use(index, random, questions)
    return "used"


def indexed(name: str, known: sg.Vocabulary, *, eager: bool = True) -> sg.Index:
    """The index of one of the definitions."""
    definition = DEFINITIONS[name]
    if isinstance(definition, Program):
        return sg.Index("gbnf", name, PushdownMachine(to_tables(definition), known))
    return sg.compile(definition, known, eager=eager)


def write_originals(folder: Path) -> None:
    """Two files of each definition, without a vocabulary and with one; where no bounds are checked, it is quick."""
    known = vocabulary()
    for number, name in enumerate(DEFINITIONS):
        index = indexed(name, known, eager=number % 3 > 0)
        walk(index, Random(0))
        use(index, Random(0), 5)
        for with_vocabulary in (False, True):
            data = index.to_bytes(with_vocabulary=with_vocabulary)
            (folder / f"{name} {with_vocabulary:d}.original").write_bytes(data)


def run(count: int, seed: str, folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """Damage so many files, each kind in turn. Returns what became of them, by definition, by damage and by way."""
    parser_stack._MOST_REDUCTIONS = 10_000  # what damaged tables spend a million on takes seconds
    known = vocabulary()
    originals = []
    for name in DEFINITIONS:
        for path in sorted(folder.glob(f"{name} ?.original")):
            data = path.read_bytes()
            declared = Declared(data, known)
            assert not declared.undeclared, (name, declared.undeclared)
            originals.append((name, data, declared))
    kinds = dict.fromkeys([*KINDS, "left out", "exchanged", "meta", "bytes"])
    by_definition, by_damage, by_way = (
        {name: dict.fromkeys(("refused", "used", "failed"), 0) for name in names}
        for names in (DEFINITIONS, kinds, dict.fromkeys(WAYS))
    )
    for number in range(count):
        random = Random(f"{seed} {number}")
        name, original, declared = originals[number % len(originals)]
        kind, data = damage(original, declared, random)
        way = WAYS[number // len(originals) % len(WAYS)]
        try:
            with watched(folder / f"{name} {seed} {number}.sgx", data):
                outcome = tried(partial(opened, data, known, way, folder), random, 2 if count <= FEW else 5)
        except Exception:
            outcome = "failed"
            print(f"\n{name} {seed} {number}: {kind}", traceback.format_exc(), sep="\n", file=sys.stderr)
        by_definition[name][outcome] += 1
        by_damage[kind][outcome] += 1
        by_way[way][outcome] += 1
    return {"definitions": by_definition, "damage": by_damage, "ways": by_way}


def main() -> int:
    faulthandler.enable()
    assert kernels.PROCESSOR == "jit", f"kernels check no bounds without {CHECKED}"
    outcomes = run(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    print(json.dumps(outcomes))
    return int(any(each["failed"] for each in outcomes["definitions"].values()))


if __name__ == "__main__":
    sys.exit(main())
