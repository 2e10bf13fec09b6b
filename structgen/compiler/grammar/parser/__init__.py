"""The parser: LALR(1) tables, with conflicts decided by priorities, or kept.

Comes in: a `ContextFreeGrammar`. Goes out: a `Lalr` and its tables. Algorithms: LR(0) (Knuth 1965), lookaheads by
DeRemer and Pennello (1982), equivalent stacks by bisimulation (Park 1981).

Read `symbols`, `lr0`, `lookaheads`, `lalr`, `conflicts` (with the shortest text that shows each), `looping`
(reductions without end), `equivalent` (states that may stand for others).
"""
