"""A thousand calls against an API with every common fault."""

from __future__ import annotations

import pytest
from project import some_rows

from rowcall.mock import Faults


@pytest.mark.slow
async def test_a_thousand_calls_against_faults(project):
    """5 % 429 with Retry-After 1, 5 % 500, 2 % resets, five attempts: 1,000 done, none called before its time.

    The number in flight reaches the concurrency and never exceeds it, also while records are retried. Refusals by
    chance teach the adaptive pace nothing: it is off.
    """
    project.api.latency = 0.05
    project.api.faults = Faults(rate_limited=0.05, retry_after=1.0, errors=0.05, resets=0.02, seed=7)
    project.write(some_rows(1000), concurrency=20)
    project.replace("[retry]", "[retry]\nattempts = 5")
    project.replace("[pace]", "[pace]\nadaptive = false")
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    assert project.statuses() == {"done": 1000}
    assert project.api.early == 0
    assert project.api.max_in_flight == 20
    assert min(project.api.served[status] for status in (429, 500, "reset")) > 10
    assert project.api.served[200] == 1000
