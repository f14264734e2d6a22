"""``rowcall check``: all that can be found wrong beforehand."""

from __future__ import annotations

import asyncio
import json
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rowcall import __version__, values
from rowcall.cli.common import SETTING_FLAGS, config_argument, overrides, setting_options
from rowcall.cli.examine import Findings, examine
from rowcall.config import Config, KeyPath, load
from rowcall.errors import Exit
from rowcall.job import Job
from rowcall.outcome import Outcome, Success
from rowcall.progress import clean

_LIBRARIES = ("aiohttp", "aiosqlite", "click", "httpx", "jinja2", "jmespath", "orjson", "pydantic", "tenacity")
_SHOWN_BODY = 600
"""Characters of a request's body that are shown."""
_SHOWN_VALUE = 100
"""Characters of a setting that are shown."""


@click.command(epilog="Example: rowcall check && rowcall run")
@config_argument
@setting_options
@click.option("--probe", is_flag=True, help="Then make one real call, with the first record, and show what it gives.")
@click.option("-v", "--verbose", is_flag=True, help="Each setting with where it comes from, and the versions in use.")
def check(config: Path, probe: bool, verbose: bool, **flags: Any) -> int:
    """Find all that is wrong before a run: config, secrets, every row of the input; the first requests are shown.

    Nothing is sent without --probe, and the store is not touched. Exit 2 where something is wrong.
    """
    loaded = load(config, overrides=overrides(flags))
    if verbose:
        click.echo("\n".join([*_versions(), *_settings(loaded)]))
    findings = examine(loaded)
    click.echo("\n".join(_report(findings)))
    if findings.problem_count:
        return Exit.USAGE
    return _probe(loaded, findings) if probe else Exit.DONE


def _report(findings: Findings) -> Iterator[str]:
    for where, shown in findings.first:
        yield "\n  ".join([f"{clean(where)}:", *shown.lines(_SHOWN_BODY)])
    for problem in findings.problems:
        yield "\n  ".join(map(clean, str(problem).split("\n")))
    if more := findings.problem_count - len(findings.problems):
        yield f"... and {more:,} more problems"
    yield _summary(findings)


def _summary(findings: Findings) -> str:
    trouble = [(findings.clashes, "keys not unique"), (findings.keyless, "without a key")]
    keys = [f"{number:,} {what}" for number, what in trouble if number] or ["keys unique"]
    said = [f"{findings.records:,} records", *keys]
    said += ["requests made by the handler"] if findings.handler else [f"{findings.rendered:,} render"]
    more = [(findings.repeated, "repeated"), (findings.set_aside, "bad lines to be set aside")]
    said += [f"{number:,} {what}" for number, what in more if number]
    if findings.problem_count:
        said.append(f"{findings.problem_count:,} problem{'s' * (findings.problem_count > 1)}")
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


def _leaves(table: dict[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _source(config: Config, path: KeyPath) -> str:
    """Where a setting comes from; a flag or a variable by its name."""
    flag = SETTING_FLAGS.get(".".join(map(str, path)))
    given = click.get_current_context().get_parameter_source(flag) if flag else None
    if flag and given is ParameterSource.COMMANDLINE:
        return f"--{flag.replace('_', '-')}"
    return f"ROWCALL_{flag.upper()}" if flag and given is ParameterSource.ENVIRONMENT else config.source_of(path)


def _probe(config: Config, findings: Findings) -> Exit:
    if findings.sample is None:
        click.echo("probe: there is no record to call with")
        return Exit.USAGE
    outcome = asyncio.run(_call(config, *findings.sample))
    click.echo(f"probe: {_outcome_text(outcome)}")
    return Exit.DONE if isinstance(outcome, Success) else Exit.USAGE


async def _call(config: Config, key: str, data: dict[str, Any]) -> Outcome:
    """One real call."""
    from rowcall.calling import Departure, Wire
    from rowcall.pace.gate import Gate
    from rowcall.pace.rate import Rate
    from rowcall.parts import call_key, calls_of, make_client, make_mock
    from rowcall.templates import input_hash, request_hash

    async with AsyncExitStack() as stack:
        base_url = None
        if config.api.preset == "mock":
            base_url = (await stack.enter_async_context(make_mock(config))).url
        calls = await asyncio.to_thread(lambda: calls_of(config.resolve(), base_url))
        client = await stack.enter_async_context(make_client(config, 1))
        hashed = input_hash(data, calls.columns, calls.files)
        number = call_key(request_hash(config.fingerprint()), key, hashed)
        wire = Wire(client, Rate(), 1, lambda job: number, lambda event: None)
        caller = calls.make_caller(wire)
        stack.callback(caller.close)
        return await caller.call(Job(0, key, 0, 0, 0, (), True, 0, hashed, data), Departure(Gate()))


def _outcome_text(outcome: Outcome) -> str:
    took = "" if outcome.latency is None else f" in {outcome.latency * 1000:,.0f} ms"
    if isinstance(outcome, Success):
        status = f"HTTP {outcome.status}" if outcome.status else "answered"
        return f"{status}{took}: {clean(values.dumps(outcome.value).decode())}"
    return f"failed{took}: {outcome.reason} ({outcome.cls.value}): {clean(outcome.message)}"
