"""The items about texts: whether they can be finished and ended, how many there are, the shortest and the longest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import numpy as np

from ..budget import Meter
from ..compiler.finishing import check_finishes
from ..compiler.stuck import unfinished_text
from ..definitions import Definition
from ..definitions.canonical import definition_of
from ..errors import BudgetExceededError, StructgenError, UnsupportedError, VocabularyError
from ..runtime.core.machine import CompiledMachine, Config
from ..runtime.guide.guide import Guide
from ..runtime.index.index import Index
from ..system.properties import cached_property
from ..system.types import JsonValue
from ..vocabulary.vocabulary import Vocabulary
from .configurations import Configurations
from .languages import GreibachLanguage, Pump
from .loops import AnySymbol, DoubledLoops
from .values import CertificateItem, Finding, abridged, readable

#: Configurations at which the rows are looked at for EOS ids.
_CONFIGS = 256

#: States of automata whose distances are worked out.
_MOST_STATES = 1 << 16

#: Numbers of texts from here on are told by their digits.
_MOST_TOLD = 10**15

_SPLITTING = "splitting a text into tokens"

#: More than any text has.
_NONE = 1 << 62


class Texts:
    """What several items ask about the texts of an index, found once.

    Parameters
    ----------
    index:
        The index.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.machine: CompiledMachine = index.machine
        self.no_source = ""
        self._derived: GreibachLanguage[AnySymbol] | None = None

    @cached_property
    def definition(self) -> Definition | None:
        """What the index was compiled from; None where its text does not tell, ``no_source`` says why."""
        try:
            return definition_of(self.index.kind, self.index.definition)
        except StructgenError as error:
            self.no_source = str(error)
            return None

    @cached_property
    def has_productions(self) -> bool:
        """Whether the machine is an automaton, with or without a stack, that counts no tokens."""
        try:
            self.machine.productions()
        except UnsupportedError:
            return False
        return True

    def derived(self, meter: Meter) -> GreibachLanguage[AnySymbol]:
        """Symbols that derive the texts. Raises `UnsupportedError` where there are none, `BudgetExceededError`."""
        if self._derived is None:
            spelled = next(iter(self.machine.vocabulary.special_tokens), "").encode()
            loops = DoubledLoops(self.machine, meter)
            self._derived = GreibachLanguage(loops.productions, meter, spelled, loops.others)
        self._derived.meter = meter
        return self._derived

    def counted(self, meter: Meter) -> GreibachLanguage[AnySymbol]:
        """Symbols that derive each text once: all configurations, if need be. Raises `BudgetExceededError`."""
        if self.has_productions and self.machine.is_unambiguous(meter):
            return self.derived(meter)
        return GreibachLanguage(Configurations(self.machine, meter).productions, meter)

    def guide(self, more: int) -> Guide:
        """A guide that comes to its end after so many tokens more than are needed, where it is known how many are."""
        try:
            return Guide(self.index, max_tokens=self.index.shortest() + more)
        except StructgenError:
            return Guide(self.index)

    def accepts(self, text: bytes) -> bool:
        """Whether the index itself does."""
        return self.machine.match(text).accepted

    def configs(self, meter: Meter) -> Iterator[tuple[Config, bytes]]:
        """Configurations that bytes lead to, each with a text; nearest first. Raises `BudgetExceededError`."""
        seen = {self.machine.byte_state(self.machine.start)}
        queue: list[tuple[Config, bytes]] = [(self.machine.start, b"")]
        for config, text in meter.each(queue, "looking through configurations"):  # grows as it goes
            yield config, text
            for byte, after in self.machine.following(self.machine.byte_state(config)):
                if after not in seen:
                    seen.add(after)
                    target = self.machine.follow_byte(config, byte)
                    if target is not None:
                        queue.append((target, text + bytes([byte])))


def no_dead_end(texts: Texts, meter: Meter) -> CertificateItem:
    """Whether tokens can finish whatever tokens begin."""
    name = "no_dead_end"
    dead = texts.derived(meter).dead() if texts.has_productions else []
    try:
        how = check_finishes(texts.machine, meter, completes=all(map(DoubledLoops.is_own, dead)))
    except VocabularyError as error:
        stuck = None
        with suppress(BudgetExceededError):
            stuck = unfinished_text(texts.machine, meter)
        finding = Finding("error", error.what, error.where, None if stuck is None else readable(stuck))
        return CertificateItem(name, "refuted", "tokens can begin a text that no tokens finish", {}, (finding,))
    return CertificateItem(name, "proved", f"tokens can finish whatever tokens begin: {how}")


def end_of_text(texts: Texts, meter: Meter) -> CertificateItem:
    """Whether EOS ids are allowed at complete texts, and nowhere else."""
    name, vocabulary = "end_of_text", texts.machine.vocabulary
    if not vocabulary.eos_ids:
        finding = Finding("note", "the vocabulary has no EOS id, so that no text ever ends by itself")
        return CertificateItem(name, "proved", "there is no EOS id to be allowed", {}, (finding,))
    eos = np.array(vocabulary.eos_ids)
    looked, is_all = 0, False
    with suppress(BudgetExceededError):
        for config, text in islice(texts.configs(meter), _CONFIGS):
            row = texts.machine.row(config)
            allowed = (row.view(np.uint32)[eos >> 5] >> (eos & 31).astype(np.uint32)) & 1
            complete = texts.accepts(text)
            looked += 1
            if (allowed != complete).any():
                what = "is complete, and EOS is refused" if complete else "is not complete, and EOS is allowed"
                finding = Finding("error", f"a text {what}", "", readable(text))
                return CertificateItem(name, "refuted", "EOS is not where it should be", {}, (finding,))
        is_all = looked < _CONFIGS
    facts = {"configurations": looked, "all": is_all}
    if is_all:
        return CertificateItem(name, "proved", f"at all {looked:,} configurations", facts)
    if not looked or (np.diff(vocabulary.offsets.astype(np.int64))[eos] > 0).any():
        return CertificateItem(name, "undecided", f"as far as {looked:,} configurations were looked at", facts)
    says = f"EOS ids have no bytes, so the end alone allows them; so it is at {looked:,} configurations"
    return CertificateItem(name, "proved", says, facts)


# -- how many, how long --------------------------------------------------------------------------------------


def language(texts: Texts, meter: Meter) -> CertificateItem:
    """Whether there is any text, finitely many, or infinitely many."""
    if not texts.has_productions:
        pump = Configurations(texts.machine, meter).pump()
        return _finite(texts, meter) if pump is None else _infinite(texts, pump)
    derived = texts.derived(meter)
    if derived.cost[0] < 0:
        finding = Finding("error", "no text is accepted")
        return CertificateItem("language", "proved", "empty", {"texts": 0}, (finding,))
    if derived.order() is not None:
        return _finite(texts, meter)
    return _infinite(texts, derived.pump())


def _infinite(texts: Texts, pump: Pump | None) -> CertificateItem:
    facts: dict[str, JsonValue] = {"texts": None}
    if pump is not None:
        names = ("prefix", "again", "middle", "more", "suffix")
        facts["pump"] = {name: readable(part) for name, part in zip(names, pump, strict=True)}
        facts["checked"] = not texts.machine.vocabulary.special_tokens or all(
            texts.accepts(pump.text(times)) for times in range(4)
        )
        again = readable(pump.again + pump.more)
        return CertificateItem("language", "proved", f"infinite: {abridged(again)!r} can come ever again", facts)
    return CertificateItem("language", "proved", "infinite", facts)


def _finite(texts: Texts, meter: Meter) -> CertificateItem:
    try:
        counted = texts.counted(meter)
        order = counted.order()
        if order is None or counted.reads_tokens:
            return CertificateItem("language", "undecided", "finite or not: whole tokens are read", {})
        number, exact = counted.number(order)
    except BudgetExceededError:
        if not texts.has_productions:
            raise
        return CertificateItem("language", "proved", "finite; to count its texts takes longer", {"finite": True})
    told = f"{int(number):,} texts" if number < _MOST_TOLD else f"some 10^{number.adjusted()} texts"
    facts = {"finite": True, "texts": int(number) if exact else None, "digits": number.adjusted() + 1}
    return CertificateItem("language", "proved", f"finite: {told}", facts)


def shortest_and_longest(texts: Texts, meter: Meter) -> CertificateItem:
    """The shortest text, and where there are finitely many the longest."""
    name = "shortest_and_longest"
    if texts.has_productions and texts.derived(meter).cost[0] < 0:
        return CertificateItem(name, "proved", "there is no text")
    least, text = _shortest(texts, meter)
    facts: dict[str, JsonValue] = {"shortest": _told(texts, least, text, meter), "fewest_tokens": _fewest(texts)}
    says = f"the shortest has {_size(facts['shortest'])}"
    try:
        longest = _longest(texts, meter)
    except BudgetExceededError:
        return CertificateItem(name, "undecided", f"{says}; to find the longest takes longer", facts)
    if longest is None:
        return CertificateItem(name, "proved", f"{says}; there is no longest", facts)
    facts["longest"] = _told(texts, *longest, meter)
    return CertificateItem(name, "proved", f"{says}, the longest {_size(facts['longest'])}", facts)


def _shortest(texts: Texts, meter: Meter) -> tuple[int, bytes | None]:
    """The bytes of the shortest text, and the text, unless it is too long to be spelled out."""
    if texts.has_productions:
        derived = texts.derived(meter)
        return derived.cost[0], derived.shortest()
    text = Configurations(texts.machine, meter).shortest()
    return len(text), text


def _longest(texts: Texts, meter: Meter) -> tuple[int, bytes | None] | None:
    """The same of the longest; None where there are infinitely many texts. Raises `BudgetExceededError`."""
    if not texts.has_productions and Configurations(texts.machine, meter).pump() is not None:
        return None
    derived = texts.derived(meter) if texts.has_productions else texts.counted(meter)
    order = derived.order()
    if order is not None and derived.reads_tokens:
        raise meter.out_of_time("whole tokens are read")
    return None if order is None else derived.longest(order)


def _told(texts: Texts, size: int, text: bytes | None, meter: Meter) -> dict[str, JsonValue]:
    """A text's bytes, its fewest tokens, and the text."""
    tokens = None if text is None else fewest_tokens(texts.machine.vocabulary, text, meter)
    return {
        "bytes": size,
        "tokens": None if tokens is None else len(tokens),
        "text": None if text is None else readable(text),
    }


def _size(told: dict[str, JsonValue]) -> str:
    tokens = "" if told["tokens"] is None else f", {told['tokens']:,} tokens at least"
    return f"{told['bytes']:,} bytes{tokens}"


def _fewest(texts: Texts) -> dict[str, JsonValue] | None:
    """The tokens that complete some text, EOS left out, and whether none has fewer; None where it takes long."""
    if texts.machine.states > _MOST_STATES:
        return None
    try:
        tokens = texts.index.shortest() - bool(texts.machine.vocabulary.eos_ids)
    except StructgenError:
        return None
    return {"tokens": tokens, "exact": texts.machine.flat() is not None}


def fewest_tokens(vocabulary: Vocabulary, text: bytes, meter: Meter) -> list[int] | None:
    """The fewest tokens whose bytes are a text; None where there are none. Raises `BudgetExceededError`."""
    trie = vocabulary.trie
    best = [(0, -1, -1)] + [(_NONE, -1, -1)] * len(text)  # by end: how many, the last one, and its begin
    for start in meter.each(range(len(text)), _SPLITTING, every=256):
        count, node = best[start][0] + 1, 0
        for end in range(start, len(text) if count <= _NONE else start):
            child = trie.child(node, text[end])
            if child is None:
                break
            node, first = child, int(trie.first_token[child])
            if first < trie.first_token[node + 1] and count < best[end + 1][0]:
                best[end + 1] = count, int(trie.token_ids[first]), start
    found: list[int] = []
    at = len(text)
    while at > 0:
        _, token, at = best[at]
        found.append(token)
    return found[::-1] if at == 0 else None
