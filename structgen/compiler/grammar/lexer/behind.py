"""What look-behind in a terminal may see: nothing before the terminal, which is up to the rules."""

from __future__ import annotations

from ....budget import Meter
from ....errors import UnsupportedError
from ...patterns.measures import children, measure, post_order
from ...patterns.syntax import Concat, Look, Node, Repeat


def check_behind(tree: Node, meter: Meter) -> None:
    """Refuse look-behind that could see what is before the terminal. Raises `UnsupportedError`."""
    facts = measure(tree, meter)
    least = {id(tree): 0}  # the fewest characters before a node; none within look-around
    for node in reversed([*post_order(tree)]):  # those that contain others before these
        before = least.get(id(node))
        if before is None or (isinstance(node, Repeat) and node.max == 0):
            continue
        if isinstance(node, Look):
            longest = facts[id(node.item)].max_width
            if node.behind and (longest is None or before < longest):
                raise UnsupportedError(
                    "a look-behind sees what is before its terminal",
                    where=f"column {node.column}",
                    remedy="Let the rules say what may come before a terminal.",
                )
            continue
        for part in children(node):
            least[id(part)] = min(before, least.get(id(part), before))
            if isinstance(node, Concat):
                before += facts[id(part)].min_width
