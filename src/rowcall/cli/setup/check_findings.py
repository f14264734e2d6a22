"""Finds everything that is wrong before a call is made: secrets, templates, every record of the input.

Nothing is sent, and nothing is written outside of a temporary folder. Memory use does not grow with the input.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from rowcall.cli.setup.request_preview import RequestPreview, SecretPlaceholders, ShownRequest
from rowcall.cli.shared.problem_lines import problems_of
from rowcall.client.network import make_network
from rowcall.config import Config
from rowcall.model import json_values
from rowcall.model.errors import InputError, Problem, RowcallError, TemplateError
from rowcall.model.job import Record
from rowcall.run.assembly import check_handler_columns
from rowcall.run.call_prices import make_prices
from rowcall.run.make_calls import calls_of
from rowcall.run.open_input import open_input
from rowcall.run.output_config import check_output_columns
from rowcall.sources.base import Source
from rowcall.sources.keys import Key, compile_key
from rowcall.templates.check_columns import check_columns
from rowcall.templates.compile import TemplateTree

T = TypeVar("T")

PROBLEMS_KEPT = 100
"""So many problems are kept to be shown; further ones are only counted."""
REQUESTS_SHOWN = 2
"""The requests of so many records are shown."""


@dataclass(slots=True)
class Findings:
    """What was found.

    Attributes:
        records: how many were read.
        rendered: how many of them give a valid request.
        repeated: how many are exact duplicates of an earlier record.
        clashes: how many have the key of an earlier record, but different content.
        keyless: how many have no usable key.
        set_aside: lines that cannot be read and will be set aside.
        first: the first requests, each with the place of its record.
        sample: the key and the data of the first record that is fit for a call.
        handler: whether a handler makes the requests; it is not run here.
        problems: the first of them; ``problem_count`` is how many there are.
    """

    records: int = 0
    rendered: int = 0
    repeated: int = 0
    clashes: int = 0
    keyless: int = 0
    set_aside: int = 0
    first: list[tuple[str, ShownRequest]] = field(default_factory=list)
    sample: tuple[str, dict[str, Any]] | None = None
    handler: bool = False
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0

    def add(self, problem: Problem) -> None:
        """Add a problem, unless it is there already."""
        if problem in self.problems:
            return
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)

    def tried(self, work: Callable[[], T], config: Config) -> T | None:
        """Return what ``work`` returns; if it raises, add its problems and return None."""
        try:
            return work()
        except InputError as error:
            self.add(Problem(error.where, error.message.removeprefix(f"{error.where}: "), error.remedy))
        except RowcallError as error:
            for problem in problems_of(error, config):
                self.add(problem)
        return None


def find_problems(config: Config) -> Findings:
    """Check everything. Blocks: it reads files, and runs the commands that print secrets."""
    findings = Findings()
    resolved = findings.tried(config.resolve, config)
    if resolved is not None:
        findings.tried(lambda: make_network(resolved), config)
    calls = findings.tried(lambda: calls_of(config.masked(SecretPlaceholders(config.folder))), config)
    findings.tried(lambda: make_prices(config), config)
    preview = None if config.handler else findings.tried(lambda: RequestPreview(config), config)
    findings.handler = config.handler is not None
    key = findings.tried(lambda: compile_key(config.input.key), config)
    # Bad lines are set aside here, whatever the config says, so that one does not hide those after it.
    skipping = config.model_copy(update={"input": config.input.model_copy(update={"on_bad": "skip"})})
    source = findings.tried(lambda: open_input(skipping), config)
    if source is None or findings.tried(lambda: (source.columns(),), config) is None:
        return findings
    if config.output_path:
        findings.tried(lambda: check_output_columns(config, source.columns()), config)
    trees = [*(calls.trees if calls else ()), *([key.tree] if key and key.tree else [])]
    if not findings.tried(lambda: _fit(config, trees, source), config):
        preview = key = None
    with tempfile.TemporaryDirectory(prefix="rowcall-") as folder, closing(_SeenKeys(Path(folder))) as seen:
        _InputCheck(findings, preview, key, seen).read(source, Path(folder) / "bad.jsonl", config)
    return findings


def _fit(config: Config, trees: list[TemplateTree], source: Source) -> bool:
    """Return True; raises if a template or the handler does not fit the columns."""
    check_columns(trees, source.columns())
    check_handler_columns(config, source.columns())
    return True


@dataclass(frozen=True, slots=True)
class _InputCheck:
    """Checks every record of the input; ``preview`` and ``key`` are None if they cannot be used."""

    findings: Findings
    preview: RequestPreview | None
    key: Key | None
    seen: _SeenKeys

    def read(self, source: Source, bad_lines: Path, config: Config) -> None:
        """Read and check every record."""
        source.quarantine = bad_lines
        self.findings.tried(lambda: self._check_all(source), config)
        for problem in _bad_lines(bad_lines, source, by_row=config.input.sql is not None):
            if config.input.on_bad == "skip":
                self.findings.set_aside += 1
            else:
                self.findings.add(problem)

    def _check_all(self, source: Source) -> None:
        for record in source:
            self.findings.records += 1
            try:
                self._check(record)
            except TemplateError as error:
                self.findings.add(Problem(record.where, error.message, error.remedy))
            except (ValueError, TypeError) as error:
                self.findings.add(Problem(record.where, str(error)))

    def _check(self, record: Record) -> None:
        payload = json_values.dumps(record.data)
        key = self._key(record, payload)
        if self.preview is not None:
            self._show(self.preview, key, record)
        if self.preview is not None or self.findings.handler:
            self.findings.sample = self.findings.sample or (key, record.data)

    def _show(self, preview: RequestPreview, key: str, record: Record) -> None:
        shown = preview.show(key, record.data)
        self.findings.rendered += 1
        if len(self.findings.first) < REQUESTS_SHOWN:
            self.findings.first.append((record.where, shown))

    def _key(self, record: Record, payload: bytes) -> str:
        if self.key is None:
            return ""
        try:
            key = self.key.of(record)
        except ValueError as error:
            self.findings.keyless += 1
            self.findings.add(Problem(record.where, str(error)))
            return ""
        self._compare(key, payload, record.where)
        return key

    def _compare(self, key: str, payload: bytes, where: str) -> None:
        before = self.seen.note(key, payload, where)
        if before is None:
            return
        if before.same:
            self.findings.repeated += 1
            return
        self.findings.clashes += 1
        what = f"the key {key!r} is already that of a different record, at {before.where}"
        self.findings.add(Problem(where, what, "make the keys unique, or remove one of the two records"))


@dataclass(frozen=True, slots=True)
class _EarlierRecord:
    where: str
    same: bool


class _SeenKeys:
    """The hashes of the keys so far, on disk, because an input may be larger than memory."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "seen", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("CREATE TABLE seen (key BLOB PRIMARY KEY, content BLOB, place TEXT) WITHOUT ROWID")
        self._connection.execute("BEGIN")

    def note(self, key: str, payload: bytes, where: str) -> _EarlierRecord | None:
        """Store a key; returns the earlier record with the same key, if there is one."""
        hashes = blake2b(key.encode(), digest_size=16).digest(), blake2b(payload, digest_size=8).digest()
        if self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (*hashes, where)).rowcount:
            return None
        row = self._connection.execute("SELECT content, place FROM seen WHERE key = ?", hashes[:1]).fetchone()
        return _EarlierRecord(row[1], row[0] == hashes[1])

    def close(self) -> None:
        """Close the temporary database."""
        self._connection.close()


def _bad_lines(file: Path, source: Source, *, by_row: bool) -> Iterator[Problem]:
    """Yield a problem for each line that was set aside."""
    if not file.exists():
        return
    with file.open(encoding="utf-8") as lines:
        for bad in map(json.loads, lines):
            where = f"{source.name}, row {bad['line']}" if by_row else f"{source.name}:{bad['line']}"
            yield Problem(where, bad["reason"])
