"""The import graph: arrows point one way, and `import structgen` stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from house.import_graph import EVERYWHERE, IMPORTS, INTERNAL, MODULES, ROOMS, room

#: Which third-party packages each room may import; rooms in a room share its entry.
THIRD_PARTY = {
    "system": {"numpy", "platformdirs"},
    "storage": {"numpy"},
    "kernels": {"numpy", "numba", "llvmlite"},
    # the latter where an object store, keys, and instruments are asked for
    "cache": {"diskcache", "obstore", "cryptography", "opentelemetry"},
    "vocabulary": {
        "huggingface_hub", "mistral_common", "numpy", "sentencepiece", "tiktoken", "tokenizers", "transformers",
    },
    "definitions": {"numpy", "pydantic", "pydantic_core", "lark", "tomli", "tomllib"},
    "runtime": {"mlx", "numpy", "rich", "torch", "transformers", "triton"},  # Rich for pictures in a terminal
    "compiler": {"numpy", "interegular", "lark"},
    "building": {"numpy"},
    "pages": {"jinja2", "markupsafe"},  # the latter comes with the former
    "traces": {"numpy", "rich"},
    "correction": {"rich", "typing_extensions"},  # the latter for the type checker alone
    "explanations": {"rich"},
    "certificates": {"numpy", "rich"},
    "doctor": {"torch"},
    "cli": {"typer", "rich", "distributed"},  # the latter for a cluster that is named
    # each module its own engine, when it is used
    "integrations": {
        "numpy", "torch", "transformers", "tokenizers", "llama_cpp", "mlx", "outlines", "vllm", "sglang",
        "tensorrt_llm", "fastapi", "typer", "tomli", "tomllib",
    },
}  # fmt: skip

#: Heavy packages that `import structgen` must leave alone.
LOADED_LATER = (
    "numba",
    "torch",
    "transformers",
    "lark",
    "diskcache",
    "interegular",
    "typer",
    "rich",
    "pydantic",
    "jinja2",
    "obstore",
    "cryptography",
)

EXTERNAL = [found for found in IMPORTS if found.target.split(".")[0] not in ("structgen", *sys.stdlib_module_names)]


def test_the_walk_sees_the_package() -> None:
    assert {"errors", "runtime.guide.guide", "cli.app"} <= set(MODULES)
    edges = {(found.module, found.target) for found in IMPORTS}
    assert ("runtime.guide.guide", "structgen.errors.BitmaskError") in edges
    assert ("warming.worker", "structgen.api.compile") in edges  # inside a function
    assert {room(name) for name in MODULES} <= ROOMS.keys() | EVERYWHERE


def test_rooms_import_what_lies_below_them() -> None:
    wrong = [
        f"{found.module} imports {target} (line {found.line})"
        for found, target in INTERNAL
        if room(target) not in {room(found.module), *ROOMS.get(room(found.module), "").split(), *EVERYWHERE}
    ]
    assert wrong == []


def test_no_room_may_import_more_than_it_does() -> None:
    used = {(room(found.module), room(target)) for found, target in INTERNAL}
    assert {(above, below) for above, rooms in ROOMS.items() for below in rooms.split()} - used == set()


def test_rooms_form_no_circle() -> None:
    order = list(ROOMS)
    assert [
        (above, below)
        for above, rooms in ROOMS.items()
        for below in rooms.split()
        if order.index(below) >= order.index(above)
    ] == []


def test_modules_form_no_circle() -> None:
    below: dict[str, set[str]] = {name: set() for name in MODULES}
    for found, target in INTERNAL:
        module = next((each for each in (target, target.rpartition(".")[0]) if each in MODULES), None)
        if module is not None and module != found.module and MODULES[module].name != "__init__.py":
            below[found.module].add(module)
    while free := {name for name, others in below.items() if not others}:
        below = {name: others - free for name, others in below.items() if name not in free}
    assert below == {}


def test_each_class_name_means_one_thing() -> None:
    names = Counter(
        node.name
        for name, path in MODULES.items()
        if not name.startswith("integrations.")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_third_party_packages_stay_in_their_room() -> None:
    wrong = [
        f"{module} imports {target} (line {line})"
        for module, target, line in EXTERNAL
        if target.split(".")[0] not in THIRD_PARTY.get(module.split(".")[0], set())
    ]
    assert wrong == []


def test_import_is_cheap() -> None:
    script = (
        "import sys, structgen; structgen.Regex, structgen.JsonSchema({}), structgen.Budget, structgen.Error;"
        f"print([name for name in {LOADED_LATER!r} if name in sys.modules])"
    )
    assert python(script) == "[]"


@pytest.mark.parametrize("module", ["runtime.guide.guide", "runtime.index.index", "vocabulary"])
def test_serving_modules_import_no_compiler(module: str) -> None:
    script = (
        f"import sys, structgen.{module};"
        "print([n for n in sys.modules if n.startswith('structgen.compiler')"
        " or n in ('numba', 'torch', 'transformers', 'lark', 'diskcache', 'interegular')])"
    )
    assert python(script) == "[]"


@pytest.mark.parametrize(
    "module", ["api", "integrations.matcher", "integrations.requests", "runtime.index.token_budget"]
)
def test_what_may_compile_loads_numba_when_it_does(module: str) -> None:
    assert python(f"import sys, structgen.{module}; print('numba' in sys.modules)") == "False"


#: What a definition in the cache needs of the package beyond what every one does, up to its first mask.
NEEDED = {
    "structgen.Regex('a+')": {"runtime.automaton"},
    "structgen.JsonSchema({})": {"runtime.automaton", "runtime.pushdown"},
    "structgen.Grammar('start: \"a\"+')": {"runtime.automaton", "runtime.grammar"},
}


@pytest.mark.parametrize("definition", NEEDED)
def test_a_first_mask_from_the_cache_loads_its_engine_alone(definition: str, tmp_path: Path) -> None:
    script = (
        "import sys, structgen\n"
        "vocabulary = structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [None], eos_ids=[256])\n"
        f"index = structgen.compile({definition}, vocabulary, cache=structgen.Cache({str(tmp_path)!r}))\n"
        "structgen.Guide(index).bitmask()\n"
        "print(index.origin, *sys.modules)"
    )
    assert python(script).startswith("compiled")
    origin, *loaded = python(script).split()
    rooms = {room(name.removeprefix("structgen.")) for name in loaded if name.startswith("structgen.")}
    assert origin == "cache"
    assert rooms <= NEEDED[definition] | EVERYWHERE | {
        "_kernels", "api", "cache", "definitions", "index_store", "kernels", "runtime", "runtime.core",
        "runtime.guide", "runtime.index", "runtime.rows", "storage", "vocabulary",
    }  # fmt: skip
    heavy = {*LOADED_LATER, "platformdirs", "tempfile", "secrets", "hashlib", "structgen.vocabulary.trie"}
    assert {name for name in loaded if name in heavy or "distances" in name} == set()


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
