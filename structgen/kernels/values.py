"""Numbers that kernels and their callers share."""

from __future__ import annotations

DEAD = -1

#: Results of kernels that can stop early. After `TOO_MUCH_WORK` and `NO_ROOM` (in an array) they can go on.
OK, CONFLICT, TOO_MANY_STATES, TOO_MUCH_WORK, NO_ROOM = 0, 1, 2, 3, 4

#: In a list of gaps between ids: a step of this many ids without an id at its end.
LONG_GAP = 0xFFFF

#: Operations of a record: `SET` starts a loop's count at 1, `INC` adds 1 and looks at the new count; `MARK` adds to
#: a set and tests it.
SET, INC, MARK = 0, 1, 2

#: Where a count lies: below the minimum, from the minimum to below the maximum, at the maximum.
LOW, MID, HIGH = 0, 1, 2

# Kinds of epsilon edges in an NFA: plain, into a counted loop after its first turn, and after a further turn.
PLAIN, ENTER, AGAIN = 0, 1, 2

# How a counter moved on the way into an NFA state.
_SAME, _PLUS_ONE, _AT_ONE = 0, 1, 2
