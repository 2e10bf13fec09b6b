"""`Bucket`: the few things that are done with an object store, through obstore (Rust's object_store)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ...errors import StoreError
from .objects import LARGEST_HEAD

if TYPE_CHECKING:
    from .values import ObjectStore

#: Tries beyond the first, with a random pause that doubles in between, all within the time-out.
_RETRIES = 2

_NO_RIGHTS = (
    "Look at the credentials. Reading needs s3:GetObject, and s3:ListBucket, without which S3 forbids to ask for "
    "what is not there; writing needs s3:PutObject."
)
#: Of an answer at once.
_CHUNK = 1 << 20

#: The user, and the password, in a URL.
_USER = re.compile(r"//[^/@\s]*@")

#: What went wrong, in the document that a store answers with: a code, and a sentence.
_TEXT = r"([^<\x00-\x1f\x7f-\x9f]{1,400})"
_ANSWER = re.compile(f"<Code>{_TEXT}</Code>\\s*(?:<Message>{_TEXT}</Message>)?")

#: Codes that say that nothing at all is there, which is no miss.
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")

_ENDPOINTS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")

#: How the names of options end that have such an address.
_NAMES_OF_ENDPOINTS = ("endpoint", "base_url")


#: What tells an object from others that had its name: S3 and Azure go by the ``e_tag``, Google by the ``version``.
Version: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Found:
    """An object's bytes, or the first of them; how many it has in all, and its version, as far as the store says."""

    data: memoryview
    nbytes: int
    version: Version


@dataclass(frozen=True)
class Listed:
    """A name in a listing, with size in bytes and time of writing in seconds since 1970, by the store's clock."""

    name: str
    nbytes: int
    modified: float


class Bucket:
    """A store, from any thread. Methods raise `StoreError` where it fails, and for nothing else.

    obstore's runtime has threads of its own and belongs to the process that used it first: a child that was forked
    afterwards would wait for ever. There, methods raise `StoreError` at once.
    """

    _used_in: ClassVar[int | None] = None  # process; obstore has one runtime for all stores

    def __init__(self, store: ObjectStore) -> None:
        try:
            from obstore.store import from_url
        except ImportError as error:
            raise StoreError(
                "an object store needs the package obstore", where=store.url, remedy="pip install 'structgen[store]'"
            ) from error
        self.url = store.url
        whole = timedelta(seconds=store.timeout)
        given = [value for name, value in store.options.items() if name.lower().endswith(_NAMES_OF_ENDPOINTS)]
        endpoints = (store.url, *given, *map(os.environ.get, _ENDPOINTS))
        network: dict[str, Any] = {
            "client_options": {
                "timeout": whole,
                "connect_timeout": min(whole, timedelta(seconds=5)),
                "allow_http": any((each or "").startswith("http://") for each in endpoints),
            },
            "retry_config": {"max_retries": _RETRIES, "retry_timeout": whole},
            "config": dict(store.options) or None,
        }
        is_local = store.url.startswith("file:")
        try:
            self._store: Any = from_url(store.url, **({"mkdir": True} if is_local else network))
        except BaseException as error:  # ValueError, obstore's own, and those of the file system
            if not _is_failure(error):
                raise
            raise StoreError(f"the store cannot be used: {_said(error)}", where=store.url) from error
        self._is_local = is_local

    def get(self, name: str, most: int, accepts: Callable[[memoryview, int], bool] | None = None) -> Found | None:
        """An object, None where there is none. Of one of more than ``most`` bytes no byte is loaded.

        ``accepts`` is asked what it thinks of the first `LARGEST_HEAD` bytes, and of the object's size; where that is
        no, little more than these is loaded.
        """
        import obstore

        with self._failures():
            try:
                result = obstore.get(self._store, name)
            except FileNotFoundError as error:
                found = _ANSWER.search(str(error))
                if found is not None and found[1] in _NO_BUCKET:
                    raise
                return None
            size = result.meta["size"]
            data = memoryview(b"") if size > most else _read(result, size, accepts)
            return Found(data, size, _version(result.meta))

    def peek(self, name: str, count: int) -> Found | None:
        """The first bytes of an object, None where there is none."""
        import obstore

        with self._failures():
            try:
                there = obstore.head(self._store, name)
                if not there["size"]:  # of which there is no range
                    return Found(memoryview(b""), 0, _version(there))
                result = obstore.get(self._store, name, options={"range": (0, min(count, there["size"]))})
            except FileNotFoundError:
                return None
            return Found(_read(result, count)[:count], result.meta["size"], _version(result.meta))

    def create(self, name: str, data: bytes) -> bool:
        """Write an object where none has the name (``If-None-Match: *``). Returns whether that was so."""
        return self._put(name, data, "create")

    def replace(self, name: str, data: bytes, version: Version) -> bool:
        """Write an object in place of the one of that version (``If-Match``). Returns whether it was still there.

        A folder has no versions: there the last writer wins.
        """
        return self._put(name, data, "overwrite" if self._is_local or not version else version)

    def delete(self, name: str) -> None:
        """Delete an object, which may be gone already."""
        import obstore

        with self._failures(), suppress(FileNotFoundError):
            obstore.delete(self._store, name)

    def listing(self, prefix: str) -> Iterator[Listed]:
        """All names that begin with a prefix, a folder's."""
        import obstore

        with self._failures():
            for chunk in obstore.list(self._store, prefix):
                for each in chunk:
                    yield Listed(each["path"], each["size"], each["last_modified"].timestamp())

    def _put(self, name: str, data: bytes, mode: Any) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._failures():
            try:
                obstore.put(self._store, name, data, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                if isinstance(error, FileNotFoundError) and not isinstance(mode, dict):
                    raise  # the bucket is not there; with a version, the object
                return False
            return True

    @contextmanager
    def _failures(self) -> Iterator[None]:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        Bucket._used_in = Bucket._used_in or os.getpid()
        if Bucket._used_in != os.getpid():
            raise StoreError(
                "the store was used before this process was forked, and cannot be used in it",
                where=self.url,
                remedy="Start processes by spawning, or use the store in children only.",
            )
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
            raise StoreError(f"access is refused: {_said(error)}", where=self.url, remedy=_NO_RIGHTS) from error
        except StoreError:
            raise
        except BaseException as error:
            if not _is_failure(error):
                raise
            raise StoreError(_said(error), where=self.url) from error


def _version(meta: Mapping[str, Any]) -> Version:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def _read(result: Any, most: int, accepts: Callable[[memoryview, int], bool] | None = None) -> memoryview:
    """The bytes of an answer; where it has more than it said, more than ``most``, but not all of them."""
    data = bytearray()
    for chunk in result.stream(min_chunk_size=_CHUNK):
        data += chunk
        if len(data) > most:
            break
        if accepts is not None and len(data) >= min(LARGEST_HEAD, most):
            if not accepts(memoryview(bytes(data[:LARGEST_HEAD])), most):
                break
            accepts = None
    return memoryview(data)


def _is_failure(error: BaseException) -> bool:
    """Whether the store failed. Where obstore's Rust gives up, that is no `Exception` (pyo3's ``PanicException``)."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _said(error: BaseException) -> str:
    """What an error says, without the credentials that a proxy's URL or an endpoint's may have.

    That is its first line; of a document in the answer the code and the message, which stand behind that.
    """
    text = _USER.sub("//", str(error))
    first = next(iter(text.splitlines()), "") or type(error).__name__
    answer = _ANSWER.search(text)
    return first if answer is None else ": ".join(filter(None, (first.partition(": <")[0], *answer.groups())))
