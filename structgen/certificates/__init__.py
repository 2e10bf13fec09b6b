"""What can be proved of an index, and how two definitions differ.

Comes in: an `Index`, or two definitions. Goes out: a `Certificate`, whose items are proved, refuted with a witness,
or not decided within the budget; a `Difference`, with a shortest text that one of two accepts and the other does not.

Read `values` (what comes out), `languages` (emptiness, finiteness, shortest and longest texts of context-free
languages), `loops` (counts of these, by doubling), `configurations` (the same where there is only a machine to
follow), `texts`, `tokens` with `possible` (items), `parts` with those of schemas, patterns and grammars, `certify`
(one after the other, under one budget); `difference` with `simulation` (proofs of inclusion).
"""
