"""The store: where texts of one automaton have come to, in arrays that kernels read and write.

Comes in: an automaton with a stack and its partial masks. Goes out: configurations as numbers, where tokens lead from
them, and masks, written by one kernel to the caller's array. docs/internals/configuration_store.md has the tables.

Read `store`, `configuration`.
"""
