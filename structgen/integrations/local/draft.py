"""`LocalDraft`: a model on this machine that writes in the place of a mistake, for `structgen.correct`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import ArgumentError
from ...runtime.guide.guide import Guide
from ...runtime.index.healing import heal
from ...system.arguments import integer
from ...vocabulary.vocabulary import Vocabulary
from .decoding import Chooser, masked
from .reader import Reader

if TYPE_CHECKING:
    from ...runtime.core.machine import Config
    from ...runtime.index.index import Index

#: Tokens of a continuation, unless the caller says how many.
MOST_TOKENS = 256


class LocalDraft:
    """A model on this machine that continues texts inside a definition, as the draft of `structgen.correct`.

    At the break, the last tokens of prompt and text are spelled again together with the continuation (token
    healing). Forced text is appended without asking the model. `structgen.correct` stops it at the next choice of
    the definition.

    Parameters
    ----------
    reader:
        The model.
    vocabulary:
        The model's tokens. The definition is compiled for them.
    encode:
        A function from the prompt and the text so far to the ids that the model continues.
    max_tokens:
        The most tokens of each continuation.
    """

    def __init__(
        self,
        reader: Reader,
        vocabulary: Vocabulary,
        encode: Callable[[str, str], Sequence[int]],
        *,
        max_tokens: int = MOST_TOKENS,
    ) -> None:
        self.vocabulary = vocabulary
        self._reader, self._encode = reader, encode
        self._most = integer(max_tokens, "max_tokens", ArgumentError, least=1)

    def write(
        self, prompt: str, text: str, index: Index, config: Config, *, temperature: float = 0.0, seed: int | None = None
    ) -> Iterator[bytes]:
        """Generate the continuation of ``text`` in the answer to ``prompt``, token by token.

        Parameters
        ----------
        prompt, text:
            The prompt, and the text so far.
        index, config:
            The definition for this vocabulary, and its machine's configuration behind ``text``.
        temperature, seed:
            As in `structgen.correct`.
        """
        ids = list(self._encode(prompt, text)) or list(self.vocabulary.eos_ids[:1])  # a model begins with something
        if self._reader.window is not None:
            ids = ids[-max(1, self._reader.window - self._most) :]
        healed = heal(ids, self.vocabulary, index, behind=config)
        left = len(healed.prefix)
        chooser = Chooser(temperature, seed)
        guide = Guide(healed.index, max_rollback=0)
        encode = self.vocabulary.encode
        for token in masked(self._reader, healed.prompt_ids, guide, chooser, most=self._most, encode=encode):
            data = self.vocabulary.token(token) or b""
            yield data[left:]
            left = max(0, left - len(data))
