"""`certify`: the items of a certificate, one after the other, under one budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..budget import Budget, Meter
from ..errors import ArgumentError, BudgetExceededError
from ..progress import Progress, silent
from ..runtime.index.index import Index, check_index
from ..system.garbage import paused
from . import parts, texts, tokens
from .texts import Texts
from .values import Certificate, CertificateItem

#: By name, in the order in which they are looked at.
ITEMS: dict[str, Callable[[Texts, Meter], CertificateItem]] = {
    "no_dead_end": texts.no_dead_end,
    "end_of_text": texts.end_of_text,
    "language": texts.language,
    "shortest_and_longest": texts.shortest_and_longest,
    "unused_parts": parts.unused_parts,
    "terminals": parts.terminals,
    "unbounded_repetition": parts.unbounded_repetition,
    "never_allowed": tokens.never_allowed,
    "canonical_splits": tokens.canonical_splits,
    "forced_share": tokens.forced_share,
    "relaxations": tokens.relaxations,
}

#: Of the time that is left an item may take so much.
_SHARE = 0.5


def certify(
    index: Index,
    *,
    budget: Budget | None = None,
    items: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """What can be proved of an index: that no text gets stuck, how many texts there are, what can never be used.

    Parameters
    ----------
    index:
        What `structgen.compile` or `Index.load` gave.
    budget:
        Bounds all items together, in seconds and in memory; None means 20 seconds. An item that is not done in half
        of the time that is left is not decided.
    items:
        The names of the items to look at; None means all.
    progress:
        Called as ``progress(name, done, total)`` before each item.

    Raises `ArgumentError` for names of no item, and for something else in the place of an index.
    """
    check_index(index)
    wanted = list(ITEMS) if items is None else [*items]
    unknown = [name for name in wanted if name not in ITEMS]
    if unknown:
        raise ArgumentError(f"there is no item {unknown[0]!r}", remedy=f"Use some of {', '.join(ITEMS)}.")
    budget, report = budget or Budget(), progress or silent
    deadline = time.monotonic() + budget.seconds
    known, found = Texts(index), []
    for done, name in enumerate(wanted):
        report(name, done, len(wanted))
        left = max(0.01, _SHARE * (deadline - time.monotonic()))
        found.append(_decided(name, known, Meter(replace(budget, seconds=left))))
    report("done", len(wanted), len(wanted))
    return Certificate(index.kind, index.definition, index.vocabulary_fingerprint, tuple(found))


def _decided(name: str, known: Texts, meter: Meter) -> CertificateItem:
    began = time.monotonic()
    with paused():
        try:
            item = ITEMS[name](known, meter)
        except BudgetExceededError as error:
            item = CertificateItem(name, "undecided", f"not decided within the budget: {error.where or error.what}")
    return replace(item, seconds=round(time.monotonic() - began, 4))
