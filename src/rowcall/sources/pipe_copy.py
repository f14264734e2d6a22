"""Makes a pipe readable several times: the first reading copies it to a temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from rowcall.model import json_values
from rowcall.model.job import Record
from rowcall.sources.base import Source


class PipeCopy:
    """Reads a pipe once. Later readings yield the records that were read, from an unnamed temporary file."""

    rereadable = True

    def __init__(self, source: Source) -> None:
        self._source = source
        self._file = tempfile.TemporaryFile("w+b")  # noqa: SIM115  it lives as long as this object
        self._lock = Lock()  # a later reading may run while the first one still waits for the pipe
        self._begun = False
        self.name = source.name
        self.uniform = False
        self.skipped = 0
        self.quarantine: Path | None = None

    def columns(self) -> list[str] | None:
        """Return the columns of the input."""
        columns = self._source.columns()
        self.uniform = self._source.uniform
        return columns

    def __iter__(self) -> Iterator[Record]:
        if self._begun:
            return self._again()
        self._begun = True
        return self._first()

    def _first(self) -> Iterator[Record]:
        for record in self._source:
            self._keep(json_values.dumps([record.data, record.where]) + b"\n")
            yield record
        self.skipped, self.quarantine = self._source.skipped, self._source.quarantine

    def _again(self) -> Iterator[Record]:
        at = 0
        while line := self._line(at):
            at += len(line)
            data, where = json_values.loads(line)
            yield Record(data, where)

    def _keep(self, line: bytes) -> None:
        with self._lock:
            self._file.seek(0, os.SEEK_END)
            self._file.write(line)

    def _line(self, at: int) -> bytes:
        with self._lock:
            self._file.seek(at)
            return self._file.readline()
