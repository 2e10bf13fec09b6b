"""The import graph: arrows point one way, and `import structgen` stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "structgen"

#: What every room may use, and what uses nothing of the package but each other.
EVERYWHERE = frozenset({"errors", "budget", "progress", "system", "__version__"})

#: The rooms, from the ground up, and the rooms below that each may import. Imports within functions and those under
#: `if TYPE_CHECKING` count too.
ROOMS = {
    "kernels": "",
    "storage": "",
    "pages": "",
    "cache": "storage",
    "vocabulary": "storage",
    "definitions": "vocabulary",
    "grammars": "definitions",
    "tools": "definitions",
    "runtime.core": "vocabulary",
    "runtime.rows": "kernels storage vocabulary",
    "runtime.automaton": "kernels runtime.core runtime.rows storage vocabulary",
    "runtime.pushdown": "kernels runtime.automaton runtime.core runtime.rows storage vocabulary",
    "runtime.grammar": (
        "definitions kernels runtime.automaton runtime.core runtime.pushdown runtime.rows storage vocabulary"
    ),
    "runtime.graphs": "runtime.automaton runtime.core runtime.grammar runtime.pushdown vocabulary",
    "runtime.index": (
        "kernels runtime.automaton runtime.core runtime.grammar runtime.graphs runtime.pushdown runtime.rows storage"
        " vocabulary"
    ),
    "runtime.guide": "runtime.core runtime.index runtime.rows vocabulary",
    "runtime.batch": "kernels runtime.core runtime.guide runtime.index runtime.rows vocabulary",
    "runtime.logits": "kernels runtime.automaton runtime.guide runtime.index runtime.rows",
    "runtime.events": "vocabulary",
    "runtime": "runtime.guide runtime.index runtime.logits runtime.rows",  # its public names
    "compiler.automata": "definitions kernels runtime.automaton storage",
    "compiler.programs": "runtime.automaton runtime.pushdown storage vocabulary",
    "compiler.patterns": "compiler.automata compiler.programs definitions runtime.automaton",
    "compiler.gbnf": (
        "compiler.automata compiler.patterns compiler.programs definitions runtime.automaton runtime.core"
        " runtime.pushdown vocabulary"
    ),
    "compiler.json_schema.numbers": "compiler.automata compiler.patterns",
    "compiler.json_schema.strings": "compiler.automata compiler.patterns kernels",
    "compiler.json_schema.read": "compiler.json_schema.strings",  # the names of formats
    "compiler.json_schema.algebra": (
        "compiler.json_schema.numbers compiler.json_schema.read compiler.json_schema.strings definitions"
    ),
    "compiler.json_schema.normal_form": (
        "compiler.json_schema.algebra compiler.json_schema.numbers compiler.json_schema.read"
        " compiler.json_schema.strings"
    ),
    "compiler.json_schema.layout": (
        "compiler.json_schema.normal_form compiler.json_schema.strings compiler.programs definitions"
    ),
    "compiler.json_schema.lower": (
        "compiler.automata compiler.json_schema.layout compiler.json_schema.normal_form compiler.json_schema.numbers"
        " compiler.json_schema.read compiler.json_schema.strings compiler.patterns compiler.programs definitions"
        " kernels runtime.automaton runtime.pushdown"
    ),
    "compiler.json_schema": (
        "compiler.json_schema.algebra compiler.json_schema.layout compiler.json_schema.lower"
        " compiler.json_schema.normal_form compiler.json_schema.read compiler.programs definitions"
    ),
    "compiler.grammar.load": "compiler.automata definitions",
    "compiler.grammar.lexer": (
        "compiler.automata compiler.grammar.load compiler.patterns definitions kernels runtime.core"
    ),
    "compiler.grammar.parser": "compiler.grammar.load definitions kernels runtime.core runtime.grammar",
    "compiler.grammar.completion": (
        "compiler.grammar.lexer compiler.grammar.parser kernels runtime.core runtime.grammar"
    ),
    "compiler.grammar.diagnostics": (
        "compiler.automata compiler.grammar.completion compiler.grammar.lexer compiler.grammar.load"
        " compiler.grammar.parser compiler.patterns definitions runtime.core runtime.grammar"
    ),
    "compiler.grammar": (
        "compiler.automata compiler.grammar.completion compiler.grammar.diagnostics compiler.grammar.lexer"
        " compiler.grammar.load compiler.grammar.parser compiler.patterns definitions runtime.automaton"
        " runtime.core runtime.grammar runtime.pushdown vocabulary"
    ),
    "compiler.scannerless": (
        "compiler.gbnf compiler.grammar compiler.grammar.diagnostics compiler.grammar.lexer compiler.grammar.parser"
        " compiler.programs definitions runtime.core runtime.grammar"
    ),
    "compiler.structural_tags": (
        "compiler.automata compiler.gbnf compiler.json_schema compiler.json_schema.read"
        " compiler.patterns compiler.programs compiler.scannerless definitions vocabulary"
    ),
    "compiler": "compiler.grammar.lexer runtime.automaton runtime.core runtime.grammar runtime.pushdown",
    "grammar_store": "cache runtime.grammar storage",
    "index_store": "cache definitions runtime.index runtime.pushdown storage vocabulary",
    "building": (
        "cache compiler compiler.automata compiler.gbnf compiler.grammar compiler.grammar.completion"
        " compiler.json_schema compiler.patterns compiler.programs compiler.scannerless compiler.structural_tags"
        " definitions grammar_store runtime.automaton"
        " runtime.core runtime.grammar runtime.pushdown runtime.rows vocabulary"
    ),
    "base_rows": (
        "building cache compiler.json_schema.strings definitions index_store runtime.pushdown tools vocabulary"
    ),
    "replies": "building compiler.structural_tags definitions runtime.core vocabulary",
    "api": "base_rows building cache definitions index_store runtime.index vocabulary",
    "warming": "api base_rows cache definitions index_store runtime.index vocabulary",
    "traces": (
        "pages runtime.batch runtime.events runtime.guide runtime.index runtime.rows storage vocabulary"
    ),
    "correction": "api cache pages runtime.core runtime.index runtime.rows storage vocabulary",
    "explanations": (
        "building compiler.gbnf compiler.json_schema compiler.json_schema.algebra"
        " compiler.json_schema.read compiler.patterns compiler.programs correction definitions replies runtime.core"
        " runtime.grammar runtime.guide runtime.index runtime.pushdown vocabulary"
    ),
    "certificates": (
        "api compiler compiler.automata compiler.gbnf compiler.grammar compiler.grammar.load compiler.json_schema"
        " compiler.json_schema.normal_form compiler.json_schema.strings compiler.patterns definitions"
        " runtime.automaton runtime.core runtime.grammar runtime.guide runtime.index runtime.rows vocabulary"
    ),
    "migrate": "compiler.json_schema.read compiler.patterns definitions",
    "doctor": "cache kernels",
    "integrations": (
        "api cache definitions explanations index_store replies runtime.batch runtime.core"
        " runtime.guide runtime.index runtime.logits runtime.rows tools traces vocabulary"
    ),
    "cli": (
        "api cache certificates compiler.grammar.load definitions doctor explanations index_store integrations pages"
        " runtime.core runtime.graphs runtime.index storage traces vocabulary warming"
    ),
}

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
    "runtime": {"numpy", "rich", "torch", "transformers", "triton"},  # Rich for pictures in a terminal
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
LOADED_LATER = ("numba", "torch", "transformers", "lark", "diskcache", "interegular", "typer", "rich", "pydantic",
                "jinja2", "obstore", "cryptography")


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


def room(name: str) -> str:
    """The room of a module, or of a name in a module."""
    parts = name.split(".")
    inner = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((each for each in inner if each in ROOMS), parts[0])


MODULES = modules()
IMPORTS = [found for name, path in MODULES.items() for found in imports(name, path)]
INTERNAL = [
    (found, found.target.removeprefix("structgen.")) for found in IMPORTS if found.target.startswith("structgen.")
]
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
        (above, below) for above, rooms in ROOMS.items() for below in rooms.split()
        if order.index(below) >= order.index(above)
    ] == []  # fmt: skip


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
        for name, path in MODULES.items() if not name.startswith("integrations.")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )  # fmt: skip
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


@pytest.mark.parametrize(
    "module", ["runtime.guide.guide", "runtime.index.index", "vocabulary"]
)
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
