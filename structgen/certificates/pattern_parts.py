"""Parts of regexes: alternatives that no text can use, and repeats without a bound."""

from __future__ import annotations

from ..budget import Meter
from ..compiler.patterns.dialects import read
from ..compiler.patterns.lower import language
from ..compiler.patterns.measures import parts_below, post_order
from ..compiler.patterns.syntax import Alternate, Chars, Concat, Look, Node, Repeat
from ..definitions import Regex
from .values import Finding

_DOING = "looking for alternatives that no text can use"


def unused(definition: Regex, meter: Meter) -> tuple[list[Finding], int]:
    """Alternatives that no text can use; those within look-around are not looked at.

    An alternative is used by some text if the pattern that has to use it, in place of all others, has one. (A repeat
    around it may take any number of turns besides, so one that only a bound excludes is not found.)
    """
    tree = read(definition, meter)
    nodes = list(post_order(tree))
    above = {id(child): node for node in nodes for child in parts_below(node, None)}
    choices = [node for node in nodes if isinstance(node, Alternate) and node.columns]
    decides = any(isinstance(node, Look) or (isinstance(node, Chars) and not node.ranges) for node in nodes)
    found, looked = [], 0
    for choice in choices:
        for number, (option, column) in enumerate(zip(choice.options, choice.columns, strict=True), 1):
            needed = _needing(option, choice, above)
            if needed is None:
                break
            looked += 1
            if decides and not language(needed, meter).states:
                says = f"alternative {number} of {len(choice.options)} is used by no text"
                found.append(Finding("warning", says, f"column {column}"))
    return found, looked


def _needing(option: Node, choice: Node, above: dict[int, Node]) -> Node | None:
    """The pattern that has to use an option; None within look-around."""
    here, inner = choice, option
    while (node := above.get(id(here))) is not None:
        if isinstance(node, Look):
            return None
        if isinstance(node, Concat):
            inner = Concat(tuple([inner if part is here else part for part in node.parts]))
        elif isinstance(node, Repeat):
            if node.max == 0:
                inner = Chars(())
            elif node.max != 1:
                rest = Repeat(node.item, 0, None if node.max is None else node.max - 1, node.column)
                inner = Concat((rest, inner, rest))
        here = node
    return inner


def unbounded(definition: Regex, meter: Meter) -> tuple[list[Finding], int]:
    """Repeats without an upper bound, but for those within look-around."""
    columns = unbounded_repeats(read(definition, meter))
    return [Finding("note", "a repeat without a bound", f"column {column}") for column in columns], len(columns)


def unbounded_repeats(tree: Node) -> list[int]:
    """The columns of repeats without an upper bound, but for those within look-around."""
    found, todo = set(), [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, Repeat) and node.max is None:
            found.add(node.column)
        if not isinstance(node, Look):
            todo += parts_below(node, None)
    return sorted(found)
