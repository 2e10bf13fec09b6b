"""Names for types that several rooms have in common, most of them what the type checker can't look into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # commands that only show their help load no NumPy
    import numpy as np
    from numpy.typing import NDArray

#: An array of numbers of some width, and the arrays of a file by name.
Array: TypeAlias = "NDArray[Any]"
Sections: TypeAlias = "Mapping[str, NDArray[Any]]"

#: What the numbers of an array are.
DType: TypeAlias = "np.dtype[Any]"

#: An object as it is read from JSON.
JsonMap: TypeAlias = Mapping[str, Any]

#: A value as `json.loads` reads it.
JsonValue: TypeAlias = Any

#: What is handed over by a package that is not imported here: a tokenizer, an array of another library.
Foreign: TypeAlias = Any


def with_article(kind: type) -> str:
    """The name of a class, for messages: ``a str``, ``an int``."""
    return f"{'an' if kind.__name__[0] in 'AEIOaeio' else 'a'} {kind.__name__}"
