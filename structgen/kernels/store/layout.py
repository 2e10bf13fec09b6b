"""The tables of a store and of the automaton that it is for, by their places in two heads.

A *head* is an ``int64`` array. Where it has a table, two words are the address of the table's first number and the
length of its first dimension. Other words are numbers. A kernel is given a head, and reads its tables by `jit.table`:
a call with one array costs a fifth of one with fifteen.
"""

from __future__ import annotations

from ..jit import table

# -- of an automaton over a vocabulary ------------------------------------------------------------------------

#: The arena (``int32``, see `structgen.kernels.pushdown.arena`; without any, nothing can be stepped), the offsets and
#: bytes of tokens (``uint32``, ``uint8``), and the EOS ids as a row (``int32``).
M_ARENA, M_OFFSETS, M_BYTES, M_EOS = 0, 2, 4, 6

#: Partial masks: residual list, state, count, row, next residual list, ``int64[*, 5]``, found by ``int32`` slots. Those
#: of a file, ``int32[*, 5]``, in order; and stretches of counts, ``int32[*, 4]``: state, first count, row, next list.
M_PARTS, M_PART_SLOTS, M_STORED, M_STRETCHES = 8, 10, 12, 14

#: The head of the row pool; bytes of the longest token; how many partial masks there are; how often rows were
#: forgotten; whether stacks are told apart that add nothing to others; whether steps and masks are beyond kernels.
M_POOL, M_LONGEST, M_USED, M_GENERATION, M_TELLS, M_BEYOND = 16, 18, 19, 20, 21, 22

#: Sets of tokens that are taken by their ids, as rows of as many words as EOS ids have, ``int32[*]``.
M_SETS = 23

#: For what is decided: the heads of the trie and of the residual lists; by class of bytes how many nodes of the trie
#: are below these, ``float64``; the states that do as others in two parts, ascending, ``int32``; what the entries of a
#: state weigh at least that is compared with another, and what part of that the widest one, ``float64[2]``; from how
#: many nodes on a state that counts is wide; nodes that a short walk looks at; and the key of the partial mask that
#: takes a longer one: residual list, state, and what stands for a count.
M_TRIE, M_LISTS, M_WEIGHTS, M_INTERIORS, M_SHARES = 25, 27, 29, 31, 33
M_WIDE, M_SHORT, M_LISTED, M_STATE, M_NUMBER, MACHINE_HEAD = range(35, 41)

# -- of a row pool --------------------------------------------------------------------------------------------

#: By row its base, ``int32``, and where its gaps begin, ``int64[rows + 1]``; the gaps, ``uint16``; the whole rows,
#: ``uint32[*]``; the addresses of shared rows, ``int64``, 0 where one has not been fetched; words of a row; ``int32``
#: slots to find rows; how many there are; for how many gaps there was no room; the number of a shared row that is
#: missing.
R_BASE, R_START, R_GAPS, R_WHOLE, R_SHARED, R_WORDS, R_SLOTS, R_COUNT, R_WANTED, R_MISSING, POOL_HEAD = (
    0, 2, 4, 6, 8, 10, 11, 13, 14, 15, 16,
)  # fmt: skip

#: Above this, a base is a shared row (`structgen.runtime.rows.row_pool`).
SHARED_BASE = 1 << 30

#: How long a chain of rows that are each the base of the next may be.
LONGEST_CHAIN = 64

# -- of residual lists ----------------------------------------------------------------------------------------

#: Lists, ``int64[*, 3]``: the address of its nodes, 0 where it has not been fetched, how many these are, and the hash
#: of a list, or `ELSEWHERE` for one that belongs to the vocabulary. ``int32`` slots to find lists; where nodes of more
#: go, ``int32``; how many lists there are; how many of these nodes are in use, for how many there was no room, and
#: which list is missing.
L_LISTS, L_SLOTS, L_NODES, L_COUNT, L_USED, L_WANTED, L_MISSING, LISTS_HEAD = 0, 2, 4, 6, 7, 8, 9, 10
ELSEWHERE = -1

# -- of a vocabulary's trie -----------------------------------------------------------------------------------

#: The trie as `structgen.kernels` has it, and `structgen.vocabulary.trie.Trie.upper`, whose length is that of a row.
V_BYTE, V_DEPTH, V_SKIP, V_FIRST, V_IDS, V_UPPER = range(0, 12, 2)

#: By node the bytes of the longest way down, ``uint16``.
V_HEIGHTS = 12

#: Scratch: threads and cells, slots, and numbers by depth, as `walk_stack` has them; notes, as `walk_stack_difference`
#: has them; a configuration; ids and nodes that a walk finds; nodes of another list; ``uint16`` gaps; a row without any
#: bits, ``uint32``.
V_STACKS, V_SLOTS, V_BY_DEPTH, V_NOTES, V_CONFIG, V_FOUND, V_BELOW, V_NODES, V_GAPS, V_BITS, TRIE_HEAD = range(
    14, 36, 2
)

# -- of a store -----------------------------------------------------------------------------------------------

#: The head of the automaton.
S_MACHINE = 0

#: Stack cells (``int64[*, 5]``, see `structgen.kernels.pushdown.cells`) and ``int32`` slots to find them.
S_CELLS, S_CELL_SLOTS = 2, 4

#: Threads, ``int64[*, 3]``: state, count, cell. Configurations, ``int64[*, 6]``, and ``int32`` slots to find them.
S_THREADS, S_CONFIGS, S_CONFIG_SLOTS = 6, 8, 10

#: Where tokens lead: configuration and token, ``int64``, and a configuration or `DEAD`, ``int32``.
S_TOKENS, S_TARGETS = 12, 14

#: Unions of rows, ``int32[*, 3]``: where its rows begin, how many these are, and the page where it is written out, or
#: below 0; the rows, and slots to find unions, ``int32``; and the head of the pages.
S_UNIONS, S_UNION_ROWS, S_UNION_SLOTS, S_PAGES = 16, 18, 20, 22

#: Scratch: threads ``int64[*, 3]``; places that a mask goes through, ``int64[*, 2]``, and ``int32`` slots to find them;
#: missing partial masks, ``int64[*, 3]``; rows, ``int32``; a row's words, ``uint32``.
S_ROOM, S_PLACES, S_PLACE_SLOTS, S_MISSING, S_FOUND, S_ROW = 24, 26, 28, 30, 32, 34

#: How many there are: cells, threads, configurations, tokens, unions, their rows. Generations that unions are of: that
#: of the pages, and the machine's. A stamp of steps; how many partial masks are missing; how many threads one step may
#: follow over bytes, all together.
N_CELLS, N_THREADS, N_CONFIGS, N_TOKENS, N_UNIONS, N_UNION_ROWS, S_PAGED = range(36, 43)
S_STAMP, S_GENERATION, N_MISSING, S_WORK = 43, 44, 45, 46

#: Where masks are whole rows: by configuration the address and the length of its row, 0 where it is not there. Where
#: masks lack tokens that threads allow: by configuration the address of these ids, ``int32``, and how many they are; 1
#: and 0 for none, 0 where it is not known. The tokens with which Python makes all steps, as a row, ``int32[*]``.
S_DENSE, S_REFUSED, S_APART, STORE_HEAD = 47, 49, 51, 53

#: Columns of a configuration: its threads, whether the text may have ended with an empty stack (above 1 where it has
#: threads of another one and is more than they are: Python makes its steps), whether it is complete, its union of
#: rows, or -1, and tokens that it takes by their ids, the number of a row of `M_SETS` or -1.
C_FIRST, C_COUNT, C_ENDED, C_ACCEPTS, C_UNION, C_SET, CONFIG = range(7)

#: Columns of a union, and what its page is before there is one: none; one when it is written again; or the time after.
U_FIRST, U_COUNT, U_PAGE, UNION = range(4)
NO_PAGE, WANTS_PAGE, MAY_WANT_PAGE = -1, -2, -3

# -- of pages, which all stores of one width share --------------------------------------------------------------

#: Unions that are written out, ``int32[pages, words]`` as one row, their hashes, ``int64[pages]``, and ``int32`` slots
#: to find them; how many there are, and how often they began anew.
G_ROWS, G_HASHES, G_SLOTS, N_PAGES, G_GENERATION, PAGES_HEAD = 0, 2, 4, 6, 7, 8

#: In place of a configuration, or of a mask: the arena is needed; a state is to be lowered; a table is full; the text
#: can be read in too many ways; there is no such configuration; partial masks, or a shared row, are missing; a mask
#: has fewer words than rows have; kernels don't do it; it is not known where a token leads; a residual list is
#: missing; a state is not narrow; what it decides is no list of tokens; there are too many pairs for a table; the trie
#: is needed; it is not known which tokens a mask lacks.
NO_ARENA, NOT_LOWERED, NO_SPACE, TOO_MANY_WAYS, NO_CONFIG, NO_PARTS = range(-2, -8, -1)
NO_SHARED, TOO_SHORT, BEYOND, NOT_STEPPED, NO_LIST, NOT_NARROW, NOT_LISTED, NO_PAIRS, NO_TRIE = range(-8, -17, -1)
NOT_REFUSED = -17

#: In place of where a token leads: it is not known where the one before it does.
UNKNOWN = -18

WRITTEN = 0

words32 = table("int32")
words64 = table("int64")
unsigned16 = table("uint16")
octets = table("uint8")
unsigned32 = table("uint32")
floats = table("float64")
rows32 = table("int32", rows=3)
rows64 = table("int64", rows=3)
notes64 = table("int64", rows=2)
pairs64 = table("int64", 2)
triples64 = table("int64", 3)
cells64 = table("int64", 5)
configs64 = table("int64", 6)
parts64 = table("int64", 5)
parts32 = table("int32", 5)
quads32 = table("int32", 4)
triples32 = table("int32", 3)
