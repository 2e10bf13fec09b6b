"""`compile`: from a definition and a vocabulary to an `Index`, through the cache."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import threading
import time
import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import __version__
from .budget import Budget, Meter
from .definitions import Definition, Fsm, Gbnf, Grammar, JsonSchema, Regex, as_definition
from .errors import DefinitionError, EmptyLanguageError, FormatError, GrammarWarning, VocabularyMismatchError
from .garbage import paused
from .grammar_marks import read_marks, special_names, special_token
from .progress import Progress, silent
from .runtime.automaton import AutomatonMachine
from .runtime.container import FORMAT_VERSION
from .runtime.embedded import Embedded, by_id
from .runtime.grammar import GrammarMachine
from .runtime.grammar_tables import GrammarTables
from .runtime.index import AnyMachine, Index
from .runtime.pushdown import PushdownMachine
from .runtime.rows import RowPool
from .runtime.shared import Shared
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from .cache.cache import Cache
    from .compiler.pushdown import Program
    from .runtime.grammar_tables import GrammarTables


#: Warnings for one grammar.
_MOST_NOTES = 5


def compile(
    definition: Definition | Any,
    vocabulary: Vocabulary,
    *,
    cache: Cache | None = None,
    eager: bool = True,
    budget: Budget | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Index:
    """Compile a definition for a vocabulary, or fetch it from the cache.

    Parameters
    ----------
    definition:
        Such as ``Regex(r"\\d+")``. A dict, a type or a function stands for ``JsonSchema`` of it.
    vocabulary:
        The tokens of the model that will generate.
    cache:
        Where to look first and to keep the result; None compiles afresh.
    eager:
        True works out every row now (of the largest automata, what some 30,000 places of them take). False returns
        after building the automaton; a row is worked out when a guide first touches it, kept, and written back to
        the cache.
    budget:
        Bounds on states, memory and time; None means the defaults of `Budget`.
    progress:
        Called as ``progress(stage, done, total)`` while long work goes on.
    threads:
        How many threads walk the vocabulary; None decides by the amount of work.

    Raises
    ------
    DefinitionError, UnsupportedError, EmptyLanguageError
        A definition that is malformed, can't be honoured exactly, or matches nothing.
    BudgetExceededError
        A definition that needs more than ``budget``.
    VocabularyError
        A vocabulary that could get stuck: some text that it can begin, it cannot finish.

    Warns
    -----
    GrammarWarning
        Of conflicts that were shifted and of matches that are not the longest; not where the index, or the tables of
        the grammar, come from the cache.
    """
    definition = as_definition(definition)
    report = progress or silent
    key = cache_key(definition, vocabulary)
    index = _from_cache(cache, key, vocabulary) if cache is not None else None
    if index is None or (eager and not index.machine.is_filled()):
        _ready_kernels(report, for_grammars=isinstance(definition, Grammar))
        meter = Meter(budget or Budget())
        began = time.perf_counter()
        with paused():
            if index is None:
                report("automaton", 0, 1)
                machine, relaxations = _build(definition, vocabulary, meter, cache)
                index = Index(definition.kind, definition.canonical(), machine, relaxations=relaxations)
                _share(cache, index)
                report("automaton", 1, 1)
            if eager:
                index.machine.fill(threads=threads, meter=meter, progress=report)
        index.origin = "compiled"
        index.compile_seconds += time.perf_counter() - began
        if cache is not None:
            _to_cache(cache, key, index)
    if cache is not None and not index.complete:
        index.machine.on_new_row = _WriteBack(cache, key, index)
    return index


def _build(
    definition: Definition, vocabulary: Vocabulary, meter: Meter, cache: Cache | None = None
) -> tuple[AnyMachine, tuple[str, ...]]:
    """The machine of a definition, without rows, and what was relaxed."""
    if isinstance(definition, JsonSchema | Gbnf):
        return _build_pushdown(definition, vocabulary, meter)
    if isinstance(definition, Grammar):
        return _build_grammar(definition, vocabulary, meter, cache)
    from .compiler.stuck import check_never_stuck

    if isinstance(definition, Regex):
        from .compiler.regex.compiler import compile_regex

        tables = compile_regex(definition, meter)
    elif isinstance(definition, Fsm):
        from .compiler.fsm import compile_fsm

        tables = compile_fsm(definition, meter)
    else:
        raise DefinitionError(f"there is no compiler for definitions of kind {definition.kind!r}")
    row_of = np.full(tables.states, -1, np.int32)
    machine = AutomatonMachine(tables, vocabulary, RowPool(vocabulary.size), row_of, [])
    check_never_stuck(machine, meter)
    return machine, ()


def _build_pushdown(
    definition: JsonSchema | Gbnf | Regex, vocabulary: Vocabulary, meter: Meter
) -> tuple[PushdownMachine, tuple[str, ...]]:
    from .compiler.pushdown_tables import to_tables
    from .compiler.stuck import check_stack_never_stuck

    program, relaxations = _program(definition, meter)
    machine = PushdownMachine(to_tables(program), vocabulary)
    check_stack_never_stuck(machine, meter)
    return machine, relaxations


def _program(definition: JsonSchema | Gbnf | Regex, meter: Meter) -> tuple[Program, tuple[str, ...]]:
    """The pushdown program of a definition, and what was relaxed."""
    if isinstance(definition, JsonSchema):
        from .compiler.json_schema.compiler import compile_json_schema

        return compile_json_schema(definition, meter)
    if isinstance(definition, Gbnf):
        from .compiler.gbnf.compiler import compile_gbnf

        return compile_gbnf(definition, meter), ()
    from .compiler.regex.compiler import regex_program

    return regex_program(definition, meter), ()


def _build_grammar(
    definition: Grammar, vocabulary: Vocabulary, meter: Meter, cache: Cache | None
) -> tuple[GrammarMachine, tuple[str, ...]]:
    from .compiler.stuck import check_lexer_never_stuck
    from .grammar_store import tables_of

    def build() -> GrammarTables:
        from .compiler.grammar.compiler import compile_grammar

        return compile_grammar(definition, meter)

    tables = tables_of(definition.canonical(), cache, build)
    embedded, relaxations = _embedded(definition, tables, vocabulary, meter)
    machine = GrammarMachine(tables, vocabulary, embedded=embedded)
    if machine.is_empty():
        raise EmptyLanguageError(
            "the lexer can read no text that the grammar describes",
            remedy="Some terminal always takes what another one needs: look at their regexes and priorities.",
        )
    check_lexer_never_stuck(machine)
    _tell(tables.notes)
    return machine, relaxations


def _tell(notes: tuple[str, ...]) -> None:
    more = len(notes) - _MOST_NOTES
    for note in (*notes[:_MOST_NOTES], *([f"and {more} more"] if more > 0 else [])):
        warnings.warn(GrammarWarning(note), stacklevel=5)  # where `compile` was called


def _embedded(
    definition: Grammar, tables: GrammarTables, vocabulary: Vocabulary, meter: Meter
) -> tuple[Embedded, tuple[str, ...]]:
    """What a grammar holds besides terminals that are lexed, and what was relaxed in it."""
    marked = read_marks(definition.text)
    number = {name: t for t, name in enumerate(tables.terminals)}
    inner = {**{name: JsonSchema(text) for name, text in marked.schemas.items()}, **dict(definition.definitions)}
    machines, relaxed = [], []
    for name, each in inner.items():
        if name not in number:
            raise DefinitionError(f"no rule has the terminal {name}", remedy="Use it in a rule, or leave it out.")
        machine, relaxations = _build_pushdown(each, vocabulary, meter)
        if machine.is_accepting(machine.start):
            raise DefinitionError(
                f"the definition {name} has the empty text", remedy="Let the rules say that it may be left out."
            )
        machines.append((number[name], machine))
        relaxed += [f"{name}: {relaxation}" for relaxation in relaxations]
    tokens = [
        [special_token(mark, vocabulary), number[name]] for name, mark in marked.tokens.items() if name in number
    ]
    return Embedded(tuple(machines), by_id(tokens)), tuple(relaxed)


# -- the cache -----------------------------------------------------------------------------------------------


def cache_key(definition: Definition, vocabulary: Vocabulary) -> str:
    """The key of an index: a hash of definition, vocabulary, format version and structgen's version."""
    digest = hashlib.blake2b(digest_size=20, person=b"structgen-index")
    named = special_names(definition.text, vocabulary) if isinstance(definition, Grammar) else []
    for part in (definition.canonical(), vocabulary.fingerprint, str(FORMAT_VERSION), __version__, str(named)):
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


def _from_cache(cache: Cache, key: str, vocabulary: Vocabulary) -> Index | None:
    """The cached index; a damaged entry is a miss, and goes."""
    buffer = cache.get(key)
    if buffer is None:
        return None
    try:
        index = Index.from_buffer(buffer, vocabulary, origin="cache", where=f"cache entry {key}")
        _share(cache, index)
        return index
    except (FormatError, VocabularyMismatchError):
        cache.discard(key)
        return None


def _to_cache(cache: Cache, key: str, index: Index) -> None:
    cache.put(key, index.to_bytes(with_vocabulary=False), label=index.definition[:200], kind=index.kind)


def _share(cache: Cache | None, index: Index) -> None:
    """Let an index keep the rows that belong to its vocabulary in the cache, and find them there."""
    machine = index.machine
    if cache is None or not isinstance(machine, PushdownMachine):
        return
    fingerprint = machine.vocabulary.fingerprint

    def fetch(name: bytes) -> Shared | None:
        buffer = cache.get(_shared_key(fingerprint, name))
        return None if buffer is None else Shared.from_buffer(buffer, machine.vocabulary, "a shared row in the cache")

    def keep(name: bytes, place: Shared) -> None:
        cache.put(_shared_key(fingerprint, name), place.to_bytes(), label="rows inside a string", kind="shared")

    machine.rows.shared.fetch, machine.rows.shared.keep = fetch, keep


def _shared_key(fingerprint: str, name: bytes) -> str:
    digest = hashlib.blake2b(digest_size=20, person=b"structgen-shared")
    for part in (fingerprint.encode(), name, str(FORMAT_VERSION).encode(), __version__.encode()):
        digest.update(part + b"\0")
    return digest.hexdigest()


class _WriteBack:
    """Keeps what a lazy index learns: written when it has doubled, and at the end of the index or the process."""

    _alive: ClassVar[weakref.WeakSet[_WriteBack]] = weakref.WeakSet()

    def __init__(self, cache: Cache, key: str, index: Index) -> None:
        self._cache, self._key, self._index = cache, key, index
        self._written = index.machine.known_rows
        self._learned = 0  # states whose rows were worked out since
        self._alive.add(self)

    def __call__(self) -> None:
        self._learned += 1
        if self._learned > self._written or self._index.complete:
            self.flush()

    def flush(self) -> None:
        """Write what was not written yet."""
        if self._learned:
            self._written, self._learned = self._written + self._learned, 0
            _to_cache(self._cache, self._key, self._index)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the very end of a process modules may be gone
            self.flush()

    @classmethod
    def flush_all(cls) -> None:
        """At exit, while everything still works."""
        for each in list(cls._alive):
            each.flush()


atexit.register(_WriteBack.flush_all)


def compile_kernels(progress: Progress | None = None) -> float:
    """Compile the kernels, or load them where this machine has compiled them before. Returns the seconds.

    Happens by itself on first use, outside any definition's budget; a build step or a server's start calls it to
    have it behind them.
    """
    began = time.perf_counter()
    _exercise([*_KERNEL_SAMPLES, *_GRAMMAR_SAMPLES], progress or silent)
    return time.perf_counter() - began


def _exercise(samples: Sequence[Definition], report: Progress) -> None:
    """Compile some definitions for a vocabulary of bytes, so that every kernel they need is called."""
    vocabulary = Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"ab", None], eos_ids=[257])
    for done, sample in enumerate(samples):
        report("compiling kernels", done, len(samples))
        meter = Meter(Budget(seconds=3600))
        machine, _ = _build(sample, vocabulary, meter)
        if isinstance(machine, PushdownMachine):
            machine.rows.exercise_kernels()
        machine.fill(meter=meter)
        machine.row(machine.start)
    report("compiling kernels", len(samples), len(samples))


def compile_base_rows(
    vocabulary: Vocabulary, *, cache: Cache | None = None, progress: Progress | None = None
) -> float:
    """Work out the rows that JSON Schemas of one vocabulary have in common. Returns the seconds: two or three.

    They are those inside a string: of any string, of one with a format, of one whose length is bounded. Each is kept
    with the vocabulary, and in the ``cache``, when the first schema asks for it; with all of them there,
    what nobody compiled ahead of time (``eager=False``) answers in microseconds from its first token on.
    """
    began = time.perf_counter()
    report = progress or silent
    samples = _base_samples()
    for done, sample in enumerate(samples):
        report("base rows", done, len(samples))
        compile(sample, vocabulary, cache=cache, budget=Budget(seconds=3600))
    report("base rows", len(samples), len(samples))
    return time.perf_counter() - began


def _base_samples() -> list[Definition]:
    """Schemas that between them have the strings that are shared."""
    from .compiler.json_schema.formats import SHAREABLE_FORMATS
    from .compiler.json_schema.lengths import COUNT_FROM

    asserted: list[dict[str, Any]] = [{"maxLength": COUNT_FROM}, {"maxLength": 1000}, {"minLength": 1000}]
    asserted += [{"minLength": 1} | each for each in asserted[:2]]
    asserted += [{"format": name} for name in sorted(SHAREABLE_FORMATS)]
    return [JsonSchema({}), *(JsonSchema({"type": "string"} | each) for each in asserted)]


#: Between them these reach every kernel: narrow and wide rows, differences, counters, look-around, stacks.
_KERNEL_SAMPLES: tuple[Definition, ...] = (
    *map(Regex, ("ab|c", "[^a]*b", "x[a-z]{30,40}", "(?!ab)[a-c]+")),
    JsonSchema('{"type": "string", "maxLength": 40}'),
)

#: The same for grammars, whose kernels are their own: loading Lark takes a fifth of a second.
_GRAMMAR_SAMPLES: tuple[Definition, ...] = (Grammar('start: "ab"+ /[^a]+/\n%ignore " "'),)

_kernels_ready: set[bool] = set()  # for grammars, for others
_kernels_lock = threading.Lock()


def _ready_kernels(report: Progress, *, for_grammars: bool) -> None:
    """Have the kernels compiled before the clock of a budget starts."""
    if for_grammars not in _kernels_ready:
        with _kernels_lock:
            if for_grammars not in _kernels_ready:
                _exercise(_GRAMMAR_SAMPLES if for_grammars else _KERNEL_SAMPLES, report)
                _kernels_ready.add(for_grammars)
