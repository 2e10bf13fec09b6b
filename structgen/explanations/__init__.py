"""Why a token or a text is refused: from the byte at which it dies back to what the user wrote.

Comes in: a guide or an index, and a token or a text. Goes out: an `Explanation`. The verdict, and the byte, are the
machine's. The reason is read from the definition's own text, which every index holds: nothing is kept beside the
tables, a step costs what it did, and files written before this room was built explain themselves, too.

Read `values` (what goes out, and how it is shown), `explain` (the call), then a reader for each kind: `schemas`;
`grammar_findings`; `characters` with `pattern_findings` and `gbnf_findings`; `tag_findings`.
"""
