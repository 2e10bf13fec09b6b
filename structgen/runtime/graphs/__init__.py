"""Pictures of automata: states and moves with labels that a person reads, as many as fit.

Comes in: the tables of an engine. Goes out: a `Graph`, which Graphviz, Mermaid and terminals draw.

Read `graph` (what is drawn, and how it is written down), `labels` (bytes as characters), `moves` (what explores an
automaton from its start, folds what is one text, and leaves out what doesn't fit), then the readers of tables:
`automaton`, `pushdown`, `grammar`; `drawing` picks among them.
"""
