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
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..api import compile
from ..budget import Budget, Cancel
from ..definitions import Definition, Ebnf, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ..definitions.token_sets import ids_of
from ..definitions.tool_request import TOOL_OPTIONS
from ..definitions.values import TAG_OPTIONS
from ..errors import (
    CacheError,
    CancelledError,
    DefinitionError,
    FormatError,
    MissingIndexError,
    StructgenError,
    UnsupportedError,
    VocabularyMismatchError,
)
from ..index_store import cache_key
from ..runtime.index.index import Index
from ..system.locks import Lock, Rank
from ..system.memo import Memo
from ..system.types import Foreign, JsonMap, with_article
from ..tools import ToolStyle, behind_reasoning, detect_tool_style, tool_style
from ..vocabulary.vocabulary import Vocabulary
from .engines import PROGRAM, TEXTS, Door, door, engine_grammar, is_larks, said_in
from .settings import Settings, settings_for

if TYPE_CHECKING:
    from ..cache.cache import Cache

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
    "tools": ((list,), lambda tools, at, tokenizer, **said: at.tools({"tools": tools, **said}, tokenizer)),
}

#: By such a key: the options that may stand beside it, which are those of the definition.
OPTIONS: dict[str, tuple[str, ...]] = {
    "json_schema": tuple(field.name for field in fields(JsonSchema) if field.init and field.name != "schema"),
    "grammar": ("start", "lexer", "strict", "ambiguity", "matches"),
    "gbnf": ("start",),
    "ebnf": ("start", "dialect"),
    "structural_tag": tuple(field.name for field in fields(StructuralTag) if field.init and field.name != "format"),
}
OPTIONS = {key: (*OPTIONS.get(key, ()), "reasoning") for key in KINDS} | {"tools": TOOL_OPTIONS, "index": ()}

_NAME = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class Named:
    """An index that the operator compiled and gave a name to."""

    name: str


def read_request(request: object, at: Door = PROGRAM, tokenizer: Foreign = None) -> Definition | Named:
    """Return the definition that a request asks for.

    Parameters
    ----------
    request:
        A mapping with one key of `KINDS` and its options, or ``{"index": name}``.
    at:
        The engine's way of asking; its options are the defaults of the request.
    tokenizer:
        The model's tokenizer or chat template, which determines the notation of tool calls and reasoning.

    Raises
    ------
    DefinitionError
        For a malformed request. Also the errors of the definition.
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
    known = OPTIONS[key]
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
    reasoning = options.pop("reasoning", False) if key != "tools" else False
    said = {*options, *(said_in(value) if key == "json_schema" else ())}
    left_open = {"at": at, "tokenizer": tokenizer} if key == "tools" else at.options(key, said)
    try:
        made = make(value, **left_open, **options)
    except TypeError as error:
        raise DefinitionError(f"an option of {key} is of the wrong type: {error}") from error
    return _reasoned(made, reasoning, at.settings.tool_style, tokenizer) if reasoning is not False else made


def _reasoned(definition: Definition, reasoning: Foreign, style: str, tokenizer: Foreign) -> Definition:
    """A definition behind a model's reasoning."""
    if reasoning is not True and reasoning != "auto":
        what = f'reasoning is true, false or "auto", got {reasoning!r}'
        raise DefinitionError(what, where="reasoning", remedy="Use one of these.")
    found: ToolStyle = detect_tool_style(tokenizer) if style == "auto" else tool_style(style)
    if found.reasoning is None and not found.messages and reasoning is True:
        what = f"models that write calls as {found.name} write no reasoning"
        raise UnsupportedError(what, where="reasoning", remedy="Leave it out.")
    whole = definition if isinstance(definition, StructuralTag) else None
    made = behind_reasoning(StructuralTag(whole.text) if whole else definition, found, reasoning)
    if made is None:
        raise UnsupportedError(
            f"the reasoning of {found.name} is a message of its own",
            where="reasoning",
            remedy="Describe the whole reply by a structural tag.",
        )
    options = {name: getattr(whole, name) for name in TAG_OPTIONS} if whole else {}
    return replace(made, format=made.text, **options)


#: By the ``type`` of a Chat Completions request's ``response_format``: the key beside it that describes it, and the
#: request of `read_request` for what stands there (for a structural tag, for the whole).
RESPONSE_FORMATS: dict[str, tuple[str, Callable[[Mapping[str, object]], JsonMap]]] = {
    "text": ("", lambda described: {}),
    "json_object": ("", lambda described: {"json_schema": {"type": "object"}}),
    "json_schema": ("json_schema", lambda described: {"json_schema": _schema(described)}),
    "structural_tag": ("", lambda described: {"structural_tag": dict(described)}),
}


def read_response_format(given: object, at: Door = PROGRAM) -> Definition | None:
    """Return the definition that an OpenAI ``response_format`` asks for, or None for free text.

    Parameters
    ----------
    given:
        The ``response_format``.
    at:
        The engine's way of asking; its options are the defaults of the request.

    Raises
    ------
    DefinitionError
        For an unknown ``response_format``. Also the errors of the definition.
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
    request = make(described)
    found = read_request(request, at) if request else None
    assert not isinstance(found, Named)
    return found


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
        raise DefinitionError("choice is not a list of at least one string", remedy='Pass such as ["yes", "no"].')
    return Regex.choice(words)


#: Kinds of definitions of engines that have them as texts, by the engine's name: the key of `KINDS`, empty for a
#: grammar, whose text tells, and the value where there is no text.
ENGINE_KINDS: dict[str, tuple[str, object]] = {
    "JSON": ("json_schema", True),
    "JSON_SCHEMA": ("json_schema", None),
    "JSON_OBJECT": ("json_schema", {"type": "object"}),
    "REGEX": ("regex", None),
    "CHOICE": ("choice", None),
    **dict.fromkeys(("EBNF", "EBNF_GRAMMAR", "GRAMMAR"), ("", None)),
    "STRUCTURAL_TAG": ("structural_tag", None),
}


def read_engine_request(kind: str, text: str | None, at: Door = TEXTS) -> Definition:
    """Return the definition that a request asks for in an engine that has definitions as texts.

    Raises `UnsupportedError` for a kind that is none of `ENGINE_KINDS`, and what making the definition raises.
    """
    if kind not in ENGINE_KINDS:
        raise UnsupportedError(f"structgen does not honour {kind}", remedy="Write it as a grammar.")
    key, constant = ENGINE_KINDS[kind]
    value: object = constant if kind == "JSON_OBJECT" or text is None else text
    if value is None:
        raise DefinitionError(f"a definition of the kind {kind} is a str, got NoneType", remedy="Pass its text.")
    if not key:
        assert isinstance(value, str)
        return engine_grammar(value, is_larks=is_larks(value))
    if key == "choice":
        try:
            value = json.loads(str(value))
        except (ValueError, RecursionError) as error:
            raise DefinitionError(f"the choice is not JSON: {error}", remedy="Make it a list of strings.") from error
    found = read_request({key: value}, at)
    assert not isinstance(found, Named)
    return found


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


def indexes_with(vocabulary: Vocabulary, settings: Mapping[str, object] | Settings, at: Door = PROGRAM) -> Indexes:
    """`Indexes` with an operator's settings. Raises `DefinitionError` for wrong ones."""
    given = Settings.read(settings)
    return Indexes(
        vocabulary,
        cache=given.open_cache(),
        budget=given.budget,
        folder=given.indexes or None,
        on_miss=given.on_miss,
        at=at,
    )


def indexes_for(engine: str, vocabulary: Vocabulary, **given: object) -> Indexes:
    """Return the indexes of an engine's requests, with the operator's settings.

    Parameters
    ----------
    engine:
        A name of `structgen.integrations.engines.ENGINES`.
    vocabulary:
        The model's vocabulary.
    given:
        Settings that override those of the environment and of the operator's file.

    Raises
    ------
    DefinitionError
        For an unknown engine, and for invalid settings.
    """
    settings = settings_for(engine, given)
    return indexes_with(vocabulary, settings, door(engine, settings))


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
        The model's vocabulary.
    cache:
        Where to look first and to keep compiled indexes. None: nowhere.
    budget:
        Bounds on each compile.
    folder:
        The folder of indexes that requests may name: ``NAME.idx`` or ``NAME.sgx``, as `Index.save` and ``structgen
        compile`` write them. None: no named indexes.
    on_miss:
        ``"compile"`` or ``"refuse"`` a definition that is not in the cache.
    at:
        The engine's way of asking; its options are the defaults of requests.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        cache: Cache | None = None,
        budget: Budget = Budget.request,
        folder: str | os.PathLike[str] | None = None,
        on_miss: str = "compile",
        at: Door = PROGRAM,
    ) -> None:
        if on_miss not in ("compile", "refuse"):
            raise DefinitionError(f"on_miss is {on_miss!r}", remedy='Use "compile" or "refuse".')
        self.vocabulary = vocabulary
        self._cache = cache
        self._budget = budget
        self._folder = None if folder is None else Path(folder)
        self._on_miss = on_miss
        self.door = at
        self._known: OrderedDict[str, Index] = OrderedDict()
        self._sizes: dict[str, int] = {}  # bytes of each, when it was last measured
        #: What a thread of this process is at.
        self._pending: dict[str, _Pending] = {}
        self._process = os.getpid()
        self._lock = Lock(Rank.REQUESTS)

    def of(self, wanted: Definition | Named | Mapping[str, object], cancel: Cancel | None = None) -> Index:
        """Return the index of a request. If several threads ask for the same one, only one compiles.

        Parameters
        ----------
        wanted:
            A request as `read_request` takes it, or the result of that.
        cancel:
            An event that is set when the request's client goes away. The compile ends when all clients that wait
            for it have gone.

        Raises
        ------
        CancelledError
            For a request whose client went away.
        CacheError
            For a named index that does not exist, or any missing index where misses are refused.
        FormatError
            For a file that is not an index.
        VocabularyMismatchError
            For an index of another tokenizer.
        StructgenError
            The errors of `structgen.compile`.
        """
        if isinstance(wanted, Mapping):
            wanted = read_request(wanted, self.door)
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
            while len(self._known) > 1 and (sum(self._sizes.values()) > MEMORY or len(self._known) > MOST_INDEXES):
                del self._sizes[self._known.popitem(last=False)[0]]

    def _find(self, definition: Definition, cancel: Cancel) -> Index:
        try:
            return compile(
                definition, self.vocabulary, cache=self._cache, eager=False, budget=self._budget,
                compile_missing=self._on_miss == "compile", cancel=cancel,
            )  # fmt: skip
        except MissingIndexError as error:
            whose = f" --for {self.door.engine}" if self.door.engine else ""
            remedy = f'Run structgen warm{whose} with the same settings, or set on_miss to "compile".'
            raise MissingIndexError(error.what, where=error.where, remedy=remedy) from None

    def _load(self, named: Named) -> Index:
        paths = [] if self._folder is None else [self._folder / f"{named.name}{end}" for end in (".idx", ".sgx")]
        path = next(filter(Path.is_file, paths), None)
        if path is None:
            raise CacheError(f"there is no index {named.name!r}", remedy="Save one under that name: Index.save.")
        try:
            return Index.load(path, self.vocabulary)
        except (FormatError, VocabularyMismatchError) as error:  # without the operator's path
            raise type(error)(error.what, where=f"index {named.name!r}", remedy=error.remedy) from None
