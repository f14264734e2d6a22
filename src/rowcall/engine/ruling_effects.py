"""What a ruling changes beside what is written: the counts, the gate's events, rests, and the end of the run."""

from __future__ import annotations

from time import monotonic

from rowcall.engine.rests import Rests
from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import Ending, FailureCount, RecordLimit
from rowcall.failures.decide import Ruling
from rowcall.model.events import GateClosed, GateOpened, Listener, Settled
from rowcall.model.outcome import Action, Failure, Settlement


class RulingEffects:
    """Carries out rulings.

    Args:
        state: of the run.
        settler: puts back what was claimed when the gate closes.
        rests: begins rests.
        record_limit: counts the records of a limited run.
        failures: counts failed records.
        emit: learns of settled records and of the gate.
    """

    def __init__(
        self,
        state: RunState,
        settler: Settler,
        rests: Rests,
        record_limit: RecordLimit,
        failures: FailureCount,
        emit: Listener,
    ) -> None:
        self._state = state
        self._settler = settler
        self._rests = rests
        self._record_limit = record_limit
        self._failures = failures
        self._emit = emit

    def apply(self, ruling: Ruling) -> None:
        """Do what follows from a ruling."""
        now = monotonic()
        for settlement in ruling.settlements:
            self.account(settlement, now)
        if ruling.rest is not None:
            failures = (each.outcome for each in ruling.settlements if isinstance(each.outcome, Failure))
            self._rests.rest(ruling.rest, next((failure.message for failure in failures), ""))
        if ruling.closed:
            self._emit(GateClosed(ruling.closed.cause.message))
            self._settler.put_back_ready()
        if ruling.opened:
            self._emit(GateOpened(now - ruling.opened.since))
        if ruling.stop:
            self._state.stop(Ending(ruling.stop.reason, ruling.stop.message, ruling.stop))

    def account(self, settlement: Settlement, now: float) -> None:
        """Count a settlement, and look into the store again when its job may be claimed again."""
        self._record_limit.settle(settlement, now)
        settled = Settled(settlement.job.key, settlement.action, settlement.outcome)
        self.count(settled)
        self._emit(settled)
        if settlement.action in (Action.RETRY, Action.RELEASE):
            self._state.claim_at = min(self._state.claim_at, now + (settlement.wait or 0.0))

    def count(self, settled: Settled) -> None:
        """Count a record that was settled by this process or by a helper; too many failures stop the run."""
        if ending := self._failures.note(settled):
            self._state.stop(ending)
