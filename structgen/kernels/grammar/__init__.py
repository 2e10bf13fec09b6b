"""Kernels of grammars: leftmost automata, lexers and parsers.

`ordered_subsets` and `stack_pieces` work at compile time, `lexer_walks`, `watched_lexemes`, `parser_walks` and
`parser_steps` for masks and steps. What holds of all kernels holds here (`structgen.kernels`).
"""

from __future__ import annotations

from .lexer_walks import *
from .ordered_subsets import *
from .parser_steps import *
from .parser_walks import *
from .stack_pieces import *
from .watched_lexemes import *
