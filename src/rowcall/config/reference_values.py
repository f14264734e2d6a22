"""Reads what a reference refers to: a variable, a file, or the output of a command. No message repeats a secret."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowcall.config.key_lines import KeyPath, dotted
from rowcall.config.secret import Secret
from rowcall.model import json_values

COMMAND_SECONDS = 60
"""The longest time that a command may take."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference, and its place in the config for messages."""

    kind: str
    name: str
    path: KeyPath

    def __str__(self) -> str:
        return dotted(self.path) or "the reference"


class Unresolved(Exception):
    """A reference cannot be followed."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


def json_object(text: Any, name: str) -> dict[str, Any]:
    """Parse the JSON object in the text of a file, for the key ``name``."""
    try:
        value = json_values.loads(text) if isinstance(text, str) else None
    except ValueError as error:
        raise Unresolved(f"the file of {name} is not valid JSON: {error}", "correct the file") from None
    if not isinstance(value, dict):
        raise Unresolved(f"{name} must be a JSON object, in a file or as a table", "")
    return value


def header_secret(secret: Secret) -> Secret:
    """Strip white space from a secret, and check that a header can contain it: printable ASCII only."""
    value = secret.reveal().strip()
    if not (value and value.isascii() and value.isprintable()):
        raise Unresolved(
            f"{secret!r} is empty or contains characters that an HTTP header cannot contain",
            "copy it again, without line breaks, typographic quotes and invisible characters",
        )
    return Secret(secret.name, value)


def variable(reference: Reference, environ: Mapping[str, str], env_file: Path | None = None) -> Secret:
    """Return the value of a variable. An empty one counts as not set. ``env_file`` is named in the remedy."""
    value = environ.get(reference.name)
    if not value:
        state = "empty" if value == "" else "not set"
        raise Unresolved(
            f"{reference} needs the variable {reference.name}, which is {state}",
            f"export {reference.name}=..., or add it to {env_file or '.env beside the config file'}",
        )
    return Secret(reference.name, value)


def contents(reference: Reference, folder: Path) -> bytes:
    """Return the bytes of a file."""
    path = folder / Path(reference.name).expanduser()
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = "does not exist" if missing else f"cannot be read: {getattr(error, 'strerror', error)}"
        raise Unresolved(
            f"{reference} needs the file {reference.name}, which {why}",
            f"paths are relative to the config file; rowcall looked for {path}",
        ) from None


def text_of(reference: Reference, folder: Path) -> str:
    """Return the text of a UTF-8 file, unchanged."""
    try:
        return contents(reference, folder).decode()
    except UnicodeDecodeError as error:
        raise Unresolved(
            f"{reference} needs the file {reference.name}, which is not UTF-8",
            f"save it as UTF-8; the first invalid byte is number {error.start + 1}",
        ) from None


def output(reference: Reference, folder: Path, environ: Mapping[str, str]) -> Secret:
    """Return what a command prints, without the line break at its end."""
    used = f"{reference} needs the command `{reference.name}`, which"
    try:
        ended = _run(reference.name, folder, environ)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Unresolved(f"{used} cannot be started: {why}", "run it in a terminal to see why") from None
    except subprocess.TimeoutExpired:
        raise Unresolved(f"{used} took longer than {COMMAND_SECONDS} s", "run it in a terminal to see why") from None
    if ended.returncode:
        said = _last_line(ended.stderr, hidden=ended.stdout)
        raise Unresolved(f"{used} ended with exit code {ended.returncode}{said}", "run it in a terminal to see why")
    value = ended.stdout.rstrip("\r\n")
    if not value:
        raise Unresolved(f"{used} printed nothing", "it must print the secret to its standard output")
    return Secret(reference.name, value)


def _run(command: str, folder: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command of the config file, without a shell. It must not read the records on rowcall's own stdin."""
    return subprocess.run(  # noqa: S603  the user wrote the command in their own config
        shlex.split(command),
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=COMMAND_SECONDS,
        check=False,
    )


def _last_line(stderr: str, *, hidden: str) -> str:
    """Return the last line on stderr, at most 200 characters, without the secret if it was also printed on stdout."""
    lines = stderr.split("\n") if stderr.strip() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    for secret in filter(None, map(str.strip, hidden.splitlines())):
        last = last.replace(secret, "***")
    shown = "".join(letter if letter.isprintable() else " " for letter in last)
    return f": {shown[:200]}" if shown else ""
