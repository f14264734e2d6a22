"""R11: a record whose handler kills the process."""

from __future__ import annotations

import pytest

TASKS = """
import os, signal

async def label(row, call):
    if row["text"].startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"label": row["text"]}
"""


def write(project, rows):
    project.write(rows, concurrency=8)
    text = (project.folder / "config.toml").read_text()
    head, _, tail = text.partition("[request.body]")
    project.config(head + '[handler]\npath = "tasks.py:label"\n[output]' + tail.partition("[output]")[2])
    (project.folder / "tasks.py").write_text(TASKS)


async def lives(project, killers, healthy):
    """Start the run again after each death; returns how many deaths there were."""
    rows = [[f"k{n}", f"sentence {n}", ""] for n in range(healthy)]
    for n in range(killers):
        rows.insert((n + 1) * healthy // (killers + 1), [f"killer{n}", f"kill {n}", ""])
    write(project, rows)
    deaths = 0
    while (ran := await project.run("run")).code == -9:
        deaths += 1
        assert deaths <= 5 * killers
    assert ran.code == 1, ran.err
    return deaths


def exactly_the_killers_are_poison(project, killers, healthy):
    assert project.statuses() == {"done": healthy, "failed": killers}
    failed = project.sql("SELECT id, reason, crashes, attempts FROM jobs WHERE status = 'failed' ORDER BY id")
    assert failed == [(f"killer{n}", "poison", 5, 0) for n in range(killers)]
    assert project.is_sound()


async def test_one(project):
    """The record that kills is quarantined after five deaths; its neighbours are done, none is marked."""
    assert await lives(project, 1, 30) == 5
    exactly_the_killers_are_poison(project, 1, 30)


@pytest.mark.slow
async def test_three(project):
    """Three that kill, among healthy ones that were in hand each time: exactly those three are quarantined."""
    assert await lives(project, 3, 60) <= 15
    exactly_the_killers_are_poison(project, 3, 60)
