"""R1: kill -9 of the whole process at random moments; the same command goes on."""

from __future__ import annotations

import asyncio

import pytest
from lives import Lives
from project import Project

from rowcall.mock import MockAPI


@pytest.mark.parametrize("seeds", [(0, 1), (2, 3), (4, 5)])
async def test_seven_kills(tmp_path, seeds):
    """Killed anywhere: every record ends once, what is stored is not called again, repeats are bounded."""
    async with MockAPI() as one, MockAPI() as other:
        folders = [tmp_path / "one", tmp_path / "other"]
        for folder in folders:
            folder.mkdir()
        projects = map(Project, folders, (one, other))
        await asyncio.gather(*map(kill, projects, seeds, (4, 3)))


@pytest.mark.slow
async def test_twenty_kills_in_a_row(project):
    """Twenty kills of one store, as the short form."""
    await kill(project, 1000, 20)


@pytest.mark.soak
async def test_a_thousand_kills(project):
    """A thousand kills, as the short form."""
    await kill(project, 2000, 1000)


async def kill(project, seed, kills):
    lives = Lives(project, seed)
    while len(lives.lives) < kills:
        await lives.kill_one()
    await lives.finish()
    print(lives.figures())
