"""The exit code of a run."""

from __future__ import annotations

from rowcall.engine.options import Report
from rowcall.model.errors import Exit
from rowcall.model.job import Status

SIGNAL_CODES = {"interrupted": Exit.INTERRUPTED, "terminated": Exit.TERMINATED, "hung_up": Exit.HUNG_UP}
"""The exit code of each signal that ends a run, by the reason of the stop."""


def exit_code(report: Report) -> Exit:
    """Return the exit code of a run: 0 all done, 1 some failed, 3 stopped early, or that of a signal.

    A run with ``-n`` that reached its limit reports only its own failures as long as records are left.
    """
    match report.ending.reason:
        case "done":
            return Exit.SOME_FAILED if report.counts.of(Status.FAILED) else Exit.DONE
        case "limit":
            failed = report.counts.of(Status.FAILED) if not report.left else report.tally.failed
            return Exit.SOME_FAILED if failed else Exit.DONE
        case reason:
            return SIGNAL_CODES.get(reason, Exit.STOPPED)
