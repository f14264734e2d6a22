"""The contract that every store keeps.

No connection, SQL or transaction crosses it. Each verb is one transaction and safe to repeat. Durations are
relative and in seconds; a claim is referred to by ``(row, epoch)``. A store knows no policy: it never decides
whether a call is repeated or who pays for it.

The words ``kind``, ``batch``, ``pass_``, ``session``, ``epoch`` and ``request`` are explained in CONTRIBUTING.md.

Rules that every store keeps:

- A job is claimable when it is pending, its wait is over, and it belongs to the given pass or to none. A wait that
  would still last longer than it was to last when it began counts as over: the clock went back.
- Claims take due retries first, then never-called jobs in the order of their enqueueing.
- A settlement counts only while its job is running under the epoch of its claim (the fence). A late success is kept
  nevertheless, since it was paid for. It becomes the answer if the job is pending under the same epoch.
- Only ``settle`` writes ``attempts``: + 1 for done, retry and fail. Any settlement sets ``crashes`` to 0.
- A job whose payload was pruned cannot be called from the store. If it is set back to pending, it waits until
  ``enqueue`` brings its record again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from rowcall.limits.rate_limits import Bucket, Cost
from rowcall.model.job import Job, Status
from rowcall.model.outcome import Settlement
from rowcall.store.call_history import History, Span
from rowcall.store.types import (
    Answer,
    Claim,
    Counts,
    Enqueued,
    Entry,
    ErrorGroup,
    Flaw,
    ImportedAnswer,
    ImportResult,
    JobRow,
    LastCall,
    Left,
    LeftBehind,
    LiveOrders,
    Pruned,
    RequestStanding,
    Reserved,
    Role,
    RolledBack,
    Run,
    RunRow,
    Selected,
    Selection,
    Try,
)


class Reader(Protocol):
    """What people and exports read. Long reads go page by page, and hold no transaction between two pages."""

    async def close(self) -> None:
        """Close the connection; safe to repeat."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def kinds(self) -> list[str]:
        """The kinds in the store, by name."""

    async def counts(self, kind: str) -> Counts:
        """A kind at a glance."""

    async def spent(self, kind: str) -> int:
        """What all calls of the kind that were settled have cost, in nano-dollars."""

    async def errors(self, kind: str) -> list[ErrorGroup]:
        """Failed jobs by reason, the most frequent first."""

    async def job(self, kind: str, key: str) -> JobRow | None:
        """One job by its key."""

    async def payload(self, row: int) -> dict[str, Any] | None:
        """The record of a job; None if it was pruned."""

    async def donor(self, row: int) -> str | None:
        """The key of the duplicate whose answer a job was given; None if the job was called itself."""

    async def tries(self, row: int) -> list[Try]:
        """A job's unsuccessful calls, oldest first."""

    async def answers(self, kind: str, keys: Sequence[str]) -> dict[str, Answer]:
        """Jobs by key, with the current answer of those that are done. At most 1,000 keys at a time."""

    async def last_calls(self, kind: str, keys: Sequence[str]) -> dict[str, LastCall]:
        """What the last call of each job gave, by key. At most 1,000 keys at a time."""

    async def page(self, kind: str, *, after: int = 0, limit: int = 1000, status: Status | None = None) -> list[JobRow]:
        """At most ``limit`` jobs with rows above ``after``, in the order in which they were enqueued."""

    async def strays(self, kind: str, pass_: int) -> int:
        """The number of pending and failed jobs that an earlier pass brought and this one did not."""

    async def last_run(self, kind: str) -> RunRow | None:
        """The run of the kind that was the last to begin or end."""

    async def live_runs(self, kind: str) -> list[RunRow]:
        """The runs of the kind whose session is alive, newest first."""

    async def runs(self, kind: str) -> list[RunRow]:
        """The runs of the kind, oldest first."""

    async def recipe(self, kind: str) -> dict[str, Any] | None:
        """How the calls of the kind are made, as last published; None if it never was."""

    async def history(self, kind: str, span: Span, quiet: float) -> History:
        """How calls went in a span of time, with the stretches of ``quiet`` seconds or more in which no call ended."""

    async def request_standing(self, kind: str, hash_: str) -> RequestStanding:
        """How a request relates to what is in the store."""

    async def select(self, kind: str, selection: Selection) -> Selected:
        """What a selection holds; changes nothing."""

    async def check(self) -> list[str]:
        """Faults of the file or the database itself; empty if it is sound."""

    async def flaws(self, kind: str) -> list[Flaw]:
        """Faults in the data of a kind: done jobs without an answer, answers and payloads that are not valid JSON."""

    async def batches(self, kind: str) -> list[str]:
        """The batches of a kind, by name, including those to which only older answers belong."""

    async def batch_answers(self, kind: str, batch: str) -> RolledBack:
        """What ``rollback`` would do; changes nothing."""

    async def prunable(self, kind: str, before: str) -> int:
        """The number of payloads that ``prune`` would drop."""

    async def left_behind(self, kind: str, pass_: int, *, after: int = 0, limit: int = 1000) -> list[LeftBehind]:
        """Pending jobs with a payload that this pass did not bring, at most ``limit`` with rows above ``after``.

        Jobs of no pass are left out, since any run takes those.
        """

    async def backup(self, path: Path) -> None:
        """Write a snapshot to a new SQLite file, completely or not at all. Runs go on meanwhile.

        Jobs that are running are pending in the copy, uncharged.

        Raises:
            OutputError: the file exists already, or cannot be written.
        """


class Store(Reader, Protocol):
    """What a run needs. Every verb may raise Busy, Unavailable, Full, ReadOnly or Corrupt."""

    async def begin_session(self) -> int:
        """Make this process known and alive; returns the session's number."""

    async def beat(self, session: int, claims: Sequence[Claim] = ()) -> list[Claim]:
        """Record that the session is alive; returns those of its ``claims`` that were cancelled."""

    async def end_session(self, session: int) -> None:
        """Release what the session still holds, uncharged, and forget it; safe to repeat."""

    async def begin_run(self, session: int, kind: str, settings: dict[str, Any], *, role: Role = Role.RUN) -> Run:
        """Join the pass of a live run of the kind; if there is none, the role decides. ``settings`` holds no secrets.

        ``run``: a new pass. ``enqueue``: the newest pass if only enqueues have used it, else a new one. ``work``: the
        newest pass, or the first one.
        """

    async def publish(self, kind: str, recipe: dict[str, Any]) -> None:
        """Store how the calls of the kind are made, as JSON values without secrets, for workers that have no config."""

    async def end_run(self, run: Run, stop_reason: str, totals: dict[str, Any]) -> None:
        """Write why a run stopped and what it did."""

    async def request(self, kind: str, hash_: str) -> int:
        """Make a request the latest of its kind; returns its number, which is the same for the same hash.

        Pending jobs of no pass get this request: any run may take them, and sends its own.
        """

    async def adopt(self, kind: str, hash_: str) -> int:
        """As ``request``; from now on, answers made with any other request of the kind count for it too."""

    async def enqueue(self, kind: str, entries: Sequence[Entry], *, pass_: int, request: int, batch: str) -> Enqueued:
        """Enqueue records. Idempotent.

        A new key gives a pending job. If key, request (or one that it adopted) and hash are known, nothing is written,
        except that a job that is not done gets this pass. Otherwise the job is done if an answer to the new request and
        hash is known, or else pending with attempts 0. A running job goes on running, and is put back when it ends.

        Raises:
            DuplicateKey: a key came before in this pass with other content; entries before it are stored.
        """

    async def claim(
        self,
        session: int,
        kind: str,
        pass_: int,
        limit: int,
        *,
        fresh_only: bool = False,
        only: Sequence[int] | None = None,
    ) -> list[Job]:
        """Take at most ``limit`` claimable jobs; ``fresh_only``: never called ones; ``only``: among these rows."""

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Write decisions in one transaction; returns those that came too late (the fence)."""

    async def answer_claimed(self, claimed: Sequence[Job]) -> list[Job]:
        """Settle those claims for which a duplicate has an answer; returns their jobs.

        Duplicates are jobs of one kind with the same input and the same request (or one that it adopted). The answer is
        copied without tokens and cost, and no attempt is counted. An answer that was superseded for one duplicate is
        not given to others.
        """

    async def answer_pending(self, answered: Sequence[Job]) -> int:
        """Give the answers of these jobs to their pending duplicates of the same pass or of none.

        Returns how many got one, at most 10,000.
        """

    async def hand_out(self, kind: str, keys: Sequence[str]) -> None:
        """Note that the calls of these jobs are made elsewhere, and what they ask now. At most 1,000 keys at a time."""

    async def import_answers(self, kind: str, arrived: Sequence[ImportedAnswer]) -> list[ImportResult]:
        """Import answers that were made elsewhere, as if their jobs had been called; returns what became of each.

        Idempotent: done jobs, running jobs and answers that were imported before are left as they are. An answer to
        what a job no longer asks is kept, as a late answer is.
        """

    async def reap(self) -> int:
        """Put back what dead sessions held; returns how many jobs.

        They get the error ``stale lease`` and crashes + 1. From 3 crashes on a job waits for a second; after 5 it has
        failed, with the reason ``poison``.
        """

    async def left(self, kind: str, pass_: int, *, only: Sequence[int] | None = None) -> Left:
        """What a pass still has to do; ``only``: among these rows."""

    async def retry(self, kind: str, selection: Selection) -> int:
        """Set jobs back to pending with attempts 0, claimable by any run; returns how many.

        The answers of done jobs are superseded. Running jobs are left out.
        """

    async def cancel(self, kind: str, selection: Selection) -> int:
        """Mark pending and running jobs cancelled; returns how many. The calls of running jobs then come too late."""

    async def rollback(self, kind: str, batch: str) -> RolledBack:
        """Supersede all answers of a batch.

        Jobs that were done with one of them get their newest answer that still counts, whatever request and input it
        was made with. Jobs without another answer are pending with attempts 0, claimable by any run.
        """

    async def prune(self, kind: str, before: str) -> Pruned:
        """Drop the payloads of jobs that were done before a time (ISO-8601, UTC), and make the file smaller.

        Raises:
            StoreError: a run of any kind is alive; nothing is dropped.
        """

    async def reserve(self, target: str, buckets: Sequence[Bucket], calls: Sequence[Cost], owed: Cost) -> Reserved:
        """Reserve calls to a target (scheme, host, port) in all buckets at once; see limits/rate_limits.py.

        All processes on the store share a target's buckets of the same ``what`` and ``per``.

        Args:
            target: what is called.
            buckets: the limits that apply.
            calls: what each call takes from each bucket.
            owed: what earlier calls took beyond their reservations; below 0 if they took less.
        """

    async def penalize(self, target: str, seconds: float) -> None:
        """Let a target rest, for all processes on the store; a shorter rest never ends a longer one."""

    async def end_rest(self, target: str) -> None:
        """Forget that a target rests; live runs that already know of the rest keep it."""

    async def set(self, kind: str, values: Mapping[str, str | None], *, keep: bool) -> None:
        """Change settings of live runs; None removes one.

        The first run that begins while no run of the kind is alive forgets those without ``keep``.
        """

    async def orders(self, kind: str, target: str) -> LiveOrders:
        """What a live run of the kind against a target follows now."""

    async def note(self, run: Run, totals: dict[str, Any]) -> None:
        """Write what a live run has done so far; one that has ended is left as it is."""
