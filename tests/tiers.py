"""How often a random test draws: all that it asks for at night, a share of that in the tiers before."""

from __future__ import annotations

import os

#: ``make nightly`` sets 1, ``make quick`` a twentieth.
SHARE = float(os.environ.get("STRUCTGEN_DRAWS", "0.2"))


def draws(number: int) -> int:
    """The share of so many draws that this tier makes, one at least."""
    return max(1, round(number * SHARE))


#: Whether everything is tried, and not a part of it.
WHOLE = SHARE >= 1
