"""The code lines of each room, at most at a recorded number, which falls and does not rise by itself.

`rooms.json` has the rooms: the first one of which a prefix fits a file holds it. A change that makes a room smaller
lowers its number (``python tests/house/test_sizes.py`` writes today's). One that needs more raises it, and its commit
says in a sentence what the reader gets for that.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "structgen"
ROOMS = Path(__file__).with_name("rooms.json")

#: Lines that a room may have less than recorded before the number is to be lowered.
SLACK = 100

#: Code lines of a file.
LONGEST_FILE = 700

_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    tokenize.ENCODING,
}  # fmt: skip


@cache
def code_lines(text: str) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            value = getattr(first := node.body[0], "value", None)
            if isinstance(first, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                documented.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - documented)


def lines_of_rooms(rooms: dict[str, dict[str, object]]) -> Counter[str]:
    """Code lines by room."""
    found: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        room = next(room for room, each in rooms.items() if name.startswith(tuple(each["files"])))  # type: ignore[arg-type]
        found[room] += code_lines(path.read_text(encoding="utf-8"))
    return found


def test_lines_are_counted() -> None:
    text = '"""Doc\n\nstring."""\n\nx = (1,\n  # why\n  2)\n\n\ndef f():\n    """Doc."""\n    return """a\n\nb"""\n'
    assert code_lines(text) == len(["x = (1,", "2)", "def f():", *["return", "", "b"]])


def test_no_room_grows() -> None:
    rooms = json.loads(ROOMS.read_text(encoding="utf-8"))
    found = lines_of_rooms(rooms)
    grown = {room: (found[room], each["most"]) for room, each in rooms.items() if found[room] > each["most"]}
    assert grown == {}, "code lines, and at most; see the docstring of this module"


def test_no_room_is_recorded_far_above_its_size() -> None:
    rooms = json.loads(ROOMS.read_text(encoding="utf-8"))
    found = lines_of_rooms(rooms)
    assert {room: found[room] for room, each in rooms.items() if found[room] < each["most"] - SLACK} == {}


def test_no_file_is_too_long() -> None:
    sizes = {path.name: code_lines(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


if __name__ == "__main__":
    rooms = json.loads(ROOMS.read_text(encoding="utf-8"))
    for room, lines in lines_of_rooms(rooms).items():
        rooms[room]["most"] = lines
    rows = [f"  {json.dumps(room)}: {json.dumps(each)}" for room, each in rooms.items()]
    ROOMS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
