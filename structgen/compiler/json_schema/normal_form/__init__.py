"""The normal form of a schema: for every JSON type, what is allowed of it.

Comes in: cases. Goes out: `Values`, whose arrays and objects are shapes, spelled out by position and by name, without
parts that have no values.

Read `shapes` (what goes out), `plain` (subschemas without cases, as most schemas have), `shaping` (cases to shapes),
`inhabited` (least fixed point of what has values), `trimming`, `merging` (alternatives that differ in one place),
`assembling`, `nesting` (how deep values nest).
"""
