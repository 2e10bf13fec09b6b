"""`GuideBatch`: many sequences over one vocabulary in one call of a kernel.

Comes in: a token for each sequence. Goes out: masks, or numbers of rows that a device holds.

Read `batch`, `lazy_automaton` (configurations as numbered states), `histories` (a forest of configurations),
`drafts` (speculative decoding), `limits` (numbers of tokens).
"""
