"""What a test may be skipped for: reasons, and where each may be given."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

#: Data of real models and of benchmarks; it lies beside the repository, not in it.
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def _absent(*packages: str) -> bool:
    return any(find_spec(package) is None for package in packages)


_NOT_POSIX, _NOT_LINUX = os.name != "posix", sys.platform != "linux"
_NOT_ROOT = not hasattr(os, "geteuid") or os.geteuid() != 0

#: Reasons, as patterns of the whole text, by whether this machine is one on which they hold.
EXCUSES: dict[str, bool] = {
    # What the machine lacks.
    r"the payload calls posix\.mkdir|needs links and pipes|needs POSIX (pipes|permissions|signals)": _NOT_POSIX,
    r"needs resource limits|needs fork.*|processes are forked|there is no fork here": _NOT_POSIX,
    r"owners and modes are POSIX's|other users' (folders|files) are a matter of POSIX permissions": _NOT_POSIX,
    r"only root can .*": _NOT_LINUX or _NOT_ROOT,
    r"root reads every folder": not _NOT_ROOT,
    r"needs setpriv": not shutil.which("setpriv"),
    r"nobody can't run this Python: .*": True,  # in a folder of root's, where name spaces are forbidden
    r"no small disk here: .*": True,  # a container may forbid mounts to root, too
    r"Linux tells what a process holds at its peak|the peak of memory is told by Linux"
    r"|no peak of a part of a process's time": not Path("/proc/self/clear_refs").exists(),
    r"needs Graphviz's dot": not shutil.which("dot"),
    r"needs node": not shutil.which("node"),
    r"the end of Python 3\.12 begins no threads": sys.version_info[:2] == (3, 12),
    r"needs Azurite": not shutil.which("azurite-blob"),
    r"node does not find jsonc-parser": True,
    r"STRUCTGEN_TOKENIZERS names no folders with tokenizers": not os.environ.get("STRUCTGEN_TOKENIZERS"),
    r"STRUCTGEN_FILES names no folders with files of others": not os.environ.get("STRUCTGEN_FILES"),
    r"needs Go 1\.27 or later": True,
    r"needs javac 25 or later": True,
    r"tomllib comes with Python 3\.11": sys.version_info < (3, 11),
    r"no browser is installed here": not shutil.which("chromedriver"),
    r"C is preprocessed by gcc": not shutil.which("gcc"),
    r"gcc preprocesses glibc's headers here": not shutil.which("gcc") or not Path("/usr/include/features.h").exists(),
    r"SQLite can be told the largest value from Python 3\.11 on": sys.version_info < (3, 11),
    r"without the GIL a dictionary's lock can be handed .*": not getattr(sys, "_is_gil_enabled", lambda: True)(),
    r"needs nm, of GNU's binutils": not shutil.which("nm"),
    # What nobody has built here.
    r"the kernels (were not built|have changed since they were built): make kernels": True,
    r"there is no wheel for this platform.*|the sources of kernels need Numba": True,
    r"the packages that the wheel asks for can't be downloaded|packages can't be installed: .*": True,
    # What is not beside the repository.
    r"the tokenizer \w+ is not (in .*|there)|MaskBench is not there|\S+ is not in shared/data/.*": not DATA.is_dir(),
    # What is not installed, and what another version lacks.
    r"the tokenizers package is not installed|the judge of tokenizer\.json": _absent("tokenizers"),
    r"instances are encoded by the tokenizer itself": _absent("tokenizers"),
    r"the tekken vocabulary comes with mistral-common.*": _absent("mistral_common"),
    r"moto's server is not installed": _absent("moto"),
    r"the judge is not installed: .*": _absent("jsonschema"),
    r"Triton is not installed": _absent("triton"),
    r"the layout's other implementation is not installed": _absent("llguidance", "xgrammar"),
    r"< 5\.10|transformers < 5\.10|the loop is for transformers 5": True,
    r"this version of (transformers|mistral-common) .*": True,
    r"hypothesis-jsonschema uses an internal of Hypothesis that 6\.167\.1 took away": True,
    # Engines, of which nobody has all.
    r"the model is made by .*|the models are written by .*|Outlines' models of transformers need torch, .*": True,
    r"pip install 'transformers\[serving\]' httpx|structgen is not installed beside vLLM: .*": True,
    r"(vLLM|Outlines|mlx(-lm)?|llama-cpp-python|onnxruntime\S*|llama-cpp-python, or gguf,) is not installed": True,
}

_IMPORT = re.compile(r"could not import '([^']+)'")


def is_excused(reason: str) -> bool:
    """Whether a test may be skipped here for a reason."""
    reason = reason.removeprefix("Skipped: ")
    missing = _IMPORT.match(reason)
    if missing:
        return _absent(missing[1].partition(".")[0])
    return any(holds and re.fullmatch(excuse, reason, re.DOTALL) for excuse, holds in EXCUSES.items())
