"""What pyproject.toml can't say: the kernels are compiled when structgen is built (see structgen/kernels/aot)."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent.resolve()))

from structgen.kernels.aot.build import Platform, build

platform = Platform.wanted()


class BuildKernels(build_ext):
    """Compiles the kernels for a platform, which need not be this one."""

    def build_extension(self, extension: Extension) -> None:
        """Write the module."""
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        build(target.resolve(), platform)

    def get_ext_filename(self, fullname: str) -> str:
        """Its path below the package's root."""
        return f"{fullname.replace('.', '/')}.{platform.suffix}"


if platform is None:
    print("structgen's kernels can't be compiled on this platform: its wheel has none", file=sys.stderr)
    setup()
else:
    stable = {"py_limited_api": "cp310"} if platform.is_stable else {}
    setup(
        # Numba translates the kernels; the C compiler of ziglang, whose LLVM reads that of llvmlite, compiles them.
        setup_requires=["numba==0.68.*", "ziglang==0.17.*"],
        ext_modules=[Extension("structgen._kernels", [], py_limited_api=platform.is_stable)],
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": {"plat_name": platform.tag, **stable}},
    )
