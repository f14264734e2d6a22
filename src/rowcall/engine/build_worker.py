"""Wires up what works on a run's jobs, from claiming to settling."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.calls.requests import Caller
from rowcall.engine.call_tasks import CallTasks
from rowcall.engine.claim_ahead import ClaimAhead
from rowcall.engine.claimer import Claimer, ClaimScope
from rowcall.engine.duplicate_jobs import DuplicateJobs
from rowcall.engine.executor import Executor
from rowcall.engine.heartbeat import Heartbeat
from rowcall.engine.rests import Rests
from rowcall.engine.ruling_effects import RulingEffects
from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import FailureCount, RecordLimit, StopLimits
from rowcall.engine.worker import Worker
from rowcall.failures.decide import Judge
from rowcall.model.events import Listener
from rowcall.store.base import Store


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker works on, and when it gives up.

    Attributes:
        scope: which jobs.
        limit: records that it works on in this run, at most; None: all.
        stop_limits: how much trouble it bears.
        beat: seconds between two heartbeats, 5.
        max_wait: seconds; where the API asks to wait for longer, the run stops. None: it waits.
        dedupe: jobs that would send the same share one call.
    """

    scope: ClaimScope
    limit: int | None = None
    stop_limits: StopLimits = field(default_factory=StopLimits)
    beat: float = 5.0
    max_wait: float | None = None
    dedupe: bool = False


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """A worker, and those of its parts that others need too."""

    worker: Worker
    settler: Settler
    rests: Rests
    effects: RulingEffects
    heart: Heartbeat


def build_worker(
    store: Store, state: RunState, caller: Caller, judge: Judge, options: WorkerOptions, *, emit: Listener
) -> WorkerParts:
    """Return a worker that is ready to run.

    Args:
        store: holds the jobs.
        state: of the run.
        caller: makes the calls.
        judge: decides who pays.
        options: what to work on.
        emit: learns of all that happens.
    """
    scope, limits = options.scope, options.stop_limits
    duplicates = DuplicateJobs() if options.dedupe else None
    share = options.dedupe and options.limit is None
    settler = Settler(store, state, emit=emit, share=share, duplicates=duplicates)
    rests = Rests(state, settler, emit=emit, max_wait=options.max_wait)
    record_limit = RecordLimit(options.limit)
    effects = RulingEffects(state, settler, rests, record_limit, FailureCount(limits.max_failures), emit)
    heart = Heartbeat(store, state, settler, session=scope.session, kind=scope.kind, every=options.beat)
    claim_ahead = ClaimAhead()
    claimer = Claimer(
        store,
        scope,
        state,
        settler,
        effects,
        heart,
        claim_ahead=claim_ahead,
        record_limit=record_limit,
        duplicates=duplicates,
    )
    executor = Executor(caller, judge, settler, effects, emit=emit)
    worker = Worker(
        state,
        claimer,
        CallTasks(state, executor, settler, heart, claim_ahead),
        settler,
        effects,
        judge=judge,
        heart=heart,
        record_limit=record_limit,
        stop_limits=limits,
        duplicates=duplicates,
    )
    return WorkerParts(worker, settler, rests, effects, heart)
