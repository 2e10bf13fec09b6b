"""Whether a peer's masks are structgen's, and who is right where they differ: Python's `re` is the judge.

Whoever allows a token has to finish the text. If `re.fullmatch` accepts what comes out, the token was rightly
allowed and the other one lacks it; if no attempt gives such a text, it was wrongly allowed. `re` backtracks, so it
gets a second for each text, and where that is not enough nobody is called wrong.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import structgen as sg
from structgen.runtime import ids_of

from .. import engines
from . import walks

#: Disagreeing states that are judged, and kept as examples.
_JUDGED = 5

#: Attempts to finish a text, and tokens in each.
_ATTEMPTS, _LENGTH = 4, 1000

#: Seconds that `re` may think about a text.
_PATIENCE = 1.0

_UNDECIDED = "undecided"


@dataclass(frozen=True)
class Agreement:
    """How a peer's masks compare with structgen's.

    Parameters
    ----------
    states:
        States along the walks that were compared.
    differing:
        Those whose masks differ.
    refused:
        States that were not reached, for the peer had refused a token before.
    wrong:
        Of the differences that were judged, how many each one has wrong: ``{"peer": 5, "structgen": 0}``, or
        ``"undecided"``.
    examples:
        One line for each difference that was judged.
    """

    states: int = 0
    differing: int = 0
    refused: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Party:
    """An engine with one compiled regex."""

    name: str
    engine: engines.Engine
    compiled: Any

    def begin(self, bitmask: engines.Bitmask, tokens: walks.Walk) -> engines.Stepper | None:
        """A sequence after some tokens; ``None`` where one is refused."""
        stepper = self.engine.stepper(self.compiled, bitmask)
        return stepper if all(accepts(stepper, token) for token in tokens) else None


def accepts(stepper: engines.Stepper, token: int) -> bool:
    """Advance by a token; False if it is refused."""
    try:
        return stepper.advance(token, *stepper.advance_arguments) is not False
    except ValueError:
        return False


def masks_along(party: Party, vocabulary: sg.Vocabulary, sequences: list[walks.Walk]) -> NDArray[np.int32]:
    """``int32[states, words]``: the mask before each token and at the end of every walk.

    After a token that the engine refuses, a walk's masks are all ones, which no real mask is.
    """
    bitmask = np.zeros(vocabulary.words, np.int32)
    found = np.full((sum(len(sequence) + 1 for sequence in sequences), vocabulary.words), -1, np.int32)
    state = 0
    for sequence in sequences:
        stepper = party.engine.stepper(party.compiled, bitmask)
        alive = True
        for token in [*sequence, None]:
            if alive:
                stepper.fill(*stepper.fill_arguments)
                found[state] = bitmask
                alive = token is None or accepts(stepper, token)
            state += 1
    return found


def compare(
    pattern: str, ours: Party, theirs: Party, vocabulary: sg.Vocabulary, sequences: list[walks.Walk]
) -> Agreement:
    """Compare the masks in every state along the walks, and judge the first few that differ."""
    our_masks = masks_along(ours, vocabulary, sequences)
    their_masks = masks_along(theirs, vocabulary, sequences)
    reached = ~(their_masks == -1).all(axis=1)
    differing = np.flatnonzero((our_masks != their_masks).any(axis=1) & reached)
    prefixes = [sequence[:i] for sequence in sequences for i in range(len(sequence) + 1)]
    wrong, examples = {theirs.name: 0, ours.name: 0}, []
    for state in differing[:: max(1, len(differing) // _JUDGED)][:_JUDGED].tolist():
        for allowing, denying, extra in (
            (ours, theirs, our_masks[state] & ~their_masks[state]),
            (theirs, ours, their_masks[state] & ~our_masks[state]),
        ):
            if extra.any():
                token = int(ids_of(extra)[0])
                rightly = _can_finish(pattern, allowing, vocabulary, [*prefixes[state], token])
                loser = _UNDECIDED if rightly is None else denying.name if rightly else allowing.name
                wrong[loser] = wrong.get(loser, 0) + 1
                examples.append(_example(vocabulary, prefixes[state], token, allowing, loser, len(ids_of(extra))))
    return Agreement(
        states=int(reached.sum()), differing=len(differing), refused=int((~reached).sum()),
        wrong=wrong, examples=examples,
    )  # fmt: skip


def _can_finish(pattern: str, party: Party, vocabulary: sg.Vocabulary, tokens: walks.Walk) -> bool | None:
    """Whether some text that begins with these tokens, finished by their masks, is one that `re` matches."""
    for seed in range(_ATTEMPTS):
        text = _finish(party, vocabulary, tokens, np.random.default_rng(seed))
        try:
            with _time_limit():
                if text is not None and re.fullmatch(pattern, text):
                    return True
        except TimeoutError:
            return None
    return False


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise `TimeoutError` in the block after `_PATIENCE`, where the system has timers (`re` heeds signals)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def expire(*_: object) -> None:
        raise TimeoutError

    earlier = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


def _finish(party: Party, vocabulary: sg.Vocabulary, tokens: walks.Walk, rng: np.random.Generator) -> str | None:
    """A complete text: random tokens, and an end at the first opportunity."""
    bitmask = np.zeros(vocabulary.words, np.int32)
    stepper = party.begin(bitmask, tokens)
    first = walks.first_bytes(vocabulary)
    tokens = list(tokens)
    while stepper is not None and len(tokens) < _LENGTH:
        stepper.fill(*stepper.fill_arguments)
        ids = ids_of(bitmask)
        if not len(ids) or np.isin(vocabulary.eos_ids, ids).any():
            try:
                return b"".join(vocabulary.token(token) or b"" for token in tokens).decode()
            except UnicodeDecodeError:
                return None
        token = walks.draw(ids, first, rng)
        tokens.append(token)
        if not accepts(stepper, token):
            return None
    return None


def _example(vocabulary: sg.Vocabulary, prefix: walks.Walk, token: int, allowing: Party, loser: str, more: int) -> str:
    text = b"".join(vocabulary.token(i) or b"" for i in prefix)
    shown = repr(text if len(text) <= 60 else b"..." + text[-57:])
    spelled = vocabulary.token(token)
    return (
        f"after {shown} {allowing.name} allows {'EOS' if spelled is None else repr(spelled)} "
        f"({more} such tokens), the other does not: {loser if loser == _UNDECIDED else f'{loser} is wrong'}"
    )
