"""What a person sets while a run works."""

from __future__ import annotations

import asyncio

import pytest
from project import some_rows

from rowcall.config.live_settings import LiveSettings, parse_live
from rowcall.config.units import Rate, TokenLimits
from rowcall.model.events import Followed


async def until(holds):
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.02)


async def test_concurrency_falls_and_rises(project, start):
    """From 50 in flight to 5: the calls in flight end, and never more than 5 are there; then up to 60."""
    project.api.latency = 0.1
    project.write(some_rows(5000), concurrency=50)
    pipeline = project.pipeline()
    start(pipeline)
    await project.api.wait_in_flight(50)
    await project.set(concurrency="5")
    await until(lambda: pipeline.view.concurrency == 5)
    await project.api.until(lambda: project.api.in_flight <= 5)
    project.api.max_in_flight = 0
    await project.api.wait_for_calls(project.api.arrived + 15)
    assert project.api.max_in_flight <= 5
    await project.set(concurrency="60")
    await project.api.wait_in_flight(60)
    assert Followed("concurrency=5") in project.events


async def test_pause_and_go_on(project, start):
    """Paused, no call leaves and the run waits, saying so; all processes of the kind do; then they go on."""
    project.api.latency = 0.01
    project.write(some_rows(1500), concurrency=10)
    pipelines = [project.pipeline(), project.pipeline()]
    running = [start(pipeline) for pipeline in pipelines]
    await project.api.wait_for_calls(100)
    await project.set(pause="true")
    await until(lambda: all(p.view.held_up and p.view.held_up.by == "paused" for p in pipelines))
    await project.api.wait_in_flight(0)
    calls = project.api.arrived
    await asyncio.sleep(0.3)
    assert project.api.arrived == calls < 1500
    assert not any(task.done() for task in running)
    await until(lambda: "running" not in project.statuses())
    await project.set(pause=None)
    for task in running:
        assert (await task).ending.reason == "done"
    assert len(project.api.calls) == 1500


async def test_a_rate_is_set_and_taken_away(project, start):
    """A rate that is set holds from then on, and ``off`` lets go of the config's."""
    project.api.latency = 0.02
    project.write(some_rows(1400), concurrency=10)
    pipeline = project.pipeline()
    running = start(pipeline)
    await project.api.wait_for_calls(100)
    await project.set(requests="5/s")
    await until(lambda: Followed("requests=5/s") in project.events)
    await project.api.wait_in_flight(0)
    calls = project.api.arrived
    await asyncio.sleep(0.6)
    assert project.api.arrived - calls <= 5
    await project.set(requests="off")
    assert (await running).done == 1400


@pytest.mark.parametrize("keep", [True, False])
async def test_after_a_restart(project, start, keep):
    """What was set holds for the next run where it was to be kept, and only then."""
    project.write(some_rows(20))
    await project.pipeline().run()
    await project.set(concurrency="3", keep=keep)
    pipeline = project.pipeline()
    await pipeline.run()
    assert (Followed("concurrency=3") in project.events) is keep


async def test_a_paused_run_can_be_stopped(project, start):
    """Ctrl+C ends it like any other, with nothing charged."""
    project.write(some_rows(20))
    await project.pipeline(**{"input.path": "in.csv"}).run()
    project.rows(some_rows(40))
    await project.set(pause="true", keep=True)
    pipeline = project.pipeline()
    running = start(pipeline)
    await until(lambda: pipeline.view.held_up and pipeline.view.held_up.by == "paused")
    pipeline.stop("interrupted")
    assert (await running).ending.reason == "interrupted"
    assert len(project.api.calls) == 20


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ({}, LiveSettings()),
        ({"concurrency": "7", "pause": "true"}, LiveSettings(concurrency=7, pause=True)),
        ({"requests": "10/s, 500/min"}, LiveSettings(requests=(Rate(10, 1), Rate(500, 60)))),
        ({"requests": "off", "tokens": "off"}, LiveSettings(requests=(), tokens=TokenLimits())),
        ({"tokens": "200k/min"}, LiveSettings(tokens=TokenLimits(total=(Rate(200_000, 60),)))),
        (
            {"tokens": "input=1k/s,output=5/s"},
            LiveSettings(tokens=TokenLimits(input=(Rate(1000, 1),), output=(Rate(5, 1),))),
        ),
        ({"from_a_later_version": "x"}, LiveSettings()),
    ],
)
def test_texts(texts, settings):
    """Each setting is read from its text, and its own text reads back as the same."""
    assert parse_live(texts) == settings


@pytest.mark.parametrize(
    "texts",
    [{"concurrency": "0"}, {"concurrency": "many"}, {"requests": "fast"}, {"tokens": "x=1/s"}, {"pause": "yes"}],
)
def test_texts_that_mean_nothing(texts):
    """They are refused with words that say what would do."""
    with pytest.raises(ValueError, match=r"must be"):
        parse_live(texts)
