"""How far texts of automata with a stack are from their ends: in bytes exactly, in tokens as bounds, or exactly.

Comes in: a machine. Goes out: cheapest texts, and `StackDistances`; `BudgetedDefinition`. Algorithm: cheapest
derivations (Knuth 1977).

Read `cheapest_texts`, then `token_distances`; `pop_costs`, then `budgeted`.
"""
