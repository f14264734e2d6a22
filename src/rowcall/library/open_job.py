"""``rowcall.open``, ``rowcall.read`` and ``rowcall.map``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rowcall.calls.handlers import Function
from rowcall.config import Secret, compose, default_name
from rowcall.config.preset_defaults import PRESET_DEFAULTS, PresetDefaults
from rowcall.config.references import SECRET_HEADERS
from rowcall.engine.options import IfChanged, Report
from rowcall.library.added_records import Records
from rowcall.library.batch_job import BatchJob, Result
from rowcall.library.loop_thread import apart
from rowcall.model.errors import ConfigError, Problem, RunStopped
from rowcall.model.events import Listener
from rowcall.model.store_location import StoreLocation
from rowcall.sources import open_source
from rowcall.sources.base import Source

_GIVEN_LATER = "program.py:handler"
"""Stands for the handler, which comes with each run."""


def read(path: str | Path, **how: Any) -> Source:
    """A file of records, to be added; nothing is read yet.

    Args:
        path: ``.csv`` ``.tsv`` ``.jsonl`` ``.json`` ``.db``, also with ``.gz``; ``-`` is standard input.
        how: ``format``, ``header``, ``quoting``, ``encoding``, ``sql``, ``on_bad``, as ``[input]`` has them.

    Raises:
        InputError: an unknown suffix or encoding, or an option that the format does not know.
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
    """A batch job, to be used as an async context manager. Nothing is opened or sent yet.

    Args:
        store: the SQLite file, or the URL of a PostgreSQL database (``postgresql://user@host/database``); made where
            there is none.
        name: which batch job in it; None: the file's name without its suffix, or the database's.
        api: a preset such as ``openai`` or ``anthropic``, ``http`` (as None) or ``mock``, a fake API in this process.
        base_url: where the paths that a handler calls are joined to; None: the API's own.
        api_key: goes to that host in the API's own header; None: without another ``base_url`` the variable by
            custom, such as OPENAI_API_KEY.
        headers: for every request to that host.
        concurrency: most records worked on at a time, and most requests in flight.
        requests: most requests in a time: ``500/min``, ``10/s``.
        attempts: charged tries per record.
        timeout: for one request, all of it; seconds, or text such as ``90s``.
        answer: statuses beyond 2xx that are answers, not failures: ``404``, ``4xx``.
        version: of the handler; another one means that done records are to be done again.
        columns: those that the handler is given and records are known by; None: all of them.
        settings: further keys of the config by their dotted names: ``{"stop.grace": "5s"}``.
        on_event: told what happens, in the loop; see events.py.
        display: True shows runs while they work, on stderr or in the notebook's cell; False shows nothing; None: only
            in a notebook.

    Raises:
        ConfigError: every value that cannot be used.
    """
    place = _placed(store)
    key = Secret("api_key", api_key) if api_key is not None else _key_from_environment(api, base_url)
    tables = {
        "name": name or default_name(place.path or Path(f"{place.stem}.db")),
        "input": {"path": "records"},
        "api": {
            "preset": api or "http",
            "base_url": base_url,
            "api_key": key,
            "headers": _hidden(headers or {}),
            "timeout": timeout,
        },
        "handler": {"path": _GIVEN_LATER, "version": version, "columns": columns and list(columns)},
        "response": {"answer": list(answer)},
        "pace": {"concurrency": concurrency, "requests": requests},
        "retry": {"attempts": attempts},
        "store": {"path": place.url or str(place.path)},
    }
    return BatchJob(compose(_said(tables), name="rowcall.open", further=settings or {}), on_event, display=display)


def map_rows(
    handler: Function,
    rows: Records,
    key: str | None = None,
    *,
    store: str | Path,
    if_changed: IfChanged | None = None,
    **options: Any,
) -> list[Result]:
    """Run a handler for rows and wait for the results, which come in the order of the rows.

    It works in a script, in a notebook and inside a running loop, which stands still meanwhile: it has a loop of its
    own, in a thread. What is done in the store is not done again; the same call goes on after a stop.

    Args:
        handler: ``async def f(row, call)``, or ``def f(row, call)``.
        rows: as ``add`` takes them.
        key: a column, or a template, unique per record; None: a hash of the record.
        store: as ``rowcall.open`` takes it.
        if_changed: ``keep``, ``redo`` or ``stop``, as in ``run``.
        options: those of ``rowcall.open``.

    Raises:
        RunStopped: the run ended before all records did: no credit, a wrong key, an API that cannot be reached.
        RowcallError: as ``open``, ``add`` and ``run`` do.
    """

    async def work() -> list[Result]:
        async with open_job(store, **options) as job:
            await job.add(rows, key=key)
            _require_end(await job.run(handler, if_changed=if_changed))
            return [result async for result in job.results()]

    return apart(work)


def _placed(store: str | Path) -> StoreLocation:
    """Where the store is, whatever folder the program goes to later."""
    try:
        return StoreLocation.of(str(store), Path.cwd())
    except ValueError as error:
        raise ConfigError(Problem("rowcall.open", f"store {error}")) from None


def _require_end(report: Report) -> None:
    ending = report.ending
    if ending.reason != "done":
        remedy = "nothing is lost: the same call goes on"
        raise RunStopped(f"stopped: {ending.message or ending.reason}", reason=ending.reason, remedy=remedy)


def _key_from_environment(api: str | None, base_url: str | None) -> dict[str, str] | None:
    """A reference to the API's own key, which goes to nobody else's host."""
    variable = PRESET_DEFAULTS.get(api or "", PresetDefaults()).key if base_url is None else ""
    return {"env": variable} if variable else None


def _hidden(headers: Mapping[str, str]) -> dict[str, Any]:
    """Headers, with those that are secrets hidden from every message."""
    return {name: Secret(name, value) if _is_secret(name, value) else value for name, value in headers.items()}


def _is_secret(name: str, value: Any) -> bool:
    return name.lower() in SECRET_HEADERS and isinstance(value, str) and "{{" not in value


def _said(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables without the keys that were left out."""
    return {
        name: _said(value) if isinstance(value, dict) and name != "headers" else value
        for name, value in tables.items()
        if value is not None
    }
