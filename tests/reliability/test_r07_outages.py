"""R7: the API cannot be reached for a while, in every way that there is."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise

import pytest
from aftermath import ended_once
from project import some_rows
from rig import NAME, NXDOMAIN, SERVFAIL, NameServer, Rig

from rowcall.mock import MockAPI

TIMEOUT = 1.0
CONCURRENCY = 10
KINDS = ["refused", "503", "html", "blackhole", "reset", "name unknown", "name server down"]


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


async def survive(kind, folder, *, records, seconds):
    """All are done, none was charged, one probe at most left in a second, and calls go on soon after it is over."""
    names = await NameServer.listening() if kind.startswith("name") else None
    async with MockAPI(latency=0.05) as api:
        project = Rig(folder, api)
        project.write(some_rows(records), concurrency=CONCURRENCY)
        project.replace('timeout = "5s"', f'timeout = "{TIMEOUT}s"')
        if names:
            project.look_up_by("127.0.0.77")
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
    assert "offline" in ran.err
    ended_once(project, records)
    assert set(project.attempts().values()) == {1}
    assert project.sql("SELECT count(*) FROM tries WHERE charged") == [(0,)]
    assert probes_of(project) <= seconds + 2


def probes_of(project):
    """How many calls left after the outage was known; there is a second between any two."""
    at = [datetime.fromisoformat(text).timestamp() for (text,) in project.sql("SELECT at FROM tries ORDER BY at")]
    probes = [moment for moment in at if moment > at[0] + 0.9]
    assert len(at) - len(probes) <= 3 * CONCURRENCY
    assert all(after - before > 0.9 for before, after in pairwise(probes))
    return len(probes)


def fits(kind):
    if kind.startswith("name") and (sys.platform != "linux" or os.geteuid() or not shutil.which("unshare")):
        pytest.skip("a name server of one's own needs Linux and root")


@pytest.mark.parametrize("kind", KINDS)
async def test_gone_for_a_moment(kind, tmp_path):
    """An outage in the middle of a run fails nothing and charges nothing."""
    fits(kind)
    await survive(kind, tmp_path, records=100, seconds=0.7)


async def survive_all(tmp_path, **size):
    """All kinds at once; the name server is one, and so are its two kinds of failure."""
    kinds = [kind for kind in KINDS if kind != "name unknown"]
    for kind in kinds:
        (tmp_path / kind).mkdir()
    await asyncio.gather(*(survive(kind, tmp_path / kind, **size) for kind in kinds))


@pytest.mark.slow
async def test_gone_for_half_a_minute(root, tmp_path):
    """As the short form, for 30 s."""
    await survive_all(tmp_path, records=400, seconds=30)


@pytest.mark.soak
async def test_gone_for_ten_minutes(root, tmp_path):
    """As the short form, for 10 minutes."""
    await survive_all(tmp_path, records=5000, seconds=600)
