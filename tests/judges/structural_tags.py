"""Structural tags judged by a plain interpreter: which texts and rows of tokens a format has, by trying all parts.

What formats mean where it has to be said exactly:

* Free text holds no trigger of its own, no string that it excludes, and no *stop*: none of the ends of the nearest
  tag around it, wherever in that tag it stands. An empty end stops nothing, and lets a tag end wherever its content
  does. What stands behind a `dispatch`'s patterns has the tag's stops, the free text before them has none.
* Behind it comes what follows it in the tag, or a trigger: where one is complete for the first time, and of several
  that are complete there the longest. No excluded string and no stop is complete by then.
* Where the name of a special token stands in a begin, an end, a trigger or a constant, the token may be in its place.
  A trigger is followed wherever such a token of it may stand, whatever other triggers there are.
* Free text is over after ``max_tokens`` tokens that ended in it, but for the rest of the character that the last of
  them began; single tokens are over after so many.
* Single tokens that may be any but some are no EOS, and not one that is an end of the nearest tag around.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Format: TypeAlias = dict[str, Any]

#: Ends of a tag: texts, and ids that are tokens.
Stops: TypeAlias = "tuple[str | frozenset[int], ...]"

#: What triggers something, and that.
_Rules: TypeAlias = Iterable[tuple[Any, Format]]

#: Where special tokens begin in the texts that are looked at, whose other characters are bytes.
_SPECIAL = 0x1000


class Interpreter:
    """Says which texts and rows of tokens a format has.

    Parameters
    ----------
    format_:
        JSON of it.
    leaves:
        For grammars and schemas, by their text (of a schema, the ``repr`` of it and its style): whether they have a
        text.
    tokens, special:
        The bytes of each token, None for those that have none; ids by names of these. EOS ids have no name.
    """

    def __init__(
        self,
        format_: Format,
        leaves: Mapping[str, Callable[[str], bool]] | None = None,
        tokens: Sequence[bytes | None] = (),
        special: Mapping[str, int] | None = None,
    ) -> None:
        self._format = format_
        self._leaves = leaves or {}
        self._bytes = tokens
        self._names = special or {}
        self._split = re.compile("|".join([*sorted(map(re.escape, self._names), key=len, reverse=True), "(?!)"]))
        self._text = ""
        self._tokens: dict[int, tuple[int, int]] = {}  # by where each begins: its id, and where it ends
        self._known: dict[tuple[int, int, Stops], frozenset[int]] = {}
        self._rules: dict[int, list[tuple[Any, Format]]] = {}

    def accepts(self, text: str) -> bool:
        """Whether a whole text is one of the format's. It has no tokens, so none are counted or taken as such."""
        return self._accepts(text.encode().decode("latin-1"), {})

    def accepts_row(self, row: Sequence[int]) -> bool:
        """Whether whole tokens in a row, without an EOS id, are."""
        text, tokens = "", {}
        for token in row:
            data, begin = self._bytes[token], len(text)
            text += chr(_SPECIAL + token) if data is None else data.decode("latin-1")
            tokens[begin] = token, len(text)
        return self._accepts(text, tokens)

    def _accepts(self, text: str, tokens: dict[int, tuple[int, int]]) -> bool:
        self._text, self._tokens = text, tokens
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
        if kind == "const_string":
            return self._written(format_["value"], begin)
        if kind in ("regex", "grammar", "json_schema"):
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
        if kind in ("token", "exclude_token"):
            return self._token(format_, begin, stops)
        return self._loose(kind, format_, begin, stops)

    def _read(self, begin: int, end: int) -> str | None:
        """The characters between two places, None where these are not whole characters alone."""
        try:
            return self._text[begin:end].encode("latin-1").decode()
        except UnicodeError:
            return None

    def _is_leaf(self, format_: Format, begin: int, end: int) -> bool:
        text, kind = self._read(begin, end), format_["type"]
        if text is None:
            return False
        if kind == "regex":
            return re.fullmatch(format_["pattern"], text) is not None
        if kind == "grammar":
            return self._leaves[format_["grammar"]](text)
        return self._leaves[repr((format_["json_schema"], format_.get("style", "json")))](text)

    def _written(self, value: str, begin: int) -> set[int]:
        """Where a text may end, special tokens in it as such or by their names."""
        places, done = {begin}, 0
        for name in self._split.finditer(value):
            places = self._spelled(value[done : name.start()], places)
            tokens = {place + 1 for place in places if self._is_special(name[0], place)}
            places = self._spelled(name[0], places) | tokens
            done = name.end()
        return self._spelled(value[done:], places)

    def _spelled(self, value: str, places: set[int]) -> set[int]:
        data = value.encode().decode("latin-1")
        return {place + len(data) for place in places if self._text.startswith(data, place)}

    def _is_special(self, name: str, place: int) -> bool:
        return self._text[place : place + 1] == chr(_SPECIAL + self._names[name])

    def _repeat(self, item: Format, low: int, high: int, begin: int, stops: Stops) -> Iterator[int]:
        places, turn = {begin}, 0
        most = high if high >= 0 else low + len(self._text)  # more turns read nothing
        while places and turn <= most:
            if turn >= low:
                yield from places
            places = self._all_ends([item], places, stops)
            turn += 1

    def _tag(self, tag: Format, begin: int) -> Iterator[int]:
        ends = tag["end"] if isinstance(tag["end"], list) else [tag["end"]]
        stops = tuple(self._ids(end["token"]) if isinstance(end, dict) else end for end in ends if end)
        for start in self._edge(tag["begin"], begin):
            for place in self._ends(tag["content"], start, stops):
                for end in ends:
                    yield from self._edge(end, place)

    def _edge(self, edge: str | Format, place: int) -> Iterable[int]:
        return self._written(edge, place) if isinstance(edge, str) else self._token(edge, place, ())

    def _separated(self, format_: Format, begin: int) -> Iterator[int]:
        if not format_.get("at_least_one"):
            yield begin
        places, seen = {begin}, set[int]()
        while places := self._all_ends(format_["tags"], places, ()) - seen:
            seen |= places
            yield from places
            if format_.get("stop_after_first"):
                return
            places = {end for place in places for end in self._written(format_["separator"], place)}

    # -- free text and tokens --------------------------------------------------------------------------

    def _loose(self, kind: str, format_: Format, begin: int, stops: Stops) -> set[int]:
        """Where text or tokens may end that are free, but for what may stand within."""
        free = self._free_tokens if "token" in kind else self._free
        if kind in ("any_text", "any_tokens"):
            return free(format_, begin, stops, stops, [], True)
        if kind in ("dispatch", "token_dispatch"):
            return free(format_, begin, (), stops, format_["rules"], format_.get("loop", True))
        tags, once, places = format_["tags"], format_.get("stop_after_first", False), {begin}
        if format_.get("at_least_one"):
            places = self._all_ends(tags, places, stops)
            if once:
                return places
        if id(format_) not in self._rules:
            triggers = format_["trigger_tokens" if "token" in kind else "triggers"]
            self._rules[id(format_)] = [*_rules(triggers, tags)]
        rules = self._rules[id(format_)]
        return {end for place in places for end in free(format_, place, stops, stops, rules, not once)}

    def _free(self, format_: Format, begin: int, stops: Stops, inner: Stops, rules: _Rules, again: bool) -> set[int]:
        """Free text, with what is behind its triggers, ``again`` and again or once."""
        behind: dict[str, list[Format]] = {}
        for trigger, each in rules:
            behind.setdefault(trigger, []).append(each)
        over = [*(stop for stop in stops if isinstance(stop, str)), *format_.get("excludes", ())]
        found, todo, seen = set[int](), [begin], {begin}
        for start in todo:
            after = set[int]()
            for place, read in self._texts(start, format_):
                if any(string in read for string in over):
                    break
                complete = [trigger for trigger in behind if read.endswith(trigger)]
                if complete:
                    after |= self._all_ends(behind[max(complete, key=len)], [place], inner)
                    break
                found.add(place)
                for trigger, formats in behind.items():
                    after |= self._all_ends(formats, self._behind_tokens(trigger, read, place), inner)
            if not again:
                found |= after
                continue
            todo += after - seen
            seen |= after
        return found

    def _texts(self, start: int, format_: Format) -> Iterator[tuple[int, str]]:
        """The texts within the bounds, each with its end."""
        most, characters = format_.get("max_tokens"), format_.get("max_chars")
        ended = {end for _, end in self._tokens.values()}
        count = 0
        for place in range(start, len(self._text) + 1):
            if place > start and ord(self._text[place - 1]) >= _SPECIAL:
                return
            read = self._read(start, place)
            if read is not None:
                if characters is not None and len(read) > characters:
                    return
                yield place, read
            was_over = most is not None and count >= most
            count += place > start and place in ended
            if read is not None and (was_over or (most is not None and count >= most)):
                return

    def _behind_tokens(self, trigger: str, read: str, place: int) -> set[int]:
        """Where a trigger may end a special token of which comes now."""
        return {
            end
            for name in self._split.finditer(trigger)
            if self._is_special(name[0], place) and read.endswith(trigger[: name.start()])
            for end in self._written(trigger[name.end() :], place + 1)
        }

    def _free_tokens(
        self, format_: Format, begin: int, stops: Stops, inner: Stops, rules: _Rules, again: bool
    ) -> set[int]:
        """Free tokens, with what is behind those that trigger something."""
        rules = [(self._ids(trigger), each) for trigger, each in rules]
        kept = frozenset[int]().union(*(ids for ids, _ in rules), *map(self._ids, format_.get("exclude_tokens", ())))
        most = format_.get("max_tokens", len(self._text))
        found, todo = set[int](), [(begin, 0)]
        for place, count in todo:  # only one that has no rules counts
            if rules and place in found:
                continue
            found.add(place)
            token, end = self._tokens.get(place, (-1, -1))
            if token < 0:
                continue
            if count < most and self._is_any(token, kept, stops):
                todo.append((end, count + 1))
            after = self._all_ends((each for ids, each in rules if token in ids), [end], inner)
            if again:
                todo += ((there, count) for there in after)
            else:
                found |= after
        return found

    def _token(self, format_: Format, place: int, stops: Stops) -> set[int]:
        """One token, or any but some."""
        token, end = self._tokens.get(place, (-1, -1))
        if format_["type"] == "token":
            return {end} if token in self._ids(format_["token"]) else set()
        kept = frozenset[int]().union(*map(self._ids, format_["exclude_tokens"]))
        return {end} if token >= 0 and self._is_any(token, kept, stops) else set()

    def _is_any(self, token: int, kept: frozenset[int], stops: Stops) -> bool:
        return token not in kept and not any(token in stop for stop in stops if not isinstance(stop, str))

    def _ids(self, name: int | str) -> frozenset[int]:
        if isinstance(name, int):
            return frozenset([name])
        if name in self._names:
            return frozenset([self._names[name]])
        return frozenset(token for token, data in enumerate(self._bytes) if data == name.encode())


def _rules(triggers: Iterable[Any], tags: Iterable[Format]) -> Iterator[tuple[Any, Format]]:
    """Each tag with the trigger that begins it, without that."""
    for trigger in triggers:
        for tag in tags:
            begin = tag["begin"]
            if isinstance(begin, dict) and begin["token"] == trigger:
                yield trigger, {**tag, "begin": ""}
            if isinstance(begin, str) and begin.startswith(trigger):
                yield trigger, {**tag, "begin": begin.removeprefix(trigger)}
