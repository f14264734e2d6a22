"""What a user sees when rowcall itself fails: one line, and a file to send with a bug report."""

from __future__ import annotations

import platform
import tempfile
import traceback
from pathlib import Path

import click

from rowcall import __version__
from rowcall.model.errors import Exit


def report_bug(error: Exception) -> Exit:
    """Say that rowcall has a bug; the traceback goes into a temporary file, without the values of local variables."""
    details = f"rowcall {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    details += "".join(traceback.format_exception(error))
    with tempfile.NamedTemporaryFile("w", prefix="rowcall-bug-", suffix=".txt", delete=False) as file:
        file.write(details)
    first_line = str(error).partition("\n")[0][:200]
    click.echo(f"rowcall: this is a bug in rowcall: {type(error).__name__}: {first_line}", err=True)
    click.echo(f"  What is stored is safe. Please report it with this file: {Path(file.name)}", err=True)
    return Exit.BUG
