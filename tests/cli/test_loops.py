"""The event loop that a run asks for."""

from __future__ import annotations

import importlib.util
import sys
from unittest import mock

import pytest
from project import some_rows

from rowcall.cli.running.event_loop import loop_factory
from rowcall.config import load
from rowcall.model.errors import ConfigError


@pytest.fixture
def asking(project):
    project.write(some_rows(20))
    project.replace("concurrency = 8", 'concurrency = 8\nloop = "uvloop"')
    return project


def test_without_it(asking):
    """Where uvloop is missing the message names the line and what to install."""
    config = load(asking.folder / "config.toml")
    with (
        mock.patch.dict(sys.modules, uvloop=None),
        pytest.raises(ConfigError, match=r"uvloop is not installed") as error,
    ):
        loop_factory(config)
    assert "config.toml:" in str(error.value)
    assert "rowcall[fast]" in str(error.value)


def test_unasked(project):
    """Nobody gets it who did not ask, installed or not."""
    project.write(some_rows(1))
    assert loop_factory(load(project.folder / "config.toml")) is None


@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="needs the extra fast")
async def test_a_run_on_it(asking):
    """A run on uvloop ends like any other."""
    ran = await asking.run("run")
    assert ran.code == 0, ran.err
    assert asking.statuses() == {"done": 20}
