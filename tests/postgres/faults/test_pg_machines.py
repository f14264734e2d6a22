"""Workers on machines of their own: one is cut off from the database; eight share one rate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from bisect import bisect_left
from dataclasses import dataclass

import machines
import pytest
from aftermath import ended_once
from pgkit import Server, binaries
from pgrig import PgRig
from project import some_rows
from rig import Rig

from rowcall.mock import MockAPI

pytestmark = pytest.mark.postgres

CONCURRENCY = 8


@dataclass
class Site:
    """Machines, each with a project of its own; the one database and the one API of all are here."""

    machines: list
    projects: list
    server: Server
    api: MockAPI

    def write(self, rows, **replaced):
        for project in self.projects:
            project.write(some_rows(rows), concurrency=CONCURRENCY, **replaced)


@pytest.fixture
async def make_site(tmp_path):
    """Makes a site with so many machines, which is gone at the end in any case."""
    if binaries() is None:
        pytest.skip("no binaries of a PostgreSQL server")
    machines.require()
    async with contextlib.AsyncExitStack() as stack:

        async def make(many):
            network = stack.enter_context(machines.network(many))
            server = Server(network.here, synchronous_commit="on")
            stack.callback(server.throw_away)
            database = stack.enter_context(server.start().database())
            api = await stack.enter_async_context(MockAPI(host=network.here, latency=0.005))
            projects = []
            for number, machine in enumerate(network.machines):
                folder = tmp_path / f"machine{number}"
                folder.mkdir()
                projects.append(PgRig(folder, api, before=machine.before, server=server, database=database))
                stack.push_async_callback(projects[-1].kill_all)
            return Site(network.machines, projects, server, api)

        yield make


@pytest.mark.parametrize("seconds", [8, pytest.param(40, marks=pytest.mark.slow)])
async def test_cut_off_from_the_database(make_site, seconds):
    """What a machine had in hand goes to another; its late answers are kept once each, and it goes on afterwards."""
    site = await make_site(2)
    (far, near), (cut, _) = site.projects, site.machines
    records = 400 + 10 * seconds
    site.write(records)
    for project in site.projects:
        project.lease(4)
    site.api.latency = 1.0
    lost = await far.start("run")
    await asyncio.wait_for(site.api.wait_in_flight(CONCURRENCY), 60)
    kept = await near.start("run")
    await asyncio.wait_for(site.api.wait_in_flight(2 * CONCURRENCY), 60)
    cut.cut(site.server.port)
    await asyncio.wait_for(site.api.until(lambda: repeats(site.api) >= CONCURRENCY), 60)
    await asyncio.sleep(seconds)
    assert (lost.returncode, kept.returncode) == (None, None)
    cut.mend()
    await asyncio.wait_for(late_answers(near), 60)
    kept.send_signal(signal.SIGINT)
    assert (await near.end(kept)).code == 130
    site.api.latency = 0.005
    ran = await far.end(lost)
    assert ran.code == 0, ran.err
    ended_once(far, records)
    assert far.sql("SELECT count(*) FROM jobs WHERE reason = 'poison'") == [(0,)]
    again = repeats(site.api)
    assert CONCURRENCY <= again <= 3 * CONCURRENCY
    twice = "SELECT count(*), count(DISTINCT job) FROM results WHERE superseded"
    assert far.sql(twice) == [(again, again)]
    print(f"cut off for {seconds} s longer than it took to notice: {again} calls repeated")


def repeats(api):
    """How many calls were not the first of their record."""
    return len(api.calls) - len({call.text for call in api.calls})


async def late_answers(project):
    """Wait until some are kept; nobody tells."""
    for _ in range(3000):
        if project.sql("SELECT 1 FROM results WHERE superseded"):
            return
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("records", [400, pytest.param(2600, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
async def test_eight_machines_share_a_rate(make_site, records):
    """No window at the server holds more than 2 % above the rate (and its burst, where shorter than a minute)."""
    site = await make_site(8)
    site.write(records, **{"[retry]": 'requests = "1000/min"\n[retry]'})
    working = [await project.start("run") for project in site.projects]
    await asyncio.wait_for(site.api.wait_for_calls(records), 60 + records / 10)
    for ran in await asyncio.gather(*map(Rig.end, site.projects, working)):
        assert ran.code == 0, ran.err
    ended_once(site.projects[0], records)
    assert len(site.api.calls) == records
    for seconds in (1, 5, 15, 60):
        most, bound = fullest(site.api, seconds), 1000 / 60 * seconds * 1.02 + (11 if seconds < 60 else 0)
        print(f"in {seconds} s at most {most} calls, of {bound:.0f}")
        assert most <= bound
    done = [json.loads(totals)["done"] for (totals,) in site.projects[0].sql("SELECT totals FROM runs")]
    assert sum(done) == records
    assert all(done)
    began, *_, ended = sorted(call.arrived for call in site.api.calls)
    print(f"{records} calls by {done}: {60 * (records - 1) / (ended - began):.0f}/min")
    assert (records - 1) / (ended - began) > 1000 / 60 * 0.8


def fullest(api, seconds):
    """The most calls that arrived in a window of this length; a busy machine may see them 0.1 s late."""
    at = sorted(call.arrived for call in api.calls)
    return max(bisect_left(at, moment + seconds - 0.12) - n for n, moment in enumerate(at))
