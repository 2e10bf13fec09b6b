"""Every Numba kernel of structgen, a file for each data structure.

Kernels take scalars and arrays only, of one type each, check no bounds, allocate nothing and raise nothing: their
callers hand them arrays that were validated or built by structgen itself, scratch and room for results among them. A
kernel runs without the GIL, so scratch belongs to one thread. What does not fit into the room is a status, and the
caller comes again with more. Scalars are returned, and tuples of them. Where a kernel could run for long on a hostile
definition it counts its work and stops at a limit. No divisor is 0: a division would not say so.

Why no write passes the end of an array, whatever tables say, if their numbers are in bounds (`runtime.columns`):

- Arrays by depth have more rows than a token has bytes. The trie and the token ids are the vocabulary's own.
- Outputs of tokens or nodes are as long as there are of these, and a walk comes to each node once: it goes on, and
  the nodes that it enters at ascend, none twice (`structgen.runtime.rows.residuals`). `walk_lexer`, which enters at
  one after the other, and whatever else may find more, look at the length of an output before they write to it.
- Counting walks cut intervals at bounds that are in order, so that pieces are disjoint and one at most is whole; each
  piece of a depth leads to three at most, for which there is room first.
- Room for threads and cells of a stack is looked at before each one (`_follow`, `_unite`, `_stack_cell`, `_cell`),
  for those that a configuration begins with, too (`_start_stack`). A set has a number only where there is room for
  one more behind it (`_number_last`), and a number that no set has is dead.
- Pieces of a parser's stack that are kept have 24 states at most, and are made longer by one before that is looked
  at; there is room for 64. Room for pairs, bases and what waits is looked at before each one (`replaced_pieces`).
- Room for a row, a thread and what was seen of it is looked at before each one; a row has room for twice the
  look-behind automata of a regex besides (`ordered_subsets`).
- What is remembered from call to call has a last number, at which `FULL` is returned, and more slots than numbers.

Conventions: ``-1`` is the dead state. A transition table is ``int32[states * classes]``, row after row; an entry
below -1 is ``-2 - r``, counter record ``r`` (see `structgen.compiler.automata.dfa`).
"""

from __future__ import annotations

from .automaton_walks import *
from .batches import *
from .distances import *
from .grammar import *
from .interrupts import interruptible
from .key_tries import *
from .products import *
from .pushdown import *
from .rows import *
from .subset_construction import *
from .substrings import *
from .values import *

#: The kernels that return arrays.
_MAKE_ARRAYS: set[str] = set()

for _name, _each in list(globals().items()):
    interruptible(_each, makes_arrays=_name in _MAKE_ARRAYS)
