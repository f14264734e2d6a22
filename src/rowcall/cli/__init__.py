"""The command ``rowcall``. Each verb has a module of its own, which is imported only when the verb is used.

A module has the name of its verb, followed by ``_verb`` if another module of the package has that name.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click
from click.core import ParameterSource

from rowcall import __version__
from rowcall.model.errors import Exit, RowcallError

VERBS = {
    "init": ("rowcall.cli.setup.init:init", "Write a config to start from."),
    "check": ("rowcall.cli.setup.check:check", "Find everything that is wrong before a run; nothing is sent."),
    "preview": ("rowcall.cli.setup.preview:preview", "Show the first requests, and estimate the whole run."),
    "run": ("rowcall.cli.running.run:run", "Start or resume: call the API for every record not done."),
    "enqueue": ("rowcall.cli.running.enqueue:enqueue", "Store the records of the input without calling the API."),
    "work": ("rowcall.cli.running.work:work", "Call the API for stored records, on any number of machines."),
    "batch": ("rowcall.cli.running.batch:batch", "Run an OpenAI batch file against any endpoint, without a config."),
    "status": ("rowcall.cli.inspecting.status:status", "Show how a batch job stands, from any terminal."),
    "errors": ("rowcall.cli.inspecting.errors_verb:errors", "Show failures by reason, and what to do about them."),
    "show": ("rowcall.cli.inspecting.show:show", "Show one record: its input, request, tries and answer."),
    "retry": ("rowcall.cli.changing.retry:retry", "Set records back to pending."),
    "cancel": ("rowcall.cli.changing.cancel:cancel", "Cancel records that are not done."),
    "rollback": ("rowcall.cli.changing.rollback:rollback", "Withdraw the answers of a batch."),
    "set": ("rowcall.cli.changing.set_verb:set_", "Change live runs: concurrency, limits, max_cost, pause."),
    "export": ("rowcall.cli.transfer.export:export", "Write the input with its answers."),
    "import": ("rowcall.cli.transfer.import_verb:import_", "Store the answers of a provider's batch API."),
    "report": ("rowcall.cli.inspecting.report_verb:report", "Write an HTML page with charts of a run."),
    "verify": ("rowcall.cli.maintenance.verify:verify", "Check that input, store and export agree."),
    "backup": ("rowcall.cli.maintenance.backup_verb:backup", "Write a snapshot of the store, also during a run."),
    "prune": ("rowcall.cli.maintenance.prune:prune", "Delete the stored input of done records."),
    "migrate": (
        "rowcall.cli.maintenance.migrate:migrate",
        "Copy a store to a new place, such as PostgreSQL.",
    ),
    "schema": ("rowcall.cli.tools.schema_verb:schema", "Print the JSON Schema of config, summary or events."),
    "completion": ("rowcall.cli.tools.completion:completion", "Print the script for completion in bash, zsh or fish."),
    "mock": ("rowcall.cli.tools.mock_verb:mock", "Serve a fake API on a port."),
}
"""The module and function of each verb, and its line in the help, which is shown without importing the module."""
INTERNAL_VERBS = {"help-out": "rowcall.cli.running.helper_verb:helper"}
"""Verbs that only rowcall itself calls."""
GC_THRESHOLD = 10_000
"""New objects between two runs of the garbage collector; Python's default of 700 costs a sixth of a run's CPU."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = VERBS[cmd_name][0] if cmd_name in VERBS else INTERNAL_VERBS.get(cmd_name)
        if place is None:
            return None
        module, name = place.split(":")
        command: click.Command = getattr(import_module(module), name)
        command.context_settings.setdefault("auto_envvar_prefix", "ROWCALL")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: rowcall init --demo demo && cd demo && rowcall run. For the help of a verb: rowcall run --help",
)
@click.version_option(__version__, prog_name="rowcall")
def cli() -> None:
    """Make one API call for every record of a file, through rate limits, outages, crashes and restarts.

    The same command starts a job and resumes it. Every flag can also be set by a variable, such as
    ROWCALL_CONCURRENCY=8.
    """


def main() -> NoReturn:
    """Run the verb of the command line and end the process with its exit code. Users never see a traceback."""
    gc.set_threshold(GC_THRESHOLD)
    _exit_process(run_verb())


def run_verb() -> int:
    """Run the verb that the command line names; returns the exit code."""
    try:
        return cli(standalone_mode=False) or Exit.DONE
    except click.ClickException as error:
        _name_variable(error)
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except RowcallError as error:
        click.echo(f"rowcall: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        sys.stdout = None  # the reader of our output is gone, and the interpreter must not try to flush it
        return Exit.DONE
    except Exception as error:  # noqa: BLE001  anything else is a bug in rowcall
        from rowcall.cli.shared.bug_report import report_bug

        return report_bug(error)


def _name_variable(error: click.ClickException) -> None:
    """Name the environment variable, not the flag, if the bad value came from there."""
    if not isinstance(error, click.BadParameter) or not error.ctx or not error.param or not error.param.name:
        return
    if error.ctx.get_parameter_source(error.param.name) is ParameterSource.ENVIRONMENT:
        error.param_hint = str(error.param.envvar or f"{error.ctx.auto_envvar_prefix}_{error.param.name.upper()}")


def _exit_process(code: int) -> NoReturn:
    """End the process; without the interpreter's shutdown if a daemon thread still waits for a pipe or a DNS reply.

    The shutdown would close stdin, and hang if a thread that reads from it holds its lock.
    """
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            if stream:
                with suppress(OSError):
                    stream.flush()
        os._exit(code)
    sys.exit(code)
