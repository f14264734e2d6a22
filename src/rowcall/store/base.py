"""The contract that every store keeps.

No connection, SQL or transaction crosses it. Each verb is one transaction and safe to repeat. Durations are
relative and in seconds; a claim is referred to by ``(row, epoch)``. A store knows no policy: it never decides
whether a call is repeated or who pays for it.

Words: ``kind``, ``batch``, ``pass_``, ``session``, ``epoch``, ``request`` as in the README's list of words.

Rules every store keeps:

- A job is claimable when it is pending, its wait is over, and it belongs to the pass asked for or to none. A wait
  that ends further ahead than it was long (the clock went back) is over.
- Claims take due retries first, then never-called jobs in the order of their enqueueing.
- A settlement counts only while its job is running under the epoch of its claim (the fence). A late success is
  kept all the same, since it was paid for, and becomes the answer if the job is pending under that very epoch.
- Only ``settle`` writes ``attempts``: + 1 for done, retry and fail. Any settlement puts ``crashes`` back to 0.
- A job whose payload was pruned cannot be called from the store: set back to pending, it waits until ``enqueue``
  brings its record again.
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
    """What people and exports ask. Reads page by row and never hold a transaction between two pages."""

    async def close(self) -> None:
        """Give up the connection; safe to repeat."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def kinds(self) -> list[str]:
        """The kinds in the store, by name."""

    async def counts(self, kind: str) -> Counts:
        """A kind at a glance."""

    async def spent(self, kind: str) -> int:
        """What all calls of the kind have cost so far, in nano-dollars: those that are written."""

    async def errors(self, kind: str) -> list[ErrorGroup]:
        """Failed jobs by reason, most first."""

    async def job(self, kind: str, key: str) -> JobRow | None:
        """One job by its key."""

    async def payload(self, row: int) -> dict[str, Any] | None:
        """The record of a job; None where it was pruned."""

    async def donor(self, row: int) -> str | None:
        """The key of the twin whose answer a job was given; None where it was called itself."""

    async def tries(self, row: int) -> list[Try]:
        """A job's unsuccessful calls, oldest first."""

    async def answers(self, kind: str, keys: Sequence[str]) -> dict[str, Answer]:
        """Jobs by key, with the current answer of the done ones. At most 1,000 keys a call."""

    async def last_calls(self, kind: str, keys: Sequence[str]) -> dict[str, LastCall]:
        """What the last calls of jobs came to, by key. At most 1,000 keys a call."""

    async def page(self, kind: str, *, after: int = 0, limit: int = 1000, status: Status | None = None) -> list[JobRow]:
        """Jobs in the order of their enqueueing, those after row ``after``."""

    async def strays(self, kind: str, pass_: int) -> int:
        """Jobs, pending or failed, that an earlier pass brought and this one did not."""

    async def last_run(self, kind: str) -> RunRow | None:
        """The run of the kind that was last heard to begin or end."""

    async def live_runs(self, kind: str) -> list[RunRow]:
        """The runs of the kind whose session is alive, newest first."""

    async def runs(self, kind: str) -> list[RunRow]:
        """The runs of the kind, oldest first."""

    async def recipe(self, kind: str) -> dict[str, Any] | None:
        """How the calls of the kind are made, as it was last published; None where it never was."""

    async def history(self, kind: str, span: Span, quiet: float) -> History:
        """How calls went in a span of time; stretches of ``quiet`` seconds without the end of one are named."""

    async def request_standing(self, kind: str, hash_: str) -> RequestStanding:
        """How a request stands to what is in the store."""

    async def select(self, kind: str, selection: Selection) -> Selected:
        """What a selection holds; nothing is changed."""

    async def check(self) -> list[str]:
        """Faults of the file itself; empty where it is sound."""

    async def flaws(self, kind: str) -> list[Flaw]:
        """Faults in what a kind holds: done jobs without an answer, answers and payloads that are no JSON."""

    async def batches(self, kind: str) -> list[str]:
        """The batches of a kind, by name, those that only older answers belong to among them."""

    async def batch_answers(self, kind: str, batch: str) -> RolledBack:
        """What ``rollback`` would do; nothing is changed."""

    async def prunable(self, kind: str, before: str) -> int:
        """Payloads that ``prune`` would drop."""

    async def left_behind(self, kind: str, pass_: int, *, after: int = 0, limit: int = 1000) -> list[LeftBehind]:
        """Pending jobs with a payload that this pass did not bring, in the order of their rows, those after ``after``.

        Jobs of no pass are not among them: any run takes those.
        """

    async def backup(self, path: Path) -> None:
        """Write a snapshot to a new file, complete or not at all; whoever writes the store goes on meanwhile.

        Nothing runs in the copy: what was running is pending there, uncharged.

        Raises:
            OutputError: the file is there already, or cannot be written.
        """


class Store(Reader, Protocol):
    """What a run needs. Every verb may raise Busy, Unavailable, Full, ReadOnly or Corrupt."""

    async def begin_session(self) -> int:
        """Make this process known and alive; returns the session's number."""

    async def beat(self, session: int, claims: Sequence[Claim] = ()) -> list[Claim]:
        """Say that the session is alive; returns those of its ``claims`` that were cancelled."""

    async def end_session(self, session: int) -> None:
        """Release what the session still holds, uncharged, and forget it; safe to repeat."""

    async def begin_run(self, session: int, kind: str, settings: dict[str, Any], *, role: Role = Role.RUN) -> Run:
        """Join the pass of a live run of the kind; without one it depends on the role. ``settings`` holds no secrets.

        ``run``: a new pass. ``enqueue``: the newest pass where nothing but enqueues had it, else a new one. ``work``:
        the newest pass, or the first one.
        """

    async def publish(self, kind: str, recipe: dict[str, Any]) -> None:
        """Keep how the calls of the kind are made, as JSON values, for workers that have no config; no secrets."""

    async def end_run(self, run: Run, stop_reason: str, totals: dict[str, Any]) -> None:
        """Write why a run stopped and what it did."""

    async def request(self, kind: str, hash_: str) -> int:
        """Make a request the kind's latest; returns its number, the same for the same hash.

        Pending jobs of no pass are asked it from now on: any run may take them, and sends its own request.
        """

    async def adopt(self, kind: str, hash_: str) -> int:
        """As ``request``, and answers made with any other request of the kind count for it from now on."""

    async def enqueue(self, kind: str, entries: Sequence[Entry], *, pass_: int, request: int, batch: str) -> Enqueued:
        """Bring records in. Idempotent.

        New key: pending. Same key, request (or one it adopted) and hash: nothing is written, but a job that is
        not done gets this pass. Otherwise, where an answer to the new request and hash is known: done with it;
        else pending with attempts 0. A running job keeps running and is put back when it ends.

        Raises:
            DuplicateKey: a key came before in this pass with other content; entries before it are in.
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
        """Settle those claims that a twin's answer is there for; returns their jobs.

        Twins are jobs of one kind with the same request (or one it adopted) and input. The answer is copied, without
        tokens and cost, and no attempt is counted. One that was superseded for any twin is given to no other.
        """

    async def answer_pending(self, answered: Sequence[Job]) -> int:
        """Give the answers of these jobs to their pending twins of the same pass or of none, 10,000 at most.

        Returns to how many.
        """

    async def hand_out(self, kind: str, keys: Sequence[str]) -> None:
        """Note that the calls of these jobs are made elsewhere, and what they ask now. At most 1,000 keys a call."""

    async def import_answers(self, kind: str, arrived: Sequence[ImportedAnswer]) -> list[ImportResult]:
        """Take in answers that were made elsewhere, as if their jobs had been called; returns what became of each.

        Idempotent: done jobs, running ones, and answers that came before are left as they are. An answer to what a
        job no longer asks is kept, as a late one is.
        """

    async def reap(self) -> int:
        """Put back what dead sessions held; returns how many jobs.

        They get the error ``stale lease`` and crashes + 1; from 3 crashes on a job waits for a second, after 5 it is
        failed, reason ``poison``.
        """

    async def left(self, kind: str, pass_: int, *, only: Sequence[int] | None = None) -> Left:
        """What a pass still has; ``only``: among these rows."""

    async def retry(self, kind: str, selection: Selection) -> int:
        """Set jobs back to pending with attempts 0, claimable by any run; returns how many.

        The answer of a done one is superseded. Running jobs are left out.
        """

    async def cancel(self, kind: str, selection: Selection) -> int:
        """Mark pending and running jobs cancelled; returns how many. What a running one's call gives is late."""

    async def rollback(self, kind: str, batch: str) -> RolledBack:
        """Supersede all answers of a batch.

        Jobs that were done with one get their newest answer that still counts, whatever request and input it was
        made with; those without any are pending with attempts 0, claimable by any run.
        """

    async def prune(self, kind: str, before: str) -> Pruned:
        """Drop the payloads of jobs that were done before a time (ISO-8601, UTC), and make the file smaller.

        Raises:
            StoreError: a run is alive, of whatever kind; nothing is dropped.
        """

    async def reserve(self, target: str, buckets: Sequence[Bucket], calls: Sequence[Cost], owed: Cost) -> Reserved:
        """Take places for calls to a target (scheme, host, port), in all buckets at once; see limits/buckets.py.

        All processes on the store share a target's buckets of the same ``what`` and ``per``.

        Args:
            target: who is called.
            buckets: the limits that hold.
            calls: what each call takes of each bucket.
            owed: what earlier calls took more than was reserved for them; below 0 where it was less.
        """

    async def penalize(self, target: str, seconds: float) -> None:
        """Let a target rest, for all processes on the store; a shorter rest never ends a longer one."""

    async def end_rest(self, target: str) -> None:
        """Forget that a target rests; live runs that know of it already keep to it."""

    async def set(self, kind: str, values: Mapping[str, str | None], *, keep: bool) -> None:
        """Change settings of live runs; None takes one away.

        The first run that begins when none of the kind is alive forgets those without ``keep``.
        """

    async def orders(self, kind: str, target: str) -> LiveOrders:
        """What a live run of the kind against a target follows now."""

    async def note(self, run: Run, totals: dict[str, Any]) -> None:
        """Write what a live run has done so far; one that has ended is left as it is."""
