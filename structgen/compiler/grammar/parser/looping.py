"""Whether a parser whose conflicts were decided can reduce without end, before one terminal.

It can only where a rule comes to itself without reading anything (Soisalon-Soininen & Tarhio 1988), and then only if
conflicts were decided in favour of that. So for such grammars all runs are looked at: from each state on top of each
that it can be on, before each terminal, up to where the parser shifts, refuses, or takes away the state below. A run
does not end if it puts a state once more where it was, or once more on the same one higher up: what it does above a
state does not depend on what lies below.
"""

from __future__ import annotations

from itertools import pairwise

from ....budget import Meter
from ....errors import DefinitionError
from ....runtime.core.digraph import bits
from .conflicts import comes_to_itself
from .lalr import Lalr


def check(table: Lalr, meter: Meter) -> None:
    """Raise `DefinitionError` where the parser reduces without end."""
    if not comes_to_itself(table.symbols):
        return
    for below, (shifts, gotos) in enumerate(zip(table.shifts, table.gotos, strict=True)):
        meter.check_time("looking for what the parser reduces without end")
        for top in {*shifts.values(), *gotos.values()}:
            terminals = 0
            for before in table.reductions[top].values():
                terminals |= before
            for terminal in bits(terminals):
                rule = _endless(table, below, top, terminal)
                if rule >= 0:
                    raise DefinitionError(
                        f"the rule '{table.symbols.shown(rule)}' is reduced without end before"
                        f" {table.symbols.names[terminal]}",
                        where=f"rule {table.symbols.names[table.symbols.rules[rule][0]]}",
                        remedy="Have no rule begin with itself behind something empty, or be just itself.",
                    )


def _endless(table: Lalr, below: int, top: int, terminal: int) -> int:
    """A rule that a run reduces without end, -1 where the run ends."""
    stack = [below, top]
    seen: list[set[int]] = [set(), {top}]  # by height: what was put there, while what lies below stayed
    while True:
        rules = [rule for rule, before in table.reductions[stack[-1]].items() if before >> terminal & 1]
        if terminal in table.shifts[stack[-1]] or not rules:
            return -1
        origin, expansion = table.symbols.rules[rules[0]]
        height = len(stack) - len(expansion)
        if height < 1:
            return -1
        target = table.gotos[stack[height - 1]].get(origin)
        if target is None:
            return -1
        del stack[height:], seen[height + 1 :]
        if len(seen) == height:
            seen.append(set())
        if target in seen[height] or (stack[-1], target) in pairwise(stack):
            return rules[0]
        stack.append(target)
        seen[height].add(target)
