"""The errors that structgen raises: one base class, few kinds.

Every message says *what* is wrong, *where* (a column, a file, a row), and *what to do*. The three parts are
also attributes, so that a server can build its own reply from them.
"""

from __future__ import annotations

from copy import copy

#: Characters of a message's part. A definition's names may have millions, and messages quote them.
_LONGEST = 600


class StructgenError(Exception):
    """Base class of every error that structgen raises on purpose.

    Parameters
    ----------
    what:
        What is wrong, one sentence without a full stop.
    where:
        The place: ``"column 7"``, a path, a token id. Empty where there is none.
    remedy:
        What the caller can do about it. Empty where nothing can be done.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        what, where, remedy = map(_printable, (what, where, remedy))
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def within(self, place: str) -> StructgenError:
        """The same error; its place is said within another one, of which it may be a JSON pointer."""
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
    """More states, memory, depth or time than a `Budget` grants a definition, or more work than a step may take."""


class CancelledError(StructgenError):
    """A compile that its caller gave up: the event that was passed as ``cancel`` was set."""


class TokenBudgetError(StructgenError, ValueError):
    """A ``max_tokens`` that is too small for any text of a definition."""


class VocabularyError(StructgenError):
    """A tokenizer whose token bytes cannot be known, or a vocabulary that cannot spell a definition."""


class VocabularyMismatchError(VocabularyError):
    """An index used with a vocabulary other than the one it was compiled for."""


class TokenIdError(StructgenError, ValueError):
    """A token id outside the vocabulary, or one that the mask had refused and that was appended all the same."""


class ArgumentError(StructgenError, ValueError):
    """An argument of the wrong type or out of its range, where no other error names what it is."""


class BitmaskError(StructgenError, ValueError):
    """A bitmask or logits array of the wrong shape, dtype, width or device."""


class BatchError(StructgenError, ValueError):
    """A row that a batch does not have, or as many values as it does not have rows."""


class RollbackError(StructgenError, ValueError):
    """A rollback past the beginning of the text."""


class JsonTextError(StructgenError, ValueError):
    """A text that is not JSON, as far as it was read, or a part of one that can't be read."""


class ReplyTextError(StructgenError, ValueError):
    """A text that is no reply under a definition, or a part of one that can't be read."""


class InstallationError(StructgenError):
    """The compiled kernels are missing, damaged, or of another machine, and there is no Numba to compile them."""


class InternalError(StructgenError):
    """A mistake of structgen's own: a step of the compiler left what the next one can't use. Please report it."""

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
    """The cache could not be used; the work went on without it."""


class VocabularyWarning(StructgenWarning):
    """Some tokens of a vocabulary are left out of all masks, as nobody can know their bytes."""


class GrammarWarning(StructgenWarning):
    """What a grammar's author may not expect: a conflict that was shifted, a lexer that takes less than it could."""


class SchemaWarning(StructgenWarning):
    """A keyword or format of a JSON Schema that checks nothing and may be misspelt, or a place without any value."""
