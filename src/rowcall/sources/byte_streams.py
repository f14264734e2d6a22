"""Opens the bytes of an input: a file as often as needed, a pipe once; gzip is unpacked."""

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
    """Something whose bytes can be opened. ``rereadable`` is False if that works only once."""

    name: str
    rereadable: bool

    def open(self, *, peek: bool) -> io.BufferedReader[Any]:
        """Open the bytes from the start. ``peek``: only to look at the start; the real reading comes later."""


class File:
    """A file in a folder."""

    rereadable = True

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._path = path

    def open(self, *, peek: bool) -> io.BufferedReader[Any]:
        """Open the file again."""
        check_is_there(self._path, self.name)
        return self._path.open("rb")


class Pipe:
    """Stdin or a named pipe. It can be read once; before that, one can peek at its start.

    Args:
        stream: opens the pipe.
        name: its name in messages.
        close: whether to close the stream after the reading.
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
        """Open the bytes from the start, for the only reading or to peek before it."""
        if self._read:
            raise InputError(self.name, "can be read only once", remedy="save it to a file and name that file")
        self._stream = self._stream or self._connect()
        self._read = not peek
        replay = _Replay(self._stream, self._start, remember=peek, close=self._close and not peek)
        return io.BufferedReader(replay, _BLOCK)


class _Replay(io.RawIOBase):
    """Reads the bytes that a peek has remembered, then the stream itself."""

    def __init__(self, stream: BinaryIO, start: bytearray, *, remember: bool, close: bool) -> None:
        self._stream = stream
        self._start = start
        self._position = 0
        self._remember = remember
        self._close = close

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = bytes(self._start[self._position : self._position + len(buffer)]) or self._fresh(len(buffer))
        self._position += len(data)
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
    """Open the bytes of an input. They are unpacked if they start like gzip, whatever the file's name is.

    Raises:
        InputError: the file is missing, a folder, unreadable or damaged.
    """
    with explained(source.name), source.open(peek=peek) as plain:
        if not plain.peek(len(_GZIP)).startswith(_GZIP):
            yield plain
            return
        with gzip.GzipFile(fileobj=plain) as packed, io.BufferedReader(packed, _BLOCK) as unpacked:
            yield unpacked


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn errors of the operating system and of gzip into an ``InputError``."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        remedy = "get the file again; test it with: gzip -t"
        raise InputError(name, f"the compressed data is truncated or damaged ({error})", remedy=remedy) from error
    except OSError as error:
        remedy = "check that the file exists and that you have permission to read it"
        raise InputError(name, f"cannot be read: {error.strerror or error}", remedy=remedy) from error


def check_is_there(path: Path, name: str) -> None:
    """Check that a path is an existing file.

    Raises:
        InputError: it is missing or a folder; the remedy suggests similar names.
    """
    if path.is_dir():
        raise InputError(name, "is a folder", remedy="name a file in it")
    if not path.exists():
        raise InputError(name, "does not exist", remedy=_did_you_mean(path))


def _did_you_mean(path: Path) -> str:
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist either"
    close = difflib.get_close_matches(
        path.name, [file.name for file in path.parent.iterdir() if not file.name.endswith(("-wal", "-shm"))]
    )
    return f"did you mean {' or '.join(close)}?" if close else f"{path.parent.resolve()} has no file of a similar name"
