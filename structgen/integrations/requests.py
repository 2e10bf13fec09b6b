"""Definitions as requests bring them, and the indexes of those that were asked for lately.

Requests come from strangers: what they hold is plain data, every compile runs under a budget, and an index is named,
never a path.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..api import compile
from ..budget import Budget, Cancel
from ..definitions import Definition, Ebnf, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ..definitions.token_sets import engine_dialect, ids_of
from ..errors import (
    CacheError,
    CancelledError,
    DefinitionError,
    FormatError,
    StructgenError,
    UnsupportedError,
    VocabularyMismatchError,
)
from ..index_store import cache_key
from ..runtime.index.index import Index
from ..system.locks import Lock, Rank
from ..system.memo import Memo
from ..system.types import JsonMap, with_article
from ..tools import tool_calls, tool_styles
from ..vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..cache.remote.values import Write

#: Bytes of indexes that are kept, least recently used first to go, and how many.
MEMORY, MOST_INDEXES = 1 << 30, 1024

#: More ids than a vocabulary has.
_MOST_IDS = 1 << 21

#: Seconds between looks at whether a request that waits was cancelled.
_LOOK = 0.02

#: The keys that say what a request's definition is, with their types; beside them may stand options.
KINDS: dict[str, tuple[tuple[type, ...], Callable[..., Definition]]] = {
    "json_schema": ((str, dict, bool), JsonSchema),
    "regex": ((str,), Regex),
    "choice": ((list, tuple), lambda words: choice(words)),
    "grammar": ((str,), Grammar),
    "gbnf": ((str,), Gbnf),
    "ebnf": ((str,), Ebnf),
    "structural_tag": ((str, dict), StructuralTag),
    "tools": ((list,), lambda tools, **options: tool_calls(tools, **options)),
}

#: By such a key: the options that may stand beside it, which are those of the definition.
OPTIONS: dict[str, tuple[str, ...]] = {
    "json_schema": tuple(field.name for field in fields(JsonSchema) if field.init and field.name != "schema"),
    "grammar": ("start", "lexer", "strict", "ambiguity", "matches"),
    "gbnf": ("start",),
    "ebnf": ("start", "dialect"),
    "structural_tag": tuple(field.name for field in fields(StructuralTag) if field.init and field.name != "format"),
}
OPTIONS["tools"] = ("style", "tool_choice", "parallel", "reasoning", *OPTIONS["structural_tag"])

#: What an operator may set, by name.
SETTINGS = {
    "cache": "the folder of the cache, or a bundle; True, the default, for the default folder; False for none",
    "store": "the URL of an object store behind the cache",
    "store_writes": "true where what is compiled goes to the store; false is the default",
    "verify_keys": "files of Ed25519 public keys: what none of them signed is not taken from the store",
    "indexes": "the folder of indexes that requests may name",
    "on_miss": '"compile" or "refuse" what is not in the cache',
    "seconds": "how long one compile may take",
    "max_tokens": "true where texts are to be complete within a request's max_tokens; false is the default",
    "tool_style": 'how the model writes tool calls, a name; "auto", the default, is by the chat template',
}

#: Settings that mean nothing to engines that tell a backend no more than a request's definition.
UNTOLD = ("max_tokens", "tool_style")

_NAME = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class Named:
    """An index that the operator compiled and gave a name to."""

    name: str


def read_request(request: object) -> Definition | Named:
    """What a request asks for: a mapping with one key of `KINDS` and its options, or ``{"index": name}``.

    Raises `DefinitionError` where it is nothing of that, and whatever making the definition raises.
    """
    if not isinstance(request, Mapping):
        raise DefinitionError(f"a request's definition is a dict, got {type(request).__name__}")
    named = [key for key in (*KINDS, "index") if key in request]
    if len(named) != 1:
        raise DefinitionError(
            f"a request names exactly one definition, this one {len(named)}",
            remedy=f"Use one of {', '.join(KINDS)} or index.",
        )
    [key] = named
    options = {name: value for name, value in request.items() if name != key}
    known = OPTIONS.get(key, ())
    unknown = sorted(str(name) for name in options if name not in known)
    if unknown:
        remedy = f"Its options are {', '.join(known)}." if known else "It has none."
        raise DefinitionError(f"{key} has no option {unknown[0]!r}", where=unknown[0], remedy=remedy)
    value = request[key]
    if key == "index":
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise DefinitionError(f"{value!r} is no name of an index", remedy="Use letters, digits, _, - and dots.")
        return Named(value)
    types, make = KINDS[key]
    if not isinstance(value, types):
        allowed = " or ".join(map(with_article, types))
        raise DefinitionError(f"{key} is {with_article(type(value))}", where=key, remedy=f"Make it {allowed}.")
    try:
        return make(value, **options)
    except TypeError as error:
        raise DefinitionError(f"an option of {key} is of the wrong type: {error}") from error


#: By the ``type`` of a Chat Completions request's ``response_format``: the key beside it that describes it, and the
#: definition of what stands there (for a structural tag, of the whole).
RESPONSE_FORMATS: dict[str, tuple[str, Callable[[Mapping[str, object]], Definition | None]]] = {
    "text": ("", lambda described: None),
    "json_object": ("", lambda described: JsonSchema({"type": "object"})),
    "json_schema": ("json_schema", lambda described: JsonSchema(_schema(described))),
    "structural_tag": ("", lambda described: StructuralTag(dict(described), whitespace="any")),
}


def read_response_format(given: object) -> Definition | None:
    """The definition that a ``response_format`` asks for, as OpenAI has it; None for free text.

    Raises `DefinitionError` for what is none of `RESPONSE_FORMATS`, and whatever making the definition raises.
    """
    if given is None:
        return None
    kind = given.get("type") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(kind, str) or kind not in RESPONSE_FORMATS:
        raise DefinitionError(
            "the response_format is none that is known",
            where="type",
            remedy=f"It is an object whose type is one of {', '.join(RESPONSE_FORMATS)}.",
        )
    key, make = RESPONSE_FORMATS[kind]
    described = given.get(key) if key else given
    if not isinstance(described, Mapping):
        raise DefinitionError(
            f"a response_format of type {kind} has no object {key}",
            where=key,
            remedy='Write {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}.',
        )
    return make(described)


def _schema(described: Mapping[str, object]) -> dict[str, object]:
    schema = described.get("schema")
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            "a json_schema has no object schema", where="json_schema", remedy="Put the JSON Schema under that key."
        )
    return dict(schema)


def choice(words: object) -> Regex:
    """Exactly one of some words. Raises `DefinitionError` for anything but a list of at least one string."""
    if not words or not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise DefinitionError("choice is not a list of at least one string")
    return Regex.choice(words)


#: What engines with definitions as texts have them by, in capital letters, and the definition of a text.
ENGINE_KINDS: dict[str, Callable[[str], Definition]] = {
    "JSON": lambda text: JsonSchema(text, whitespace="any"),
    "REGEX": Regex,
    "EBNF": lambda text: engine_grammar(text, is_larks="::=" not in text),
    "STRUCTURAL_TAG": lambda text: StructuralTag(text, whitespace="any"),
}


def engine_grammar(text: str, *, is_larks: bool) -> Gbnf | Grammar:
    """A grammar as engines take it: in XGrammar's EBNF, or, where only that has what is in it, llama.cpp's GBNF."""
    if is_larks:
        return Grammar(text)
    dialect = engine_dialect(text)
    return Ebnf(text, dialect=dialect) if dialect else Gbnf(text)


def read_engine_request(kind: str, text: str) -> Definition:
    """What a request of an engine asks for; ``EBNF`` is `engine_grammar`, Lark's syntax where there is no ``::=``.

    Raises `UnsupportedError` for a kind that is none of `ENGINE_KINDS`, and what making the definition raises.
    """
    if kind not in ENGINE_KINDS:
        raise UnsupportedError(f"structgen does not honour {kind}", remedy="Write it as a grammar.")
    return ENGINE_KINDS[kind](text)


#: Definitions that were right lately, by canonical text and budget.
_right: Memo[tuple[str, Budget], bool] = Memo(128)


def check_definition(definition: Definition, budget: Budget = Budget.request) -> None:
    """Raise what compiling a definition raises, whatever the vocabulary; what was right lately is remembered.

    For the process that admits requests and has no tokenizer. What it leaves open is whether the model's vocabulary
    can spell every text.
    """
    key = definition.canonical(), budget
    if key not in _right:
        compile(definition, _byte_vocabulary(definition), eager=False, budget=budget)
        _right[key] = True


def _byte_vocabulary(definition: Definition) -> Vocabulary:
    """Every byte, an EOS id, and the special tokens that a grammar or a structural tag names."""
    marks = sorted(set(definition.marked.tokens.values())) if isinstance(definition, Grammar) else []
    if isinstance(definition, Gbnf):
        marks = definition.named_tokens()
    if isinstance(definition, StructuralTag):
        named = definition.named_tokens()
        marks = sorted(name if isinstance(name, str) else f"<[{name}]>" for name in named)
    ids = {mark: found for mark in marks if (found := ids_of(mark)) is not None}
    first = max((last for each in ids.values() for _, last in each), default=-1) + 1
    if first > _MOST_IDS:
        raise DefinitionError(f"no vocabulary has the token {first - 1}", where="token", remedy="Name it.")
    names = [mark for mark in marks if mark not in ids]
    specials = {name: first + number for number, name in enumerate(names)}
    specials |= {mark: each[0][0] for mark, each in ids.items() if each and mark[2] != "^"}
    first += len(names)
    tokens = {first + byte: bytes([byte]) for byte in range(256)}
    return Vocabulary.from_bytes(tokens, eos_ids=[first + 256], special_tokens=specials)


@dataclass(frozen=True)
class Settings:
    """What an operator has set; see `SETTINGS`. Raises `DefinitionError` for what means nothing."""

    cache: bool | str = True
    store: str = ""
    store_writes: bool = False
    verify_keys: tuple[str, ...] | list[str] = ()
    indexes: str = ""
    on_miss: str = "compile"
    seconds: float = Budget.request.seconds
    max_tokens: bool = False
    tool_style: str = "auto"

    def __post_init__(self) -> None:
        is_right = {
            "cache": isinstance(self.cache, bool | str),
            "store": isinstance(self.store, str) and bool(self.cache or not self.store),
            "store_writes": isinstance(self.store_writes, bool),
            "verify_keys": isinstance(self.verify_keys, list | tuple)
            and all(isinstance(path, str) for path in self.verify_keys),
            "indexes": isinstance(self.indexes, str),
            "on_miss": self.on_miss in ("compile", "refuse"),
            "seconds": isinstance(self.seconds, int | float) and self.seconds is not True and self.seconds > 0,
            "max_tokens": isinstance(self.max_tokens, bool),
            "tool_style": self.tool_style == "auto" or self.tool_style in (style.name for style in tool_styles()),
        }
        for name in (name for name in SETTINGS if not is_right[name]):
            raise DefinitionError(f"{name} is {getattr(self, name)!r}", remedy=f"It is {SETTINGS[name]}.")

    def open_cache(self) -> Cache | None:
        """The cache, with its store; None where there is to be none.

        Raises `CacheError` for a store, a key or a bundle that cannot be used.
        """
        from ..cache.cache import Cache

        if not self.cache:
            return None
        folder = None if self.cache is True else self.cache
        if not self.store:
            return Cache(folder)
        from ..cache.remote.values import ObjectStore

        try:
            keys = tuple(Path(path).read_bytes() for path in self.verify_keys)
        except OSError as error:
            what = f"a key cannot be read: {error.strerror or error}"
            raise CacheError(what, where="verify_keys", remedy="Name files of public keys, in PEM.") from error
        write: Write = "behind" if self.store_writes else "never"
        return Cache(folder, store=ObjectStore(self.store, write=write, verify_keys=keys))

    @classmethod
    def read(cls, settings: object) -> Settings:
        """The settings that a mapping holds."""
        if not isinstance(settings, Mapping):
            raise DefinitionError(f"the settings of structgen are a dict, got {type(settings).__name__}")
        unknown = sorted(str(name) for name in settings if name not in SETTINGS)
        if unknown:
            raise DefinitionError(
                f"structgen has no setting {unknown[0]!r}", remedy=f"There are {', '.join(SETTINGS)}."
            )
        return cls(**settings)


def indexes_with(vocabulary: Vocabulary, settings: Mapping[str, object]) -> Indexes:
    """`Indexes` with an operator's settings. Raises `DefinitionError` for wrong ones."""
    given = Settings.read(settings)
    return Indexes(
        vocabulary,
        cache=given.open_cache(),
        budget=replace(Budget.request, seconds=given.seconds),
        folder=given.indexes or None,
        on_miss=given.on_miss,
    )


def settings_in(variable: str, *, without: Iterable[str] = ()) -> JsonMap:
    """The settings in an environment variable, a JSON object.

    Raises `DefinitionError` for wrong ones, and for those that mean nothing to an engine.
    """
    try:
        settings: JsonMap = json.loads(os.environ.get(variable, "{}"))
    except ValueError as error:
        raise DefinitionError(f"the settings of structgen are not JSON: {error}", where=variable) from error
    Settings.read(settings)
    for name in settings.keys() & set(without):
        raise DefinitionError(f"the setting {name!r} has no effect here", where=variable, remedy="Leave it out.")
    return settings


class _Pending:
    """A compile, and the events of the requests that wait for it; None of those whose clients can't go away."""

    def __init__(self) -> None:
        self.index: Future[Index] = Future()
        self.cancels: list[Cancel | None] = []

    def is_set(self) -> bool:
        """Whether nobody waits any more: the event of the compile."""
        return all(each is not None and each.is_set() for each in self.cancels)

    def wait(self, cancel: Cancel | None) -> Index:
        """The index. Raises what the compile does, and `CancelledError` as soon as an event is set."""
        while cancel is not None and not self.index.done():
            if cancel.is_set():
                raise CancelledError("the compile was cancelled")
            wait([self.index], _LOOK)
        return self.index.result()


class Indexes:
    """The indexes that requests ask for, over one vocabulary. Safe to use from several threads.

    Parameters
    ----------
    vocabulary:
        The model's.
    cache:
        Where to look first and to keep what was compiled; None: nowhere.
    budget:
        Of each compile.
    folder:
        Where the indexes lie that requests may name: ``NAME.idx`` or ``NAME.sgx``, as
        `Index.save` and ``structgen compile`` write them. None: there are none.
    on_miss:
        ``"compile"`` what is not in the cache, or ``"refuse"`` it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        cache: Cache | None = None,
        budget: Budget = Budget.request,
        folder: str | os.PathLike[str] | None = None,
        on_miss: str = "compile",
    ) -> None:
        if on_miss not in ("compile", "refuse"):
            raise DefinitionError(f"on_miss is {on_miss!r}", remedy='Use "compile" or "refuse".')
        self.vocabulary = vocabulary
        self._cache = cache
        self._budget = budget
        self._folder = None if folder is None else Path(folder)
        self._on_miss = on_miss
        self._known: OrderedDict[str, Index] = OrderedDict()
        self._sizes: dict[str, int] = {}  # bytes of each, when it was last measured
        #: What a thread of this process is at.
        self._pending: dict[str, _Pending] = {}
        self._process = os.getpid()
        self._lock = Lock(Rank.REQUESTS)

    def of(self, wanted: Definition | Named, cancel: Cancel | None = None) -> Index:
        """The index of what a request asks for. Of threads that ask for the same, one compiles.

        Parameters
        ----------
        cancel:
            An event that is set when the request's client goes away. The compile ends when that is so of all who
            wait for it.

        Raises
        ------
        CancelledError
            For a request whose client went away.
        CacheError
            For an index that is not there: one that was named, or any where misses are refused.
        FormatError, VocabularyMismatchError
            For a file that is no index, or is one for another tokenizer.
        StructgenError
            What `structgen.compile` raises.
        """
        while True:
            try:
                return self._of(wanted, cancel)
            except CancelledError:  # others went away, before this request came
                if cancel is not None and cancel.is_set():
                    raise

    def _of(self, wanted: Definition | Named, cancel: Cancel | None) -> Index:
        key = f"index {wanted.name}" if isinstance(wanted, Named) else cache_key(wanted, self.vocabulary)
        with self._lock:
            if self._process != os.getpid():
                self._process, self._pending = os.getpid(), {}  # the threads that were at it stayed in the parent
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
            is_first = key not in self._pending
            found = self._pending.setdefault(key, _Pending())
            found.cancels.append(cancel)
        if is_first:
            try:
                index = self._load(wanted) if isinstance(wanted, Named) else self._find(wanted, found)
                self._keep(key, index)
                found.index.set_result(index)
            except BaseException as error:
                found.index.set_exception(error)
            with self._lock:
                if self._pending.get(key) is found:
                    del self._pending[key]
        try:
            return found.wait(cancel)
        except StructgenError as error:  # each caller gets one of its own, tracebacks grow
            raise type(error)(error.what, where=error.where, remedy=error.remedy) from None

    def _keep(self, key: str, index: Index) -> None:
        with self._lock:
            oldest = dict(itertools.islice(self._known.items(), 1))
        sizes = {each: known.nbytes for each, known in (oldest | {key: index}).items()}  # may take seconds
        with self._lock:
            self._known[key] = index
            self._sizes |= {each: size for each, size in sizes.items() if each in self._known}  # they grow
            while len(self._known) > 1 and (
                sum(self._sizes.values()) > MEMORY or len(self._known) > MOST_INDEXES
            ):
                del self._sizes[self._known.popitem(last=False)[0]]

    def _find(self, definition: Definition, cancel: Cancel) -> Index:
        return compile(
            definition, self.vocabulary, cache=self._cache, eager=False, budget=self._budget,
            compile_missing=self._on_miss == "compile", cancel=cancel,
        )  # fmt: skip

    def _load(self, named: Named) -> Index:
        paths = [] if self._folder is None else [self._folder / f"{named.name}{end}" for end in (".idx", ".sgx")]
        path = next(filter(Path.is_file, paths), None)
        if path is None:
            raise CacheError(f"there is no index {named.name!r}", remedy="Save one under that name: Index.save.")
        try:
            return Index.load(path, self.vocabulary)
        except (FormatError, VocabularyMismatchError) as error:  # without the operator's path
            raise type(error)(error.what, where=f"index {named.name!r}", remedy=error.remedy) from None
