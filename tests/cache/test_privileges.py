"""Folders that other users have a hand in: neither kernels nor entries come from there."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_cache import container, content, file_of, recorded

import structgen
from structgen.cache import folder as cache_folder
from structgen.cache.cache import Cache
from structgen.errors import CacheError, CacheWarning
from structgen.system import private_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")

as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as two users")

#: A user without rights, and without a file on this machine.
THEM = 65533


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach, and nobody else can write."""
    folder = Path(tempfile.mkdtemp(prefix="structgen-test-")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# -- whose a path is -------------------------------------------------------------------------------------


def own(folder: Path) -> Path:
    return folder / "a" / "b"


def others_can_write(folder: Path) -> Path:
    own(folder).chmod(0o702)
    return own(folder)


def group_can_write(folder: Path) -> Path:
    own(folder).chmod(0o720)
    return own(folder)


def anybody_can_add(folder: Path) -> Path:
    own(folder).chmod(0o1777)
    return own(folder)


def anybody_can_rename(folder: Path) -> Path:
    own(folder).parent.chmod(0o777)
    return own(folder)


def somebody_elses(folder: Path) -> Path:
    os.chown(own(folder), THEM, 0)
    return own(folder)


def in_somebody_elses(folder: Path) -> Path:
    os.chown(own(folder).parent, THEM, 0)
    return own(folder)


def linked_to_somebody_elses(folder: Path) -> Path:
    in_somebody_elses(folder)
    (folder / "link").symlink_to("a/b")
    return folder / "link"


def by_somebody_elses_link(folder: Path) -> Path:
    folder.chmod(0o1777)
    (folder / "link").symlink_to(own(folder))
    os.chown(folder / "link", THEM, 0, follow_symlinks=False)
    return folder / "link"


def in_a_circle(folder: Path) -> Path:
    (folder / "link").symlink_to("other")
    (folder / "other").symlink_to(folder / "link")
    return folder / "link"


def by_root_alone(change: Callable[[Path], Path]) -> object:
    return pytest.param(change, marks=as_root)


REFUSED = [
    others_can_write, group_can_write, anybody_can_add, anybody_can_rename, in_a_circle,
    *map(by_root_alone, (somebody_elses, in_somebody_elses, linked_to_somebody_elses, by_somebody_elses_link)),
]  # fmt: skip


@pytest.mark.parametrize("change", REFUSED)
def test_a_folder_that_somebody_else_can_change(shared: Path, change: Callable[[Path], Path]) -> None:
    own(shared).mkdir(parents=True, mode=0o700)
    own(shared).parent.chmod(0o700)
    path = change(shared)
    for call in (private_folder.check, private_folder.make):
        with pytest.raises(CacheError, match=r"other users can write|belongs to another user|too many symbolic"):
            call(path)
    if change is not anybody_can_add:  # in a sticky folder, what is one's own stays one's own
        with pytest.raises(CacheError):
            private_folder.make(path / "inside")
    cache = Cache(path)
    with recorded() as caught:
        assert not cache.put("key", container(1))
        assert cache.get("key") is None
    assert len(caught) == 1
    assert not list(own(shared).iterdir())


def through_a_link(folder: Path) -> Path:
    (folder / "link").symlink_to(own(folder))
    return folder / "link"


def through_links_that_climb(folder: Path) -> Path:
    (folder / "link").symlink_to("a/../other")
    (folder / "other").symlink_to("./a")
    return folder / "link" / "b"


def in_a_sticky_folder(folder: Path) -> Path:
    own(folder).parent.chmod(0o1777)
    return own(folder)


def new(folder: Path) -> Path:
    return own(folder) / "c" / "d"


@pytest.mark.parametrize("change", [own, through_a_link, through_links_that_climb, in_a_sticky_folder, new])
def test_a_folder_of_ones_own(shared: Path, change: Callable[[Path], Path]) -> None:
    own(shared).mkdir(parents=True)
    path = change(shared)
    before = os.umask(0)
    try:
        private_folder.make(path)
    finally:
        os.umask(before)
    private_folder.check(path)
    assert change is not new or {folder.stat().st_mode & 0o777 for folder in (path, path.parent)} == {0o700}
    cache = Cache(path)
    assert cache.put("key", container(1))
    assert content(cache, "key") == container(1)


def test_what_is_no_folder(shared: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        private_folder.check(shared / "missing")
    (shared / "file").write_bytes(b"")
    for path in (shared / "file", shared / "file" / "inside"):
        with pytest.raises(NotADirectoryError):
            private_folder.make(path)
    (shared / "dangling").symlink_to(shared / "nowhere")
    with pytest.raises(FileNotFoundError):
        private_folder.check(shared / "dangling")


def test_no_descriptor_stays_open(shared: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/dev/fd"))

    own(shared).mkdir(parents=True)
    in_a_circle(shared)
    before = opened()
    for path in (own(shared), shared / "link", shared / "missing"):
        try:
            private_folder.check(path)
        except (CacheError, OSError):
            continue
    assert opened() == before


# -- what is to be done ----------------------------------------------------------------------------------


def theirs(folder: Path) -> Path:
    return own(folder)


def below_a_folder_of_roots(folder: Path) -> Path:
    own(folder).chmod(0o755)
    (folder / "a").chmod(0o700)
    return own(folder)


def with_files_of_roots(folder: Path) -> Path:
    own(folder).chmod(0o755)
    return own(folder)


def read_by_all(folder: Path) -> Path:
    subprocess.run(["chmod", "-R", "a+rX", own(folder)], check=True)
    return own(folder)


def not_made(folder: Path) -> Path:
    return folder / "a" / "other"


@as_root
@pytest.mark.parametrize(
    ("change", "remedy", "reads"),
    [
        (theirs, "Only root can read {own}: as root, run chmod -R a+rX {own}; or name another", False),
        (below_a_folder_of_roots, "as root, run chmod a+x {shared}/a and chmod -R a+rX {own}", False),
        (with_files_of_roots, "Only root can read {own}/cache.db: as root, run chmod -R a+rX {own};", False),
        (read_by_all, "{own} is root's to write. What is in it is still read; to keep more, name another", True),
        (not_made, "{shared}/a is root's to write. To keep anything, name another folder", False),
    ],
)
def test_the_remedy_fits_who_may_do_what(
    shared: Path, change: Callable[[Path], Path], remedy: str, reads: bool
) -> None:
    own(shared).parent.mkdir(mode=0o755)
    with Cache(own(shared)) as cache:
        assert cache.put("key", container(1))
    path = change(shared)
    os.seteuid(THEM)
    try:
        with Cache(path) as cache, recorded() as caught:
            assert (content(cache, "key") == container(1)) == reads
            assert not cache.put("other", container(2))
    finally:
        os.seteuid(0)
    assert len(caught) == 1
    assert remedy.format(own=own(shared), shared=shared) in str(caught[0].message)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "Make room on its disk"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Make room on its disk"),
        (sqlite3.OperationalError("database or disk is full"), "Make room on its disk"),
        (OSError(errno.EROFS, "Read-only file system"), "The file system is read-only: name another folder"),
        (sqlite3.DatabaseError("file is not a database"), "Run structgen cache verify --repair"),
        (CacheError("other users can write it", remedy="Make it yours."), "Make it yours."),
        (sqlite3.OperationalError("database is locked"), "Name another folder with STRUCTGEN_CACHE_DIR."),
    ],
)
def test_the_remedy_fits_the_error(tmp_path: Path, error: Exception, remedy: str) -> None:
    assert cache_folder.remedy(tmp_path, error).startswith(remedy)
    outer = CacheError("the cache folder cannot be written")
    outer.__cause__ = error
    assert cache_folder.remedy(tmp_path, outer) == cache_folder.remedy(tmp_path, error)


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    with recorded() as caught:
        assert not cache.put("key", container(1))
    assert "A file is in its place or above it: name another folder" in str(caught[0].message)


HOMELESS = """
import os, pathlib, sys, warnings
import pwd
import structgen as sg, structgen.cache.store, structgen.doctor
from structgen.kernels import fallback
from structgen.system.folders import cache_root
kernel = pathlib.Path(sys.argv[1])  # those of the package may be root's to read
for name in ("HOME", "XDG_CACHE_HOME", "STRUCTGEN_CACHE_DIR"):
    os.environ.pop(name, None)
os.environ["NUMBA_DISABLE_JIT"] = "1"
os.setgid({them}); os.setuid({them})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    cache = sg.Cache()
    assert cache.directory == cache_root()
    assert not cache.put("key", b"value") and cache.get("key") is None and "key" not in cache
    assert cache.entries() == [] and cache.prune(0) == [] and cache.clear() == 0
    fallback._folder.cache_clear()
    assert fallback._folder(kernel) is None
assert len(caught) == 2 and all("has no home folder" in str(each.message) for each in caught), caught
found = list(structgen.doctor._cache(cache))
"""


@as_root
def test_a_user_without_a_home_has_a_warning_and_no_cache(shared: Path) -> None:
    """A container with a number of its own for the user, and nothing about it in passwd."""
    root = os.path.dirname(os.path.dirname(structgen.__file__))
    kernel = shared / "kernel.py"
    kernel.touch()
    command = [sys.executable, "-c", HOMELESS.format(them=54321), str(kernel)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True)
    assert "CacheError" in done.stderr.splitlines()[-1], done.stderr  # the doctor's, who says it
    assert "Set HOME, or name a folder with STRUCTGEN_CACHE_DIR" in done.stderr


# -- files of the cache ----------------------------------------------------------------------------------


def as_link(database: Path, secret: Path) -> None:
    database.symlink_to(secret)


def as_pipe(database: Path, secret: Path) -> None:
    os.mkfifo(database)


def as_device(database: Path, secret: Path) -> None:
    os.mknod(database, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero


def as_writable(database: Path, secret: Path) -> None:
    shutil.copy(secret, database)
    database.chmod(0o666)


def as_theirs(database: Path, secret: Path) -> None:
    shutil.copy(secret, database)
    os.chown(database, THEM, 0)


@pytest.mark.parametrize(
    "make",
    [as_link, as_pipe, as_writable, pytest.param(as_device, marks=as_root), pytest.param(as_theirs, marks=as_root)],
)
@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal"])
def test_a_database_is_a_regular_file_of_ones_own(
    tmp_path: Path, make: Callable[[Path, Path], None], name: str
) -> None:
    with Cache(tmp_path / "secret") as other:
        other.put("key", container(9))
    secret = tmp_path / "secret" / "cache.db"
    before = secret.read_bytes()
    folder = tmp_path / "cache"
    with Cache(folder) as cache:
        cache.put("key", container(1))
    (folder / name).unlink(missing_ok=True)
    make(folder / name, secret)
    cache = Cache(folder)
    with recorded() as caught:
        assert cache.get("key") is None
        assert not cache.put("key", container(2))
        cache.discard("key")
        assert "key" not in cache
    assert len(caught) == 1
    assert re.search("not a regular file|other users can write|belongs to another user", str(caught[0].message))
    with pytest.raises(CacheError):
        cache.prune(0)
    assert [problem.kind for problem in cache.verify()] == ["database"]
    assert secret.read_bytes() == before


@as_root
def test_a_value_file_of_another_user_is_a_miss(tmp_path: Path) -> None:
    """They could cut it short while it is mapped."""
    cache = Cache(tmp_path / "cache")
    cache.put("key", container(1, cache_folder.MAPPED_FROM))
    os.chown(file_of(cache.directory, "key"), THEM, 0)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert cache.get("key") is None


def test_the_time_of_use_is_set_on_what_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on what a link leads to that somebody put in its place."""
    cache = Cache(tmp_path / "cache")
    cache.put("key", container(1))
    path, secret = file_of(cache.directory, "key"), tmp_path / "secret"
    secret.write_bytes(b"")
    for each in (path, secret):
        os.utime(each, (1e9, 1e9))
    opened = cache_folder.open_value

    def swapped(path: str) -> tuple[int, os.stat_result]:
        found = opened(path)
        os.unlink(path)
        os.symlink(secret, path)
        return found

    monkeypatch.setattr(cache_folder, "open_value", swapped)
    assert content(cache, "key") == container(1)
    assert secret.stat().st_mtime == 1e9


# -- kernels ---------------------------------------------------------------------------------------------

MODULE = """
from structgen.kernels.fallback import _keep
from structgen.kernels.jit import kernel

@kernel
def twice(number):
    return number + number

_keep(twice)
"""

#: Says where Numba will look for compiled code, waits, and runs the kernel.
VICTIM_PROGRAM = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from doubling import twice
index = getattr(getattr(twice._cache, "_cache_file", None), "_index_path", "")
print(index, flush=True)
sys.stdin.readline()
assert twice(21) == 42
print([str(each.message) for each in caught])
"""

#: Modules are loaded before the rights are gone: the folder that they are in may be root's alone.
THEIR_PROGRAM = f"""
import os, pathlib, pickle, sys
os.setgid({THEM}); os.setuid({THEM})
index, theirs, marker = map(pathlib.Path, sys.argv[1:])

class Code:
    def __reduce__(self):
        return os.mkdir, (str(marker),)

for part in [*reversed(index.parents), index]:
    if part.is_relative_to(theirs) and part != theirs and part.parent.exists() and os.path.lexists(part):
        part.rename(part.with_name("away"))
        break
index.parent.mkdir(parents=True)
index.write_bytes(pickle.dumps(Code()))
"""


def attacked(shared: Path, theirs: Path, prepare: Callable[[], None], **environment: str) -> str:
    """Let them put their code where Numba will look for its own, once the victim has chosen a folder.

    The victim is this user. Returns what it says of its kernels, after a look that nothing of theirs ran.
    """
    (shared / "doubling.py").write_text(MODULE)
    (shared / "marks").mkdir()
    (shared / "marks").chmod(0o777)
    root = os.path.dirname(os.path.dirname(structgen.__file__))
    variables = {**os.environ, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM_PROGRAM, str(shared)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
    )  # fmt: skip
    assert victim.stdout is not None
    index = victim.stdout.readline().strip()
    prepare()
    if index and Path(index).is_relative_to(theirs):
        command = [sys.executable, "-c", THEIR_PROGRAM, index, str(theirs), str(shared / "marks" / "marker")]
        subprocess.run(command, check=True, timeout=60)
        assert Path(index).exists()
    out, errors = victim.communicate("\n", timeout=120)
    assert victim.returncode == 0, errors
    assert not list((shared / "marks").iterdir())
    return out


def nothing() -> None:
    """They need nothing more."""


def give_away(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    os.chown(folder, THEM, THEM)


@as_root
def test_whoever_owns_the_folder_above_the_kernels_runs_nothing(shared: Path) -> None:
    """They can rename the victim's folder away after any check of it, and put theirs in its place."""
    theirs = shared / "cache" / "kernels"
    give_away(theirs)
    out = attacked(shared, theirs, nothing, STRUCTGEN_CACHE_DIR=str(theirs.parent))
    assert f"{theirs} belongs to another user" in out


@as_root
def test_nobody_prepares_a_temporary_folder_for_kernels(shared: Path) -> None:
    (shared / "file").write_bytes(b"")
    theirs = shared / "tmp" / f"structgen-kernels-{os.getuid()}"
    give_away(theirs)
    theirs.parent.chmod(0o1777)
    out = attacked(shared, theirs, nothing, STRUCTGEN_CACHE_DIR=str(shared / "file"), TMPDIR=str(theirs.parent))
    assert "compiled kernels are not kept" in out
    assert not list(theirs.iterdir())


@as_root
def test_kernels_are_not_read_from_a_folder_that_was_deleted_and_made_anew_by_others(shared: Path) -> None:
    """In a sticky folder anybody can take a name that is free again."""
    shared.chmod(0o1777)
    cache = shared / "cache"
    attacked(shared, cache, lambda: shutil.rmtree(cache), STRUCTGEN_CACHE_DIR=str(cache))


@as_root
def test_a_folder_that_root_filled_serves_others(shared: Path) -> None:
    """As in a container image."""
    with Cache(shared / "cache") as cache:
        cache.put("key", b"value")
    for path in [shared / "cache", *(shared / "cache").iterdir()]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = f"""
import os, sys, sqlite3
from structgen.cache.cache import Cache
import structgen.system.private_folder
os.setgid({THEM}); os.setuid({THEM})
print(bytes(Cache(sys.argv[1]).get("key")))
"""
    command = [sys.executable, "-W", "error", "-c", program, str(shared / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "b'value'", done.stderr


def test_warnings_name_the_place_and_a_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Cache(folder).put("key", b"value")
    assert f"other users can write {folder}" in str(caught[0].message)
    assert "STRUCTGEN_CACHE_DIR" in str(caught[0].message)
