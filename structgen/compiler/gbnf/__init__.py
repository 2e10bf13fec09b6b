"""GBNF grammars (llama.cpp): reading them, and lowering them to pushdown programs."""
