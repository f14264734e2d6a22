"""``rowcall import``: store the answers of a provider's batch API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from rowcall.batchapi.read_answers import ImportedAnswers, import_answers
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.flags import config_options, json_option, load_config
from rowcall.model.errors import Exit
from rowcall.progress import clean, counted
from rowcall.store.types import ImportResult

_ADVICE = {
    ImportResult.CHANGED: "these answers belong to an earlier input or request; they are stored but not used",
    ImportResult.UNKNOWN: "no record has such a key; to read the input first: rowcall run -n 1, or export requests",
    ImportResult.RUNNING: "a run is calling the API for them; import the file again when it has ended",
}


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
    """Store the answers of a provider's batch API: an output file of OpenAI or Anthropic, by custom_id.

    Answers are checked like those of a run, and their tokens are counted. Records that the batch did not answer stay
    pending. Importing a file twice changes nothing. Exit 1 if a record failed, has changed since, or is unknown.
    """
    imported = asyncio.run(
        import_answers(load_config(config, flags), file, waits=lambda who: click.echo(who, err=True))
    )
    if as_json:
        print_json(
            {fate.name.lower(): imported.counts.get(fate, 0) for fate in ImportResult} | {"total": imported.total}
        )
    click.echo(_imported_text(file, imported), err=True)
    bad = (ImportResult.FAILED, ImportResult.CHANGED, ImportResult.UNKNOWN)
    return Exit.SOME_FAILED if any(imported.counts.get(fate) for fate in bad) else Exit.DONE


def _imported_text(file: Path, imported: ImportedAnswers) -> str:
    counts = ", ".join(f"{imported.counts[fate]:,} {fate}" for fate in ImportResult if fate in imported.counts)
    lines = [f"{file}: {counted(imported.total, 'answer')}: {counts}"]
    for fate, advice in _ADVICE.items():
        if fate in imported.counts:
            keys = imported.sample[fate]
            more = ", ..." if imported.counts[fate] > len(keys) else ""
            lines.append(f"  {fate}: {', '.join(map(clean, keys))}{more}; {advice}")
    return "\n".join(lines)
