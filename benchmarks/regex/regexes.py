r"""The regexes that the benchmark runs on.

Those in `OUTLINES_CORE` are outlines-core's own benchmark, copied from ``benchmarks/bench_regex_guide.py`` and
``benchmarks/bench_mask_guide.py`` of https://github.com/dottxt-ai/outlines-core, Copyright The Outlines
developers, under the Apache License 2.0. Those in `FURTHER` are ours, of the same kinds.

All mean the same in Python's `re` and in Rust's regex syntax, except that ``\s`` also matches U+001C to U+001F
in Python; the benchmark counts such differences of opinion.
"""

from __future__ import annotations

import random

_SPAN = (
    r"""['"\ ,]?((?:of|resulting|case|which|cultures|a|core|extreme|selflessness|spiritual|various|However|both|"""
    r"""vary|in|other|secular|the|religious|among|moral|and|It|object|worldviews|altruism|traditional|material|"""
    r"""aspect|or|life|beings|virtue|is|however|opposite|concern|an|practice|it|for|s|quality|religions|In|"""
    r"""Altruism|animals|happiness|many|become|principle|human|selfishness|may|synonym)['"\ ,]?)+['"\ ,]?"""
)

OUTLINES_CORE: dict[str, str] = {
    "email": (
        r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
        r"@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
    ),
    "complex_phone": (
        r"\+?\d{1,4}?[-.\s]?\(?\d{1,3}?\)?[-.\s]?\d{1,4}[-.\s]?\d{1,4}[-.\s]?\d{1,9}"
    ),
    "simple_phone": r"\+?[1-9][0-9]{7,14}",
    "date": (
        r"([1-9]|0[1-9]|1[0-9]|2[0-9]|3[0-1])(\.|-|/)([1-9]|0[1-9]|1[0-2])(\.|-|/)"
        r"([0-9][0-9]|19[0-9][0-9]|20[0-9][0-9])"
        r"|([0-9][0-9]|19[0-9][0-9]|20[0-9][0-9])(\.|-|/)([1-9]|0[1-9]|1[0-2])(\.|-|/)"
        r"([1-9]|0[1-9]|1[0-9]|2[0-9]|3[0-1])"
    ),
    "time": r"(0?[1-9]|1[0-2]):[0-5]\d\s?(am|pm)?",
    "ip": r"(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)",
    "url": r"(https?:\/\/)?([\da-z\.-]+)\.([a-z\.]{2,6})([\/\w \.-]*)*\/?",
    "ssn": r"\d{3}-\d{2}-\d{4}",
    "complex_span_constrained_relation_extraction": (
        f"({_SPAN}" r"\s\|\s([^|\(\)" "\n" r"]{1,})\s\|\s" f"{_SPAN}"
        r"(\s\|\s\(([^|\(\)" "\n" r"]{1,})\s\|\s([^|\(\)" "\n" r"]{1,})\))*\n)*"
    ),
    "complexe": (
        r"""\{[ ]?"name"[ ]?:[ ]?"([^"\\\x00-\x1F\x7F-\x9F]|\\["\\])*"[ ]?,[ ]?"age"[ ]?:[ ]?(-)?(0|[1-9][0-9]*)"""
        r"""[ ]?,[ ]?"complexe_phone"[ ]?:[ ]?"(\+?\d{1,4}?[-. ]?\(\d{1,3}\)?[-. ]?\d{1,4}[-. ]?\d{1,4}[-. ]?"""
        r"""\d{1,9})"[ ]?\}"""
    ),
    "permissive_any": r".{1000}",
    "permissive_words": r"[a-zA-Z]{100}",
}  # fmt: skip


def _words(count: int) -> list[str]:
    """Made-up words of two to four syllables, always the same ones."""
    rng = random.Random(count)
    syllables = [onset + vowel for onset in ("b", "ch", "d", "k", "l", "m", "pr", "s", "st", "v") for vowel in "aeiou"]
    words: set[str] = set()
    while len(words) < count:
        words.add("".join(rng.choices(syllables, k=rng.randint(2, 4))))
    return sorted(words)


_H16 = "[0-9a-fA-F]{1,4}"

FURTHER: dict[str, str] = {
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "ipv6": (
        f"({_H16}:){{7}}{_H16}|({_H16}:){{1,7}}:|({_H16}:){{1,6}}:{_H16}|({_H16}:){{1,5}}(:{_H16}){{1,2}}"
        f"|({_H16}:){{1,4}}(:{_H16}){{1,3}}|({_H16}:){{1,3}}(:{_H16}){{1,4}}|({_H16}:){{1,2}}(:{_H16}){{1,5}}"
        f"|{_H16}:(:{_H16}){{1,6}}|:((:{_H16}){{1,7}}|:)"
    ),
    "iso8601": (
        r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
    ),
    "semver": (
        r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
        r"(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
        r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
    ),
    "choice_500": "|".join(_words(500)),
    "log_line": (
        r"(DEBUG|INFO|WARN|ERROR) [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} "
        r"\[[a-z][a-z0-9_.-]{0,30}\] [^\n]{1,200}\n"
    ),
}

REGEXES: dict[str, str] = OUTLINES_CORE | FURTHER
