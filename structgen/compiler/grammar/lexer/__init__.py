"""The lexer: all terminals as one automaton over bytes, exactly as Lark's scanners match.

Comes in: the regexes of terminals, with priorities. Goes out: a `Dfa` whose states say which terminals match.
Algorithms: Thompson's construction (1968) with ordered threads (Pike; Cox 2010) for the leftmost preferred match,
products of the automata, minimisation (Valmari and Lehtinen 2008).

Read `program`, `ordered`, `leftmost_dfa` (a terminal), `look_arounds` with `behind` and `characters`, `positions`
(terminals side by side), `scanner` (contextual lexers), `minimise`; `algebra` has terminals that no regex says.
"""
