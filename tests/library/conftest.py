"""Batch jobs of a program over a real store and a real server."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import rowcall
from rowcall.mock import MockAPI
from rowcall.model.events import GateClosed

QUICK = {"retry.backoff": {"first": "20ms", "max": "100ms"}, "stop.first_success": "2s"}


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


class Store:
    """The database of a job, looked at by plain SQL."""

    def __init__(self, path):
        self.path = path

    def sql(self, query, *args):
        with closing(sqlite3.connect(self.path, timeout=5)) as connection:
            return connection.execute(query, args).fetchall()

    def statuses(self):
        return dict(self.sql("SELECT status, count(*) FROM jobs GROUP BY status"))

    def attempts(self):
        return dict(self.sql("SELECT id, attempts FROM jobs"))

    def job(self, key):
        names = ("status", "reason", "error", "attempts")
        (found,) = self.sql(f"SELECT {', '.join(names)} FROM jobs WHERE id = ?", str(key))
        return dict(zip(names, found, strict=True))

    def tries(self):
        return self.sql("SELECT class, reason, message, charged, body FROM tries ORDER BY job, epoch")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "t.db")


@pytest.fixture
def opened(api, store):
    """Opens the job of the test's store against the test's API, with short backoffs."""

    def opened(**options):
        options = {"base_url": api.url, "concurrency": 8, "settings": QUICK} | options
        return rowcall.open(store.path, **options)

    return opened


@pytest.fixture
def done(opened):
    """Adds rows, runs a handler and returns the report."""

    async def done(handler, rows, **options):
        async with opened(**options) as job:
            await job.add(rows, key="id")
            return await job.run(handler)

    return done


def some(count):
    return [{"id": n, "text": f"text {n} is good"} for n in range(count)]


@pytest.fixture
def rows():
    return some


@pytest.fixture
def gate():
    """A listener, and a wait until it heard that the gate has closed."""
    import asyncio

    class Heard:
        def __init__(self):
            self.events = []
            self._closed = asyncio.Event()

        def __call__(self, event):
            self.events.append(event)
            if isinstance(event, GateClosed):
                self._closed.set()

        async def closed(self):
            await asyncio.wait_for(self._closed.wait(), 10)

    return Heard()
