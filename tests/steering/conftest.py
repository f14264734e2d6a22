"""Runs in this process over a real store and a real server, steered while they work."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from quickproject import QuickProject

from rowcall.config import load
from rowcall.engine.engine import Timing
from rowcall.mock import MockAPI
from rowcall.run.job_store import open_store
from rowcall.run.pipeline import Pipeline


class Steered(QuickProject):
    """A project whose runs happen in this process."""

    def pipeline(self, **overrides):
        config = load(self.folder / "config.toml", overrides=overrides)
        return Pipeline(config, emit=self.events.append, timing=Timing(alone_for=0.05))

    async def set(self, kind="t", keep=False, **values):
        """What ``rowcall set`` does, as another process."""
        async with await open_store(load(self.folder / "config.toml"), lambda text: None) as store:
            await store.set(kind, values, keep=keep)

    async def arrivals(self):
        return sorted(call.arrived for call in self.api.calls)


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
async def project(tmp_path, api):
    made = Steered(tmp_path, api)
    made.events = []
    return made


@pytest.fixture
async def start():
    """Starts a run; what still runs at the end is dropped."""
    async with AsyncExitStack() as stack:

        def start(pipeline):
            task = asyncio.create_task(pipeline.run())
            stack.push_async_callback(_end, pipeline, task)
            return task

        yield start


async def _end(pipeline, task):
    pipeline.stop("interrupted")
    pipeline.drop()
    await asyncio.gather(task, return_exceptions=True)
