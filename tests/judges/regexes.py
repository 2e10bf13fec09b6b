r"""Judges of regex dialects: node for JavaScript, and pydantic-core, which runs Rust's crate; and random patterns."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Sequence

from pydantic_core import SchemaError, SchemaValidator, ValidationError

#: Characters that dialects tell apart: spaces, ends of lines, digits, and letters that fold to each other.
LETTERS = [*"aAbBkKsSiI01_- .\n\r\t#]}&~^,", *"\x85\xa0\u2028\ufeff\u0660éÉßẞſ\u212aİıσςΣⅷ\u24d0\u0301\u200d😀"]

_NODE = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
const read = (pattern, flags) => {
  const needs_u = /[iu]/.test(flags) || /\\\\[pPu][{]/.test(pattern);
  for (const each of needs_u ? ["u" + flags] : ["u" + flags, flags]) {
    const [start, end] = flags.includes("m") ? ["(?<![^])", "(?![^])"] : ["^", "$"];
    try { new RegExp(pattern, each); return new RegExp(`${start}(?:${pattern})${end}`, each); } catch (e) {}
  }
  return null;
};
console.log(JSON.stringify(cases.map(([pattern, flags, texts]) => {
  const found = read(pattern, flags);
  return found && texts.map((text) => found.test(text));
})));
"""


def node_matches(cases: Sequence[tuple[str, str, Sequence[str]]]) -> list[list[bool] | None]:
    """Which of its texts each pattern is all of, under letters of flags; None for one that is no pattern.

    It is read with the flag ``u``; without, where only that reads it and what differs between the two is not in it.
    """
    done = subprocess.run(["node", "-e", _NODE], input=json.dumps(cases), capture_output=True, text=True, check=True)
    found: list[list[bool] | None] = json.loads(done.stdout)
    return found


def rust_matches(pattern: str, texts: Sequence[str]) -> list[bool] | None:
    """The same of one pattern, of Rust's crate. Flags are said within it."""
    whole = rf"\A(?:{pattern}" + "\n" * pattern.startswith("(?x)") + r")\z"
    try:
        SchemaValidator({"type": "str", "pattern": pattern})
        judge = SchemaValidator({"type": "str", "pattern": whole})
    except SchemaError:
        return None

    def matches(text: str) -> bool:
        try:
            judge.validate_python(text)
        except ValidationError:
            return False
        return True

    return [matches(text) for text in texts]


#: What patterns of both are made of, and of one alone.
_COMMON = [
    *"abkKsiσß_0", "é", ".", r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"\.", r"\n", r"\t", r"\x41", r"\u00e9",
    r"\u{41}", r"\p{L}", r"\P{L}", r"\p{Lu}", r"\p{gc=Ll}", "[ab]", "[^ab]", r"[\d_]", r"[^\s]", r"[\W]", "[a-k]",
    r"[\]]", "[-a]", "[a-]", "^", "$", r"\b", r"\B", "(?:)",
]  # fmt: skip
_ECMA = [
    r"\cJ", r"\cj", r"\/", r"\-", "[]", "[^]", r"[\b]", r"\0", "]", "}", r"\q", r"\1", r"[\d-x]", r"\ud83d\ude00",
    "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", r"\A", r"\a", "(?P<n>a)", "(?i)", "(?#c)", "a{,2}", "[]a]", r"\Z",
]  # fmt: skip
_RUST = [
    r"\A", r"\z", r"\a", r"\pL", r"\PN", r"\p{^L}", r"\p{any}", "[[:alpha:]]", "[[:^digit:]]", "[a-k&&[^b]]",
    r"[\w--\d]", "[a-c~~b-k]", "[^a--A]", "[]a]", r"[\d-x]", r"\b{start}", r"\b{end-half}", r"\<", r"\>", "(?i)",
    "(?-i)", "(?x)", "(?s)", "(?m)", "(?U)", "{", "a{,2}", "]", r"\cJ", r"\Z", "(?=a)", r"\1", r"\U00000041", " ",
    "#", r"\ ", r"\#", "[ a]", "[a#\n]",
]  # fmt: skip
_GROUPS = {
    "ecma": ["({})", "(?:{})", "(?<n>{})"],
    "rust": ["({})", "(?:{})", "(?<n>{})", "(?P<n>{})", "(?i:{})", "(?s-i:{})"],
}
_SIGNS = ["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "??"]


def patterns(dialect: str, count: int, seed: int) -> Iterator[str]:
    """Random patterns of a dialect, some of them none."""
    draw = random.Random(seed)
    atoms: list[str] = _COMMON * 2 + (_ECMA if dialect == "ecma" else _RUST)

    def part(deep: int) -> str:
        kind = draw.random()
        if deep == 0 or kind < 0.25:
            return draw.choice(atoms)
        if kind < 0.65:
            return part(deep - 1) + part(deep - 1)
        if kind < 0.8:
            return f"(?:{part(deep - 1)}|{part(deep - 1)})"
        if kind < 0.9:
            return str(draw.choice(_GROUPS[dialect])).format(part(deep - 1))
        return part(deep - 1) + draw.choice(_SIGNS)

    for _ in range(count):
        yield part(draw.randrange(5))


def texts(count: int, seed: int) -> list[str]:
    """Every letter, and random short texts."""
    draw = random.Random(seed)
    return ["", *LETTERS, *("".join(draw.choices(LETTERS, k=draw.randint(2, 4))) for _ in range(count))]
