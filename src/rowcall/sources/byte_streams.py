"""Where bytes come from: a file, again and again, or a pipe, once."""

from __future__ import annotations

import difflib
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from rowcall.model.errors import InputError

_BLOCK = 1 << 16  # 64 KiB
_GZIP = b"\x1f\x8b"


class ByteSource(Protocol):
    """Opens what is to be read. ``rereadable`` is False where that works only once."""

    name: str
    rereadable: bool

    def open(self, *, peek: bool) -> io.BufferedReader[Any]:
        """The bytes from their start; ``peek``: only the start is wanted, the reading itself comes later."""


class File:
    """A file in a folder."""

    rereadable = True

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._path = path

    def open(self, *, peek: bool) -> io.BufferedReader[Any]:
        """The file, opened anew."""
        check_is_there(self._path, self.name)
        return self._path.open("rb")


class Pipe:
    """Stdin or a named pipe: read once, but its start can be looked at before.

    Args:
        stream: opens it.
        name: for messages.
        close: the stream is closed after the reading.
    """

    rereadable = False

    def __init__(self, stream: Callable[[], BinaryIO], name: str, *, close: bool) -> None:
        self.name = name
        self._close = close
        self._connect = stream
        self._stream: BinaryIO | None = None
        self._start = bytearray()
        self._read = False

    def open(self, *, peek: bool) -> io.BufferedReader[Any]:
        """The bytes from their start, for the one reading or for a look before it."""
        if self._read:
            raise InputError(self.name, "can be read only once", remedy="write it to a file and name that")
        self._stream = self._stream or self._connect()
        self._read = not peek
        replay = _Replay(self._stream, self._start, remember=peek, close=self._close and not peek)
        return io.BufferedReader(replay, _BLOCK)


class _Replay(io.RawIOBase):
    """What was read of a stream before, then the stream."""

    def __init__(self, stream: BinaryIO, start: bytearray, *, remember: bool, close: bool) -> None:
        self._stream = stream
        self._start = start
        self._at = 0
        self._remember = remember
        self._close = close

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = bytes(self._start[self._at : self._at + len(buffer)]) or self._fresh(len(buffer))
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        super().close()
        if self._close:
            self._stream.close()

    def _fresh(self, size: int) -> bytes:
        data = cast("io.BufferedReader[Any]", self._stream).read1(size)
        if self._remember:
            self._start += data
        return data


@contextmanager
def opened(source: ByteSource, *, peek: bool = False) -> Iterator[io.BufferedReader[Any]]:
    """The bytes of an input, unpacked where they begin as gzip does, whatever the name says.

    Raises:
        InputError: missing, a folder, unreadable, damaged.
    """
    with explained(source.name), source.open(peek=peek) as plain:
        if not plain.peek(len(_GZIP)).startswith(_GZIP):
            yield plain
            return
        with gzip.GzipFile(fileobj=plain) as packed, io.BufferedReader(packed, _BLOCK) as unpacked:
            yield unpacked


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn the system's errors about an input into an ``InputError``."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        remedy = "fetch it again; gzip -t tests a file"
        raise InputError(name, f"the packed data is cut short or damaged ({error})", remedy=remedy) from error
    except OSError as error:
        remedy = "check that the file is there and that you may read it"
        raise InputError(name, f"cannot be read: {error.strerror or error}", remedy=remedy) from error


def check_is_there(path: Path, name: str) -> None:
    """Refuse a missing file and a folder, in words that help.

    Raises:
        InputError: with the names that come close.
    """
    if path.is_dir():
        raise InputError(name, "is a folder", remedy="name a file inside it")
    if not path.exists():
        raise InputError(name, "no such file", remedy=_did_you_mean(path))


def _did_you_mean(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    close = difflib.get_close_matches(
        path.name, [file.name for file in path.parent.iterdir() if not file.name.endswith(("-wal", "-shm"))]
    )
    return f"did you mean {' or '.join(close)}?" if close else f"nothing in {path.parent.resolve()} comes close"
