"""Tokens that a grammar names: ``<|eom_id|>``, ``<[128008]>``, and sets of them by their ids.

``<[1-3,5]>`` is one token of these, ``<[^1-3]>`` one of the others, ``<[*]>`` any. (The notation is llguidance's.)
``!<|eom_id|>`` and ``!<[1-3]>`` are the others of what follows the sign, too. (That is llama.cpp's.) What ends a text
is in no set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..errors import DefinitionError, VocabularyError

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

#: How a token, or a set of them, is written in GBNF.
MARK = re.compile(r"!?<[^>\r\n]+>")

#: What GBNF reads as one: comments, texts, classes. Then tokens, and a dot that is part of no name.
_PIECE_OF_GBNF = re.compile(
    rf"""(?s:\#[^\r\n]*|"[^"\\]*(?:\\.[^"\\]*)*"|\[[^\]\\]*(?:\\.[^\]\\]*)*\]|(?P<mark>{MARK.pattern})|(?P<dot>(?<![\w.-])\.(?![\w.-]))|(?P<unclosed>["\[]|!?<))"""
)

#: XGrammar's macros that name tokens by their ids.
_MACRO = re.compile(r"\b(?:Exclude)?Token(?:TagDispatch)?\s*\((?:[^()]|\([^()]*\))*\)")

_ONE = re.compile(r"<\[[0-9]{1,9}\]>")
_RANGE = r"[0-9]{1,9}(?:-[0-9]{1,9})?"
_SET = re.compile(rf"<\[(?:\*|\^?({_RANGE}(?:,{_RANGE})*))\]>")


class Tokens(NamedTuple):
    """The tokens that a mark stands for: ranges of ids, both ends among them, ascending; or the ids in none of them.

    A set (``<[1-3]>``, ``<[*]>``, not ``<[5]>``) has no EOS id: those are taken away by whoever knows them.
    """

    ranges: list[tuple[int, int]]
    complement: bool
    is_set: bool

    def among(self, known: int) -> list[tuple[int, int]]:
        """The ids below ``known``, EOS ids included, as ranges."""
        return _between(self.ranges, known) if self.complement else self.ranges


def tokens_of(mark: str, vocabulary: Vocabulary) -> Tokens:
    """The tokens that a mark stands for.

    Raises `VocabularyError` where the vocabulary has none such, `DefinitionError` for ids that can't be read.
    """
    negated = mark.startswith("!")
    ids = ids_of(mark)
    if ids is None:
        mark = mark.removeprefix("!")
        found = _named(mark, vocabulary)
        return Tokens(_spelled(mark, vocabulary) if found is None else [(found, found)], negated, negated)
    size = vocabulary.size
    last = max((last for _, last in ids), default=0)
    if last >= size:
        raise VocabularyError(
            f"the vocabulary has no token {last}, which {mark} names", remedy=f"Its last id is {size - 1}."
        )
    if _ONE.fullmatch(mark):
        return Tokens(ids, False, False)
    ids = _between(_between(ids, size), size) if ids else ids  # which may overlap
    tokens = Tokens(ids, negated != mark.removeprefix("!").startswith(("<[^", "<[*")), True)
    ends = {*vocabulary.eos_ids}
    if all(i in ends for first, last in tokens.among(vocabulary.known) for i in range(first, last + 1)):
        raise VocabularyError(f"{mark} stands for no token of the vocabulary", remedy="Leave it out.")
    return tokens


def _spelled(mark: str, vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """The tokens whose bytes are a mark. Raises `VocabularyError` where there are none."""
    trie = vocabulary.trie
    node = trie.find(mark.encode("utf-8", "surrogatepass"))
    ids = [] if node is None else trie.token_ids[trie.first_token[node] : trie.first_token[node + 1]].tolist()
    if not ids:
        raise VocabularyError(
            f"the vocabulary has no special token {mark}",
            remedy="Use one of its special tokens, or an id in brackets, <[128008]>.",
        )
    return [(token_id, token_id) for token_id in sorted(ids)]


def ids_of(mark: str) -> list[tuple[int, int]] | None:
    """The ranges of ids that a mark names, ascending; none for ``<[*]>``, None for a name.

    Raises `DefinitionError`.
    """
    mark = mark.removeprefix("!")
    if not (mark.startswith("<[") and mark.endswith("]>")):
        return None
    found = _SET.fullmatch(mark)
    named = found[1] or "" if found else ""
    ranges = [[int(end) for end in each.split("-")] for each in named.split(",") if each]
    if found is None or any(each[0] > each[-1] for each in ranges):
        raise DefinitionError(
            f"{mark} names no ids of tokens", remedy="Write <[5]>, <[1-3,5]>, <[^1-3]> for others, or <[*]> for any."
        )
    return sorted((each[0], each[-1]) for each in ranges)


def _between(ranges: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The ids below ``size`` that are in none of some ranges, as ranges."""
    found, begin = [], 0
    for first, last in sorted(ranges):
        if begin < first:
            found.append((begin, first - 1))
        begin = max(begin, last + 1)
    return [*found, (begin, size - 1)] if begin < size else found


def marks_in_gbnf(text: str) -> list[str]:
    """The tokens that a grammar in GBNF, or in XGrammar's EBNF, names, as they are written, or by their ids."""
    marks: dict[str, None] = {}
    for kind, piece in _pieces(text):
        if kind == "mark":
            marks[piece] = None
    for macro in _MACRO.findall(text) if "Token" in text else ():
        marks |= {f"<[{number}]>": None for number in re.findall(r"(?<![\w.-])\d{1,9}(?![\w.-])", macro)}
    return [*marks]


def engine_dialect(text: str) -> str:
    """What engines write a grammar in: the dialect of an `Ebnf`, or ``""`` for GBNF.

    They take XGrammar's EBNF; llama.cpp's GBNF is told by what that has not: a dot, or marks of tokens.
    """
    return "" if any(kind in ("mark", "dot") for kind, _ in _pieces(text)) else "xgrammar"


def _pieces(text: str) -> Iterator[tuple[str | None, str]]:
    """What GBNF reads as one: its kind, and how it is written. No more of what is never closed."""
    for found in _PIECE_OF_GBNF.finditer(text):
        if found["unclosed"] is not None:  # which is refused where it is read
            break
        yield found.lastgroup, found[0]


def special_names(marks: Iterable[str], vocabulary: Vocabulary) -> list[tuple[str, int | None]]:
    """The special tokens that a grammar names, with their ids, and where complements end: what a vocabulary's bytes
    don't tell."""
    marks = sorted(set(marks))
    complements = [(mark, vocabulary.known) for mark in marks if mark.startswith(("!", "<[^", "<[*"))]
    return [(mark, _named(mark, vocabulary)) for mark in marks] + complements


def _named(mark: str, vocabulary: Vocabulary) -> int | None:
    """The id of a special token by its name, which may have the brackets or do without."""
    return vocabulary.special_tokens.get(mark, vocabulary.special_tokens.get(mark[1:-1]))
