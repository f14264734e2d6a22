"""Real calls outside of a run: made at once, judged by nobody, stored nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any

from rowcall.calls.door import Departure, Door
from rowcall.calls.requests import CallResources
from rowcall.calls.shared_limits import NoLimits, buckets_of
from rowcall.client.network import make_client, make_network
from rowcall.config import Config
from rowcall.config.units import TokenLimits
from rowcall.engine.run_parts import call_key
from rowcall.failures.gate import Gate
from rowcall.limits.concurrency import Concurrency
from rowcall.limits.rate_limits import Bucket, reserve
from rowcall.limits.server_limits import ServerLimits
from rowcall.limits.token_estimates import Estimate
from rowcall.model import json_values
from rowcall.model.job import Job
from rowcall.model.outcome import Outcome, Success
from rowcall.progress import clean
from rowcall.run.call_prices import make_prices
from rowcall.run.make_calls import calls_of, make_mock
from rowcall.sources.keys import input_hash, request_hash

Sample = tuple[str, dict[str, Any]]
"""A record by its key."""


async def outcomes(config: Config, samples: Iterable[Sample]) -> AsyncIterator[Outcome]:
    """What a real call gives for each record, one after the other.

    Raises:
        RowcallError: the config cannot be used.
    """
    async with AsyncExitStack() as stack:
        base_url = None
        if config.api.preset == "mock":
            base_url = (await stack.enter_async_context(make_mock(config))).url
        resolved = await asyncio.to_thread(config.resolve)
        calls = await asyncio.to_thread(calls_of, resolved, base_url)
        network = await asyncio.to_thread(make_network, resolved)
        client = await stack.enter_async_context(make_client(config, 1, network))
        request = request_hash(config.fingerprint())
        door = Door(Gate(), ServerLimits(Concurrency(1), learns=False))
        door.limits = _OwnLimits(buckets_of(config.pace.requests or (), TokenLimits()))
        resources = CallResources(
            client,
            door,
            call_key=lambda job: call_key(request, job.key, job.input_hash),
            emit=lambda event: None,
            prices=make_prices(config),
        )
        caller = calls.make_caller(resources)
        stack.callback(caller.close)
        for key, data in samples:
            job = Job(0, key, 0, 0, 0, (), True, 0, input_hash(data, calls.columns, calls.files), data)
            outcome = await caller.call(job, Departure(door))
            assert outcome is not None, "nothing holds it back"
            yield outcome


class _OwnLimits(NoLimits):
    """The limits of ``[pace] requests``, for the calls of this process alone."""

    def __init__(self, buckets: tuple[Bucket, ...]) -> None:
        super().__init__()
        self._buckets = buckets
        self._debts = (float("-inf"),) * len(buckets)

    async def wait(self, estimate: Estimate, *, patient: bool = False) -> bool:
        """Wait until the next call may leave."""
        one, nothing = (1.0,) * len(self._buckets), (0.0,) * len(self._buckets)
        while self._buckets:
            reserved = reserve(self._buckets, self._debts, [one], nothing, now=monotonic())
            self._debts = reserved.debts
            await asyncio.sleep(reserved.leaves[0] if reserved.leaves else reserved.next_in)
            if reserved.leaves:
                break
        return True


def outcome_text(outcome: Outcome) -> str:
    """What a call gave, on one line."""
    took = "" if outcome.latency is None else f" in {outcome.latency * 1000:,.0f} ms"
    if isinstance(outcome, Success):
        status = f"HTTP {outcome.status}" if outcome.status else "answered"
        return f"{status}{took}: {clean(json_values.dumps(outcome.value).decode())}"
    return f"failed{took}: {outcome.reason} ({outcome.cls.value}): {clean(outcome.message)}"
