"""Arguments in tags that break off anywhere, even where their schema refuses them: the JSON that they may mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..definitions.styles import ARRAYS, BOOLEANS, GAP, NULL, NUMBERS, OBJECTS, STRINGS, Kind
from .arguments import BLANK, BRACKETS, TaggedArguments, quoted

#: How the JSON of values begins, by their types.
_STARTS = {STRINGS: '"', NUMBERS: "-0", BOOLEANS: "tf", NULL: "n", ARRAYS: "[", OBJECTS: "{"}


class UnfinishedArguments(TaggedArguments):
    """Members in the tags of a style, as `TaggedArguments`, and what else they may mean where they break off."""

    def unfinished(self, text: str) -> list[str]:
        """What was read so far, with ``text`` behind it, may mean: JSON, less what was given, that breaks off, too.

        ``text`` need not be what the schema takes. None where no tag and no value goes on so.
        """
        self._begin()
        rest = self._text + text
        if self._kind is None:
            return [way.text + each for way in self._ways for each in self._begun_tags(way.open, rest.lstrip(BLANK))]
        found = [*self._begun_values(self._kind, rest)]
        return [way.text + before + each for way in self._ways for before in self._befores(way) for each in found]

    def ended(self) -> list[str]:
        """What was read so far may mean: JSON, less what was given, that ends; none within a member."""
        self._begin()
        is_within = self._kind is not None or bool(self._text.strip(BLANK))
        return [way.text + way.open for way in self._ways if len(way.open) == 1 and not is_within]

    def closing(self) -> str:
        """The tag that closes a value, if what was read ends with a beginning of it; else nothing."""
        tag = "" if self._kind is None else self._closing + self._again
        return tag if any(map(self._text.endswith, (tag[:n] for n in range(1, len(tag) + 1)))) else ""

    def _begun_tags(self, brackets: str, text: str) -> Iterator[str]:
        """What the beginning of a tag may mean where some brackets are open; whitespace, whatever comes behind it."""
        comma = "" if self._is_first else ", "
        if not text:
            yield " "
            return
        yield from self._begun_members(text, comma) if brackets[-1] == "}" else self._begun_items(text, comma)
        if len(brackets) > 1 and (self._closing + self._again).startswith(text):
            yield brackets[-1]

    def _begun_members(self, text: str, comma: str) -> Iterator[str]:
        """What the beginning of a member may mean; behind a name each type that its tag may stand for."""
        opening, end = self._style.opening.decode(), chr(self._style.name_end)
        if opening.startswith(text):
            yield f'{comma}"'
        elif text.startswith(opening):
            name, ends, rest = text[len(opening) :].partition(end)
            keys = [comma + quoted(each) for each in self._begun_names(name, bool(ends))]
            if rest:
                for key in keys:
                    yield from self._starts(f"{key}: ", ends + rest)
            else:
                yield from (key if ends else key[:-1] for key in keys)

    def _begun_names(self, name: str, ends: bool) -> list[str]:
        """The names that a text, or where that does not end, its beginning, may stand for."""
        head, mark, tail = name.rpartition("&")
        cut = mark + tail if mark and not ends else "\0"
        spelled = [name, *(head + each for _, each in self._style.entities if each.startswith(cut))]
        return [self._named(each) for each in spelled if self._is_name(each, ends)]

    def _is_name(self, text: str, ends: bool) -> bool:
        """Whether a name is written so, but for a character that is cut off."""
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "ignore")
        return not (text or ends) or self._style.spelled(self._named(text)) == text.encode()

    def _begun_items(self, text: str, comma: str) -> Iterator[str]:
        """What the beginning of an item may mean: each type that its tag may stand for, or only that one follows."""
        item = self._style.item
        yield from [comma] if comma and item.decode().startswith(text) else self._starts(comma, text, item)

    def _starts(self, before: str, text: str, item: bytes = b"") -> Iterator[str]:
        """The beginnings of values of the types that the beginning of a tag may stand for."""
        for kind in self._style.kinds:
            if re.fullmatch(_begun(item + kind.before[bool(item) :]), text):
                yield from (before + start for each in sorted(kind.types) for start in _STARTS[each])

    def _begun_values(self, kind: Kind, text: str) -> Iterator[str]:
        """What a value's text may mean that breaks off, or ends with its closing tag or the beginning of that."""
        nested = self._nested(kind)
        yield from self._begun_within(nested, text.lstrip(BLANK))
        value, closed, behind = text.partition(self._closing)
        if closed:
            if self._again.startswith(behind):
                yield from (f"{each} " for each in self._values(kind, value, tagged=bool(nested)))
            return
        ends = (n for n in range(len(self._closing), 0, -1) if text.endswith(self._closing[:n]))
        closing = next(ends, 0)
        if closing and not kind.padded:
            value = text[: len(text) - closing]
            yield from (f"{each} " for each in self._values(kind, value, tagged=bool(nested)))
        elif kind.types != {STRINGS}:
            bare = text[: len(text) - closing]
            bare = bare.lstrip(BLANK) if kind.padded else bare
            starts = "".join(_STARTS[each] for each in kind.types - nested).replace("0", "0123456789")
            if bare and bare[0] in starts and bare[0] != '"' and (kind.padded or bare == bare.rstrip(BLANK)):
                yield f"{bare} " if closing else bare
        if STRINGS in kind.types:
            texts = (text.removeprefix(self._style.frame.decode()), text.lstrip(BLANK), text)
            yield from (quoted(each)[:-1] for each in dict.fromkeys(texts if kind.padded else [text]))

    def _begun_within(self, nested: frozenset[str], text: str) -> Iterator[str]:
        """What the tag that an array or an object begins with may mean."""
        for bracket, _, of in BRACKETS if text else ():
            if of in nested:
                begun = self._begun_members if of == OBJECTS else self._begun_items
                yield from (bracket + each for each in begun(text, ""))

    @property
    def _again(self) -> str:
        """What stands behind the next closing tag."""
        before, after = self._style.again or (b"", b"")
        return f"{before.decode()}{self._names[-1]}{after.decode()}" if self._style.again else ""


def _begun(text: bytes) -> str:
    """A pattern of the beginnings of what `_pattern` matches."""
    pieces = [re.escape(each) if each != GAP.decode() else r"\s*" for each in text.decode()]
    return "".join(f"(?:{piece}" for piece in pieces) + ")?" * len(pieces)
