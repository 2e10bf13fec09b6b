"""Which tests a change asks for."""

from __future__ import annotations

from house.affected import ALWAYS, ROOT, TESTS, affected
from house.import_graph import MODULES


def names(*changed: str) -> set[str]:
    return {path.relative_to(TESTS).as_posix() for path in affected(ROOT / name for name in changed)}


def test_a_rooms_own_tests_and_those_above_it() -> None:
    found = names(f"structgen/{MODULES['compiler.patterns'].relative_to(ROOT / 'structgen')}")
    assert {"compiler/patterns/test_regex_cases.py", "compiler/gbnf/test_named_tokens.py"} <= found
    assert not any(name.startswith(("vocabulary/", "cache/", "engines/")) for name in found)


def test_whoever_imports_a_helper_that_changed() -> None:
    found = names("tests/judges/lark_judge.py")
    assert "compiler/grammar/test_lark_options.py" in found
    assert not any(name.startswith(("vocabulary/", "cache/")) for name in found)


def test_whoever_names_a_file_that_changed() -> None:
    assert "tools/test_tool_turns.py" in names("tests/cases/tool_turns.json")


def test_nothing_asks_for_the_house_alone() -> None:
    assert affected([]) == ALWAYS
