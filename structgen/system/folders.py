"""Where structgen keeps files of its own."""

from __future__ import annotations

import os
from pathlib import Path

#: Overrides the folder; useful in containers and tests.
ENVIRONMENT_VARIABLE = "STRUCTGEN_CACHE_DIR"

#: The folder of a user without a home: nothing can be made there.
HOMELESS = Path(os.devnull, "structgen")


def cache_root() -> Path:
    """``$STRUCTGEN_CACHE_DIR``, or the platform's folder for a user's caches; absolute. Not created here.

    `HOMELESS` for a user without a home.
    """
    override = os.environ.get(ENVIRONMENT_VARIABLE)
    if override:
        return Path(os.path.abspath(os.path.expanduser(override)))
    from platformdirs import user_cache_path

    try:
        return user_cache_path("structgen", appauthor=False)
    except RuntimeError:  # no HOME, and no entry in passwd
        return HOMELESS
