"""The errors that structgen raises: one base class, few kinds.

Every message says *what* is wrong, *where* (a column, a file, a row), and *what to do*. The three parts are
also attributes, so that a server can build its own reply from them.
"""

from __future__ import annotations

from copy import copy

#: Characters of a message's part. A definition's names may have millions, and messages quote them.
_LONGEST = 600


class StructgenError(Exception):
    """Base class of all errors that structgen raises on purpose.

    Parameters
    ----------
    what:
        The problem, one sentence without a full stop.
    where:
        The place: ``"column 7"``, a path, a token id. Empty where there is none.
    remedy:
        A suggestion for the caller. Empty where nothing can be done.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        what, where, remedy = map(_printable, (what, where, remedy))
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def within(self, place: str) -> StructgenError:
        """Return the same error with its place inside another one, ``place``, which may be a prefix of a JSON
        pointer.
        """
        where = place + self.where if self.where.startswith("/") else ", ".join(filter(None, (place, self.where)))
        twin = copy(self)
        twin.where = _printable(where)
        twin.args = twin.what, twin.where, twin.remedy
        return twin

    def __str__(self) -> str:
        text = f"{self.what} ({self.where})" if self.where else self.what
        return f"{text}. {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        # An exception is made again of its positional arguments alone, and a pool of processes waits for one that
        # can't be made for ever.
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[StructgenError], arguments: tuple[object, ...]) -> StructgenError:
    """An error of another process, or a copy, without its attributes."""
    return kind.__new__(kind, *arguments)


def _printable(text: str) -> str:
    """Text from a definition's author, short enough for a log, and without lone surrogates, which no stream takes."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


Error = StructgenError


class DefinitionError(StructgenError):
    """A regex, schema or grammar that is not well formed."""


class UnsupportedError(DefinitionError):
    """A well-formed construct that cannot be honoured exactly, and is therefore refused."""


class EmptyLanguageError(DefinitionError):
    """A definition that no text satisfies."""


class BudgetExceededError(StructgenError):
    """More states, memory, depth or time than a `Budget` grants, or more work than one step may take."""


class CancelledError(StructgenError):
    """A compile that its caller cancelled: the event passed as ``cancel`` was set."""


class TokenBudgetError(StructgenError, ValueError):
    """A ``max_tokens`` that is too small for any text of a definition."""


class VocabularyError(StructgenError):
    """A tokenizer whose token bytes cannot be known, or a vocabulary that cannot spell a definition."""


class VocabularyMismatchError(VocabularyError):
    """An index used with a vocabulary other than the one it was compiled for."""


class TokenIdError(StructgenError, ValueError):
    """A token id outside the vocabulary, or a token that the mask forbids and that was appended anyway."""


class ArgumentError(StructgenError, ValueError):
    """An argument of the wrong type or out of range, where no more specific error applies."""


class BitmaskError(StructgenError, ValueError):
    """A bitmask or logits array of the wrong shape, dtype, width or device."""


class BatchError(StructgenError, ValueError):
    """A row that a batch does not have, or a wrong number of values for its rows."""


class RollbackError(StructgenError, ValueError):
    """A rollback past the beginning of the text."""


class JsonTextError(StructgenError, ValueError):
    """A text that is not JSON, or a part of one that cannot be read."""


class ReplyTextError(StructgenError, ValueError):
    """A text that is not a reply under a definition, or a part of one that cannot be read."""


class InstallationError(StructgenError):
    """The compiled kernels are missing, damaged, or of another machine, and there is no Numba to compile them."""


class InternalError(StructgenError):
    """A bug in structgen. Please report it, with the definition."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "This is a mistake of structgen's: please report it, with the definition.",
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)


class FormatError(StructgenError):
    """A file that is not a valid index: foreign, truncated, damaged, or of another format version."""


class CacheError(StructgenError):
    """A cache folder that cannot be used as asked."""


class StoreError(CacheError):
    """An object store behind a cache that cannot be used as asked: down, slow, full, or forbidden."""


class MissingIndexError(CacheError):
    """A definition that is not in the cache, where nothing may be compiled."""


class StructgenWarning(UserWarning):
    """Base class of structgen's warnings."""


class CacheWarning(StructgenWarning):
    """The cache could not be used; the work continued without it."""


class VocabularyWarning(StructgenWarning):
    """Some tokens of a vocabulary are in no mask, because their bytes cannot be known."""


class GrammarWarning(StructgenWarning):
    """A grammar with surprising behaviour: a conflict resolved by shifting, a lexer that accepts less than it
    could.
    """


class SchemaWarning(StructgenWarning):
    """A keyword or format of a JSON Schema that checks nothing and may be misspelt, or a place without any value."""
