"""Every kernel of structgen, a file for each data structure.

Numba translates them when a wheel is built, into one module, `structgen._kernels` (see `structgen.kernels.aot`); at
run time there is no Numba. Whoever changes a kernel has no module of it: then Numba compiles each kernel when it is
first called (`structgen.kernels.fallback`), which takes seconds, and a log entry says so. ``STRUCTGEN_KERNELS=jit``
asks for that; with ``NUMBA_BOUNDSCHECK=1`` kernels look at every index then.

Kernels take scalars and arrays only, of one type each, check no bounds, allocate nothing and raise nothing: their
callers hand them arrays that were validated or built by structgen itself, scratch and room for results among them. A
kernel runs without the GIL, but for those of a few microseconds, so scratch belongs to one thread. What does not fit
into the room is a status, and the caller comes again with more. Scalars are returned, and tuples of them, which cost
Python less than to read them from an array. Where a kernel could run for long on a hostile definition it counts its
work and stops at a limit. No divisor is 0: a division would not say so.

Why no write passes the end of an array, whatever tables say, if their numbers are in bounds (`storage.columns`):

- Arrays by depth have more rows than a token has bytes. The trie and the token ids are the vocabulary's own.
- Outputs of tokens or nodes are as long as there are of these, and a walk comes to each node once: it goes on, and
  the nodes that it enters at ascend, none twice (`structgen.runtime.rows.residuals`). `walk_lexer`, which enters at
  one after the other, and whatever else may find more, look at the length of an output before they write to it.
- Counting walks cut intervals at bounds that are in order, so that pieces are disjoint and one at most is whole; each
  piece of a depth leads to three at most, for which there is room first.
- Room for threads and cells of a stack is looked at before each one (`_follow`, `_unite`, `_stack_cell`, `_cell`),
  for those that a configuration begins with, too (`_start_stack`). A set has a number only where there is room for
  one more behind it (`_number_last`), and a number that no set has is dead.
- Pieces of a parser's stack that are kept have 24 states at most, and are made longer by one before that is looked
  at; there is room for 64. Room for pairs, bases and what waits is looked at before each one (`replaced_pieces`).
- Room for a row, a thread and what was seen of it is looked at before each one; a row has room for twice the
  look-behind automata of a regex besides (`ordered_subsets`).
- Room for a node, a state with its edges, and what these lead to is looked at before each one, as for the stack
  (`_copy_node`, `_is_full`); names, roots and actions have theirs from the beginning (`build_key_states`).
- A trie of words has a state for each letter at most, and the automaton that it becomes a state for each of the trie's
  (`word_trie`, `share_suffixes`).
- Tables of a store are moved to a block that has room for all of them, and are never shorter there (`move_tables`).
- What is remembered from call to call has a last number, at which `FULL` is returned, and more slots than numbers.

Conventions: ``-1`` is the dead state. A transition table is ``int32[states * classes]``, row after row; an entry
below -1 is ``-2 - r``, counter record ``r`` (see `structgen.compiler.automata.dfa`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import InstallationError
from ..system.locks import TABLES, has_gil
from . import plans as plans  # which is there where there are no kernels

if TYPE_CHECKING:
    from ..system.types import Array
    from .automaton_walks import *
    from .batches import *
    from .columns import *
    from .distances import *
    from .grammar import *
    from .key_tries import *
    from .products import *
    from .pushdown import *
    from .rows import *
    from .store import *
    from .subset_construction import *
    from .substrings import *
    from .values import *
    from .words import *

    def address(array: Array, /) -> int:
        """Where the first number of a contiguous array is. Whoever hands it to kernels keeps the array."""

    #: What the kernels were compiled for: ``x86_64_v3``, say, or ``jit``.
    PROCESSOR: str


def _compiled() -> dict[str, object]:
    """What the compiled module has. Raises `ImportError` where there is none of these sources."""
    if os.environ.get("STRUCTGEN_KERNELS") == "jit":
        raise ImportError("STRUCTGEN_KERNELS=jit asks for them")
    spec = find_spec("structgen._kernels")
    if spec is None:
        raise ImportError("there are none, as in an installation that was built where Numba has no wheel")
    if spec.origin is not None and not _is_whole(spec.origin):
        raise ImportError(f"{spec.origin} is damaged")
    module = import_module("structgen._kernels")
    if os.path.exists(f"{os.path.dirname(__file__)}/../../pyproject.toml"):  # a checkout, whose files change
        from .sources import digest

        if digest() != module.DIGEST:
            raise ImportError("they have changed since structgen._kernels was built")
    return vars(module)


def _is_whole(file: str) -> bool:
    """Whether a module of Linux's (ELF) has its end; the system's loader ends the process where it has not."""
    with open(file, "rb") as opened:
        head = opened.read(64)
        size = opened.seek(0, os.SEEK_END)
    if head[:5] != b"\x7fELF\x02":
        return size > 0
    table, width, count = int.from_bytes(head[40:48], "little"), head[58], head[60] | head[61] << 8
    return len(head) == 64 and table + width * count <= size


def _load() -> dict[str, object]:
    try:
        return _compiled()
    except ImportError as error:
        reason = str(error)
    try:
        from .fallback import NAMESPACE
    except ImportError:
        raise InstallationError(
            f"the compiled kernels can't be loaded: {reason}",
            remedy="Install one of structgen's wheels anew; from a checkout, `make kernels` builds them. With Numba"
            " (pip install 'structgen[jit]') they are compiled when they are called.",
        ) from None
    import logging

    logging.getLogger("structgen").warning(
        "Numba compiles structgen's kernels as they are needed, which takes seconds each: %s", reason
    )
    return NAMESPACE


def one_at_a_time(namespace: dict[str, Any]) -> dict[str, Any]:
    """A namespace whose kernels of stores, which share tables and scratch, are behind one lock: without the GIL."""

    def behind_lock(kernel: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            with TABLES:
                return kernel(*arguments)

        return call

    own = f"{__name__}.store."
    return {
        name: behind_lock(value)
        if callable(value) and own in f"{value.__doc__} {getattr(value, '__module__', '')}."
        else value
        for name, value in namespace.items()
    }


_is_loaded = False


def __getattr__(name: str) -> object:
    global _is_loaded
    if name.startswith("__"):
        raise AttributeError(name)
    if not _is_loaded:
        found = {each: value for each, value in _load().items() if not each.startswith("_")}
        globals().update(found if has_gil else one_at_a_time(found))
        _is_loaded = True
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
