"""A regex of one dialect in the spelling of Python's `re`, for grammars, whose terminals are regexes of `re`."""

from __future__ import annotations

from ...budget import Budget, Meter
from ...definitions import Regex
from ...errors import StructgenError
from ..automata import charset
from ..automata.charset import Ranges
from .dialects import read
from .measures import post_order
from .syntax import EMPTY, Alternate, Chars, Concat, Look, Node, Repeat

#: Characters that are written for one regex: a megabyte, which is eighty classes ``\\w`` of Rust's.
_MOST_CHARACTERS = 1 << 20

_SPECIAL = frozenset(r".^$*+?{}[]\|()-/&~#")
_COUNTS = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def as_python(regex: Regex, pattern: str) -> str | None:
    """The regex in the spelling of `re`, without flags; None where ``pattern`` means the same there, with its flags.

    Signs for fewer repetitions are left out, which texts do not depend on, and so are anchors at either end. None as
    well where the regex cannot be read in its dialect, holds other look-around, or takes too much to write.
    """
    meter = Meter(Budget())
    try:
        found = _written(read(regex, meter))
    except StructgenError:
        return None
    try:
        tree = read(Regex(pattern, regex.flags), meter)
        is_lazy = any(isinstance(node, Repeat) and node.lazy for node in post_order(tree))
        same = not is_lazy and found == _written(tree, anchors=True)
    except StructgenError:
        same = False
    return None if same else found


def _written(tree: Node, *, anchors: bool = False) -> str | None:
    parts: list[str] = []
    size = 0
    classes: dict[Ranges, str] = {}
    todo: list[tuple[Node | str, bool, bool]] = [(tree, True, True)]  # whether it is at the beginning, and the end
    while todo:
        node, is_first, is_last = todo.pop()
        if isinstance(node, Chars):
            node = classes.get(node.ranges) or classes.setdefault(node.ranges, _class(node.ranges))
        if isinstance(node, str):
            parts.append(node)
            size += len(node)
            if size > _MOST_CHARACTERS:
                return None
        elif isinstance(node, Concat):
            todo += reversed(_sequence(node.parts, is_first, is_last))
        elif isinstance(node, Alternate):
            todo.append((")", False, False))
            for option in reversed(node.options):
                todo += [(option, is_first, is_last), ("|", False, False)]
            todo[-1] = ("(?:", False, False)
        elif isinstance(node, Repeat):
            count = _COUNTS.get((node.min, node.max)) or _count(node.min, node.max)
            brackets = ("", "") if isinstance(node.item, Chars) else ("(?:", ")")
            todo += [(brackets[1] + count, False, False), (node.item, False, False), (brackets[0], False, False)]
        elif not _is_edge(node) or anchors or not (is_first if node.behind else is_last):
            return None
    return "".join(parts) or "(?:)"


def _sequence(nodes: tuple[Node, ...], is_first: bool, is_last: bool) -> list[tuple[Node | str, bool, bool]]:
    """The nodes, and whether each is at the beginning and at the end of all: nothing but anchors is beyond it."""
    inner = [n for n, node in enumerate(nodes) if not _is_edge(node)] or [len(nodes)]
    found: list[tuple[Node | str, bool, bool]] = [
        (node, is_first and n <= inner[0], is_last and n >= inner[-1]) for n, node in enumerate(nodes)
    ]
    return found or [("(?:)", False, False)]


def _is_edge(node: Node) -> bool:
    """Whether a node is the beginning, or the end, of the whole text."""
    return isinstance(node, Look) and node.item is EMPTY and node.whole and not node.negate


def _count(low: int, high: int | None) -> str:
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def _class(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _character(ranges[0][0])
    others = charset.complement(ranges)
    if not others:
        return "(?s:.)"
    sign, spans = ("^", others) if not ranges or len(others) < len(ranges) else ("", ranges)
    return f"[{sign}{''.join(_span(low, high) for low, high in spans)}]"


def _span(low: int, high: int) -> str:
    between = "-" if high > low + 1 else ""
    return _character(low) if low == high else f"{_character(low)}{between}{_character(high)}"


def _character(code: int) -> str:
    character = chr(code)
    if character in _SPECIAL:
        return f"\\{character}"
    if character == " " or (character.isprintable() and character.isascii()):
        return character
    return rf"\x{code:02x}" if code < 0x100 else rf"\u{code:04x}" if code < 0x10000 else rf"\U{code:08x}"
