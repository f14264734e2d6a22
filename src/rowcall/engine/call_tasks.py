"""Starts the calls of jobs that are ready, and sees to their end."""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic

from rowcall.calls.door import Departure, Reason
from rowcall.engine.claim_ahead import ClaimAhead
from rowcall.engine.executor import Executor
from rowcall.engine.heartbeat import Heartbeat
from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import Ending


class CallTasks:
    """The tasks of a run's calls.

    Args:
        state: of the run; holds the tasks.
        executor: carries one job through its call.
        settler: learns of jobs whose call was dropped.
        heart: says whether claimed jobs surely still belong to this process.
        claim_ahead: learns how fast calls leave.

    Attributes:
        group: the tasks run in it.
    """

    def __init__(
        self, state: RunState, executor: Executor, settler: Settler, heart: Heartbeat, claim_ahead: ClaimAhead
    ) -> None:
        self._state = state
        self._executor = executor
        self._settler = settler
        self._heart = heart
        self._claim_ahead = claim_ahead
        self.group = asyncio.TaskGroup()

    def start(self) -> None:
        """Start the calls of ready jobs, as many as may leave now."""
        self._heart.doubt()
        state, now = self._state, monotonic()
        while state.ready:
            answer = state.door.may_start(state.ready[0], state.in_flight, now)
            if not answer.calls:
                if answer.reason is Reason.BUDGET and not state.calls:  # no call in flight can leave more of it
                    state.stop(Ending("max_cost", answer.cause))
                return
            job = state.ready.popleft()
            self._claim_ahead.leave()
            departure = state.door.admit(now)
            steps = self._executor.execute(job, departure)
            try:
                task = self.group.create_task(steps)
            except RuntimeError:  # something else has failed, and the task group is shutting down
                steps.close()
                return
            state.calls[task] = job
            task.add_done_callback(partial(self._ended, departure))

    def drop(self) -> None:
        """Drop the calls in flight."""
        for task in self._state.calls:
            task.cancel()

    async def drain(self, grace: float) -> None:
        """Wait for the calls in flight, for ``grace`` seconds at most; then drop those that are left."""
        calls = self._state.calls
        if calls:
            await asyncio.wait(calls, timeout=grace)
        self.drop()
        await asyncio.gather(*calls, return_exceptions=True)

    def _ended(self, departure: Departure, task: asyncio.Task[None]) -> None:
        departure.over = True
        job = self._state.calls.pop(task, None)
        if job and task.cancelled():
            self._settler.release_duplicates([job])
        if not self._state.calls:
            self._state.claim_at = 0.0  # a job that crashed processes before runs alone, and may be claimed now
        self.start()
        self._state.wake.set()
