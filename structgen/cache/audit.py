"""The database against the files: everything in a cache folder that is not as it should be."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CacheError, FormatError
from ..storage.container import unpack
from . import folder
from .entry import Row, check_row
from .reader import Reader

if TYPE_CHECKING:
    from .store import Store

Repair = Callable[["Store"], None]


@dataclass(frozen=True)
class Problem:
    """One finding of `Cache.verify`.

    Parameters
    ----------
    kind:
        ``"missing"``: a row whose file is gone. ``"damaged"``: a value that is short or fails its checksum.
        ``"foreign"``: a row or a setting that structgen did not write. ``"stray"``: a file without a row.
        ``"database"``: SQLite cannot use its file.
    where:
        The entry's key, the row's number, or a path.
    what:
        One sentence without a full stop.
    """

    kind: str
    where: str
    what: str


def check_value(buffer: memoryview | None, where: str) -> None:
    """Raise `FormatError` unless this is a whole, undamaged container."""
    if buffer is None:
        raise FormatError("the file does not have the size that the database says", where=where)
    unpack(buffer, where)


def findings(directory: Path, reader: Reader) -> Iterator[tuple[Problem, Repair]]:
    """Every problem of a folder whose database can be read, with what removes it. Reads every value.

    Raises `sqlite3.Error` and `OSError`.
    """
    # diskcache's names of settings are spelled out in `structgen.cache.store`, which imports it.
    from .store import KNOWN_SETTINGS, Store

    for name in reader.settings():
        if name not in KNOWN_SETTINGS:
            where = f"setting {reprlib.repr(name)}"
            problem = Problem("foreign", where, "a setting that diskcache does not know")
            yield problem, lambda store: store.remove_settings()
    rows = reader.rows()
    for row in rows:
        found = _inspect(directory, row)
        # Meanwhile another process may have replaced the entry, or removed it, and its file.
        if found is not None and reader.holds(row):
            yield found, partial(Store.remove_row, row=row)
    for path in folder.strays(directory, {row.filename for row in rows}):
        yield Problem("stray", str(path), "a file without a row"), lambda store: store.sweep()


def _inspect(directory: Path, row: Row) -> Problem | None:
    try:
        entry, path = check_row(directory, row)
        check_value(folder.read(path, entry.nbytes, mark=False), entry.key)
    except CacheError as error:
        return Problem("foreign", f"row {row.rowid}", error.what)
    except FormatError as error:
        return Problem("damaged", error.where, error.what)
    except OSError as error:
        return Problem("missing", str(row.key), str(error))
    return None
