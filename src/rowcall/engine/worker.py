"""Keeps the slots full: demand, claim, start, drain, stop."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic

from rowcall.engine.claim_ahead import ClaimAhead
from rowcall.engine.duplicate_jobs import DuplicateJobs
from rowcall.engine.executor import Executor
from rowcall.engine.heartbeat import Heartbeat
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import Ending, FailureCount, RecordLimit, StopLimits
from rowcall.failures.decide import Judge, Ruling
from rowcall.limits.budget import Budget
from rowcall.limits.rate import Rate
from rowcall.model.errors import Busy, Full
from rowcall.model.events import GateClosed, GateOpened, Listener, Resting, Settled, Stopping
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Failure, Settlement, put_back
from rowcall.store.base import Store
from rowcall.store.types import Claim, Left

AHEAD = 0.1
"""Seconds: what may leave within them is claimed now."""
AT_LEAST = 0.01
"""Seconds before a store that had nothing due is asked again."""
LOOK_AGAIN = 1.0
"""Seconds after which an empty store is looked at again: another process may have put something in."""
EVIDENCE_FOR = 5.0
"""Seconds without anything to call, after which what is held waits for no more evidence, though more may come."""


_PATIENCE = StopLimits()


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is to do, and when it gives up.

    Attributes:
        session: this process in the store.
        kind: which batch job.
        pass_: only jobs of this pass, or of none.
        concurrency: most calls in flight.
        limit: most records worked on in this run; None: all.
        grace: seconds that calls in flight are waited for when the run stops, 30.
        patience: how much trouble it bears.
        beat: seconds between two signs of life, 5.
        max_wait: seconds; where the API asks to wait for longer, the run stops. None: it waits.
    """

    session: int
    kind: str
    pass_: int
    concurrency: int
    limit: int | None = None
    grace: float = 30.0
    patience: StopLimits = _PATIENCE
    beat: float = 5.0
    max_wait: float | None = None


class Worker:
    """Works off the jobs of one pass.

    Args:
        store: where jobs are claimed.
        executor: carries one job through its call.
        judge: decides who pays; its gate says whether calls may leave.
        rate: says when they may.
        settler: writes what was decided.
        assignment: what to do.
        emit: told what happens.
        input_over: whether no more records will come.
        budget: how much may be spent; None: any amount.
        twins: records that send the same wait for one call; None: each is called.
        most: how many calls the API takes at a time now; None: any number.

    Attributes:
        rest_cause: why the target was left alone last.
    """

    def __init__(
        self,
        store: Store,
        executor: Executor,
        judge: Judge,
        rate: Rate,
        settler: Settler,
        assignment: Assignment,
        *,
        emit: Listener,
        input_over: Callable[[], bool],
        budget: Budget | None = None,
        twins: DuplicateJobs | None = None,
        most: Callable[[], int] | None = None,
    ) -> None:
        self._store = store
        self._executor = executor
        self._judge = judge
        self._rate = rate
        self._settler = settler
        self._task = assignment
        self._emit = emit
        self._input_over = input_over
        self._budget = budget
        self._twins = twins
        self._most = most
        self._quota = RecordLimit(assignment.limit)
        self._failures = FailureCount(assignment.patience.max_failures)
        self._ready: deque[Job] = deque()
        self._headway = ClaimAhead()
        self._calls: dict[asyncio.Task[None], Job] = {}
        self._lone: asyncio.Task[None] | None = None
        self._sent_before_lone = 0
        self._dry_until = 0.0
        self._busy_at = monotonic()
        self._heart = Heartbeat(store, assignment.session, assignment.kind, assignment.beat, budget)
        self._wake = asyncio.Event()
        self._ending: Ending | None = None
        self.rest_cause = ""
        self._group = asyncio.TaskGroup()

    @property
    def in_flight(self) -> int:
        """Slots in use."""
        return len(self._calls)

    @property
    def slots(self) -> int:
        """Slots that may be in use now: at most ``concurrency``, fewer where the API takes no more."""
        concurrency = self._task.concurrency
        return min(concurrency, self._most()) if self._most else concurrency

    @property
    def concurrency(self) -> int:
        """Slots that there are."""
        return self._task.concurrency

    @property
    def ending(self) -> Ending | None:
        """Why it takes no more jobs; None while it does."""
        return self._ending

    def notice(self) -> None:
        """There may be more to claim."""
        self._dry_until = 0.0
        self._wake.set()

    def stop(self, ending: Ending) -> None:
        """Take no more jobs, let calls in flight end; the first reason stands."""
        if self._ending is None:
            self._ending = ending
            self._emit(Stopping(ending.reason, ending.message, self.in_flight))
            self._wake.set()

    def stop_full(self, full: Full) -> None:
        """The disk is full: begin nothing more; what is in hand waits for space."""
        self.stop(Ending("disk_full", str(full)))

    def count(self, settled: Settled) -> None:
        """A record of the run was settled, here or by a helper: too many that fail stop it."""
        if ending := self._failures.note(settled):
            self.stop(ending)

    def rest(self, seconds: float, cause: str) -> None:
        """Leave the target alone for so long; where that is longer than the run may wait, it stops."""
        now = monotonic()
        before = self._rate.resting_until
        self._rate.rest(seconds, now)
        if self._rate.resting_until <= max(before, now):
            return
        self.rest_cause = cause
        self._give_back_ready()
        self._emit(Resting(self._rate.resting_until - now, cause))
        if self._task.max_wait is not None and seconds > self._task.max_wait:
            self.stop(Ending("max_wait", f"the API asks to be left alone until {_time_of_day(seconds)}: {cause}"))

    def resize(self, concurrency: int) -> None:
        """Let at most so many calls be in flight from now on; those that are more may end."""
        self._task = replace(self._task, concurrency=concurrency)
        self.notice()

    def hold(self) -> None:
        """The rate lets nothing leave until further notice: what is not sent is put back."""
        self._give_back_ready()
        self.notice()

    def doubt(self) -> None:
        """After a stop of the process, or a store that was held for so long, what was claimed may be another's."""
        if not self._heart.sure:
            self._give_back_ready()

    def in_hand(self) -> list[Job]:
        """All that it has claimed and not settled."""
        return [*self._ready, *self._calls.values(), *(self._twins.waiting if self._twins else ())]

    def drop_cancelled(self, cancelled: set[Claim]) -> None:
        """Drop the calls that a person cancelled; a probe is let be, since the gate waits for what it gives."""
        if not cancelled or self._judge.gate.closed:
            return
        dropped = [job for job in self._ready if (job.row, job.epoch) in cancelled]
        self._ready = deque(job for job in self._ready if (job.row, job.epoch) not in cancelled)
        for job in dropped:
            self._part(job)
        for call, job in self._calls.items():
            if (job.row, job.epoch) in cancelled:
                call.cancel()
        for row, _ in cancelled:
            self._quota.forget(row)
        self.notice()

    async def reaped(self) -> bool:
        """Take back what dead processes held; whether there was something."""
        return await self._heart.reap(self)

    def drop(self) -> None:
        """Drop the calls in flight; their jobs go back uncharged."""
        self._settler.hurry()
        self._drop_calls()

    async def run(self) -> Ending:
        """Work until nothing of the pass is left anywhere, or until stopped; returns why it ended.

        Raises:
            ExceptionGroup: a StoreError that waiting does not mend, or a bug.
        """
        async with self._group:
            writing = self._group.create_task(self._settler.run())
            beating = self._group.create_task(self._heart.run(self))
            ending = await self._work_off()
            await self._drain()
            beating.cancel()
            self._settler.close()
            await writing
        return ending

    async def _work_off(self) -> Ending:
        while self._ending is None:
            self._start()
            if await self._claim():
                continue
            if await self._over():
                return Ending("limit" if self._quota.reached else "done")
            await self._pause()
        return self._ending

    # Demand and claim

    def _demand(self, now: float) -> int:
        """How many jobs to claim now: what may leave within 100 ms; few at a time only while slots are free."""
        if self._held() or now < self._dry_until or (self._twins and self._twins.crowded):
            return 0
        room = self._judge.gate.room(now)
        if room is not None:
            return room if not self._ready and not self._lone_starts else 0
        slots = self.slots
        ahead, waiting = self._headway.ahead(slots, now), len(self._ready)
        want = slots - self.in_flight + ahead - waiting
        if waiting > ahead // 2:
            return 0
        return self._quota.most(min(want, self._rate.places(now, AHEAD, slots + ahead) - waiting))

    async def _claim(self) -> bool:
        began = monotonic()
        want = self._demand(began)
        if want <= 0 or self._quota.reached:
            return False
        self._headway.claim(began)
        jobs = await self._take(want)
        if jobs:
            self._heart.heard(began)
        for job in jobs:
            self._quota.begin(job)
        self._ready.extend(await self._to_call(jobs, self._twins) if self._twins else jobs)
        if self._held():
            self._give_back_ready()
        if len(jobs) < want:
            await self._look_ahead()
        return bool(jobs)

    async def _take(self, want: int) -> list[Job]:
        """Claim; a probe goes to a record that was never called where there is one."""
        task, only = self._task, self._quota.only
        try:
            if self._judge.gate.closed:
                fresh = await self._store.claim(task.session, task.kind, task.pass_, want, only=only, fresh_only=True)
                if fresh:
                    return fresh
            return await self._store.claim(task.session, task.kind, task.pass_, want, only=only)
        except Busy:
            pass
        except Full as full:
            self.stop_full(full)
        return []

    async def _to_call(self, claimed: list[Job], twins: DuplicateJobs) -> list[Job]:
        """Those of the claimed jobs that are to be called; the others wait for a twin, or have its answer."""
        first = [job for job in claimed if not twins.join(job)]
        try:
            answered = await self._store.answer_claimed(first)
        except (Busy, Full):  # so they are called
            return first
        done = [Settlement(job, Action.DONE) for job in answered]
        for settlement in done:
            self._account(settlement, monotonic())
        self.written(done)
        self._settler.give_on(answered)
        rows = {job.row for job in answered}
        return [job for job in first if job.row not in rows]

    async def _look_ahead(self) -> None:
        """Nothing more can be claimed now: find out when that changes."""
        if not self._calls:
            await self._settler.flush()
        left = await self._left(self._quota.only)
        if left.nothing:
            self._quota.open.clear()  # they ended elsewhere: cancelled, or by another process
        if left.running and not self._calls and await self.reaped():
            return
        due_in = left.due_in
        self._dry_until = monotonic() + min(LOOK_AGAIN, LOOK_AGAIN if due_in is None else max(due_in, AT_LEAST))

    # Start and end of calls

    def _start(self) -> None:
        """Start what is ready and may leave."""
        self.doubt()
        now = monotonic()
        while self._ready and self._may_start(now) and self._can_pay():
            job = self._ready.popleft()
            self._headway.leave()
            alone = self._judge.gate.room(now) is not None
            steps = self._call(job, self._rate.take(now), probe=self._judge.gate.closed is not None)
            try:
                call = self._group.create_task(steps)
            except RuntimeError:  # something else has failed, and the group is going down
                steps.close()
                return
            self._calls[call] = job
            if alone:
                self._lone, self._sent_before_lone = call, self._judge.gate.sent
            call.add_done_callback(self._ended)

    def _may_start(self, now: float) -> bool:
        if self._ending or self.in_flight >= self.slots or self._rate.next_at(now) > now + AHEAD:
            return False
        room = self._judge.gate.room(now)
        return room is None or (room > 0 and not self._lone_starts)

    def _can_pay(self) -> bool:
        """Whether the budget has room for the next call; where no call in flight could leave some, the run stops."""
        if self._budget is None or self._budget.allows(self._ready[0], self.in_flight):
            return True
        if not self._calls:
            self.stop(Ending("max_cost", str(self._budget)))
        return False

    @property
    def _lone_starts(self) -> bool:
        """A call that goes alone was started and has not left yet; from then on the gate knows of it."""
        return self._lone is not None and self._judge.gate.sent == self._sent_before_lone

    async def _call(self, job: Job, leaves: float, *, probe: bool) -> None:
        if (wait := leaves - monotonic()) > 0:
            await asyncio.sleep(wait)
        if self._held() or (self._judge.gate.closed and not probe):
            self._rate.give_back()
            self._settler.put([put_back(job)])
            return
        ruling = await self._executor.execute(job, probe=probe, held=self._held)
        if ruling.decision.action is Action.HOLD:
            self._part(job)
        self._obey(ruling)
        await self._settler.room()

    def written(self, group: Iterable[Settlement]) -> None:
        """What was decided about jobs stands in the store, so that their twins find it there."""
        for settlement in group if self._twins else ():
            self._part(settlement.job)

    def _part(self, job: Job) -> None:
        """Put back those that waited for the job: they get its answer, or are called themselves."""
        if self._twins and (twins := self._twins.part(job)):
            self._settler.put(map(put_back, twins))
            self.notice()

    def _held(self) -> bool:
        """No call may leave, whatever the gate says."""
        return self._ending is not None or self._rate.resting_until > monotonic()

    def _ended(self, call: asyncio.Task[None]) -> None:
        job = self._calls.pop(call, None)
        if job and call.cancelled():
            self._part(job)
        if call is self._lone:
            self._lone = None
        if not self._calls:
            self._dry_until = 0.0  # a suspect, which runs alone, may be claimed now
        self._start()
        self._wake.set()

    def _obey(self, ruling: Ruling) -> None:
        """Act on what a ruling says beside what is written."""
        now = monotonic()
        for settlement in ruling.settlements:
            self._account(settlement, now)
        if ruling.rest is not None:
            failures = (each.outcome for each in ruling.settlements if isinstance(each.outcome, Failure))
            self.rest(ruling.rest, next((failure.message for failure in failures), ""))
        if ruling.closed:
            self._emit(GateClosed(ruling.closed.cause.message))
            self._give_back_ready()
        if ruling.opened:
            self._emit(GateOpened(now - ruling.opened.since))
        if ruling.stop:
            self.stop(Ending(ruling.stop.reason, ruling.stop.message, ruling.stop))

    def _account(self, settlement: Settlement, now: float) -> None:
        self._quota.settle(settlement, now)
        settled = Settled(settlement.job.key, settlement.action, settlement.outcome)
        self.count(settled)
        self._emit(settled)
        if settlement.action in (Action.RETRY, Action.RELEASE):
            self._dry_until = min(self._dry_until, now + (settlement.wait or 0.0))

    def _give_back_ready(self) -> None:
        """What has not been sent is put back."""
        self._settler.put(put_back(job) for job in self._ready)
        self._ready.clear()

    # Waiting and ending

    async def _over(self) -> bool:
        """Whether the pass has nothing left, here or anywhere; held failures get their verdict first."""
        now = monotonic()
        if self._calls or self._ready:
            self._busy_at = now
            return False
        over = self._input_over()
        if not over and now < self._busy_at + EVIDENCE_FOR:
            return False
        if not self._quota.reached and now >= self._dry_until:
            return False
        ruling = self._judge.idle()
        if ruling.settlements:
            self._settler.put(ruling.settlements)
            self._obey(ruling)
            self._wake.set()
            return False
        if not over:
            return False
        await self._settler.flush()
        return self._quota.reached or (await self._left()).nothing

    async def _left(self, only: Sequence[int] | None = None) -> Left:
        """What the pass still has; where the store cannot be asked now, something may be at work."""
        try:
            return await self._store.left(self._task.kind, self._task.pass_, only=only)
        except Busy:
            return Left(running=True, due_in=None)

    async def _pause(self) -> None:
        """Wait for an outcome, a notice, or the next time at which something may leave."""
        now = monotonic()
        if self._give_up(now):
            return
        gate, rate = self._judge.gate.room_at(), self._rate.next_at(now) - AHEAD
        ends = (self._dry_until, gate, rate, self._rate.resting_until)
        until = [now + LOOK_AGAIN, *(end for end in ends if end is not None and end > now)]
        with suppress(TimeoutError):
            async with asyncio.timeout(min(until) - now):
                await self._wake.wait()
        self._wake.clear()

    def _give_up(self, now: float) -> bool:
        """Stop where the API was in trouble for too long; a pause is no trouble."""
        if self._rate.resting_until == math.inf:
            return False
        ending = self._task.patience.lost_with(self._judge.gate, now, answers_due=bool(self._calls))
        if ending:
            self.stop(ending)
        return ending is not None

    def _drop_calls(self) -> None:
        for call in self._calls:
            call.cancel()

    async def _drain(self) -> None:
        """Put back what was not sent, wait for calls in flight, drop those that take too long."""
        self._give_back_ready()
        if self._calls:
            await asyncio.wait(self._calls, timeout=self._task.grace)
        self._drop_calls()
        await asyncio.gather(*self._calls, return_exceptions=True)
        ruling = self._judge.dissolve()
        self._settler.put(ruling.settlements)
        self._obey(ruling)


def _time_of_day(seconds: float) -> str:
    """When that many seconds from now are over, by the clock on the wall here."""
    then = datetime.now().astimezone() + timedelta(seconds=seconds)
    return then.strftime("%H:%M:%S" if seconds < 86_400 else "%Y-%m-%d %H:%M")
