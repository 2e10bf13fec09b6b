"""Correcting text of models that give no logits: it is followed byte by byte, and mended where it breaks.

Comes in: a function from a prompt to text, and a definition. Goes out: a `Correction`, whose text is complete under
the definition. The method is speculative grammar backtracking (Wang et al. 2023, "Grammar Prompting", Section 3.2):
the longest valid prefix is kept, a valid continuation is put behind it, and the model goes on from there.

Read `path` (a text with its configurations), `candidates` (what may follow it), `nearest` (what is like what was
written), `endings` (what completes it), `limits`, `corrector` with `manuscript` (the loop, without calls), `extracts`
(where the text is in a chatty reply), `values` (what comes out) and `correct` with `asking` and `drafting` (the
calls).
"""
