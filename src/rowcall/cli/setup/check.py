"""``rowcall check``: all that can be found wrong beforehand."""

from __future__ import annotations

import asyncio
import json
import platform
import sqlite3
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rowcall import __version__
from rowcall.cli.setup.checks import Findings, examine
from rowcall.cli.setup.forecast import changed_text, require_store
from rowcall.cli.setup.sample_calls import Sample, outcome_text, outcomes
from rowcall.cli.shared.common import SETTING_FLAGS, config_argument, config_options, load_config, setting_options
from rowcall.cli.shared.hints import call_hint
from rowcall.config import Config, KeyPath
from rowcall.model.errors import Exit
from rowcall.model.outcome import Outcome, Success
from rowcall.progress import clean, counted

_LIBRARIES = ("aiohttp", "aiosqlite", "click", "httpx", "jinja2", "jmespath", "orjson", "pydantic", "tenacity")
_SHOWN_BODY = 600
"""Characters of a request's body that are shown."""
_SHOWN_VALUE = 100
"""Characters of a setting that are shown."""


@click.command(epilog="Example: rowcall check && rowcall run")
@config_argument
@setting_options
@config_options
@click.option("--probe", is_flag=True, help="Then make one real call, with the first record, and show what it gives.")
@click.option("-v", "--verbose", is_flag=True, help="Each setting with where it comes from, and the versions in use.")
def check(config: Path, probe: bool, verbose: bool, **flags: Any) -> int:
    """Find all that is wrong before a run: config, secrets, every row of the input; the first requests are shown.

    Nothing is sent without --probe, and nothing stored: a store is looked at, none is made. Exit 2 where something is
    wrong.
    """
    loaded = load_config(config, flags)
    if verbose:
        click.echo("\n".join([*_versions(), *_settings(loaded), *_proxy(loaded)]))
    findings = examine(loaded)
    click.echo("\n".join(_report(findings)))
    if findings.problem_count:
        return Exit.USAGE
    require_store(loaded)
    if changed := changed_text(loaded):
        click.echo(changed)
    return _probe(loaded, findings) if probe else Exit.DONE


def _report(findings: Findings) -> Iterator[str]:
    for where, shown in findings.first:
        yield "\n  ".join([f"{clean(where)}:", *shown.lines(_SHOWN_BODY)])
    for problem in findings.problems:
        yield "\n  ".join(map(clean, str(problem).split("\n")))
    if more := findings.problem_count - len(findings.problems):
        yield f"... and {counted(more, 'more problem')}"
    yield _summary(findings)


def _summary(findings: Findings) -> str:
    clashes, keyless = findings.clashes, findings.keyless
    trouble = [f"{counted(clashes, 'key')} not unique"] * (clashes > 0) + [f"{keyless:,} without a key"] * (keyless > 0)
    said = [counted(findings.records, "record"), *(trouble or ["keys unique"])]
    said += ["requests made by the handler"] if findings.handler else [f"{findings.rendered:,} render"]
    if findings.repeated:
        said.append(f"{findings.repeated:,} repeated")
    if findings.set_aside:
        said.append(f"{counted(findings.set_aside, 'bad line')} to be set aside")
    if findings.problem_count:
        said.append(counted(findings.problem_count, "problem"))
    return ", ".join(said)


def _versions() -> Iterator[str]:
    yield f"rowcall {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    if not _race_mended(sqlite3.sqlite_version_info):
        yield (
            "SQLite before 3.51.3 (3.50.7, 3.44.6) has a race that can damage a file when one process writes it back"
            " while another writes; rowcall's processes take turns, and so avoid it"
        )


def _race_mended(found: tuple[int, int, int]) -> bool:
    """Whether this SQLite has the mended WAL reset (https://sqlite.org/wal.html)."""
    return found >= (3, 51, 3) or any(fixed <= found < (3, fixed[1] + 1, 0) for fixed in ((3, 50, 7), (3, 44, 6)))


def _settings(config: Config) -> Iterator[str]:
    for path, value in _leaves(config.settings(), ()):
        shown = json.dumps(value, ensure_ascii=False)
        cut = clean(shown if len(shown) <= _SHOWN_VALUE else f"{shown[:_SHOWN_VALUE]}...")
        yield f"{'.'.join(map(str, path))} = {cut}   ({_source(config, path)})"


def _proxy(config: Config) -> Iterator[str]:
    """The proxy that the environment names for the API, where the config names none."""
    from rowcall.client.network import environment_proxy

    if proxy := environment_proxy(config):
        yield f"api.proxy = {json.dumps(clean(proxy.url))}   ({proxy.origin})"


def _leaves(table: dict[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _source(config: Config, path: KeyPath) -> str:
    """Where a setting comes from; a flag or a variable by its name."""
    named = ".".join(map(str, path))
    flag = SETTING_FLAGS.get(named)
    given = click.get_current_context().get_parameter_source(flag) if flag else None
    if flag and given is ParameterSource.COMMANDLINE:
        return f"--{flag.replace('_', '-')}"
    if named in click.get_current_context().params["set"] and given in (None, ParameterSource.DEFAULT):
        return "--set"
    return f"ROWCALL_{flag.upper()}" if flag and given is ParameterSource.ENVIRONMENT else config.source_of(path)


def _probe(config: Config, findings: Findings) -> Exit:
    if findings.sample is None:
        click.echo("probe: there is no record to call with")
        return Exit.USAGE
    outcome = asyncio.run(_outcome(config, findings.sample))
    click.echo(f"probe: {outcome_text(outcome)}")
    if isinstance(outcome, Success):
        return Exit.DONE
    click.echo(f"  {call_hint(outcome.reason)}")
    return Exit.USAGE


async def _outcome(config: Config, sample: Sample) -> Outcome:
    """One real call."""
    [outcome] = [outcome async for outcome in outcomes(config, [sample])]
    return outcome
