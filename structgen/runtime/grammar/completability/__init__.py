"""Whether a text can still be completed, where neither lexer nor parser can say so alone.

Comes in: a lexer's state, a parser's stack. Goes out: yes or no. Algorithms: pop summaries of pushdown systems
(Bouajjani, Esparza and Maler 1997), nesting (Knuth 1967).

Read `lexeme_ends`, `boundaries`, `obligations` (what the longest match forbids to come), `watched_futures`,
`lexical_follow`, `completions`, `pop_summaries`, and for indentation `nesting` and `indented_moves`.
"""
