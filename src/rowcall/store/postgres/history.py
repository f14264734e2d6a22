"""How calls went over time: plain functions that read within one transaction, one walk over the calls each."""

from __future__ import annotations

from collections import Counter

from rowcall.store.call_history import History, Quiet, SlowCall, Span, latency_class, sliced
from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import fetch, patiently

_WITHIN = "kind = %(kind)s AND at BETWEEN %(since)s::timestamptz AND %(until)s::timestamptz"
_NUMBER = "trunc(extract(epoch FROM at - %(since)s::timestamptz) / %(width)s::numeric)::bigint"
_ANSWERED = f"""
    SELECT {_NUMBER}, count(*), sum(results.input_tokens)::bigint, sum(results.output_tokens)::bigint,
        sum(results.cost)::bigint
    FROM rowcall.results JOIN rowcall.jobs ON jobs.rowid = job WHERE {_WITHIN} GROUP BY 1
"""  # noqa: S608  constants
_FAILED = f"""
    SELECT {_NUMBER}, tries.reason, count(*), sum(tries.input_tokens)::bigint, sum(tries.output_tokens)::bigint,
        sum(tries.cost)::bigint
    FROM rowcall.tries JOIN rowcall.jobs ON jobs.rowid = job WHERE {_WITHIN} GROUP BY 1, 2
"""  # noqa: S608  constants
_LATENCIES = f"""
    SELECT latency_ms FROM rowcall.jobs
    WHERE kind = %(kind)s AND status = 'done' AND latency_ms > 0
    AND updated_at BETWEEN %(since)s::timestamptz AND %(until)s::timestamptz
    UNION ALL SELECT tries.latency_ms FROM rowcall.tries JOIN rowcall.jobs ON jobs.rowid = job
    WHERE {_WITHIN} AND tries.latency_ms > 0
"""  # noqa: S608  constants
_QUIET = f"""
    WITH ends AS (
        SELECT at FROM rowcall.results JOIN rowcall.jobs ON jobs.rowid = job WHERE {_WITHIN}
        UNION ALL SELECT at FROM rowcall.tries JOIN rowcall.jobs ON jobs.rowid = job WHERE {_WITHIN}),
    stretches AS (SELECT lag(at) OVER (ORDER BY at) AS began, at AS ended FROM ends),
    lasting AS (SELECT began, ended, extract(epoch FROM ended - began)::double precision AS seconds FROM stretches)
    SELECT began, ended, seconds FROM lasting WHERE seconds >= %(quiet)s ORDER BY seconds DESC LIMIT 20
"""  # noqa: S608  constants
_SLOWEST = """
    SELECT id, latency_ms / 1000, status, http_status, updated_at FROM rowcall.jobs
    WHERE kind = %(kind)s AND latency_ms IS NOT NULL
    AND updated_at BETWEEN %(since)s::timestamptz AND %(until)s::timestamptz
    ORDER BY latency_ms DESC, rowid LIMIT 15
"""


async def history(connection: Connection, kind: str, span: Span, quiet: float) -> History:
    """How the calls of a kind went in a span; stretches of ``quiet`` seconds and more."""
    wanted = {"kind": kind, "since": span.since, "until": span.until, "width": span.width, "quiet": quiet}
    await patiently(connection)
    answered, failed = await fetch(connection, _ANSWERED, wanted), await fetch(connection, _FAILED, wanted)
    latencies = await connection.execute(_LATENCIES, wanted)
    stretches = sorted(Quiet(*row) for row in await fetch(connection, _QUIET, wanted))
    return History(
        slices=sliced(answered, failed),
        latencies=Counter([latency_class(ms) async for (ms,) in latencies]),
        quiet=tuple(stretches),
        slowest=tuple(SlowCall(*row) for row in await fetch(connection, _SLOWEST, wanted)),
    )
