"""`RefusedTokenError`: a token that a definition does not allow, with why, which is looked for when it is read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import StructgenError, TokenIdError

if TYPE_CHECKING:
    from ..explanations.values import Explanation
    from ..runtime.guide.guide import Guide


class RefusedTokenError(TokenIdError):
    """A token that a definition does not allow. Its text says why; nothing is looked for before somebody reads it.

    Parameters
    ----------
    guide:
        Where the text was before the token; copied.
    token_id:
        The token, which may be any number.
    where, remedy:
        As of any `StructgenError`.
    """

    def __init__(self, guide: Guide, token_id: int, where: str = "", remedy: str = "") -> None:
        super().__init__(f"token {token_id} is not allowed by the definition", where=where, remedy=remedy)
        self.token_id = token_id
        self._guide = guide.fork()

    @cached_property
    def explanation(self) -> Explanation | None:
        """Why it is refused; None for a token outside the vocabulary."""
        from ..explanations.explain import explain

        try:
            return explain(self._guide, self.token_id, completion=False)
        except StructgenError:
            return None

    def __str__(self) -> str:
        found = self.explanation
        why = found.summary() if found is not None else "the vocabulary has no such token"
        return f"{super().__str__().rstrip('.')}. Why: {why}"

    def within(self, place: str) -> StructgenError:
        """The same error, of something within another place."""
        return type(self)(self._guide, self.token_id, ", ".join(filter(None, (place, self.where))), self.remedy)
