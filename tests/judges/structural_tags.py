"""Structural tags judged by a plain interpreter: which texts a format has, by looking at all their parts.

What formats mean where it has to be said exactly:

* Free text holds no trigger of its own, no string that it excludes, and no *stop*: none of the ends of the nearest
  tag around it, wherever in that tag it stands. An empty end stops nothing, and lets a tag end wherever its content
  does.
* Behind it comes what follows it in the tag, or a trigger: where one is complete for the first time, and of several
  that are complete there the longest. No excluded string and no stop is complete by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

Format: TypeAlias = dict[str, Any]
Stops: TypeAlias = tuple[str, ...]


class Interpreter:
    """Says which texts a format has.

    Parameters
    ----------
    format_:
        JSON of it, with no formats of tokens.
    leaves:
        For grammars and schemas, by their text (of a schema, the ``repr`` of it and its style): whether they have a
        text.
    """

    def __init__(self, format_: Format, leaves: dict[str, Callable[[str], bool]] | None = None) -> None:
        self._format = format_
        self._leaves = leaves or {}
        self._text = ""
        self._known: dict[tuple[int, int, Stops], frozenset[int]] = {}
        self._rules: dict[int, list[tuple[str, Format]]] = {}

    def accepts(self, text: str) -> bool:
        """Whether a whole text is one of the format's."""
        self._text = text
        self._known.clear()
        return len(text) in self._ends(self._format, 0, ())

    def _ends(self, format_: Format, begin: int, stops: Stops) -> frozenset[int]:
        """Where a format may end that begins at a place."""
        key = id(format_), begin, stops
        if key not in self._known:
            self._known[key] = frozenset(self._find(format_, begin, stops))
        return self._known[key]

    def _all_ends(self, formats: Iterable[Format], begins: Iterable[int], stops: Stops) -> set[int]:
        formats = list(formats)
        return {end for begin in begins for format_ in formats for end in self._ends(format_, begin, stops)}

    def _find(self, format_: Format, begin: int, stops: Stops) -> Iterable[int]:
        kind = format_["type"]
        if kind in ("const_string", "regex", "grammar", "json_schema"):
            return (end for end in range(begin, len(self._text) + 1) if self._is_leaf(format_, begin, end))
        if kind == "sequence":
            places = {begin}
            for element in format_["elements"]:
                places = self._all_ends([element], places, stops)
            return places
        if kind == "or":
            return self._all_ends(format_["elements"], [begin], stops)
        if kind in ("optional", "star", "plus", "repeat"):
            bounds = {"optional": (0, 1), "star": (0, -1), "plus": (1, -1)}
            low, high = bounds[kind] if kind in bounds else (format_["min"], format_["max"])
            return self._repeat(format_["content"], low, high, begin, stops)
        if kind == "tag":
            return self._tag(format_, begin)
        if kind == "tags_with_separator":
            return self._separated(format_, begin)
        if kind == "any_text":
            return self._free(format_, begin, stops, [], True)
        if kind == "dispatch":
            return self._free(format_, begin, stops, format_["rules"], format_.get("loop", True))
        assert kind == "triggered_tags"
        return self._triggered(format_, begin, stops)

    def _is_leaf(self, format_: Format, begin: int, end: int) -> bool:
        text, kind = self._text[begin:end], format_["type"]
        if kind == "const_string":
            return bool(text == format_["value"])
        if kind == "regex":
            return re.fullmatch(format_["pattern"], text) is not None
        if kind == "grammar":
            return self._leaves[format_["grammar"]](text)
        return self._leaves[repr((format_["json_schema"], format_.get("style", "json")))](text)

    def _repeat(self, item: Format, low: int, high: int, begin: int, stops: Stops) -> Iterator[int]:
        places, turn = {begin}, 0
        most = high if high >= 0 else low + len(self._text)  # more turns read nothing
        while places and turn <= most:
            if turn >= low:
                yield from places
            places = self._all_ends([item], places, stops)
            turn += 1

    def _tag(self, tag: Format, begin: int) -> Iterator[int]:
        if not self._text.startswith(tag["begin"], begin):
            return
        ends = [tag["end"]] if isinstance(tag["end"], str) else tag["end"]
        for place in self._ends(tag["content"], begin + len(tag["begin"]), tuple(filter(None, ends))):
            yield from (place + len(end) for end in ends if self._text.startswith(end, place))

    def _separated(self, format_: Format, begin: int) -> Iterator[int]:
        if not format_.get("at_least_one"):
            yield begin
        separator, places, seen = format_["separator"], {begin}, set[int]()
        while places := self._all_ends(format_["tags"], places, ()) - seen:
            seen |= places
            yield from places
            if format_.get("stop_after_first"):
                return
            places = {place + len(separator) for place in places if self._text.startswith(separator, place)}

    # -- free text ---------------------------------------------------------------------------------------

    def _triggered(self, format_: Format, begin: int, stops: Stops) -> Iterable[int]:
        tags, once, places = format_["tags"], format_.get("stop_after_first", False), {begin}
        if format_.get("at_least_one"):
            places = self._all_ends(tags, places, stops)
            if once:
                return places
        if id(format_) not in self._rules:
            self._rules[id(format_)] = [
                (trigger, {**tag, "begin": tag["begin"].removeprefix(trigger)})
                for trigger in format_["triggers"]
                for tag in tags
                if tag["begin"].startswith(trigger)
            ]
        rules = self._rules[id(format_)]
        return {end for place in places for end in self._free(format_, place, stops, rules, not once)}

    def _free(
        self, format_: Format, begin: int, stops: Stops, rules: Iterable[tuple[str, Format]], again: bool
    ) -> set[int]:
        """Free text, with what is behind its triggers, ``again`` and again or once."""
        behind: dict[str, list[Format]] = {}
        for trigger, each in rules:
            behind.setdefault(trigger, []).append(each)
        over = (*stops, *format_.get("excludes", ()))
        found, todo, seen = set[int](), [begin], {begin}
        while todo:
            start = todo.pop()
            for place in range(start, len(self._text) + 1):
                read = self._text[start:place]
                if any(string in read for string in over):
                    break
                complete = [trigger for trigger in behind if read.endswith(trigger)]
                if not complete:
                    found.add(place)
                    continue
                ends = self._all_ends(behind[max(complete, key=len)], [place], stops)
                if again:
                    todo += ends - seen
                    seen |= ends
                else:
                    found |= ends
                break
        return found
