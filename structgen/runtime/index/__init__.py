"""`Index`: a definition compiled for one vocabulary; what is saved and loaded.

Comes in: a machine. Goes out: bytes of a file and back; machines around machines, for a number of tokens
(`token_budget`) and for prompts that end within a token (`healing`).

Read `index`, `token_budget`, `healing`, `healing_machine`.
"""
