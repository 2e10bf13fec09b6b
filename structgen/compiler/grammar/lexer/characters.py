"""Look-ahead that is settled by the first byte of a character.

Whatever a terminal reads is UTF-8. So a text in which a lead byte is not followed by one of its characters (RFC 3629,
section 4) is refused, whatever was thought of it before; and where all characters of a lead byte settle a look-ahead
in the same way, the lead byte does. ``if(?![a-z\\x80-\\U0010ffff])`` is none as soon as any character beyond ASCII
begins. Otherwise the automaton of a lexer would follow the `if` through that character, beside the identifier that it
is the beginning of.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...automata.dfa import Dfa
from ...automata.utf8 import ByteSequence, byte_sequences

_CHARACTERS: tuple[ByteSequence, ...] = (*byte_sequences(0x80, 0xD7FF), *byte_sequences(0xE000, 0x10FFFF))

#: What becomes of the text that an automaton reads: it is none, it is one whatever follows, or that is open.
_NEVER, _ALWAYS, _OPEN = range(3)


def settled_early(dfa: Dfa) -> Dfa:
    """The same for texts in UTF-8 cut between characters; a character that settles it does so with its first byte."""
    always = [s for s in range(dfa.states) if dfa.accepting[s] and (dfa.table[s] == s).all()]
    fate = np.full(dfa.states + 1, _OPEN)
    fate[always], fate[-1] = _ALWAYS, _NEVER
    of_lead = np.full((256, dfa.states), -1)
    for (low, high), *following in _CHARACTERS:
        after = fate
        for first, last in reversed(following):
            there = after[dfa.table[:, np.unique(dfa.classes[first : last + 1])]]
            after = np.append(np.where((there == there[:, :1]).all(axis=1), there[:, 0], _OPEN), _NEVER)
        of_lead[low : high + 1] = after[dfa.table[:, dfa.classes[low : high + 1]]].T
    table = dfa.table.copy()
    for kind in np.unique(dfa.classes[0xC2:0xF5]).tolist():
        members = np.flatnonzero(dfa.classes[:256] == kind)
        if members[0] < 0xC0:
            continue  # not only lead bytes
        fates = of_lead[members[(members >= 0xC2) & (members <= 0xF4)]]
        same = (fates == fates[0]).all(axis=0) & (fates[0] != _OPEN)
        table[same, kind] = np.where(fates[0][same] == _ALWAYS, always[0] if always else -1, -1)
    return replace(dfa, table=table)
