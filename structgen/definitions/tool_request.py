"""Requests with tools as they stand in files; which replies they ask for, engines say."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import DefinitionError
from ..system.types import JsonMap
from .json_text import dumps, loads
from .values import TAG_OPTIONS

#: What may stand beside a request's tools.
TOOL_OPTIONS = ("style", "tool_choice", "parallel", "reasoning", *TAG_OPTIONS)


@dataclass(frozen=True)
class ToolRequest:
    """A request with tools: ``text`` is JSON, an object with ``tools`` and perhaps `TOOL_OPTIONS`.

    Of an engine's settings and the model's chat template depends what replies it asks for
    (`structgen.integrations.engines.Door.tools`), so that it can't be compiled as it is.
    """

    text: str

    kind = "tools"

    @classmethod
    def of(cls, value: object, **options: object) -> ToolRequest:
        """Of a list of tools, or an object with one, or JSON text of either. Raises `DefinitionError`."""
        value = loads(value) if isinstance(value, str) else value
        request = {**(value if isinstance(value, dict) else {"tools": value}), **options}
        if not isinstance(request.get("tools"), list):
            raise DefinitionError("tools is not a list", remedy='Write [{"type": "function", "function": {...}}].')
        unknown = sorted(str(name) for name in request if name not in ("tools", *TOOL_OPTIONS))
        if unknown:
            remedy = f"Its options are {', '.join(TOOL_OPTIONS)}."
            raise DefinitionError(f"tools has no option {unknown[0]!r}", where=unknown[0], remedy=remedy)
        return cls(dumps(request))

    @property
    def request(self) -> JsonMap:
        """As `structgen.integrations.requests.read_request` takes it."""
        found = loads(self.text)
        assert isinstance(found, dict)
        return found

    def canonical(self) -> str:
        """The kind and the text, as JSON."""
        return f'["{self.kind}",{self.text}]'
