"""`interruptible`: kernels that return arrays, where a signal's handler may raise in the middle of a call.

Numba asks a Python function for the class of each array that a kernel returns. Python runs the handlers of signals
that came meanwhile at its first line, and what they raise (`KeyboardInterrupt`) ends the call as a `SystemError`.
"""

from __future__ import annotations

from numba.core.registry import CPUDispatcher

from ..system.types import Foreign


class _Interruptible(CPUDispatcher):  # type: ignore[misc]
    def __call__(self, *arguments: object) -> object:
        try:
            return super().__call__(*arguments)
        except SystemError as error:
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None


def interruptible(kernel: Foreign) -> None:
    """Have calls of a kernel raise what the handler of a signal raised."""
    if isinstance(kernel, CPUDispatcher):  # with NUMBA_DISABLE_JIT=1 it is a function
        kernel.__class__ = _Interruptible
