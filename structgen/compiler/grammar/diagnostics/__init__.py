"""What a grammar's author should know: warnings, with the rule and a text that shows it.

Comes in: terminals and tables. Goes out: sentences for a `GrammarWarning`.

Read `preferences` (matches that depend on an order), `foresight` (what masks don't look at to the end), `collisions`
(terminals that strict grammars may not have).
"""
