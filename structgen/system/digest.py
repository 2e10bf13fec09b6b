"""BLAKE2b, without what `hashlib` loads beside it: OpenSSL takes a process 3 ms."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b"]
