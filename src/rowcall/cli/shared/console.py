"""Asking yes or no, and printing JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import click


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask the user to agree; True without asking with ``--yes``, or when stdin is not a terminal."""
    return yes or not sys.stdin.isatty() or click.confirm(question, err=True)


def print_json(value: Any) -> None:
    """Print JSON on stdout, indented."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
