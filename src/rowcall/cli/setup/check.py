"""``rowcall check``: find everything that is wrong before a run."""

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
from rowcall.cli.setup.check_findings import Findings, find_problems
from rowcall.cli.setup.forecast import changed_text, require_store
from rowcall.cli.setup.sample_calls import Sample, outcome_text, outcomes
from rowcall.cli.shared.failure_hints import call_hint
from rowcall.cli.shared.flags import SETTING_FLAGS, config_argument, config_options, load_config, setting_options
from rowcall.config import Config, KeyPath
from rowcall.model.errors import Exit
from rowcall.model.outcome import Outcome, Success
from rowcall.progress import clean, counted

_LIBRARIES = ("aiosqlite", "click", "httpx", "jinja2", "jmespath", "orjson", "pydantic", "tenacity")
_BODY_SHOWN = 600
"""At most so many characters of a request's body are shown."""
_VALUE_SHOWN = 100
"""At most so many characters of a setting are shown."""


@click.command(epilog="Example: rowcall check && rowcall run")
@config_argument
@setting_options
@config_options
@click.option(
    "--probe", is_flag=True, help="If all is well, make one real call with the first record and show the result."
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Show each setting and where it comes from, and the versions in use."
)
def check(config: Path, probe: bool, verbose: bool, **flags: Any) -> int:
    """Find everything that is wrong before a run: config, secrets, and every record of the input.

    It also shows the first requests. Nothing is sent without --probe, and nothing is stored or created. Exit 2 if
    there is a problem.
    """
    loaded = load_config(config, flags)
    if verbose:
        click.echo("\n".join([*_versions(), *_settings(loaded), *_proxy(loaded)]))
    findings = find_problems(loaded)
    click.echo("\n".join(_report(findings)))
    if findings.problem_count:
        return Exit.USAGE
    require_store(loaded)
    if changed := changed_text(loaded):
        click.echo(changed)
    return _probe(loaded, findings) if probe else Exit.DONE


def _report(findings: Findings) -> Iterator[str]:
    for where, shown in findings.first:
        yield "\n  ".join([f"{clean(where)}:", *shown.lines(_BODY_SHOWN)])
    for problem in findings.problems:
        yield "\n  ".join(map(clean, str(problem).split("\n")))
    if more := findings.problem_count - len(findings.problems):
        yield f"... and {counted(more, 'more problem')}"
    yield _summary(findings)


def _summary(findings: Findings) -> str:
    clashes, keyless = findings.clashes, findings.keyless
    trouble = [f"{counted(clashes, 'key')} not unique"] * (clashes > 0) + [f"{keyless:,} without a key"] * (keyless > 0)
    said = [counted(findings.records, "record"), *(trouble or ["all keys unique"])]
    said += ["requests made by the handler"] if findings.handler else [counted(findings.rendered, "valid request")]
    if findings.repeated:
        said.append(f"{findings.repeated:,} repeated")
    if findings.set_aside:
        said.append(f"{counted(findings.set_aside, 'bad line')} to be set aside")
    if findings.problem_count:
        said.append(counted(findings.problem_count, "problem"))
    return ", ".join(said)


def _versions() -> Iterator[str]:
    from rowcall.client.aiohttp_version import described

    yield f"rowcall {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    yield described()
    if not _race_fixed(sqlite3.sqlite_version_info):
        yield (
            "SQLite before 3.51.3 (3.50.7, 3.44.6) has a race that can damage a file when one process checkpoints it"
            " while another writes; rowcall avoids it, because its processes take turns"
        )


def _race_fixed(found: tuple[int, int, int]) -> bool:
    """Whether this SQLite has the fix of the WAL-reset race (https://sqlite.org/wal.html)."""
    return found >= (3, 51, 3) or any(fixed <= found < (3, fixed[1] + 1, 0) for fixed in ((3, 50, 7), (3, 44, 6)))


def _settings(config: Config) -> Iterator[str]:
    for path, value in _leaves(config.settings(), ()):
        shown = json.dumps(value, ensure_ascii=False)
        cut = clean(shown if len(shown) <= _VALUE_SHOWN else f"{shown[:_VALUE_SHOWN]}...")
        yield f"{'.'.join(map(str, path))} = {cut}   ({_source(config, path)})"


def _proxy(config: Config) -> Iterator[str]:
    """Yield the proxy that the environment names for the API, if the config names none."""
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
    """Return where a setting comes from: a place in a file, or the name of a flag or variable."""
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
        click.echo("probe: no call was made, because the input holds no records")
        return Exit.USAGE
    outcome = asyncio.run(_probe_call(config, findings.sample))
    click.echo(f"probe: {outcome_text(outcome)}")
    if isinstance(outcome, Success):
        return Exit.DONE
    click.echo(f"  {call_hint(outcome.reason)}")
    return Exit.USAGE


async def _probe_call(config: Config, sample: Sample) -> Outcome:
    [outcome] = [outcome async for outcome in outcomes(config, [sample])]
    return outcome
