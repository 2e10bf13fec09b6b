"""LALR(1) stacks at run time.

Comes in: a stack and a terminal. Goes out: the stacks after it, each once, and how far down they were looked at.
Algorithms: default reductions (yacc), graph-structured stacks (Tomita 1986) where conflicts are kept, subsumption.

Read `stack`, `gss`, `subsumption` (stacks that others subsume are left out), `parser_driver`, `keywords`.
"""
