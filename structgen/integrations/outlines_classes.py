"""The subclasses of Outlines' own classes, for `structgen.integrations.outlines`."""

from __future__ import annotations

from collections.abc import Callable

from outlines.backends.base import BaseBackend
from outlines.processors import OutlinesLogitsProcessor

from ..definitions import Definition
from ..errors import BitmaskError
from ..system.types import Foreign, JsonMap
from .engines import Door
from .requests import Named, read_request


class StructgenLogitsProcessor(OutlinesLogitsProcessor):
    """Masks with the processor of the engine behind the model."""

    supports_continuous_batching = False

    def __init__(self, masker: Foreign, library: str) -> None:
        super().__init__(library)
        self._masker = masker
        self._by_rows = library == "torch"

    def reset(self) -> None:
        """Begin a new generation; Outlines calls it before each."""
        self._masker.reset()

    def check(self) -> None:
        """With llama-cpp-python: raise what went wrong in the last generation, see its `LogitsProcessor`."""
        if hasattr(self._masker, "check"):
            self._masker.check()

    def process_logits(self, input_ids: Foreign, logits: Foreign) -> Foreign:
        """Mask ``[rows, width]`` logits, by the ``[rows, length]`` ids before them."""
        if self._by_rows:
            return self._masker(input_ids, logits)
        if len(logits) != 1:
            raise BitmaskError(f"this model generates one text at a time, got {len(logits)} rows of logits")
        return self._masker(input_ids[0], logits[0])[None]


class StructgenBackend(BaseBackend):
    """Compiles definitions and makes logits processors of them; see `backend`."""

    def __init__(self, make: Callable[[Definition], StructgenLogitsProcessor], at: Door) -> None:
        self._make = make
        self._door = at

    def _of(self, request: JsonMap) -> StructgenLogitsProcessor:
        wanted = read_request(request, self._door)
        assert not isinstance(wanted, Named)
        return self._make(wanted)

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> StructgenLogitsProcessor:
        """A processor for the JSON texts valid under a schema."""
        whitespace = {} if whitespace_pattern is None else {"whitespace": whitespace_pattern}
        return self._of({"json_schema": json_schema, **whitespace})

    def get_regex_logits_processor(self, regex: str) -> StructgenLogitsProcessor:
        """A processor for the texts that a regex matches from end to end."""
        return self._of({"regex": regex})

    def get_cfg_logits_processor(self, grammar: str) -> StructgenLogitsProcessor:
        """A processor for the texts of a grammar in Lark's syntax."""
        return self._of({"grammar": grammar})
