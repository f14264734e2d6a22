"""Runs that are killed, one after the other, over one store, and what each of them left."""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import dataclass, field

from aftermath import ended_once
from project import some_rows

CONCURRENCY = 16
MORE = 120


@dataclass
class Life:
    """One process from its start to its kill."""

    calls: list
    lost: set = field(default_factory=set)

    @property
    def in_flight(self):
        return sum(call.status == "dropped" for call in self.calls)


class Lives:
    """Runs that are killed, one after the other, over one store; more records come when all are done."""

    def __init__(self, project, seed):
        self.project, self.api = project, project.api
        self.random = random.Random(seed)
        self.count = MORE
        self.lives = []
        self.unlucky = 0
        self.stored = {}
        project.api.latency = 0.05
        project.write(some_rows(self.count), concurrency=CONCURRENCY)

    async def kill_one(self):
        """Start a run and kill it at a random moment; a run that ended before is no kill."""
        before = len(self.api.calls)
        process = await self.project.start("run")
        if self.random.random() < 0.25:
            await asyncio.sleep(self.random.uniform(0, 0.3))
        else:
            called = asyncio.create_task(self.api.wait_for_calls(self.api.arrived + 1))
            ended = asyncio.create_task(process.wait())
            await asyncio.wait([called, ended], return_when=asyncio.FIRST_COMPLETED, timeout=30)
            called.cancel()
            await asyncio.sleep(self.random.uniform(0, 0.35))
        if process.returncode is None:
            process.kill()
        await self.bury(process, before)

    async def bury(self, process, before):
        """Look at what a process left that was killed; one that ended by itself must have ended well."""
        _, said = await asyncio.wait_for(process.communicate(), 60)
        alive = process.returncode == -signal.SIGKILL
        await asyncio.wait_for(self.api.wait_in_flight(0), 5)
        if alive:
            self.look_at(Life(self.api.calls[before:]))
        else:
            await self.forgive_bad_luck(process.returncode, said)
        if not alive or len(self.stored) >= self.count - CONCURRENCY:
            self.more()

    async def forgive_bad_luck(self, code, said):
        """A record that five kills in a row have hit is taken for the one that kills: a person says ``retry`` to it."""
        failed = self.project.statuses().get("failed", 0)
        assert code == (1 if failed else 0), said
        self.unlucky += failed
        if failed:
            assert (await self.project.run("retry", "poison", "--yes")).code == 0

    def look_at(self, life):
        """Nothing that was stored is lost, and what was called and is not stored stays within its bound."""
        stored = self.project.answers()
        assert self.stored.items() <= stored.items()
        assert not {key_of(call) for call in life.calls} & self.stored.keys(), "a record that was done is called again"
        life.lost = {key_of(call) for call in life.calls} - stored.keys()
        assert len(life.lost) <= 3 * CONCURRENCY
        assert len(life.lost) - life.in_flight <= 2 * CONCURRENCY
        self.stored = stored
        self.lives.append(life)

    def more(self):
        self.count += MORE
        self.project.rows(some_rows(self.count))

    async def finish(self):
        """Let the last one live to its end; then each record was called once, and once more for each loss."""
        ran = await self.project.run("run")
        await self.forgive_bad_luck(ran.code, ran.err)
        assert self.unlucky <= len(self.lives) // 10
        ran = await self.project.run("run")
        assert ran.code == 0, ran.err
        ended_once(self.project, self.count)
        lost = sum(len(life.lost) for life in self.lives)
        late = len(self.api.calls) - self.count - lost  # on their way at a kill, and seen only after it was looked at
        assert 0 <= late <= len(self.lives)
        groups = 1 if len(self.lives) >= 20 else 2  # on average, and at most
        assert lost <= sum(life.in_flight for life in self.lives) + len(self.lives) * groups * CONCURRENCY

    def figures(self):
        """Calls repeated and in flight, per kill, for the table in tests/README.md."""
        repeated = [len(life.lost) for life in self.lives]
        flying = [life.in_flight for life in self.lives]
        mean, flew = (sum(each) / len(self.lives) for each in (repeated, flying))
        return (
            f"{len(self.lives)} kills, {len(self.api.calls)} calls: repeated per kill mean {mean:.1f}, "
            f"most {max(repeated)}; in flight mean {flew:.1f}; {self.unlucky} taken for poison"
        )


def key_of(call):
    return f"k{call.text.split()[2]}"
