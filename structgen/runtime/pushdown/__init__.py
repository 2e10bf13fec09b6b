"""The engine of JSON Schemas and GBNF: automata with a stack.

Comes in: `PushdownTables`. Goes out: a `Machine` whose configurations are graph-structured stacks (Tomita 1986). What
a state decides whatever lies below it is worked out once; what it leaves open are residual nodes of the trie, at
which the state below goes on (docs/internals/stacks.md has the equations).

Read `tables`, `machine`, `stacks`, `partial_masks` with `walker` (the kernels' callers) and `counts`, `shared_masks`
with `subautomata` (rows that belong to the vocabulary), `fill` (what an eager compile works out), `storage`,
`distances`; `flow` has the moves as a graph.
"""
