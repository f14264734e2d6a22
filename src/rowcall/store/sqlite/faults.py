"""What SQLite and the operating system say, as store errors."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rowcall.model.errors import Busy, Corrupt, Full, ReadOnly, StoreError, Unavailable

_REMEDIES: dict[type[StoreError], str] = {
    Busy: "Let it finish, or end the transaction it has open. Nothing is lost; the same command resumes.",
    Unavailable: "Check that the file and its folder exist and can be read, or name another place ([store] path).",
    Full: "Free some space on its device, then run the same command again. Nothing that was stored is lost.",
    ReadOnly: "Allow this user to write the file and its folder, or name another place ([store] path).",
    Corrupt: "Put it aside and restore a backup, or name another place ([store] path).",
    StoreError: "",
}

_BY_CODE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (Busy, "another program has it locked"),
    sqlite3.SQLITE_LOCKED: (Busy, "another part of this program has it locked"),
    sqlite3.SQLITE_FULL: (Full, "no space is left on its device"),
    sqlite3.SQLITE_IOERR_SHMSIZE: (Full, "no space is left on its device"),
    sqlite3.SQLITE_READONLY: (ReadOnly, "it cannot be written"),
    sqlite3.SQLITE_READONLY_DBMOVED: (Unavailable, "it was moved or deleted while it was in use"),
    sqlite3.SQLITE_PERM: (ReadOnly, "access is denied"),
    sqlite3.SQLITE_CANTOPEN: (Unavailable, "it cannot be opened"),
    sqlite3.SQLITE_IOERR: (Unavailable, "the device reports an error"),
    sqlite3.SQLITE_NOTADB: (Corrupt, "it is not a database"),
    sqlite3.SQLITE_CORRUPT: (Corrupt, "the database is damaged"),
}

_BY_ERRNO: dict[int | None, tuple[type[StoreError], str]] = {
    errno.ENOSPC: (Full, "no space is left on its device"),
    errno.EDQUOT: (Full, "the disk quota is used up"),
    errno.EACCES: (ReadOnly, "its folder cannot be written"),
    errno.EPERM: (ReadOnly, "its folder cannot be written"),
    errno.EROFS: (ReadOnly, "its device is read-only"),
    errno.ENOENT: (Unavailable, "its folder is gone"),
}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise a ``StoreError`` that names ``path`` for every error of the file inside."""
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite(error, path) from error
    except OSError as error:
        raise _say(path, *_BY_ERRNO.get(error.errno, (Unavailable, error.strerror or str(error)))) from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path}: a text holds a lone surrogate, which no file can keep") from error
    except ValueError as error:  # the file holds something that is not UTF-8, JSON, a status or a time
        raise _say(path, Corrupt, "the database is damaged") from error


_UNREADABLE = "Could not decode to UTF-8"
"""What Python's module says of text that is not UTF-8; it gives no error code."""


def _from_sqlite(error: sqlite3.Error, path: Path) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and _UNREADABLE in str(error):
        return _say(path, Corrupt, "the database is damaged")
    if code is None:  # raised by Python's module, not by SQLite: a bug of ours
        return error
    kind, what = _BY_CODE.get(code) or _BY_CODE.get(code & 0xFF) or (StoreError, str(error))
    if kind in (Unavailable, ReadOnly) and path.parent.is_dir() and not os.access(path.parent, os.W_OK):
        return _say(path, ReadOnly, "its folder cannot be written, which SQLite needs even for reading")
    return _say(path, kind, what)


def _say(path: Path, kind: type[StoreError], what: str) -> StoreError:
    return kind(f"{path}: {what}", remedy=_REMEDIES[kind])
