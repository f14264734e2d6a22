"""Runs a config to its end and shows it in the terminal: for run, work and batch."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import click

from rowcall.cli.running.event_log import EventLog
from rowcall.cli.running.event_loop import loop_factory
from rowcall.cli.running.exit_code import SIGNAL_CODES, exit_code
from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.run_messages import INTERRUPTED, answers_kept_text, finish_text, input_text, start_text
from rowcall.cli.running.stop_signals import handle_stop_signals
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.problem_lines import with_config_lines
from rowcall.config import Config
from rowcall.engine.options import Ask, IfChanged, Options
from rowcall.model.errors import Exit, RowcallError
from rowcall.model.events import Event, Exporting, InputRead, Listener
from rowcall.progress import ProgressDisplay
from rowcall.run.assembly import assemble, assemble_without_input
from rowcall.run.pipeline import Pipeline
from rowcall.store.types import RequestStanding, Role


@dataclass(frozen=True, slots=True)
class PrintFlags:
    """The flags that say what a run prints and asks; see ``rowcall run --help``."""

    json: bool = False
    events: Path | None = None
    quiet: bool = False
    no_progress: bool = False
    yes: bool = False

    @classmethod
    def of(cls, flags: Mapping[str, Any]) -> Self:
        """Take them from the flags of a verb, which need not have all of them."""
        return cls(**{field.name: flags[field.name] for field in fields(cls) if field.name in flags})


def options_of(flags: Mapping[str, Any], role: Role = Role.RUN) -> Options:
    """Return what the flags of a verb ask of a run; flags that the verb does not have get their defaults."""
    names = ("limit", "sample", "batch", "if_changed", "retry_failed", "output", "now", "wait")
    given = {name: flags[name] for name in names if name in flags}
    return Options(left_behind=flags.get("all", False), role=role, **given)


def run_config(config: Config, options: Options, prints: PrintFlags, commands: NextCommands) -> int:
    """Run a config to its end; returns the exit code.

    Args:
        config: what to run.
        options: what is asked of the run.
        prints: what is printed.
        commands: those that may come next, for the messages.

    Raises:
        RowcallError: more than one of export, summary and events would go to stdout.
        ConfigError: the config asks for uvloop, which is not installed.
    """
    _require_one_on_stdout(config, options, prints)
    try:
        with ExitStack() as stack:
            log = stack.enter_context(EventLog(prints.events)) if prints.events else None
            runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory(config)))
            return runner.run(_run(config, options, prints, commands, log))
    except KeyboardInterrupt:  # while the export was written
        click.echo(INTERRUPTED, err=True)
        return Exit.INTERRUPTED


def _require_one_on_stdout(config: Config, options: Options, prints: PrintFlags) -> None:
    wanted = {
        "the export": str(options.output or config.output_path) == "-",
        "--json": prints.json,
        "--events": str(prints.events) == "-",
    }
    there = [what for what, goes in wanted.items() if goes]
    if len(there) > 1:
        what = f"{' and '.join(there)} cannot both go to stdout"
        raise RowcallError(what, remedy="write one of them to a file with -o FILE or --events FILE, or omit --json")


async def _run(
    config: Config, options: Options, prints: PrintFlags, commands: NextCommands, log: EventLog | None
) -> int:
    progress = ProgressDisplay(sys.stderr, quiet=prints.quiet, live=not prints.no_progress)
    # A run with --limit is that of one process, because it counts the records that it begins.
    processes = 1 if options.limit else config.pace.processes
    pipeline = _pipeline(config, options.role, processes, _listener(progress, log))
    signals = handle_stop_signals(pipeline, progress)
    progress.say(start_text(config, pipeline.view.concurrency, processes, options.role))
    progress.start(pipeline, limit=options.limit)
    if log:
        log.began(config, pipeline.view.concurrency)
    if sys.stdin.isatty() and sys.stderr.isatty() and not prints.yes:
        options = replace(options, ask=_question(progress))
    try:
        with with_config_lines(config):
            report = await pipeline.run(options)
    except asyncio.CancelledError:
        if not signals:
            raise
        return SIGNAL_CODES[signals[0]]
    finally:
        await progress.close()
    progress.say(finish_text(report, config, commands))
    if options.if_changed == "redo" and (kept := answers_kept_text(report, commands)):
        progress.say(kept)
    if log:
        log.ended(report)
    if prints.json:
        await _print_summary(config)
    return exit_code(report)


def _pipeline(config: Config, role: Role, processes: int, emit: Listener) -> Pipeline:
    if processes == 1:
        return Pipeline(config, emit=emit)
    from rowcall.processes.helpers import HelperGroup

    helpers = HelperGroup(processes - 1, assemble_without_input if role is Role.WORK else assemble)
    return Pipeline(config, emit=emit, make_parts=helpers.assemble, helpers=helpers)


def _listener(progress: ProgressDisplay, log: EventLog | None) -> Listener:
    def hear(event: Event) -> None:
        if isinstance(event, InputRead):
            progress.say(input_text(event))
        if isinstance(event, Exporting):
            # Writing the export may wait for its reader (``-o - | less``), so Ctrl+C must interrupt the write itself.
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        progress.hear(event)
        if log:
            log(event)

    return hear


def _question(progress: ProgressDisplay) -> Ask:
    """Return what asks the user about done records when the request has changed."""

    def ask(standing: RequestStanding) -> IfChanged:
        number = standing.done_under_others
        records = "1 record was" if number == 1 else f"{number:,} records were"
        progress.say(
            f"The request has changed since {records} done. What should happen to their answers?\n"
            "  keep  keep the answers, now and in later runs\n"
            "  redo  call the API for these records again\n"
            "  stop  stop here, without any call"
        )
        # The loop is blocked while the question is asked, so its own handler of Ctrl+C would not run.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            answer: IfChanged = click.prompt(
                "keep, redo or stop", type=click.Choice(["keep", "redo", "stop"]), default="stop", err=True
            )
        finally:
            signal.signal(signal.SIGINT, handler)
        return answer

    return ask


async def _print_summary(config: Config) -> None:
    from rowcall.run.job_store import open_reader
    from rowcall.run.summary import summarise

    async with await open_reader(config) as reader:
        print_json((await summarise(reader, config.name)).model_dump(mode="json"))
