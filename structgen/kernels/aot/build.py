"""The compiled module: from Numba's IR and the C face, by the C compiler that PyPI ships (``ziglang``).

``python -m structgen.kernels.aot.build FILE`` writes it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..signatures import Signature, read
from ..sources import FOLDER, digest, kernel_files
from .face import PREFIX, face


class Platform(NamedTuple):
    """Where a module runs: what the compiler calls it, the tag of its wheels, the processors that there are kernels
    for, ascending, how the module's name ends, and the compiler's options.
    """

    target: str
    tag: str
    variants: tuple[str, ...]
    suffix: str = "abi3.so"
    options: tuple[str, ...] = ("-O2", "-fPIC")

    @property
    def is_stable(self) -> bool:
        """Whether the module runs in every Python from 3.10 on; without the GIL there is no such interface."""
        return self.suffix in ("abi3.so", "pyd")

    @staticmethod
    def wanted() -> Platform | None:
        """The platform that ``STRUCTGEN_PLATFORM`` names in `PLATFORMS`, or else this one; None where nothing can be
        compiled, since Numba has no wheel for this Python, or nobody wrote how.

        Raises `SystemExit` for an unknown name.
        """
        if name := os.environ.get("STRUCTGEN_PLATFORM"):
            if name not in PLATFORMS:
                raise SystemExit(f"structgen's kernels are not built for {name}, but for {', '.join(PLATFORMS)}")
            return PLATFORMS[name]
        system, _, machine = sysconfig.get_platform().replace("win-amd64", "windows-x86_64").rpartition("-")
        machine = platform.machine() if machine == "universal2" else machine  # of macOS, for both
        found = PLATFORMS.get(f"{system.partition('-')[0]}-{machine}")
        is_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        is_musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
        is_early = is_threaded and (sys.version_info < (3, 14) or os.name == "nt")
        if found is PLATFORMS["macosx-x86_64"] or is_musl or is_early:
            return None
        return found._replace(suffix=sysconfig.get_config_var("EXT_SUFFIX")[1:]) if found and is_threaded else found


_MACOS = ("-O2", "-fPIC", "-Wl,-undefined,dynamic_lookup")
_X86 = ("x86_64_v2", "x86_64_v3")
PLATFORMS = {
    "linux-x86_64": Platform("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", _X86),
    "linux-aarch64": Platform("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", ("generic",)),
    "musllinux-x86_64": Platform("x86_64-linux-musl", "musllinux_1_2_x86_64", _X86),
    "musllinux-aarch64": Platform("aarch64-linux-musl", "musllinux_1_2_aarch64", ("generic",)),
    "macosx-x86_64": Platform("x86_64-macos.11.0", "macosx_11_0_x86_64", _X86, options=_MACOS),
    "macosx-arm64": Platform("aarch64-macos.11.0", "macosx_11_0_arm64", ("generic",), options=_MACOS),
    "windows-x86_64": Platform("x86_64-windows-gnu", "win_amd64", _X86, "pyd", ("-O2",)),
}

#: What a call of the oldest Python that the module runs in may use, as its headers want it.
_STABLE = "-DPy_LIMITED_API=0x030a0000"


def _run(*command: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", *map(str, command)], check=True)


def _without_posix(folder: Path) -> tuple[str, ...]:
    """Have the headers of this machine's Python do without what Windows has not; the face uses none of it."""
    (folder / "sys").mkdir()
    (folder / "sys" / "select.h").touch()
    return (f"-I{folder}",)


def _python_of_windows(text: str, folder: Path) -> Path:
    """A library that says which of the names in a text are Python's, since Windows links no name that nobody has."""
    macros = {"_Py_Dealloc", "_Py_NoneStruct", "PyType_GetFlags", "PyType_IsSubtype"}
    names = {*macros, *re.findall(r"\bPy[A-Z]?\w+(?=\W)", text)}
    data = {name for name in names if name.startswith("PyExc_")} | {"_Py_NoneStruct"}
    lines = [f"    {name} DATA" if name in data else f"    {name}" for name in sorted(names)]
    listed, made = folder / "python3.def", folder / "libpython3.a"
    listed.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *lines, ""]), "utf-8")
    _run("dlltool", "-m", "i386:x86-64", "-d", listed, "-l", made)
    return made


def _shares(kernels: list[Signature], many: int) -> list[list[Signature]]:
    """The kernels in parts that take about as long to translate: files with larger kernels are dealt out first."""
    by_file: dict[str, list[Signature]] = {}
    for each in kernels:
        by_file.setdefault(each.module.partition(".")[0], []).append(each)
    shares: list[list[Signature]] = [[] for _ in range(many)]
    for part in sorted(by_file.values(), key=len, reverse=True):
        min(shares, key=len).extend(part)
    return [each for each in shares if each]


def _constants() -> dict[str, int]:
    """The public numbers of the kernels' files, which their callers use."""
    found: dict[str, int] = {}
    for file in kernel_files():
        module = import_module("structgen.kernels." + ".".join(file.relative_to(FOLDER).with_suffix("").parts))
        found.update({name: each for name, each in vars(module).items() if name.isupper() and isinstance(each, int)})
    return {name: each for name, each in found.items() if not name.startswith("_")}


def build(target: Path, where: Platform) -> None:
    """Write the module of a platform to a file, unless there is one of the same sources."""
    if target.exists() and _mark(where) in target.read_bytes():
        return
    print(f"compiling structgen's kernels for {where.target}, which takes a minute", file=sys.stderr, flush=True)
    kernels = read()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        folder = Path(name)
        compiling = [
            pool.submit(_compile, ir, variant, folder, where)
            for ir in _translated(kernels)
            for variant in where.variants
        ]
        objects = [each.result() for each in compiling]
        source = folder / "face.c"
        text = face(kernels, _constants(), where.variants, digest())
        source.write_text(f'{text}\nconst char structgen_mark[] = "{_mark(where).decode()}";\n', "utf-8")
        include = sysconfig.get_path("include")
        # Debian's and Ubuntu's own Python includes <x86_64-linux-gnu/python3.x/pyconfig.h>, which lies beside.
        headers: tuple[str, ...] = f"-I{include}", f"-idirafter{Path(include).parent}"
        if where.is_stable:
            headers = (_STABLE, *headers)
        made = folder / target.name
        linked: list[str | Path] = ["-s", "-shared", source, *objects, "-o", made]
        if where.suffix == "pyd":
            headers = (*headers, *_without_posix(folder))
            linked.append(_python_of_windows(text, folder))
        _run("cc", "-target", where.target, *where.options, "-Wall", *headers, *linked)
        new = target.with_suffix(".new")
        shutil.copy(made, new)
        new.replace(target)  # a process may have the one before open


def _mark(where: Platform) -> bytes:
    """What stands in a module of these sources for a platform."""
    return f"structgen {digest()} for {where.target}".encode()


def _translated(kernels: list[Signature]) -> list[Path]:
    """Files with the IR of all kernels, which is for all platforms: translated once for these sources."""
    kept = Path(FOLDER).parents[1] / "build" / f"kernels-{digest()}"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=kept.parent))
        shares = _shares(kernels, os.cpu_count() or 1)
        with ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(partial(_translate, folder=folder), shares))
        folder.rename(kept)
    return sorted(kept.iterdir())


def _translate(share: list[Signature], folder: Path) -> None:
    """Write the IR of some kernels into a folder, in a process of its own."""
    path = os.pathsep.join(sys.path)  # of a build's own environment, too
    environment = os.environ | {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "PYTHONPATH": path}
    command = [sys.executable, "-m", "structgen.kernels.aot.ir", str(folder / f"{share[0].name}.ll")]
    subprocess.run([*command, *(each.name for each in share)], check=True, env=environment)


def _compile(ir: Path, variant: str, folder: Path, where: Platform) -> Path:
    """Compile some kernels for one processor. Returns the object."""
    source = folder / f"{ir.stem}.{variant}.ll"
    source.write_text(ir.read_text("utf-8").replace(PREFIX, f"{PREFIX}{variant}_"), "utf-8")
    made = source.with_suffix(".o")
    _run("cc", "-target", where.target, f"-mcpu={variant}", *where.options, "-w", "-c", source, "-o", made)
    return made


if __name__ == "__main__":
    here = Platform.wanted()
    build(Path(sys.argv[1]), here) if here else sys.exit("Numba has no wheel for this Python")
