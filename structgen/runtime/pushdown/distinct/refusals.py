"""`Refusals`: the tokens that repeat a value, or can only lead to one, found in the vocabulary's trie.

Only bytes are followed that lead towards a value that has been there, or from which a token has a comma behind an item,
where another one begins. Once threads were dropped, all are, since the automaton's mask goes on with these.

Most tokens with a comma end a string and begin the next one at most. These need not be followed where others can
follow without end whatever they begin like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ....vocabulary.vocabulary import Vocabulary
from ..store.configuration import StoredConfiguration
from ..store.store import EACH_BYTE
from .containers import Place, Seen
from .items import ItemInProgress, String
from .nodes import Children, ItemNodes
from .places import PlaceReader
from .value_set import ValuesAsked

#: The canonical form of a string that no text has.
_OTHER = b'"\xff'

#: Places, a byte that may follow, and the node of the trie behind it.
_Edge: TypeAlias = "tuple[tuple[Place, ...], int, int]"


class Refusals:
    """The search in the trie.

    Parameters
    ----------
    places:
        What follows texts.
    vocabulary:
        The tokens.
    """

    def __init__(self, places: PlaceReader, vocabulary: Vocabulary) -> None:
        self._places, self._trie = places, vocabulary.trie
        self._nodes = ItemNodes.of(vocabulary)

    def nodes(self, places: tuple[Place, ...], root: int = 0) -> Iterator[int]:
        """The nodes from which no text goes on because of the items' values, below one, where the places are."""
        skip = self._trie.skip.data
        todo = [(edge, False) for edge in self._edges(places, root)]
        while todo:
            (here, byte, child), drops = todo.pop()
            after, dropped = self._places.read(here, EACH_BYTE[byte])
            drops |= dropped
            if (after or drops) and not any(map(self._places.can_go_on, after)):
                yield child
            elif after and skip[child] > child + 1:  # some token goes on
                edges = [(after, *each) for each in self._trie.children(child)] if drops else self._edges(after, child)
                todo += [(edge, drops) for edge in edges]

    def _edges(self, places: tuple[Place, ...], node: int) -> list[_Edge]:
        """The bytes from some places at a node that may lead to something that repeats."""
        children: dict[int, int] = {}
        for place in places:
            children |= self._doubtful(place, node)
        return [(places, byte, child) for byte, child in children.items()]

    def _doubtful(self, place: Place, node: int) -> dict[int, int]:
        """The children that may lead to something that repeats."""
        config, seen = place
        nodes, may = self._nodes, self._places.bytes_at(config)
        if seen is None:
            return {byte: child for byte, child in nodes.opened.get(node, {}).items() if byte in may}
        towards, item = seen.bytes_towards() & may, seen.item
        behind = self._behind(config, seen).get(node, {})
        found = {byte: child for byte, child in behind.items() if byte in may}
        if not towards:
            return found
        is_endless = item is not None and self._places.varieties.is_endless(config, item)
        if is_endless and isinstance(item, String):
            some = [(byte, child) for byte, child in nodes.quote.get(node, {}).items() if byte in towards]
            return found | {byte: child for byte, child in some if self._is_near(seen, item, byte, child)}
        some = self._trie.children(node, towards)
        if item is None:
            return found | {byte: child for byte, child in some if nodes.no_space[child]}
        return found | {byte: child for byte, child in some if not is_endless or nodes.no_digit[child]}

    def _is_near(self, seen: Seen, item: String, byte: int, child: int) -> bool:
        """Whether a string can turn into one that has been there by a byte and the next one of some token."""
        longer, sets = item.after(byte), seen.sets()
        if longer.is_over or longer.escape or item.escape:
            return True
        after = [longer.after(below) for below in self._nodes.quote[child]]
        return any(each.escape or _leads_to(each, values) for each in after for values in sets)

    def _behind(self, config: StoredConfiguration, seen: Seen) -> Children:
        """Where tokens may come to another item behind what is in progress, if that has not been there.

        Where neither items nor names of the innermost container must differ, that is behind its end, or in another one,
        or where a name comes again, which takes back what made it differ.
        """
        places, nodes, item = self._places, self._nodes, seen.item
        if seen.known is None:
            if places.is_roomy_around(config, seen, nodes.beginnings):
                return nodes.quoted_beyond if isinstance(item, String) else nodes.beyond
            return nodes.quoted_bracket if isinstance(item, String) else nodes.bracket
        if not isinstance(item, String):
            return nodes.comma
        end = None if item.escape or seen.levels else places.moved(config, b'"')
        if end is None or not places.varieties.is_alike(config):
            return nodes.quoted
        if places.is_roomy(end):
            return nodes.listed if places.bytes_at(end).isdisjoint(b"}:") else nodes.items
        ended, _ = places.ended(end, seen, _OTHER)
        due, _ = places.read([ended] if ended else [], b",")
        begun, _ = places.read(due, b'"')
        return nodes.begun if all(map(places.is_free, due + begun)) else nodes.quoted


def _leads_to(item: ItemInProgress, values: ValuesAsked) -> bool:
    """Whether an item is one of some values, or can turn into one."""
    value = item.value() if item.ends() else None
    return item.can_be_in(values) if value is None else value in values
