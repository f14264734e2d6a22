"""Answers that were made elsewhere: what is handed out, what comes back, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowcall.model.job import Job
from rowcall.model.outcome import Action, Settlement
from rowcall.store.queries.base import Query, Settle, Statement, storable
from rowcall.store.types import ImportedAnswer, ImportResult

_HAND_OUT = """
    INSERT INTO handed_out (job, request, input_hash, at)
    SELECT rowid, request, input_hash, moment() FROM jobs WHERE kind = :kind AND id IN :keys
    ON CONFLICT (job, request, input_hash) DO UPDATE SET at = excluded.at, answered = FALSE
"""
_JOBS = """
    SELECT id, rowid, status, epoch, request, input_hash FROM jobs
    WHERE kind = :kind AND id IN :keys ORDER BY rowid FOR NO KEY UPDATE
"""
_HANDED_OUT = "SELECT job, request, input_hash, answered FROM handed_out WHERE job IN :rows"
_ADOPTED = "SELECT id, adopted_as FROM requests WHERE kind = :kind AND adopted_as IS NOT NULL"
_TAKE = "UPDATE jobs SET epoch = epoch + 1, session = NULL, status = 'running' WHERE rowid IN :rows"
_SKIP_EPOCH = "UPDATE jobs SET epoch = epoch + 1 WHERE rowid IN :rows"
_ANSWERED = "UPDATE handed_out SET answered = TRUE WHERE job IN :rows"

Asked = tuple[int, str]
"""What was asked: the number of a request, and an input_hash."""


@dataclass(frozen=True, slots=True)
class _StoredJob:
    """A job as it stands, and what was handed out of it.

    Attributes:
        asked: what it asks now.
        unanswered: what was handed out and has no answer yet.
        was_handed_out: whether anything was.
    """

    row: int
    status: str
    epoch: int
    asked: Asked
    unanswered: tuple[Asked, ...]
    was_handed_out: bool


@dataclass(frozen=True, slots=True)
class _Import:
    """An answer that is to be written, and what it answers."""

    job: _StoredJob
    arrived: ImportedAnswer
    asked: Asked

    @property
    def is_current(self) -> bool:
        """It answers what its job asks now. Otherwise it is kept, as a late answer is."""
        return self.asked == self.job.asked

    @property
    def settlement(self) -> Settlement:
        """The settlement of a claim that was made just now."""
        claimed = Job(self.job.row, self.arrived.key, self.job.epoch + 1, 0, 0, (), True, *self.asked, {})
        return Settlement(claimed, self.arrived.action, outcome=self.arrived.outcome)


def hand_out(kind: str, keys: Sequence[str]) -> Query[None]:
    """Note what these jobs ask at this moment."""
    yield Statement(_HAND_OUT, kind=kind, keys=storable(keys))


def import_answers(kind: str, arrived: Sequence[ImportedAnswer]) -> Query[list[ImportResult]]:
    """Import answers in their order; returns what became of each."""
    adopted = set((yield Statement(_ADOPTED, kind=kind)).rows)
    fates: list[ImportResult] = []
    for group in _without_repeats(arrived):
        fates += yield from _import(kind, group, adopted)
    return fates


def _without_repeats(arrived: Sequence[ImportedAnswer]) -> Iterator[list[ImportedAnswer]]:
    """Groups in which no key comes twice: a second answer is judged by what the first one left."""
    group: dict[str, ImportedAnswer] = {}
    for each in arrived:
        if each.key in group:
            yield list(group.values())
            group = {}
        group[each.key] = each
    yield list(group.values())


def _import(kind: str, arrived: Sequence[ImportedAnswer], adopted: set[tuple[int, int]]) -> Query[list[ImportResult]]:
    jobs = yield from _stored_jobs(kind, [each.key for each in arrived])
    fates, imports = [], []
    for each in arrived:
        job = jobs.get(each.key)
        fates.append(fate := _fate(job, each.action, adopted))
        if job and (asked := _answered_by(job, each.action, fate)):
            imports.append(_Import(job, each, asked))
    if imports:
        yield Statement(_TAKE, rows=[each.job.row for each in imports if each.is_current])
        yield Statement(_SKIP_EPOCH, rows=[each.job.row for each in imports if not each.is_current])
        yield Settle([each.settlement for each in imports])
        yield Statement(_ANSWERED, rows=[each.job.row for each in imports])
    return fates


def _stored_jobs(kind: str, keys: Sequence[str]) -> Query[dict[str, _StoredJob]]:
    jobs = (yield Statement(_JOBS, kind=kind, keys=storable(keys))).rows
    handed_out: dict[int, list[tuple[Asked, bool]]] = {}
    for row, request, input_hash, answered in (yield Statement(_HANDED_OUT, rows=[row for _, row, *_ in jobs])).rows:
        handed_out.setdefault(row, []).append(((request, input_hash), bool(answered)))
    return {
        key: _StoredJob(
            row,
            status,
            epoch,
            (request, input_hash),
            tuple(asked for asked, answered in handed_out.get(row, ()) if not answered),
            row in handed_out,
        )
        for key, row, status, epoch, request, input_hash in jobs
    }


def _fate(job: _StoredJob | None, action: Action, adopted: set[tuple[int, int]]) -> ImportResult:
    """What becomes of an answer; ``adopted`` are pairs of a request and the one that its answers count for."""
    if job is None:
        return ImportResult.UNKNOWN
    if job.status == "running":
        return ImportResult.RUNNING
    if job.was_handed_out and not job.unanswered:
        return ImportResult.BEFORE
    if len(job.unanswered) > 1 or (job.unanswered and not _answers(job.unanswered[0], job.asked, adopted)):
        return ImportResult.CHANGED
    if job.status == "done" or (job.status == "failed" and action is Action.FAIL):
        return ImportResult.BEFORE
    return {Action.DONE: ImportResult.DONE, Action.FAIL: ImportResult.FAILED}.get(action, ImportResult.AGAIN)


def _answers(asked: Asked, now: Asked, adopted: set[tuple[int, int]]) -> bool:
    """Whether an answer to what was asked then answers what is asked now."""
    return asked[1] == now[1] and (asked[0] == now[0] or (asked[0], now[0]) in adopted)


def _answered_by(job: _StoredJob, action: Action, fate: ImportResult) -> Asked | None:
    """What an answer with this fate is written as an answer to; None if it is not written."""
    if fate in (ImportResult.DONE, ImportResult.FAILED):
        return job.asked
    if fate is ImportResult.CHANGED and action is Action.DONE and len(job.unanswered) == 1:
        return job.unanswered[0]
    return None
