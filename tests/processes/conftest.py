"""Several processes, or pipelines in this one, that work on one run."""

from __future__ import annotations

import pytest
from quickproject import QuickProject

from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline


class Shared(QuickProject):
    """A project whose runs may also happen in this process."""

    def pipeline(self, emit=None, **overrides):
        return Pipeline(load(self.folder / "config.toml", overrides=overrides), emit=emit)


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.1) as api:
        yield Shared(tmp_path, api)
