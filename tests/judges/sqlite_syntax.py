"""What SQLite's own parser says of statements."""

from __future__ import annotations

import re
import sqlite3

#: Blanks, semicolons and comments.
_NOTHING = re.compile(r"(?:[ \t\r\n\f;]|--[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)


def syntax_error(statement: str) -> str:
    """What SQLite finds wrong with a statement's syntax; nothing where an SQLite is too old to judge."""
    if sqlite3.sqlite_version_info < (3, 39):
        return ""
    database = sqlite3.connect(":memory:")
    for table in "atu":
        database.execute(f"CREATE TABLE {table}(a, b, c)")
    try:
        database.execute(statement if re.match(r"(?i)\s*explain\b", statement) else f"EXPLAIN {statement}")
    except sqlite3.Error as error:
        return str(error) if re.search("syntax error|incomplete input|unrecognized token", str(error)) else ""
    finally:
        database.close()
    return ""


def split(script: str) -> list[str]:
    """The statements of a script, as SQLite's shell finds them."""
    found, rest = [""], script
    while rest:
        piece, semicolon, rest = rest.partition(";")
        found[-1] += piece + semicolon
        if semicolon and sqlite3.complete_statement(found[-1]):
            found.append("")
    return [each for each in found if not _NOTHING.fullmatch(each)]
