"""``python -m structgen.cli``, for where the ``structgen`` script is not on the path."""

from . import main

main()
