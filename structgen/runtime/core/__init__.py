"""What the three engines are built from.

Comes in and goes out: numbers and arrays. `machine` states the interface between engines and guides,
`reference_walk` is a plain walk of the vocabulary over any of them.

Read `machine`, `reference_walk`, `bitsets`, `digraph` (least solutions over relations, DeRemer and Pennello 1982),
`lazy_table`.
"""
