"""Large inputs and many calls at once."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def fill(project, count):
    with (project.folder / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "note"])
        writer.writerows([f"k{n}", f"sentence number {n} is good", "n"] for n in range(count))


async def test_a_large_input_streams(project):
    """Of 300,000 rows the first is called long before all are read, and the process stays under 100 MB."""
    project.fresh = True  # its memory is its own
    project.write([])
    fill(project, 300_000)
    started = time.monotonic()
    process = await project.start("run", "-n", "500")
    await project.api.wait_for_calls(1)
    [(read,)] = project.sql("SELECT max(rowid) FROM jobs")
    print(f"first call {project.api.calls[0].arrived - started:.1f} s after the start, {read:,} rows read")
    assert read < 150_000
    peak = 0
    while process.returncode is None and (memory := _peak(process.pid)):
        peak = memory
        await _a_moment(process)
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    assert "300,000 records: 300,000 new" in ran.err
    assert 20 < peak < 100


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
async def test_a_thousand_at_once(project):
    """20,000 records at concurrency 1,000: every one is done by its first call, and no descriptor is left over."""
    project.api.latency = 0.5
    project.write([], concurrency=1000)
    fill(project, 20_000)
    process = await project.start("run")
    await project.api.wait_in_flight(1000)
    assert len(os.listdir(f"/proc/{process.pid}/fd")) < 1000 + 60  # noqa: PTH208  a count, not paths
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    assert project.statuses() == {"done": 20_000}
    assert len(project.api.calls) == 20_000
    assert len({call.connection for call in project.api.calls}) <= 1000


def _peak(pid):
    """The most memory the process ever held, in MB; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0)


async def _a_moment(process):
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(process.wait()), 0.1)
