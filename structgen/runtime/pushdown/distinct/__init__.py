"""Arrays whose items must all differ, objects whose names must: which have been there is part of the configuration.

Comes in: a `PushdownMachine` whose tables mark where these begin, and where their items and names end. Goes out: a
machine around it. The set of values is a persistent search tree, so that forks and rollback cost nothing
(docs/internals/json_lowering.md).

Read `value_set`, `items` (the scalar in progress), `containers` (what is around it), `item_tokens`, `endless`,
`several`, `machine`.
"""
