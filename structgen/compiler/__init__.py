"""From definitions to the tables that the runtime follows; docs/internals/design.md tells how the parts fit together.

Comes in: a `Definition` and a `Meter`. Goes out: `Tables` (regexes, machines of interegular), `PushdownTables` (JSON
Schemas, GBNF) or `GrammarTables` (Lark's grammars), all of them arrays, and what is refused, as typed errors.

Read in this order: `automata` (byte automata), `patterns` (regex syntax to automata), `programs` (automata with a
stack, to tables), then a front end: `gbnf` is the smallest, `json_schema` the largest; `grammar` has a lexer and an
LALR(1) parser. `scannerless` makes rules over bytes of the two, for `structural_tags`, in which all kinds are parts
of one program. `stuck` checks for all kinds that whatever a vocabulary can begin it can finish.
"""
