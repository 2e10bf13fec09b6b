"""What there is to do, in which order, and how much of it is handed out at once.

Vocabularies one after another: whoever works has few of them at a time, and the tables of a grammar, which have no
vocabulary, are in the cache when the second one comes. Within one the largest definitions first, so that none of
those is left at the end, when all others rest. How large one is is guessed by its keywords (`weight`): the length of
a schema says more of its descriptions than of the time that it takes. For the second vocabulary it is known: what
took longest for the first one is begun first, and for all of them before the rest of any. What is not back long after
it was handed out takes long, and is begun for the others at once.

Keys are worked out as tasks are asked for: workers are busy meanwhile.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..definitions import Definition, as_definition
from ..definitions.loading import NamedDefinition
from ..errors import StructgenError
from ..vocabulary.vocabulary import Vocabulary
from .values import Outcome

#: Characters of a definition without a name that stand for it.
_NAME = 60

#: What a schema has for each value, and what takes longer to lower than a value does, by how much. (Of 220 MaskBench
#: schemas the rank correlation with seconds is 0.82, that of the length 0.72; 2,000 draws of these on 64 workers take
#: 1.03 times what is needed at least, in order of the length 1.25 times. Patterns have the longest among theirs, so
#: they weigh more than they take in the mean, which is 4.6: 256 workers take 6.6 s instead of 6.9, simulated.)
_WEIGHTS = {'"type"': 1, '"$ref"': 1, '"format"': 4, '"pattern"': 8}

#: Bounds of repetitions, in any pattern: each time weighs as much as a value does, up to so many. (Of 996 MaskBench
#: schemas 103 have some; the two that take longest are the 81st and the 43rd in order, and the 356th and the 161st
#: without this. Four simulations of 128 workers take 11.7 s in the mean instead of 12.8.)
_REPEATS = re.compile(r"\{(?:\d{0,9},)?(\d{1,9})\}")
_MOST_REPEATS = 100

#: Characters of other definitions that weigh as much as a value.
_CHARACTERS = 40

#: What a definition weighs before there is anything in it: the least squares through those 220 meet no value there.
_EMPTY = 8

#: Of definitions that are handed out together: how many there are at most, and what they weigh together, which is
#: a third of a second. What a worker that dies was at is begun anew, and news come no sooner.
_MOST, _HEAVIEST = 16, 500.0

#: What a batch weighs at least, for each worker: to hand one out takes the caller about a millisecond, which of 256
#: workers each waits for in turn.
_LIGHTEST = 0.4

#: Times the mean time until batches are back after which one is late. (256 workers take 6.6 s in the mean of three
#: simulations, 6.7 to 6.9 s with 1.5 to 2.5, and 9.7 s without this.)
_LATE = 3.0

#: The share of the last batch in that mean.
_LAST = 0.05

#: Times that the rest of a vocabulary's definitions is put in order by what is known of them by then, and how many
#: are taken of them at least in between.
_SORTED, _SORTED_ONCE = 8, 256


class Wanted(NamedTuple):
    """Who asked for a definition: its position, its name, and the place that is named where it fails."""

    position: int
    name: str
    where: str


@dataclass(eq=False)
class Task:
    """One index that is to be in the cache, and who asked for it: a definition may be given more than once."""

    of: DistinctDefinition
    vocabulary: Vocabulary
    weight: float
    key: str = ""
    attempts: int = 0
    since: float = 0.0
    """When it was handed out; 0 where nobody has it."""

    @property
    def definition(self) -> Definition:
        """What is compiled."""
        return self.of.definition

    @property
    def wanted(self) -> Sequence[Wanted]:
        """Who asked for it."""
        return self.of.wanted

    def outcomes(self, made: Outcome) -> list[Outcome]:
        """What became of it, for each that asked; the place of an error within the definition's."""
        return [
            dataclasses.replace(
                made, position=each.position, name=each.name, attempts=self.attempts,
                where="" if made.is_kept else ", ".join(filter(None, (each.where, made.where))),
            )
            for each in self.wanted
        ]  # fmt: skip


Batch = Sequence[Task]


@dataclass(eq=False)
class DistinctDefinition:
    """A definition, once, however often it was given; and the seconds that it took, once it was compiled."""

    definition: Definition
    digest: bytes
    weight: float
    wanted: list[Wanted]
    seconds: float | None = None


class Workload:
    """Tasks in the order in which they are begun, without their keys, and what failed before there was one.

    Parameters
    ----------
    distinct:
        The definitions, in order.
    vocabularies:
        Each definition is a task for each of them.
    shard:
        ``(3, 16)``: the third of 16 parts.
    failed:
        What no definition can be made of.
    """

    def __init__(
        self, distinct: Sequence[DistinctDefinition], vocabularies: Sequence[Vocabulary], shard: tuple[int, int],
        failed: list[Outcome],
    ) -> None:  # fmt: skip
        part, parts = shard
        self._distinct = distinct
        numbers = range(part - 1, len(distinct) * len(vocabularies), parts)
        #: What was not begun yet, in order.
        self._rest: list[tuple[Vocabulary, dict[DistinctDefinition, None]]] = [(each, {}) for each in vocabularies]
        for of_vocabulary, place in (divmod(number, len(distinct)) for number in numbers):
            self._rest[of_vocabulary][1][distinct[place]] = None
        self._many = len(numbers)
        self._out: deque[tuple[float, Task]] = deque()  # what was handed out, and when
        self._late: deque[DistinctDefinition] = deque()
        self._turnaround = float("inf")  # seconds until a batch is back, in the mean
        self.failed = failed if part == 1 else []
        #: Whose base rows are to be made while others are at the first tasks.
        self.without_base_rows: deque[Vocabulary] = deque()
        #: What tasks weigh that were not asked for yet.
        self.left = sum(each.weight for each in distinct) * len(vocabularies) / parts

    def __len__(self) -> int:
        return self._many

    def __iter__(self) -> Iterator[Task]:
        for vocabulary, some in self._rest[:1]:
            yield from self._begin(vocabulary, some)
        # What is known by then to take long is begun for all of them, or the last one's would be left at the end.
        for vocabulary, some in self._rest[1:]:
            yield from self._begin(vocabulary, some, _HEAVIEST)
        for vocabulary, some in self._rest[1:]:
            yield from self._begin(vocabulary, some)

    def _begin(
        self, vocabulary: Vocabulary, some: dict[DistinctDefinition, None], past: float = float("-inf")
    ) -> Iterator[Task]:
        """Tasks of those that weigh more than ``past``, the heaviest first; they are taken off the list."""
        count = max(_SORTED_ONCE, -(-len(some) // _SORTED))
        are_left = True
        while some and are_left:
            in_order = sorted(zip(self._weights(some), some, strict=True), key=lambda pair: -pair[0])
            taken = [pair for pair in in_order[:count] if pair[0] > past]
            are_left = len(taken) == count
            for weight, each in taken:
                if each in some:  # or it was late, and is begun
                    yield self._take_off(each, vocabulary, some, weight)
                yield from self._begin_late()

    def _begin_late(self) -> Iterator[Task]:
        """Tasks of what takes long as it seems, for all vocabularies for which it was not begun."""
        while self._late:
            late, self._late = self._late, deque()
            weighed = [*zip(self._weights(late), late, strict=True)]
            for vocabulary, some in self._rest:
                for weight, each in weighed:
                    if each in some:
                        yield self._take_off(each, vocabulary, some, weight)

    def _take_off(
        self, each: DistinctDefinition, vocabulary: Vocabulary, some: dict[DistinctDefinition, None], weight: float
    ) -> Task:
        del some[each]
        self.left -= each.weight
        return Task(each, vocabulary, weight)

    def _weights(self, some: Iterable[DistinctDefinition]) -> Iterator[float]:
        """What definitions weigh: by the seconds that they took, where they were compiled before, else as guessed."""
        known = [(each.seconds, each.weight) for each in self._distinct if each.seconds is not None]
        a_second = sum(weight for _, weight in known) / (sum(seconds for seconds, _ in known) or 1.0)
        return (each.weight if each.seconds is None else each.seconds * a_second for each in some)

    def batches(self, tasks: Iterable[Task], at_a_time: int) -> Iterator[Batch]:
        """Tasks of this workload by those that are handed out together, of one vocabulary each.

        The weight of a batch is its share of what is left (guided self-scheduling, Polychronopoulos and Kuck, 1987,
        doi:10.1109/TC.1987.5009495): those at the end are small, so that all are done at about the same time.

        Parameters
        ----------
        tasks:
            Some of the workload, in its order.
        at_a_time:
            Batches that are handed out before the first one is done: two for each worker.
        """
        batch: list[Task] = []
        weight, workers = 0.0, max(2.0, at_a_time / 2)
        for task in tasks:
            share = min(_HEAVIEST, max(_LIGHTEST * workers, (self.left + task.weight) / workers))
            is_full = len(batch) == _MOST or weight + task.weight > share
            if batch and (is_full or task.vocabulary is not batch[0].vocabulary):
                yield batch
                batch, weight = [], 0.0
            batch.append(task)
            weight += task.weight
        if batch:
            yield batch

    def hand_out(self, batch: Batch, now: float) -> None:
        """Learn that a batch is handed out, at a time in seconds: what was long before, and is not back, is late."""
        for task in batch:
            task.since = now
            if task.of.seconds is None:
                self._out.append((now, task))
        while self._out and now - self._out[0][0] > _LATE * self._turnaround:
            since, task = self._out.popleft()
            if task.of.seconds is None and task.since == since:
                task.of.seconds = now - since  # at least, which is what is known of it for now
                self._late.append(task.of)

    def take_back(self, batch: Batch, begun: int, at_a_time: int, now: float) -> list[Batch]:
        """What a worker had no time for, by as many as it had time for: it may take as long as what held it up.

        One by one they would be looked for and written one by one. Towards the end they are, for others rest then.
        """
        last, mean = now - batch[0].since, self._turnaround
        self._turnaround = last if mean == float("inf") else (1 - _LAST) * mean + _LAST * last
        for task in batch:
            task.since = 0.0
        are_others = self.left > at_a_time / 2 * sum(each.weight for each in batch)
        size = begun if are_others else 1
        return [batch[place : place + size] for place in range(begun, len(batch), size)]


def weight(definition: Definition) -> float:
    """What stands for the time that a definition takes, larger for more; nothing is lowered for that."""
    return _weight(definition.canonical())


def _weight(text: str) -> float:
    keywords = sum(each * text.count(keyword) for keyword, each in _WEIGHTS.items())
    repeats = sum(min(int(most), _MOST_REPEATS) for most in _REPEATS.findall(text))
    return _EMPTY + (keywords or len(text) / _CHARACTERS) + repeats


def plan(definitions: Sequence[object], vocabularies: Sequence[Vocabulary], shard: tuple[int, int]) -> Workload:
    """The tasks of a shard, or all."""
    by_digest: dict[bytes, DistinctDefinition] = {}
    failed: list[Outcome] = []
    for position, given in enumerate(definitions):
        named = given if isinstance(given, NamedDefinition) else None
        try:
            definition = named.definition if named else as_definition(given)
            text = definition.canonical()
        except StructgenError as error:
            name, where = (named.name, named.where) if named else (str(given)[:_NAME], "")
            where = ", ".join(filter(None, (where, error.where)))
            failure = Outcome(position, name, "", "failed", what=error.what, where=where, remedy=error.remedy)
            failed += [dataclasses.replace(failure, vocabulary=each.fingerprint) for each in vocabularies]
            continue
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = by_digest.get(digest)
        if found is None:
            found = by_digest[digest] = DistinctDefinition(definition, digest, _weight(text), [])
        name, where = (named.name, named.where) if named else (text[:_NAME], "")
        found.wanted.append(Wanted(position, name, where))
    # The digest decides between equals: each machine has the same order, and shards are each other's rest.
    return Workload(
        sorted(by_digest.values(), key=lambda each: (-each.weight, each.digest)), vocabularies, shard, failed
    )
