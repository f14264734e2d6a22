"""R8: records that always get 500, among healthy ones."""

from __future__ import annotations

import random
import time

import pytest
from project import some_rows

ATTEMPTS = 3


def places(how, poison, records):
    """Which records are poison: neighbours in the middle, spread, or the very last."""
    if how == "spread":
        return random.Random(8).sample(range(records), poison)
    first = records - poison if how == "last" else (records - poison) // 2
    return range(first, first + poison)


async def poisoned(project, how, poison, records, concurrency):
    """The run ends by itself; the poison, and nothing else, failed after all its attempts."""
    bad = set(places(how, poison, records))
    rows = some_rows(records)
    project.api.poison = {rows[n][1] for n in bad}
    project.write(rows, concurrency=concurrency)
    started = time.monotonic()
    process = await project.start("run")
    _, said = await process.communicate()
    assert process.returncode == 1, said
    ended = dict(project.sql("SELECT id, status || ' ' || attempts FROM jobs"))
    assert ended == {f"k{n}": f"failed {ATTEMPTS}" if n in bad else "done 1" for n in range(records)}
    assert {reason for (reason,) in project.sql("SELECT reason FROM jobs WHERE status = 'failed'")} == {"http_500"}
    charged = project.sql("SELECT count(*) FROM tries WHERE charged")
    assert charged == [(ATTEMPTS * poison,)]
    calls = len(project.api.calls)
    uncharged, took = calls - records - 2 * poison, time.monotonic() - started
    print(f"{poison} {how} of {records}, {concurrency} at a time: {uncharged} calls uncharged, {took:.0f} s")


@pytest.mark.parametrize(("poison", "how", "concurrency"), [(1, "last", 1), (3, "neighbours", 50), (20, "spread", 50)])
async def test_a_few(project, poison, how, concurrency):
    """A few poison records end a run by themselves."""
    await poisoned(project, how, poison, 150, concurrency)


@pytest.mark.slow
async def test_twenty_side_by_side(project):
    """Poison records that look like an outage for a while do so at no other record's cost."""
    await poisoned(project, "neighbours", 20, 150, 50)


@pytest.mark.slow
async def test_two_hundred(project):
    """200 poison records among 2,000."""
    await poisoned(project, "spread", 200, 2000, 50)


@pytest.mark.soak
@pytest.mark.parametrize("concurrency", [1, 50])
@pytest.mark.parametrize("how", ["neighbours", "last"])
@pytest.mark.parametrize("poison", [3, 20, 200])
async def test_side_by_side_for_long(project, poison, how, concurrency):
    """Poison that nothing healthy stands between takes a probe each, 5 s apart; it ends all the same."""
    await poisoned(project, how, poison, 10 * poison + 50, concurrency)
