"""What the three engines are built from.

Comes in and goes out: numbers and arrays. `machine` states the interface between engines and guides;
`interned_machine` is what machines with stacks share: configurations, each once, that remember where tokens led (the
cache of states of a lazy DFA, as in RE2); `reference_walk` a plain walk of the vocabulary over any of them.

Read `machine`, `reference_walk`, `interned_machine`, `bitsets`, `digraph` (least solutions over relations, DeRemer
and Pennello 1982), `lazy_table`.
"""
