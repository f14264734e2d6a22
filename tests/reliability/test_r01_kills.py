"""R1: kill -9 of the whole process at random moments; the same command goes on."""

from __future__ import annotations

import pytest
from lives import Lives


@pytest.mark.parametrize("seed", range(6))
async def test_two_kills(project, seed):
    """Killed anywhere: every record ends once, what is stored is not called again, repeats are bounded."""
    await kill(project, seed, 2)


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
