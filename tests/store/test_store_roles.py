"""Runs that only read or only work, and how calls are made: what every store keeps to (see test_store_contract.py)."""

from __future__ import annotations

import pytest

from rowcall.store.types import Role


async def begun(desk, role, kind="k"):
    return await desk.store.begin_run(desk.session, kind, {}, role=role)


async def test_enqueues_until_the_next_run_are_one_pass(desk):
    """What several enqueues bring in, one after the other, is one pass; after a run or work there is a new one."""
    passes = [(await begun(desk, role)).pass_ for role in (Role.ENQUEUE, Role.ENQUEUE, Role.WORK, Role.ENQUEUE)]
    first = desk.pass_ + 1  # the desk's own is that of a run
    assert passes == [first, first, first, first + 1]
    assert (await begun(desk, Role.RUN)).pass_ == first + 2
    assert (await begun(desk, Role.ENQUEUE)).pass_ == first + 3


async def test_work_takes_the_newest_pass(desk):
    """Work goes on with what the last run or enqueue brought in; where nobody did, it waits in the first pass."""
    assert (await begun(desk, Role.WORK)).pass_ == desk.pass_
    assert (await begun(desk, Role.WORK, "other")).pass_ == 1
    assert (await begun(desk, Role.ENQUEUE, "other")).pass_ == 2


@pytest.mark.parametrize("role", Role)
async def test_every_role_joins_a_live_run(desk, role):
    """Whatever a run is for, it belongs to the pass of a live one, and says what it is for."""
    other = await desk.other()
    assert other.run.joined
    working = await other.store.begin_run(other.session, "k", {}, role=role)
    assert (working.pass_, working.joined) == (desk.pass_, True)
    assert (await desk.store.live_runs("k"))[0].role is role
    assert [run.role for run in await desk.store.runs("k")] == [Role.RUN, Role.RUN, role]


async def test_a_recipe_is_the_last_one_of_its_kind(desk):
    """What is published comes back as it was, by kind; another one takes its place; no kind has one by itself."""
    recipe = {"prints": {"[request]": "1f"}, "files": {"config.toml": 'name = "ü\\u0000"\n\x00'}, "withheld": ""}
    await desk.store.publish("k", recipe)
    assert await desk.store.recipe("k") == recipe
    assert await desk.store.recipe("other") is None
    await desk.store.publish("k", {"files": {}})
    await desk.store.publish("other", recipe)
    assert await desk.store.recipe("k") == {"files": {}}
