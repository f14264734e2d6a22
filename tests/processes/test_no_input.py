"""A pipeline that reads no input helps the run that does."""

from __future__ import annotations

import asyncio

from project import some_rows

from rowcall.engine.options import Options
from rowcall.model.events import Exporting, InputRead, Joined


async def test_who_reads_no_input_works_on_what_another_reads(project):
    """It claims until it hears that the input is over and nothing is left; it reads nothing, and writes no export."""
    project.write(some_rows(80), concurrency=4)
    project.replace('path = "in.csv"', 'path = "nowhere.csv"')
    told, over = [], asyncio.Event()
    helper = project.pipeline(told.append, **{"output.path": "other.csv"})
    reader = project.pipeline(**{"input.path": "in.csv"})
    reading = asyncio.create_task(reader.run())
    await project.api.wait_for_calls(1)
    helping = asyncio.create_task(helper.run(Options(input_over=over.is_set)))
    report = await reading
    assert not helping.done(), "it cannot know yet that nothing more comes"
    over.set()
    helped = await asyncio.wait_for(helping, 10)
    assert (report.done, helped.ending.reason) == (80, "done")
    assert report.tally.done + helped.tally.done == 80
    assert helped.tally.done > 8
    assert len(project.api.calls) == 80
    assert Joined(helped_pass(project)) in told
    assert not [event for event in told if isinstance(event, InputRead | Exporting)]
    assert (helped.output, (project.folder / "other.csv").exists()) == (None, False)


def helped_pass(project):
    return project.sql("SELECT max(pass) FROM runs")[0][0]
