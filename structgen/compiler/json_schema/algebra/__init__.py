"""And, or and not of schemas: a document in, the normal form of its values out.

A goal is a conjunction of subschemas, each as it is or negated; it is expanded, type by type, into a disjunction of
cases (disjunctive normal form), with equal goals worked out once. docs/internals/json_algebra.md has the rules.

Read `nodes` and `goals`, `outline` with `assertions`, `expansion` (the step from a goal to its cases), `family` and
`dnf` (how cases combine), `array_cases` with `distinct`, `objects`; `unsatisfiable` says why nothing is left,
`sharing` makes equal subschemas one.
"""
