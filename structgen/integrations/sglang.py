"""SGLang: structgen as a grammar backend, with jump-forward.

``--grammar-backend structgen`` is enough where structgen is installed: SGLang calls `register` in each of its
processes, by the entry point. Requests are SGLang's own: ``json_schema``, ``regex``, ``structural_tag``, and
``ebnf``, XGrammar's or GBNF, or Lark's syntax where it has no ``::=``. Settings come from the operator's file or from
the environment, as SGLang hands none over: ``STRUCTGEN_SGLANG='{"cache": false}'``; see
`structgen.integrations.settings`. SGLang's own arguments for whitespace in JSON come before them.

Where SGLang runs a parser of reasoning (``--reasoning-parser``), a request that reasons is masked from the end of its
reasoning on, by SGLang's own wrapper, which it puts around its own backends alone: here it is put around this one.

Written against SGLang 0.5.20 to 0.5.23, which forwards no jumps in its own scheduler any more, though its interface
has them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

from ..definitions import Definition, StructuralTag
from ..definitions.guidance_options import optional_whitespace
from ..definitions.values import format_of
from ..errors import CancelledError, StructgenError
from ..runtime.logits.masks import apply_bitmask, revive_all
from ..runtime.rows.bitmask import words_for
from ..system.types import Foreign, JsonMap
from ..vocabulary.token_table import eos_ids_of
from ..vocabulary.vocabulary import Vocabulary
from .checks import tell_of_precedence
from .engine_names import check_engine
from .engines import door
from .matcher import Matcher
from .requests import Indexes, indexes_with, read_engine_request
from .settings import UNTOLD, settings_for, variable_of

if TYPE_CHECKING:
    from typing import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: Of the thread that compiles for a request: set when SGLang has no use for that any more.
_gone: ContextVar[threading.Event | None] = ContextVar("gone", default=None)

NAME = "structgen"

#: The environment variable with the settings, a JSON object.
SETTINGS_VARIABLE = variable_of("sglang")


def register() -> None:
    """Register ``--grammar-backend structgen`` in this process."""
    check_engine("sglang")
    from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices

    register_grammar_backend(NAME, create_backend)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])


def create_backend(
    server_args: object, tokenizer: Foreign, vocab_size: int, eos_token_ids: int | Iterable[int] | None = None
) -> BaseGrammarBackend:
    """The backend over a tokenizer, for logits of a width; EOS ids are those of the model and of the tokenizer.

    Raises `VocabularyError` where the bytes of tokens cannot be known, `DefinitionError` for wrong settings.
    """
    settings = settings_for("sglang", _whitespace(server_args), without=UNTOLD)
    eos_ids = set(eos_ids_of(getattr(tokenizer, "eos_token_id", None), eos_token_ids))
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=eos_ids, size=vocab_size)
    backend = StructgenBackend(indexes_with(vocabulary, settings, door("sglang", settings)))
    return behind_reasoning(backend, tokenizer)


def _whitespace(server_args: object) -> JsonMap:
    """Return the setting for whitespace in JSON that the server's arguments make."""
    if getattr(server_args, "constrained_json_disable_any_whitespace", False):
        return {"whitespace": "compact"}
    pattern = getattr(server_args, "constrained_json_whitespace_pattern", None)
    return {} if pattern is None else {"whitespace": optional_whitespace(pattern)}


def behind_reasoning(backend: StructgenBackend, tokenizer: Foreign) -> BaseGrammarBackend:
    """A backend whose definitions hold from the end of the reasoning on, where the server has a parser of that."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    wrapper = ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)
    wrapper.executor = backend.executor
    return wrapper


class _Revived:
    """Tells once that masks had the last word: a step later or two, so that nothing waits for the device."""

    def __init__(self) -> None:
        self._there: torch.Tensor | None = None
        self._here = torch.zeros((), dtype=torch.bool, pin_memory=torch.cuda.is_available())

    def note(self, found: torch.Tensor) -> None:
        """Remember what was found in a step, ``bool[]`` on the device."""
        if self._here:
            tell_of_precedence()
        else:
            self._there = found if self._there is None else self._there | found
            self._here.copy_(self._there, non_blocking=True)


_revived = _Revived()


class _Masks:
    """What SGLang does with masks, asked of backends and of grammars alike."""

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: object) -> torch.Tensor:
        """``int32[batch_size, words]`` on the host, which allows everything."""
        shape = (batch_size, words_for(vocab_size))
        return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything in every row."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: torch.device) -> torch.Tensor:
        """The masks on the logits' device, without waiting where the memory is pinned."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of tokens that are not allowed to ``-inf``, in place.

        SGLang has forbidden tokens that end a text before ``min_new_tokens``: where no others are allowed, they are.
        """
        apply_bitmask(logits, vocab_mask)
        _revived.note(revive_all(logits, vocab_mask))


class _Compiling(ThreadPoolExecutor):
    """Threads that compile for requests. SGLang cancels the future of one that was aborted, or waits too long."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A future that has the compile end when it is cancelled, begun or not."""
        gone = threading.Event()

        def run() -> T:
            _gone.set(gone)
            return fn(*args, **kwargs)

        future = super().submit(run)
        cancel = future.cancel
        future.cancel = lambda: gone.set() or cancel()  # type: ignore[method-assign, func-returns-value]
        return future


class StructgenBackend(_Masks, BaseGrammarBackend):
    """Compiles what requests ask for, in SGLang's threads. A request that does not compile fails alone."""

    #: Within reasoning that is kept to a number of tokens (``--enable-strict-thinking``).
    is_support_token_filter = True
    set_token_filter = staticmethod(set_token_filter_torch)

    def __init__(self, indexes: Indexes) -> None:
        super().__init__()
        self.executor = _Compiling()
        self._indexes = indexes

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON Schema as text; SGLang's ``$$ANY$$`` is any JSON."""
        return self._begin("json", "true" if key_string == "$$ANY$$" else key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A regex."""
        return self._begin("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """A grammar in EBNF, or in Lark's syntax."""
        return self._begin("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """A structural tag."""
        return self._begin("structural_tag", key_string)

    def compile_framed_grammar(
        self, grammar: StructgenGrammar, frame: Callable[[JsonMap], JsonMap]
    ) -> StructgenGrammar | None:
        """A definition within the messages of a reply, of which one is the reasoning; None where it can't be."""
        try:
            framed = StructuralTag(dict(frame(format_of(grammar.definition))))
            return self._compiled("structural_tag", framed)
        except StructgenError as error:
            _log.error("structgen: a request's definition cannot stand in a message: %s", error)
            return None

    def _begin(self, kind: str, text: str) -> BaseGrammarObject:
        try:
            return self._compiled(kind, read_engine_request(kind.upper(), text, self._indexes.door))
        except CancelledError as error:
            return InvalidGrammarObject(str(error))
        except StructgenError as error:
            _log.error("structgen: a request's %s cannot be honoured: %s", kind, error)
            return InvalidGrammarObject(str(error))

    def _compiled(self, kind: str, definition: Definition) -> StructgenGrammar:
        matcher = Matcher(self._indexes.of(definition, _gone.get()))
        return StructgenGrammar(matcher, definition, GrammarStats(dispatch_type=kind))


class StructgenGrammar(_Masks, BaseGrammarObject):
    """One request."""

    def __init__(self, matcher: Matcher, definition: Definition, stats: GrammarStats | None = None) -> None:
        super().__init__()
        self._matcher = matcher
        self.definition = definition
        self.grammar_stats = stats

    # -- tokens ----------------------------------------------------------------------------------------

    def accept_token(self, token: int) -> None:
        """Append a token; what comes behind the end is ignored.

        Raises `TokenIdError`, a `ValueError`, for one that is not allowed; SGLang ends that one request then.
        """
        if not self._matcher.is_terminated():
            self._matcher.require(int(token))
            self.current_token = token

    def rollback(self, k: int) -> None:
        """Take back the last tokens."""
        self._matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether an EOS id was accepted."""
        return self._matcher.is_terminated()

    def copy(self) -> StructgenGrammar:
        """A request of its own, at the beginning."""
        twin = StructgenGrammar(self._matcher.fresh(), self.definition)
        if self.grammar_stats is not None:
            twin.grammar_stats = GrammarStats(dispatch_type=self.grammar_stats.dispatch_type, is_cache_hit=True)
        return twin

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask into a row."""
        self._matcher.fill(vocab_mask, idx)

    # -- jump-forward ----------------------------------------------------------------------------------

    def try_jump_forward(self, tokenizer: object) -> tuple[list[int], str] | None:
        """The text that has to follow, in whole characters, with no tokens for it yet; None where there is none."""
        text = self._matcher.forced_text()
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text to append. There is no state to go on from: `jump_and_retokenize` finds its own."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Put the tokens of a text with the forced one appended in place of those accepted so far.

        Raises `TokenIdError` or `RollbackError`, both `ValueError`, where they do not fit; nothing changes then.
        """
        self._matcher.retokenize(old_output_ids, new_output_ids)

    def __repr__(self) -> str:
        return f"<StructgenGrammar {self._matcher!r}>"
