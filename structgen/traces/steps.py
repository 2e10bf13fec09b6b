"""`TraceStep`: a token, and what the mask left of the model's scores where it was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

#: How a token came about; see `TraceStep`.
TokenKind = Literal["forced", "steered", "free", "chosen", "refused", "unconstrained"]

#: A probability.
Share: TypeAlias = Annotated[float, (0.0, 1.0)]


@dataclass(frozen=True)
class TraceCandidate:
    """A token that could have been written.

    Parameters
    ----------
    token_id:
        Its id.
    data:
        Its bytes; None for a token without text, and for ids behind the vocabulary (padded logits).
    name:
        What a token without text is called, empty where that isn't known.
    before, after:
        Its probabilities, without the mask and with it.
    allowed:
        Whether the mask let it through.
    """

    token_id: int
    data: bytes | None
    name: str
    before: Share
    after: Share
    allowed: bool


@dataclass(frozen=True)
class TraceStep:
    """One token.

    Parameters
    ----------
    token_id, data, name:
        As for a `TraceCandidate`.
    kind:
        ``"forced"``: no other token was allowed, or it was appended without asking the model. ``"steered"``: what
        the model held for most likely was not allowed. ``"free"``: it was. ``"chosen"``: one of several that were
        allowed; what the model held for most likely is not known. ``"refused"``: chosen without the mask, not
        allowed, and taken back. ``"unconstrained"``: no definition held.
    asked:
        Whether the model was asked for it.
    allowed:
        How many ids the mask allowed.
    path:
        In a JSON text, where the token begins, as a JSON pointer to the value that is written (RFC 6901), ``""`` for
        the outermost one; None elsewhere.
    seconds:
        From the token before it to this one.
    mask_seconds:
        What the mask took of that.
    kept:
        The share of the model's probability that the mask allowed; None where the scores weren't seen.
    entropy_before, entropy_after:
        Of the model's probabilities without and with the mask, in bits.
    candidates:
        Those that were most likely before, and after, the most likely before the mask first.
    """

    token_id: int
    data: bytes | None
    name: str
    kind: TokenKind
    asked: bool
    allowed: int
    path: str | None = None
    seconds: float = 0.0
    mask_seconds: float = 0.0
    kept: Share | None = None
    entropy_before: float | None = None
    entropy_after: float | None = None
    candidates: tuple[TraceCandidate, ...] = ()

    @property
    def entropy_lost(self) -> float | None:
        """Bits of the model's uncertainty that the mask took; negative where it left more even choices."""
        if self.entropy_before is None or self.entropy_after is None:
            return None
        return self.entropy_before - self.entropy_after


@dataclass(frozen=True)
class TraceRollback:
    """Tokens that were taken back.

    Parameters
    ----------
    after:
        So many steps had been recorded before.
    tokens:
        So many of them, of those that stood, were taken back.
    """

    after: int
    tokens: int
