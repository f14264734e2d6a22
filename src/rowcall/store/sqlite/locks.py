"""Locks of the operating system on files beside the database. They end with their process, however it ends.

The database file itself is never locked or opened here: closing it would drop SQLite's own locks.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rowcall.model.errors import Busy

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01
"""Seconds between two tries for the write lock while another process holds it."""

HOST = socket.gethostname()


class FileLock:
    """An open file that this process can lock. It is closed with the object, which frees the lock."""

    def __init__(self, path: Path, flags: int = 0) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o666)
        self._closing = weakref.finalize(self, os.close, self.fd)
        _open.add(self)

    @classmethod
    def fresh(cls, path: Path) -> FileLock:
        """A new file, locked at once. A file of that name is a leftover and is deleted."""
        path.unlink(missing_ok=True)
        lock = cls(path, os.O_EXCL)
        lock.take()
        return lock

    def take(self) -> bool:
        """Lock it if it is free; returns whether it is locked now. Never waits."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def give(self) -> None:
        """Unlock it."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, and with it the lock; safe to repeat."""
        self._closing()

    def in_place(self) -> bool:
        """Whether the path still leads to the file that is open here: somebody may have deleted it."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self.fd))


_open: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    for lock in list(_open):
        lock.close()


os.register_at_fork(after_in_child=_forget_in_child)  # or a forked child would keep its parent's locks


def is_free(path: Path) -> bool | None:
    """Whether the lock of a file is free; None if there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


class WriteLock:
    """The right to write and to checkpoint, which the processes that use one database take in turns."""

    def __init__(self, database: Path) -> None:
        self._path = beside(database, "turn")
        self._lock: FileLock | None = None
        self._signature = f"process {os.getpid()} on {HOST}".ljust(120).encode()  # one width: it overwrites the last

    @contextmanager
    def held(self, patience: float) -> Iterator[None]:
        """Hold the lock.

        Raises:
            Busy: another process held it for ``patience`` seconds; the message names that process.
        """
        lock = self._take(patience)
        try:
            yield
        finally:
            lock.give()

    def close(self) -> None:
        """Close the file; safe to repeat."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def _take(self, patience: float) -> FileLock:
        until, pause = time.monotonic() + patience, _FIRST_PAUSE
        while not (lock := self._opened()).take():
            if time.monotonic() > until:
                raise self._busy()
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  spreads the waiting; no secret
            pause = min(2 * pause, _LONGEST_PAUSE)
        with suppress(OSError):  # a full disk must not keep us from writing
            os.pwrite(lock.fd, self._signature, 0)
        return lock

    def _opened(self) -> FileLock:
        if self._lock is None or not self._lock.in_place():
            self.close()
            self._lock = FileLock(self._path)
        return self._lock

    def _busy(self) -> Busy:
        holder = self._path.read_text(errors="replace").strip()
        return Busy(
            f"{self._path}: the store is held by {holder or 'another process'}",
            remedy="Let it finish, or end it if it hangs. Nothing is lost.",
        )


def session_lock(database: Path, session: int) -> Path:
    """The file whose lock a session holds for as long as its process lives."""
    return beside(database, f"session-{session}")


def is_unlocked(database: Path, session: int, host: str) -> bool:
    """Whether a session is one of this host whose process is gone."""
    return host == HOST and bool(is_free(session_lock(database, session)))


def beside(database: Path, name: str) -> Path:
    """A file beside the database, as SQLite names its own: ``reviews.db-turn``."""
    return database.with_name(f"{database.name}-{name}")
