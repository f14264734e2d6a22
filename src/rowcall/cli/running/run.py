"""``rowcall run``: start or resume a batch job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.run_config import PrintFlags, options_of, run_config
from rowcall.cli.shared.flags import (
    batch_label_option,
    config_argument,
    config_options,
    events_option,
    if_changed_option,
    limit_option,
    load_config,
    no_progress_option,
    now_option,
    processes_option,
    quiet_option,
    require_one_process,
    sample_option,
    setting_options,
    summary_option,
    yes_option,
)
from rowcall.cli.shared.problem_lines import with_config_lines
from rowcall.config import Config
from rowcall.model.errors import RowcallError


@click.command(epilog="Example: rowcall run -n 5 tries the first five records; rowcall run does the rest.")
@config_argument
@setting_options
@config_options
@processes_option
@limit_option
@sample_option
@click.option("--all", is_flag=True, help="Also work on pending records that are no longer in the input.")
@now_option
@batch_label_option
@if_changed_option
@click.option("--retry-failed", is_flag=True, help="Try failed records again.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Export to FILE instead of output.path."
)
@summary_option
@events_option
@click.option(
    "--rehearse", is_flag=True, help="Rehearse against a fake API and a copy of the store, and say what to expect."
)
@quiet_option
@no_progress_option
@yes_option
def run(config: Path, **flags: Any) -> int:
    """Start or resume: call the API for every record that is not done.

    After Ctrl+C, a crash or an outage, the same command resumes. A record that is done is not called again, unless
    what it would send has changed.

    With --rehearse nothing is sent. Every record is rendered, and the job runs for up to 20 s against a fake API, with
    the limits of the config. [api.mock] sets its latency and faults, as in --set api.mock.latency=2s.
    """
    loaded = load_config(config, flags)
    if flags["rehearse"]:
        return _rehearse(loaded, flags)
    require_one_process(flags)
    commands = NextCommands.for_config(config).with_flags(flags)
    return run_config(loaded, options_of(flags), PrintFlags.of(flags), commands)


def _rehearse(config: Config, flags: dict[str, Any]) -> int:
    from rowcall.cli.running.rehearsal import rehearse

    if given := [flag for flag in ("json", "events") if flags[flag]]:
        remedy = f"a rehearsal prints its findings as text; --{given[0]} is for real runs"
        raise RowcallError(f"--rehearse and --{given[0]} do not go together", remedy=remedy)
    with with_config_lines(config):
        return rehearse(config, options_of(flags), quiet=flags["quiet"])
