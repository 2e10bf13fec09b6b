"""llama-cpp-python: a logits processor for ``Llama``, optimistic decoding, drafts, the vocabulary of its model.

Comes in: a ``llama_cpp.Llama``, and an `Index`. Goes out: scores, or tokens. Nothing here imports the engine before
it is used. Follows llama-cpp-python 0.3.36.

Read `tokens` (the vocabulary), `processor`, `reader` (a ``Llama`` whose scores are read), `generation`, `drafts`.
"""

from .drafts import LlamaDraft as LlamaDraft
from .generation import generate as generate
from .processor import LogitsProcessor as LogitsProcessor
from .tokens import vocabulary as vocabulary
