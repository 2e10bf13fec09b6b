"""Whether two samples may be of one distribution (Pearson 1900)."""

from __future__ import annotations

from collections import Counter

#: What a chi-square variable of so many degrees of freedom exceeds once in ten thousand times, nearly (Wilson and
#: Hilferty 1931, "The Distribution of Chi-Square").
_BOUND = {n: n * (1 - 2 / (9 * n) + 3.719 * (2 / (9 * n)) ** 0.5) ** 3 for n in range(1, 13)}


def is_homogeneous(a: Counter[int], b: Counter[int]) -> bool:
    """Whether two samples of one size may be of one distribution, at one in ten thousand."""
    common = [value for value, _ in (a + b).most_common(12)]
    pairs = [(a[value], b[value]) for value in common]
    pairs.append((a.total() - sum(x for x, _ in pairs), b.total() - sum(y for _, y in pairs)))
    pairs = [(x, y) for x, y in pairs if x + y]
    return bool(sum((x - y) ** 2 / (x + y) for x, y in pairs) < _BOUND[len(pairs) - 1])
