"""An engine over a real store and a real server, without config and templates."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import httpx
import pytest

from rowcall.calls.door import Door
from rowcall.calls.requests import CallResources, RequestCaller
from rowcall.client import Client
from rowcall.engine.build_worker import WorkerOptions, WorkerParts, build_worker
from rowcall.engine.claimer import ClaimScope
from rowcall.engine.run_state import RunState
from rowcall.engine.worker import Worker
from rowcall.failures.decide import Judge
from rowcall.failures.gate import Gate
from rowcall.failures.retries import RetryPolicy
from rowcall.limits.concurrency import Concurrency
from rowcall.limits.server_limits import ServerLimits
from rowcall.mock.server import MockAPI
from rowcall.model.events import CallEnded, GateClosed
from rowcall.model.job import Status
from rowcall.model.outcome import Failure, FailureClass, Success
from rowcall.store.sqlite import SQLiteStore
from rowcall.store.types import Entry


class Echo:
    """A provider that sends a record's text and takes what comes back."""

    columns = None
    files = None

    def __init__(self, url):
        self.url = url

    def build(self, data, call):
        body = {"model": "m", "messages": [{"role": "user", "content": data["text"]}]}
        return httpx.Request("POST", f"{self.url}/chat/completions", json=body)

    def read(self, reply):
        if reply.status == 200:
            return Success(json.loads(reply.body)["choices"][0]["message"]["content"], 200)
        wait = reply.headers.get("retry-after")
        cls = FailureClass.PACE if reply.status == 429 else FailureClass.SERVER
        return Failure(cls, f"http_{reply.status}", "no", reply.status, retry_after=float(wait) if wait else None)


@dataclass
class Engine:
    """What a test holds of one run."""

    store: SQLiteStore
    api: MockAPI
    worker: Worker
    parts: WorkerParts
    state: RunState
    caller: RequestCaller
    session: int
    events: list
    heard: asyncio.Event

    async def gate_closed(self):
        """Return once the gate has closed."""
        while not any(isinstance(event, GateClosed) for event in self.events):
            await self.heard.wait()
            self.heard.clear()

    async def counts(self):
        return (await self.store.counts("k")).by_status

    async def attempts(self):
        return {row.key: row.attempts for row in await self.store.page("k", limit=10_000)}

    def ended(self):
        return [event for event in self.events if isinstance(event, CallEnded)]


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteStore.open(tmp_path / "k.db", durability="normal") as store:
        yield store


@pytest.fixture
async def engine(api, store):
    """One store, one API, and what makes an engine with so many records over them."""
    clients = []

    async def make(records, *, concurrency=10, policy=None, **options):
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        request = await store.request("k", "r")
        entries = [Entry(f"{n}", f"h{n}", json.dumps({"text": f"text {n}"}), f"in:{n}") for n in range(records)]
        for start in range(0, records, 1000):
            await store.enqueue("k", entries[start : start + 1000], pass_=run.pass_, request=request, batch="b")
        events, heard = [], asyncio.Event()

        def hear(event):
            events.append(event)
            heard.set()

        client = Client(concurrency=concurrency, timeout=5)
        clients.append(client)
        gate = Gate(probe_waits=(0.05, 0.1), alone_for=1.0)
        door = Door(gate, ServerLimits(Concurrency(concurrency), learns=False))
        state = RunState(door, hear, input_over=lambda: True)
        caller = RequestCaller(Echo(api.url), CallResources(client, door, lambda job: job.key, hear))
        judge = Judge(gate, policy or RetryPolicy(first=0.02, longest=0.1))
        scope = ClaimScope(session, "k", run.pass_)
        parts = build_worker(store, state, caller, judge, WorkerOptions(scope, **options), emit=hear)
        return Engine(store, api, parts.worker, parts, state, caller, session, events, heard)

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def done():
    return lambda n: {Status.DONE: n}
