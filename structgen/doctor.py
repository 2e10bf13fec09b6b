"""`examine`: what on this machine would be slow, or refused, before a server finds out.

Nothing is compiled, and nothing stays that was written to find out. A store is asked for names that nobody has,
and a small object is written there and deleted.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from . import kernels
from .cache.cache import Cache
from .errors import StoreError, StructgenError
from .system import private_folder

State = Literal["fine", "slow", "refused", "absent"]

#: Bytes of memory, and of room in a folder, below which work is slow or fails.
_LEAST_MEMORY, _LEAST_ROOM = 2 << 30, 1 << 30

#: Seconds of a store's round trip from which looking up takes longer than many a compile.
_LONGEST_TRIP = 0.2

#: Seconds between this machine's clock and a store's; S3 refuses requests from 15 minutes on.
_MOST_SKEW = 60.0

#: Below a store's prefix: what is asked for, and is not there, and a mark that is written and deleted.
_STORE_FOLDER = "structgen-doctor"

#: File systems on which SQLite's locks and maps work slowly, or not at all.
_REMOTE_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "fuse.s3fs", "lustre", "ceph"}


@dataclass(frozen=True)
class Diagnosis:
    """What was found of one thing.

    Parameters
    ----------
    subject:
        A word or two, such as ``"cache folder"``.
    state:
        ``"fine"``; ``"slow"``: it works, and takes longer than it has to; ``"refused"``: it does not work;
        ``"absent"``: it is not there, which is well unless it is wanted.
    says:
        A sentence without a full stop.
    remedy:
        What can be done; empty where nothing needs to be.
    """

    subject: str
    state: State
    says: str
    remedy: str = ""


def examine(cache: Cache | None) -> Iterator[Diagnosis]:
    """Look at this machine, and at a cache and its store, where there is one.

    What goes wrong in an examination is a finding; nothing is raised but interrupts.
    """
    examinations: list[tuple[str, Callable[[], Iterator[Diagnosis]]]] = [
        ("processor", _processor), ("memory", _memory), ("kernels", _kernels), ("device", _device),
        ("packages", _packages),
    ]  # fmt: skip
    if cache is not None:
        examinations.append(("cache", partial(_cache, cache)))
    if cache is not None and cache.remote is not None:
        examinations.append(("store", partial(_store, cache)))
    for subject, look in examinations:
        try:
            yield from look()
        except StructgenError as error:
            yield Diagnosis(subject, "refused", error.what, error.remedy)
        except Exception as error:  # of a library, or of the system
            yield Diagnosis(subject, "refused", f"{type(error).__name__}: {error}")


def _processor() -> Iterator[Diagnosis]:
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    if cores > 1:
        yield Diagnosis("processor", "fine", f"{cores} cores")
    else:
        yield Diagnosis("processor", "slow", "one core: compiles and steps take turns", "Compile ahead of time.")


def _memory() -> Iterator[Diagnosis]:
    amounts = [*_available(Path("/proc/meminfo")), *_left_to_group(Path("/sys/fs/cgroup"))]
    if not amounts:
        yield Diagnosis("memory", "absent", "this system does not say how much memory there is")
        return
    least = min(amounts)
    says = f"{least / 1e9:.1f} GB are available"
    if least >= _LEAST_MEMORY:
        yield Diagnosis("memory", "fine", says)
    else:
        yield Diagnosis("memory", "slow", says, "Compile elsewhere, or with a Budget whose memory is smaller.")


def _available(meminfo: Path) -> Iterator[int]:
    """Bytes that Linux could give."""
    if meminfo.is_file():
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
        if found:
            yield int(found[1]) << 10


def _left_to_group(group: Path) -> Iterator[int]:
    """Bytes that a container may still take."""
    limit, used = group / "memory.max", group / "memory.current"
    if limit.is_file() and used.is_file() and (most := limit.read_text().strip()).isdigit():
        yield max(0, int(most) - int(used.read_text()))


def _kernels() -> Iterator[Diagnosis]:
    if kernels.PROCESSOR == "jit":
        yield Diagnosis("kernels", "slow", "Numba compiles them, seconds each, when needed", "Run make kernels.")
    else:
        yield Diagnosis("kernels", "fine", f"compiled for {kernels.PROCESSOR}")


def _cache(cache: Cache) -> Iterator[Diagnosis]:
    if cache.is_read_only or cache.directory.is_file():
        problems, count = cache.verify(), len(cache)
        if problems:
            yield Diagnosis("cache", "refused", f"{len(problems)} of {count} values of the bundle are damaged",
                            "Write it again: structgen bundle.")  # fmt: skip
        else:
            yield Diagnosis("cache", "fine", f"a bundle of {count} entries")
        return
    yield from _folder("cache", cache.directory, "Nothing is found, nor kept, from one process to the next.")


def _folder(subject: str, folder: Path, harm: str) -> Iterator[Diagnosis]:
    """A folder that only this user may write: whether it can be used, on which file system, with how much room."""
    private_folder.check_home(folder)
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    private_folder.check(existing)
    if not os.access(existing, os.W_OK | os.X_OK):
        what = f"{folder} cannot be written. {harm.rstrip('.')}"
        yield Diagnosis(subject, "slow", what, "Give it to this user, or name another one with STRUCTGEN_CACHE_DIR.")
        return
    system, room = _file_system(existing), shutil.disk_usage(existing).free
    says = f"{folder}, on {system or 'an unknown file system'}, {room / 1e9:.1f} GB free"
    if system in _REMOTE_FILE_SYSTEMS:
        yield Diagnosis(subject, "slow", says, "Use a folder of this machine's, and an object store behind it.")
    elif room < _LEAST_ROOM:
        yield Diagnosis(subject, "slow", says, "Make room, or give the cache a smaller size_limit.")
    else:
        yield Diagnosis(subject, "fine", says if existing == folder else f"{says}; it is not there yet")


def _file_system(folder: Path) -> str:
    """What kind a folder is on; empty where this system does not tell."""
    mounts = Path("/proc/self/mounts")
    if not mounts.is_file():
        return ""
    real, best = os.path.realpath(folder), ("", "")
    for line in mounts.read_text(errors="replace").splitlines():
        _, where, kind, *_ = line.split(" ")
        where = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), where)
        if (real == where or real.startswith(where.rstrip("/") + "/")) and len(where) >= len(best[0]):
            best = where, kind
    return best[1]


def _device() -> Iterator[Diagnosis]:
    if find_spec("torch") is None:
        yield Diagnosis("device", "absent", "torch is not installed: masks are for NumPy", "pip install torch")
        return
    import torch

    if torch.cuda.is_available():
        names = sorted({torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())})
        triton = "" if find_spec("triton") else ", without Triton"
        state: State = "slow" if triton else "fine"
        yield Diagnosis("device", state, f"torch {torch.__version__} on {', '.join(names)}{triton}",
                        "pip install triton" if triton else "")  # fmt: skip
    else:
        yield Diagnosis("device", "fine", f"torch {torch.__version__} on the processor")


def _packages() -> Iterator[Diagnosis]:
    """What the package's extras want, by whether it is here and of a version that structgen was tested with."""
    try:
        wanted = [each for each in requires("structgen") or () if "extra ==" in each]
    except PackageNotFoundError:
        yield Diagnosis("packages", "absent", "structgen is not installed as a package, so its extras are not known")
        return
    missing: dict[str, list[str]] = {}
    for requirement in wanted:
        needed, _, marker = requirement.partition(";")
        extra = re.findall(r"extra == ['\"]([\w-]+)['\"]", marker)[0]
        name = re.split(r"[\s\[<>=!~(]", needed)[0]
        if extra in ("test", "bench"):
            continue
        try:
            found = version(name)
        except PackageNotFoundError:
            missing.setdefault(extra, []).append(name)
            continue
        if not _is_within(found, needed):
            wants = needed.strip().removeprefix(name)
            yield Diagnosis(f"extra {extra}", "refused", f"{name} is {found}, the extra is for {wants}",
                            f"pip install 'structgen[{extra}]'")  # fmt: skip
    for extra, names in sorted(missing.items()):
        says = f"{', '.join(names)} not installed"
        yield Diagnosis(f"extra {extra}", "absent", says, f"pip install 'structgen[{extra}]'")


def _is_within(found: str, requirement: str) -> bool:
    """Whether a version is within the bounds of a requirement, by their numbers."""
    here = _numbers(re.split(r"[a-z+]", found)[0])
    bounds = [(sign, _numbers(bound)) for sign, bound in re.findall(r"(>=|<)\s*([\d.]+)", requirement)]
    return all(here >= bound if sign == ">=" else here < bound for sign, bound in bounds)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _store(cache: Cache) -> Iterator[Diagnosis]:
    """The round trip, what the credentials allow, and how far the clocks are apart."""
    remote = cache.remote
    assert remote is not None
    trips = []
    for number in range(4):
        began = time.perf_counter()
        try:
            remote.ask(partial(remote.bucket.get, f"{_STORE_FOLDER}/{number}", 1))
        except StoreError as error:
            yield Diagnosis("store", "refused", f"it cannot be read: {error.what}", error.remedy)
            return
        trips.append(time.perf_counter() - began)
    trip = statistics.median(trips[1:])  # the first one opens the connection
    says = f"an answer takes {1e3 * trip:.1f} ms, the first one {1e3 * trips[0]:.0f} ms"
    if trip < _LONGEST_TRIP:
        yield Diagnosis("store", "fine", says)
    else:
        yield Diagnosis("store", "slow", says, "Use one that is nearer, or prefetch, or carry a bundle.")
    mark = f"{_STORE_FOLDER}/{os.urandom(8).hex()}"
    try:
        remote.ask(partial(remote.bucket.create, mark, b"-"))
    except StoreError as error:
        what = f"it is not written: {error.what}"
        yield Diagnosis("store's credentials", "absent", what, "Servers need no more; builders do.")
        return
    try:
        listed = remote.ask(lambda: list(remote.bucket.listing(_STORE_FOLDER)))
        skew = next((time.time() - each.modified for each in listed if each.name == mark), 0.0)
    finally:
        remote.ask(partial(remote.bucket.delete, mark))
    yield Diagnosis("store's credentials", "fine", "they read, write, list and delete")
    apart = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} this machine's"
    if abs(skew) > _MOST_SKEW:
        yield Diagnosis("store's clock", "slow", f"it is {apart}", "Set the clocks: signed requests are refused.")
    else:
        yield Diagnosis("store's clock", "fine", f"it is {apart}")


def platform() -> Diagnosis:
    """Which structgen, Python and system this is."""
    from . import __version__

    says = f"structgen {__version__}, Python {sys.version.split()[0]}, {sys.platform}"
    return Diagnosis("platform", "fine", says)
