"""What pyproject.toml can't say: the kernels are compiled when structgen is built (see structgen/kernels/aot)."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent.resolve()


class BuildKernels(build_ext):
    """Compiles the kernels in a process of their own, which imports them from this checkout."""

    def build_extension(self, extension: Extension) -> None:
        """Write the module, unless there is one of the same sources."""
        target = Path(self.get_ext_fullpath(extension.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        print(f"compiling structgen's kernels into {target.name}, which takes a minute", file=sys.stderr, flush=True)
        path = os.pathsep.join([str(ROOT), *sys.path])
        command = [sys.executable, "-m", "structgen.kernels.aot.build", str(target)]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": path}, cwd=ROOT)


setup(
    ext_modules=[Extension("structgen._kernels", [], py_limited_api=True)],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
