"""One API call for every record of a file, carried to its end.

    async def label(row, call):
        reply = await call.post("/chat/completions", json={...})
        return {"label": reply.json()["choices"][0]["message"]["content"]}

    async with rowcall.open("reviews.db", api="openai", concurrency=32) as job:
        await job.add(rowcall.read("reviews.csv"), key="id")
        report = await job.run(label)                             # run it again to resume
        async for result in job.results(): ...

    rowcall.map(label, rows, key="id", store="reviews.db", api="openai")   # scripts and notebooks

Each name is imported when it is first used, so that ``import rowcall`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowcall.calls.handlers import Call, Fail, RetryLater, StopRun, SyncCall
    from rowcall.client import CallFailed
    from rowcall.engine.options import Report
    from rowcall.library import BatchJob, Result, read
    from rowcall.library import map_rows as map  # noqa: A004  used as rowcall.map
    from rowcall.library import open_job as open  # noqa: A004  used as rowcall.open
    from rowcall.model.errors import ConfigError, InputError, RequestChanged, RowcallError, RunStopped, StoreError
    from rowcall.model.job import Status

__version__ = "0.1.0"

__all__ = [
    "BatchJob",
    "Call",
    "CallFailed",
    "ConfigError",
    "Fail",
    "InputError",
    "Report",
    "RequestChanged",
    "Result",
    "RetryLater",
    "RowcallError",
    "RunStopped",
    "Status",
    "StopRun",
    "StoreError",
    "SyncCall",
    "map",
    "open",
    "read",
]

_HOMES = {
    "rowcall.client": ("CallFailed",),
    "rowcall.model.errors": ("ConfigError", "InputError", "RequestChanged", "RowcallError", "RunStopped", "StoreError"),
    "rowcall.calls.handlers": ("Call", "Fail", "RetryLater", "StopRun", "SyncCall"),
    "rowcall.model.job": ("Status",),
    "rowcall.library": ("BatchJob", "Result", "read"),
    "rowcall.engine.options": ("Report",),
}
_FOUND = {name: (home, name) for home, names in _HOMES.items() for name in names} | {
    "map": ("rowcall.library", "map_rows"),
    "open": ("rowcall.library", "open_job"),
}


def __getattr__(name: str) -> Any:
    if name not in _FOUND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, called = _FOUND[name]
    found = getattr(import_module(home), called)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
