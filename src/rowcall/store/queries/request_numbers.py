"""What all records of a kind send, under a number."""

from __future__ import annotations

from rowcall.store.queries.base import Query, Statement
from rowcall.store.types import RequestStanding

LOCK_KIND = "SELECT LOCK_KIND(:kind)"

_USE = """
    INSERT INTO requests (kind, hash, used)
    VALUES (:kind, :hash, (SELECT coalesce(max(used), 0) + 1 FROM requests WHERE kind = :kind))
    ON CONFLICT (kind, hash) DO UPDATE SET used = excluded.used
    RETURNING id
"""
# Jobs that a person set back belong to no pass: the run that takes them sends its own request.
_TAKE_ALONG = """
    UPDATE jobs INDEXED BY jobs_pending SET request = :number
    WHERE status = 'pending' AND kind = :kind AND pass IS NULL AND request <> :number
"""
_ADOPT = "UPDATE requests SET adopted_as = :number WHERE kind = :kind AND id <> :number"

_NUMBER = "SELECT id FROM requests WHERE kind = :kind AND hash = :hash"
_LATEST = "SELECT id FROM requests WHERE kind = :kind ORDER BY used DESC LIMIT 1"
_DONE = """
    SELECT count(*) FILTER (WHERE request IN (SELECT id FROM requests WHERE id = :number OR adopted_as = :number)),
        count(*)
    FROM jobs NOT INDEXED WHERE kind = :kind AND status = 'done'
"""


def request(kind: str, hash_: str) -> Query[int]:
    """Make a request the latest of its kind, also for jobs that any run may take; returns its number."""
    yield Statement(LOCK_KIND, kind=kind)
    number = int((yield Statement(_USE, kind=kind, hash=hash_)).value)
    yield Statement(_TAKE_ALONG, kind=kind, number=number)
    return number


def adopt(kind: str, hash_: str) -> Query[int]:
    """As ``request``; from now on, answers made with the other requests of the kind count for it too."""
    number = yield from request(kind, hash_)
    yield Statement(_ADOPT, kind=kind, number=number)
    return number


def request_standing(kind: str, hash_: str) -> Query[RequestStanding]:
    """How a request relates to what is stored: reads all jobs of the kind once."""
    number = (yield Statement(_NUMBER, kind=kind, hash=hash_)).value
    latest = (yield Statement(_LATEST, kind=kind)).value
    ((counting, done),) = (yield Statement(_DONE, kind=kind, number=number or 0)).rows  # no request has the number 0
    return RequestStanding(number, latest in (number, None), counting, done - counting)
