"""`ObjectStore`: where an object store is, and how a cache uses it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...errors import ArgumentError

Write = Literal["behind", "now", "never"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True)
class ObjectStore:
    """An object store for ``Cache(store=...)``. It is a plain value: making one opens nothing and starts no thread.

    Parameters
    ----------
    url:
        ``s3://bucket/prefix``, ``gs://bucket/prefix``, ``file:///folder``, or another URL that obstore reads.
        Credentials come from the environment, the machine's role or ``options``, never from the URL.
    write:
        When new values are written. ``"behind"``: by a thread, from a bounded queue that `Cache.close` waits for.
        ``"now"``: before `Cache.put` returns, for builders. ``"never"``: for servers that only read. None:
        ``"behind"``, or ``"never"`` where there are ``verify_keys`` and no ``sign_key``.
    wait:
        Seconds that a look-up waits for the store at most, before it is a miss.
    timeout:
        Seconds for each request of a write, of `Cache.prefetch` or of the command line, retries included.
    sign_key:
        An Ed25519 private key in PEM, as ``openssl genpkey -algorithm ed25519`` writes it. Each written object is
        signed.
    verify_keys:
        Ed25519 public keys in PEM. Where there are any, or a ``sign_key``, whose public half counts as one, an
        object is used only if one of them signed it.
    options:
        Options of obstore for this kind of store, such as ``endpoint``, ``region`` or ``skip_signature``.

    Raises
    ------
    ArgumentError
        For a URL without a scheme, with credentials or a query, and for times that are not positive.
    """

    url: str
    write: Write | None = None
    wait: float = 2.0
    timeout: float = 30.0
    sign_key: bytes | None = field(default=None, repr=False)
    verify_keys: tuple[bytes, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        urls = [value for value in map(str, self.options.values()) if _SCHEME.match(value)]
        if any(map(_has_credentials, [self.url, *urls])) or {*"?#"} & {*self.url}:
            # What stands behind a question mark may be a signature: nothing of the URL is said.
            raise ArgumentError(
                "a store's URL has credentials in it, or a query",
                remedy="Credentials come from the environment, or from options.",
            )
        if _SCHEME.match(self.url) is None:
            raise ArgumentError(
                f"{self.url!r} is not the URL of a store",
                remedy="Write s3://bucket/prefix, gs://bucket/prefix or file:///folder.",
            )
        if self.write not in (None, "behind", "now", "never"):
            raise ArgumentError(f"write is {self.write!r}, not one of 'behind', 'now', 'never'")
        for name, seconds in (("wait", self.wait), ("timeout", self.timeout)):
            if not 0 < seconds < math.inf:
                raise ArgumentError(f"{name} is {seconds!r}, not a positive number of seconds")

    @property
    def writes(self) -> Write:
        """``write``, decided."""
        if self.write is not None:
            return self.write
        return "never" if self.verify_keys and self.sign_key is None else "behind"


def _has_credentials(url: str) -> bool:
    """Whether a user stands before the host, with or without a scheme."""
    return "@" in url.partition("://")[2 if "://" in url else 0].partition("/")[0]
