"""What entry points call: they run in every process of an engine's, so they look before they load anything."""

from __future__ import annotations

import os

#: Set to 1 to have vLLM's structured outputs go through structgen.
VLLM_BACKEND = "STRUCTGEN_VLLM_BACKEND"


def vllm_backend() -> None:
    """`structgen.integrations.vllm_backend.register`, where the environment asks for it."""
    if os.environ.get(VLLM_BACKEND) == "1":
        from .vllm_backend import register

        register()
