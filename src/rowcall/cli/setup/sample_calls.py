"""Real calls outside of a run: made at once, judged by nobody, stored nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from typing import Any

from rowcall.calls.requests import Caller, CallResources, Departure
from rowcall.client.network import make_client, make_network
from rowcall.config import Config
from rowcall.engine.run_parts import call_key
from rowcall.failures.gate import Gate
from rowcall.limits.rate import Limit, Rate
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
        wire = CallResources(
            client,
            _rate(config),
            1,
            call_key=lambda job: call_key(request, job.key, job.input_hash),
            emit=lambda event: None,
            prices=make_prices(config),
        )
        caller = calls.make_caller(wire)
        stack.callback(caller.close)
        for key, data in samples:
            yield await _call(
                caller, wire.rate, Job(0, key, 0, 0, 0, (), True, 0, input_hash(data, calls.columns, calls.files), data)
            )


def _rate(config: Config) -> Rate:
    slowest = max(config.pace.requests or (), key=lambda rate: rate.per / rate.count, default=None)
    return Rate(Limit(slowest.count, slowest.per) if slowest else None)


async def _call(caller: Caller, rate: Rate, job: Job) -> Outcome:
    """One call, at its place in the pace."""
    loop = asyncio.get_running_loop()
    if not caller.takes_places:
        await asyncio.sleep(max(0.0, rate.take(loop.time()) - loop.time()))
    outcome = await caller.call(job, Departure(Gate()))
    assert outcome is not None, "nothing holds it back"
    return outcome


def outcome_text(outcome: Outcome) -> str:
    """What a call gave, on one line."""
    took = "" if outcome.latency is None else f" in {outcome.latency * 1000:,.0f} ms"
    if isinstance(outcome, Success):
        status = f"HTTP {outcome.status}" if outcome.status else "answered"
        return f"{status}{took}: {clean(json_values.dumps(outcome.value).decode())}"
    return f"failed{took}: {outcome.reason} ({outcome.cls.value}): {clean(outcome.message)}"
