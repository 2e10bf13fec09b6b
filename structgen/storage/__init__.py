"""The file format: named arrays behind a checked header, and declarations of what they may hold.

Comes in: bytes, from anyone. Goes out: arrays and fields that were checked against their declaration (dtype, bounds,
order, partition), so that kernels, which check no bounds, may index with them. docs/internals/format.md has the
bytes.

Read `container`, then `columns`; `records` is the same for values that are kept as JSON.
"""
