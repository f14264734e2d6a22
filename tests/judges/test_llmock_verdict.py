"""A server that this project did not write, with quotas and a verdict on its client: llmock."""

from __future__ import annotations

import asyncio
import time

import pytest
from plainjob import plain_job

pytest.importorskip("llmock", reason="needs the extra judges")

QUICK = '[pace]\nconcurrency = 200\n[stop]\ngrace = "100ms"\n'
SINS = {"retry_after_ignored", "retry_storm", "no_backoff", "retried_non_retryable", "gave_up"}


@pytest.fixture
def pipeline(tmp_path, llmock):
    """A job with so many records against llmock."""

    def make(records, emit=None):
        return plain_job(tmp_path, llmock.base_url("openai"), records, emit=emit, more=QUICK)

    return make


def blameless(llmock):
    """The server's own verdict has nothing against its client."""
    return not SINS & {finding.code for finding in llmock.verdict().findings}


async def test_a_quota_is_learned_from_its_headers(pipeline, llmock):
    """Of a quota of 30 calls a minute, 200 slots use no more than there is: not one call is refused."""
    llmock.limits(rpm=30)
    run = pipeline(60, emit=lambda event: run.tally.done >= 6 and run.stop("interrupted"))
    report = await run.run()
    assert report.tally.done >= 6
    assert report.tally.by_status["429"] == 0
    assert blameless(llmock)


async def test_refusals_are_waited_out(pipeline, llmock):
    """Ten refusals with a Retry-After, however the calls are mixed, cost no record and earn no blame."""
    llmock.rate_limit(times=10, retry_after=0.4)
    report = await pipeline(100).run()
    assert (report.done, report.failed) == (100, 0)
    assert report.tally.by_status["429"] == 10
    assert blameless(llmock)


@pytest.mark.slow
async def test_600_a_minute_from_200_slots(pipeline, llmock):
    """In a steady state at least 95 % of a quota of 600 a minute, and at most 2 % of the calls refused."""
    llmock.limits(rpm=600)
    run = pipeline(2500)
    working = asyncio.create_task(run.run())
    await asyncio.sleep(68)
    run.stop("interrupted")
    await working
    start = time.monotonic() - 61
    seen = [record for record in llmock.requests if start <= record.started_at < start + 60]
    refused = sum(record.status == 429 for record in seen)
    assert len(seen) - refused >= 0.95 * 600
    assert refused <= 0.02 * len(seen)
    assert blameless(llmock)
