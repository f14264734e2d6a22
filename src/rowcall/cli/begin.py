"""Verbs that begin something: init."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

import rowcall
from rowcall.errors import RowcallError

_DATA = ("config.toml", "prompt.md", "label.schema.json", "reviews.tsv", "LICENSE.txt", "README.md")


@click.command(epilog="Example: rowcall init --demo demo && cd demo && rowcall run")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("rowcall-demo"))
@click.option("--demo", is_flag=True, required=True, help="3,708 real sentences and a fake API; no key, no network.")
def init(folder: Path, demo: bool) -> None:
    """Write a config to start from, with all that it needs; nothing is overwritten."""
    taken = [name for name in _DATA if (folder / name).exists()]
    if taken:
        raise RowcallError(
            f"{folder}: already holds {', '.join(taken)}", remedy="name another folder: rowcall init --demo DIR"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in _DATA:
        shutil.copyfile(_demo() / name, folder / name)
    click.echo(f"{folder}: {', '.join(_DATA)}\nNow: cd {folder} && rowcall run", err=True)


def _demo() -> Path:
    """The demo's files: inside the installed package, or in the checkout that it is installed from."""
    package = Path(rowcall.__file__).parent
    installed = package / "demo"
    return installed if installed.is_dir() else package.parents[1] / "examples" / "reviews"
