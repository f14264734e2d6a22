"""Flags that several verbs share, and loading a config with what they say."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from rowcall.model.errors import RowcallError
from rowcall.model.store_location import StoreLocation

if TYPE_CHECKING:  # verbs that need no config import none
    from rowcall.config import Config

F = TypeVar("F", bound=Callable[..., Any])

config_argument = click.argument("config", type=click.Path(path_type=Path), default=Path("config.toml"), required=False)


def parse_store(ctx: click.Context, param: click.Parameter, value: str | None) -> StoreLocation | None:
    """Read a file name or a PostgreSQL URL as the location of a store; the callback of ``--store``.

    A config named on the command line wins over ROWCALL_STORE.
    """
    sources = [ctx.get_parameter_source(name) for name in ("store", "config")]
    if sources == [ParameterSource.ENVIRONMENT, ParameterSource.COMMANDLINE]:
        return None
    try:
        return None if value is None else StoreLocation.of(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def store_option(words: str) -> Callable[[F], F]:
    """Add ``--store``, with its line of the help."""
    return click.option("--store", type=click.Path(), callback=parse_store, metavar="FILE|URL", help=words)


def file_options(verb: F) -> F:
    """Add ``--config`` and ``--store``, for verbs that only need to find the store."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=Path("config.toml"),
        show_default=True,
        help="The config that names the store.",
    )(store_option("The store itself, instead of a config.")(verb))


def store_options(verb: F) -> F:
    """Add the flags of ``file_options``, and ``--name`` for the kind."""
    named = click.option("--name", metavar="KIND", help="Which batch job, if the store holds several.")
    return file_options(named(verb))


def trust_options(verb: F) -> F:
    """Add ``--trust-store`` and ``--env``: what the config in a store may use of this machine."""
    verb = click.option(
        "--env",
        multiple=True,
        metavar="NAME",
        help="A variable that the config in the store may use. Can be repeated.",
    )(verb)
    return click.option(
        "--trust-store",
        is_flag=True,
        help="Let the config in the store run commands and code, and read any file on this machine.",
    )(verb)


json_option = click.option("--json", "as_json", envvar="ROWCALL_JSON", is_flag=True, help="Print JSON on stdout.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what is selected and change nothing.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
no_progress_option = click.option("--no-progress", is_flag=True, help="Do not draw the live progress display.")
summary_option = click.option("--json", is_flag=True, help="Print a summary as JSON on stdout at the end.")
limit_option = click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", help="Call the API for at most N records this time."
)
sample_option = click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Use only a sample of N records of the input, always the same ones.",
)
batch_label_option = click.option(
    "--batch", metavar="NAME", help="Label the records that are new or changed with this batch name."
)
if_changed_option = click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="What to do if the request has changed since records were done: keep their answers, redo them, or stop. "
    "Without it, rowcall asks, or stops if there is no terminal.",
)
now_option = click.option(
    "--now",
    is_flag=True,
    help="Do not wait out a pause that the API asked an earlier run for, for instance after a change of API key.",
)
events_option = click.option(
    "--events",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write everything that happens as JSON lines; - is stdout.",
)
processes_option = click.option(
    "--processes",
    type=click.IntRange(1),
    metavar="N",
    help="Work with N processes that share all limits. Cannot be combined with -n.",
)

SETTING_FLAGS = {
    "pace.concurrency": "concurrency",
    "pace.requests": "rate",
    "pace.processes": "processes",
    "stop.max_cost": "max_cost",
}
"""Settings of the config that have a flag of their own, and the name of that flag."""


def setting_options(verb: F) -> F:
    """Add the flags of a run that override settings of the config."""
    return pace_options(
        click.option(
            "--max-cost",
            type=float,
            metavar="DOLLARS",
            help="Stop when all runs of this job together have cost that much.",
        )(verb)
    )


def pace_options(verb: F) -> F:
    """Add ``--concurrency`` and ``--rate``."""
    verb = click.option("--rate", metavar="RATE", help="Rate limit for calls, such as 500/min or 10/s.")(verb)
    return click.option(
        "-c", "--concurrency", type=click.IntRange(1), metavar="N", help="At most N calls in flight at a time."
    )(verb)


def require_one_process(flags: dict[str, Any]) -> None:
    """Refuse ``-n`` together with several ``--processes``."""
    if flags["limit"] and (flags["processes"] or 1) > 1:
        remedy = "-n limits one process; to limit the records of all processes, use --sample N"
        raise RowcallError("--processes and -n do not go together", remedy=remedy)


def overrides(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that flags were given for, as ``config.load`` takes them."""
    named = {setting: flags.get(flag) for setting, flag in SETTING_FLAGS.items()}
    return {setting: value for setting, value in named.items() if value is not None}


def config_options(verb: F) -> F:
    """Add the flags of verbs that read a config: ``--set`` and ``--env-file``."""
    verb = click.option(
        "--env-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Read variables that the environment does not set from FILE. [default: .env beside the config]",
    )(verb)
    return click.option(
        "--set",
        multiple=True,
        callback=_settings,
        metavar="TABLE.KEY=VALUE",
        help="Override a setting of the config, as in --set stop.grace=5s. Can be repeated.",
    )(verb)


def flags_to_resume(flags: dict[str, Any]) -> Iterator[str]:
    """Yield the flags that every later run of a batch job needs again, quoted for a shell; not ``--max-cost``.

    The value of a setting that may hold a secret is not shown.
    """
    for flag in ("concurrency", "rate", "processes", "sample", "batch"):
        if (value := flags.get(flag)) is not None:
            yield f"--{flag} {shlex.quote(str(value))}"
    yield from (f"--{flag.replace('_', '-')}" for flag in ("all", "wait", "trust_store") if flags.get(flag))
    yield from (f"--env {shlex.quote(name)}" for name in flags.get("env", ()))
    for setting, typed in flags["set"].typed.items():
        shown = setting.partition(".")[0] in _WITHOUT_SECRETS and "://" not in typed
        yield "--set " + (shlex.quote(f"{setting}={typed}") if shown else f"{setting}=<as before>")
    for flag in ("env_file", "output"):
        if value := flags.get(flag):
            yield f"--{flag.replace('_', '-')} {shlex.quote(str(value))}"


_WITHOUT_SECRETS = ("name", "input", "store", "pace", "stop", "retry", "response", "output")
"""Tables of the config that hold no secrets, apart from URLs with a password."""


def load_config(config: Path, flags: dict[str, Any]) -> Config:
    """Load a config with the overrides of ``setting_options`` and ``config_options``."""
    from rowcall.config import load

    return load(config, overrides=flags["set"] | overrides(flags), env_file=flags["env_file"])


class GivenSettings(dict[str, Any]):
    """The settings of ``--set`` by key; ``typed`` holds their values as text, as the user wrote them."""

    def __init__(self) -> None:
        super().__init__()
        self.typed: dict[str, str] = {}


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> GivenSettings:
    """Parse ``stop.grace=5s``; a value that is not TOML is taken as text."""
    settings = GivenSettings()
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
