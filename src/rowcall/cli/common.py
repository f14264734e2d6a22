"""What several verbs share: finding the config or the store, and printing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rowcall.errors import RowcallError

F = TypeVar("F", bound=Callable[..., Any])

config_argument = click.argument("config", type=click.Path(path_type=Path), default=Path("config.toml"), required=False)


def store_options(verb: F) -> F:
    """``CONFIG``-less verbs find the store by ``--config`` or ``--store``, and the kind by ``--name``."""
    verb = click.option("--name", metavar="KIND", help="The batch job, where the store holds several.")(verb)
    verb = click.option("--store", type=click.Path(path_type=Path), metavar="FILE", help="The store itself.")(verb)
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=Path("config.toml"),
        show_default=True,
        help="The config that names the store.",
    )(verb)


json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")


def store_path(config: Path, store: Path | None) -> tuple[Path, str | None]:
    """The store's path, and the kind where the config names it."""
    if store is not None:
        return store, None
    from rowcall.config import load

    loaded = load(config)
    return loaded.store_path, loaded.name


def only_kind(kinds: list[str], wanted: str | None, path: Path) -> str:
    """The kind that is meant.

    Raises:
        RowcallError: there is none of that name, or several and none was named.
    """
    if wanted in kinds or (wanted is not None and not kinds):
        return wanted
    if wanted is not None:
        raise RowcallError(f"{path}: no batch job {wanted!r}", remedy=f"it holds: {', '.join(kinds)}")
    if len(kinds) == 1:
        return kinds[0]
    if not kinds:
        raise RowcallError(f"{path}: holds no batch job yet", remedy="rowcall run starts one")
    raise RowcallError(f"{path}: holds several batch jobs", remedy=f"--name one of: {', '.join(kinds)}")


def print_json(value: Any) -> None:
    """JSON on stdout, indented."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
