"""``python examples/trace.py PAGE``: what a mask did to the text of a model that counted words, as a page.

The model knows which piece of a text followed which, in a few lines. It has no weights, and needs no network.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict

import numpy as np

import structgen as sg

READ = [
    'Sure! {"title":"A quiet masterpiece","stars":"five","verdict":"loved it"}',
    'Sure! {"title":"A quiet masterpiece of a film","stars":"five","verdict":"read it twice"}',
    '{"title":"The quiet river","stars":4,"verdict":"skip it"}',
]
SCHEMA = {
    "type": "object", "required": ["title", "stars", "verdict"], "additionalProperties": False,
    "properties": {
        "title": {"type": "string", "maxLength": 30}, "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "verdict": {"enum": ["read", "skip"]},
    },
}  # fmt: skip
PIECES = sorted({piece for line in READ for piece in re.findall(r" ?\w+|\W", line)} - set(map(chr, range(256))))
VOCABULARY = sg.Vocabulary.from_bytes(
    [*(bytes([byte]) for byte in range(256)), *map(str.encode, PIECES), None], eos_ids=[256 + len(PIECES)]
)
IDS = {piece: 256 + number for number, piece in enumerate(PIECES)}


def encode(text: str) -> list[int]:
    """Words with the space before them are tokens; what else there is are bytes."""
    pieces = re.findall(r" ?\w+|\W", text)
    return [token for piece in pieces for token in ([IDS[piece]] if piece in IDS else piece.encode())]


def counts() -> dict[tuple[int, ...], Counter[int]]:
    """How often a token followed three others; a text begins behind line ends."""
    found: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for line in READ:
        tokens = [*b"\n\n\n", *encode(line), *VOCABULARY.eos_ids]
        for at in range(3, len(tokens)):
            found[tuple(tokens[at - 3 : at])][tokens[at]] += 1
    return found


def written() -> sg.Trace:
    """The likeliest text under the schema, with its trace; what must follow is appended without the model."""
    model = counts()
    guide = sg.TracedGuide(sg.compile(sg.JsonSchema(SCHEMA, whitespace="compact"), VOCABULARY), candidates=4)
    text = [*b"\n\n\n"]
    while not guide.is_finished():
        tokens = guide.forced_tokens(encode)
        if not tokens:
            weights = np.full(VOCABULARY.size, 0.01)
            for token, count in model.get(tuple(text[-3:]), Counter()).items():
                weights[token] += count
            guide.see(np.log(weights))
            allowed = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: VOCABULARY.size]
            tokens = [int((weights * allowed).argmax())]
        for token in tokens:
            guide.advance(token)
            text.append(token)
    return guide.trace(prompt="What is it like?")


if __name__ == "__main__":
    trace = written()
    print(trace.text)
    trace.save_html(sys.argv[1])
