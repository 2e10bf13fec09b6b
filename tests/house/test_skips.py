"""No test is skipped for a reason that does not hold here."""

from __future__ import annotations

import os

from house.skips import is_excused


def test_reasons() -> None:
    assert not is_excused("this random automaton accepts nothing")
    assert not is_excused("Skipped: could not import 'numpy': no such thing")
    assert is_excused("Skipped: could not import 'no_such_package.of_any_kind': No module named 'no_such_package'")
    assert is_excused("needs links and pipes") == (os.name != "posix")
