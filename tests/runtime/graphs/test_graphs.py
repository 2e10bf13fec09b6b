"""Pictures of automata: what is drawn reads the texts that `re` and `json` say, labels are classes that `re` reads,
and what strangers named stays text in every language in which a picture is written down."""

from __future__ import annotations

import html
import io
import json
import random
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from judges.guides import BYTES, EACH_BYTE, with_bytes
from pages.hostile import HOSTILE
from rich.console import Console

import structgen as sg
from structgen.errors import ArgumentError, UnsupportedError
from structgen.runtime.graphs import automaton, pushdown
from structgen.runtime.graphs.graph import Graph, GraphEdge, GraphNode
from structgen.runtime.graphs.labels import Spelling
from structgen.runtime.graphs.moves import POP, DrawnMove, folded
from structgen.runtime.index.healing import heal
from structgen.system.visible import visible

# -- what is drawn reads the same texts --------------------------------------------------------------------

#: Patterns, and what random texts are made of.
PATTERNS = {
    "words": ("(admin|user|admit)s?", ["admin", "user", "admit", "s", "a", "mi"]),
    "loops": ("(ab|c[de])*f?", [*"abcdef", "ab", "cd"]),
    "accents": ("née|ne|[à-ÿ]{1,3}|naïf", [*"neéàÿïafû", "née", "naï"]),
    "wide": ('[^"\\\\]*[€😀-😂]|x.y', [*'€😀😁😂😃"\\xy\n', "é", "xéy"]),
    "dates": ("[0-9]{4}-(0[1-9]|1[0-2])", ["2024-", "12", "01", "0", "199", "9-1"]),
    "counts": ("(?:ab|[xy]){30,33}z|a{26,}", ["ab" * 10, "x" * 15, "xy", "a", "a" * 13, "a" * 25, "y", "z", "b"]),
    "exact": ("é{40}|[0-9]{,50}!", ["é" * 20, "é", "é" * 40, "1" * 25, "2", "!"]),
}

#: What a move that counts says: the loop, and what the new count must be.
COUNT = re.compile(r"(?:([\d,]+) ≤ )?count \d+( \+ 1)?(?: ([=≤]) ([\d,]+))?")


def reads(spelling: Spelling, data: bytes) -> bool:
    sets = zip(spelling, data, strict=False)
    return len(spelling) <= len(data) and all(any(low <= b <= high for low, high in ranges) for ranges, b in sets)


def counted(note: str, count: int) -> int | None:
    """The count behind a move; None where it isn't open."""
    if not note:
        return count
    found = COUNT.fullmatch(note)
    assert found is not None, note
    least, more, relation, most = found.groups()
    number = int(most.replace(",", ""))
    if more is None:
        return number
    is_open = count + 1 == number if relation == "=" else int(least or "0") <= count + 1 <= number
    return count + 1 if is_open else None


def accepts(start: int, moves: dict[int, list[DrawnMove]], accepting: Callable[[int], bool], data: bytes) -> bool:
    """Whether an automaton with counts, as it is drawn, takes a text: every way is tried."""
    todo, seen = [(start, 0, 0)], set()
    while todo:
        state, at, count = todo.pop()
        if at == len(data) and accepting(state):
            return True
        for move in moves[state]:
            after = counted(move.note, count)
            if reads(move.reads, data[at:]) and after is not None:
                following = move.target, at + len(move.reads), after
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
    return False


@pytest.mark.parametrize("name", PATTERNS)
def test_drawn_moves_read_what_re_matches(name: str) -> None:
    pattern, pieces = PATTERNS[name]
    tables = sg.compile(sg.Regex(pattern), BYTES).machine.tables
    moves = folded(
        tables.start,
        lambda state: automaton._moves(tables, state),
        lambda state: automaton._shown(tables, state),
        10_000,
    )
    is_accepting = [bool(each) for each in tables.accepting]
    generator = random.Random(name)
    verdicts = []
    for _ in range(1500):
        text = "".join(generator.choices(pieces, k=generator.randint(0, 5)))
        verdicts.append(re.fullmatch(pattern, text) is not None)
        assert accepts(tables.start, moves, is_accepting.__getitem__, text.encode()) is verdicts[-1], text
    assert 5 < sum(verdicts) < 1490
    assert len(moves) < tables.states or name in ("loops", "counts", "exact")  # of which no state is folded


#: Schemas, what random texts are made of, and what says whether a value is one of theirs.
SCHEMAS: dict[str, tuple[dict[str, Any], list[str], Callable[[Any], bool]]] = {
    "lists": (
        {"type": "array", "items": {"$ref": "#"}},
        ["[", "]", "[]", ",", "[],", "[[]]"],
        lambda value: is_lists(value),
    ),
    "members": (
        {
            "type": "object", "additionalProperties": False, "required": ["b"],
            "properties": {"a": {"type": "boolean"}, "b": {"items": {"enum": ["é", "in", None]}, "type": "array"}},
        },
        ['{"a":true,"b":[', '{"a":false', ',"b":[', '{"b":[', '"é"', '"in"', "null", ",", "]}", ']', '},'],
        lambda value: (
            isinstance(value, dict) and list(value) in (["b"], ["a", "b"]) and isinstance(value.get("a", True), bool)
            and isinstance(value["b"], list) and all(each in ("é", "in", None) for each in value["b"])
        ),
    ),
}  # fmt: skip


def is_lists(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_lists, value))


def pops(start: int, moves: dict[int, list[DrawnMove]], ends: Callable[[int], bool], data: bytes) -> bool:
    """The same for one with a stack: a text is complete where nothing is left on it."""
    todo: list[tuple[tuple[int, ...], int]] = [((start,), 0)]
    seen = set(todo)
    while todo:
        stack, at = todo.pop()
        if not stack:
            if at == len(data):
                return True
            continue
        following = [(stack[:-1], at)] if ends(stack[-1]) else []
        for move in moves[stack[-1]]:
            if move.is_return or not reads(move.reads, data[at:]):
                continue
            below = re.search(r"call, back to ([\d, ]+)", move.note)
            called = [int(each) for each in reversed(below[1].split(", "))] if below else []
            entered = [] if move.target == POP else [move.target]
            following.append(((*stack[:-1], *called, *entered), at + len(move.reads)))
        for each in following:
            if each not in seen and len(each[0]) < 30:
                seen.add(each)
                todo.append(each)
    return False


@pytest.mark.parametrize("name", SCHEMAS)
def test_drawn_calls_and_pops_read_what_json_says(name: str) -> None:
    schema, pieces, is_instance = SCHEMAS[name]
    index = sg.compile(sg.JsonSchema(schema, whitespace="compact"), BYTES)
    reader = pushdown._Reader(index.machine.tables, BYTES)
    moves = folded(index.machine.tables.start, reader.moves, reader.shown, 10_000)
    returns = [bool(each) for each in index.machine.tables.returns]
    generator = random.Random(name)
    verdicts = []
    for _ in range(4000):
        text = "".join(generator.choices(pieces, k=generator.randint(1, 7)))
        try:
            value = json.loads(text)
            spelled = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            verdicts.append(is_instance(value) and spelled == text)
        except ValueError:
            verdicts.append(False)
        assert pops(index.machine.tables.start, moves, returns.__getitem__, text.encode()) is verdicts[-1], text
    assert sum(verdicts) > 10


# -- labels ------------------------------------------------------------------------------------------------

CHARACTER_SETS = [
    "a", r"\n", "'", " ", r"\\", r"\]", r"\^", "-", "[0-9]", "[a-fA-F0-9_]", r"[^\"\\]", r"[^\]]", r"[^\^-]",
    r"[^ ']",
    "[é]", "[à-ÿ]",
    "[ß-öø-ÿŒœ]", "[一-龥]", "[😀-😿x]", r"[\u2028\u202e\xad]", r"(?s:.)", ".",
    r"[\x00-\x7f]", r"[^\x00-\x7f]", r"\d", r"\w", r"\S",
    r"[\ud7f0-\ud7ff\ue000-\ue010]", r"[\U0010ff00-\U0010ffff]", r"[^a\U0010ffff]", r"[\x7f-\xa0]",
    "[,-/ ]", r"[^,\- ]",
]  # fmt: skip


def character_sets() -> list[str]:
    """Those above, and random ones."""
    generator = random.Random(5)
    found = []
    for _ in range(40):
        spans = []
        for _ in range(generator.randint(1, 5)):
            low = generator.randrange(generator.choice([0x80, 0x800, 0x10000]))
            if not 0xD7F0 < low < 0xE000:
                spans.append(f"\\U{low:08x}-\\U{low + generator.choice([0, 1, 5]):08x}")
        found.append(f"[{generator.choice(['', '^'])}{''.join(spans) or 'z'}]")
    return [*CHARACTER_SETS, *found]


def pattern_of(part: str) -> str:
    """What a part of a label says, for `re`."""
    words = {
        "a space": " ",
        "any ASCII character": r"[\x00-\x7f]",
        "any character": "(?s:.)",
        "a character beyond ASCII": r"[^\x00-\x7f]",
    }
    if part in words:
        return words[part]
    if part[0] == "[":
        return re.sub(r"\\u\{(\w+)\}", lambda found: f"\\U{int(found[1], 16):08x}", part)
    if part.startswith("\\u{"):
        return pattern_of(f"[{part}]")
    if part[0] == "'":
        return part[1:-1] if part[1] == "\\" and len(part) > 3 else re.escape(part[1:-1])
    assert len(part) == 1, part
    return re.escape(part)


def points(pattern: str) -> Iterator[str]:
    """Characters near which sets begin and end, and others."""
    numbers = {*range(0x300), 0x2028, 0x202E, 0x20AC, 0x1F600, 0x10FFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x9FA5}
    spelled = re.findall(r"\\U(\w{8})|\\u(\w{4})", pattern)
    numbers |= {int(a or b, 16) for a, b in spelled} | {ord(c) for c in pattern}
    numbers |= set(random.Random(pattern).sample(range(0x110000), 300))
    near = {each + offset for each in numbers for offset in (-1, 0, 1, 5, 6)}
    return (chr(each) for each in sorted(near) if 0 <= each <= 0x10FFFF and not 0xD800 <= each <= 0xDFFF)


@pytest.mark.parametrize("number", range(len(character_sets())))
def test_labels_are_classes(number: int) -> None:
    pattern = character_sets()[number]
    graph = sg.compile(sg.Regex(pattern), BYTES).graph()
    [edge] = graph.edges
    parts = edge.label.split(", or ")
    exact = [part for part in parts if not part.endswith(" characters beyond ASCII")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # "[[" and "--" mean in `re` what they always did, still
        found = re.compile("|".join(map(pattern_of, exact)) or "(?!)")
    for character in points(pattern):
        if parts == exact or character.isascii():
            expected = re.fullmatch(pattern, character) is not None
            assert (found.fullmatch(character) is not None) is expected, (edge.label, character)
    for part in set(parts) - set(exact):
        wide = (chr(each) for each in range(0x80, 0x110000) if not 0xD800 <= each <= 0xDFFF)
        assert int(part.split()[0].replace(",", "")) == sum(re.fullmatch(pattern, each) is not None for each in wide)


# -- hostile texts -----------------------------------------------------------------------------------------

NAMES = [
    *HOSTILE, 'quote " and \\" and \\', "two\nlines\r\n", "\\N \\G \\l", "&lt;b&gt; &amp; &#60;", "a|b{c}<d>",
    "]]\"-->|x|",
    "#quot;#35;",
    "%% comment", "click s0 href \"javascript:alert(1)\"", "`code` **bold**", "end",
]  # fmt: skip


def hostile_graph() -> Graph:
    """As readers make it: what is not seen is spelled out before."""
    names = [visible(each) for each in NAMES]
    nodes = tuple(GraphNode(f"s{n}", name, is_accepting=n % 2 == 0) for n, name in enumerate(names))
    edges = tuple(GraphEdge("s0", f"s{n}", name, is_return=n % 3 == 0) for n, name in enumerate(names))
    return Graph(visible("\n".join(NAMES)), nodes, edges)


def flat(text: str) -> str:
    return text.replace("\n", " ")


#: How the lines around nodes and edges begin.
OTHER_LINES = ("digraph {", "rankdir", "label", "node", "edge", "start", "start ->", "}", "")


def test_dot_has_each_name_in_one_string() -> None:
    graph = hostile_graph()
    string = r'"((?:[^"\\\n]|\\["\\])*)"'
    node = re.compile(rf"  (s\d+) \[label={string}, shape=(?:circle|box, style=rounded)(?:, peripheries=2)?\];")
    edge = re.compile(rf"  (s\d+) -> (s\d+) \[label={string}(?:, style=dashed)?\];")
    lines = graph.to_dot().split("\n")
    found = [match for line in lines if (match := node.fullmatch(line))]
    moves = [match for line in lines if (match := edge.fullmatch(line))]
    assert [(m[1], spoken(m[2])) for m in found] == [(n.name, flat(n.label)) for n in graph.nodes]
    assert [(m[1], m[2], spoken(m[3])) for m in moves] == [(e.source, e.target, flat(e.label)) for e in graph.edges]
    assert len(lines) == len(found) + len(moves) + len(OTHER_LINES)


def spoken(text: str) -> str:
    """What Graphviz shows of a string: escapes, then entities of HTML."""
    return html.unescape(re.sub(r"\\(.)", r"\1", text))


class Texts(HTMLParser):
    """The texts and the tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.texts.append(data)


def test_graphviz_shows_each_name_as_it_is() -> None:
    if shutil.which("dot") is None:
        pytest.skip("needs Graphviz's dot")
    graph = hostile_graph()
    done = subprocess.run(["dot", "-Tsvg"], input=graph.to_dot().encode(), capture_output=True, check=True)
    page = Texts()
    page.feed(done.stdout.decode())
    shown = {" ".join(text.split()) for text in page.texts}
    assert {" ".join(node.label.split()) for node in graph.nodes} <= shown
    assert page.tags <= {"svg", "g", "title", "polygon", "text", "path", "ellipse"}
    assert not page.names & {"href", "xlink:href", "onclick", "onload", "onerror"}
    assert graph.to_svg() is not None


def test_mermaid_has_each_name_in_one_string() -> None:
    graph = hostile_graph()
    lines = graph.to_mermaid().rstrip("\n").split("\n")
    string = r'"((?:[^\W_]|[ ;#])*)"'
    nodes = [re.fullmatch(rf"  (s\d+)\({{2,3}}{string}\){{2,3}}", line) for line in lines[1 : len(NAMES) + 1]]
    edges = [re.fullmatch(rf"  (s\d+) -(?:\.-|-)>\|{string}\| (s\d+)", line) for line in lines[len(NAMES) + 1 :]]
    assert [(m[1], decoded(m[2])) for m in nodes if m] == [(n.name, n.label) for n in graph.nodes]
    assert [(m[1], m[3], decoded(m[2])) for m in edges if m] == [(e.source, e.target, e.label) for e in graph.edges]


def decoded(text: str) -> str:
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def test_terminals_show_each_name_as_it_is() -> None:
    graph = hostile_graph()
    stream = io.StringIO()
    Console(file=stream, width=100_000, force_terminal=False).print(graph)
    shown = stream.getvalue()
    for node in graph.nodes[1:]:
        for line in node.label.split("\n"):
            assert line in shown
    assert "\x1b" not in shown
    assert all(node.label in graph.to_text() for node in graph.nodes)


@pytest.mark.parametrize("with_dot", [True, False], ids=["dot", "no-dot"])
def test_notebooks_show_no_tags_of_strangers(with_dot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_dot:
        monkeypatch.setenv("PATH", "")
        assert hostile_graph().to_svg() is None
    page = Texts()
    page.feed(hostile_graph()._repr_html_())
    assert page.tags in (({"img"},) if with_dot and shutil.which("dot") else ({"pre"},))
    assert page.names <= {"style", "src", "alt"}


def test_names_of_special_tokens_and_terminals_are_spelled_out() -> None:
    name = '<|"]\n\u202e\x1b[31m[bold]|>'
    vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, None, None], eos_ids=[256], special_tokens={name: 257})
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "const_string", "value": "a"}, {"type": "token", "token": name}]}}  # fmt: skip
    graph = sg.compile(sg.StructuralTag(tag), vocabulary, eager=False).graph()
    assert any(visible(name) in edge.label for edge in graph.edges)
    for text in (graph.to_text(), graph.to_dot(), graph.to_mermaid()):
        assert not {"\u202e", "\x1b"} & set(text)
    grammar = sg.compile(sg.Grammar('start: "\\u202e" /[<]"\\n/ | start "x"'), BYTES).graph()
    assert not {"\u202e", "\x1b"} & set(grammar.to_text())


# -- bounds ------------------------------------------------------------------------------------------------


def test_a_graph_is_bounded_and_says_what_it_leaves_out() -> None:
    index = sg.compile(sg.Regex("|".join(f"{a}x?{b}y?{a}" for a in "abcdefg" for b in "hijklmn")), BYTES)
    whole, part = index.graph(limit=500), index.graph(limit=7)
    assert whole.omitted == 0
    assert whole.is_whole
    states = [node for node in part.nodes if node.shape == "state"]
    assert len(states) == 7
    assert part.omitted == len(whole.nodes) - 7
    assert f"{part.omitted:,} states are left out" in part.to_text()
    assert {edge.target for edge in part.edges} <= {node.name for node in part.nodes}
    near = {node.label for node in states}
    assert near <= {node.label for node in whole.nodes}
    tiny = sg.compile(sg.Regex("(a|b)*a(a|b){9}"), BYTES).graph(limit=1)
    assert not tiny.is_whole
    assert "and those behind them" in tiny.to_dot()


@pytest.mark.parametrize("limit", [0, -1, 2001, 1.5, "7", True])
def test_limits_are_checked(limit: Any) -> None:
    with pytest.raises(ArgumentError):
        sg.compile(sg.Regex("a"), BYTES).graph(limit=limit)


def test_an_index_without_tables_is_refused() -> None:
    vocabulary = with_bytes("abc")
    healed = heal([*b"xab"], vocabulary, sg.compile(sg.Regex("[a-z]+"), vocabulary))
    assert healed.index is not None
    with pytest.raises(UnsupportedError, match="behind a prefix"):
        healed.index.graph()


def test_a_grammar_is_drawn_as_its_parser() -> None:
    graph = sg.compile(sg.Grammar('start: "(" start ")" | WORD\nWORD: /[a-z]+/'), BYTES).graph()
    shifts = [edge for edge in graph.edges if not edge.is_return]
    assert {edge.label for edge in shifts} >= {"WORD"}
    assert [edge for edge in shifts if edge.source == edge.target], "a bracket within a bracket"
    assert any(node.is_accepting for node in graph.nodes)
