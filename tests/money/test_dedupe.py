"""Records that send the same are called once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from till import MoneyProject, completion, cost

import rowcall
from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.mock.endpoints import error
from rowcall.run.pipeline import Pipeline


def texts(count, distinct, *, shuffled=True):
    """Records of so many distinct texts, side by side or mixed."""
    of = (lambda n: n % distinct) if shuffled else (lambda n: n * distinct // count)
    return [[f"k{n}", f"text {of(n)} is good", ""] for n in range(count)]


@pytest.fixture
def project(project):
    """A project that calls once for what is the same."""
    write = project.write

    def deduping(rows, **more):
        write(rows, **more)
        project.replace('key = "id"', 'key = "id"\ndedupe = true')

    project.write = deduping
    return project


def asked(till):
    return Counter(call.text for call in till.calls)


@pytest.mark.parametrize("shuffled", [True, False])
async def test_a_thousand_records_of_ten_texts_are_ten_calls(project, till, shuffled):
    """Each record has its answer, the cost is that of the calls, and the counts are those of the records."""
    till.latency = 0.02
    project.write(texts(1000, 10, shuffled=shuffled))
    report = await project.go()
    assert (report.done, report.tally.done, len(till.calls)) == (1000, 1000, 10)
    assert project.spent() == till.billed == sum(cost(f"{n}") for n in range(10))
    assert {row["label"] for row in project.exported()} == {"good"}
    assert len(project.exported()) == 1000
    assert sum(project.attempts().values()) == 10


async def test_without_it_each_is_called(tmp_path, till):
    """It is off by default."""
    project = MoneyProject(tmp_path, till)
    project.write(texts(20, 2))
    await project.go()
    assert len(till.calls) == 20


async def test_an_answer_from_before_is_enough(project, till):
    """Records that come in later get it without a call, over restarts; ``show`` says whose it is."""
    project.write(texts(4, 2))
    await project.go()
    project.rows(texts(40, 2))
    report = await project.go()
    assert (report.done, report.tally.done, len(till.calls)) == (40, 40 - 4, 2)
    shown = (await project.run("show", "k9")).out
    assert "answer (from k1, which sends the same)" in shown


async def test_a_limit_counts_records(project, till):
    """``-n`` is of records, called or not."""
    project.write(texts(100, 2))
    report = await project.go(Options(limit=10))
    assert (report.ending.reason, report.done, len(till.calls)) == ("limit", 10, 2)


async def test_a_failure_is_each_records_own(project, till):
    """Where the one call fails, the others are called themselves: none is charged without a call."""
    till.respond = lambda call: error(400, "no", code="bad") if "text 1 " in call.text else completion(call.text)
    project.write(texts(12, 2))
    report = await project.go()
    assert (report.done, report.failed) == (6, 6)
    assert asked(till) == {"text 0 is good": 1, "text 1 is good": 6}


async def test_trouble_of_the_api_is_called_again_once(project, till):
    """A text that fails at first and then succeeds is answered for all of them."""
    till.poison = {"text 1 is good"}
    till.respond = lambda call: None if call.text in till.poison and call.number <= 2 else completion(call.text)
    project.write(texts(30, 3), concurrency=3)
    report = await project.go()
    assert (report.done, report.failed) == (30, 0)
    assert asked(till)["text 1 is good"] <= 4
    assert project.spent() == till.billed


@pytest.mark.parametrize("key", ["k0", "k3"])
@pytest.mark.parametrize("by_hand", [True, False])
async def test_an_answer_that_was_taken_back_is_given_to_nobody(project, till, key, by_hand):
    """A record that a person sets back, by SQL or by ``retry``, is called, although others have the answer."""
    project.write(texts(6, 1))
    await project.go()
    project.sql("UPDATE jobs SET status = 'pending' WHERE id = ?", key)
    if not by_hand:
        project.sql("UPDATE results SET superseded = 1 WHERE job = (SELECT rowid FROM jobs WHERE id = ?)", key)
    report = await project.go()
    assert (report.done, len(till.calls)) == (6, 2)


async def test_another_request_is_another_question(project, till):
    """An answer to an earlier prompt is none to this one."""
    project.write(texts(6, 1))
    await project.go()
    (project.folder / "prompt.md").write_text("Another prompt.\n")
    report = await project.go(Options(if_changed="redo"))
    assert (report.done, len(till.calls)) == (6, 2)


async def test_killed_at_once(project, till):
    """After a kill -9 nothing is lost, and what has an answer is not called again."""
    till.latency = 0.05
    project.write(texts(300, 30), concurrency=4)
    process = await project.start("run")
    await asyncio.wait_for(till.wait_for_calls(14), 20)
    await project.kill(process)
    report = await project.go()
    assert report.done == 300
    assert 30 <= len(till.calls) <= 30 + 3 * 4


async def test_a_stop_leaves_no_record_behind(project, till):
    """Records that wait for another's call go back with it when it is dropped."""
    till.latency = 30
    project.write(texts(50, 2), concurrency=4)
    pipeline = Pipeline(load(project.folder / "config.toml"))
    run = asyncio.create_task(pipeline.run())
    await asyncio.wait_for(till.wait_for_calls(1), 5)
    pipeline.stop("interrupted")
    pipeline.drop()
    await asyncio.wait_for(run, 5)
    assert project.statuses() == {"pending": 50}
    till.latency = 0.005
    assert (await project.go()).done == 50


async def test_a_handler_runs_once_for_the_same_columns(tmp_path, till):
    """What it is given is what counts, not the rest of the record."""
    seen = []

    async def label(row, call):
        seen.append(row["text"])
        return row["text"]

    settings = {"input.dedupe": True}
    async with rowcall.open(tmp_path / "t.db", base_url=till.url, columns=["text"], settings=settings) as job:
        await job.add([{"id": n, "text": f"text {n % 2}"} for n in range(40)], key="id")
        report = await job.run(label)
        assert [result.value async for result in job.results()] == ["text 0", "text 1"] * 20
    assert (report.done, sorted(seen)) == (40, ["text 0", "text 1"])


async def test_a_cancelled_caller_leaves_its_twins_to_another(project, till):
    """Records that wait for a twin whose turn has not come when it is cancelled are called all the same."""
    till.latency = 0.3
    project.write([[f"k{n}", f"text {min(n, 12)} is good", ""] for n in range(30)], concurrency=8)
    pipeline = Pipeline(load(project.folder / "config.toml"))
    working = asyncio.create_task(pipeline.run())
    await asyncio.wait_for(till.wait_for_calls(5), 10)
    await asyncio.to_thread(project.sql, "UPDATE jobs SET status = 'cancelled' WHERE id = 'k12' AND status <> 'done'")
    report = await asyncio.wait_for(working, 30)
    assert report.left == 0
    assert report.done >= 29
