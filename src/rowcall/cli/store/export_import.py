"""Verbs that write and read files: export, import."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import click

from rowcall.batchapi.read_answers import ImportedAnswers, import_answers
from rowcall.batchapi.write_requests import SHAPES, BatchFormat, write_requests
from rowcall.cli.shared.common import config_argument, config_options, json_option, load_config, print_json
from rowcall.config import Config
from rowcall.engine.options import IfChanged, Options
from rowcall.model.errors import Exit, RowcallError
from rowcall.model.job import Status
from rowcall.output import FormatName
from rowcall.progress import clean, counted
from rowcall.run.pipeline import Pipeline
from rowcall.store.types import ImportResult


@click.command(epilog="Example: rowcall export -o - --format jsonl --only failed | head")
@config_argument
@config_options
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to; - is stdout.")
@click.option(
    "--format",
    "format_",
    envvar="ROWCALL_FORMAT",
    type=click.Choice([*get_args(FormatName), *SHAPES]),
    help="Left out: by the file's suffix. openai-batch and anthropic-batch: the requests that are still to do.",
)
@click.option("--only", type=click.Choice(["done", "failed", "pending"]), help="Only records with that status.")
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="For batch formats, when the request has changed: as in run.",
)
def export(
    config: Path,
    output: Path | None,
    format_: str | None,
    only: str | None,
    if_changed: IfChanged | None,
    **flags: Any,
) -> None:
    """Write the input with its answers: every column as it was, in its order, the new columns beside it.

    As openai-batch or anthropic-batch: the requests of pending records for the provider's own batch API, with the keys
    as custom_id; rowcall import takes its output file in.
    """
    loaded = load_config(config, flags)
    for name in (each for each in SHAPES if each == format_):
        _export_requests(loaded, output, name, only, Options(if_changed=if_changed))
        return
    path = output or loaded.output_path
    if path is None:
        raise RowcallError(f"{config}: [output] has no path", remedy="-o FILE, or path in [output]")
    named = next((name for name in get_args(FormatName) if name == format_), None)
    rows = asyncio.run(Pipeline(loaded).export(path, format_=named, only=Status(only) if only else None))
    click.echo(f"{path}: {counted(rows, 'row')}", err=True)


def _export_requests(
    config: Config, output: Path | None, name: BatchFormat, only: str | None, options: Options
) -> None:
    if output is None:
        raise RowcallError(f"{name} is a file of requests, not the export", remedy="-o requests.jsonl")
    written = asyncio.run(write_requests(config, output, SHAPES[name], only=Status(only or "pending"), options=options))
    files = ", ".join(map(str, written.files))
    click.echo(
        f"{files}: {counted(written.requests, 'request')}; their output file comes back by rowcall import", err=True
    )


@click.command("import", epilog="Example: rowcall import output.jsonl && rowcall run")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path("config.toml"),
    show_default=True,
    help="The config of the batch job.",
)
@config_options
@json_option
def import_(file: Path, config: Path, as_json: bool, **flags: Any) -> int:
    """Take in answers that a provider's batch API made: its output file, of OpenAI or Anthropic, by custom_id.

    Answers are read and accepted as those of a run, and their tokens counted. Records that the batch did not call stay
    pending. Doing it again changes nothing. Exit 1 where a record failed, changed since, or is unknown.
    """
    loaded = load_config(config, flags)
    imported = asyncio.run(import_answers(loaded, file, waits=lambda text: click.echo(text, err=True)))
    if as_json:
        print_json(
            {fate.name.lower(): imported.counts.get(fate, 0) for fate in ImportResult} | {"total": imported.total}
        )
    click.echo(_imported_text(file, imported), err=True)
    bad = (ImportResult.FAILED, ImportResult.CHANGED, ImportResult.UNKNOWN)
    return Exit.SOME_FAILED if any(imported.counts.get(fate) for fate in bad) else Exit.DONE


def _imported_text(file: Path, imported: ImportedAnswers) -> str:
    fates = ", ".join(f"{imported.counts[fate]:,} {fate}" for fate in ImportResult if fate in imported.counts)
    lines = [f"{file}: {counted(imported.total, 'answer')}: {fates}"]
    lines += [f"  {fate}: {_keys(imported, fate)}; {said}" for fate, said in _SAID.items() if fate in imported.counts]
    return "\n".join(lines)


_SAID = {
    ImportResult.CHANGED: "they are answers to what these records no longer ask, and kept aside",
    ImportResult.UNKNOWN: "no record has that key; rowcall run -n 1 or an export of requests brings the input in",
    ImportResult.RUNNING: "a run has them; import again when it has ended",
}


def _keys(imported: ImportedAnswers, fate: ImportResult) -> str:
    keys = imported.sample[fate]
    more = ", ..." if imported.counts[fate] > len(keys) else ""
    return ", ".join(clean(key) for key in keys) + more
