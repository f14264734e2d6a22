"""Runs of one kind that begin at the same moment."""

from __future__ import annotations

import asyncio

import pytest
from project import some_rows

from rowcall.config import load
from rowcall.model.errors import RowcallError
from rowcall.run.pipeline import Pipeline


async def begun_at_once(project, *configs):
    """What runs came to that asked the store how things stand before any of them had begun."""
    runs = [Pipeline(load(project.folder / config)).run() for config in configs]
    return await asyncio.gather(*runs, return_exceptions=True)


@pytest.fixture
def two(project):
    """A second config of the same job, with another prompt."""
    text = (project.folder / "config.toml").read_text()
    (project.folder / "other.md").write_text("Another prompt.")
    (project.folder / "two.toml").write_text(text.replace("prompt.md", "other.md").replace("out.csv", "out2.csv"))
    project.rows(some_rows(200))


async def test_two_requests_at_once(project, two):
    """Of two runs with different requests one is refused: else each would call with its own what the other asks."""
    refused, ran = sorted(
        await begun_at_once(project, "config.toml", "two.toml"), key=lambda each: hasattr(each, "done")
    )
    assert isinstance(refused, RowcallError)
    assert "another run is at work with another request" in str(refused)
    assert (ran.done, ran.left) == (200, 0)
    assert len(project.api.calls) == 200
    assert project.sql("SELECT DISTINCT request FROM jobs") == project.sql("SELECT DISTINCT request FROM results")


async def test_one_request_at_once(project):
    """Of two runs with the same request one joins the other."""
    first, second = await begun_at_once(project, "config.toml", "config.toml")
    assert sorted([first.joined, second.joined]) == [False, True]
    assert len(project.api.calls) == 40
