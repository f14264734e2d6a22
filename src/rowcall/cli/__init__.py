"""The command: one file per family of verbs, each imported only when it is asked for."""

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
    "check": ("rowcall.cli.setup.check:check", "All that can be found wrong beforehand; nothing is sent."),
    "preview": ("rowcall.cli.setup.preview:preview", "The first requests, and what all of them would take."),
    "run": ("rowcall.cli.running.run:run", "Start, or go on: call the API for every record that is not done."),
    "enqueue": ("rowcall.cli.running.enqueue:enqueue", "Bring records in, and call nothing."),
    "work": ("rowcall.cli.running.work:work", "Call the API for what others bring in, on any number of machines."),
    "batch": ("rowcall.cli.running.batch:batch", "An OpenAI batch file against any endpoint; no config needed."),
    "status": ("rowcall.cli.looking.look:status", "How a batch job stands, from any terminal."),
    "errors": ("rowcall.cli.looking.look:errors", "Failures by reason, with what to do about them."),
    "show": ("rowcall.cli.looking.look:show", "One record: its input, its request, every try, its answer."),
    "retry": ("rowcall.cli.changing.change_jobs:retry", "Set records back to pending."),
    "cancel": ("rowcall.cli.changing.change_jobs:cancel", "Take records out of the work."),
    "rollback": ("rowcall.cli.changing.change_jobs:rollback", "Let the answers of a batch no longer count."),
    "set": ("rowcall.cli.changing.set_live:set_", "Steer live runs: concurrency, limits, max_cost, pause."),
    "export": ("rowcall.cli.store.export_import:export", "Write the input with its answers."),
    "import": ("rowcall.cli.store.export_import:import_", "Take in answers that a provider's batch API made."),
    "report": ("rowcall.cli.looking.report_verb:report", "A page with pictures of a run."),
    "verify": ("rowcall.cli.store.verify:verify", "Whether input, store and export belong together."),
    "backup": ("rowcall.cli.store.backup_prune:backup", "A snapshot of the store, also during a run."),
    "prune": ("rowcall.cli.store.backup_prune:prune", "Drop the stored input of done records."),
    "migrate": ("rowcall.cli.store.migrate:migrate", "Move a store to another place, such as a PostgreSQL database."),
    "schema": (
        "rowcall.cli.tools.describe:schema",
        "JSON Schema of config, summary and events, for editors and programs.",
    ),
    "completion": ("rowcall.cli.tools.describe:completion", "What makes bash, zsh or fish complete verbs and flags."),
    "mock": ("rowcall.cli.tools.mock_verb:mock", "A fake API on a port."),
}
"""Where each verb stands, and its line in the help; read without importing it."""
HIDDEN = {"help-out": "rowcall.cli.running.help_out:helper"}
"""Verbs that only rowcall itself uses."""


OBJECTS = 10_000
"""New objects between two looks for cycles among them; Python's own 700 take a sixth of a run's CPU."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = VERBS[cmd_name][0] if cmd_name in VERBS else HIDDEN.get(cmd_name)
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
    epilog="Example: rowcall init --demo demo && cd demo && rowcall run; each verb has its own: rowcall run --help",
)
@click.version_option(__version__, prog_name="rowcall")
def cli() -> None:
    """One API call for every record of a file, carried to its end.

    Through rate limits, outages, crashes and restarts: start and go on with the same command. Every flag can be set
    as ROWCALL_FLAG, such as ROWCALL_CONCURRENCY=8.
    """


def main() -> NoReturn:
    """Run the verb of the command line and end the process with its exit code; no traceback reaches a user."""
    gc.set_threshold(OBJECTS)
    _leave(run_verb())


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
        sys.stdout = None  # the reader of our output has gone; nothing is left to say
        return Exit.DONE
    except Exception as error:  # noqa: BLE001  the last resort: a bug in rowcall
        from rowcall.cli.shared.bug_report import confess

        return confess(error)


def _name_variable(error: click.ClickException) -> None:
    """Blame the variable, not the flag, for a value that came from there."""
    if not isinstance(error, click.BadParameter) or not error.ctx or not error.param or not error.param.name:
        return
    if error.ctx.get_parameter_source(error.param.name) is ParameterSource.ENVIRONMENT:
        error.param_hint = str(error.param.envvar or f"{error.ctx.auto_envvar_prefix}_{error.param.name.upper()}")


def _leave(code: int) -> NoReturn:
    """End the process; where a daemon thread still waits, for a pipe or a name, without the interpreter's own end.

    That end would close stdin, which a thread that reads it has locked.
    """
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            if stream:
                with suppress(OSError):
                    stream.flush()
        os._exit(code)
    sys.exit(code)
