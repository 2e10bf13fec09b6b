"""What XGrammar's attributes of rules mean, entered in a grammar that was read.

Comes in: a `GbnfGrammar`, and what was written of each rule. Goes out: one whose rules end where they have to, with
labels for what is captured and for temperatures (`structgen.runtime.pushdown.captures`), and bounds on tokens.

Read `attributed`; then `tail_recursion`, `early_ends` and `token_bounds`, for rules that are regular languages.
"""
