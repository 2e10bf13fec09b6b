"""The engine of regexes: byte automata with counters.

Comes in: `Tables`. Goes out: a `Machine` whose configurations are integers. Rows are worked out by one walk of the
vocabulary's trie through the automaton; docs/internals/walks.md derives the kernels.

Read `tables`, `machine`, `partial_masks`, `distances`.
"""
