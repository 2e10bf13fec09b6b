"""Every Numba kernel of structgen, a file for each data structure.

Kernels take scalars and arrays only, never slice inside a hot loop (a slice costs two atomic reference counts),
and check no bounds: their callers hand them arrays that were validated or built by structgen itself. Where a
kernel could run for long on a hostile definition it counts its work and stops at a limit.

Why no write passes the end of an array, whatever tables say, if their numbers are in bounds (`runtime.columns`):

- Arrays by depth have more rows than a token has bytes. The trie and the token ids are the vocabulary's own.
- Outputs of tokens or nodes are as long as there are of these, and a walk comes to each node once: it goes on, and
  the nodes that it enters at ascend, none twice (`structgen.runtime.rows.residuals`). `walk_lexer`, which enters at
  one after the other, and whatever else may find more, look at the length of an output before they write to it.
- Counting walks cut intervals at bounds that are in order, so that pieces are disjoint and one at most is whole; each
  piece of a depth leads to three at most, for which there is room first.
- Room for threads and cells of a stack is looked at before each one (`_follow`, `_unite`, `_stack_cell`, `_cell`),
  for those that a configuration begins with, too (`_start_stack`).
- What is remembered from call to call has a last number, at which `FULL` is returned, and more slots than numbers.

Conventions: ``-1`` is the dead state. A transition table is ``int32[states * classes]``, row after row; an entry
below -1 is ``-2 - r``, counter record ``r`` (see `structgen.compiler.automata.dfa`).
"""

from __future__ import annotations

from .automaton_walks import walk_counted as walk_counted
from .automaton_walks import walk_difference as walk_difference
from .automaton_walks import walk_narrow as walk_narrow
from .automaton_walks import walk_row as walk_row
from .batches import ACCEPTED as ACCEPTED
from .batches import ENDED as ENDED
from .batches import FREE as FREE
from .batches import PENDING as PENDING
from .batches import REJECTED as REJECTED
from .batches import UNKNOWN as UNKNOWN
from .batches import advance_batch as advance_batch
from .batches import change_rows as change_rows
from .batches import copy_rows as copy_rows
from .batches import find_token as find_token
from .batches import follow_tree as follow_tree
from .batches import mark_nodes as mark_nodes
from .batches import roll_back as roll_back
from .batches import take_texts as take_texts
from .batches import token_slot as token_slot
from .distances import FAR as FAR
from .distances import FIXED as FIXED
from .distances import cheapest_pops as cheapest_pops
from .distances import count_back as count_back
from .distances import most_gained as most_gained
from .distances import walk_outcomes as walk_outcomes
from .distances import walk_reached as walk_reached
from .distances import walk_within as walk_within
from .lexer_walks import BEATEN as BEATEN
from .lexer_walks import L_BELOW as L_BELOW
from .lexer_walks import L_IDS as L_IDS
from .lexer_walks import L_NODE as L_NODE
from .lexer_walks import L_SET as L_SET
from .lexer_walks import LEXER_PROGRESS as LEXER_PROGRESS
from .lexer_walks import NOT_FOLLOWED as NOT_FOLLOWED
from .lexer_walks import most_completed as most_completed
from .lexer_walks import walk_lexer as walk_lexer
from .minimisation import coarsest_partition as coarsest_partition
from .parser_walks import FULL as FULL
from .parser_walks import GSS_PROGRESS as GSS_PROGRESS
from .parser_walks import IS_LONG as IS_LONG
from .parser_walks import IS_ROW as IS_ROW
from .parser_walks import MOST_IDS as MOST_IDS
from .parser_walks import REFUSED as REFUSED
from .parser_walks import SHORT as SHORT
from .parser_walks import UNFINISHED as UNFINISHED
from .parser_walks import add_groups as add_groups
from .parser_walks import lay_out_places as lay_out_places
from .parser_walks import walk_stack_masks as walk_stack_masks
from .products import co_accessible as co_accessible
from .products import intersect as intersect
from .pushdown_walks import A_CLASS_OF as A_CLASS_OF
from .pushdown_walks import A_CLASSES as A_CLASSES
from .pushdown_walks import A_GROUPS as A_GROUPS
from .pushdown_walks import A_LIVE as A_LIVE
from .pushdown_walks import A_LOOPS as A_LOOPS
from .pushdown_walks import A_MOVES as A_MOVES
from .pushdown_walks import A_RECORDS as A_RECORDS
from .pushdown_walks import A_RETURNS as A_RETURNS
from .pushdown_walks import A_SEQUENCE as A_SEQUENCE
from .pushdown_walks import A_STATES as A_STATES
from .pushdown_walks import A_TABLE as A_TABLE
from .pushdown_walks import A_TESTS as A_TESTS
from .pushdown_walks import ARENA_HEADER as ARENA_HEADER
from .pushdown_walks import CELL as CELL
from .pushdown_walks import OVERFLOW as OVERFLOW
from .pushdown_walks import P_BELOW as P_BELOW
from .pushdown_walks import P_CELLS as P_CELLS
from .pushdown_walks import P_END as P_END
from .pushdown_walks import P_ENTERED as P_ENTERED
from .pushdown_walks import P_IDS as P_IDS
from .pushdown_walks import P_NODE as P_NODE
from .pushdown_walks import P_SETS as P_SETS
from .pushdown_walks import P_STAMP as P_STAMP
from .pushdown_walks import PROGRESS as PROGRESS
from .pushdown_walks import TOO_FAR as TOO_FAR
from .pushdown_walks import spread_counts as spread_counts
from .pushdown_walks import walk_closed as walk_closed
from .pushdown_walks import walk_sets as walk_sets
from .pushdown_walks import walk_stack as walk_stack
from .pushdown_walks import walk_stack_counted as walk_stack_counted
from .pushdown_walks import walk_stack_difference as walk_stack_difference
from .rows import flip_gaps as flip_gaps
from .rows import flip_ids as flip_ids
from .rows import nearest_base as nearest_base
from .rows import set_bits as set_bits
from .subset_construction import determinize as determinize
from .values import AGAIN as AGAIN
from .values import CONFLICT as CONFLICT
from .values import DEAD as DEAD
from .values import ENTER as ENTER
from .values import HIGH as HIGH
from .values import INC as INC
from .values import LOW as LOW
from .values import MARK as MARK
from .values import MID as MID
from .values import NO_ROOM as NO_ROOM
from .values import OK as OK
from .values import PLAIN as PLAIN
from .values import SET as SET
from .values import TOO_MANY_STATES as TOO_MANY_STATES
from .values import TOO_MUCH_WORK as TOO_MUCH_WORK
