"""`RefusedTokenError`: a token that a definition does not allow, with why, which is looked for when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ArgumentError, TokenIdError

if TYPE_CHECKING:
    from ..explanations.values import Explanation
    from ..runtime.guide.guide import Guide


class RefusedTokenError(TokenIdError):
    """A token that a definition does not allow. The message says why; the reason is computed when it is read.

    Parameters
    ----------
    guide:
        The guide before the token; it is copied.
    token_id:
        The token, which may be any number.
    where, remedy:
        As in `StructgenError`.
    """

    def __init__(self, guide: Guide, token_id: int, where: str = "", remedy: str = "") -> None:
        super().__init__(f"token {token_id} is not allowed by the definition", where=where, remedy=remedy)
        self.token_id = token_id
        #: Until it is explained: errors that are kept shall not keep indexes.
        self._guide: Guide | None = guide.fork()
        self._explanation: Explanation | None = None
        self._why = "the vocabulary has no such token"

    @property
    def explanation(self) -> Explanation | None:
        """Return the explanation of the refusal, or None for a token outside the vocabulary or where none was
        found.
        """
        from ..explanations.explain import explain

        guide = self._guide
        if guide is not None:
            try:
                self._explanation = explain(guide, self.token_id, completion=False)
                self._why = self._explanation.summary()
            except (ArgumentError, TokenIdError):
                pass
            except Exception as error:  # the text of an error is no place for another one
                self._why = f"that can't be said: {type(error).__name__}"
            self._guide = None  # after what other threads return then
        return self._explanation

    def __str__(self) -> str:
        _ = self.explanation
        return f"{super().__str__().rstrip('.')}. Why: {self._why}"

    def __reduce__(self) -> tuple[object, ...]:
        _ = self.explanation  # which goes to another process, where the index does not
        return super().__reduce__()
