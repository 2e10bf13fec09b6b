"""An index for tests that must not depend on the compiler: a regex over a handful of tokens, by plain Python.

The machine of `fake_index` has what a `Guide` and the runtime ask of one. The automaton comes from interegular and
every mask from walking every token, so keep vocabularies small and patterns ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, cast

import interegular
import numpy as np
from interegular.fsm import anything_else
from judges.guides import EACH_BYTE
from numpy.typing import NDArray

from structgen.runtime.core.machine import Machine
from structgen.runtime.index.index import Index
from structgen.runtime.rows.bitmask import pack
from structgen.vocabulary import Vocabulary


class FakeMachine(Machine):
    """A `structgen.runtime.core.machine.Machine` whose configurations are states of an interegular FSM."""

    def __init__(self, pattern: str, vocabulary: Vocabulary) -> None:
        self._fsm: Any = interegular.parse_pattern(pattern).to_fsm()
        self.vocabulary = vocabulary
        self._rows: dict[Hashable, NDArray[np.int32]] = {}

    @property
    def start(self) -> Hashable:
        return self._fsm.initial  # type: ignore[no-any-return]

    def advance(self, config: Hashable, token_id: int) -> Hashable | None:
        token = self.vocabulary.token(token_id)
        if token is None:
            return None
        state = config
        for byte in token:
            symbol = chr(byte) if byte < 128 else anything_else
            if symbol not in self._fsm.alphabet._symbol_mapping:
                symbol = anything_else
            successors: Mapping[int, int] = self._fsm.map.get(state, {})
            state = successors.get(self._fsm.alphabet[symbol])
            if state is None or byte >= 128:
                return None
        return state if self._fsm.islive(state) else None

    def row(self, config: Hashable) -> NDArray[np.int32]:
        if config not in self._rows:
            allowed = np.zeros(self.vocabulary.size, np.bool_)
            for token_id in range(len(allowed)):
                allowed[token_id] = self.advance(config, token_id) is not None
            allowed[list(self.vocabulary.eos_ids)] = self.is_accepting(config)
            self._rows[config] = _read_only(pack(allowed))
        return self._rows[config]

    def is_accepting(self, config: Hashable) -> bool:
        return config in self._fsm.finals

    def temperature(self, config: Hashable) -> None:
        return


class FakeIndex(Index):
    """An index that is pickled as what it was made of."""

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Any, ...]]:
        return fake_index, (self.definition, self.vocabulary)


def fake_index(pattern: str, vocabulary: Vocabulary) -> Index:
    """A regex over a vocabulary."""
    return FakeIndex("regex", pattern, cast("Any", FakeMachine)(pattern, vocabulary))


def _read_only(row: NDArray[np.int32]) -> NDArray[np.int32]:
    row.flags.writeable = False
    return row


#: Some tokens of more than one byte, as byte-pair merges would make them.
MERGES = [b"ab", b"12", b"the", b" the", b"true", b"false", b'":', b'{"', b"00", b"a1b2", "é".encode(), b'"}']

EOS = 256 + len(MERGES)
PAD = EOS + 1


def byte_vocabulary() -> Vocabulary:
    """256 single bytes, `MERGES`, `EOS`, and a special token `PAD`: 270 ids, which is no multiple of 32."""
    tokens = EACH_BYTE + MERGES
    return Vocabulary.from_bytes(tokens, eos_ids=[EOS], special_tokens={"<pad>": PAD})
