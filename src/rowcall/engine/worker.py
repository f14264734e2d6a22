"""The main loop of a run: start what may leave, claim more, wait, and find out when nothing is left."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from time import monotonic

from rowcall.calls.door import AHEAD
from rowcall.engine.call_tasks import CallTasks
from rowcall.engine.claimer import LOOK_AGAIN, Claimer
from rowcall.engine.duplicate_jobs import DuplicateJobs
from rowcall.engine.heartbeat import Heartbeat
from rowcall.engine.ruling_effects import RulingEffects
from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import Ending, RecordLimit, StopLimits
from rowcall.failures.decide import Judge, Ruling
from rowcall.model.job import Job
from rowcall.store.types import Claim

EVIDENCE_FOR = 5.0
"""Seconds without anything to call after which held failures wait for no more evidence, though records may come."""


class Worker:
    """Works on the jobs of one pass until none is left.

    Args:
        state: of the run.
        claimer: claims jobs.
        calls: starts their calls.
        settler: writes what was decided.
        effects: acts on rulings.
        judge: decides about held failures at the end.
        heart: keeps the session alive.
        record_limit: the limit of a limited run.
        stop_limits: when to give up, and how long to wait for calls in flight.
        duplicates: jobs that wait for another job's answer; None: none do.
    """

    def __init__(
        self,
        state: RunState,
        claimer: Claimer,
        calls: CallTasks,
        settler: Settler,
        effects: RulingEffects,
        *,
        judge: Judge,
        heart: Heartbeat,
        record_limit: RecordLimit,
        stop_limits: StopLimits,
        duplicates: DuplicateJobs | None = None,
    ) -> None:
        self._state = state
        self._claimer = claimer
        self._calls = calls
        self._settler = settler
        self._effects = effects
        self._judge = judge
        self._heart = heart
        self._record_limit = record_limit
        self._stop_limits = stop_limits
        self._duplicates = duplicates
        self._busy_at = monotonic()
        state.door.concurrency.subscribe(self.adapt)

    async def run(self) -> Ending:
        """Work until nothing of the pass is left anywhere, or until stopped; returns why it ended.

        Raises:
            ExceptionGroup: a StoreError that waiting does not mend, or a bug.
        """
        async with self._calls.group as group:
            writing = group.create_task(self._settler.run())
            beating = group.create_task(self._heart.run(self))
            ending = await self._work()
            await self._drain()
            beating.cancel()
            self._settler.close()
            await writing
        return ending

    def adapt(self) -> None:
        """The concurrency has changed, or a pause begins or ends."""
        if self._state.door.paused or not self._state.door.concurrency.jobs:
            self._settler.put_back_ready()
        self._state.notice()

    def drop(self) -> None:
        """Drop the calls in flight; their jobs are put back uncharged."""
        self._settler.hurry()
        self._calls.drop()

    # What the heartbeat asks and says

    def in_hand(self) -> list[Job]:
        """Return all jobs that are claimed and not settled."""
        state = self._state
        return [*state.ready, *state.calls.values(), *(self._duplicates.waiting if self._duplicates else ())]

    def drop_cancelled(self, cancelled: set[Claim]) -> None:
        """Drop the calls that a person cancelled. During an outage none is dropped: the gate waits for its probe."""
        state = self._state
        if not cancelled or state.door.gate.closed:
            return
        dropped = [job for job in state.ready if (job.row, job.epoch) in cancelled]
        state.ready = deque(job for job in state.ready if (job.row, job.epoch) not in cancelled)
        self._settler.release_duplicates(dropped)
        for call, job in state.calls.items():
            if (job.row, job.epoch) in cancelled:
                call.cancel()
        for row, _ in cancelled:
            self._record_limit.forget(row)
        state.notice()

    # The loop

    async def _work(self) -> Ending:
        while self._state.ending is None:
            self._calls.start()
            if await self._claimer.claim():
                continue
            if await self._is_over():
                return Ending("limit" if self._record_limit.reached else "done")
            await self._wait()
        return self._state.ending

    async def _is_over(self) -> bool:
        """Whether nothing of the pass is left here or anywhere; held failures are decided first."""
        state, now = self._state, monotonic()
        if state.calls or state.ready:
            self._busy_at = now
            return False
        over = state.input_over
        if not over and now < self._busy_at + EVIDENCE_FOR:
            return False
        if not self._record_limit.reached and now >= state.claim_at:
            return False
        ruling = self._judge.idle()
        if ruling.settlements:
            self._carry_out(ruling)
            state.wake.set()
            return False
        if not over:
            return False
        await self._settler.flush()
        return self._record_limit.reached or (await self._claimer.left()).nothing

    async def _wait(self) -> None:
        """Wait for an outcome, for a notice, or until something may leave."""
        state, now = self._state, monotonic()
        door = state.door
        if not door.paused and (ending := self._stop_limits.lost_with(door.gate, now, answers_due=bool(state.calls))):
            state.stop(ending)
            return
        at = door.look(now).at
        until = [now + LOOK_AGAIN, *(end for end in (state.claim_at, at - AHEAD, at) if end > now)]
        with suppress(TimeoutError):
            async with asyncio.timeout(min(until) - now):
                await state.wake.wait()
        state.wake.clear()

    async def _drain(self) -> None:
        """Put back what was not started, wait for the calls in flight, and release what is held."""
        self._settler.put_back_ready()
        await self._calls.drain(self._stop_limits.grace)
        self._carry_out(self._judge.dissolve())

    def _carry_out(self, ruling: Ruling) -> None:
        self._settler.put(ruling.settlements)
        self._effects.apply(ruling)
