"""``rowcall verify``: whether input, store and export belong together."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

import click

from rowcall.cli.setup.shown_requests import Marks
from rowcall.cli.shared.common import config_argument, json_option, only_kind, print_json
from rowcall.config import Config, load
from rowcall.engine.run_parts import RunParts
from rowcall.model.errors import Exit, OutputError
from rowcall.model.job import Record, Status
from rowcall.progress import clean
from rowcall.run.assembly import assemble
from rowcall.run.job_store import open_reader
from rowcall.run.write_output import write_output
from rowcall.store.base import Reader
from rowcall.store.types import Entry

GROUP = 500
"""Records compared at a time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be: how often, one place, what to do."""

    what: str
    count: int
    sample: str
    remedy: str

    def __str__(self) -> str:
        times = f"{self.count:,} x " if self.count > 1 else ""
        return f"{times}{self.what}: {clean(self.sample)}\n  {self.remedy}"


@dataclass(slots=True)
class VerifyReport:
    """What ``verify`` found; ``notes`` are things to know that are no faults."""

    kind: str
    records: int = 0
    jobs: int = 0
    answers: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Nothing was found."""
        return not self.findings


@click.command(epilog="Example: rowcall verify --json | jq .sound")
@config_argument
@json_option
def verify(config: Path, as_json: bool) -> int:
    """See whether input, store and export belong together; nothing is changed.

    The file is sound, each record of the input is in the store once, each answer can be read, and the export is, line
    by line, what would be written now. Exit 2 where one of these is not so.
    """
    verdict = asyncio.run(_verify(load(config)))
    if as_json:
        print_json({"sound": verdict.sound} | asdict(verdict))
    else:
        click.echo("\n".join(_lines(verdict)))
    return Exit.DONE if verdict.sound else Exit.USAGE


def _lines(verdict: VerifyReport) -> Iterator[str]:
    yield from map(str, verdict.findings)
    yield from (f"note: {clean(note)}" for note in verdict.notes)
    yield (
        f"{verdict.kind}: {verdict.records:,} records, {verdict.jobs:,} in the store, {verdict.answers:,} answers,"
        f" {'sound' if verdict.sound else 'not sound'}"
    )


async def _verify(config: Config) -> VerifyReport:
    async with await open_reader(config) as reader:
        verdict = VerifyReport(only_kind(await reader.kinds(), config.name, config.store_location))
        await _look_at_store(reader, verdict)
        if not verdict.sound:
            verdict.notes.append("input and export are not compared with a store that is not sound")
        elif config.input.path == "-":
            verdict.notes.append("standard input cannot be read again; only the store was looked at")
        else:
            parts = await asyncio.to_thread(lambda: assemble(config.masked(Marks(config.folder))))
            await _Comparison(reader, config, parts, verdict).make()
    return verdict


async def _look_at_store(reader: Reader, verdict: VerifyReport) -> None:
    counts = await reader.counts(verdict.kind)
    verdict.jobs, verdict.answers = counts.total, counts.of(Status.DONE)
    restore = "restore a backup: rowcall backup makes them"
    verdict.findings += [Finding("the file is damaged", 1, fault, restore) for fault in await reader.check()]
    again = "have it called again: rowcall retry KEY --done, then rowcall run"
    verdict.findings += [Finding(f.what, f.count, f.sample_key, again) for f in await reader.flaws(verdict.kind)]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The input and the export against the store."""

    reader: Reader
    config: Config
    parts: RunParts
    verdict: VerifyReport

    async def make(self) -> None:
        """Compare; findings and notes go into the verdict."""
        await self._compare_input()
        if self.config.output_path is None or self.config.output.path == "-":
            self.verdict.notes.append("[output] names no file to compare")
        elif (self.config.output.format or self.config.output_format) in ("sqlite", "parquet"):
            self.verdict.notes.append("[output] is no text, and not compared")
        elif await self.reader.live_runs(self.verdict.kind):
            self.verdict.notes.append("a run is alive; it writes the export at its end")
        else:
            await self._compare_export(self.config.output_path)

    async def _compare_input(self) -> None:
        missing, edited, records = _Counted(), _Counted(), iter(self.parts.source)
        while group := await asyncio.to_thread(lambda: [self._known(each) for each in islice(records, GROUP)]):
            self.verdict.records += len(group)
            found = await self.reader.answers(self.verdict.kind, list({entry.key for entry in group}))
            for entry in group:
                if entry.key not in found:
                    missing.add(f"{entry.where}, key {entry.key}")
                elif found[entry.key].input_hash != entry.input_hash:
                    edited.add(f"{entry.where}, key {entry.key}")
        if missing.count:
            what, remedy = "not in the store", "bring it in: rowcall run"
            self.verdict.findings.append(Finding(what, missing.count, missing.first, remedy))
        if edited.count:
            note = (
                f"{edited.count:,} edited since they were brought in, such as {edited.first}; rowcall run sees to them"
            )
            self.verdict.notes.append(note)

    def _known(self, record: Record) -> Entry:
        return self.parts.keying.entry(record)

    async def _compare_export(self, path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="rowcall-") as folder:
            fresh = Path(folder) / path.name
            await write_output(self.config, self.parts, self.reader, fresh, format_=self.config.output.format)
            difference = await asyncio.to_thread(_difference, path, fresh)
        if difference:
            remedy = "write it anew: rowcall export"
            self.verdict.findings.append(Finding("the export is not what the store holds", 1, difference, remedy))


@dataclass(slots=True)
class _Counted:
    count: int = 0
    first: str = ""

    def add(self, place: str) -> None:
        self.first = self.first or place
        self.count += 1


def _difference(path: Path, fresh: Path) -> str:
    """The first line in which two files differ; empty where they do not."""
    try:
        with path.open("rb") as ours, fresh.open("rb") as theirs:
            pairs = enumerate(zip_longest(ours, theirs), 1)
            return next((f"{path.name}:{number}" for number, (a, b) in pairs if a != b), "")
    except FileNotFoundError:
        return f"{path.name} is not there"
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror}") from error
