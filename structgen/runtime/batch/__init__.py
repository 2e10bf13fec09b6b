"""`GuideBatch`: many sequences over one vocabulary in one call of a kernel.

Comes in: a token for each sequence. Goes out: masks, or numbers of rows that a device holds.

Read `batch`, `steppers` (the stores of all rows), `numbered_stepper` (what stands for one where there is none),
`histories` (a forest of places), `drafts` (speculative decoding), `limits` (numbers of tokens).
"""
