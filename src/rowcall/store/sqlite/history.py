"""How calls went over time: plain functions that read within one transaction, one walk over the calls each."""

from __future__ import annotations

import sqlite3
from collections import Counter

from rowcall.store.call_history import History, Quiet, SlowCall, Span, latency_class, sliced

_NUMBER = "CAST((julianday(at) - julianday(:since)) * 86400 / :width AS INTEGER)"
_ANSWERED = f"""
    SELECT {_NUMBER}, count(*), sum(results.input_tokens), sum(results.output_tokens), sum(results.cost)
    FROM results JOIN jobs ON jobs.rowid = job
    WHERE kind = :kind AND at BETWEEN :since AND :until GROUP BY 1
"""  # noqa: S608  constants
_FAILED = f"""
    SELECT {_NUMBER}, tries.reason, count(*), sum(tries.input_tokens), sum(tries.output_tokens), sum(tries.cost)
    FROM tries JOIN jobs ON jobs.rowid = job
    WHERE kind = :kind AND at BETWEEN :since AND :until GROUP BY 1, 2
"""  # noqa: S608  constants
_LATENCIES = """
    SELECT latency_ms FROM jobs NOT INDEXED
    WHERE kind = :kind AND status = 'done' AND latency_ms > 0 AND updated_at BETWEEN :since AND :until
    UNION ALL SELECT tries.latency_ms FROM tries JOIN jobs ON jobs.rowid = job
    WHERE kind = :kind AND tries.latency_ms > 0 AND at BETWEEN :since AND :until
"""
_QUIET = """
    WITH ends AS (
        SELECT at FROM results JOIN jobs ON jobs.rowid = job WHERE kind = :kind AND at BETWEEN :since AND :until
        UNION ALL SELECT at FROM tries JOIN jobs ON jobs.rowid = job
        WHERE kind = :kind AND at BETWEEN :since AND :until),
    stretches AS (SELECT lag(at) OVER (ORDER BY at) AS began, at AS ended FROM ends)
    SELECT began, ended, (julianday(ended) - julianday(began)) * 86400 AS seconds
    FROM stretches WHERE began IS NOT NULL AND seconds >= :quiet ORDER BY seconds DESC LIMIT 20
"""
_SLOWEST = """
    SELECT id, latency_ms / 1000, status, http_status, updated_at FROM jobs NOT INDEXED
    WHERE kind = :kind AND latency_ms IS NOT NULL AND updated_at BETWEEN :since AND :until
    ORDER BY latency_ms DESC, rowid LIMIT 15
"""


def history(connection: sqlite3.Connection, kind: str, span: Span, quiet: float) -> History:
    """How the calls of a kind went in a span; stretches of ``quiet`` seconds and more."""
    wanted = {"kind": kind, "since": span.since, "until": span.until, "width": span.width, "quiet": quiet}
    stretches = sorted(Quiet(*row) for row in connection.execute(_QUIET, wanted))
    return History(
        slices=sliced(connection.execute(_ANSWERED, wanted), connection.execute(_FAILED, wanted)),
        latencies=Counter(latency_class(ms) for (ms,) in connection.execute(_LATENCIES, wanted)),
        quiet=tuple(stretches),
        slowest=tuple(SlowCall(*row) for row in connection.execute(_SLOWEST, wanted)),
    )
