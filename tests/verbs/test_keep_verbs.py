"""Verbs that keep the store in good order: backup and prune; SQL by hand; exports at the same time."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import stat

import pytest
from project import some_rows


async def test_backup_during_a_run_opens_clean_and_resumes(project):
    """A backup made while calls are in flight has nothing running, and a run on it does exactly what it has left."""
    project.api.latency = 0.05
    project.write(some_rows(150))
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(40), 20)
    ran = await project.run("backup", "copy.db")
    assert ran.code == 0, ran.err
    assert (await project.end(process)).code == 0
    assert project.statuses() == {"done": 150}
    statuses = in_copy(project, "SELECT status, count(*) FROM jobs GROUP BY status")
    assert set(dict(statuses)) == {"done", "pending"}
    assert in_copy(project, "PRAGMA integrity_check") == [("ok",)]
    assert in_copy(project, "SELECT count(*) FROM sessions") == [(0,)]
    calls, done = len(project.api.calls), dict(statuses)["done"]
    shutil.move(project.folder / "copy.db", project.folder / "t2.db")
    project.replace("[retry]", '[store]\npath = "t2.db"\n[retry]')
    assert "stopped" in (await project.run("status")).out
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) - calls == 150 - done
    assert len(project.exported()) == 150


def in_copy(project, query):
    connection = sqlite3.connect(project.folder / "copy.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def test_backup_refuses_an_existing_file(finished):
    """A file that is there is left as it is, exit 2; so is a folder that is not there named."""
    (finished.folder / "mine.db").write_text("mine")
    ran = await finished.run("backup", "mine.db")
    assert ran.code == 2
    assert "mine.db" in ran.err
    assert (finished.folder / "mine.db").read_text() == "mine"
    ran = await finished.run("backup", "no/such/folder/copy.db")
    assert ran.code == 2
    assert "folder" in ran.err
    assert not list(finished.folder.glob(".rowcall-*"))


async def test_backup_has_a_default_name_and_keeps_the_newest(finished):
    """Left out, the name is the store's with the time; ``--keep`` deletes the oldest of that pattern alone."""
    old = ["t-20200101-000000.db", "t-20210101-000000.db", "t-20220101-000000.db"]
    other = ["t-mine.db", "other-20200101-000000.db", "t-20200101-000000.db.txt"]
    for name in old + other:
        (finished.folder / name).write_text("x")
    ran = await finished.run("backup", "--keep", "2")
    assert ran.code == 0
    here = {file.name for file in finished.folder.iterdir()}
    assert here.isdisjoint(old[:2])
    assert here >= {*other, old[2]}
    (made,) = [name for name in here - set(old) if re.fullmatch(r"t-20\d{6}-\d{6}\.db", name)]
    assert made in ran.err
    assert (await finished.run("backup", "named.db", "--keep", "2")).code == 2


async def test_backup_is_for_the_same_eyes(finished):
    """The copy has the permissions of the store."""
    (finished.folder / "t.db").chmod(0o600)
    await finished.run("backup", "copy.db")
    assert stat.S_IMODE((finished.folder / "copy.db").stat().st_mode) == 0o600


@pytest.fixture
async def large(project):
    """Forty done records with 20 kB each."""
    rows = [[f"k{n}", f"sentence number {n} is good", "x" * 20_000] for n in range(40)]
    project.write(rows)
    assert (await project.run("run")).code == 0
    return project


async def test_prune_makes_the_file_smaller(large):
    """Payloads of done records go, the file shrinks and says by how much; status, answers and export stay."""
    assert (await large.run("retry", "k1", "--done")).code == 0
    exported = large.exported()
    before = (large.folder / "t.db").stat().st_size
    ran = await large.run("prune", "--done-before", "2099-01-01", "--yes")
    assert ran.code == 0, ran.err
    assert "39 stored inputs deleted" in ran.err
    gained = int(re.search(r"([\d,]+) bytes freed", ran.err)[1].replace(",", ""))
    assert gained > 39 * 15_000
    assert (large.folder / "t.db").stat().st_size <= before - gained
    assert large.statuses() == {"done": 39, "pending": 1}
    assert large.sql("SELECT count(*) FROM results") == [(40,)]
    assert "pruned" in (await large.run("show", "k2")).out
    assert '"label":"positive"' in (await large.run("show", "k2")).out
    assert (await large.run("run")).code == 0
    assert len(large.api.calls) == 41
    assert large.exported() == exported


async def test_a_pruned_record_is_called_with_its_record(large):
    """A pruned record that is set back, by ``retry`` or by hand, waits until the input has brought its record again."""
    await large.run("prune", "--done-before", "2099-01-01")
    await large.run("retry", "k3", "--done")
    large.sql("UPDATE jobs SET status = 'pending', attempts = 0 WHERE id = 'k5'")
    assert (await large.run("run")).code == 0
    assert large.statuses() == {"done": 40}
    assert len(large.api.calls) == 42
    assert large.sql("SELECT count(*) FROM tries") == [(0,)]
    await large.run("prune", "--done-before", "2099-01-01")
    await large.run("retry", "k3", "--done")
    large.rows([[f"k{n}", f"sentence number {n} is good", "x"] for n in range(40) if n != 3])
    ran = await large.run("run", "--all")
    assert "1 record is no longer in the input" in ran.err
    assert large.statuses() == {"done": 39, "pending": 1}


async def test_prune_by_date_and_dry_run(large):
    """What was done later stays; ``--dry-run`` changes nothing; a date that is none is a usage error."""
    ran = await large.run("prune", "--done-before", "2020-01-01")
    assert "0 stored inputs deleted" in ran.err
    ran = await large.run("prune", "--done-before", "2099-01-01", "--dry-run")
    assert "40 records" in ran.err
    assert large.sql("SELECT count(*) FROM payloads") == [(40,)]
    assert (await large.run("prune", "--done-before", "yesterday")).code == 2


async def test_prune_is_refused_while_a_run_is_alive(project):
    """While a run works nothing is dropped: exit 2 at once, naming the process."""
    project.write(some_rows(30))
    project.api.latency = 5
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(1), 20)
    ran = await asyncio.wait_for(project.run("prune", "--done-before", "2099-01-01"), 10)
    assert ran.code == 2
    assert f"process {process.pid}" in ran.err
    await project.kill(process)
    assert (await project.run("prune", "--done-before", "2099-01-01")).code == 0


async def test_sql_by_hand_on_a_finished_store(project):
    """Counting, listing errors, one row and one kind set back by hand: the next run does exactly those."""
    project.api.poison = {"sentence number 2 is good", "sentence number 5 is good"}
    project.write(some_rows(10))
    assert (await project.run("run")).code == 1
    assert project.statuses() == {"done": 8, "failed": 2}
    errors = project.sql("SELECT id, reason, attempts FROM jobs WHERE status = 'failed' ORDER BY rowid")
    assert errors == [("k2", "http_500", 3), ("k5", "http_500", 3)]
    project.api.poison, calls = set(), len(project.api.calls)
    project.sql("UPDATE jobs SET status = 'pending', attempts = 0 WHERE id = 'k7'")
    project.sql("UPDATE jobs SET status = 'pending', attempts = 0 WHERE kind = 't' AND status = 'failed'")
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) - calls == 3
    assert project.statuses() == {"done": 10}
    assert set(project.attempts().values()) == {1}


async def test_a_whole_kind_set_back_by_hand(finished):
    """All rows of one kind set back by hand are called again, each once."""
    finished.sql("UPDATE jobs SET status = 'pending', attempts = 0 WHERE kind = 't'")
    assert (await finished.run("run")).code == 0
    assert finished.statuses() == {"done": 10}
    assert len(finished.api.calls) == 20


async def test_exports_to_one_path_at_the_same_time(finished):
    """Several exports to one path leave one complete file, and no leftovers beside it."""
    whole = (finished.folder / "out.csv").read_bytes()
    names = {file.name for file in finished.folder.iterdir()}
    ended = await asyncio.gather(*(finished.process("export", "-o", "all.csv") for _ in range(5)))
    assert [ran.code for ran in ended] == [0] * 5
    assert (finished.folder / "all.csv").read_bytes() == whole
    left = {file.name for file in finished.folder.iterdir()} - names - {"all.csv", "t.db-wal", "t.db-shm"}
    assert left == set()
