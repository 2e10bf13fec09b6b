"""Models on this machine whose scores are read one sequence at a time: optimistic decoding, and drafts.

Comes in: a `Reader`, which has scores for what follows some ids. Goes out: tokens inside a definition. Each engine's
room has a reader of its own (`structgen.integrations.transformers.drafts`, `structgen.integrations.llama_cpp`).

Read `reader`, `pace` (how far ahead), `decoding`, `draft`.
"""

from .draft import LocalDraft as LocalDraft
from .reader import Reader as Reader
