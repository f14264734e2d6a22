"""Every verb against a store in PostgreSQL, as against a file; the password is in nothing that is seen or stored."""

from __future__ import annotations

import asyncio
import json

import psycopg
import pytest
from project import some_rows
from quickproject import QuickProject

import rowcall
from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline
from rowcall.store.postgres.reader import PostgresReader
from rowcall.store.sqlite import SQLiteReader

pytestmark = pytest.mark.postgres
PASSWORD = "s3cret"


class OnServer(QuickProject):
    """A project whose store is a database; all verbs but ``run`` and ``work`` are called in this process."""

    url = ""

    async def run(self, *args):
        ran = await (self.process(*args) if args[0] in ("run", "work") else super().run(*args))
        assert PASSWORD not in ran.out + ran.err
        return ran

    def ask(self, query):
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def statuses(self):
        return dict(self.ask("SELECT status, count(*) FROM rowcall.jobs GROUP BY status"))

    def away(self, folder):
        """The same project, seen from a folder that holds nothing."""
        there = OnServer(folder, self.api, env={"ROWCALL_STORE": self.url})
        there.url = self.url
        return there


@pytest.fixture
async def project(tmp_path, database_url):
    async with MockAPI(latency=0.005) as api:
        project = OnServer(tmp_path, api)
        project.url = database_url.replace("postgres@", f"postgres:{PASSWORD}@")
        project.write(some_rows(12))
        project.config((tmp_path / "config.toml").read_text() + f'[store]\npath = "{project.url}"\n')
        yield project


@pytest.fixture
async def finished(project):
    """Twelve records: eleven are done, and one has failed."""
    project.api.poison = {some_rows(12)[3][1]}
    report = await Pipeline(load(project.folder / "config.toml")).run()
    assert (report.done, report.failed) == (11, 1)
    return project


async def test_run_and_go_on(project):
    """The command starts, goes on after a limit, and calls nothing twice; the store knows no password."""
    ran = await project.run("run", "-n", "5")
    assert ran.code == 0, ran.err
    ran = await project.run("run", "--json")
    assert (ran.code, json.loads(ran.out)["done"]) == (0, 12), ran.err
    assert len(project.api.calls) == 12
    assert len(project.exported()) == 12
    [(settings,)] = project.ask("SELECT DISTINCT settings FROM rowcall.runs WHERE role = 'run' LIMIT 1")
    assert PASSWORD not in settings
    assert PASSWORD not in project.ask("SELECT recipe FROM rowcall.recipes")[0][0]


async def test_verbs_that_look(finished, tmp_path):
    """``status``, ``errors``, ``show``, ``report``, ``verify``, ``export`` say what they say of a file."""
    assert "12 records: 11 done, 1 failed" in (await finished.run("status")).out
    assert "12 records: 11 done, 1 failed" in (await finished.run("status", "--store", finished.url)).out
    assert "1  http_5" in (await finished.run("errors")).out
    ran = await finished.run("show", "k1")
    assert "k1: done, 1 attempt" in ran.out
    assert 'answer: {"label":"positive"' in ran.out
    assert (await finished.run("report", "-o", "run.html")).code == 0
    assert "<svg" in (finished.folder / "run.html").read_text()
    ran = await finished.run("verify")
    assert (ran.code, ran.out) == (0, "t: 12 records in the input, 12 in the store, 11 answers: all sound\n")
    ran = await finished.run("export", "-o", "again.csv", "--only", "done")
    assert "again.csv: 11 rows" in ran.err


async def test_verbs_that_change(finished):
    """``retry``, ``cancel``, ``rollback``, ``set``, ``prune`` change what they change in a file."""
    finished.api.poison = set()
    assert "1 record is pending again" in (await finished.run("retry", "--all-failed", "--yes")).err
    assert "1 record is cancelled" in (await finished.run("cancel", "--pending", "--yes")).err
    assert finished.statuses() == {"done": 11, "cancelled": 1}
    assert "pause=true; no run is live; kept for later runs" in (await finished.run("set", "pause=true", "--keep")).err
    assert (await finished.run("set", "pause=default", "--keep")).code == 0
    assert "11 stored inputs deleted" in (await finished.run("prune", "--done-before", "2099-01-01", "--yes")).err
    assert "11 pending again" in (await finished.run("rollback", "--batch", "pass-1", "--yes")).err
    assert (await finished.run("run")).code == 0
    assert finished.statuses() == {"done": 11, "cancelled": 1}
    assert "k3" in (await finished.run("show", "k3")).out


async def test_plain_sql_looks_and_sets_back(finished):
    """What the README shows of a file works in the schema too; what is set back by hand is called again."""
    with psycopg.connect(finished.url, autocommit=True, options="-c search_path=rowcall") as shell:
        found = dict(shell.execute("SELECT id, answer FROM records").fetchall())
        assert (found.pop("k3"), {json.loads(answer)["label"] for answer in found.values()}) == (None, {"positive"})
        [(key, reason)] = shell.execute("SELECT id, reason FROM jobs WHERE status = 'failed'").fetchall()
        assert (key, reason) == ("k3", "http_500")
        shell.execute("UPDATE jobs SET status = 'pending', attempts = 0 WHERE id IN ('k1', 'k3')")
        assert shell.execute("SELECT count(*) FROM records WHERE answer IS NOT NULL").fetchall() == [(10,)]
    finished.api.poison = set()
    assert (await finished.run("run")).code == 0
    assert finished.ask("SELECT count(*), count(answer), count(record) FROM rowcall.records") == [(12, 12, 12)]


async def test_backup_is_a_file_to_go_on_with(finished):
    """A backup of a database is a SQLite store, named after the database, with all that the database holds."""
    ran = await finished.run("backup")
    assert ran.code == 0, ran.err
    [copy] = finished.folder.glob("test*.db")
    async with await SQLiteReader.open(copy) as reader:
        assert (await reader.counts("t")).total == 12
    assert "11 done, 1 failed" in (await finished.run("status", "--store", copy.name)).out


async def test_a_rehearsal_leaves_the_database_as_it_was(project):
    """``--rehearse`` works on a copy, in a file, also where there is no store yet."""
    ran = await project.run("run", "--rehearse")
    assert "t: rehearsed 12 records" in ran.out, ran.err
    await project.run("run", "-n", "5")
    ran = await project.run("run", "--rehearse")
    assert "t: rehearsed 7 records" in ran.out, ran.err
    assert project.statuses() == {"done": 5, "pending": 7}


async def test_nobody_has_made_a_store_yet(project):
    """An empty database is one in which nothing was stored yet: exit 2, and the place is named."""
    ran = await project.run("status")
    assert ran.code == 2
    assert "there is no store yet" in ran.err
    assert project.url.rpartition("@")[2] in ran.err


async def test_a_server_that_is_not_there_is_named(project):
    """A server that cannot be reached is named by its place, exit 2, for reading and for writing."""
    project.replace(project.url, f"postgresql://u:{PASSWORD}@127.0.0.1:9/jobs")
    for verb in ("status", "run"):
        ran = await project.run(verb)
        assert ran.code == 2
        assert "127.0.0.1:9/jobs" in ran.err


async def test_the_library_takes_a_url(database_url):
    """``rowcall.open`` works on a database as on a file; a worker is told that a program makes those calls."""

    async def double(row, call):
        return {"twice": 2 * row["n"]}

    async with rowcall.open(database_url, name="numbers", api="mock") as job:
        assert (await job.add([{"n": n} for n in range(9)], key="n")).new == 9
        assert (await job.run(double)).done == 9
        assert (await job.add([{"n": n} for n in range(10)], key="n")).done == 9
        assert [result.value async for result in job.results()][:2] == [{"twice": 0}, {"twice": 2}]
    async with await PostgresReader.open(database_url) as reader:
        assert "a program makes the calls" in (await reader.recipe("numbers"))["withheld"]


async def test_workers_on_two_machines(project, tmp_path_factory):
    """Two workers, one without a config, share what an enqueue brought in; one is killed, and nothing is lost."""
    project.rows(some_rows(300))
    project.api.latency = 0.05
    assert "300 new" in (await project.run("enqueue")).err
    there = project.away(tmp_path_factory.mktemp("there"))
    doomed = await there.start("work", "--store", project.url, "-c", "4")
    await project.api.wait_for_calls(10)
    here = await project.start("work", "-c", "4")
    await project.api.wait_for_calls(60)
    await there.kill(doomed)
    ran = await project.end(here)
    assert ran.code == 0, ran.err
    assert project.statuses() == {"done": 300}
    assert 300 <= len(project.api.calls) <= 300 + 3 * 4
    assert len({call.body for call in project.api.calls}) == 300
    ran = await there.run("work", "--store", project.url, "--json")
    assert (ran.code, json.loads(ran.out)["done"]) == (0, 300)


async def test_a_worker_waits_for_records_of_another_machine(project, tmp_path_factory):
    """A waiting worker takes what an enqueue elsewhere brings in, until it is stopped by its signal."""
    assert (await project.run("enqueue")).code == 0
    there = project.away(tmp_path_factory.mktemp("there"))
    process = await there.start("work", "--wait", "--store", project.url)
    await project.api.wait_for_calls(12)
    project.rows(some_rows(20))
    assert "8 new" in (await project.run("enqueue")).err
    await project.api.wait_for_calls(20)
    process.terminate()
    ran = await asyncio.wait_for(there.end(process), 20)
    assert (ran.code, len(project.api.calls)) == (143, 20)
    assert "20 done, 0 failed" in ran.err
