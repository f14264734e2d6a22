"""What a user sees of a bug in rowcall: one line, and a file to send along."""

from __future__ import annotations

import platform
import tempfile
import traceback
from pathlib import Path

import click

from rowcall import __version__
from rowcall.model.errors import Exit


def confess(error: Exception) -> Exit:
    """Say that this is rowcall's fault; the traceback goes into a file, without any local values."""
    story = f"rowcall {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    story += "".join(traceback.format_exception(error))
    with tempfile.NamedTemporaryFile("w", prefix="rowcall-bug-", suffix=".txt", delete=False) as file:
        file.write(story)
    click.echo(f"rowcall: a bug in rowcall: {type(error).__name__}: {_first_line(error)}", err=True)
    click.echo(f"  what is stored is safe; the details are in {Path(file.name)}", err=True)
    return Exit.BUG


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
