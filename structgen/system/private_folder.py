"""Folders that nobody else can put anything into: checked before what lies in them is believed.

Numba keeps compiled kernels as pickles, so whoever can place a file there runs code; and whoever can rename one of
the folders above can place all of them. So a folder counts as private only if no other user can change what its path
means. `check` goes down from the root, one component at a time:

- every folder on the way belongs to this user or to root, who can do anything anyway;
- nobody else can write it, unless it is sticky (as ``/tmp`` is): there others can add entries, and can't rename or
  delete one that belongs to this user or to root, which is asked of the next component;
- a symbolic link is read where it lies, belongs to this user or to root as well, and is followed by the same rules;
- each component is opened relative to the descriptor of the one before, without following links, and what is checked
  is the descriptor: nothing can be put in place of it in between.

By induction nobody else can change a component after it was checked, so the path stays good for those who open files
by name, as Numba and SQLite do, until this user moves or deletes the folder.

Windows has no such owners and modes; folders below a user's profile are private there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path

from ..errors import CacheError
from .folders import ENVIRONMENT_VARIABLE, HOMELESS

_REMEDY = f"Make it yours alone (chown, chmod go-w), or name another folder with {ENVIRONMENT_VARIABLE}."

#: As many as Linux follows.
_MOST_LINKS = 40

_HAS_OWNERS = hasattr(os, "geteuid")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH

#: To look at a folder and to open what is in it, which takes no right to list it where there is ``O_PATH``.
_OPEN_FLAGS = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def check(folder: Path) -> None:
    """See that only this user and root can change what a folder's path means, and what is in the folder.

    Raises `CacheError` where others can, `OSError` where there is no such folder.
    """
    if _HAS_OWNERS:
        _walk(folder, make=False)


def make(folder: Path) -> None:
    """As `check`, but make what is missing of the path, with mode 0700."""
    if _HAS_OWNERS:
        _walk(folder, make=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)


def check_file(status: os.stat_result, path: Path | str, *, open_to_others: bool = True) -> None:
    """See that a file is a regular one of this user or root, and that nobody else can write it.

    Parameters
    ----------
    status:
        Of the file itself, or of a descriptor; not of what a link leads to.
    open_to_others:
        Whether others can come to it at all; if not, its mode says nothing.

    Raises `OSError` for what is no regular file, `CacheError` for one that others have.
    """
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"not a regular file: {path}")
    if _HAS_OWNERS:
        _check_owner(status, path)
        if open_to_others and status.st_mode & _OTHERS_WRITE:
            raise CacheError(f"other users can write {path}", remedy=_REMEDY)


def check_files(folder: Path) -> None:
    """See that all that lies in a private folder are this user's, or root's, regular files.

    Others may have put something there while the folder was not private yet. Raises as `check_file`.
    """
    open_to_others = bool(folder.stat().st_mode & _OTHERS_ENTER)
    with os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):  # another process replaces files
                status = item.stat(follow_symlinks=False)
                check_file(status, Path(item.path), open_to_others=open_to_others)


def check_home(folder: Path) -> None:
    """Raise `CacheError` for the folder of a user without a home, and those in it."""
    if folder.is_relative_to(HOMELESS):
        user = f"user {os.geteuid()}" if _HAS_OWNERS else "this user"
        raise CacheError(
            f"{user} has no home folder: HOME is not set, and passwd has no entry",
            remedy=f"Set HOME, or name a folder with {ENVIRONMENT_VARIABLE}.",
        )


def _walk(folder: Path, *, make: bool) -> None:
    check_home(folder)
    trail = ""
    parts = deque(["", *filter(None, os.path.abspath(folder).split("/"))])
    links = 0
    here = os.open("/", _OPEN_FLAGS)
    try:
        while parts:
            name = parts.popleft()
            trail = f"{trail}/{name}" if name else ""  # where a link begins at the root anew, so does the trail
            try:
                there = _open(name or "/", here, make)
            except OSError as error:
                target = _target(name, here, trail) if error.errno in (errno.ELOOP, errno.ENOTDIR) else None
                if target is None:
                    error.filename = trail or "/"
                    raise
                links += 1
                if links > _MOST_LINKS:
                    raise CacheError(f"too many symbolic links on the way to {folder}", remedy=_REMEDY) from error
                parts.extendleft(part.strip("/") for part in reversed(target.parts))
                trail = trail.rpartition("/")[0]
                continue
            os.close(here)
            here = there
            _check_folder(os.fstat(here), trail or "/", last=not parts)
    finally:
        os.close(here)


def _open(name: str, parent: int, make: bool) -> int:
    """The descriptor of a folder in a folder, made if it is missing and ``make`` says so."""
    try:
        return os.open(name, _OPEN_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was faster; whose it is, is looked at
        os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, _OPEN_FLAGS, dir_fd=parent)


def _target(name: str, parent: int, trail: str) -> Path | None:
    """Where a link in a folder leads to; None for what is no link. Raises `CacheError` for somebody else's."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        return None
    _check_owner(status, trail)
    return Path(os.readlink(name, dir_fd=parent))


def _check_folder(status: os.stat_result, path: str, *, last: bool) -> None:
    _check_owner(status, path)
    if status.st_mode & _OTHERS_WRITE and (last or not status.st_mode & stat.S_ISVTX):
        raise CacheError(f"other users can write {path}", remedy=_REMEDY)


def _check_owner(status: os.stat_result, path: Path | str) -> None:
    if status.st_uid and status.st_uid != os.geteuid():
        raise CacheError(f"{path} belongs to another user, number {status.st_uid}", remedy=_REMEDY)
