"""The items about tokens: which are never allowed, which splits are refused, and how much of texts is forced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..errors import BudgetExceededError, StructgenError
from ..runtime.guide.guide import Guide
from ..runtime.rows.bitmask import ids_of, unpack
from .languages import GreibachLanguage
from .loops import Uncounted
from .possible import LexemeStates, StackTops, Subsets, possible_tokens
from .texts import Texts
from .values import CertificateItem, Finding, readable

#: Tokens and splits that are told.
_TOLD = 20

#: Random texts, tokens of each beyond those of the shortest one, and at most.
_TEXTS, _LENGTH, _MOST_STEPS = 16, 40, 1 << 10

#: Configurations without a new token after which no more are looked at.
_IN_VAIN = 400


def never_allowed(texts: Texts, meter: Meter) -> CertificateItem:
    """Tokens of the vocabulary that no mask ever has."""
    name, vocabulary = "never_allowed", texts.machine.vocabulary
    spelled = np.diff(vocabulary.offsets.astype(np.int64)) > 0
    states = _states(texts, meter)
    possible = spelled if states is None else spelled & possible_tokens(states, vocabulary)
    seen, is_all = _seen(texts, possible, meter)
    open_ = int((possible & ~seen).sum()) if not is_all else 0
    never = np.flatnonzero(spelled & ~(seen if is_all else possible))
    facts = {
        "tokens": int(spelled.sum()), "never": len(never), "allowed": int((spelled & seen).sum()), "open": open_,
        "ids": never[:_TOLD].tolist(),
    }  # fmt: skip
    says = f"{len(never):,} of {facts['tokens']:,} tokens with bytes can never come"
    if open_ and states is None:
        return CertificateItem(name, "undecided", f"{open_:,} tokens were not seen to be allowed", facts)
    if open_:
        return CertificateItem(name, "undecided", f"{says}; {open_:,} more were not seen to be allowed", facts)
    return CertificateItem(name, "proved", says, facts)


def _states(texts: Texts, meter: Meter) -> Subsets | None:
    """A finite automaton with more texts; None where none is known, and for what reads whole tokens."""
    lexemes = texts.machine.lexemes()
    if lexemes is not None:
        return LexemeStates(lexemes, meter)
    if not texts.has_productions:
        return None
    language = GreibachLanguage(Uncounted(texts.machine).productions, meter)
    return None if language.reads_tokens else StackTops(language, meter)


def _seen(texts: Texts, possible: NDArray[np.bool_], meter: Meter) -> tuple[NDArray[np.bool_], bool]:
    """``bool[size]``: the tokens that some mask has, and whether all configurations were looked at."""
    size = texts.machine.vocabulary.size
    seen, vain = np.zeros(size, np.bool_), 0
    with suppress(BudgetExceededError):
        for config, _ in texts.configs(meter):
            missing = int((possible & ~seen).sum())
            if not missing or vain > _IN_VAIN:
                return seen, False
            seen |= unpack(texts.machine.row(config), size)
            vain = vain + 1 if int((possible & ~seen).sum()) == missing else 0
        return seen, True
    return seen, False


# -- canonical splits ----------------------------------------------------------------------------------------


def canonical_splits(texts: Texts, meter: Meter) -> CertificateItem:
    """Texts that are refused as the tokenizer splits them."""
    name, vocabulary = "canonical_splits", texts.machine.vocabulary
    if vocabulary.encode is None:
        return CertificateItem(name, "undecided", "the vocabulary does not say how its tokenizer splits texts")
    looked, findings = 0, []
    for text, _, _ in _random_texts(texts, meter):
        try:
            tokens = [*vocabulary.encode(text.decode())]
        except (UnicodeDecodeError, StructgenError):
            continue
        if b"".join(vocabulary.token(token) or b"" for token in tokens) != text:
            continue  # the tokenizer normalises, or takes a piece for a special token
        looked += 1
        guide = Guide(texts.index)
        if not all(guide.advance(token) for token in tokens) or not guide.is_accepting():
            findings.append(Finding("note", "the text is refused as its tokenizer splits it", "", readable(text)))
    facts = {"texts": looked}
    if findings:
        return CertificateItem(name, "refuted", f"{len(findings):,} of {looked:,} texts", facts, (*findings[:_TOLD],))
    if texts.has_productions and texts.derived(meter).reads_tokens:
        return CertificateItem(name, "undecided", f"none of {looked:,} random texts; whole tokens are read", facts)
    says = "a mask has every token whose bytes go on with a text, so no split of a text is refused"
    return CertificateItem(name, "proved", f"{says}; so it is with {looked:,} random texts", facts)


# -- random texts ----------------------------------------------------------------------------------------------


def forced_share(texts: Texts, meter: Meter) -> CertificateItem:
    """How many tokens of random texts are the only ones that may come."""
    found = list(_random_texts(texts, meter))
    tokens, forced = sum(steps for _, steps, _ in found), sum(only for _, _, only in found)
    if not tokens:
        return CertificateItem("forced_share", "undecided", "no random text was completed")
    facts = {"texts": len(found), "tokens": tokens, "forced": forced, "share": round(forced / tokens, 4)}
    says = f"{forced:,} of {tokens:,} tokens of {len(found):,} random texts were the only ones allowed"
    return CertificateItem("forced_share", "measured", says, facts)


def _random_texts(texts: Texts, meter: Meter) -> Iterator[tuple[bytes, int, int]]:
    """Random complete texts, each with its tokens, and how many of these were the only one. The same every time.

    Where it is known how far texts are from their end, they are led there.
    """
    random, vocabulary = Random(0), texts.machine.vocabulary
    with suppress(BudgetExceededError):
        for _ in range(_TEXTS):
            guide, plain, text, steps, forced = texts.guide(_LENGTH), Guide(texts.index), bytearray(), 0, 0
            while steps < _MOST_STEPS:
                meter.check_time("writing random texts")
                ids = ids_of(guide.bitmask())
                words = ids[~np.isin(ids, vocabulary.eos_ids)]
                if guide.is_accepting() and (not len(words) or random.random() < 0.3):
                    break
                if not len(words):
                    return
                token = int(words[random.randrange(len(words))])
                forced += len(ids_of(plain.bitmask())) == 1
                steps += 1
                text += vocabulary.token(token) or b""
                guide.advance(token)
                plain.advance(token)
            if guide.is_accepting():
                yield bytes(text), steps, forced


def relaxations(texts: Texts, meter: Meter) -> CertificateItem:
    """What a lenient compile approximated."""
    lines = texts.index.relaxations
    if not lines:
        return CertificateItem("relaxations", "proved", "nothing was relaxed")
    findings = tuple([Finding("warning", f"approximated: {line}") for line in lines])
    return CertificateItem("relaxations", "refuted", f"{len(lines):,} relaxed", {}, findings)
