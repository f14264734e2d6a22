"""``rowcall run``: start, or go on."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import click

from rowcall.cli.common import config_argument, overrides, print_json, setting_options
from rowcall.cli.places import placed
from rowcall.cli.talk import finish_text, input_text, start_text, stopping_text
from rowcall.config import Config, load
from rowcall.errors import Exit
from rowcall.events import Event, InputRead
from rowcall.job import Status
from rowcall.pipeline import Ask, IfChanged, Options, Pipeline, Report
from rowcall.progress import Progress
from rowcall.store.base import RequestStanding


@click.command(epilog="Example: rowcall run -n 5 tries the first five records; rowcall run does the rest.")
@config_argument
@setting_options
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most N records this time.")
@click.option("--all", is_flag=True, help="Also pending records that are no longer in the input.")
@click.option("--batch", metavar="NAME", help="Label for the records that come in with this run.")
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="When the request has changed: done records keep their answers, are called again, or the run stops.",
)
@click.option("--retry-failed", is_flag=True, help="Failed records are tried again.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Export there.")
@click.option("--json", is_flag=True, help="A summary as JSON on stdout at the end.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--no-progress", is_flag=True, help="No line that is redrawn.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
def run(config: Path, **flags: Any) -> int:
    """Start, or go on: call the API for every record that is not done.

    The same command goes on after Ctrl+C, a crash or an outage. A record that is done is not called again unless
    what it would send has changed.
    """
    try:
        return asyncio.run(_run(load(config, overrides=overrides(flags)), flags))
    except asyncio.CancelledError:
        return Exit.INTERRUPTED


async def _run(config: Config, flags: dict[str, Any]) -> int:
    progress = Progress(sys.stderr, quiet=flags["quiet"], live=not flags["no_progress"])

    def hear(event: Event) -> None:
        if isinstance(event, InputRead):
            progress.say(input_text(event))
        progress.hear(event)

    pipeline = Pipeline(config, emit=hear)
    _obey_signals(pipeline, progress)
    progress.say(start_text(config, pipeline.concurrency))
    progress.start(pipeline, limit=flags["limit"])
    try:
        with placed(config):
            report = await pipeline.run(_options(flags, progress))
    finally:
        await progress.close()
    progress.say(finish_text(report, config))
    if flags["json"]:
        await _print_summary(config)
    return exit_code(report)


def _options(flags: dict[str, Any], progress: Progress) -> Options:
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not flags["yes"]
    return Options(
        limit=flags["limit"],
        batch=flags["batch"],
        if_changed=flags["if_changed"],
        ask=_asker(progress) if asks else None,
        retry_failed=flags["retry_failed"],
        output=flags["output"],
        left_behind=flags["all"],
    )


def _asker(progress: Progress) -> Ask:
    def ask(standing: RequestStanding) -> IfChanged:
        progress.say(
            f"The request has changed since {standing.done_under_others:,} records were done.\n"
            "  keep  their answers stand, now and later\n"
            "  redo  they are called again\n"
            "  stop  nothing is called"
        )
        heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # the loop stands still while it is asked
        try:
            answer: IfChanged = click.prompt(
                "keep, redo or stop", type=click.Choice(["keep", "redo", "stop"]), default="stop", err=True
            )
        finally:
            signal.signal(signal.SIGINT, heard)
        return answer

    return ask


def _obey_signals(pipeline: Pipeline, progress: Progress) -> None:
    """First Ctrl+C drains, the second drops the calls in flight, the third whatever is done; SIGTERM likewise."""
    loop, seen, run = asyncio.get_running_loop(), 0, asyncio.current_task()

    def stop(reason: str) -> None:
        nonlocal seen
        seen += 1
        if seen > 2 and run:
            run.cancel()
        if seen > 1:
            pipeline.drop()
            return
        progress.say(stopping_text(pipeline.in_flight, pipeline.config.stop.grace))
        pipeline.stop(reason)

    loop.add_signal_handler(signal.SIGINT, stop, "interrupted")
    loop.add_signal_handler(signal.SIGTERM, stop, "terminated")


async def _print_summary(config: Config) -> None:
    from rowcall.parts import open_reader
    from rowcall.summary import summarise

    async with await open_reader(config) as reader:
        print_json((await summarise(reader, config.name)).model_dump(mode="json"))


def exit_code(report: Report) -> Exit:
    """What the run's end means to a shell."""
    match report.ending.reason:
        case "done":
            return Exit.SOME_FAILED if report.counts.of(Status.FAILED) else Exit.DONE
        case "limit":
            failed = report.counts.of(Status.FAILED) if not report.left else report.tally.failed
            return Exit.SOME_FAILED if failed else Exit.DONE
        case "interrupted":
            return Exit.INTERRUPTED
        case "terminated":
            return Exit.TERMINATED
        case _:
            return Exit.STOPPED
