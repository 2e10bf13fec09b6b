"""How values are written: as JSON, or their members in the tags of a tool-call format.

Read `options` (what a `JsonSchema` says of it), `styles` (the tags, a row each), `writable` (the values that tags can
hold).
"""
