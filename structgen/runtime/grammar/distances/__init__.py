"""How many tokens a text of a grammar still needs: upper bounds, each with a text to show for it.

Comes in: a configuration. Goes out: a number of tokens. Algorithm: cheapest derivations (Knuth 1977).

Read `token_distances`, `lexeme_costs`, `parser_costs`, `texts`, `potential` (what a token can add to a bound),
`successors`, `suppressed_lookaheads`.
"""
