"""`LlamaReader`: a ``Llama`` whose scores are read for a sequence of ids."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...system.locks import Lock, Rank
from ...system.types import Foreign
from ..engine_names import check_attributes
from ..local.reader import known

#: The lock of each ``Llama``: it has one sequence.
_locks: weakref.WeakKeyDictionary[Foreign, Lock] = weakref.WeakKeyDictionary()


class LlamaReader:
    """A ``Llama`` as a `structgen.integrations.local.reader.Reader`. Safe to use from several threads.

    What it read last stays in its key-value cache, up to where other ids begin (``llama_memory_seq_rm``); where that
    can't be cut, as that of a recurrent model, all is read anew. The ``Llama`` may be used otherwise in between.

    Parameters
    ----------
    llama:
        A ``llama_cpp.Llama``.

    Raises
    ------
    UnsupportedError
        For a version of llama-cpp-python that lacks what is relied on.
    """

    def __init__(self, llama: Foreign) -> None:
        check_attributes("llama_cpp.reader", llama)
        self._llama = llama
        self._lock = _locks.setdefault(llama, Lock(Rank.LEAF))
        self.window: int | None = llama.n_ctx()

    def read(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """The scores of the token behind some ids, ``float32[width]``."""
        llama = self._llama
        with self._lock:
            count = known(llama.input_ids[: llama.n_tokens].tolist(), ids)
            if count and count < llama.n_tokens and not llama._ctx.kv_cache_seq_rm(-1, count, -1):
                count = 0
            if count:
                llama.n_tokens = count
            else:
                llama.reset()
            llama.eval(list(ids[count:]))
            scores = llama._ctx.get_logits_ith(-1)
            return np.array(np.ctypeslib.as_array(scores, shape=(llama.n_vocab(),)), np.float32)
