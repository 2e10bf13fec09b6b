"""Names for what the type checker can't look into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: An array of numbers of some width, and the arrays of a file by name.
Array: TypeAlias = NDArray[Any]
Sections: TypeAlias = Mapping[str, Array]

#: What the numbers of an array are.
DType: TypeAlias = np.dtype[Any]

#: An object as it is read from JSON.
JsonMap: TypeAlias = Mapping[str, Any]

#: What is handed over by a package that is not imported here: a tokenizer, an array of another library.
Foreign: TypeAlias = Any
