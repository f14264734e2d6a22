"""R7: the API cannot be reached for a while, in every way that there is."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise

import pytest
from aftermath import ended_once
from project import some_rows
from rig import NAME, NAME_SERVER, NXDOMAIN, SERVFAIL, NameServer

from rowcall.mock import MockAPI

TIMEOUT = 1.0
CONCURRENCY = 10
FOR_LONG = ("refused", "503", "html", "blackhole", "reset", "name server down")


@asynccontextmanager
async def outage(kind, api, names):
    """The API is gone in this way for as long as the block lasts."""
    if kind == "refused":
        await api.close_port()
        yield
        await api.open_port()
    elif kind.startswith("name"):
        names.failure = NXDOMAIN if kind == "name unknown" else SERVFAIL
        await api.close_port()  # connections that are open need no name
        await api.open_port()
        api.outage = "503"  # nor does an address that is known still
        yield
        api.outage = None
        names.failure = 0
    else:
        api.outage = kind
        yield
        api.outage = None


async def survive(kind, rig, folder, *, records, seconds):
    """All are done, none was charged, one probe at most left in a second, and calls go on soon after it is over."""
    names = await NameServer.listening() if kind.startswith("name") else None
    async with MockAPI(latency=0.05) as api:
        project = rig(folder, api)
        project.write(some_rows(records), concurrency=CONCURRENCY)
        project.replace('timeout = "5s"', f'timeout = "{TIMEOUT}s"')
        if names:
            project.look_up_by(NAME_SERVER)
            project.replace("127.0.0.1", NAME)
        process = await project.start("run")
        await asyncio.wait_for(api.wait_for_calls(3 * CONCURRENCY), 30)
        async with outage(kind, api, names):
            await asyncio.sleep(seconds)
        back, good = time.monotonic(), api.served[200]
        await asyncio.wait_for(api.until(lambda: api.served[200] > good), 6 + TIMEOUT)
        print(f"{kind} for {seconds:g} s: went on {time.monotonic() - back:.1f} s after")
        ran = await project.end(process)
    if names:
        names.transport.close()
        assert names.asked
    assert ran.code == 0, ran.err
    assert "offline: " in ran.err or "API down: " in ran.err
    ended_once(project, records)
    assert set(project.attempts().values()) == {1}
    assert project.sql("SELECT count(*) FROM tries WHERE charged") == [(0,)]
    assert probes_of(project, after=0.9 + (TIMEOUT if kind == "blackhole" else 0)) <= seconds + 2


def probes_of(project, *, after):
    """How many calls left after the outage was known; there is a second between any two."""
    at = [datetime.fromisoformat(text).timestamp() for (text,) in project.sql("SELECT at FROM tries ORDER BY at")]
    probes = [moment for moment in at if moment > at[0] + after]
    assert len(at) - len(probes) <= 3 * CONCURRENCY
    assert all(later - sooner > 0.9 for sooner, later in pairwise(probes))
    return len(probes)


@pytest.mark.parametrize("kinds", [("refused", "503", "html"), ("blackhole", "reset")])
async def test_gone_for_a_moment(kinds, rig, tmp_path):
    """An outage in the middle of a run fails nothing and charges nothing."""
    await survive_all(rig, tmp_path, kinds, records=100, seconds=0.7)


@pytest.mark.parametrize("kind", ["name unknown", pytest.param("name server down", marks=pytest.mark.slow)])
async def test_no_name_for_a_moment(root, kind, rig, tmp_path):
    """The same where the name of the API cannot be looked up."""
    await survive_all(rig, tmp_path, [kind], records=100, seconds=0.7)


async def survive_all(rig, tmp_path, kinds=FOR_LONG, **size):
    """Outages of several kinds at once, each in a run of its own."""
    for kind in kinds:
        (tmp_path / kind).mkdir()
    await asyncio.gather(*(survive(kind, rig, tmp_path / kind, **size) for kind in kinds))


@pytest.mark.slow
async def test_gone_for_half_a_minute(root, rig, tmp_path):
    """As the short form, for 30 s."""
    await survive_all(rig, tmp_path, records=400, seconds=30)


@pytest.mark.soak
async def test_gone_for_ten_minutes(root, rig, tmp_path):
    """As the short form, for 10 minutes."""
    await survive_all(rig, tmp_path, records=5000, seconds=600)
