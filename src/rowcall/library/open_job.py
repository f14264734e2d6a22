"""The functions ``rowcall.open``, ``rowcall.read`` and ``rowcall.map``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rowcall.calls.handlers import Function
from rowcall.config import Secret, compose, default_name
from rowcall.config.preset_defaults import PRESET_DEFAULTS, PresetDefaults
from rowcall.config.references import SECRET_HEADERS
from rowcall.engine.options import IfChanged
from rowcall.library.added_records import Records
from rowcall.library.batch_job import BatchJob
from rowcall.library.job_results import Result
from rowcall.library.loop_thread import run_in_thread
from rowcall.model.errors import ConfigError, Problem, RunStopped
from rowcall.model.events import Listener
from rowcall.model.store_location import StoreLocation
from rowcall.sources import open_source
from rowcall.sources.base import Source

_GIVEN_LATER = "program.py:handler"
"""A placeholder in the config: each run names its handler."""


def read(path: str | Path, **how: Any) -> Source:
    """Return a file of records that ``add`` and ``map`` accept. Nothing is read yet.

    Args:
        path: a ``.csv``, ``.tsv``, ``.jsonl``, ``.json`` or ``.db`` file, also with ``.gz``; ``-`` is standard input.
        how: ``format``, ``header``, ``quoting``, ``encoding``, ``sql``, ``on_bad``, as in ``[input]`` of a config.

    Raises:
        InputError: the suffix or the encoding is unknown, or the format does not have an option.
    """
    return open_source(path, **how)


def open_job(
    store: str | Path,
    *,
    name: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    concurrency: int = 32,
    requests: str | None = None,
    attempts: int = 3,
    timeout: float | str = 90.0,
    answer: Iterable[str | int] = (),
    version: str = "1",
    columns: Iterable[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    on_event: Listener | None = None,
    display: bool | None = None,
) -> BatchJob:
    """Return a batch job, to be used as an async context manager. Nothing is opened or sent yet.

    Args:
        store: the SQLite file, or the URL of a PostgreSQL database (``postgresql://user@host/database``). It is created
            if it does not exist.
        name: the batch job in the store; None: the name of the file without its suffix, or of the database.
        api: a preset such as ``openai`` or ``anthropic``; ``http`` (the default); ``mock``, a fake API in this process.
        base_url: the URL that the paths in a handler's calls are appended to; None: the API's own URL.
        api_key: the key, sent to that host in the API's own header. None: the API's usual environment variable, such as
            OPENAI_API_KEY, unless ``base_url`` is given.
        headers: headers of every request to that host.
        concurrency: the most records to work on at once, and the most requests in flight.
        requests: the rate limit: ``500/min``, ``10/s``. None: no limit.
        attempts: the most charged attempts per record.
        timeout: the time limit for one whole request, in seconds or as text such as ``90s``.
        answer: statuses outside 2xx that are answers, not failures: ``404``, ``4xx``.
        version: the version of the handler. With another version, finished records are to be called again.
        columns: the columns that the handler is given; a record counts as changed if one of them changes. None: all.
        settings: further config keys by their dotted names: ``{"stop.grace": "5s"}``.
        on_event: called with each event, in the event loop. The events are those of ``rowcall run --events``.
        display: True shows the progress of runs on stderr or in the notebook's cell; False shows nothing; None shows it
            in a notebook only.

    Raises:
        ConfigError: values cannot be used; the message lists all of them.
    """
    place = _location(store)
    key = Secret("api_key", api_key) if api_key is not None else _key_from_environment(api, base_url)
    tables = {
        "name": name or default_name(place.path or Path(f"{place.stem}.db")),
        "input": {"path": "records"},
        "api": {
            "preset": api or "http",
            "base_url": base_url,
            "api_key": key,
            "headers": {name: _hidden(name, value) for name, value in (headers or {}).items()},
            "timeout": timeout,
        },
        "handler": {"path": _GIVEN_LATER, "version": version, "columns": columns and list(columns)},
        "response": {"answer": list(answer)},
        "pace": {"concurrency": concurrency, "requests": requests},
        "retry": {"attempts": attempts},
        "store": {"path": place.url or str(place.path)},
    }
    return BatchJob(
        compose(_without_none(tables), name="rowcall.open", further=settings or {}), on_event, display=display
    )


def map_rows(
    handler: Function,
    rows: Records,
    key: str | None = None,
    *,
    store: str | Path,
    if_changed: IfChanged | None = None,
    **options: Any,
) -> list[Result]:
    """Run a handler for rows and return the results in the order of the rows.

    Works in a script, in a notebook and inside a running event loop, which it blocks: it uses an event loop of its own
    in a thread. Finished records in the store are not called again; the same call resumes after a stop.

    Args:
        handler: ``async def f(row, call)``, or ``def f(row, call)``.
        rows: the rows, in any form that ``add`` accepts.
        key: a column or a template that is unique per record; None: a hash of the record.
        store: the store, in any form that ``rowcall.open`` accepts.
        if_changed: ``keep``, ``redo`` or ``stop``, as in ``run``.
        options: further arguments of ``rowcall.open``.

    Raises:
        RunStopped: the run ended before all records did: no credit, a wrong key, an unreachable API.
        RowcallError: for the same reasons as ``open``, ``add`` and ``run``.
    """

    async def work() -> list[Result]:
        async with open_job(store, **options) as job:
            await job.add(rows, key=key)
            ending = (await job.run(handler, if_changed=if_changed)).ending
            if ending.reason != "done":
                what = f"stopped: {ending.message or ending.reason}"
                raise RunStopped(what, reason=ending.reason, remedy="Nothing is lost; call it again to resume.")
            return [result async for result in job.results()]

    return run_in_thread(work)


def _location(store: str | Path) -> StoreLocation:
    """Return the absolute location, which stays valid if the program changes its working directory."""
    try:
        return StoreLocation.of(str(store), Path.cwd())
    except ValueError as error:
        raise ConfigError(Problem("rowcall.open", f"store {error}")) from None


def _key_from_environment(api: str | None, base_url: str | None) -> dict[str, str] | None:
    """Return a reference to the API's own key; None with another ``base_url``, which must not be sent that key."""
    variable = PRESET_DEFAULTS.get(api or "", PresetDefaults()).key if base_url is None else ""
    return {"env": variable} if variable else None


def _hidden(header: str, value: Any) -> Any:
    """Return a header's value; if it is a secret, in a form that no message shows."""
    secret = header.lower() in SECRET_HEADERS and isinstance(value, str) and "{{" not in value
    return Secret(header, value) if secret else value


def _without_none(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables without the keys that were not given."""
    return {
        name: _without_none(value) if isinstance(value, dict) and name != "headers" else value
        for name, value in tables.items()
        if value is not None
    }
