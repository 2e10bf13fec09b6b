"""The kernels, compiled ahead of time into the module `structgen._kernels`.

What goes in are the sources with their annotations (`structgen.kernels.signatures`); Numba translates each kernel to
LLVM's IR (`ir`), a C function for each checks what Python hands over (`face`), and a C compiler makes one module of
them for some processors of a platform, of which it chooses when it is imported (`build`). The module runs in every
Python from 3.10 on, and carries the hash of its sources. Nothing here is imported at run time.
"""
