"""Which reader takes which dialect of regexes: an entry for each."""

from __future__ import annotations

from collections.abc import Callable

from ...budget import Meter
from ...definitions import Regex
from .ecma import EcmaReader
from .parser import PythonReader
from .reader import PatternReader
from .rust import RustReader
from .syntax import Node

#: By the `dialect` of a `Regex`; each is made of a pattern, flags, and the meter of the compile.
READERS: dict[str, Callable[[str, int, Meter], PatternReader]] = {
    "re": PythonReader,
    "ecma": EcmaReader,
    "rust": RustReader,
}


def read(regex: Regex, meter: Meter) -> Node:
    """What a regex means as the whole of a text. Raises as `structgen.compiler.patterns.parser.parse`."""
    reader = READERS[regex.dialect](regex.pattern, regex.flags, meter)
    return reader.parse()
