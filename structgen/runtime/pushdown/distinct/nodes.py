"""The nodes of a vocabulary's trie from which a token can come to another item, and to the end of the one in progress.

Few can: 861 tokens of Llama-3's have a comma, 169 one behind a quote.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....vocabulary.trie import Trie
from ....vocabulary.vocabulary import Vocabulary
from .containers import CLOSE_BRACE, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, SPACES
from .items import COMMA, QUOTE

#: What follows a string in JSON, with a comma; up to the beginning of another one; up to its quote.
_COMMA, _LISTED = (re.compile(each, re.DOTALL) for each in (rb"\s*[]},:]", rb"(?![}:])\s*[]},:]"))
_NAME, _NEVER = re.compile(rb'\s*"[^"]*"'), re.compile(rb"(?!)")
_BEGINNING, _BEGUN = re.compile(rb'[^,]*|\s*,\s*(?:"[^"\\]*)?'), re.compile(rb'[^,]*|\s*,\s*"?')

#: What an item begins with behind its comma: containers, and the first string in them.
_NEXT = re.compile(rb'\s*(?:[\[{]\s*)*(?:"[^"\\]*)?')

#: The children of a node, each under its byte.
Children: TypeAlias = "dict[int, dict[int, int]]"

#: Which nodes are meant.
_Some: TypeAlias = NDArray[np.bool_]


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
    beyond, quoted_beyond:
        A comma within a container that a token begins, or behind the end of one and with more than the beginning of
        an item behind it, or before a whole name; that behind a quote.
    beginnings:
        What else tokens have behind the end of a container and a comma.
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
    beyond: Children
    quoted_beyond: Children
    beginnings: frozenset[bytes]
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
        whole = _Nodes(trie, None)
        some_quote = whole.above(whole.having(QUOTE))
        no_digit, no_space = (whole.above(~whole.having(*some)).tobytes() for some in (b"0123456789", SPACES))
        part = _Nodes(trie, np.flatnonzero(whole.above(whole.having(COMMA))))  # few; all others are among them
        having, above = part.having, part.above

        @cache
        def rests(at: int) -> list[bytes]:
            node = part.nodes[at]
            depth, stop = int(trie.depth[node]), trie.first_token[trie.skip[node]]
            tokens = trie.token_ids[trie.first_token[node] : stop].tolist()
            return [(vocabulary.token(token) or b"")[depth:] for token in tokens]

        def way_to(at: int) -> bytes:
            node = part.nodes[at]
            text = vocabulary.token(int(trie.token_ids[trie.first_token[node]])) or b""
            return text[: trie.depth[node]]

        def having_more(some: _Some, comma: re.Pattern[bytes], plain: re.Pattern[bytes]) -> _Some:
            found = np.zeros(len(some), np.bool_)
            for at in np.flatnonzero(some).tolist():
                found[at] = any(comma.match(rest) and not plain.fullmatch(rest) for rest in rests(at))
            return found

        commas, quotes, opening = having(COMMA), having(QUOTE), having(OPEN_BRACKET, OPEN_BRACE)
        named = having_more(commas & some_quote[part.nodes], _NAME, _NEVER)
        bracket = above(opening | having(CLOSE_BRACKET, CLOSE_BRACE) | named)
        more = [having_more(quotes, *each) for each in ((_COMMA, _BEGINNING), (_LISTED, _BEGINNING), (_COMMA, _BEGUN))]
        beginnings = set[bytes]()
        beyond, quoted_beyond = named.copy(), quotes & above(named)
        for at in np.flatnonzero(commas).tolist():
            beyond[at] |= sum(is_beyond(way_to(at) + rest, beginnings) for rest in rests(at)) > 0
        for at in np.flatnonzero(quotes).tolist():
            quoted_beyond[at] |= sum(is_beyond(rest, beginnings) for rest in rests(at)) > 0
        tops = commas, quotes, opening, bracket, quotes & bracket, *more, beyond, quoted_beyond
        comma, quoted, opened, bracket_, quoted_bracket, items, listed, begun, beyond_, quoted_beyond_ = (
            part.children(above(each)) for each in tops
        )
        return cls(
            comma, quoted, opened, whole.children(some_quote), bracket_, quoted_bracket, items, listed, begun,
            beyond_, quoted_beyond_, frozenset(beginnings), no_digit, no_space,
        )  # fmt: skip


class _Nodes:
    """Some nodes of a trie, and with each all above it; None for all. They are found by their places among them."""

    def __init__(self, trie: Trie, nodes: NDArray[np.intp] | None) -> None:
        self.nodes = np.arange(len(trie.byte)) if nodes is None else nodes
        self._byte, self._depth = (trie.byte, trie.depth) if nodes is None else (trie.byte[nodes], trie.depth[nodes])
        self._ends = trie.skip.astype(np.intp) if nodes is None else np.searchsorted(nodes, trie.skip[nodes])

    def having(self, *bytes_: int) -> _Some:
        """Those that have one of some bytes."""
        found: _Some = self._byte == bytes_[0]
        for byte in bytes_[1:]:
            found |= self._byte == byte
        return found

    def above(self, tops: _Some) -> _Some:
        """Those that have some others below, or are such."""
        before = np.zeros(len(tops) + 1, np.int32)
        np.cumsum(tops, out=before[1:])
        found: _Some = before.take(self._ends) > before[:-1]
        return found

    def children(self, some: _Some) -> Children:
        """The children among some, with each of which there are all above it."""
        found: Children = {}
        path, at = [0], np.flatnonzero(some)[1:]
        every = zip(self.nodes[at].tolist(), self._depth[at].tolist(), self._byte[at].tolist(), strict=True)
        for node, depth, byte in every:
            del path[depth:]
            found.setdefault(path[-1], {})[byte] = node
            path.append(node)
        return found


def is_beyond(text: bytes, beginnings: set[bytes]) -> bool:
    """Whether a text has a comma within a container that it begins, or more than the beginning of an item behind the
    end of one and a comma; what it has there otherwise is added to ``beginnings``.

    Brackets within its strings count, too, and behind a quote no two are a pair.
    """
    depth, is_closed = 0, False
    for at, byte in enumerate(text):
        if byte in (OPEN_BRACKET, OPEN_BRACE):
            depth += 1
        elif byte in (CLOSE_BRACKET, CLOSE_BRACE):
            is_closed |= not depth or QUOTE in text[:at]
            depth = max(0, depth - 1)
        elif byte == COMMA and (depth or is_closed):
            if depth or not _NEXT.fullmatch(text, at + 1):
                return True
            beginnings.add(text[at + 1 :])
    return False
