"""The compiled module: from Numba's IR and the C face, by the C compiler that PyPI ships (``ziglang``).

``python -m structgen.kernels.aot.build FILE [PLATFORM]`` writes it; with no platform, for this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..signatures import Signature, read
from ..sources import FOLDER, digest, kernel_files
from .face import PREFIX, face


class Platform(NamedTuple):
    """What the compiler calls a platform, the tag of its wheels, and the processors that kernels are compiled for."""

    target: str
    tag: str
    variants: tuple[str, ...]


_X86 = ("x86_64_v2", "x86_64_v3")
PLATFORMS = {
    "linux-x86_64": Platform("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", _X86),
    "linux-aarch64": Platform("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", ("generic",)),
    "macos-x86_64": Platform("x86_64-macos.11.0", "macosx_11_0_x86_64", _X86),
    "macos-arm64": Platform("aarch64-macos.11.0", "macosx_11_0_arm64", ("generic",)),
    "windows-x86_64": Platform("x86_64-windows-gnu", "win_amd64", _X86),
}

_OPTIONS = ("-O2", "-fPIC")

#: What a call of the oldest Python that the module runs in may use, as its headers want it.
_STABLE = "-DPy_LIMITED_API=0x030a0000"


def this_platform() -> str:
    """The name in `PLATFORMS` of the machine that builds, or that ``STRUCTGEN_PLATFORM`` asks for."""
    system, _, machine = sysconfig.get_platform().replace("win-amd64", "windows-x86_64").rpartition("-")
    system = "macos" if system.startswith("macosx") else system
    name = os.environ.get("STRUCTGEN_PLATFORM") or f"{system}-{machine}"
    if name not in PLATFORMS:
        raise SystemExit(f"structgen's kernels are not built for {name}, but for {', '.join(PLATFORMS)}")
    return name


def _compiler(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *map(str, arguments)], check=True)


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


def build(target: Path, platform: Platform) -> None:
    """Write the module of a platform to a file."""
    kernels = read()
    shares = _shares(kernels, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(shares)) as pool:
        folder = Path(name)
        environment = os.environ | {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic"}

        def compile_share(number: int) -> list[Path]:
            ir = folder / f"{number}.ll"
            names = [each.name for each in shares[number]]
            command = [sys.executable, "-m", "structgen.kernels.aot.ir", str(ir), *names]
            subprocess.run(command, check=True, env=environment)
            text = ir.read_text("utf-8")
            objects = []
            for variant in platform.variants:
                source = folder / f"{number}-{variant}.ll"
                source.write_text(text.replace(PREFIX, f"{PREFIX}{variant}_"), "utf-8")
                objects.append(source.with_suffix(".o"))
                _compiler("-target", platform.target, f"-mcpu={variant}", *_OPTIONS, "-w", "-c", source, "-o", objects[-1])
            return objects

        objects = [each for part in pool.map(compile_share, range(len(shares))) for each in part]
        source = folder / "face.c"
        source.write_text(face(kernels, _constants(), platform.variants, digest()), "utf-8")
        include = sysconfig.get_path("include")
        _compiler(
            "-target", platform.target, *_OPTIONS, "-Wall", _STABLE, f"-I{include}", "-s", "-shared", source, *objects, "-o", target
        )


if __name__ == "__main__":
    build(Path(sys.argv[1]), PLATFORMS[sys.argv[2] if len(sys.argv) > 2 else this_platform()])
