"""The nodes of a vocabulary's trie from which a token can come to another item, and to the end of the one in progress.

Few can: 861 tokens of Llama-3's have a comma, 169 one behind a quote.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....vocabulary.vocabulary import Vocabulary
from .containers import CLOSE_BRACE, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, SPACES
from .items import COMMA, QUOTE

#: What follows a string in JSON, with a comma; up to the beginning of another one; up to its quote.
_COMMA, _LISTED = (re.compile(each, re.DOTALL) for each in (rb"\s*[]},:]", rb"(?![}:])\s*[]},:]"))
_NAME, _NEVER = re.compile(rb'\s*"[^"]*"'), re.compile(rb"(?!)")
_BEGINNING, _BEGUN = re.compile(rb'[^,]*|\s*,\s*(?:"[^"\\]*)?'), re.compile(rb'[^,]*|\s*,\s*"?')

#: The children of a node, each under its byte.
Children: TypeAlias = "dict[int, dict[int, int]]"


class ItemNodes(NamedTuple):
    """The children of nodes from whose byte on some token has this, and what else is told of all nodes.

    Parameters
    ----------
    comma, quoted, opened, quote:
        A comma; one behind a quote; one behind an opening bracket; a quote.
    bracket, quoted_bracket:
        A comma behind a bracket of any kind, or before a whole name; either behind a quote.
    items, listed, begun:
        A quote, and behind its comma more than the beginning of a string; the same without those where a brace or a
        colon follows the quote; more than a quote.
    no_digit, no_space:
        Of each node, 1 if some token has more than digits from its byte on; more than spaces.
    """

    comma: Children
    quoted: Children
    opened: Children
    quote: Children
    bracket: Children
    quoted_bracket: Children
    items: Children
    listed: Children
    begun: Children
    no_digit: bytes
    no_space: bytes

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> ItemNodes:
        """Those of a vocabulary; remembered."""
        found: ItemNodes | None = vocabulary.for_walks.get("items")
        if found is None:
            found = vocabulary.for_walks["items"] = cls._found(vocabulary)
        return found

    @classmethod
    def _found(cls, vocabulary: Vocabulary) -> ItemNodes:
        trie = vocabulary.trie
        ends_of = trie.skip.astype(np.intp)

        def having(*bytes_: int) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = trie.byte == bytes_[0]
            for byte in bytes_[1:]:
                found |= trie.byte == byte
            return found

        def above(tops: NDArray[np.bool_]) -> NDArray[np.bool_]:
            before = np.zeros(len(tops) + 1, np.int32)
            np.cumsum(tops, out=before[1:])
            is_above: NDArray[np.bool_] = before.take(ends_of) > before[:-1]
            return is_above

        def children(some: NDArray[np.bool_]) -> Children:
            found: Children = {}
            path = [0]
            for node in np.flatnonzero(some)[1:].tolist():
                del path[trie.depth[node] :]
                found.setdefault(path[-1], {})[int(trie.byte[node])] = node
                path.append(node)
            return found

        @cache
        def rests(node: int) -> list[bytes]:
            depth, stop = int(trie.depth[node]), trie.first_token[trie.skip[node]]
            tokens = trie.token_ids[trie.first_token[node] : stop].tolist()
            return [(vocabulary.token(token) or b"")[depth:] for token in tokens]

        def is_more(node: int, comma: re.Pattern[bytes], plain: re.Pattern[bytes]) -> bool:
            return any(comma.match(rest) and not plain.fullmatch(rest) for rest in rests(node))

        def having_more(some: NDArray[np.bool_], *patterns: re.Pattern[bytes]) -> NDArray[np.bool_]:
            found = np.zeros(len(some), np.bool_)
            found[[node for node in np.flatnonzero(some).tolist() if is_more(node, *patterns)]] = True
            return found

        def more(*patterns: re.Pattern[bytes]) -> Children:
            return children(above(having_more(ends, *patterns)))

        comma = above(having(COMMA))
        ends = having(QUOTE) & comma
        named = having_more(having(COMMA) & above(having(QUOTE)), _NAME, _NEVER)
        bracket = above(having(OPEN_BRACKET, OPEN_BRACE, CLOSE_BRACKET, CLOSE_BRACE) & comma | named)
        opened = above(having(OPEN_BRACKET, OPEN_BRACE) & comma)
        behind = comma, above(ends), opened, above(having(QUOTE)), bracket, above(having(QUOTE) & bracket)
        comma_, quoted, opened_, quote, bracket_, quoted_bracket = map(children, behind)
        no_digit, no_space = (above(~having(*some)).tobytes() for some in (b"0123456789", SPACES))
        items, listed, begun = more(_COMMA, _BEGINNING), more(_LISTED, _BEGINNING), more(_COMMA, _BEGUN)
        return cls(comma_, quoted, opened_, quote, bracket_, quoted_bracket, items, listed, begun, no_digit, no_space)
