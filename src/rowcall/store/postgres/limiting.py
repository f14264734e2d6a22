"""Rate limits and rests that all workers share, wherever they run, by the server's clock.

If the clock goes back, rows have times later than now. What was left to wait when such a row was written is waited from
now on. A debt or a rest thus never becomes shorter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rowcall.limits.rate_limits import Bucket, Cost, reserve
from rowcall.store.postgres.locks import lock_target
from rowcall.store.postgres.pool import Connection, fetched
from rowcall.store.types import Reserved

_REST = "rest"
_NOW = "SELECT extract(epoch FROM rowcall.moment())::float8"
_ROWS = "SELECT what, per, debt, at FROM rowcall.limits WHERE target = %s"
_WRITE = """
    INSERT INTO rowcall.limits (target, what, per, debt, at)
    SELECT %(target)s, what, per, debt, %(at)s
    FROM unnest(%(what)s::text[], %(per)s::float8[], %(debt)s::float8[]) AS given(what, per, debt)
    ON CONFLICT (target, what, per) DO UPDATE SET debt = excluded.debt, at = excluded.at
"""
_BEGIN_ANEW = """
    UPDATE rowcall.limits SET debt = debt - (at - now), at = now
    FROM (SELECT extract(epoch FROM rowcall.moment())::float8 AS now) AS clock WHERE target = %s AND at > now
"""
_END_REST = "DELETE FROM rowcall.limits WHERE target = %s AND what = %s"

Row = tuple[str, float]


async def take(
    connection: Connection, target: str, buckets: Sequence[Bucket], calls: Sequence[Cost], owed: Cost
) -> Reserved:
    """Reserve calls; see the contract."""
    now, debts = await _held(connection, target)
    until = debts.get((_REST, 0.0), -math.inf)
    owing = [debts.get((bucket.what, bucket.per), -math.inf) for bucket in buckets]
    places = reserve(buckets, owing, calls, owed, now=now, resting_until=until)
    after = {(bucket.what, bucket.per): debt for bucket, debt in zip(buckets, places.debts, strict=True)}
    await _write(connection, now, target, after)
    return Reserved(places.leaves, places.next_in, max(0.0, until - now))


async def penalize(connection: Connection, target: str, seconds: float) -> None:
    """Let a target rest; a shorter rest never ends a longer one."""
    now, debts = await _held(connection, target)
    until = max(debts.get((_REST, 0.0), -math.inf), now + seconds)
    await _write(connection, now, target, {(_REST, 0.0): until})


async def end_rest(connection: Connection, target: str) -> None:
    """Forget that a target rests."""
    await connection.execute(_END_REST, (target, _REST))


async def resting(connection: Connection, target: str) -> float:
    """Seconds that a target still rests."""
    now, debts = await _debts(connection, target)
    return max(0.0, debts.get((_REST, 0.0), -math.inf) - now)


async def _held(connection: Connection, target: str) -> tuple[float, dict[Row, float]]:
    """As ``_debts``; locks the target until the end of the transaction, and converts its rows to the present clock."""
    await lock_target(connection, target)
    await connection.execute(_BEGIN_ANEW, (target,))
    return await _debts(connection, target)


async def _debts(connection: Connection, target: str) -> tuple[float, dict[Row, float]]:
    """The server's time, and what each row owes by it."""
    (now,) = await fetched(connection, _NOW)
    rows = await (await connection.execute(_ROWS, (target,))).fetchall()
    return now, {(what, per): debt - max(0.0, at - now) for what, per, debt, at in rows}


async def _write(connection: Connection, now: float, target: str, debts: dict[Row, float]) -> None:
    known = {row: debt for row, debt in debts.items() if math.isfinite(debt)}
    wanted = {"target": target, "at": now, "debt": list(known.values())}
    wanted |= {"what": [what for what, _ in known], "per": [per for _, per in known]}
    await connection.execute(_WRITE, wanted)
