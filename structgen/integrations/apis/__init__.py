"""APIs that give text and no logits, for `structgen.correct`: a module for each protocol.

Comes in: a client of the API's own package. Goes out: an object with ``reply(prompt, text)``. Read `openai` first.
"""
