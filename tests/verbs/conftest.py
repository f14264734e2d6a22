"""The project in a folder of tests/cli, with verbs that need no process of their own."""

from __future__ import annotations

import pytest
from project import some_rows
from quickproject import QuickProject

from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.005) as api:
        yield QuickProject(tmp_path, api)


@pytest.fixture
async def finished(project):
    """A project whose ten records are done."""
    project.write(some_rows(10))
    report = await Pipeline(load(project.folder / "config.toml")).run()
    assert report.ending.reason == "done"
    return project
