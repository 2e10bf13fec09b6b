"""The import graph: arrows point one way, and `import structgen` stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "structgen"

#: Values and tools that everything may use. `runtime.container` is the file format.
SHARED = (
    "__version__",
    "_jit",
    "budget",
    "definitions",
    "errors",
    "folders",
    "garbage",
    "grammar_marks",
    "grammar_text",
    "grammars",
    "json_text",
    "kernels",
    "locks",
    "memo",
    "private_folder",
    "progress",
    "properties",
    "runtime.arguments",
    "runtime.columns",
    "runtime.container",
    "schemas",
    "vocabulary",
)

#: Which parts of the package each part may import, besides itself and the shared ones. Function-level imports
#: and those under `if TYPE_CHECKING` count too.
MAY_IMPORT = {
    "cli": {"loading", "api", "index_store", "cache", "runtime"},
    "integrations": {"api", "index_store", "cache", "runtime"},
    "loading": set(),
    "api": {"building", "index_store", "compiler", "runtime", "cache"},
    "building": {"compiler", "runtime", "cache", "grammar_store"},
    "index_store": {"runtime", "cache"},
    "grammar_store": {"runtime", "cache"},
    "compiler": {"runtime"},  # it fills the tables that the runtime reads
    "runtime": set(),
    "cache": set(),
    "shared": set(),
}

#: Which third-party packages each part may import.
THIRD_PARTY = {
    "cli": {"typer", "rich"},
    # each module its own engine, when it is used
    "integrations": {
        "numpy", "torch", "transformers", "tokenizers", "llama_cpp", "mlx", "outlines", "vllm", "sglang",
        "tensorrt_llm", "fastapi", "typer",
    },
    "loading": {"tomli", "tomllib"},  # tomllib is standard from Python 3.11 on
    "api": set(),
    "building": {"numpy"},
    "index_store": set(),
    "grammar_store": set(),
    "compiler": {"numpy", "interegular", "lark"},
    "runtime": {"numpy", "torch", "transformers", "triton"},
    "cache": {"diskcache"},
    "shared": {
        "numpy",
        "numba",
        "platformdirs",
        "pydantic",  # the source of schemas that are types
        "lark",  # the source of indentations
        # the sources of vocabularies
        "transformers",
        "tokenizers",
        "sentencepiece",
        "tiktoken",
        "mistral_common",
    },
}

#: Heavy packages that `import structgen` must leave alone.
LOADED_LATER = ("numba", "torch", "transformers", "lark", "diskcache", "interegular", "typer", "rich", "pydantic")


class Import(NamedTuple):
    """One imported name, as a dotted path from the top: ``structgen.errors`` or ``numpy.typing``."""

    module: str
    target: str
    line: int


def modules() -> dict[str, Path]:
    """Dotted names below ``structgen`` and their files, less the package's own ``__init__``, the façade."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = path
    return found


def imports(module: str, path: Path) -> Iterator[Import]:
    """Every import statement of a file, wherever it stands."""
    package = ["structgen", *module.split(".")]
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module or "").split(".")] if node.module else base
            for alias in node.names:
                yield Import(module, ".".join([*base, alias.name]), node.lineno)


def part(name: str) -> str:
    """The part of the package that a module, or a name in a module, belongs to."""
    if any(name == shared or name.startswith(f"{shared}.") for shared in SHARED):
        return "shared"
    return name.split(".")[0]


MODULES = modules()
IMPORTS = [found for name, path in MODULES.items() for found in imports(name, path)]
INTERNAL = [found for found in IMPORTS if found.target.startswith("structgen.")]
EXTERNAL = [found for found in IMPORTS if found.target.split(".")[0] not in ("structgen", *sys.stdlib_module_names)]


def test_the_walk_sees_the_package() -> None:
    assert {"errors", "runtime.guide", "cli.app"} <= set(MODULES)
    edges = {(found.module, found.target) for found in IMPORTS}
    assert ("runtime.guide", "structgen.errors.BitmaskError") in edges
    assert ("cli.warm", "structgen.api.compile") in edges  # inside a function
    assert {part(name) for name in MODULES} <= set(MAY_IMPORT)


def test_arrows_point_one_way() -> None:
    wrong = [
        f"{module} imports {target} (line {line})"
        for module, target, line in INTERNAL
        for source, sink in [(part(module), part(target.removeprefix("structgen.")))]
        if sink not in {source, "shared", *MAY_IMPORT[source]}
    ]
    assert wrong == []


def test_parts_form_no_circle() -> None:
    settled: set[str] = {"shared"}
    while ready := {name for name, below in MAY_IMPORT.items() if below <= settled} - settled:
        settled |= ready
    assert settled == set(MAY_IMPORT)


def test_third_party_packages_stay_in_their_part() -> None:
    wrong = [
        f"{module} imports {target} (line {line})"
        for module, target, line in EXTERNAL
        if target.split(".")[0] not in THIRD_PARTY[part(module)]
    ]
    assert wrong == []


def test_import_is_cheap() -> None:
    script = (
        "import sys, structgen; structgen.Regex, structgen.JsonSchema({}), structgen.Budget, structgen.Error;"
        f"print([name for name in {LOADED_LATER!r} if name in sys.modules])"
    )
    assert python(script) == "[]"


@pytest.mark.parametrize(
    "module", ["structgen.runtime.guide.guide", "structgen.runtime.index.index", "structgen.vocabulary"]
)
def test_serving_modules_import_no_compiler(module: str) -> None:
    script = (
        f"import sys, {module};"
        "print([n for n in sys.modules if n.startswith('structgen.compiler')"
        " or n in ('numba', 'torch', 'transformers', 'lark', 'diskcache', 'interegular')])"
    )
    assert python(script) == "[]"


@pytest.mark.parametrize("module", ["api", "integrations.matcher", "integrations.requests", "runtime.distances"])
def test_what_may_compile_loads_numba_when_it_does(module: str) -> None:
    assert python(f"import sys, structgen.{module}; print('numba' in sys.modules)") == "False"


@pytest.mark.parametrize("engine", ["llama_cpp", "mlx_lm", "onnxruntime_genai", "outlines"])
def test_integrations_load_their_engine_later(engine: str) -> None:
    script = (
        f"import sys, structgen.integrations.{engine};"
        f"print([n for n in sys.modules if n in ('torch', 'transformers', 'mlx', '{engine}')])"
    )
    assert python(script) == "[]"


def test_help_loads_neither_torch_nor_numba() -> None:
    script = (
        "import sys; sys.argv = ['structgen', 'warm', '--help']\n"
        "from structgen.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('numba', 'torch', 'transformers', 'diskcache', 'numpy')\n"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    assert python(script).endswith("loaded: []")


def python(script: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()
