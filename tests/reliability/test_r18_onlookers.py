"""R18: others look at the store, or hold it, while a run writes."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest
from aftermath import ended_once
from project import some_rows


@contextlib.contextmanager
def shell(project, begin):
    """Another program with a transaction open on the store."""
    with contextlib.closing(sqlite3.connect(project.folder / "t.db", isolation_level=None, timeout=5)) as connection:
        connection.execute(begin)
        connection.execute("SELECT count(*) FROM jobs").fetchall()
        yield
        connection.execute("ROLLBACK")


async def running(project, rows):
    project.api.latency = 0.05
    project.write(some_rows(rows))
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(20), 20)
    return process


async def undisturbed(project, process, rows):
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    assert "database is locked" not in ran.err
    ended_once(project, rows)
    assert len(project.api.calls) == rows


async def test_status_and_export_in_a_loop(project):
    """Both work at any time, never see more done than there is, and cost the run nothing."""
    process = await running(project, 300)
    last, looks = 0, 0
    while process.returncode is None and looks < 2:
        status, export = await asyncio.gather(
            project.run("status", "--json"), project.run("export", "-o", f"now{looks}.csv")
        )
        assert (status.code, export.code) == (0, 0), (status, export)
        done = project.summary(status)["done"]
        assert last <= done <= 300
        assert len(project.exported(f"now{looks}.csv")) == 300
        last, looks = done, looks + 1
    assert looks
    await undisturbed(project, process, 300)


@pytest.mark.parametrize(("rows", "seconds"), [(200, 1.0), pytest.param(1000, 8, marks=pytest.mark.slow)])
async def test_a_reader_with_an_open_transaction(project, rows, seconds):
    """Somebody who reads for long lets the run go on."""
    process = await running(project, rows)
    with shell(project, "BEGIN"):
        before = project.api.served[200]
        await asyncio.sleep(seconds)
        assert project.api.served[200] > before + 10
        assert (project.folder / "t.db-wal").stat().st_size < 2**26 + 2**23
    await undisturbed(project, process, rows)


@pytest.mark.parametrize(("rows", "seconds"), [(150, 1.0), pytest.param(300, 20, marks=pytest.mark.slow)])
async def test_a_shell_that_holds_the_write_lock(project, rows, seconds):
    """Somebody who holds the write lock is waited for; the answers in hand are kept, and no call is repeated."""
    process = await running(project, rows)
    with shell(project, "BEGIN IMMEDIATE"):
        await asyncio.sleep(seconds)
        status = await project.run("status")
        assert status.code == 0, status.err
        called = len(project.api.calls)
        await asyncio.sleep(0.2)
        assert len(project.api.calls) - called <= 2 * 8
    await undisturbed(project, process, rows)
