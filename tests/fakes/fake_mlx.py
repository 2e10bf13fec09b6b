"""The part of `mlx.core` that masks use, over NumPy, for machines without MLX. bfloat16 is absent from NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


class array:
    """An array that nothing changes in place."""

    def __init__(self, values: Any, dtype: Any = None) -> None:
        self._held: Any = np.array(values._held if isinstance(values, array) else values, dtype)
        self._held.flags.writeable = False
        self.dtype, self.shape, self.ndim = self._held.dtype, self._held.shape, self._held.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._held, dtype)

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, key: Any) -> array:
        return array(self._held[key._held if isinstance(key, array) else key])

    def __setitem__(self, key: array, values: array) -> None:
        held = np.array(self._held)
        held[key._held] = values._held
        self._held = held

    def __rshift__(self, other: array) -> array:
        return array(self._held >> other._held)

    def __and__(self, other: int) -> array:
        return array(self._held & other)

    def astype(self, dtype: Any) -> array:
        return array(self._held, dtype)

    def reshape(self, *shape: Any) -> array:
        return array(self._held.reshape(*shape))


def _over_numpy(name: str) -> Any:
    def call(*arguments: Any, **options: Any) -> array:
        plain = [each._held if isinstance(each, array) else each for each in arguments]
        return array(getattr(np, name)(*plain, **options))

    return call


CONTENT: dict[str, Any] = {
    "array": array, "float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": "bfloat16",
    "int32": np.dtype(np.int32), "bool_": np.dtype(np.bool_),
    **{name: _over_numpy(name) for name in ("arange", "full", "pad", "where")},
}  # fmt: skip
