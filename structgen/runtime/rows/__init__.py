"""Bitmasks: one bit for each token id, ``int32[words]``.

Comes in: sets of token ids. Goes out: rows, each distinct one once; most are stored as differences from a base.

Read `bitmask`, `row_pool`, `residuals` (the nodes of the trie at which a token is left to the state below),
`subtrees` (how far each one reaches), `row_store` (the rows that a batch is at).
"""
