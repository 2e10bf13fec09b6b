"""What kernels take and return, as each one's annotations state it.

A kernel's parameters are annotated in the notation of Numba and of Cython's memory views: ``int32[::1]`` is a
contiguous array with one dimension, ``int32[:, ::1]`` one with two in C order, ``Out[int32[::1]]`` one that is
written to, be it a result or scratch; ``int64``, ``float64`` and ``boolean`` are scalars. A kernel returns ``None``,
a scalar, or ``tuple[...]`` of some scalars. Annotations are read from the sources (`read`), which imports no Numba.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .sources import FOLDER, kernel_files

#: Names for annotations, which nothing evaluates.
Out: Any = None
boolean = int8 = int16 = int32 = int64 = uint8 = uint16 = uint32 = uint64 = float64 = Out

#: Scalars by name, with the C type that stands for each in a call.
SCALARS = {
    "boolean": "int8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float64": "double",
}  # fmt: skip


class Parameter(NamedTuple):
    """An argument: its name, that of its numbers' type, its dimensions (0: a scalar), whether it is written to."""

    name: str
    scalar: str
    dimensions: int
    is_written: bool

    def __str__(self) -> str:
        index = {0: "", 1: "[::1]", 2: "[:, ::1]"}[self.dimensions]
        return f"Out[{self.scalar}{index}]" if self.is_written else f"{self.scalar}{index}"


@dataclass(frozen=True)
class Signature:
    """A kernel: the module that has it, its name, parameters and results, and whether it lets other threads run."""

    module: str
    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    returns_tuple: bool
    releases_gil: bool


def read() -> list[Signature]:
    """All kernels' signatures. Raises `SyntaxError` for an annotation that is none of those above, with its place."""
    found: list[Signature] = []
    for file in kernel_files():
        module = ".".join(file.relative_to(FOLDER).with_suffix("").parts)
        found.extend(_of_module(module, ast.parse(file.read_text("utf-8"), str(file)), str(file)))
    return found


def _of_module(module: str, tree: ast.Module, file: str) -> Iterator[Signature]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = call.func if call else decorator
            if isinstance(name, ast.Name) and name.id == "kernel":
                options = {each.arg: ast.literal_eval(each.value) for each in call.keywords} if call else {}
                yield _signature(module, node, file, releases_gil=options.get("releases_gil", True))


def _signature(module: str, node: ast.FunctionDef, file: str, *, releases_gil: bool) -> Signature:
    def refuse(what: str) -> SyntaxError:
        return SyntaxError(f"{node.name}: {what}", (file, node.lineno, 1, None))

    def scalar(annotation: ast.expr) -> str:
        if isinstance(annotation, ast.Name) and annotation.id in SCALARS:
            return annotation.id
        raise refuse(f"{ast.unparse(annotation)} is not the name of a scalar")

    def parameter(argument: ast.arg) -> Parameter:
        annotation = argument.annotation
        if annotation is None:
            raise refuse(f"{argument.arg} has no annotation")
        is_written = isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Out"
        if is_written:
            assert isinstance(annotation, ast.Subscript)
            annotation = annotation.slice
        if not isinstance(annotation, ast.Subscript):
            if is_written:
                raise refuse(f"{argument.arg} is a scalar, which nothing can write to")
            return Parameter(argument.arg, scalar(annotation), 0, False)
        dimensions = {"::1": 1, ":, ::1": 2}.get(ast.unparse(annotation.slice).strip("()"))
        if dimensions is None:
            raise refuse(f"{argument.arg} is neither [::1] nor [:, ::1]")
        return Parameter(argument.arg, scalar(annotation.value), dimensions, is_written)

    returned = node.returns
    if returned is None:
        raise refuse("its result has no annotation")
    if isinstance(returned, ast.Constant) and returned.value is None:
        results: tuple[str, ...] = ()
    elif isinstance(returned, ast.Subscript) and isinstance(returned.slice, ast.Tuple):
        results = tuple(map(scalar, returned.slice.elts))
    else:
        results = (scalar(returned),)
    return Signature(
        module,
        node.name,
        tuple(map(parameter, node.args.args)),
        results,
        isinstance(returned, ast.Subscript),
        releases_gil,
    )
