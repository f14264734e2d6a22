"""``rowcall verify``: check that input, store and export agree."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

import click

from rowcall.cli.setup.request_preview import SecretPlaceholders
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.flags import config_argument, json_option
from rowcall.cli.shared.job_lookup import only_kind
from rowcall.config import Config, load
from rowcall.engine.run_parts import RunParts
from rowcall.model.errors import Exit, OutputError
from rowcall.model.job import Status
from rowcall.progress import clean, counted
from rowcall.run.assembly import assemble
from rowcall.run.job_store import open_reader
from rowcall.run.write_output import write_output
from rowcall.store.base import Reader

GROUP = 500
"""Records compared at a time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that was found: how often, one place, what to do."""

    what: str
    count: int
    sample: str
    remedy: str

    def __str__(self) -> str:
        times = f"{self.count:,} x " if self.count > 1 else ""
        return f"{times}{self.what}: {clean(self.sample)}\n  {self.remedy}"


@dataclass(slots=True)
class VerifyReport:
    """What ``verify`` found; ``notes`` are remarks that are not faults."""

    kind: str
    records: int = 0
    jobs: int = 0
    answers: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether no fault was found."""
        return not self.findings


@click.command(epilog="Example: rowcall verify --json | jq .sound")
@config_argument
@json_option
def verify(config: Path, as_json: bool) -> int:
    """Check that input, store and export agree. Nothing is changed.

    The store must not be damaged, it must hold each record of the input once, each answer must be readable, and the
    export must be, line by line, what would be written now. Exit 2 if one of these fails.
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
        f"{verdict.kind}: {verdict.records:,} records in the input, {verdict.jobs:,} in the store,"
        f" {verdict.answers:,} answers: {'all sound' if verdict.sound else 'not sound'}"
    )


async def _verify(config: Config) -> VerifyReport:
    async with await open_reader(config) as reader:
        verdict = VerifyReport(only_kind(await reader.kinds(), config.name, config.store_location))
        await _check_store(reader, verdict)
        if not verdict.sound:
            verdict.notes.append("input and export were not compared, because the store has faults")
        elif config.input.path == "-":
            verdict.notes.append("standard input cannot be read again; only the store was checked")
        else:
            parts = await asyncio.to_thread(lambda: assemble(config.masked(SecretPlaceholders(config.folder))))
            await _Comparison(reader, config, parts, verdict).compare()
    return verdict


async def _check_store(reader: Reader, verdict: VerifyReport) -> None:
    counts = await reader.counts(verdict.kind)
    verdict.jobs, verdict.answers = counts.total, counts.of(Status.DONE)
    restore = "restore a backup (rowcall backup makes them)"
    verdict.findings += [Finding("the store is damaged", 1, fault, restore) for fault in await reader.check()]
    again = "call the API for it again: rowcall retry KEY --done, then rowcall run"
    verdict.findings += [Finding(f.what, f.count, f.sample_key, again) for f in await reader.flaws(verdict.kind)]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares the input and the export with the store."""

    reader: Reader
    config: Config
    parts: RunParts
    verdict: VerifyReport

    async def compare(self) -> None:
        """Compare; findings and notes are added to the verdict."""
        await self._compare_input()
        if self.config.output_path is None or self.config.output.path == "-":
            self.verdict.notes.append("[output] names no file, so there is no export to compare")
        elif (self.config.output.format or self.config.output_format) in ("sqlite", "parquet"):
            self.verdict.notes.append("the export is not a text file, and was not compared")
        elif await self.reader.live_runs(self.verdict.kind):
            self.verdict.notes.append("the export was not compared: a run is live, and writes it at its end")
        else:
            await self._compare_export(self.config.output_path)

    async def _compare_input(self) -> None:
        missing, edited, records = _RecordCount(), _RecordCount(), iter(self.parts.source)
        while group := await asyncio.to_thread(
            lambda: [self.parts.keying.entry(each) for each in islice(records, GROUP)]
        ):
            self.verdict.records += len(group)
            found = await self.reader.answers(self.verdict.kind, list({entry.key for entry in group}))
            for entry in group:
                if entry.key not in found:
                    missing.add(f"{entry.where}, key {entry.key}")
                elif found[entry.key].input_hash != entry.input_hash:
                    edited.add(f"{entry.where}, key {entry.key}")
        if missing.count:
            what, remedy = "not in the store", "add it with: rowcall run"
            self.verdict.findings.append(Finding(what, missing.count, missing.first, remedy))
        if edited.count:
            them = "it" if edited.count == 1 else "them"
            said = f"{counted(edited.count, 'record')} changed in the input since it was read"
            note = f"{said}, for example {edited.first}; rowcall run calls the API for {them} again"
            self.verdict.notes.append(note)

    async def _compare_export(self, path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="rowcall-") as folder:
            fresh = Path(folder) / path.name
            await write_output(self.config, self.parts, self.reader, fresh, format_=self.config.output.format)
            difference = await asyncio.to_thread(_difference, path, fresh)
        if difference:
            remedy = "write it again with: rowcall export"
            self.verdict.findings.append(Finding("the export differs from the store", 1, difference, remedy))


@dataclass(slots=True)
class _RecordCount:
    """How many records, and where the first one is."""

    count: int = 0
    first: str = ""

    def add(self, place: str) -> None:
        self.first = self.first or place
        self.count += 1


def _difference(path: Path, fresh: Path) -> str:
    """Return the first line in which two files differ; empty if they are the same."""
    try:
        with path.open("rb") as ours, fresh.open("rb") as theirs:
            pairs = enumerate(zip_longest(ours, theirs), 1)
            return next((f"{path.name}:{number}" for number, (a, b) in pairs if a != b), "")
    except FileNotFoundError:
        return f"{path.name} does not exist"
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror}") from error
