"""Names of engines that structgen relies on: each adapter's are there, or the engine's version is refused."""

from __future__ import annotations

import pytest

from structgen.errors import UnsupportedError
from structgen.integrations import engine_names

pytest.importorskip("transformers")


@pytest.mark.parametrize("adapter", ["transformers.generate", "transformers.batching"])
def test_names_of_what_is_installed(adapter: str) -> None:
    engine_names.check_engine(adapter)


@pytest.mark.parametrize("name", ["structgen.nowhere:x", "structgen.errors:Error.nothing", "structgen.errors:Other"])
def test_a_name_that_is_not_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine_names.NAMES, name, (name,))
    with pytest.raises(UnsupportedError, match="the installed version of structgen has no"):
        engine_names.check_engine(name)
