"""How calls went over time: each statement reads the calls of a kind once."""

from __future__ import annotations

from collections import Counter

from rowcall.store.call_history import History, Quiet, SlowCall, Span, latency_class, sliced
from rowcall.store.queries.base import Query, Statement

_WITHIN = "kind = :kind AND at BETWEEN :since AND :until"
_ANSWERED = f"""
    SELECT SLICE(at), count(*), sum(results.input_tokens), sum(results.output_tokens), sum(results.cost)
    FROM results JOIN jobs ON jobs.rowid = job WHERE {_WITHIN} GROUP BY 1
"""  # noqa: S608  constants
_FAILED = f"""
    SELECT SLICE(at), tries.reason, count(*), sum(tries.input_tokens), sum(tries.output_tokens), sum(tries.cost)
    FROM tries JOIN jobs ON jobs.rowid = job WHERE {_WITHIN} GROUP BY 1, 2
"""  # noqa: S608  constants
# Grouped, since there may be millions of them: they are stored in steps of 0.1 ms.
_LATENCIES = f"""
    SELECT latency_ms, count(*) FROM (
        SELECT latency_ms FROM jobs NOT INDEXED
        WHERE kind = :kind AND status = 'done' AND latency_ms > 0 AND updated_at BETWEEN :since AND :until
        UNION ALL SELECT tries.latency_ms FROM tries JOIN jobs ON jobs.rowid = job
        WHERE {_WITHIN} AND tries.latency_ms > 0) AS latencies
    GROUP BY latency_ms
"""  # noqa: S608  constants
_QUIET = f"""
    WITH ends AS (
        SELECT at FROM results JOIN jobs ON jobs.rowid = job WHERE {_WITHIN}
        UNION ALL SELECT at FROM tries JOIN jobs ON jobs.rowid = job WHERE {_WITHIN}),
    stretches AS (SELECT lag(at) OVER (ORDER BY at) AS began, at AS ended FROM ends),
    lasting AS (SELECT began, ended, SECONDS(began, ended) AS seconds FROM stretches WHERE began IS NOT NULL)
    SELECT began, ended, seconds FROM lasting WHERE seconds >= :quiet ORDER BY seconds DESC LIMIT 20
"""  # noqa: S608  constants
_SLOWEST = """
    SELECT id, latency_ms / 1000, status, http_status, updated_at FROM jobs NOT INDEXED
    WHERE kind = :kind AND latency_ms IS NOT NULL AND updated_at BETWEEN :since AND :until
    ORDER BY latency_ms DESC, rowid LIMIT 15
"""


def history(kind: str, span: Span, quiet: float) -> Query[History]:
    """How the calls of a kind went in a span; stretches of ``quiet`` seconds and more without an end are named."""
    within = {"kind": kind, "since": span.since, "until": span.until}
    answered = (yield Statement(_ANSWERED, **within, width=span.width)).rows
    failed = (yield Statement(_FAILED, **within, width=span.width)).rows
    latencies: Counter[int] = Counter()
    for milliseconds, count in (yield Statement(_LATENCIES, **within)).rows:
        latencies[latency_class(milliseconds)] += count
    stretches = (yield Statement(_QUIET, **within, quiet=quiet)).rows
    slowest = (yield Statement(_SLOWEST, **within)).rows
    return History(
        slices=sliced(answered, failed),
        latencies=latencies,
        quiet=tuple(sorted(Quiet(*row) for row in stretches)),
        slowest=tuple(SlowCall(*row) for row in slowest),
    )
