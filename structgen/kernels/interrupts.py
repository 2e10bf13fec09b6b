"""Ctrl-C while a kernel runs, is compiled or is loaded: `KeyboardInterrupt`, at once, and not lost.

Numba asks a Python function for the class of each array that a kernel returns. Python runs the handlers of signals
that came meanwhile at its first line, and the `KeyboardInterrupt` that one raises ends the call as a `SystemError`.
While Numba compiles or loads a kernel, LLVM calls Python functions, and an exception of theirs is printed and
forgotten.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def _insisting() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at the end where an interrupt came, and nothing else was raised."""
    handler = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not handler:
        yield
        return
    interrupts: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        raise KeyboardInterrupt


def interruptible(kernel: Foreign, *, makes_arrays: bool) -> None:
    """Have an interrupt end the call of a kernel, whatever it was at."""
    if not isinstance(kernel, CPUDispatcher):  # with NUMBA_DISABLE_JIT=1 they are functions
        return
    compile = kernel.compile

    def compile_insisting(signature: object) -> object:
        with _insisting():
            return compile(signature)

    kernel.compile = compile_insisting
    if makes_arrays:
        kernel.__class__ = _Interruptible
