"""Writes the golden index files: ``python tests/make_golden.py``.

They pin the file format: a structgen that reads another format version must refuse them, one that reads this
version must find the same masks in them. Run it again only when ``FORMAT_VERSION`` was raised on purpose.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from judges.naive import small_vocabulary

import structgen as sg

FOLDER = Path(__file__).parent / "golden"

PATTERNS = {"date": r"\d{4}-\d{2}-\d{2}", "counted": r'"[^"]{3,200}"', "choice": "the|foo|ab", "lazy": "a+b"}


def masks_along(index: sg.Index, text: bytes) -> list[str]:
    """The rows, as hex of their set bits' positions, before each byte of a text and at its end."""
    guide, rows = sg.Guide(index), []
    for byte in [*text, None]:
        bits = np.flatnonzero(np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little"))
        rows.append(",".join(map(str, bits.tolist())))
        if byte is not None and not guide.advance(byte):
            break
    return rows


#: Counting strings, an object that is open, alternatives that overlap, an array with a long maximum.
SCHEMAS = {
    "schema": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 2, "maxLength": 40},
            "n": {
                "anyOf": [
                    {"type": "number", "minimum": 0},
                    {"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 50},
                ]
            },
        },
        "required": ["id"],
        "additionalProperties": {"anyOf": [{"$ref": "#"}, {"type": "object", "required": ["x"]}]},
    }
}

TEXTS = {
    "schema": b'{"id": "ab\xc3\xa9", "n": [1,"a", 1], "idx": {"id": "ab", "x": {"y": [true]}}}',
    "date": b"2024-02-30",
    "counted": b'"a\xc3\xa9bc"',
    "choice": b"foo",
    "lazy": b"aab",
}


DEFINITIONS: dict[str, sg.Definition] = {
    **{name: sg.Regex(pattern) for name, pattern in PATTERNS.items()},
    **{name: sg.JsonSchema(schema) for name, schema in SCHEMAS.items()},
}


def main() -> None:
    vocabulary = small_vocabulary()
    FOLDER.mkdir(exist_ok=True)
    expected = {}
    for name, definition in DEFINITIONS.items():
        index = sg.compile(definition, vocabulary, eager=name != "lazy")
        index.compile_seconds = 0.0
        expected[name] = masks_along(index, TEXTS[name])
        index.save(FOLDER / f"{name}.sgx")
    (FOLDER / "masks.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    main()
