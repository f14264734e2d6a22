"""Kills the process at a named step, or raises; Python imports this file by itself where its folder is on the path.

``FAIL_AT=settle-uncommitted:3`` kills the third time that a settle has written and not yet committed;
``RAISE_AT`` raises there. ``CLOCK`` names a file with seconds to add to the time of day.
"""

from __future__ import annotations

import os
import signal
import time
from functools import wraps
from pathlib import Path


def set_clock(path):
    """Add what the file says to the time of day, from now on and whenever it is written again."""
    true_time, file = time.time, Path(path)
    time.time = lambda: true_time() + float(file.read_text())


if clock := os.environ.get("CLOCK"):
    set_clock(clock)  # before anything of rowcall takes hold of time.time

from rowcall.client import Client  # noqa: E402
from rowcall.providers.http import HttpProvider  # noqa: E402
from rowcall.store.sqlite import SQLiteStore, claiming, enqueueing, sessions, settling  # noqa: E402
from rowcall.system import atomic_files  # noqa: E402


def before(function, die):
    @wraps(function)
    def patched(*args, **kwargs):
        die()
        return function(*args, **kwargs)

    return patched


def after(function, die):
    @wraps(function)
    def patched(*args, **kwargs):
        result = function(*args, **kwargs)
        die()
        return result

    return patched


def after_awaited(function, die):
    @wraps(function)
    async def patched(*args, **kwargs):
        result = await function(*args, **kwargs)
        die()
        return result

    return patched


STEPS = {
    "enqueue-begun": (enqueueing, "enqueue", before),
    "enqueue-uncommitted": (enqueueing, "enqueue", after),
    "enqueue-done": (SQLiteStore, "enqueue", after_awaited),
    "claim-begun": (claiming, "claim", before),
    "claim-uncommitted": (claiming, "claim", after),
    "claim-done": (SQLiteStore, "claim", after_awaited),
    "send": (Client, "exchange", before),
    "answer": (Client, "exchange", after_awaited),
    "settle-begun": (settling, "settle", before),
    "settle-uncommitted": (settling, "settle", after),
    "settle-done": (SQLiteStore, "settle", after_awaited),
    "open": (SQLiteStore, "_prepare", before),
    "session": (sessions, "begin", after),
    "beat": (sessions, "beat", before),
    "end": (SQLiteStore, "end_run", before),
    "build": (HttpProvider, "build", before),
    "read": (HttpProvider, "read", before),
    "export-begun": (atomic_files, "_finish", before),
    "export-done": (atomic_files, "_finish", after),
}


def at_last(times, act):
    """Lets a step pass so often, and then acts."""
    left = [times]

    def step():
        left[0] -= 1
        if left[0] == 0:
            act()

    return step


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise ZeroDivisionError("raised on purpose")


for variable, act in {"FAIL_AT": die, "RAISE_AT": fail}.items():
    if point := os.environ.get(variable):
        step, times = point.split(":")
        owner, name, how = STEPS[step]
        setattr(owner, name, how(getattr(owner, name), at_last(int(times), act)))
