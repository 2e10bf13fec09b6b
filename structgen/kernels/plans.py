"""Numbers of plans of sections, which the reader of files makes and the kernel of `columns` reads."""

from __future__ import annotations

#: Columns of a plan: the dtypes that a section may have, bits of `U1` and its like; what becomes of it; totals, by
#: their numbers or -1: rows, columns, the end of starts, what every number is below, what lists of gaps come to, what
#: members are below, how many flags there are; the least number; what a part is long at most; where its fields are, and
#: how many; its order; the section that has the starts of its parts; what the first number of each part is below; the
#: section with the lower ends of ranges; and whether it may be missing.
P_DTYPES, P_USE, P_ROWS, P_WIDTH, P_STARTS, P_LIMIT, P_GAPS, P_MEMBERS, P_FLAGS = range(9)
P_LEAST, P_WIDEST, P_FIELDS, P_COUNT, P_ORDER, P_WITHIN, P_FIRST, P_ENDS, P_OPTIONAL, COLUMN_PLAN = range(9, 19)

#: Dtypes of sections.
U1, U2, U4, I4 = 1, 2, 4, 8

#: What becomes of a section: it is copied, cast to ``int32``, or used where it lies.
COPIED, CAST, MAPPED = range(3)

#: What the numbers do, or those of the first column.
ANY_ORDER, NEVER_FALLS, RISES = range(3)

#: Columns of a total: quantities by number, or -1, and a number, to be added up; of a field: the least number, and the
#: total that it is below.
TOTAL_WORDS, FIELD_WORDS = 4, 2

#: A quantity that is not known yet: whatever is to be below it is refused, and so is any length.
NOT_KNOWN = -1 << 40

#: Columns of what is found: address (0 where a section is missing), bytes, dtype, columns or 0 for one dimension; and
#: of what becomes of it: address, numbers, the least and the largest of them.
F_ADDRESS, F_BYTES, F_DTYPE, F_WIDTH, F_TARGET, F_SIZE, F_LOW, F_TOP, SECTION_FOUND = range(9)

#: Words of what is wrong: the column, one of those below, the number that is there, what it must be (below, or at
#: least, or the number before it), and which field it is in, or -1.
WRONG_WORDS = 5
W_MISSING, W_DTYPE, W_DIMENSIONS, W_ROWS, W_WIDTH, W_BEGINS, W_LAST = range(7)
W_TOP, W_LOW, W_MEMBER, W_PART, W_ORDER, W_FIRST, W_LIST, W_OVERLAP = range(7, 15)
