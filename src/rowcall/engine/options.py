"""The options of a run, and its report."""

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
    """The options of one run.

    Attributes:
        limit: records to work on, at most; None: all.
        batch: label of the records that come in; None: ``pass-`` and the number of the pass.
        if_changed: what to do if the request has changed; None: call ``ask``, or stop without it.
        ask: decides what to do if the request has changed.
        retry_failed: set failed records back to pending first.
        output: path of the export; None: as in the config.
        left_behind: also work on pending records that are no longer in the input.
        sample: read only so many records of the input, the same ones each time; None: all.
        now: ignore a rest that an earlier run was asked for.
        input_over: for a process that only works while another one reads the input and exports: says whether no more
            records will come. It is asked at least once a second while nothing is left to do. None: the input is read
            here, or the role is to work, which finds out by itself.
        role: the role of the process, as the store knows it.
        wait: in the role of work, do not end when nothing is left, since more may come.
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
    """What a run did, and how its batch job stands afterwards.

    Attributes:
        ending: why it ended.
        enqueued: what became of the input.
        tally: counts of this run.
        counts: records of the kind by status, afterwards.
        strays: records of earlier inputs that are no longer in this one and not done.
        joined: it joined a live run.
        role: the role of the process.
        output: the file that was written; None: none.
        rows: rows in that file.
        elapsed: seconds that it took.
        errors: failed records of the kind by reason, the most frequent first.
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
        """Records of the kind that are neither done nor failed, including those of earlier inputs."""
        return self.counts.of(Status.PENDING) + self.counts.of(Status.RUNNING)

    @property
    def total(self) -> int:
        """All records of the kind."""
        return self.counts.total

    def __repr__(self) -> str:
        said = f"{self.total:,} records: {self.done:,} done, {self.failed:,} failed"
        left = self.counts.of(Status.PENDING) + self.counts.of(Status.RUNNING)
        return f"<Report {self.kind}: {self.ending.reason}; {said}, {left:,} left; {self.elapsed:.1f} s>"
