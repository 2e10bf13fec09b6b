"""The graph of imports: which rooms there are, what each may import, and what every module does import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "structgen"

#: What every room may use, and what uses nothing of the package but each other.
EVERYWHERE = frozenset({"errors", "budget", "progress", "system", "__version__"})

#: The rooms, from the ground up, and the rooms below that each may import. Imports within functions and those under
#: `if TYPE_CHECKING` count too.
ROOMS = {
    "kernels": "",
    "storage": "kernels",
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
        "definitions runtime.automaton runtime.core runtime.grammar runtime.graphs runtime.pushdown"
        " runtime.rows storage vocabulary"
    ),
    "runtime.guide": "runtime.core runtime.index runtime.rows vocabulary",
    "runtime.batch": "kernels runtime.core runtime.guide runtime.index runtime.rows vocabulary",
    "runtime.logits": "kernels runtime.automaton runtime.guide runtime.index runtime.rows",
    "runtime.events": "vocabulary",
    "runtime": "runtime.guide runtime.index runtime.rows",  # its public names
    "compiler.automata": "definitions kernels runtime.automaton storage",
    "compiler.programs": "kernels runtime.automaton runtime.pushdown vocabulary",
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
        " runtime.core runtime.grammar runtime.pushdown vocabulary"
    ),
    "base_rows": (
        "building cache compiler.json_schema.strings definitions index_store runtime.pushdown tools vocabulary"
    ),
    "replies": "building compiler.structural_tags definitions runtime.core vocabulary",
    "api": "base_rows building cache definitions index_store runtime.index vocabulary",
    "warming": "api base_rows cache definitions index_store runtime.index vocabulary",
    "traces": (
        "definitions pages runtime.batch runtime.events runtime.guide runtime.index runtime.rows storage vocabulary"
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
