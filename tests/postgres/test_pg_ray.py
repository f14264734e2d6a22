"""The example that has Ray place workers on a cluster, here a cluster of this machine alone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from project import some_rows

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'ray>=2.9,<3'"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "ray" / "workers.py"
RECORDS = 5000


def workers_of(store):
    """The processes of ``rowcall work`` on a store, with their parents."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if b"work" in words and store.encode() in words and b"-m" in words:
            found[int(folder.name)] = parent
    return found


async def test_an_actor_is_killed_and_so_is_a_worker(project, database_url):
    """Three actors finish 5,000 records, though one of them is killed in the middle, and the worker of another one."""
    project.api.latency = 0.1
    project.write(some_rows(RECORDS), concurrency=32)
    project.replace("[output]", f'[store]\npath = "{database_url}"\n[output]')
    assert (await project.run("enqueue")).code == 0
    env = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    placing = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLE,
        "3",
        "--store",
        database_url,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        await asyncio.wait_for(
            project.api.until(lambda: project.api.served[200] > 500 and len(workers_of(database_url)) == 3), 60
        )
        worker, _, other = workers_of(database_url)
        os.kill(workers_of(database_url)[worker], signal.SIGKILL)
        os.kill(other, signal.SIGKILL)
        out, _ = await asyncio.wait_for(placing.communicate(), 120)
    finally:
        if placing.returncode is None:
            placing.terminate()
            await placing.wait()
    assert placing.returncode == 0, out.decode()
    ran = await project.run("export")
    assert ran.code == 0, ran.err
    assert len(project.exported()) == RECORDS
    assert all(row["label"] for row in project.exported())
    calls = Counter(call.text for call in project.api.calls)
    assert len(calls) == RECORDS
    assert sum(calls.values()) - RECORDS <= 3 * 32  # of the worker that was killed: in flight, and two groups
    assert (await project.run("verify")).code == 0
