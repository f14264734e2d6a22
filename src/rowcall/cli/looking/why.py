"""Why a record is not done, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rowcall.cli.shared.hints import hint_for
from rowcall.cli.shared.located_commands import Located
from rowcall.model.job import Status
from rowcall.progress import clean, short_time
from rowcall.run.summary import HeldUp
from rowcall.store.types import JobRow, RunRow, Try


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known about a record.

    Attributes:
        job: it.
        stored: its input is in the store.
        tries: its unsuccessful calls, oldest first.
        live: the runs of its kind that are alive, newest first.
        now: the time of day.
    """

    job: JobRow
    stored: bool
    tries: Sequence[Try]
    live: Sequence[RunRow]
    now: datetime

    @property
    def held_up(self) -> HeldUp | None:
        """What holds up the first live run that is held up."""
        said = (run.totals.get("live", {}).get("held_up") for run in self.live)
        return next((HeldUp(**each) for each in said if each), None)


def why(standing: Standing, located: Located) -> str | None:
    """One line, with ``located`` commands; None where it is done."""
    job = standing.job
    match job.status:
        case Status.DONE:
            return None
        case Status.FAILED:
            return f"failed: {job.reason or 'for no known reason'}: {located(hint_for(job.reason or ''))}"
        case Status.CANCELLED:
            return located("cancelled by hand; rowcall retry KEY brings it back")
        case Status.RUNNING:
            return _running(standing, located)
        case _:
            return _pending(standing, located)


def held_up_text(held_up: HeldUp) -> str:
    """What a run is instead of at work: ``offline since 14:02:09, next try at 14:02:14 (refused)``."""
    if held_up.by == "paused":
        return "paused; rowcall set pause=false goes on"
    since = f" since {_clock(held_up.since)}" if held_up.since else ""
    until = f"{_UNTIL[held_up.by]} {_clock(held_up.until)}" if held_up.until else ""
    return f"{_WORDS[held_up.by]}{since}{until}" + (f" ({clean(held_up.cause)})" if held_up.cause else "")


_WORDS = {"offline": "offline", "resting": "resting as the API asked", "rate limit": "waiting for the limit"}
_UNTIL = {"offline": ", next try at", "resting": ", until", "rate limit": ", until"}


def _running(standing: Standing, located: Located) -> str:
    if standing.live:
        age = (standing.now - datetime.fromisoformat(standing.job.updated_at)).total_seconds()
        return f"taken by a run {short_time(max(age, 0.0))} ago; it is called, or waits for evidence about a failure"
    return located("its process died while it had it; the next rowcall run takes it back")


def _pending(standing: Standing, located: Located) -> str:
    if not standing.stored:
        return located("its stored input was pruned; rowcall run, where the input is, reads it again")
    if not standing.live:
        return _waits(standing) + located("no run is at work: rowcall run")
    if standing.held_up:
        return f"{_waits(standing)}the run is {held_up_text(standing.held_up)}"
    in_line = located("in line, or no longer in the input: rowcall run --all takes it then")
    return _waits(standing).removesuffix("; ") or in_line


def _waits(standing: Standing) -> str:
    """The wait that its last try left, and for what."""
    after = standing.job.run_after
    if after is None or datetime.fromisoformat(after) <= standing.now:
        return ""
    cause = f" after {standing.tries[-1].reason}: {standing.tries[-1].message}" if standing.tries else ""
    return f"waits until {_clock(after)}{cause}; "


def _clock(moment: str) -> str:
    """A time of day as the clock on the wall here shows it; with its date where that is another one."""
    then = datetime.fromisoformat(moment).astimezone()
    return then.strftime("%H:%M:%S" if then.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M:%S")
