"""Decides whether a recipe from a store may use this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from rowcall.model.errors import ConfigError, Problem
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean
from rowcall.run.recipe import Recipe
from rowcall.run.recipe_wants import Want, recipe_hash, wants_of

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class Trust:
    """What a person allows the recipes of a store.

    Attributes:
        everything: whatever the recipe wants.
        variables: the names of the variables that it may use. None: any, because none of them is followed.
        asks: a person at a terminal may be asked.
    """

    everything: bool = False
    variables: Collection[str] | None = ()
    asks: bool = False

    def check(self, recipe: Recipe, place: StoreLocation) -> None:
        """Let a recipe pass, ask for it once on this machine, or refuse it.

        Raises:
            ConfigError: the recipe wants what nobody allowed; every such thing, with what to write.
            RowcallError: the recipe cannot be read.
        """
        if self.everything:
            return
        wants, url = wants_of(recipe)
        refused = [want for want in wants if not self._allows(want)]
        if not refused or _is_approved(recipe):
            return
        lines = [f"{clean(str(want))}{f', to {clean(url)}' if want.kind == 'variable' else ''}" for want in refused]
        if self.asks and sys.stdin.isatty() and sys.stderr.isatty():
            click.echo(
                "\n".join([f"{place}: the recipe that the store keeps:", *(f"  {line}" for line in lines)]), err=True
            )
            if click.confirm("Allow this recipe on this machine, now and later?", err=True):
                _approve(recipe)
                return
        raise ConfigError(
            *(Problem(str(place), line, _remedy(want)) for want, line in zip(refused, lines, strict=True))
        )

    def _allows(self, want: Want) -> bool:
        return want.kind == "variable" and (self.variables is None or want.name in self.variables)


def _remedy(want: Want) -> str:
    if want.kind == "variable":
        return f"If it may: --env {clean(want.name)}"
    return "If everybody who can write to that store may run code here: --trust-store"


def approvals() -> Path:
    """Return the file with the hashes of the recipes that a person has allowed on this machine.

    It follows the XDG Base Directory Specification: ``$XDG_STATE_HOME``, or ``~/.local/state``.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "rowcall" / "trusted-recipes"


def _is_approved(recipe: Recipe) -> bool:
    """Whether the hash is in the file; one that others can write to counts for nothing."""
    with suppress(OSError, RuntimeError, UnicodeDecodeError):
        descriptor = os.open(approvals(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, encoding="ascii") as file:  # noqa: PTH123  a descriptor is no path
            status = os.fstat(descriptor)
            if status.st_uid == os.getuid() and not status.st_mode & 0o022:
                return recipe_hash(recipe) in file.read().split()
    return False


def _approve(recipe: Recipe) -> None:
    path = approvals()
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, _FILE_MODE), "a", encoding="ascii") as file:  # noqa: PTH123  a descriptor is no path
        file.write(f"{recipe_hash(recipe)}\n")
