"""``python examples/trace.py PAGE``: what a mask did to the texts of a model that counted letters, as a page.

The model knows how often a letter followed two others in a few lines. It has no weights, and needs no network.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict

import numpy as np

import structgen as sg

READ = '{"mood":"fine","day":"monday"} {"mood":"sad","day":"sunday"} {"mood":"finally monday"} {"day":"fun"} '
SCHEMA = {
    "type": "object", "required": ["mood", "day"], "additionalProperties": False,
    "properties": {"mood": {"enum": ["fine", "sad"]}, "day": {"enum": ["monday", "friday"]}},
}  # fmt: skip
VOCABULARY = sg.Vocabulary.bytewise()


def counts() -> dict[bytes, Counter[int]]:
    """How often a byte followed two others."""
    found: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
    data = READ.encode()
    for at in range(2, len(data)):
        found[data[at - 2 : at]][data[at]] += 1
    return found


def written(seed: int = 0) -> sg.Trace:
    """A text under the schema, drawn at random, with its trace."""
    model, generator = counts(), random.Random(seed)
    guide = sg.TracedGuide(sg.compile(sg.JsonSchema(SCHEMA, whitespace="compact"), VOCABULARY))
    text = b" "
    while not guide.is_finished():
        weights = np.full(VOCABULARY.size, 0.001)
        for byte, count in model.get(text[-2:], Counter()).items():
            weights[byte] += count
        guide.see(np.log(weights))
        allowed = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: VOCABULARY.size]
        [token] = generator.choices(range(VOCABULARY.size), weights=(weights * allowed).tolist())
        guide.advance(token)
        text += VOCABULARY.token(token) or b""
    return guide.trace(prompt="How are you, and when?")


if __name__ == "__main__":
    trace = written()
    print(trace.text)
    trace.save_html(sys.argv[1])
