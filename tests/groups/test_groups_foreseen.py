"""What is said about groups before a run."""

from __future__ import annotations

import asyncio

from rowcall.cli.running.rehearsal import rehearse
from rowcall.cli.running.run_messages import start_text
from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.model.errors import Exit


async def test_a_rehearsal(project, api, capsys):
    """It sends groups too, so that it counts the calls that the real run will make."""
    project.write(201)
    project.replace(
        "[request.headers]", '[api.mock]\nlatency = "400ms"\nerrors = 0\nrate_limited = 0\n[request.headers]'
    )
    config = load(project.folder / "config.toml")
    assert await asyncio.to_thread(rehearse, config, Options(), quiet=True) is Exit.DONE
    said = capsys.readouterr().out
    assert "rehearsed 201 records" in said
    assert "\n  3 calls (200: 3)\n" in said
    assert not api.calls


def test_the_start(project):
    """The size of the groups stands among the limits in force."""
    project.write(1)
    config = load(project.folder / "config.toml")
    assert "(4 at a time, groups of 100)" in start_text(config, 4)
