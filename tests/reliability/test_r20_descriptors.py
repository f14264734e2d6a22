"""R20: few file descriptors and many calls at once."""

from __future__ import annotations

import re

import pytest
from aftermath import ended_once
from project import some_rows


@pytest.mark.parametrize(("soft", "hard"), [(64, 64), pytest.param(64, 4096, marks=pytest.mark.slow)])
async def test_two_hundred_at_a_time(project, soft, hard):
    """The limit is raised where it may be; else fewer calls are made at once, and a message says so. None fails."""
    project.before = ["prlimit", f"--nofile={soft}:{hard}"]
    project.api.latency = 0.1
    project.write(some_rows(400), concurrency=200)
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    ended_once(project, 400)
    assert set(project.attempts().values()) == {1}
    assert len(project.api.calls) == 400
    print(f"{soft}:{hard}: {project.api.max_in_flight} in flight at most")
    if hard > 200:
        assert project.api.max_in_flight > 64
    else:
        assert project.api.max_in_flight < 64
        assert re.search(r"open files|descriptors", ran.err)
