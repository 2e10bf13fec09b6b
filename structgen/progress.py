"""How long work reports where it stands. A plain callable, so that a test can pass a list's `append`."""

from __future__ import annotations

from collections.abc import Callable

#: Called as ``progress(stage, done, total)``: the stage's name, units finished, units in all.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """A `Progress` that shows nothing."""
