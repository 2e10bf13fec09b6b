"""The tokens with which an item of an array may end and another one begin: so few that each is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....system.memo import Memo
from ....vocabulary.vocabulary import Vocabulary
from .containers import COLON, Seen
from .items import COMMA, DELIMITERS, NUMERIC, QUOTE, ItemInProgress, Number, String, begun
from .value_set import Values, ValueSet, with_value

#: The rest of a string, of another item, and of none.
_REST_OF_STRING = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)
_REST_OF_OTHER = re.compile(rb"[^%b]*" % re.escape(DELIMITERS))
_NO_REST = re.compile(rb"")

#: An array, with an item and a comma; the end of a container, with a comma; a name, and one behind a comma.
_OPENED = re.compile(rb'\[\s*(?:"(?:[^"\\]|\\.)*"|[^][{}",\s]+|[\[{].*)\s*,', re.DOTALL)
_CLOSED, _NAMED, _NAMED_LATER = (re.compile(each, re.DOTALL) for each in (rb"[]}].*,", rb'"\s*:', rb',.*"\s*:'))

#: A name that is whole, or an item, behind a comma; a member and a comma.
_WHOLE = re.compile(rb',\s*"(?:[^"\\]|\\.)*"', re.DOTALL)
_OBJECT = re.compile(rb"\{.*,", re.DOTALL)

_SPACES = b" \t\n\r"

#: Vocabularies whose tokens are known here.
_known: Memo[str, ItemTokens] = Memo(4)


class Items(NamedTuple):
    """What a token has of items, if it is allowed at all.

    Parameters
    ----------
    token:
        Its id.
    head:
        What it adds to the item in progress, closing quote included.
    values:
        The values of items that are whole in it.
    rest:
        The item that begins in it and is more than a quote; None where there is none.
    is_plain:
        Whether nothing else matters; so not so where these items repeat each other, or another array begins.
    """

    token: int
    head: bytes
    values: tuple[bytes, ...]
    rest: ItemInProgress | None
    is_plain: bool

    def may_repeat(self, values: Values, value: bytes | None) -> bool:
        """Whether its items may repeat those of a set, or the ``value`` of the one that was in progress."""
        if not self.is_plain or value in self.values:
            return True
        if values is not None and any(each in values for each in self.values):
            return True
        known = (values, None if value is None else ValueSet(value))
        return self.rest is not None and any(some is not None and self.rest.can_be_in(some) for some in known)


class TokensAt(NamedTuple):
    """The tokens in which an item may begin that did not begin before, from one place in an array's text.

    Parameters
    ----------
    ids:
        All of them, ``int64[*]``.
    telling:
        Those with more than the end of one item and the quote of the next, ``int64[*]``.
    items:
        What these have of items.
    """

    ids: NDArray[np.int64]
    telling: NDArray[np.int64]
    items: list[Items]


class ItemTokens:
    """The tokens of a vocabulary that have more than one item in them, or a comma behind one.

    Parameters
    ----------
    vocabulary:
        The tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        trie, text_of = vocabulary.trie, vocabulary.token
        commas, quotes = trie.byte == COMMA, np.flatnonzero(trie.byte == QUOTE)

        def ids_below(tops: NDArray[np.bool_]) -> NDArray[np.int64]:
            nodes = np.flatnonzero(_below(np.flatnonzero(tops), trie.skip))
            counts = trie.first_token[nodes + 1] - trie.first_token[nodes]
            first = np.repeat(trie.first_token[nodes] - np.cumsum(counts) + counts, counts)
            ids: NDArray[np.int64] = trie.token_ids[first + np.arange(counts.sum())].astype(np.int64)
            return ids

        def place(ids: NDArray[np.int64], rest: re.Pattern[bytes]) -> TokensAt:
            found = [each for token in ids.tolist() for each in _items(token, text_of(token) or b"", rest)]
            return TokensAt(ids, np.array([each.token for each in found], np.int64), found)

        outside, in_string = ids_below(commas), ids_below(commas & _below(quotes, trie.skip))
        self.in_string = place(in_string, _REST_OF_STRING)
        self.in_other = place(outside, _REST_OF_OTHER)
        self.between = place(outside, _NO_REST)
        #: No token has more items.
        self.most = max((len(text_of(token) or b"") for token in outside.tolist()), default=0)
        #: Those in which an array begins, with an item and a comma.
        opening = [token for token in outside.tolist() if _OPENED.search(text_of(token) or b"")]
        self.opening = np.array(opening, np.int64)

        def having(ids: NDArray[np.int64], *wanted: re.Pattern[bytes]) -> NDArray[np.int64]:
            texts = ((token, text_of(token) or b"") for token in ids.tolist())
            return np.array([token for token, text in texts if any(each.search(text) for each in wanted)], np.int64)

        colons = trie.byte == COLON
        named = ids_below(colons)
        #: ``bool[nodes]``: whether there is a comma or a colon on the way to a node; and the tokens with one.
        self.is_behind_mark = _below(np.flatnonzero(commas | colons), trie.skip)
        self.marked = ids_below(commas | colons)
        again = np.zeros(0, np.int64), having(named, _NAMED_LATER), having(named, _NAMED)
        #: Within items, in no string and in one: the tokens in which other items begin, and by `Seen.renaming` those
        #: with a name that may have been there.
        self._within = [
            [np.union1d(having(ids, _OPENED, _CLOSED), more) for more in again] for ids in (outside, in_string)
        ]
        #: The same of other names that are told apart: where endless ones follow each comma, and where one begins.
        self._named = [having(ids, _WHOLE) for ids in (outside, in_string)]
        self._opening_named = having(outside, _OPENED, _OBJECT)
        #: ``bool[nodes]``: whether a token has more than digits from the node's byte on; a quote; more than spaces.
        self.to_no_digit = _above(~np.isin(trie.byte, np.frombuffer(b"0123456789", np.uint8)), trie.skip)
        self.to_quote = _above(trie.byte == QUOTE, trie.skip)
        self.to_item = _above(~np.isin(trie.byte, np.frombuffer(_SPACES, np.uint8)), trie.skip)

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> ItemTokens:
        """Those of a vocabulary; remembered."""
        found = _known.get(vocabulary.fingerprint)
        if found is None:
            found = _known[vocabulary.fingerprint] = ItemTokens(vocabulary)
        return found

    def doubtful(self, item: ItemInProgress | None, values: Values, row: NDArray[np.int32]) -> Iterator[int]:
        """The tokens of a row whose items may repeat any, where endless values follow each comma."""
        at = self.at(item)
        by_head: dict[bytes, bytes | None] = {}
        for i in np.flatnonzero(is_allowed(at.telling, row)).tolist():
            items = at.items[i]
            if item is not None and items.head not in by_head:
                ended = item
                for byte in items.head:
                    ended = ended.after(byte)
                by_head[items.head] = ended.value()
            if items.may_repeat(values, by_head.get(items.head)):
                yield items.token

    def ids(self, seen: Seen | None) -> NDArray[np.int64]:
        """The tokens in which an item, or a member again, may begin that did not begin before, ``int64[*]``."""
        if seen is None:
            return self.opening
        if seen.known is not None:
            return self.at(seen.item).ids
        return self._within[isinstance(seen.item, String)][seen.renaming()]

    def named_ids(self, seen: Seen | None, *, endless: bool) -> NDArray[np.int64]:
        """The same where names are told apart, too: perhaps ``endless`` ones follow each comma, ``int64[*]``."""
        if seen is None:
            return self._opening_named
        in_string, is_array = isinstance(seen.item, String), seen.known is not None and not seen.is_object
        behind = self._named[in_string] if endless and not is_array else self.at(seen.item).ids
        found: NDArray[np.int64] = np.union1d(behind, self._within[in_string][seen.renaming()])
        return found

    def at(self, item: ItemInProgress | None) -> TokensAt:
        """Those that matter where an item is in progress, or none."""
        if item is None:
            return self.between
        return self.in_string if isinstance(item, String) else self.in_other


def _items(token: int, data: bytes, rest: re.Pattern[bytes]) -> Iterator[Items]:
    """What a token has of items, behind the rest of the one in progress, if that is anything that matters."""
    head = rest.match(data)
    if head is None:
        return
    values: list[bytes] = []
    item: ItemInProgress | None = None
    is_plain = True
    for i in range(head.end(), len(data)):
        byte = data[i]
        if isinstance(item, Number) and byte not in NUMERIC:
            values.append(item.value() or b"")
            item = None
        if item is not None:
            item = item.after(byte)
        elif byte in b"]}":
            is_plain = not (_OPENED.search(data, i) or _OBJECT.search(data, i))
            break
        elif byte in b"[{":
            is_plain = False
        elif byte != COMMA and byte not in _SPACES:
            item = begun(byte)
        if item is not None and item.ends():
            values.append(item.value() or b"")
            item = None
    known: Values = None
    for value in values:
        known = with_value(known, value)
    is_plain &= len(set(values)) == len(values)
    if item == String(b'"'):
        item = None
    elif item is not None and known is not None and item.can_be_in(known):
        is_plain = False
    if values or item is not None or not is_plain:
        yield Items(token, head.group(), tuple(values), item, is_plain)


def _above(tops: NDArray[np.bool_], skip: NDArray[np.int32]) -> NDArray[np.bool_]:
    """``bool[nodes]``: the nodes at or above some."""
    before = np.concatenate(([0], np.cumsum(tops)))
    is_above: NDArray[np.bool_] = before[skip] > before[:-1]
    return is_above


def _below(tops: NDArray[np.int64], skip: NDArray[np.int32]) -> NDArray[np.bool_]:
    """``bool[nodes]``: the nodes at or below some."""
    change = np.zeros(len(skip) + 1, np.int64)
    np.add.at(change, tops, 1)
    np.subtract.at(change, skip[tops], 1)
    is_below: NDArray[np.bool_] = np.cumsum(change)[:-1] > 0
    return is_below


def is_allowed(tokens: NDArray[np.int64], row: NDArray[np.int32]) -> NDArray[np.bool_]:
    """``bool[*]``: which of some tokens a row has."""
    found: NDArray[np.bool_] = row[tokens >> 5] >> (tokens & 31) & 1 == 1
    return found
