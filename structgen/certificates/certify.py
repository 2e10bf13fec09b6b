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
    index: Index, *, budget: Budget | None = None, items: Iterable[str] | None = None, progress: Progress | None = None
) -> Certificate:
    """Prove properties of an index: no text gets stuck, the number of texts, parts that are never used.

    Parameters
    ----------
    index:
        The result of `structgen.compile` or `Index.load`.
    budget:
        Bounds all items together, in seconds and memory. None: 20 seconds. An item that needs more than half of the
        remaining time is undecided.
    items:
        Names of the items to check. None: all.
    progress:
        Called as ``progress(name, done, total)`` before each item.

    Returns
    -------
    Certificate
        The verdicts.

    Raises
    ------
    ArgumentError
        For unknown items, and for anything but an index.
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
