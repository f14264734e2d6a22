"""``rowcall help-out``: the command by which a run starts its helper processes; users never type it."""

from __future__ import annotations

import asyncio
import socket

import click

from rowcall.cli.running.event_loop import loop_factory
from rowcall.processes.helper_process import help_out, take_task


@click.command("help-out", hidden=True)
@click.argument("fd", type=int)
def helper(fd: int) -> None:
    """Help the run at the other end of a socket."""
    with socket.socket(fileno=fd) as connection:
        if task := take_task(connection):
            with asyncio.Runner(loop_factory=loop_factory(task.config)) as runner:
                runner.run(help_out(task, connection))
