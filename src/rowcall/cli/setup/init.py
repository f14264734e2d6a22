"""``rowcall init``: write a config to start from."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import click

import rowcall
from rowcall.model.errors import RowcallError

Start = Literal["llm", "rest", "embeddings", "openai-batch", "demo"]
"""The starters that a config can be made from."""
_DATA = ("config.toml", "prompt.md", "label.schema.json", "reviews.tsv", "LICENSE.txt", "README.md")
_STARTERS = Path(__file__).parent / "starters"
_VARIABLE = re.compile(r'\{ env = "(\w+)" \}')


@click.command(
    epilog="Example: rowcall init jobs --from llm; rowcall init --demo demo && cd demo && rowcall run",
)
@click.argument("folder", type=click.Path(path_type=Path), required=False, metavar="[DIR]")
@click.option(
    "--from",
    "start",
    envvar="ROWCALL_FROM",
    type=click.Choice(get_args(Start)),
    default="llm",
    show_default=True,
    help="What to call: a language model, a REST API, an embeddings API, or the lines of an OpenAI batch file.",
)
@click.option(
    "--demo", is_flag=True, help="Write a demo that needs no key and no network: 3,708 real sentences and a fake API."
)
def init(folder: Path | None, start: Start, demo: bool) -> None:
    """Write a config to start from, with the files that it needs. Existing files are never overwritten.

    DIR is the folder to write to: by default the current folder, or rowcall-demo for the demo.
    """
    if demo or start == "demo":
        _write_demo(folder or Path("rowcall-demo"))
    else:
        _write(folder or Path(), start)


def _write_demo(folder: Path) -> None:
    _refuse_taken(folder, _DATA, "rowcall init --demo DIR")
    for name in _DATA:
        shutil.copyfile(_demo() / name, folder / name)
    click.echo(f"{folder}: {', '.join(_DATA)}\nNext: cd {shlex.quote(str(folder))} && rowcall run", err=True)


def _write(folder: Path, start: Start) -> None:
    _refuse_taken(folder, ("config.toml", ".env.example"), f"rowcall init DIR --from {start}")
    config = (_STARTERS / f"{start}.toml").read_text()
    (folder / "config.toml").write_text(config)
    (folder / ".env.example").write_text(_env_example(config))
    written = ["config.toml", ".env.example", *_ignore(folder)]
    said = f"written: {', '.join(str(folder / name) for name in written)}"
    click.echo("\n".join([said, *_next_steps(folder, config)]), err=True)


def _env_example(config: str) -> str:
    """Return a line for each variable that the config names, also in lines that are commented out."""
    lines = [f"{name}=" for name in dict.fromkeys(_VARIABLE.findall(config))]
    return (_STARTERS / "env.example").read_text() + "\n".join(lines) + "\n"


def _ignore(folder: Path) -> list[str]:
    """Write a .gitignore for secrets and stores, unless there is one; returns what was written."""
    if (folder / ".gitignore").exists():
        return []
    shutil.copyfile(_STARTERS / "gitignore", folder / ".gitignore")
    return [".gitignore"]


def _next_steps(folder: Path, config: str) -> Iterator[str]:
    if folder != Path():
        yield f"Next: cd {shlex.quote(str(folder))}"
    for number, line in enumerate(config.splitlines(), 1):
        if "# EDIT" in line:
            yield f"  edit config.toml:{number}   {line.partition('# EDIT')[0].strip()}"
    yield "  then: rowcall check && rowcall preview && rowcall run -n 5"


def _refuse_taken(folder: Path, names: tuple[str, ...], remedy: str) -> None:
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise RowcallError(
            f"{folder.resolve()} already contains {', '.join(taken)}", remedy=f"name another folder: {remedy}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"{folder}: the folder cannot be created: {error.strerror}"
        raise RowcallError(what, remedy="name another folder") from None


def _demo() -> Path:
    """Return the folder with the demo: inside the installed package, or in the checkout of an editable install."""
    package = Path(rowcall.__file__).parent
    installed = package / "demo"
    return installed if installed.is_dir() else package.parents[1] / "examples" / "reviews"
