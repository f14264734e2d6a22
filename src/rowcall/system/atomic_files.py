"""Files that are replaced atomically: completely, or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rowcall.model.errors import OutputError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a new file that replaces ``path`` when the block ends without an error; otherwise the old file stays.

    A reader of ``path`` always sees a complete file. If several processes write at once, the last one to finish wins.
    The new file is on disk before the old one is removed. Symbolic links are followed, and the mode is the one a plain
    ``open`` would give. A path that is not a regular file (``/dev/null``, a named pipe) is written to directly.

    Raises:
        OutputError: the folder is missing or read-only, ``path`` is a folder or read-only, no space is left.
    """
    target = Path(os.path.realpath(path))
    with explained(path):
        in_place = target.exists() and not target.is_file()
        mode = None if in_place else _mode_to_keep(target)
        file = _File(target, "wb", shown=path) if in_place else _temporary(target, shown=path)
        temporary = Path(os.fsdecode(file.name))
    try:
        with io.BufferedWriter(file) as buffered:
            yield buffered
            buffered.flush()
            if not in_place:
                _finish(file, mode, target)
    except BaseException:
        if not in_place:
            temporary.unlink(missing_ok=True)
        raise


class _Rehearsed(Exception):
    """Ends a ``replacing`` block without replacing anything."""


def rehearse(path: Path) -> None:
    """Check that ``path`` could be replaced now, without changing anything.

    Raises:
        OutputError: as ``replacing``.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a device or a pipe: its reader would notice that it was opened
    with suppress(_Rehearsed), replacing(path):
        raise _Rehearsed


class _File(io.FileIO):
    """A file whose write errors become an ``OutputError``."""

    def __init__(self, path: Path, mode: str, *, shown: Path) -> None:
        super().__init__(path, mode)
        self.shown = shown

    def write(self, data: Any) -> int:
        with explained(self.shown):
            return super().write(data)


def _temporary(target: Path, *, shown: Path) -> _File:
    """Create a file beside ``target``, locked while it is open. Files that dead processes left behind are removed."""
    mark = hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()
    for left in target.parent.glob(f".rowcall-{mark}-*.tmp"):
        _remove_dead(left)
    while True:
        file = _File(target.with_name(f".rowcall-{mark}-{secrets.token_hex(8)}.tmp"), "xb", shown=shown)
        with suppress(OSError):  # a file system without locks: another process cannot lock it either
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another process removed it before it was locked


def _remove_dead(temporary: Path) -> None:
    """Remove a temporary file unless a living process holds its lock."""
    with suppress(OSError), temporary.open("rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink()


def _finish(file: _File, mode: int | None, target: Path) -> None:
    """Sync the file to disk, then rename it to its final name."""
    with explained(file.shown):
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
        Path(os.fsdecode(file.name)).replace(target)
        _sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there.

    Raises:
        OutputError: the folder is read-only.
    """
    with explained(path):
        path.unlink(missing_ok=True)


@contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Turn OS errors about ``path`` into an ``OutputError`` that says what to do."""
    try:
        yield
    except OSError as error:
        what, remedy = _EXPLANATIONS.get(error.errno or 0, (error.strerror or str(error), "choose another file"))
        raise OutputError(f"{path} cannot be written: {what}", remedy=remedy) from error


_EXPLANATIONS = {
    errno.ENOENT: ("its folder does not exist", "make the folder, or choose another file"),
    errno.ENOTDIR: ("its folder is a file", "choose another file"),
    errno.EISDIR: ("it is a folder", "name a file inside it"),
    errno.EACCES: ("permission denied", "choose a file or folder that you may write"),
    errno.EPERM: ("permission denied", "choose a file or folder that you may write"),
    errno.EROFS: ("the disk is read-only", "choose a folder on another disk"),
    errno.ENOSPC: ("no space is left", "free some space; nothing in the store is lost"),
    errno.EDQUOT: ("the quota is used up", "free some space; nothing in the store is lost"),
    errno.EPIPE: ("its reader has closed it", "read it to its end, or name a file"),
}


def _mode_to_keep(target: Path) -> int | None:
    """The mode of the file to be replaced; None if there is none."""
    if not target.exists():
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(target.stat().st_mode)


def _sync_folder(folder: Path) -> None:
    """Sync the rename to disk. Some file systems cannot sync a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
