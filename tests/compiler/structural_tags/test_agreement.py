"""XGrammar beside structgen on random structural tags: each accepts what the other one writes.

Formats on which they differ, as docs/guide/structural_tags.md says, are not drawn, or are refused by one of the two.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judges.random_tags import LETTERS, PHASES, PLAIN, drawn, formats, mutated, texts_of
from judges.structural_tags import Format
from judges.xgrammar import REFUSED
from tiers import draws

xgrammar = pytest.importorskip("xgrammar")

END = 256
TOKENS = xgrammar.TokenizerInfo(
    [*(bytes([byte]) for byte in range(256)), b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[END]
)


def accepts(compiled: Any, text: str) -> bool:
    """Whether XGrammar accepts a text."""
    matcher = xgrammar.GrammarMatcher(compiled)
    return all(matcher.accept_token(byte) for byte in text.encode()) and bool(matcher.accept_token(END))


def written(compiled: Any, rng: Random, most: int = 200) -> str | None:
    """A text that XGrammar's masks let through, of the alphabet where any of it may follow; None where it comes to no
    end."""
    matcher, row, text = xgrammar.GrammarMatcher(compiled), xgrammar.allocate_token_bitmask(1, END + 1), bytearray()
    for _ in range(most):
        matcher.fill_next_token_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.numpy().view(np.uint8)[0], bitorder="little")[: END + 1])
        if not len(allowed):
            return None
        likely = [int(token) for token in allowed if token == END or chr(token) in LETTERS + '"']
        token = END if END in likely and rng.random() < 0.25 else int(rng.choice(likely or allowed))
        if token == END:
            return text.decode()
        assert matcher.accept_token(token)
        text.append(token)
    return None


def may_have_empty_elements(format_: Any) -> bool:
    """Where the two differ in MiniMax M3's tags."""
    if isinstance(format_, list):
        return any(map(may_have_empty_elements, format_))
    if not isinstance(format_, dict) or format_.get("style") != "minimax_m3_xml":
        return isinstance(format_, dict) and any(map(may_have_empty_elements, format_.values()))
    return "required" not in format_["json_schema"]


def is_beyond(format_: Any, *, around: str = "") -> bool:
    """Where XGrammar 0.2 takes texts that a format has not: a tag within a tag has free text and may end in nothing
    (then no end of the outer one is asked for), or triggers are repeated (then a part of one may be the whole)."""
    if isinstance(format_, list):
        return any(is_beyond(each, around=around) for each in format_)
    if not isinstance(format_, dict):
        return False
    kind = format_.get("type", "")
    is_free = kind == "tag" and format_["content"]["type"] in ("any_text", "any_tokens")
    if (is_free and around == "tag" and "" in format_["end"]) or (kind == "triggered_tags" and around == "repeat"):
        return True
    return is_beyond([*format_.values()], around=kind if kind in ("tag", "repeat") else around)


@given(formats, st.randoms(use_true_random=False))
@settings(max_examples=draws(60), phases=PHASES)
def test_each_accepts_what_the_other_writes(format_: Format, rng: Random) -> None:
    assume(not may_have_empty_elements(format_) and not is_beyond(format_))
    index = drawn(format_, PLAIN, eager=False, whitespace="any", most=None)
    try:
        compiled = xgrammar.GrammarCompiler(TOKENS, cache_enabled=False).compile_structural_tag(
            {"type": "structural_tag", "format": format_}
        )
    except RuntimeError as error:
        assert any(re.search(reason, str(error)) for reason in REFUSED.values())  # noqa: PT017
        assume(False)
    ours = texts_of(index, rng, 5)
    theirs = [text for _ in range(6) if (text := written(compiled, rng)) is not None]
    for text in {*ours, *theirs, *(mutated(text, rng) for text in ours + theirs)}:
        assert index.match(text.encode()).accepted == accepts(compiled, text), text
