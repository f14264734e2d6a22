"""Runs at work on one store while something is done to its server, and what they called meanwhile."""

from __future__ import annotations

import asyncio
import random
import time

from aftermath import ended_once
from lives import key_of
from project import some_rows

CONCURRENCY = 16
RUNS = 2


class Load:
    """Two runs, or two workers without an input. ``disturb`` finds them at work; nothing is lost, or called again."""

    def __init__(self, project, count, command="run"):
        self.project, self.api, self.count = project, project.api, count
        self.command = command
        self.random = random.Random(0)
        self.processes = []
        self.pauses = []
        self._stored = {}
        self._looked_at = 0
        self.api.latency = 0.1
        project.write(some_rows(count), concurrency=CONCURRENCY)

    async def start(self):
        if self.command == "work":
            assert (await self.project.run("enqueue")).code == 0
        self.processes = [await self.project.start(self.command) for _ in range(RUNS)]
        await asyncio.wait_for(self.api.wait_in_flight(RUNS * CONCURRENCY), 60)

    async def disturb(self, fault):
        """Do something that takes its time, at a random moment; then answers are stored again."""
        await asyncio.sleep(self.random.uniform(0.02, 0.3))
        assert [process.returncode for process in self.processes] == [None] * RUNS, "there is nothing to disturb"
        await asyncio.to_thread(fault)
        began = time.monotonic()
        await self._an_answer()
        self.pauses.append(time.monotonic() - began)
        self.look()

    def look(self):
        """What was stored is there, and nothing of it was called since."""
        calls = self.api.calls[self._looked_at :]
        assert not {key_of(call) for call in calls} & self._stored.keys(), "a record that was done is called again"
        self._looked_at += len(calls)
        stored = self.project.answers()
        assert self._stored.items() <= stored.items(), "what was stored is lost"
        self._stored = stored

    async def finish(self):
        """All is done, each record once, with one answer and one attempt; nobody was taken for dead or for poison."""
        self.api.latency = 0.005
        ran = await asyncio.gather(*map(self.project.end, self.processes))
        assert [one.code for one in ran] == [0] * RUNS, ran
        if self.command == "work":
            assert (await self.project.run("export")).code == 0
        ended_once(self.project, self.count)
        assert set(self.project.attempts().values()) == {1}
        assert self.project.sql("SELECT count(*) FROM jobs WHERE reason = 'poison'") == [(0,)]
        assert self.repeats <= len(self.pauses) * RUNS * CONCURRENCY
        assert max(self.pauses) < 10
        return ran

    @property
    def repeats(self):
        return len(self.api.calls) - self.count

    def figures(self):
        mean, longest = sum(self.pauses) / len(self.pauses), max(self.pauses)
        return (
            f"{len(self.pauses)} times, {self.count} records: {self.repeats} calls repeated; "
            f"going on after {mean:.2f} s in the mean, {longest:.2f} s at most"
        )

    async def _an_answer(self):
        """Wait until one more is stored; nobody tells."""
        before = self._written()
        for _ in range(3000):
            if self._written() > before:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("no answer is stored any more")

    def _written(self):
        ((count,),) = self.project.sql("SELECT count(*) FROM results")
        return count
