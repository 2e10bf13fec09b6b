"""``structgen doctor``: what it finds is there, and what is there it finds."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.object_server import BUCKET, Objects, ObjectServer, error, serving_objects
from typer.testing import CliRunner

import structgen as sg
from structgen import doctor
from structgen.cache.remote import bucket
from structgen.cli.app import app
from structgen.doctor import Diagnosis, examine


def run(*arguments: object, code: int = 0) -> dict[str, dict[str, str]]:
    """What the command finds, by subject."""
    done = CliRunner().invoke(app, ["doctor", *map(str, arguments), "--json"])
    assert done.exit_code == code, done.output
    return {each["subject"]: each for each in json.loads(done.stdout)}


def found_of(cache: sg.Cache) -> dict[str, Diagnosis]:
    return {each.subject: each for each in examine(cache)}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "own"))


def test_a_machine_on_which_all_works(tmp_path: Path) -> None:
    found = run("--cache", tmp_path)
    assert {"platform", "processor", "memory", "kernels", "cache", "device"} <= set(found)
    assert found["cache"]["state"] != "refused"
    assert str(tmp_path) in found["cache"]["says"]
    assert not (tmp_path / "own").exists()
    shown = CliRunner().invoke(app, ["doctor", "--cache", str(tmp_path)])
    assert shown.exit_code == 0
    assert f"cache: {tmp_path}" in shown.output


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
def test_a_folder_that_others_can_write(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    found = run("--cache", tmp_path / "shared", code=1)
    assert found["cache"]["state"] == "refused"
    assert "other users" in found["cache"]["says"]


def test_a_bundle_is_looked_through(tmp_path: Path) -> None:
    vocabulary = sg.Vocabulary.bytewise()
    with sg.Cache(tmp_path / "cache") as cache:
        sg.compile(sg.Regex("[ab]"), vocabulary, cache=cache)
        cache.export(tmp_path / "masks.sgb")
    found = run("--cache", tmp_path / "masks.sgb")
    assert found["cache"]["says"] == "a bundle of 1 entries"
    data = bytearray((tmp_path / "masks.sgb").read_bytes())
    data[data.index(b"\x89SGX") + 100] ^= 1
    (tmp_path / "masks.sgb").write_bytes(data)
    assert "1 of 1 values" in run("--cache", tmp_path / "masks.sgb", code=1)["cache"]["says"]
    (tmp_path / "masks.sgb").write_bytes(data[:700])
    assert run("--cache", tmp_path / "masks.sgb", code=1)["cache"]["state"] == "refused"


# -- stores ----------------------------------------------------------------------------------------------


@pytest.fixture
def objects() -> Objects:
    pytest.importorskip("obstore")
    return Objects()


@pytest.fixture
def server(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    monkeypatch.setattr(bucket, "_RETRIES", 0)
    with serving_objects(objects) as found:
        yield found


def before(server: ObjectServer, tmp_path: Path) -> sg.Cache:
    return sg.Cache(tmp_path, store=sg.ObjectStore(f"s3://{BUCKET}/all", options=server.options, timeout=300.0))


def test_a_store_that_works_is_left_as_it_was(server: ObjectServer, objects: Objects, tmp_path: Path) -> None:
    found = found_of(before(server, tmp_path))
    assert found["store"].state in ("fine", "slow")
    assert found["store's credentials"].state == found["store's clock"].state == "fine"
    assert objects.objects == {}


@pytest.mark.parametrize("skew", [-4000.0, 4000.0])
def test_clocks_that_are_apart(skew: float, server: ObjectServer, objects: Objects, tmp_path: Path) -> None:
    objects.skew = skew
    clock = found_of(before(server, tmp_path))["store's clock"]
    assert clock.state == "slow"
    assert ("behind" if skew < 0 else "ahead") in clock.says
    assert not clock.says.startswith("it is 0 s")


def test_a_store_that_is_only_read(server: ObjectServer, tmp_path: Path) -> None:
    server.fault = lambda request, serve: error(403, "AccessDenied") if request.method == "PUT" else serve(request)
    found = found_of(before(server, tmp_path))
    assert found["store"].state in ("fine", "slow")
    assert found["store's credentials"].state == "absent"
    assert "store's clock" not in found


def test_a_store_that_refuses(server: ObjectServer, tmp_path: Path) -> None:
    server.fault = lambda request, serve: error(403, "AccessDenied")
    found = found_of(before(server, tmp_path))
    assert found["store"].state == "refused"
    assert "cannot be read" in found["store"].says
    assert "AccessDenied" in found["store"].says
    assert "s3:GetObject" in found["store"].remedy


# -- what the system says --------------------------------------------------------------------------------


def test_memory_is_what_the_container_may_take(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:   5000 kB\n")
    assert [*doctor._available(tmp_path / "meminfo")] == [5000 << 10]
    assert [*doctor._available(tmp_path / "none")] == []
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert [*doctor._left_to_group(tmp_path)] == [600]
    (tmp_path / "memory.max").write_text("max\n")
    assert [*doctor._left_to_group(tmp_path)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="file systems are told by Linux")
def test_file_systems() -> None:
    assert doctor._file_system(Path("/proc/self")) == "proc"


@pytest.mark.parametrize(
    ("found", "requirement", "is_within"),
    [
        ("0.32.1", "vllm>=0.32,<0.33", True), ("0.33.0", "vllm>=0.32,<0.33", False), ("0.9", "x>=0.10", False),
        ("2.13.0+cpu", "torch<2.14,>=2.6", True), ("3", "x<3,>=2", False), ("1.0rc1", "x[a]>=1.0", True),
    ],
)  # fmt: skip
def test_versions(found: str, requirement: str, is_within: bool) -> None:
    assert doctor._is_within(found, requirement) == is_within


def test_versions_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "requires", lambda _: ["numpy<1,>=0.5; extra == 'old'", "no-such-package>=1; extra == 'more'", "rich"]
    )
    found = {each.subject: each for each in doctor._packages()}
    assert [(subject, each.state) for subject, each in found.items()] == [
        ("extra old", "refused"),
        ("extra more", "absent"),
    ]
    assert "structgen[old]" in found["extra old"].remedy
