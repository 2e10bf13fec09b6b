"""The hash of the kernels' sources, without `pathlib`: whoever runs from a checkout compares it first."""

from __future__ import annotations

import os

from ..system.digest import blake2b

#: Files of the folder that have no kernels.
OTHERS = {"__init__.py", "digest.py", "fallback.py", "signatures.py", "sources.py"}


def digest() -> str:
    """The hash of everything that the compiled module is made from, in hexadecimal."""
    hashed = blake2b(digest_size=16)
    for name in files():
        if name.rpartition("/")[2] not in OTHERS:
            with open(f"{os.path.dirname(__file__)}/{name}", "rb") as file:
                data = file.read()
            hashed.update(f"{name}\n{len(data)}\n".encode())
            hashed.update(data)
    return hashed.hexdigest()


def files() -> list[str]:
    """The sources below this folder by their names in it, in a fixed order."""
    folder = os.path.dirname(__file__)
    found = [
        os.path.relpath(os.path.join(within, name), folder).replace(os.sep, "/")
        for within, _, names in os.walk(folder)
        for name in names
        if name.endswith((".py", ".h"))
    ]
    return sorted(found, key=lambda name: name.split("/"))
