"""Where structgen keeps files of its own."""

from __future__ import annotations

import os
from pathlib import Path

#: Overrides the folder; useful in containers and tests.
ENVIRONMENT_VARIABLE = "STRUCTGEN_CACHE_DIR"


def cache_root() -> Path:
    """``$STRUCTGEN_CACHE_DIR``, or the platform's folder for a user's caches; absolute. Not created here."""
    override = os.environ.get(ENVIRONMENT_VARIABLE)
    if override:
        return Path(os.path.abspath(os.path.expanduser(override)))
    from platformdirs import user_cache_path

    return user_cache_path("structgen", appauthor=False)
