"""Which reader takes which dialect of regexes; each is loaded when a regex of its dialect is first read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...budget import Meter
from ...definitions import Regex

if TYPE_CHECKING:
    from .reader import PatternReader
    from .syntax import Node


def reader_of(regex: Regex, meter: Meter) -> PatternReader:
    """Return the reader of a regex's dialect, at the beginning of its pattern."""
    if regex.dialect == "rust":
        from .rust import RustReader

        return RustReader(regex.pattern, regex.flags, meter)
    if regex.dialect == "ecma":
        from .ecma import EcmaReader

        return EcmaReader(regex.pattern, regex.flags, meter)
    from .parser import PythonReader

    return PythonReader(regex.pattern, regex.flags, meter)


def read(regex: Regex, meter: Meter) -> Node:
    """What a regex means as the whole of a text. Raises as `structgen.compiler.patterns.parser.parse`."""
    return reader_of(regex, meter).parse()
