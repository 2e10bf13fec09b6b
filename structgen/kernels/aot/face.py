"""The C face of the kernels: one function for each, which Python calls, and the module that has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..signatures import SCALARS, Signature

#: What the name of a kernel in a compiled module begins with, before that of the processor is put there.
PREFIX = "structgen_kernel_"

#: How a result becomes an object, by the C type of the scalar.
_OBJECTS = {"double": "PyFloat_FromDouble", "int8_t": "PyBool_FromLong"}

#: Where there are functions for it in ``processor.h``: whether a variant may run here.
_RUNS = {"x86_64_v2": "is_x86_64_v2()", "x86_64_v3": "is_x86_64_v3()"}


def _words(kernel: Signature) -> tuple[str, str]:
    """The C types of a kernel's arguments, and the arguments."""
    types, words = [], []
    for i, each in enumerate(kernel.parameters):
        if each.dimensions:
            types.append(f"TYPES{each.dimensions}")
            words.append(f"WORDS{each.dimensions}(v[{i}].array, sizeof({SCALARS[each.scalar]}))")
        else:
            types.append(SCALARS[each.scalar])
            words.append(f"v[{i}].number" if each.scalar == "float64" else f"({SCALARS[each.scalar]})v[{i}].integer")
    return ", ".join(types), ", ".join(words)


def _object(scalar: str, value: str) -> str:
    make = "PyBool_FromLong" if scalar == "boolean" else _OBJECTS.get(SCALARS[scalar], "PyLong_FromLongLong")
    return f"{make}({value})"


def _returned(kernel: Signature) -> str:
    if not kernel.results:
        return "Py_RETURN_NONE;"
    if not kernel.returns_tuple:
        return f"return {_object(kernel.results[0], 'r.of0')};"
    lines = [f"PyObject *all = PyTuple_New({len(kernel.results)}), *one;", "if (all == NULL) return NULL;"]
    for i, each in enumerate(kernel.results):
        lines.append(f"if ((one = {_object(each, f'r.of{i}')}) == NULL) {{ Py_DECREF(all); return NULL; }}")
        lines.append(f"PyTuple_SetItem(all, {i}, one);")
    return "\n    ".join([*lines, "return all;"])


def _function(kernel: Signature, variants: Sequence[str]) -> str:
    types, words = _words(kernel)
    name, count = kernel.name, len(kernel.parameters)
    names = [f"{PREFIX}{variant}_{name}" for variant in variants]
    results = " ".join(f"{SCALARS[each]} of{i};" for i, each in enumerate(kernel.results)) or "int64_t none;"
    parameters = ", ".join(
        f'{{"{each.name}", {each.scalar.upper()}, {each.dimensions}, {int(each.is_written)}}}'
        for each in kernel.parameters
    )
    call = f"status = variants[variant](&r, &exception, {words});"
    if kernel.releases_gil:
        call = f"PyThreadState *others = PyEval_SaveThread();\n    {call}\n    PyEval_RestoreThread(others);"
    return f"""\
extern int32_t {", ".join(f"{each}(void *, void **, {types})" for each in names)};
static int32_t (*const {name}_variants[])(void *, void **, {types}) = {{{", ".join(names)}}};
static const Parameter {name}_parameters[] = {{{parameters}}};
static const Kernel {name}_kernel = {{"{name}", {name}_parameters, {count}}};
static PyObject *face_{name}(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {{
    struct {{ {results} }} r;
    void *exception = NULL;
    int32_t status;
    Value v[{count}];
    if (!take(&{name}_kernel, arguments, count, v))
        return NULL;
    {call.replace("variants[", f"{name}_variants[")}
    if (status)
        return PyErr_Format(PyExc_SystemError, "{name} ended with status %d", status);
    {_returned(kernel)}
}}
"""


def _method(kernel: Signature) -> str:
    arguments = ", ".join(each.name for each in kernel.parameters)
    states = "\\n".join(f"{each.name}: {each}" for each in kernel.parameters)
    said = f"A kernel of structgen.kernels.{kernel.module}.\\n\\n{states}"
    text = f"{kernel.name}($module, {arguments}, /)\\n--\\n\\n{said}"
    return f'    {{"{kernel.name}", (PyCFunction)(void (*)(void))face_{kernel.name}, METH_FASTCALL, "{text}"}},'


def _limits() -> Iterable[str]:
    names = list(SCALARS)
    yield f"enum {{ {', '.join(each.upper() for each in names)}, SCALARS }};"
    quoted = ", ".join('"bool"' if each == "boolean" else f'"{each}"' for each in names)
    yield f"static const char *const scalar_names[] = {{{quoted}}};"
    least, most = [], []
    for each in names:
        bits = int("".join(c for c in each if c.isdigit()) or 1)
        signed = each.startswith("int")
        least.append(f"(-{2 ** (bits - 1) - 1}LL - 1)" if signed else "0")
        most.append(f"{min(2 ** (bits - signed), 2**63) - 1}LL")
    yield f"static const int64_t least[] = {{{', '.join(least)}}}, most[] = {{{', '.join(most)}}};"


def face(kernels: Sequence[Signature], constants: Mapping[str, int], variants: Sequence[str], digest: str) -> str:
    """The text of the module `structgen._kernels`.

    Parameters
    ----------
    kernels:
        What it offers.
    constants:
        Numbers that kernels and their callers share, by name.
    variants:
        For which processors there are kernels, ascending: ``x86_64_v2``, or ``""`` for any of the architecture.
    digest:
        The hash of the kernels' sources.
    """
    common, processor, module = (
        (Path(__file__).parent / name).read_text("utf-8") for name in ("face.h", "processor.h", "module.h")
    )
    processors = ", ".join(f'"{each}"' for each in variants)
    return "\n".join(
        [
            "#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n#include <stdint.h>",
            *_limits(),
            common,
            *(_function(each, variants) for each in kernels),
            "static PyMethodDef methods[] = {",
            *map(_method, kernels),
            '    {"address", address, METH_O, "address($module, array, /)\\n--\\n\\nThe address of an array."},',
            "    {NULL, NULL, 0, NULL},\n};",
            processor,
            f"static const char *const processors[] = {{{processors}}};",
            f"enum {{ PROCESSORS = {len(variants)} }};",
            "static int runs(int variant) {\n    switch (variant) {",
            *(f"    case {i}: return {_RUNS.get(each, '1')};" for i, each in enumerate(variants)),
            "    }\n    return 0;\n}",
            f'#define DIGEST "{digest}"',
            "static const struct { const char *name; long long value; } constants[] = {",
            *(f'    {{"{name}", {value}LL}},' for name, value in constants.items()),
            "    {NULL, 0},\n};",
            module,
        ]
    )
