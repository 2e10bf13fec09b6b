"""Token ids and their bytes: the `Vocabulary`, its trie, and the tokenizers it can be read from."""

from .vocabulary import Vocabulary

__all__ = ["Vocabulary"]
