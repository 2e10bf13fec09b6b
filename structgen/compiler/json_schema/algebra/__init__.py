"""And, or and not of schemas: a document in, the normal form of its values out.

A goal is a conjunction of subschemas, each as it is or negated; it is expanded, type by type, into a disjunction of
clauses (disjunctive normal form), with equal goals worked out once. docs/internals/json_algebra.md has the rules.

Read `nodes` and `goals`, `type_bounds` with `assertions`, `goal_bounds` (goals to bounds), `clauses` and `dnf` (what
arrays and objects have in common, how clauses combine), `expansion` (goals to clauses), `arrays` with `distinct`,
`objects` with `member_rules`; `unsatisfiable` says why nothing is left, `sharing` makes equal subschemas one.
"""
