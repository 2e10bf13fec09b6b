"""What is done with a store as a whole: push, pull, list, collect. Only here is anything listed."""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ...errors import CacheError, CacheWarning, FormatError, StoreError
from ..audit import check_value
from ..cache import Cache
from ..entry import SHARED_KINDS, Entry, Tag
from .objects import FOLDER, key_of_name, name_of
from .remote import Remote

K = TypeVar("K")
T = TypeVar("T")

#: Requests on their way together.
_AT_ONCE = 8


@dataclass(frozen=True)
class StoredObject:
    """An object of a store, as its listing has it.

    Parameters
    ----------
    key:
        As in the cache.
    nbytes:
        Size of the object, its head included.
    age:
        Seconds since it was written, by the store's clock.
    """

    key: str
    nbytes: int
    age: float


@dataclass(frozen=True)
class Transfer:
    """What became of the entries that were to be pushed or pulled.

    Parameters
    ----------
    moved, present:
        Keys that the other side has now, and those that it had already.
    failed:
        The others.
    """

    moved: tuple[str, ...]
    present: tuple[str, ...]
    failed: tuple[str, ...]


def listing(cache: Cache, *, by_store_clock: bool = False) -> list[StoredObject]:
    """The objects of a cache's store, the oldest first. Foreign names are left out. Raises `StoreError`.

    ``by_store_clock``: write an object, to learn what time it is there. Without it ages are by this machine's clock.
    """
    remote = _remote(cache)
    mark = f"{FOLDER}/clock-{os.urandom(8).hex()}"
    if by_store_clock:
        remote.ask(partial(remote.bucket.create, mark, b"-"))
    try:
        listed = remote.ask(lambda: list(remote.bucket.listing(FOLDER)))
    finally:
        if by_store_clock:
            remote.ask(partial(remote.bucket.delete, mark))
    now = next((each.modified for each in listed if each.name == mark), time.time())
    found = [
        StoredObject(key, each.nbytes, max(0.0, now - each.modified))
        for each in listed
        if (key := key_of_name(each.name)) is not None
    ]
    return sorted(found, key=lambda each: (-each.age, each.key))


def push(cache: Cache) -> Transfer:
    """Write to the store what the folder has and the store lacks, or has with fewer rows. Raises `StoreError`.

    Of what fails later the first is said in a `CacheWarning`: when a store is full, say, nothing else fails.
    """
    remote = _remote(cache)
    stored = {each.key for each in listing(cache)}
    errors: list[Exception] = []

    def push_one(entry: Entry) -> bool | None:
        try:
            if entry.key in stored and remote.holds(entry.key, entry.rank):
                return False
            value = cache.load(entry.key)
            check_value(value, entry.key)
            return remote.write(entry.key, bytes(value or b""), Tag(entry.label, entry.kind, entry.rank))
        except (FormatError, CacheError, OSError, sqlite3.Error) as error:
            errors.append(error)
            return None

    entries = cache.entries()
    outcomes = _all(push_one, entries)
    if errors:
        what = f"{len(errors)} of {len(entries)} entries failed, as in {errors[0]}"
        warnings.warn(CacheWarning(what), stacklevel=2)
    return _transfer([entry.key for entry in entries], outcomes)


def pull(cache: Cache) -> Transfer:
    """Bring to the folder what the store has and the folder lacks, each checked. Raises `StoreError`."""
    keys = [each.key for each in listing(cache)]
    present = {key for key in keys if key in cache}
    failed = set(cache.prefetch(keys))
    return _transfer(keys, [None if key in failed else key not in present for key in keys])


def unreachable(cache: Cache, objects: Iterable[StoredObject], keys: Collection[str]) -> set[str]:
    """The keys of the indexes, and of what cannot be used, that are not among those given. Raises `StoreError`.

    Rows that indexes share and tables of grammars are not told from others by what refers to them: they stay.
    """
    remote = _remote(cache)
    unknown = [each.key for each in objects if each.key not in keys]
    stays = _all(lambda key: remote.kind_of(key) in SHARED_KINDS, unknown)
    return {key for key, each in zip(unknown, stays, strict=True) if not each}


def victims(
    objects: Sequence[StoredObject], *, lost: Collection[str] | None, older: float | None, most: int | None
) -> list[StoredObject]:
    """Which objects go, of those given with the oldest first.

    Parameters
    ----------
    lost:
        Keys that nothing reaches: these go, if they are old enough. None where nobody asked.
    older:
        Seconds: what is younger stays, whatever else holds. Where neither of the others is given, what is older goes.
    most:
        Bytes that may stay: the oldest of what is left, and old enough, goes beyond that.
    """
    old = [each for each in objects if older is None or each.age > older]
    if lost is not None:
        gone = [each for each in old if each.key in lost]
    else:
        gone = list(old) if older is not None and most is None else []
    if most is not None:
        left = sum(each.nbytes for each in objects) - sum(each.nbytes for each in gone)
        chosen = set(gone)
        for each in old:
            if left <= most:
                break
            if each not in chosen:
                gone.append(each)
                left -= each.nbytes
    return gone


def delete(cache: Cache, objects: Iterable[StoredObject]) -> int:
    """Delete objects from the store, and return how many. Raises `StoreError`."""
    remote = _remote(cache)
    names = [name_of(each.key) for each in objects]
    _all(lambda name: remote.ask(partial(remote.bucket.delete, name)), names)
    return len(names)


def _remote(cache: Cache) -> Remote:
    if cache.remote is None:
        raise StoreError("the cache has no object store", remedy="Name one: Cache(folder, store=URL).")
    return cache.remote


def _all(work: Callable[[K], T], items: Sequence[K]) -> list[T]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, items))


def _transfer(keys: Sequence[str], outcomes: Sequence[bool | None]) -> Transfer:
    """True: moved; False: there already; None: failed."""
    by_outcome: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for key, outcome in zip(keys, outcomes, strict=True):
        by_outcome[outcome].append(key)
    return Transfer(*map(tuple, by_outcome.values()))
