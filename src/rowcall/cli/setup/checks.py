"""Everything that can be found wrong before a call is made: secrets, templates, every row of the input.

Nothing is sent and nothing is written but to a temporary folder; memory stays flat whatever the input holds.
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

from rowcall.cli.setup.shown_requests import Marks, Preview, ShownRequest
from rowcall.cli.shared.config_places import problems_of
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

MOST_PROBLEMS = 100
"""Problems that are kept to be shown; more are counted."""
FIRST = 2
"""Records whose requests are shown."""


@dataclass(slots=True)
class Findings:
    """What was found.

    Attributes:
        records: rows read.
        rendered: those whose request can be built.
        repeated: the same record once more.
        clashes: rows whose key came before with other content.
        keyless: rows without a usable key.
        set_aside: lines that cannot be read and will be set aside.
        first: the first requests, with the place of their record.
        sample: the first record that can be called for.
        handler: the requests are made by a handler, which is not run.
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
        """Take a problem in, once."""
        if problem in self.problems:
            return
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def tried(self, work: Callable[[], T], config: Config) -> T | None:
        """What ``work`` gives; where it cannot, its problems are taken in and None comes back."""
        try:
            return work()
        except InputError as error:
            self.add(_of_input(error))
        except RowcallError as error:
            for problem in problems_of(error, config):
                self.add(problem)
        return None


def examine(config: Config) -> Findings:
    """Look at everything. Reads files and runs the commands that give secrets: blocks."""
    findings = Findings()
    resolved = findings.tried(config.resolve, config)
    if resolved is not None:
        findings.tried(lambda: make_network(resolved), config)
    calls = findings.tried(lambda: calls_of(config.masked(Marks(config.folder))), config)
    findings.tried(lambda: make_prices(config), config)
    preview = None if config.handler else findings.tried(lambda: Preview(config), config)
    findings.handler = config.handler is not None
    key = findings.tried(lambda: compile_key(config.input.key), config)
    source = findings.tried(lambda: open_input(_setting_bad_lines_aside(config)), config)
    if source is None or findings.tried(lambda: (source.columns(),), config) is None:
        return findings
    if config.output_path:
        findings.tried(lambda: check_output_columns(config, source.columns()), config)
    trees = [*(calls.trees if calls else ()), *([key.tree] if key and key.tree else [])]
    if not findings.tried(lambda: _fit(config, trees, source), config):
        preview = key = None
    with tempfile.TemporaryDirectory(prefix="rowcall-") as folder, closing(_Seen(Path(folder))) as seen:
        _Reading(findings, preview, key, seen).read(source, Path(folder) / "bad.jsonl", config)
    return findings


def _fit(config: Config, trees: list[TemplateTree], source: Source) -> bool:
    """True; raises where a template or the handler does not fit the columns."""
    check_columns(trees, source.columns())
    check_handler_columns(config, source.columns())
    return True


def _setting_bad_lines_aside(config: Config) -> Config:
    """So that one bad line does not hide those after it."""
    return config.model_copy(update={"input": config.input.model_copy(update={"on_bad": "skip"})})


@dataclass(frozen=True, slots=True)
class _Reading:
    """One reading of the input; ``preview`` and ``key`` are None where they are known not to fit it."""

    findings: Findings
    preview: Preview | None
    key: Key | None
    seen: _Seen

    def read(self, source: Source, bad_lines: Path, config: Config) -> None:
        """Read every row."""
        source.quarantine = bad_lines
        self.findings.tried(lambda: self._all(source), config)
        for problem in _bad_lines(bad_lines, source, by_row=config.input.sql is not None):
            if config.input.on_bad == "skip":
                self.findings.set_aside += 1
            else:
                self.findings.add(problem)

    def _all(self, source: Source) -> None:
        for record in source:
            self.findings.records += 1
            try:
                self._one(record)
            except TemplateError as error:
                self.findings.add(Problem(record.where, error.message, error.remedy))
            except (ValueError, TypeError) as error:
                self.findings.add(Problem(record.where, str(error)))

    def _one(self, record: Record) -> None:
        payload = json_values.dumps(record.data)
        key = self._key(record, payload)
        if self.preview is not None:
            self._show(self.preview, key, record)
        if self.preview is not None or self.findings.handler:
            self.findings.sample = self.findings.sample or (key, record.data)

    def _show(self, preview: Preview, key: str, record: Record) -> None:
        shown = preview.show(key, record.data)
        self.findings.rendered += 1
        if len(self.findings.first) < FIRST:
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
        what = f"the key {key!r} came before with other content, at {before.where}"
        self.findings.add(Problem(where, what, "make the keys unique, or take one of the two records out"))


@dataclass(frozen=True, slots=True)
class _Before:
    where: str
    same: bool


class _Seen:
    """Keys by their hashes, on disk: an input may hold more than memory does."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "seen", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("CREATE TABLE seen (key BLOB PRIMARY KEY, content BLOB, place TEXT) WITHOUT ROWID")
        self._connection.execute("BEGIN")

    def note(self, key: str, payload: bytes, where: str) -> _Before | None:
        """Keep a key; what came before under it, if anything did."""
        hashes = blake2b(key.encode(), digest_size=16).digest(), blake2b(payload, digest_size=8).digest()
        if self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (*hashes, where)).rowcount:
            return None
        row = self._connection.execute("SELECT content, place FROM seen WHERE key = ?", hashes[:1]).fetchone()
        return _Before(row[1], row[0] == hashes[1])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _bad_lines(file: Path, source: Source, *, by_row: bool) -> Iterator[Problem]:
    """What the reading set aside."""
    if not file.exists():
        return
    with file.open(encoding="utf-8") as lines:
        for bad in map(json.loads, lines):
            yield Problem(
                f"{source.name}, row {bad['line']}" if by_row else f"{source.name}:{bad['line']}", bad["reason"]
            )


def _of_input(error: InputError) -> Problem:
    return Problem(error.where, error.message.removeprefix(f"{error.where}: "), error.remedy)
