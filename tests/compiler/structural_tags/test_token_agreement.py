"""XGrammar beside structgen on formats with tokens and bounds, over real vocabularies: the same masks, id by id.

Walks are drawn from the masks of each, and the masks of both are compared at each step, whether the reply may end
included. They may differ as docs/guide/structural_tags.md explains: each name of a difference below is a row there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judges.random_tags import LETTERS, PHASES, SPECIAL, drawn, token_formats
from judges.structural_tags import Format
from judges.xgrammar import REFUSED, XGrammar, bits, explained
from tiers import draws

import structgen as sg

pytest.importorskip("xgrammar")

#: Names of special tokens of each vocabulary: the first one stands in texts, too.
NAMES = {
    "llama3": ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|reserved_special_token_3|>"),
    "qwen2_5": ("<|im_start|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>"),
    "tekken": ("[INST]", "[/INST]", "[TOOL_CALLS]", "[IMG]"),
}

_TOKEN_FORMATS = frozenset({"token", "exclude_token", "any_tokens", "token_triggered_tags", "token_dispatch"})
_FREE_TOKENS = _TOKEN_FORMATS - {"token"}
_TEXTS = frozenset({"any_text", "triggered_tags", "dispatch", "regex", "json_schema"})

#: A format, and the formats around it, the outermost first.
_Part: TypeAlias = "tuple[Format, tuple[Format, ...]]"


def parts(format_: Any, around: tuple[Format, ...] = ()) -> Iterator[_Part]:
    """A format and all within it."""
    if isinstance(format_, list):
        for each in format_:
            yield from parts(each, around)
    elif isinstance(format_, dict) and "type" in format_:
        yield format_, around
        for name, each in format_.items():
            if name not in ("begin", "end", "json_schema"):
                yield from parts(each, (*around, format_))


def texts(format_: Any) -> Iterator[str]:
    """The strings of a format that stand for text, patterns included."""
    if isinstance(format_, str):
        yield format_
    elif isinstance(format_, list):
        for each in format_:
            yield from texts(each)
    elif isinstance(format_, dict) and format_.get("type") != "token":
        for name, each in format_.items():
            if name not in ("type", "style") and "token" not in name:
                yield from texts(each)


#: Differences for which formats are not drawn, and those in what masks have.
DRAWN_NOT = ("tokens-in-repeat", "excluded-behind-trigger", "minimax-m3-empty")
IN_MASKS = (
    "text-of-tokens", "bound-of-tokens", "special-tokens-in-text", "token-begun-before", "token-runs-into",
    "end-as-a-token", "eos-in-text",
)  # fmt: skip


def test_the_guide_explains_each_difference() -> None:
    named = {*REFUSED, *DRAWN_NOT, *IN_MASKS, "any-bytes", "hidden-triggers", "whitespace"}
    assert named <= explained("structural_tags.md").keys()


def _text_ends(format_: Format) -> list[str]:
    """The texts that end a tag."""
    ends = format_.get("end", [])
    return [each for each in (ends if isinstance(ends, list) else [ends]) if isinstance(each, str)]


def differs(name: str, format_: Format) -> bool:
    """Whether a format is of those of which a difference is said."""
    for part, around in parts(format_):
        kind = part["type"]
        if name == "tokens-in-repeat":
            edges = (part.get("begin"), part.get("end"))
            found = kind in _TOKEN_FORMATS or any(isinstance(each, dict) for each in edges)
            found = found and any(each["type"] == "repeat" for each in around)
        elif name == "excluded-behind-trigger":
            patterns = [*part.get("triggers", ()), *(rule[0] for rule in part.get("rules", ()))]
            excluded = [*part.get("excludes", ()), *(end for outer in around for end in _text_ends(outer))]
            found = kind in ("dispatch", "triggered_tags") and any(
                pattern in each for pattern in patterns for each in excluded
            )
        elif name == "text-of-tokens":
            ends = [tag["end"] for tag in around if tag["type"] == "tag"]
            found = kind in _FREE_TOKENS and bool(ends) and not isinstance(ends[-1], dict)
        elif name == "bound-of-tokens":
            alone = bool(around) and around[-1]["type"] == "tag" and isinstance(around[-1]["end"], dict)
            found = kind == "any_tokens" and "max_tokens" in part and not alone
        elif name == "eos-in-text":
            found = kind in ("any_text", "dispatch", "triggered_tags") and any(map(_text_ends, around))
        elif name == "special-tokens-in-text":
            found = kind in _TEXTS
        elif name in ("token-runs-into", "end-as-a-token"):
            found = kind in _TOKEN_FORMATS
        elif name == "token-begun-before":
            found = kind == "any_text" and part.get("max_tokens") is not None
        else:
            found = kind == "json_schema" and part.get("style") == "minimax_m3_xml"
        if found:
            return True
    return False


class World:
    """A vocabulary, XGrammar on it, and formats and tokens of it."""

    def __init__(self, vocabulary: sg.Vocabulary, names: tuple[str, ...]) -> None:
        self.vocabulary, self.names = vocabulary, names
        self.names_of = {token: name for name, token in vocabulary.special_tokens.items()}
        ids = [vocabulary.special_tokens[name] for name in names]
        letters, spelled = {*(LETTERS + '"').encode()}, names[0].encode()
        self.texts: list[int] = []
        self.known = np.zeros(vocabulary.size, bool)  # tokens of whole characters, and all that have no bytes
        self.special = np.ones(vocabulary.size, bool)
        self.special[[*vocabulary.eos_ids]] = False
        self.long = np.zeros(vocabulary.size, bool)
        for token in range(vocabulary.size):
            data = vocabulary.token(token)
            self.long[token] = len(data or b"") > 1
            self.known[token] = data is None or is_text(data)
            if data is not None:
                self.special[token] = False
                if {*data} <= letters or (len(data) < 9 and data in spelled):
                    self.texts.append(token)
        self.taste = np.array([*self.texts, *ids])
        self._tokens = dict(zip((*SPECIAL, "<|none|>"), (names[1], names[0], *names[2:]), strict=True))
        self._tokens |= {97: self.texts[0], 256: ids[0], 257: self.texts[-1]}  # type: ignore[dict-item]

    def spellings(self, format_: Any) -> Iterator[str]:
        """The texts of the tokens by which tags of a format begin and end, or which stand by themselves."""
        if isinstance(format_, list):
            for each in format_:
                yield from self.spellings(each)
        elif isinstance(format_, dict) and format_.get("type") == "token":
            token = format_["token"]
            data = self.vocabulary.token(token) if isinstance(token, int) else token.encode()
            yield self.names_of[token] if data is None else data.decode(errors="replace")
        elif isinstance(format_, dict):
            for each in format_.values():
                yield from self.spellings(each)

    @cached_property
    def engine(self) -> XGrammar:
        """XGrammar's compiler."""
        return XGrammar(self.vocabulary)

    def named(self, value: Any, kind: str = "") -> Any:
        """A format of `random_tags` with names and ids of this vocabulary."""
        if isinstance(value, list):
            return [self.named(each, kind) for each in value]
        if isinstance(value, str) and kind != "token":
            return value.replace("1", self.names[0])
        if not isinstance(value, dict):
            return self._tokens.get(value, value)
        found = {}
        for name, each in value.items():
            if name in ("type", "pattern", "grammar", "json_schema", "style") or isinstance(each, bool | int):
                found[name] = self._tokens.get(each, each) if name == "token" else each
            elif name == "rules":
                of = "token" if value["type"] == "token_dispatch" else ""
                found[name] = [[self.named(pattern, of), self.named(inner)] for pattern, inner in each]
            else:
                found[name] = self.named(each, "token" if "token" in name else "")
        return found


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeError:
        return False
    return True


@pytest.fixture(scope="module", params=[*NAMES])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.getfixturevalue(request.param), NAMES[request.param])


def one_more(format_: Any) -> Any:
    """A format in which free text may have one token more."""
    if isinstance(format_, list):
        return [one_more(each) for each in format_]
    if not isinstance(format_, dict):
        return format_
    more = {name: one_more(each) for name, each in format_.items() if name != "json_schema"}
    if format_.get("type") == "any_text" and "max_tokens" in format_:
        more["max_tokens"] += 1
    return {**format_, **more}


class Comparison:
    """Both engines on a format, and what may differ in their masks."""

    def __init__(self, world: World, format_: Format) -> None:
        self.world, self.format = world, format_
        self.index = self.compiled(format_)
        self.has_texts = differs("special-tokens-in-text", format_)
        self.ends = [end for part, _ in parts(format_) for end in _text_ends(part) if end]
        self.is_bounded = differs("token-begun-before", format_)
        self.is_loose = differs("bound-of-tokens", format_)
        self.has_tokens = differs("token-runs-into", format_)
        self.ends_early = differs("eos-in-text", format_)
        spelled = "\n".join(texts(format_))
        self.both = differs("text-of-tokens", format_) or any(name in spelled for name in world.spellings(format_))
        self.is_loose |= self.both and any("max_tokens" in part for part, _ in parts(format_))

    def compiled(self, format_: Format) -> sg.Index:
        return drawn(format_, self.world.vocabulary, eager=False, whitespace="any", most=None)

    def masks(self, index: sg.Index, row: list[int]) -> Any:
        guide = sg.Guide(index)
        assert all(map(guide.advance, row))
        return bits(guide.bitmask(), self.world.vocabulary.size)

    def check(self, row: list[int], ours: Any, theirs: Any) -> None:
        """Compare the masks behind a row."""
        world = self.world
        is_marked = bool(world.special[row].any())
        fewer = ours & ~theirs & world.known
        more = theirs & ~ours & world.known
        if self.has_texts:
            more &= ~world.special & (not is_marked)
            names = [world.names_of.get(token, "") for token in row]
            fewer &= not any(end in name for end in self.ends for name in names)
        if more.any() and self.is_bounded:
            more &= ~self.masks(self.compiled(one_more(self.format)), row)
        if self.both:
            fewer[:] = False
        if self.is_loose:
            more[:] = False
        if self.has_tokens or self.ends_early:
            more[[*world.vocabulary.eos_ids]] = False
        if self.has_tokens:
            more &= ~(world.long | world.special)  # which XGrammar spells by their names
        found = {token: world.vocabulary.token(int(token)) for token in np.flatnonzero(fewer | more)[:9]}
        assert not found, (row, found, int(fewer.sum()), int(more.sum()))

    def walk(self, rng: Random, side: int, most: int = 14) -> None:
        """Walk by the masks of one engine, as far as the other one goes along."""
        guide, theirs, row = sg.Guide(self.index), self.world.engine.walk(self.format), list[int]()
        eos = self.world.vocabulary.eos_ids[0]
        while len(row) < most:
            masks = bits(guide.bitmask(), self.world.vocabulary.size), theirs.mask()
            self.check(row, *masks)
            both = masks[0] & masks[1]
            if both[eos] and rng.random() < 0.15:
                assert guide.advance(eos)
                assert theirs.advance(eos)
                return
            both[eos] = False
            likely = self.world.taste[both[self.world.taste]]
            special = likely[self.world.special[likely]]
            if not len(likely):
                likely = np.flatnonzero(masks[side] & both)
            if not len(likely):
                return
            row.append(int(rng.choice(special if len(special) and rng.random() < 0.5 else likely)))
            assert guide.advance(row[-1]), row
            assert theirs.advance(row[-1]), row


def test_text_in_a_tag_does_not_end_before_the_tag(world: World) -> None:
    text: Format = {"type": "any_text"}
    for content in (text, {"type": "optional", "content": text}, {"type": "sequence", "elements": [text, text]}):
        comparison = Comparison(world, {"type": "tag", "begin": "<", "content": content, "end": [">", "b>"]})
        assert not comparison.masks(comparison.index, [])[[*world.vocabulary.eos_ids]].any()
        for seed in range(3):
            comparison.walk(Random(seed), seed % 2)


@given(token_formats, st.randoms(use_true_random=False))
@settings(max_examples=draws(15), phases=PHASES)
def test_masks_are_those_of_xgrammar(world: World, format_: Format, rng: Random) -> None:
    format_ = world.named(format_)
    assume(not any(differs(name, format_) for name in DRAWN_NOT))
    comparison = Comparison(world, format_)
    try:
        world.engine.walk(format_)
    except RuntimeError as error:
        assert any(re.search(reason, str(error)) for reason in REFUSED.values())  # noqa: PT017
        assume(False)
    for side in (0, 1, 0, 1):
        comparison.walk(rng, side)
