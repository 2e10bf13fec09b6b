"""`Guide`: one sequence's cursor over a shared index.

Comes in: token ids. Goes out: masks, and the tokens that must follow (jump-forward decoding).

Read `guide`, `forced` and `forced_tokens`; `tracker` finds a row's text from its ids, for engines that hand over
nothing else.
"""
