"""Says why a record is not done, and what a run waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rowcall.cli.shared.failure_hints import hint_for
from rowcall.cli.shared.job_address import JobAddress
from rowcall.model.job import Status
from rowcall.progress import clean, short_time
from rowcall.run.summary import HeldUp
from rowcall.store.types import JobRow, RunRow, Try


@dataclass(frozen=True, slots=True)
class JobDetails:
    """What is known about a job.

    Attributes:
        job: its row.
        stored: whether its input is in the store.
        tries: its unsuccessful calls, oldest first.
        live: the live runs of its kind, newest first.
        now: the current time.
    """

    job: JobRow
    stored: bool
    tries: Sequence[Try]
    live: Sequence[RunRow]
    now: datetime

    @property
    def held_up(self) -> HeldUp | None:
        """What holds up the newest live run that is held up."""
        causes = (run.totals.get("live", {}).get("held_up") for run in self.live)
        return next((HeldUp(**each) for each in causes if each), None)


def why_not_done(details: JobDetails, address: JobAddress) -> str | None:
    """Return one line that says why a record is not done, and what to do; None if it is done."""
    job = details.job
    match job.status:
        case Status.DONE:
            return None
        case Status.FAILED:
            hint = hint_for(job.reason or "")
            return f"failed: {job.reason or 'for an unknown reason'}: {address.fill_in(hint)}"
        case Status.CANCELLED:
            return address.fill_in("it was cancelled; rowcall retry KEY brings it back")
        case Status.RUNNING:
            return _why_running(details, address)
        case _:
            return _why_pending(details, address)


def held_up_text(held_up: HeldUp) -> str:
    """Return what a run waits for: ``offline since 14:02:09, next try at 14:02:14 (refused)``."""
    if held_up.by == "paused":
        return "paused; resume with: rowcall set pause=false"
    since = f" since {_clock(held_up.since)}" if held_up.since else ""
    until = f"{_UNTIL[held_up.by]} {_clock(held_up.until)}" if held_up.until else ""
    return f"{_WORDS[held_up.by]}{since}{until}" + (f" ({clean(held_up.cause)})" if held_up.cause else "")


_WORDS = {"offline": "offline", "resting": "pausing because the API asked for it", "rate limit": "at the rate limit"}
_UNTIL = {"offline": ", next try at", "resting": ", until", "rate limit": ", until"}


def _why_running(details: JobDetails, address: JobAddress) -> str:
    if details.live:
        age = (details.now - datetime.fromisoformat(details.job.updated_at)).total_seconds()
        claimed = f"a run claimed it {short_time(max(age, 0.0))} ago"
        return f"{claimed}; its call is under way, or a failure of it is held until its cause is known"
    return address.fill_in("the process that worked on it died; the next rowcall run takes it back")


def _why_pending(details: JobDetails, address: JobAddress) -> str:
    if not details.stored:
        return address.fill_in(
            "its stored input was pruned; rowcall run reads it again, on the machine that has the input"
        )
    if not details.live:
        return _wait_text(details) + address.fill_in("no run is live; start one with: rowcall run")
    if details.held_up:
        return f"{_wait_text(details)}the run is {held_up_text(details.held_up)}"
    waiting = address.fill_in(
        "it waits for its turn; if it is no longer in the input, only rowcall run --all works on it"
    )
    return _wait_text(details).removesuffix("; ") or waiting


def _wait_text(details: JobDetails) -> str:
    """Return the wait before its next try and why; empty if it does not wait."""
    after = details.job.run_after
    if after is None or datetime.fromisoformat(after) <= details.now:
        return ""
    cause = f" after {details.tries[-1].reason}: {details.tries[-1].message}" if details.tries else ""
    return f"waits until {_clock(after)}{cause}; "


def _clock(moment: str) -> str:
    """Return a time in this machine's zone, with its date unless that is today."""
    then = datetime.fromisoformat(moment).astimezone()
    return then.strftime("%H:%M:%S" if then.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M:%S")
