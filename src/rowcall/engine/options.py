"""What a run is asked for, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rowcall.engine.stop_reasons import Ending
from rowcall.model.job import Status
from rowcall.model.run_stats import RunStats
from rowcall.store.types import Counts, Enqueued, ErrorGroup, RequestStanding, Role

IfChanged = Literal["keep", "redo", "stop"]
"""What to do about records that were done with another request: keep their answers, call them again, or stop."""
Ask = Callable[[RequestStanding], IfChanged]


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is asked for.

    Attributes:
        limit: most records worked on; None: all.
        batch: label of the records that come in; None: the number of the pass.
        if_changed: what to do when the request has changed; None: ``ask``, or stop where there is nobody to ask.
        ask: decides when the request has changed.
        retry_failed: failed records are set back to pending first.
        output: the export goes there instead of to the config's path.
        left_behind: pending records that are no longer in the input are worked on too.
        sample: only so many records of the input, the same ones each time; None: all.
        now: a rest that an earlier run was asked for is not kept.
        input_over: this process only works: another one reads the input and exports, and this says whether no more
            records will come from there; asked at least once a second while nothing is left. None: it is read here,
            or the role is to work, which finds out by itself.
        role: what it is for, as the store has it.
        wait: in the role of work, it does not end when nothing is left: more may come.
    """

    limit: int | None = None
    batch: str | None = None
    if_changed: IfChanged | None = None
    ask: Ask | None = None
    retry_failed: bool = False
    output: Path | None = None
    left_behind: bool = False
    sample: int | None = None
    now: bool = False
    input_over: Callable[[], bool] | None = None
    role: Role = Role.RUN
    wait: bool = False

    @property
    def reads(self) -> bool:
        """The input is read, and the output written, by this process."""
        return self.role is not Role.WORK and self.input_over is None


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What a run did and how things stand after it.

    Attributes:
        ending: why it ended.
        enqueued: what the input brought.
        counts: the whole kind, afterwards.
        strays: records of earlier inputs that are no longer in this one, and not done.
        role: what it was for.
        output: the file that was written, with its rows.
        elapsed: seconds.
        errors: failed records of the kind by reason, most first.
    """

    kind: str
    ending: Ending
    enqueued: Enqueued
    tally: RunStats
    counts: Counts
    strays: int
    joined: bool
    output: Path | None
    rows: int
    elapsed: float
    errors: Sequence[ErrorGroup] = ()
    role: Role = Role.RUN

    @property
    def done(self) -> int:
        """Records of the kind that are done."""
        return self.counts.of(Status.DONE)

    @property
    def failed(self) -> int:
        """Records of the kind that are failed."""
        return self.counts.of(Status.FAILED)

    @property
    def left(self) -> int:
        """Records of the kind that are neither done nor failed, those of earlier inputs too."""
        return self.counts.of(Status.PENDING) + self.counts.of(Status.RUNNING)

    @property
    def total(self) -> int:
        """All records of the kind."""
        return self.counts.total

    def __repr__(self) -> str:
        said = f"{self.total:,} records: {self.done:,} done, {self.failed:,} failed"
        left = self.counts.of(Status.PENDING) + self.counts.of(Status.RUNNING)
        return f"<Report {self.kind}: {self.ending.reason}; {said}, {left:,} left; {self.elapsed:.1f} s>"
