"""R12: the disk is full, at a random moment."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import time

import pytest
from aftermath import answers, is_sound
from project import some_rows

from rowcall.engine import settler

pytestmark = pytest.mark.skipif(not hasattr(settler, "SPACE_FOR"), reason="answers do not wait for space yet")

ROWS = 400
CONCURRENCY = 8


@pytest.fixture
def disk(root, project):
    """A small disk of its own for the store."""
    folder = project.folder / "store"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], check=True)
    project.api.latency = 0.03
    project.write(some_rows(ROWS), concurrency=CONCURRENCY)
    project.replace("[stop]", '[store]\npath = "store/t.db"\n[stop]')
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """Take all the space that there is."""
    with (folder / "filler").open("wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                pass


async def filled_while_running(project, disk, moment):
    """A run whose disk is full after so many calls, and what was stored then."""
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(moment), 20)
    fill(disk)
    return process, answers(disk)


async def goes_on(project, disk, stored):
    """Once there is space the same command does the rest; what was stored is there still and not called again."""
    assert stored.items() <= answers(disk).items()
    assert is_sound(disk)
    (disk / "filler").unlink(missing_ok=True)
    called = len(project.api.calls)
    stored = answers(disk)
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    assert len(project.api.calls) == called + ROWS - len(stored)
    assert len(answers(disk)) == ROWS
    assert all(row["label"] for row in project.exported())


@pytest.mark.parametrize("seed", range(2))
async def test_space_comes_back(project, disk, seed):
    """Claiming stops at once, answers in hand wait for space and are kept, no call is repeated, exit 3."""
    process, stored = await filled_while_running(project, disk, random.Random(seed).randint(20, 150))
    await asyncio.wait_for(project.api.wait_in_flight(0), 10)
    await asyncio.sleep(0.7)
    assert process.returncode is None
    called = len(project.api.calls)
    (disk / "filler").unlink()
    ran = await project.end(process)
    assert ran.code == 3, ran.err
    assert "no space" in ran.err
    assert "Free some space" in ran.err
    assert "rowcall run" in ran.err
    assert len(project.api.calls) == called == len(answers(disk))
    await goes_on(project, disk, stored)


async def test_ctrl_c_while_it_waits(project, disk):
    """A second Ctrl+C gives the answers in hand up, and says so; they are in the bound of a crash."""
    process, stored = await filled_while_running(project, disk, 50)
    await asyncio.wait_for(project.api.wait_in_flight(0), 10)
    for _ in range(2):
        await asyncio.sleep(0.2)
        process.send_signal(signal.SIGINT)
    ran = await asyncio.wait_for(project.end(process), 5)
    assert ran.code in (2, 130), ran.err
    assert "no space" in ran.err
    assert len(project.api.calls) - len(answers(disk)) <= 3 * CONCURRENCY
    await goes_on(project, disk, stored)


@pytest.mark.soak
async def test_no_space_comes_back(project, disk):
    """Answers in hand wait for a minute; then the run ends, exit 2, with what is needed."""
    process, stored = await filled_while_running(project, disk, 80)
    started = time.monotonic()
    ran = await asyncio.wait_for(process.communicate(), 100)
    assert time.monotonic() - started < 60 + 30
    assert process.returncode == 2
    assert b"no space" in ran[1]
    assert b"Free some space" in ran[1]
    await goes_on(project, disk, stored)


async def test_full_while_the_input_is_read(project, disk):
    """A disk that is full before the input is in: what is needed is said, no call is lost."""
    project.rows([[f"k{n}", f"sentence number {n} is good", "x" * 2000] for n in range(8000)])
    ran = await project.run("run")
    assert ran.code in (2, 3), ran.err
    assert "no space" in ran.err
    assert len(project.api.calls) - len(answers(disk)) <= 3 * CONCURRENCY
    assert is_sound(disk)
