"""Sections that are as declared are read, and all others refused: the kernels' reader against a plain one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hostile.index_fuzzer import DEFINITIONS, KINDS, damaged, indexed, vocabulary
from judges.columns_reader import agrees, readings

VOCABULARY = vocabulary()

#: What columns declare.
FIELDS = (
    "fields", "starts", "widest", "order", "within", "ends", "gaps", "members", "flags", "cast", "mapped", "least",
    "below", "columns",
)  # fmt: skip


@pytest.mark.parametrize("name", DEFINITIONS)
def test_damaged_sections(name: str) -> None:
    """Both readers read the same arrays, or refuse them."""
    random, outcomes = Random(f"columns of {name}"), {True: 0, False: 0}
    for sections, declared, before, after in readings(indexed(name, VOCABULARY)):
        by_name = {each.name: each for each in declared}
        for turn in range(40):
            changed = dict(sections)
            for each in random.sample([*sections], min(len(sections), turn and random.choice((1, 1, 2)))):
                kind = random.choice(KINDS)
                changed[each] = np.ascontiguousarray(damaged(sections[each], by_name[each], after, kind, random))
            if turn > 36:
                del changed[random.choice([*changed])]
            outcomes[agrees(changed, declared, before)] += 1
    assert all(outcomes.values()), outcomes


def test_every_kind_of_declaration_is_used() -> None:
    """By the indexes that are damaged above: what nobody declares is not judged there."""
    every = [
        each for name in DEFINITIONS for reading in readings(indexed(name, VOCABULARY)) for each in reading.declared
    ]
    unused = [field for field in FIELDS if all(getattr(each, field) in (None, 0, "", ()) for each in every)]
    assert not unused
