"""A streamer of transformers that keeps what it is handed."""

from __future__ import annotations

from typing import Any


class Streamer:
    """Token ids in the order in which they came, and whether the text has ended."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.ended = False

    def put(self, value: Any) -> None:
        self.tokens += value.flatten().tolist()

    def end(self) -> None:
        self.ended = True
