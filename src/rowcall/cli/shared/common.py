"""What several verbs share: finding the config or the store, the flags of a run, and printing."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from rowcall.model.errors import NothingYet, RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.store.base import Reader

if TYPE_CHECKING:  # verbs that need no config import none
    from rowcall.config import Config

F = TypeVar("F", bound=Callable[..., Any])

config_argument = click.argument("config", type=click.Path(path_type=Path), default=Path("config.toml"), required=False)


def placed(ctx: click.Context, param: click.Parameter, value: str | None) -> StoreLocation | None:
    """A file, or the URL of a PostgreSQL database, as a place; a config that was named goes before the variable."""
    sources = [ctx.get_parameter_source(name) for name in ("store", "config")]
    if sources == [ParameterSource.ENVIRONMENT, ParameterSource.COMMANDLINE]:
        return None
    try:
        return None if value is None else StoreLocation.of(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def store_option(words: str) -> Callable[[F], F]:
    """``--store``, with its line in the help."""
    return click.option("--store", type=click.Path(), callback=placed, metavar="FILE|URL", help=words)


def trust_options(verb: F) -> F:
    """What the config in a store may use of this machine."""
    verb = click.option(
        "--env", multiple=True, metavar="NAME", help="A variable that the config in the store may use; repeatable."
    )(verb)
    return click.option(
        "--trust-store", is_flag=True, help="The config in the store may run commands and code, and read any file here."
    )(verb)


def file_options(verb: F) -> F:
    """``CONFIG``-less verbs find the store by ``--config`` or ``--store``."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=Path("config.toml"),
        show_default=True,
        help="The config that names the store.",
    )(store_option("The store itself.")(verb))


def store_options(verb: F) -> F:
    """As ``file_options``, and the kind by ``--name``."""
    named = click.option("--name", metavar="KIND", help="The batch job, where the store holds several.")
    return file_options(named(verb))


json_option = click.option("--json", "as_json", envvar="ROWCALL_JSON", is_flag=True, help="JSON on stdout.")

processes_option = click.option(
    "--processes", type=click.IntRange(1), metavar="N", help="N processes work, sharing limits; one with -n."
)

SETTING_FLAGS = {
    "pace.concurrency": "concurrency",
    "pace.requests": "rate",
    "pace.processes": "processes",
    "stop.max_cost": "max_cost",
}
"""Settings that a flag goes before, by the flag's name."""


def setting_options(verb: F) -> F:
    """The flags of a run that go before settings of the file."""
    return pace_options(
        click.option("--max-cost", type=float, metavar="DOLLARS", help="Stop there; all runs count.")(verb)
    )


def pace_options(verb: F) -> F:
    """Those of them that say how fast."""
    verb = click.option("--rate", metavar="RATE", help="Most calls in a time, such as 500/min.")(verb)
    return click.option("-c", "--concurrency", type=click.IntRange(1), help="Most calls in flight.")(verb)


def overrides(flags: dict[str, Any]) -> dict[str, Any]:
    """The settings that flags were given for, as ``config.load`` takes them."""
    named = {setting: flags.get(flag) for setting, flag in SETTING_FLAGS.items()}
    return {setting: value for setting, value in named.items() if value is not None}


def config_options(verb: F) -> F:
    """The flags of verbs that read a config: any setting, and where variables are looked up."""
    verb = click.option(
        "--env-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Variables that the environment does not have; left out: .env beside the config.",
    )(verb)
    return click.option(
        "--set",
        multiple=True,
        callback=_settings,
        metavar="TABLE.KEY=VALUE",
        help="A setting that goes before the file's, such as stop.grace=5s; may be repeated.",
    )(verb)


def lasting(flags: dict[str, Any]) -> Iterator[str]:
    """The flags that each run of a batch job is to have, as a shell reads them, but for what may be spent.

    A setting that may hold a secret is named without its value, so that no shell would take it.
    """
    for flag in ("concurrency", "rate", "processes", "sample", "batch"):
        if (value := flags.get(flag)) is not None:
            yield f"--{flag} {shlex.quote(str(value))}"
    yield from (f"--{flag.replace('_', '-')}" for flag in ("all", "wait", "trust_store") if flags.get(flag))
    yield from (f"--env {shlex.quote(name)}" for name in flags.get("env", ()))
    for setting, typed in flags["set"].typed.items():
        shown = setting.partition(".")[0] in _HARMLESS and "://" not in typed
        yield "--set " + (shlex.quote(f"{setting}={typed}") if shown else f"{setting}=<as before>")
    for flag in ("env_file", "output"):
        if value := flags.get(flag):
            yield f"--{flag.replace('_', '-')} {shlex.quote(str(value))}"


_HARMLESS = ("name", "input", "store", "pace", "stop", "retry", "response", "output")
"""Tables that no secret stands in, but for a URL with a password in it."""


def load_config(config: Path, flags: dict[str, Any]) -> Config:
    """Load a config with what the flags of ``setting_options`` and ``config_options`` say."""
    from rowcall.config import load

    return load(config, overrides=flags["set"] | overrides(flags), env_file=flags["env_file"])


class Settings(dict[str, Any]):
    """Settings by their keys, and as they were ``typed``."""

    def __init__(self) -> None:
        super().__init__()
        self.typed: dict[str, str] = {}


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Settings:
    """``stop.grace=5s`` by its key; the value is TOML where it is, else text."""
    settings = Settings()
    for value in values:
        key, equals, text = (part.strip() for part in value.partition("="))
        if not equals or not re.fullmatch(r"[\w-]+(?:\.[\w-]+)*", key):
            raise click.BadParameter(f"{value!r} is not of the form TABLE.KEY=VALUE", ctx, param)
        settings[key], settings.typed[key] = _toml(text), text
    return settings


def _toml(text: str) -> Any:
    try:
        [value] = tomllib.loads(f"value = {text}").values()
    except (tomllib.TOMLDecodeError, ValueError):
        return text
    return value


def store_location(config: Path, store: StoreLocation | None) -> tuple[StoreLocation, str | None]:
    """Where the store is, and the kind where the config names it."""
    if store is not None:
        return store, None
    from rowcall.config import load

    loaded = load(config)
    return loaded.store_location, loaded.name


def only_kind(kinds: list[str], wanted: str | None, place: StoreLocation) -> str:
    """The kind that is meant.

    Raises:
        NothingYet: there is none, or none of that name.
        RowcallError: there are several and none was named.
    """
    if wanted in kinds or (wanted is not None and not kinds):
        return wanted
    if wanted is not None:
        raise NothingYet(f"{place}: no batch job {wanted!r}", remedy=f"it holds: {', '.join(kinds)}")
    if len(kinds) == 1:
        return kinds[0]
    if not kinds:
        raise NothingYet(f"{place}: holds no batch job yet", remedy="rowcall run starts one")
    raise RowcallError(f"{place}: holds several batch jobs", remedy=f"--name one of: {', '.join(kinds)}")


async def require_batch(reader: Reader, kind: str, batch: str) -> None:
    """Refuse a batch that the store does not know.

    Raises:
        RowcallError: names those that it does.
    """
    known = await reader.batches(kind)
    if batch not in known:
        shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        raise RowcallError(f"{kind}: there is no batch {batch!r}", remedy=f"there are: {shown or 'none yet'}")


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether a person agrees; nobody is asked with ``--yes``, nor where nobody can answer."""
    import sys

    return yes or not sys.stdin.isatty() or click.confirm(question, err=True)


def print_json(value: Any) -> None:
    """JSON on stdout, indented."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
