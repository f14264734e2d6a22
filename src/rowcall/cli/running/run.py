"""``rowcall run``: start, or go on."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.event_log import EventLines
from rowcall.cli.running.event_loop import loop_factory
from rowcall.cli.running.run_messages import (
    LEFT,
    Following,
    finish_text,
    input_text,
    kept_text,
    start_text,
    stopping_text,
)
from rowcall.cli.shared.common import (
    config_argument,
    config_options,
    load_config,
    print_json,
    processes_option,
    setting_options,
)
from rowcall.cli.shared.config_places import placed
from rowcall.config import Config
from rowcall.engine.options import Ask, IfChanged, Options, Report
from rowcall.model.errors import Exit, RowcallError
from rowcall.model.events import Event, Exporting, InputRead, Listener
from rowcall.model.job import Status
from rowcall.progress import ProgressDisplay
from rowcall.run.assembly import assemble, assemble_without_input
from rowcall.run.pipeline import Pipeline
from rowcall.store.types import RequestStanding, Role


@click.command(epilog="Example: rowcall run -n 5 tries the first five records; rowcall run does the rest.")
@config_argument
@setting_options
@config_options
@processes_option
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most N records this time.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N records of the input, the same each time.")
@click.option("--all", is_flag=True, help="Also pending records that are no longer in the input.")
@click.option("--now", is_flag=True, help="Do not wait for what an earlier run was asked to; the key is another one.")
@click.option("--batch", metavar="NAME", help="Label for the records that come in with this run.")
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="When the request has changed: done records keep their answers, are called again, or the run stops.",
)
@click.option("--retry-failed", is_flag=True, help="Failed records are tried again.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Export there.")
@click.option("--json", is_flag=True, help="A summary as JSON on stdout at the end.")
@click.option(
    "--events", type=click.Path(path_type=Path), metavar="FILE", help="All that happens as JSON lines; - is stdout."
)
@click.option(
    "--rehearse", is_flag=True, help="Against a fake API, on a copy of the store; says what the run would take."
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--no-progress", is_flag=True, help="No line that is redrawn.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
def run(config: Path, **flags: Any) -> int:
    """Start, or go on: call the API for every record that is not done.

    The same command goes on after Ctrl+C, a crash or an outage. A record that is done is not called again unless
    what it would send has changed.

    With --rehearse nothing is sent: every row is rendered, and the run goes for up to 20 s against the fake API, with
    the limits of the config in force and the latency and faults of [api.mock], as in --set api.mock.latency=2s.
    """
    loaded = load_config(config, flags)
    if flags["rehearse"]:
        return _rehearse(loaded, flags)
    return carry_out(loaded, flags, Following.of(config).with_flags(flags))


def _rehearse(config: Config, flags: dict[str, Any]) -> int:
    from rowcall.cli.setup.rehearsal import rehearse

    if given := [flag for flag in ("json", "events") if flags[flag]]:
        remedy = "what it finds is text on stdout; --json and --events tell of a real run"
        raise RowcallError(f"--rehearse and --{given[0]} do not go together", remedy=remedy)
    with placed(config):
        return rehearse(config, _options(flags, ProgressDisplay(sys.stderr)), quiet=flags["quiet"])


def carry_out(config: Config, flags: dict[str, Any], following: Following) -> int:
    """Run a config to its end; ``flags`` are those of ``run``, ``following`` the commands that come after it.

    Raises:
        RowcallError: two of export, summary and events would go to stdout; a limit for several processes.
        ConfigError: the config asks for uvloop, which is not installed.
    """
    _require_one_on_stdout(config, flags)
    _require_no_limit(flags)
    try:
        with ExitStack() as stack:
            lines = stack.enter_context(EventLines(flags["events"])) if flags["events"] else None
            runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory(config)))
            return runner.run(_run(config, flags, following, lines))
    except KeyboardInterrupt:  # while the export was written
        click.echo(LEFT, err=True)
        return Exit.INTERRUPTED


def _require_no_limit(flags: dict[str, Any]) -> None:
    if flags["limit"] and (flags["processes"] or 1) > 1:
        remedy = "one process works on N records; --sample N takes so many of the input, for all processes"
        raise RowcallError("--processes and -n do not go together", remedy=remedy)


def _processes(config: Config, flags: dict[str, Any]) -> int:
    """How many work; a limited run is one process's, which counts what it begins."""
    return 1 if flags["limit"] else config.pace.processes


def _require_one_on_stdout(config: Config, flags: dict[str, Any]) -> None:
    wanted = {
        "the export": str(flags["output"] or config.output_path) == "-",
        "--json": flags["json"],
        "--events": str(flags["events"]) == "-",
    }
    there = [what for what, goes in wanted.items() if goes]
    if len(there) > 1:
        what = f"{' and '.join(there)} cannot both go to stdout"
        raise RowcallError(what, remedy="-o FILE or --events FILE, or leave out --json")


async def _run(config: Config, flags: dict[str, Any], following: Following, lines: EventLines | None) -> int:
    progress = ProgressDisplay(sys.stderr, quiet=flags["quiet"], live=not flags["no_progress"])
    pipeline = _pipeline(config, flags, _listener(progress, lines))
    heard = _obey_signals(pipeline, progress)
    role = flags.get("role", Role.RUN)
    progress.say(start_text(config, pipeline.view.concurrency, _processes(config, flags), role))
    progress.start(pipeline, limit=flags["limit"])
    if lines:
        lines.began(config, pipeline.view.concurrency)
    try:
        with placed(config):
            report = await pipeline.run(_options(flags, progress))
    except asyncio.CancelledError:
        if not heard:
            raise
        return _SIGNALLED[heard[0]]
    finally:
        await progress.close()
    progress.say(finish_text(report, config, following))
    if flags["if_changed"] == "redo" and (kept := kept_text(report, following)):
        progress.say(kept)
    if lines:
        lines.ended(report)
    if flags["json"]:
        await _print_summary(config)
    return exit_code(report)


def _pipeline(config: Config, flags: dict[str, Any], emit: Listener) -> Pipeline:
    if _processes(config, flags) == 1:
        return Pipeline(config, emit=emit)
    from rowcall.processes.helpers import HelperGroup

    working = flags.get("role", Role.RUN) is Role.WORK
    helpers = HelperGroup(config.pace.processes - 1, assemble_without_input if working else assemble)
    return Pipeline(config, emit=emit, assembling=helpers.assemble, helpers=helpers)


def _listener(progress: ProgressDisplay, lines: EventLines | None) -> Listener:
    def hear(event: Event) -> None:
        if isinstance(event, InputRead):
            progress.say(input_text(event))
        if isinstance(event, Exporting):
            _let_go_of_sigint()
        progress.hear(event)
        if lines:
            lines(event)

    return hear


def _let_go_of_sigint() -> None:
    """Let Ctrl+C interrupt the writing of the export itself, which may wait for whoever reads it (``-o - | less``)."""
    asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


def _options(flags: dict[str, Any], progress: ProgressDisplay) -> Options:
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not flags["yes"]
    return Options(
        limit=flags["limit"],
        batch=flags["batch"],
        if_changed=flags["if_changed"],
        ask=_asker(progress) if asks else None,
        retry_failed=flags["retry_failed"],
        output=flags["output"],
        left_behind=flags["all"],
        sample=flags["sample"],
        now=flags["now"],
        role=flags.get("role", Role.RUN),
        wait=flags.get("wait", False),
    )


def _asker(progress: ProgressDisplay) -> Ask:
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


def _obey_signals(pipeline: Pipeline, progress: ProgressDisplay) -> list[str]:
    """First Ctrl+C drains, the second drops the calls in flight, the third leaves whatever is done; so does SIGTERM.

    So does SIGHUP, unless whoever started the run (``nohup``) has it ignored. Where no call can be under way, which is
    before the store is open and while the export is written, the first one leaves at once.

    Returns:
        The reasons that were heard, filled as they come.
    """
    loop, run = asyncio.get_running_loop(), asyncio.current_task()
    heard: list[str] = []

    def stop(reason: str) -> None:
        heard.append(reason)
        if run and (len(heard) > 2 or not pipeline.working):
            progress.say(LEFT)
            run.cancel()
            return
        if len(heard) > 1:
            pipeline.drop()
            return
        progress.say(stopping_text(pipeline.view.in_flight, pipeline.config.stop.grace))
        pipeline.stop(reason)

    loop.add_signal_handler(signal.SIGINT, stop, "interrupted")
    loop.add_signal_handler(signal.SIGTERM, stop, "terminated")
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop, "hung_up")
    return heard


async def _print_summary(config: Config) -> None:
    from rowcall.run.job_store import open_reader
    from rowcall.run.summary import summarise

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
        case reason:
            return _SIGNALLED.get(reason, Exit.STOPPED)


_SIGNALLED = {"interrupted": Exit.INTERRUPTED, "terminated": Exit.TERMINATED, "hung_up": Exit.HUNG_UP}
