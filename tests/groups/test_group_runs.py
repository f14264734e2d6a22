"""Runs in groups, from a file to its answers."""

from __future__ import annotations

import asyncio

import pytest
from groupkit import holding, texts_of

from rowcall.engine.options import Options
from rowcall.mock.embedding import embedding


async def test_five_hundred_rows(project, api):
    """The first goes alone, the others in full groups, and each row has the vector of its own text."""
    project.write(500)
    report = await project.read_first()
    assert (report.done, report.failed) == (500, 0)
    assert project.sizes[0] == 1
    assert sorted(project.sizes[1:]) == [99, 100, 100, 100, 100]
    assert project.answers() == {f"k{n}": embedding(f"text number {n}") for n in range(500)}
    assert set(project.outcomes("done").values()) == {1}


async def test_one_request_at_a_time(project, api):
    """Groups gather while another one is on its way, and only then."""
    project.write(301, concurrency=1)
    await project.read_first()
    assert project.sizes[:3] == [1, 100, 100]
    assert sum(project.sizes) == 301
    assert api.max_in_flight == 1


@pytest.mark.parametrize("bad", [37, 1, 200])
async def test_a_refused_text(project, api, bad):
    """A text that the API refuses fails by itself; nobody else is charged more than the one attempt."""
    project.write(201)
    api.poison = holding(f"text number {bad}", 400)
    report = await project.go()
    assert (report.done, report.failed) == (200, 1)
    assert project.outcomes("failed") == {f"k{bad}": 1}
    assert set(project.outcomes("done").values()) == {1}
    assert project.sql("SELECT count(*) FROM tries") == [(1,)]


@pytest.mark.parametrize("bad", [37, 1, 200])
async def test_a_text_that_always_breaks_the_server(project, api, bad):
    """A text that always gets 500 has all of its attempts, and nobody else is charged more than the one."""
    project.write(201)
    api.poison = holding(f"text number {bad}", 500)
    report = await project.go()
    assert (report.done, report.failed) == (200, 1)
    assert project.outcomes("failed") == {f"k{bad}": 3}
    assert set(project.outcomes("done").values()) == {1}


async def test_several_texts_that_break_the_server(project, api):
    """Neighbours that always get 500 each have their attempts, and the run ends."""
    project.write(120, size=20)
    bad = {f"text number {n}" for n in (50, 51, 52, 53, 54, 90)}
    api.poison = lambda texts: 500 if bad & set(texts.split("\n")) else None
    report = await project.go()
    assert (report.done, report.failed) == (114, 6)
    assert set(project.outcomes("done").values()) == {1}
    assert set(project.outcomes("failed").values()) == {3}


@pytest.mark.parametrize("outage", ["503", "reset", "html"])
async def test_an_outage_in_the_middle(project, api, outage):
    """It charges nobody, and costs few requests: two for each group in flight, and the probes."""
    project.write(400, size=20, concurrency=4)
    run = asyncio.create_task(project.go())
    await asyncio.wait_for(api.wait_for_calls(4), 5)
    api.outage = outage
    before = api.arrived
    await asyncio.wait_for(api.until(lambda: api.arrived >= before + 20), 5)
    assert project.sql("SELECT max(attempts) FROM jobs WHERE status != 'done'") == [(0,)]
    api.outage = None
    report = await run
    assert (report.done, report.failed) == (400, 0)
    assert set(project.outcomes("done").values()) == {1}
    assert sum(project.sizes) >= 400


async def test_a_record_that_failed_before_goes_alone(project, api):
    """After a charged attempt a record takes nobody down with it."""
    project.write(50, size=50)
    api.poison = holding("text number 20", 500)
    await project.go()
    after = [texts_of(call) for call in api.calls if "text number 20" in texts_of(call)]
    assert [len(texts) for texts in after][-2:] == [1, 1]


async def test_money(project, api):
    """Credit that is gone stops the run, charges nobody, and a later run goes on."""
    project.write(200, size=50, concurrency=1)
    api.poison = lambda texts: 402 if "text number 120" in texts.split("\n") else None
    report = await project.go()
    assert report.ending.reason != "done"
    assert report.failed == 0
    assert project.sql("SELECT max(attempts) FROM jobs WHERE status = 'pending'") == [(0,)]
    api.poison = frozenset()
    assert (await project.go()).done == 200


async def test_a_limit_of_records(project, api):
    """-n is about records, not requests."""
    project.write(100, size=30)
    report = await project.go(Options(limit=40))
    assert report.done == 40
    assert sum(project.sizes) == 40


async def test_characters(project, api):
    """No request holds more characters than it may, but for a text that is longer by itself."""
    project.write(60, more="", size=50)
    project.replace("size = 50", "size = 50\ncharacters = 100")
    await project.go()
    sums = [sum(map(len, texts_of(call))) for call in api.calls]
    assert max(sums) <= 100
    assert max(project.sizes) == 7
    assert len(project.answers()) == 60
