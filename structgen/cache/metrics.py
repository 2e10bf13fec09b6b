"""`Metrics`: what a cache has done, as plain counters, as OpenMetrics text, and as OpenTelemetry's instruments."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from ..system.locks import Lock, Rank

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation

_PREFIX = "structgen_cache_"


@dataclass(frozen=True)
class Metrics:
    """Counts since a `Cache` was made, in this process (a child of a fork goes on from its parent's).

    Parameters
    ----------
    hits_folder, hits_store, misses:
        Look-ups by what served them: the folder, the object store, nothing.
    compiles, compile_seconds:
        Definitions that `structgen.compile` worked at with this cache, and the wall-clock seconds that took.
    store_requests, store_request_seconds, store_failures:
        Requests to the store, the wall-clock seconds that callers waited for them, and how many had no answer, a late
        one, or a refusal.
    store_skipped:
        Look-ups and writes that did not ask the store because it had failed before.
    store_rejected:
        Objects that were not taken: foreign, damaged, of another key, or not signed by a key that is trusted.
    store_bytes_read, store_bytes_written:
        Bytes of objects.
    store_written, store_present, store_dropped:
        Values that went to the store, that it had already, and that were not written: for want of room in the queue,
        of time, or of the store.
    """

    hits_folder: int = 0
    hits_store: int = 0
    misses: int = 0
    compiles: int = 0
    compile_seconds: float = 0.0
    store_requests: int = 0
    store_request_seconds: float = 0.0
    store_failures: int = 0
    store_skipped: int = 0
    store_rejected: int = 0
    store_bytes_read: int = 0
    store_bytes_written: int = 0
    store_written: int = 0
    store_present: int = 0
    store_dropped: int = 0

    def openmetrics(self) -> str:
        """The counters in the text format of OpenMetrics 1.0 (application/openmetrics-text), each a family."""
        lines = []
        for name, value in asdict(self).items():
            lines += [f"# TYPE {_PREFIX}{name} counter"]
            if name.endswith("_seconds"):
                lines += [f"# UNIT {_PREFIX}{name} seconds"]
            lines += [f"{_PREFIX}{name}_total {value}"]
        return "\n".join([*lines, "# EOF\n"])


class Counters:
    """The counters of one cache, for all threads. Each name is a field of `Metrics`."""

    def __init__(self) -> None:
        self._lock = Lock(Rank.LEAF)
        self._counts: dict[str, int | float] = {field.name: 0 for field in fields(Metrics)}

    def add(self, name: str, amount: int | float = 1) -> None:
        """Count."""
        with self._lock:
            self._counts[name] += amount

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of a block, however it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - began)

    def snapshot(self) -> Metrics:
        """What was counted so far."""
        with self._lock:
            return Metrics(**self._counts)  # type: ignore[arg-type]

    def instrument(self, meter: Meter | None, attributes: Mapping[str, str]) -> None:
        """Make an observable counter of each. Raises `ArgumentError` without ``opentelemetry-api``."""
        try:
            from opentelemetry.metrics import Observation, get_meter
        except ImportError as error:
            raise ArgumentError(
                "instruments need the package opentelemetry-api", remedy="pip install 'structgen[opentelemetry]'"
            ) from error

        meter = meter or get_meter("structgen")
        is_first = meter not in _observed
        caches = _observed.setdefault(meter, weakref.WeakKeyDictionary())
        caches[self] = dict(attributes)

        def observe(name: str, _: CallbackOptions) -> Iterable[Observation]:
            for counters, its in list(caches.items()):
                yield Observation(getattr(counters.snapshot(), name), its)

        for name in self._counts if is_first else ():  # a meter has one instrument of a name
            unit = "s" if name.endswith("_seconds") else "By" if "_bytes_" in name else "1"
            meter.create_observable_counter(f"structgen.cache.{name}", [partial(observe, name)], unit=unit)


_observed: weakref.WeakKeyDictionary[Meter, weakref.WeakKeyDictionary[Counters, dict[str, str]]] = (
    weakref.WeakKeyDictionary()
)
