"""Claims jobs from the store, as many as may leave soon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from rowcall.engine.claim_ahead import ClaimAhead
from rowcall.engine.duplicate_jobs import DuplicateJobs
from rowcall.engine.heartbeat import Heartbeat
from rowcall.engine.ruling_effects import RulingEffects
from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import RecordLimit
from rowcall.model.errors import Busy, Full
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Settlement
from rowcall.store.base import Store
from rowcall.store.types import Left

AT_LEAST = 0.01
"""Seconds before a store that had nothing due is asked again."""
LOOK_AGAIN = 1.0
"""Seconds after which an empty store is asked again: another process may have put something in."""


@dataclass(frozen=True, slots=True)
class ClaimScope:
    """Which jobs a process claims.

    Attributes:
        session: this process, as the store knows it.
        kind: the batch job.
        pass_: only jobs of this pass, or of none.
    """

    session: int
    kind: str
    pass_: int


class Claimer:
    """Claims jobs.

    Args:
        store: holds the jobs.
        scope: which of them.
        state: of the run; claimed jobs are put into ``ready``.
        settler: takes jobs that need no call after all.
        effects: counts them.
        heart: learns that the store gave claims.
        claim_ahead: decides how many more jobs to claim than there are free slots.
        record_limit: the limit of a limited run.
        duplicates: holds back jobs that would send what another job is sending; None: each job is called.
    """

    def __init__(
        self,
        store: Store,
        scope: ClaimScope,
        state: RunState,
        settler: Settler,
        effects: RulingEffects,
        heart: Heartbeat,
        *,
        claim_ahead: ClaimAhead,
        record_limit: RecordLimit,
        duplicates: DuplicateJobs | None = None,
    ) -> None:
        self._store = store
        self._scope = scope
        self._state = state
        self._settler = settler
        self._effects = effects
        self._heart = heart
        self._claim_ahead = claim_ahead
        self._record_limit = record_limit
        self._duplicates = duplicates

    async def claim(self) -> bool:
        """Claim what may leave soon; returns whether that was anything."""
        began = monotonic()
        want = self._demand(began)
        if want <= 0 or self._record_limit.reached:
            return False
        self._claim_ahead.claim(began)
        jobs = await self._take(want)
        if jobs:
            self._heart.heard(began)
        for job in jobs:
            self._record_limit.begin(job)
        self._state.ready.extend(await self._to_call(jobs, self._duplicates) if self._duplicates else jobs)
        if self._state.door.is_closed(probe=True):
            self._settler.put_back_ready()
        if len(jobs) < want:
            await self._find_next_time()
        return bool(jobs)

    async def left(self, only: Sequence[int] | None = None) -> Left:
        """Return what is left of the pass; where the store cannot be asked now, something may be running."""
        try:
            return await self._store.left(self._scope.kind, self._scope.pass_, only=only)
        except Busy:
            return Left(running=True, due_in=None)

    def _demand(self, now: float) -> int:
        """How many jobs to claim now. While jobs are waiting to start, a small claim is not worth a transaction."""
        state = self._state
        if now < state.claim_at or (self._duplicates and self._duplicates.crowded):
            return 0
        slots, waiting = state.door.concurrency.slots, len(state.ready)
        ahead = self._claim_ahead.ahead(slots, now)
        answer = state.door.look(now, max(1, slots + ahead))
        if answer.alone:
            return answer.calls if not waiting else 0
        if waiting > ahead // 2:
            return 0
        return self._record_limit.most(min(slots - state.in_flight + ahead, answer.calls) - waiting)

    async def _take(self, want: int) -> list[Job]:
        scope = self._scope
        claim = partial(self._store.claim, scope.session, scope.kind, scope.pass_, want, only=self._record_limit.only)
        try:
            if self._state.door.gate.closed and (fresh := await claim(fresh_only=True)):
                return fresh  # a probe is best made by a record that has not failed yet
            return await claim()
        except Busy:
            pass
        except Full as full:
            self._state.stop_full(full)
        return []

    async def _to_call(self, claimed: list[Job], duplicates: DuplicateJobs) -> list[Job]:
        """The claimed jobs that need a call; duplicates wait for one, and some have an answer in the store already."""
        first = [job for job in claimed if not duplicates.join(job)]
        try:
            answered = await self._store.answer_claimed(first)
        except (Busy, Full):  # so they are called
            return first
        for job in answered:
            self._effects.account(Settlement(job, Action.DONE), monotonic())
        self._settler.release_duplicates(answered)
        self._settler.share_answers(answered)
        rows = {job.row for job in answered}
        return [job for job in first if job.row not in rows]

    async def _find_next_time(self) -> None:
        """Nothing more can be claimed now: find out when that changes."""
        state = self._state
        if not state.calls:
            await self._settler.flush()
        left = await self.left(self._record_limit.only)
        if left.nothing:
            self._record_limit.open.clear()  # they ended elsewhere: cancelled, or by another process
        if left.running and not state.calls and await self._heart.reap():
            return
        due_in = LOOK_AGAIN if left.due_in is None else max(left.due_in, AT_LEAST)
        state.claim_at = monotonic() + min(LOOK_AGAIN, due_in)
