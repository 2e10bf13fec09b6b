"""JSON Schema, every draft from 4 on: a document in, a pushdown program of its values' texts out.

Phases, a room each: `read` (every draft's spelling brought to one) -> `algebra` (and, or and not, by disjunctive
normal form over the six types) -> `normal_form` (what is allowed of each type, without contradictions) -> `lower`
(states that read and write the text). `strings` and `numbers` are the value sets that the algebra works on.

Read `compiler` and `normalise`, which call the phases in order; docs/internals/json_algebra.md has the rules.
"""
