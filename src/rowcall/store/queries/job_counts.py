"""Adding up the jobs of a kind: by status, by reason, and those that should not be there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rowcall.model.job import Status
from rowcall.store.queries.base import Query, Statement
from rowcall.store.types import Counts, ErrorGroup, Flaw

Name = TypeVar("Name")

_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_GROUPS = """
    SELECT status, run_after IS NOT NULL AND status = 'pending', http_status, count(*)
    FROM jobs NOT INDEXED WHERE kind = :kind GROUP BY 1, 2, 3
"""
_TOTALS = """
    SELECT coalesce(sum(attempts), 0), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
        coalesce(sum(cached_tokens), 0), coalesce(sum(reasoning_tokens), 0), sum(cost)
    FROM totals WHERE kind = :kind
"""
_SPENT = "SELECT coalesce(sum(cost), 0) FROM totals WHERE kind = :kind"
_ERRORS = """
    SELECT coalesce(grouped.reason, ''), grouped.jobs, oldest.id, coalesce(oldest.error, '')
    FROM (
        SELECT reason, count(*) AS jobs, min(rowid) AS row FROM jobs
        WHERE kind = :kind AND status = 'failed' GROUP BY reason
    ) AS grouped JOIN jobs AS oldest ON oldest.rowid = grouped.row
    ORDER BY grouped.jobs DESC, grouped.reason NULLS FIRST
"""

_FLAWS = {
    "done without an answer": """
        SELECT count(*), min(rowid) FROM jobs NOT INDEXED
        WHERE kind = :kind AND status = 'done' AND NOT EXISTS (
            SELECT 1 FROM results
            WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded)
    """,
    "an answer that is not valid JSON": """
        SELECT count(*), min(jobs.rowid) FROM results JOIN jobs ON jobs.rowid = job
        WHERE kind = :kind AND NOT is_json(value)
    """,
    "a payload that is not valid JSON": """
        SELECT count(*), min(jobs.rowid) FROM payloads JOIN jobs ON jobs.rowid = job
        WHERE kind = :kind AND NOT is_json(record)
    """,
}
_KEY = "SELECT id FROM jobs WHERE rowid = :row"


def counts(kind: str) -> Query[Counts]:
    """A kind at a glance: reads all of its jobs once."""
    groups = (yield Statement(_GROUPS, kind=kind)).rows
    ((attempts, *tokens, cost),) = (yield Statement(_TOTALS, kind=kind)).rows
    return Counts(
        by_status=_added((Status(status), count) for status, _, _, count in groups),
        retrying=sum(count for _, retrying, _, count in groups if retrying),
        attempts=attempts,
        **dict(zip(_TOKENS, tokens, strict=True)),
        cost=cost,
        by_http_status=_added((http, count) for _, _, http, count in groups if http is not None),
    )


def _added(pairs: Iterable[tuple[Name, int]]) -> dict[Name, int]:
    sums: dict[Name, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    return sums


def spent(kind: str) -> Query[int]:
    """What the calls of a kind have cost, in nano-dollars."""
    return int((yield Statement(_SPENT, kind=kind)).value)


def errors(kind: str) -> Query[list[ErrorGroup]]:
    """Failed jobs by reason, the most frequent first."""
    return [ErrorGroup(*row) for row in (yield Statement(_ERRORS, kind=kind)).rows]


def flaws(kind: str) -> Query[list[Flaw]]:
    """What rowcall itself never writes, with the key of the first job of each sort."""
    found = []
    for what, text in _FLAWS.items():
        ((count, row),) = (yield Statement(text, kind=kind)).rows
        if count:
            found.append(Flaw(what, count, (yield Statement(_KEY, row=row)).value))
    return found
