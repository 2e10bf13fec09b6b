"""From the normal form to states that read the text of values.

Comes in: `Values` and how they are to be written (`options`). Goes out: a `Program`; docs/internals/json_lowering.md
draws the states.

Read `builder` (what phases share), `lower` (values; as a whole or in parts) with `bounds` (what parts can come to),
`whitespace`, `members` with `keys` and `trie`, `items` with `unique`, `any_order` and `marked_order` (members in any
order), `embed` (automata of strings and numbers).
"""
