"""What is read: MaskBench's schemas, the regexes, and the grammars with their texts, as `worker.Case`s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structgen as sg

from .. import engines as peers
from .. import vocabularies
from ..grammar import __main__ as grammars
from ..grammar import corpora
from ..json_schema import engines as schema_engines
from ..json_schema import instances
from ..regex.regexes import REGEXES
from ..regex.walks import random_walks
from .worker import CACHED, COMPLETE, LAZY, Case

#: structgen's ways, by the name of the engine that measures each. The first three are what users get; the others show
#: what an option changes.
MODES = {
    "lazy": LAZY, "complete": COMPLETE, "cached": CACHED,
    "uncollected": "structgen, lazy, collector off", "base": "structgen, lazy, base rows first",
}  # fmt: skip

#: Workloads, and the tokenizer of each where none is named.
WORKLOADS = {"json": "llama3", "regex": "llama3", "c": "gemma", "sql": "llama3", "python": "gemma"}

#: Walks through each regex, and tokens of each at most.
_WALKS, _TOKENS = 20, 64


@dataclass(frozen=True)
class Workload:
    """Cases, and what engines are made of.

    Parameters
    ----------
    cases:
        All; a grammar has one for each text, so that nothing else was read before.
    peers_read:
        The numbers of the cases that peers read.
    engines:
        The engines that take part, by name.
    grammar:
        That of all cases, where there is one.
    """

    name: str
    vocabulary: vocabularies.NamedVocabulary
    cases: Sequence[Case]
    peers_read: frozenset[int]
    engines: Sequence[str]
    grammar: sg.Grammar | None = None


@dataclass(frozen=True)
class Choice:
    """How much of a workload is read; ``limit`` is of schemas and of texts, ``seed`` draws them."""

    data: Path
    limit: int | None
    seed: int
    peer_tokens: int


def load(name: str, vocabulary: vocabularies.NamedVocabulary, choice: Choice, engines: Sequence[str]) -> Workload:
    """A workload, and those of the engines that know it."""
    if name == "json":
        return _json(vocabulary, choice, engines)
    if name == "regex":
        return _regexes(vocabulary, choice, engines)
    return _grammar(name, vocabulary, choice, engines)


def _known(engines: Sequence[str], table: Mapping[str, object]) -> list[str]:
    return [engine for engine in engines if engine in table]


def _json(vocabulary: vocabularies.NamedVocabulary, choice: Choice, engines: Sequence[str]) -> Workload:
    if vocabulary.tokenizer_json is None:
        raise ValueError("instances are encoded by a tokenizer's own file")
    encoder = instances.Encoder(vocabulary.tokenizer_json)
    cases = []
    for line in instances.read(choice.data, limit=choice.limit, seed=choice.seed):
        case = encoder.case(line)
        texts = [
            (f"instance {number}{'' if instance.valid else ' (invalid)'}", instance.tokens)
            for number, instance in enumerate(case.instances)
        ]
        cases.append(Case(case.id, case.schema, texts))
    known = _known(engines, schema_engines.ENGINES)
    return Workload("json", vocabulary, cases, frozenset(range(len(cases))), known)


def _regexes(vocabulary: vocabularies.NamedVocabulary, choice: Choice, engines: Sequence[str]) -> Workload:
    known = vocabularies.read(vocabulary.path)
    cases = []
    for name, pattern in list(REGEXES.items())[: choice.limit]:
        index = sg.compile(sg.Regex(pattern), known)
        walks = random_walks(index, _WALKS, _TOKENS, choice.seed)
        cases.append(Case(name, pattern, [(f"walk {number}", walk) for number, walk in enumerate(walks)]))
    engines = _known(engines, peers.ENGINES)
    return Workload("regex", vocabulary, cases, frozenset(range(len(cases))), engines)


def _grammar(name: str, vocabulary: vocabularies.NamedVocabulary, choice: Choice, engines: Sequence[str]) -> Workload:
    sources = corpora.Sources(limit=choice.limit, seed=choice.seed)
    corpus = grammars.read_corpus(sources, name, vocabulary)
    cases = [
        Case(text.name, None, [(text.name, tokens)]) for text, tokens in zip(corpus.texts, corpus.tokens, strict=True)
    ]
    read = frozenset(grammars.sample(corpus, choice.peer_tokens, choice.seed))
    known = [engine for engine in engines if engine in (LAZY, COMPLETE, "llguidance")]
    return Workload(name, vocabulary, cases, read, known, corpus.grammar)
