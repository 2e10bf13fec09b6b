"""gcc as a judge of C: what it preprocesses, what it finds wrong with the syntax; and the names of typedefs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

HEADERS = "stddef stdint stdio stdarg setjmp time wchar stdlib signal stdbool"


def _has_gcc() -> bool:
    if shutil.which("gcc") is None:
        return False
    done = subprocess.run(["gcc", "--version"], capture_output=True, check=False)
    return b"Free Software Foundation" in done.stdout  # other compilers answer to the name, too


HAS_GCC = _has_gcc()


def complaints(text: bytes, standard: str = "c11") -> list[str]:
    """The errors that gcc finds, in its words."""
    if not HAS_GCC:
        return []
    source = "".join(f"#include <{name}.h>\n" for name in HEADERS.split()).encode() + text + b"\n"
    command = ["gcc", "-fsyntax-only", f"-std={standard}", "-w", "-x", "c", "-"]
    done = subprocess.run(command, input=source, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return [line for line in done.stderr.decode(errors="replace").splitlines() if "error: " in line]


def syntax_errors(errors: list[str]) -> list[str]:
    """Those about the syntax; names that nobody declared, and types that don't fit, are not."""
    kinds = "expected|stray|missing terminating|invalid suffix|unterminated|empty character|exponent|invalid digit"
    return [line for line in errors if re.search(f"error: ({kinds})", line)]


def preprocessed(source: str) -> str | None:
    """What `gcc -E` makes of a text; None where it complains, or is not there."""
    if not HAS_GCC:
        return None
    command = ["gcc", "-E", "-std=gnu11", "-x", "c", "-"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    return None if done.returncode else done.stdout.decode()


_TOKEN = re.compile(
    r"""(?:[ \t\r\n\v\f]|\#[^\n]*|//[^\n]*|/\*.*?\*/)+ | ([A-Za-z_$][\w$]* | (?:u8|[uUL])?"(?:[^"\\]|\\.)*"
    | [uUL]?'(?:[^'\\]|\\.)*' | \.?[0-9](?:[eEpP][-+]|[\w.])* | .)""",
    re.DOTALL | re.VERBOSE,
)

#: Words of a declaration with something in parentheses that declares nothing.
_WITH_OPERANDS = {"__attribute__", "__asm__", "asm", "typeof", "__typeof__", "__typeof", "_Alignas", "_Atomic"}

_QUALIFIERS = {"const", "volatile", "restrict", "__const", "__volatile__", "__restrict", "__restrict__"}


def typedef_names(text: str) -> set[str]:
    """The names that the typedefs of a preprocessed text declare, in whatever scope."""
    tokens = [token for token in _TOKEN.findall(text) if token]
    found: set[str | None] = set()
    for i, token in enumerate(tokens):
        if token == "typedef":
            found |= {_declared(part) for part in _declarators(tokens, i + 1)}
    return {name for name in found if name}


def _declarators(tokens: list[str], start: int) -> Iterator[list[str]]:
    """What stands between commas, up to the semicolon; the specifiers are before the first."""
    i = start
    while i < len(tokens) and tokens[i] != ";":
        if tokens[i] == ",":
            yield tokens[start:i]
            start = i + 1
        i = _behind(tokens, i)
    yield tokens[start:i]


def _declared(tokens: list[str]) -> str | None:
    """The name in a declarator, specifiers before it or not: the last word before parameters, bounds or the end."""
    i, name = 0, None
    while i < len(tokens):
        token, end = tokens[i], _behind(tokens, i)
        if token == "[":
            break
        if token == "(" and (not i or tokens[i - 1] not in _WITH_OPERANDS):
            inside, more = tokens[i + 1 : end - 1], tokens[end : end + 1]
            is_declarator = inside[:1] in (["*"], ["("], ["__attribute__"]) or more in (["("], ["["])
            return _declared(inside) if is_declarator else name
        if token.isidentifier() and token not in _WITH_OPERANDS | _QUALIFIERS:
            name = token
        i = end
    return name


def _behind(tokens: list[str], i: int) -> int:
    """The place behind a token, or behind all that it opens."""
    depth = 0
    while i < len(tokens):
        depth += (tokens[i] in "([{") - (tokens[i] in ")]}")
        i += 1
        if depth <= 0:
            break
    return i
