"""``rowcall work``: calls are made for what others bring in."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from project import some_rows
from workkit import until

from rowcall.model.errors import RowcallError
from rowcall.model.events import Joined
from rowcall.progress.event_counts import EventCounts
from rowcall.progress.view import view_of


async def test_work_calls_what_was_brought_in_and_writes_no_export(project):
    """The command works off the pass and ends with a summary; no input is read, no export written, unless asked."""
    await project.run("enqueue")
    (project.folder / "in.csv").rename(project.folder / "away.csv")
    ran = await project.work("--json", "--no-progress")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["done"] == 40
    assert "t: working in " in ran.err
    assert "this run: 40 done, 0 failed" in ran.err
    assert len(project.api.calls) == 40
    assert not (project.folder / "out.csv").exists()
    (project.folder / "away.csv").rename(project.folder / "in.csv")
    assert (await project.work("-q", "-o", "asked.csv")).code == 0
    assert len(project.exported("asked.csv")) == 40


async def test_records_that_no_worker_can_call_are_said(project):
    """What is left since its stored input was pruned is counted at the end, with what brings it in again."""
    await project.run("enqueue")
    await project.work_off()
    await project.run("prune", "--done-before", "2099-01-01", "--yes")
    await project.run("retry", "--done", "k0", "k1", "--yes")
    ran = await project.work()
    assert ran.code == 0, ran.err
    said = "2 records are no longer in the input, or their stored input was pruned (rowcall enqueue stores it again)"
    assert f"38 done, 0 failed, 2 left\n  {said}, and were skipped\n" in ran.err
    await project.run("enqueue")
    assert (await project.work_off()).done == 40


async def test_workers_share_a_pass(project):
    """Two workers on one pass call each record once, both take part, and both end when nothing is left."""
    await project.run("enqueue")
    project.api.latency = 0.05
    told = []
    (_, working), (_, too) = project.worker(emit=told.append), project.worker(emit=told.append)
    reports = await asyncio.wait_for(asyncio.gather(working, too), 20)
    assert [report.ending.reason for report in reports] == ["done", "done"]
    assert sum(report.tally.done for report in reports) == 40
    assert min(report.tally.done for report in reports) > 5
    assert len(project.api.calls) == 40
    assert Joined(1) in told


async def test_a_worker_waits_for_whoever_still_brings_records_in(project):
    """As long as an enqueue is under way a worker stays, though nothing is left for the moment."""
    project.replace('path = "in.csv"', 'path = "-"\nformat = "jsonl"')
    process = await project.start("enqueue", stdin=asyncio.subprocess.PIPE)
    process.stdin.write(b"".join(b'{"id": "%d", "text": "%s"}\n' % (n, b"a good one " * 200) for n in range(150)))
    await process.stdin.drain()
    await until(lambda: (project.folder / "t.db").exists() and project.statuses())
    project.api.latency = 0.0
    worker, working = project.worker(**{"pace.concurrency": 64})
    await until(lambda: worker.tally.done and not worker.view.in_flight and "pending" not in project.statuses())
    assert worker.view.reading
    assert not working.done()
    process.stdin.write(b'{"id": "last", "text": "a sentence that is good"}\n')
    process.stdin.close()
    assert (await project.end(process)).code == 0
    report = await asyncio.wait_for(working, 20)
    assert (report.done, report.left, report.ending.reason) == (151, 0, "done")


async def test_a_waiting_worker_may_be_there_first(project):
    """With a store that is not there yet it says so and waits; without --wait that is a mistake."""
    refused = await project.run("work", "--store", "t.db")
    assert (refused.code, "t.db: there is no store yet" in refused.err) == (2, True), refused.err
    process = await project.start("work", "--wait", "--no-progress", "--store", "t.db")
    assert await process.stderr.readline() == b"t.db: there is no store yet; waiting for rowcall enqueue\n"
    await project.run("enqueue")
    await until(lambda: project.statuses() == {"done": 40})
    process.send_signal(signal.SIGINT)
    assert (await project.end(process)).code == 130


async def test_a_waiting_worker_stays_and_takes_what_comes(project):
    """With ``--wait`` a worker may be there before the first record, and after the last one, until it is stopped."""
    worker, working = project.worker(wait=True)
    await until(lambda: worker.working)
    ran = await project.run("enqueue")
    assert "Have them called" not in ran.err
    await until(lambda: worker.tally.done == 40)
    project.rows([*some_rows(40), ["k40", "one more", "n"]])
    await project.run("enqueue")
    await until(lambda: worker.tally.done == 41)
    assert not working.done()
    worker.stop("interrupted")
    report = await asyncio.wait_for(working, 10)
    assert (report.done, report.left, report.ending.reason) == (41, 0, "interrupted")
    assert project.sql("SELECT DISTINCT pass, role FROM runs ORDER BY id") == [(1, "work"), (1, "enqueue")]


async def test_a_waiting_worker_charges_what_has_no_more_evidence_to_wait_for(project, monkeypatch):
    """A lone record that fails does not stay in the hand of a worker that waits for more: it is tried, then failed."""
    monkeypatch.setattr("rowcall.engine.worker.EVIDENCE_FOR", 0.2)
    project.rows([*some_rows(3), ["bad", "a bad one", "n"]])
    project.api.poison = {"a bad one"}
    await project.run("enqueue")
    worker, working = project.worker(wait=True)
    await until(lambda: project.statuses() == {"done": 3, "failed": 1})
    assert project.attempts()["bad"] == 3
    assert not working.done()
    worker.stop("interrupted")
    await working


async def test_work_goes_on_with_what_a_run_left(project):
    """Work takes the newest pass, also one that a run began: ``run -n`` and ``work`` share one batch job."""
    assert (await project.go(limit=5)).tally.done == 5
    _, working = project.worker(limit=10)
    assert (await working).tally.done == 10
    _, working = project.worker()
    assert (await working).done == 40
    assert len(project.api.calls) == 40


async def test_nothing_to_work_on_is_said(project):
    """A worker on a kind that nobody brought in ends at once, and names what brings it in; no store is made."""
    _, working = project.worker()
    with pytest.raises(RowcallError, match="holds no records of it") as caught:
        await working
    assert "rowcall enqueue" in caught.value.remedy
    assert not (project.folder / "t.db").exists()


async def test_another_request_is_refused(project):
    """A worker whose request is another one than that of the records is refused, whether others work or not."""
    await project.run("enqueue")
    (project.folder / "prompt.md").write_text("Another prompt.")
    _, working = project.worker()
    with pytest.raises(RowcallError, match=r"the config its records were enqueued with: \[request\], prompt.md"):
        await working
    assert project.statuses() == {"pending": 40}
    assert not project.api.calls


async def test_signals_stop_a_worker_as_they_stop_a_run(project):
    """Ctrl+C drains: what is in flight ends, the rest stays pending, exit 130; the same command goes on."""
    await project.run("enqueue")
    project.api.latency = 0.4
    process = await project.start("work", "--wait")
    await project.api.wait_for_calls(5)
    process.send_signal(signal.SIGINT)
    ran = await project.end(process)
    assert ran.code == 130
    assert "Stopping" in ran.err
    assert "Resume with: rowcall work" in ran.err
    counts = project.statuses()
    assert counts["done"] + counts["pending"] == 40
    assert counts["done"] == len(project.api.calls)


async def test_a_worker_shows_how_the_whole_stands(project):
    """What a worker shows is the whole kind, whoever works on it."""
    await project.run("enqueue")
    await project.go(limit=15)
    worker, working = project.worker(wait=True)
    await until(lambda: worker.view.ended == 25)
    view = view_of(worker, EventCounts(), 1.0)
    assert (view.total, view.done, view.reading, view.left) == (40, 40, True, None)
    worker.stop("interrupted")
    await working


async def test_a_worker_may_be_several_processes(project):
    """With ``--processes`` a worker has helpers, as a run has; they end with it, and call each record once."""
    project.rows(some_rows(150))
    project.api.latency = 0.1
    await project.run("enqueue")
    ran = await project.work("--processes", "2", "-c", "6")
    assert ran.code == 0, ran.err
    assert "2 processes" in ran.err
    assert project.statuses() == {"done": 150}
    assert len(project.api.calls) == 150
    assert project.sql("SELECT count(*) FROM sessions") == [(0,)]
