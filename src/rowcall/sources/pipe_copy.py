"""An input that can be read only once, kept in a temporary file while it is read."""

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
    """Reads a pipe once; whoever reads again gets what was read of it, from a file without a name."""

    rereadable = True

    def __init__(self, source: Source) -> None:
        self._source = source
        self._file = tempfile.TemporaryFile("w+b")  # noqa: SIM115  it lives as long as the source
        self._lock = Lock()  # who reads again may do so while the first reading still waits for the pipe
        self._begun = False
        self.name = source.name
        self.uniform = False
        self.skipped = 0
        self.quarantine: Path | None = None

    def columns(self) -> list[str] | None:
        """The columns, as the input says."""
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
