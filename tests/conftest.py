"""Vocabularies of real models, each loaded once; Hypothesis as every test wants it; and which skips are excused."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from house.skips import DATA, is_excused
from tiers import draws

from structgen import Vocabulary

# Models of the tests are tiny: threads of torch's, on cores that others have as well, would wait for one another, ten
# times as long as one takes alone.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Nothing is kept in the user's own folder, and nothing goes on in the background, but where a test is about that.
os.environ["STRUCTGEN_BASE_ROWS"] = "0"

#: Folders with a ``tokenizer.json`` each.
TOKENIZERS = DATA / "tokenizers"

if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    # No test asserts a time, and a machine does much else. In CI Hypothesis draws the same examples every time, as
    # long as the sources are the same: it looks for constants in these, so with any line sizes change, too.
    settings.register_profile(
        "structgen",
        parent=settings.get_profile("ci" if os.environ.get("CI") else "default"),
        max_examples=draws(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("structgen")

#: Reasons of skips, by how many tests gave them; of tests in this process, or of all workers'.
SKIPS = Counter[str]()


def _note_skip(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple) and not hasattr(report, "wasxfail"):
        SKIPS[report.longrepr[2].removeprefix("Skipped: ")] += 1


pytest_runtest_logreport = pytest_collectreport = _note_skip


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With ``STRUCTGEN_STRICT_SKIPS=1`` a skip that nothing excuses fails the run; else it is only named."""
    is_strict = bool(os.environ.get("STRUCTGEN_STRICT_SKIPS"))
    if is_strict and session.exitstatus in (pytest.ExitCode.OK, None) and not all(map(is_excused, SKIPS)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests were skipped."""
    for reason, count in sorted(SKIPS.items()):
        excused = is_excused(reason)
        terminalreporter.write_line(f"{'skipped' if excused else 'SKIPPED WITHOUT AN EXCUSE'} ({count}): {reason}")


def tokenizer_folder(name: str) -> Path:
    """The folder of a real tokenizer; skips the test where it is not there."""
    folder = TOKENIZERS / name
    if not (folder / "tokenizer.json").is_file():
        pytest.skip(f"the tokenizer {name} is not in {DATA.name}/{TOKENIZERS.name}")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _old_objects_are_not_visited() -> Iterator[None]:
    """What modules leave behind is a million objects, which every full collection would go through."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def lock_order() -> Iterator[None]:
    """With ``STRUCTGEN_CHECK_LOCKS=1`` all locks have to be taken in their order, in every test."""
    if not os.environ.get("STRUCTGEN_CHECK_LOCKS"):
        yield
        return
    from hostile.concurrent_work import LockOrder

    order = LockOrder()
    with order.watched():
        yield
    assert order.violations == []


@pytest.fixture(scope="session")
def llama3() -> Vocabulary:
    """Llama 3: byte-level BPE, 128,256 ids."""
    return Vocabulary.from_pretrained(tokenizer_folder("llama3"))


@pytest.fixture(scope="session")
def qwen2_5() -> Vocabulary:
    """Qwen 2.5: byte-level BPE behind NFC, 151,665 ids, some added tokens are text."""
    return Vocabulary.from_pretrained(tokenizer_folder("qwen2_5"))


@pytest.fixture(scope="session")
def gemma() -> Vocabulary:
    """Gemma: SentencePiece with byte fallback, 256,000 ids, 125 pairs with equal bytes."""
    return Vocabulary.from_pretrained(tokenizer_folder("gemma"))


@pytest.fixture(scope="session")
def tekken() -> Vocabulary:
    """Mistral's tekken: 131,072 ids, the first thousand special."""
    if find_spec("mistral_common") is None:
        pytest.skip("the tekken vocabulary comes with mistral-common, which is not installed")
    return Vocabulary.from_tekken()


@pytest.fixture(params=["as it is", "everything is wide"])
def _widths(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways round walking a wide state are for real vocabularies; here they are forced on a small one, too."""
    from structgen.runtime.pushdown import machine, partial_masks, walker
    from structgen.runtime.pushdown.store import store

    vocabulary = getattr(request.module, "VOCABULARY", None)
    if vocabulary is not None:
        vocabulary.shared_rows.clear()
    if request.param == "everything is wide":
        monkeypatch.setattr(machine, "FEW_PARTS", 1)
        monkeypatch.setattr(store, "FEW_PARTS", 1)
        monkeypatch.setattr(machine, "_MANY_THREADS", 1)
        monkeypatch.setattr(partial_masks, "_WIDE", 0)
        monkeypatch.setattr(partial_masks, "_SHORT", 5)
        monkeypatch.setattr(walker, "_FAR_APART", 20)
        monkeypatch.setattr(walker, "_WORTH_A_BASE", 0.1)
