"""A project whose records are brought in by one command and worked on by others."""

from __future__ import annotations

import asyncio

import pytest
from project import some_rows
from quickproject import QuickProject

from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline
from rowcall.store.types import Role


class Shared(QuickProject):
    """``worker`` is a pipeline without an input, in this process."""

    def worker(self, *, wait=False, limit=None, emit=None, **overrides):
        pipeline = Pipeline(load(self.folder / "config.toml", overrides=overrides), emit=emit)
        options = Options(role=Role.WORK, wait=wait, limit=limit)
        return pipeline, asyncio.create_task(asyncio.wait_for(pipeline.run(options), 40))

    async def go(self, limit=None):
        """A whole run, in this process."""
        return await Pipeline(load(self.folder / "config.toml")).run(Options(limit=limit))

    async def work_off(self):
        """A worker that works to the end, in this process."""
        _, working = self.worker()
        return await working

    async def work(self, *args):
        """The verb in a process of its own, since it takes signals."""
        return await self.process("work", *args)


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.01) as api:
        project = Shared(tmp_path, api)
        project.write(some_rows(40))
        yield project
