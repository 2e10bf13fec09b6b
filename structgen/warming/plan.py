"""What there is to do, and in which order.

Vocabularies one after another: whoever works has few of them at a time, and the tables of a grammar, which have no
vocabulary, are in the cache when the second one comes. Within one the largest definitions first, so that none of
those is left at the end, when all others rest. How large one is is guessed by its keywords (`weight`): the length of
a schema says more of its descriptions than of the time that it takes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..definitions import Definition, as_definition
from ..definitions.loading import NamedDefinition
from ..errors import StructgenError
from ..index_store import cache_key
from ..vocabulary.vocabulary import Vocabulary
from .values import Outcome

#: Characters of a definition without a name that stand for it.
_NAME = 60

#: What a schema has for each value, and what takes longer to lower than a value does, by how much. (Of 220 MaskBench
#: schemas the rank correlation with seconds is 0.82, that of the length 0.72; 2,000 draws of these on 64 workers take
#: 1.03 times what is needed at least, in order of the length 1.25 times.)
_WEIGHTS = {'"type"': 1, '"$ref"': 1, '"format"': 4, '"pattern"': 4}

#: Characters of other definitions that weigh as much as a value.
_CHARACTERS = 40


@dataclass(eq=False)
class Task:
    """One index that is to be in the cache, and who asked for it: a definition may be given more than once."""

    key: str
    definition: Definition
    vocabulary: Vocabulary
    wanted: list[Outcome] = field(default_factory=list)
    attempts: int = 0

    def outcomes(self, made: Outcome) -> list[Outcome]:
        """What became of it, for each that asked; the place of an error within the definition's."""
        return [
            dataclasses.replace(
                made, position=each.position, name=each.name, attempts=self.attempts,
                where="" if made.is_kept else ", ".join(filter(None, (each.where, made.where))),
            )
            for each in self.wanted
        ]  # fmt: skip


@dataclass(frozen=True)
class Workload:
    """Tasks in the order in which they are begun, and what failed before there was anything to do."""

    tasks: list[Task]
    failed: list[Outcome]


def weight(definition: Definition) -> float:
    """What stands for the time that a definition takes, larger for more; nothing is lowered for that."""
    text = definition.canonical()
    return sum(each * text.count(keyword) for keyword, each in _WEIGHTS.items()) or len(text) / _CHARACTERS


def plan(definitions: Sequence[object], vocabularies: Iterable[Vocabulary], shard: tuple[int, int]) -> Workload:
    """The tasks of a shard, or all.

    What no definition can be made of is in ``failed``.
    """
    part, parts = shard
    tasks: list[Task] = []
    failed: list[Outcome] = []
    for vocabulary in vocabularies:
        by_key: dict[str, Task] = {}
        for position, given in enumerate(definitions):
            named = given if isinstance(given, NamedDefinition) else None
            wanted = Outcome(
                position, named.name if named else str(given)[:_NAME], vocabulary.fingerprint, "failed",
                where=named.where if named else "",
            )  # fmt: skip
            try:
                definition = named.definition if named else as_definition(given)
                key = cache_key(definition, vocabulary)
            except StructgenError as error:
                where = ", ".join(filter(None, (wanted.where, error.where)))
                failed.append(dataclasses.replace(wanted, what=error.what, where=where, remedy=error.remedy))
                continue
            if named is None:
                wanted = dataclasses.replace(wanted, name=definition.canonical()[:_NAME])
            by_key.setdefault(key, Task(key, definition, vocabulary)).wanted.append(
                dataclasses.replace(wanted, key=key)
            )
        # The key decides between equals: each machine has the same order, and shards are each other's rest.
        tasks += sorted(by_key.values(), key=lambda task: (-weight(task.definition), task.key))
    return Workload(tasks[part - 1 :: parts], failed if part == 1 else [])
