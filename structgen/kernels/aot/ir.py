"""Kernels as LLVM's intermediate representation (IR), made by Numba for no processor in particular.

``python -m structgen.kernels.aot.ir FILE NAMES…`` writes one module of some kernels, as text that `clang` compiles
for any 64-bit platform. Numba only translates here: ``NUMBA_OPT=0`` turns its own optimizations off, and clang makes
them, knowing the processor.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..signatures import Parameter, Signature, read
from .face import PREFIX

#: What kernels may need besides their own code, of C.
_NEEDED = {"memcpy", "memset", "memmove"}


def _type(parameter: Parameter) -> types.Type:
    scalar = getattr(types, parameter.scalar)
    return types.Array(scalar, parameter.dimensions, "C") if parameter.dimensions else scalar


def _flags() -> Flags:
    flags = Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.nrt = False
    flags.error_model = "numpy"
    return flags


def _translated(kernel: Signature) -> str:
    module = importlib.import_module(f"structgen.kernels.{kernel.module}")
    function = getattr(module, kernel.name).py_func
    context = cpu_target.target_context.with_aot_codegen("structgen")
    library = context.codegen().create_library(kernel.name)
    arguments = tuple(map(_type, kernel.parameters))
    compiled = compile_extra(
        cpu_target.typing_context, context, function, arguments, None, _flags(), locals={}, library=library
    )
    returned = compiled.signature.return_type
    numba: Any = types
    scalars = [getattr(types, each) for each in kernel.results]
    expected = numba.Tuple(scalars) if kernel.returns_tuple else scalars[0] if scalars else types.none
    if returned != expected:
        raise TypeError(f"{kernel.module}.{kernel.name} states that it returns {expected}, and returns {returned}")
    library.get_function(compiled.fndesc.llvm_func_name).name = PREFIX + kernel.name
    with global_compiler_lock:
        library.finalize()
        return str(library.get_llvm_str())


def translate(kernels: list[Signature]) -> str:
    """One module of all these kernels, whose other functions and data nobody else sees."""
    whole, *others = (llvm.parse_assembly(_translated(kernel)) for kernel in kernels)
    for each in others:
        whole.link_in(each)
    for each in [*whole.functions, *whole.global_variables]:
        if each.is_declaration:
            if not each.name.startswith("llvm.") and each.name not in _NEEDED:
                raise TypeError(f"a kernel needs {each.name}, which is part of Numba's run time or of none")
        elif not each.name.startswith(PREFIX):
            each.linkage = "internal"
    return re.sub(r"(?m)^target (triple|datalayout).*\n", "", str(whole))


if __name__ == "__main__":
    names = set(sys.argv[2:])
    Path(sys.argv[1]).write_text(translate([each for each in read() if each.name in names]), "utf-8")
