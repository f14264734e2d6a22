"""Rate limits and rests that the processes of a host share.

Times are those of the host's monotonic clock: all its processes read the same clock, and setting the time of day does
not move it. It starts at 0 when the machine starts, so that a row with a later time than now is from before. What was
left to wait then is waited from the first session on. A debt or a rest thus never becomes shorter, and becomes longer
only by the time in which the machine was off or asleep.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence

from rowcall.limits.rate_limits import Bucket, Cost, Reservation, reserve
from rowcall.store.types import Reserved

_REST = "rest"
_ROWS = "SELECT what, per, debt FROM limits WHERE target = ?"
_WRITE = """
    INSERT INTO limits VALUES (:target, :what, :per, :debt, :at)
    ON CONFLICT DO UPDATE SET debt = excluded.debt, at = excluded.at
"""

_END_REST = "DELETE FROM limits WHERE target = ? AND what = ?"
_BEGIN_ANEW = "UPDATE limits SET debt = debt - (at - :ticks), at = :ticks WHERE at > :ticks"

Row = tuple[str, float]


def begin_anew(connection: sqlite3.Connection, ticks: float) -> None:
    """Convert rows from before the start of the machine to the present clock."""
    connection.execute(_BEGIN_ANEW, {"ticks": ticks})


def take(
    connection: sqlite3.Connection,
    ticks: float,
    target: str,
    buckets: Sequence[Bucket],
    calls: Sequence[Cost],
    owed: Cost,
) -> Reserved:
    """Reserve calls; see the contract."""
    debts = _debts(connection, target)
    until = debts.get((_REST, 0.0), -math.inf)
    owing = [debts.get((bucket.what, bucket.per), -math.inf) for bucket in buckets]
    places = reserve(buckets, owing, calls, owed, now=ticks, resting_until=until)
    _write(connection, ticks, target, buckets, places)
    return Reserved(places.leaves, places.next_in, max(0.0, until - ticks))


def penalize(connection: sqlite3.Connection, ticks: float, target: str, seconds: float) -> None:
    """Let a target rest; a shorter rest never ends a longer one."""
    until = max(_rest_until(connection, target), ticks + seconds)
    connection.execute(_WRITE, {"target": target, "what": _REST, "per": 0.0, "debt": until, "at": ticks})


def end_rest(connection: sqlite3.Connection, now: float, target: str) -> None:
    """Forget that a target rests."""
    connection.execute(_END_REST, (target, _REST))


def resting(connection: sqlite3.Connection, ticks: float, target: str) -> float:
    """Seconds that a target still rests."""
    return max(0.0, _rest_until(connection, target) - ticks)


def _rest_until(connection: sqlite3.Connection, target: str) -> float:
    return _debts(connection, target).get((_REST, 0.0), -math.inf)


def _debts(connection: sqlite3.Connection, target: str) -> dict[Row, float]:
    rows = connection.execute(_ROWS, (target,))
    return {(what, per): debt for what, per, debt in rows}


def _write(
    connection: sqlite3.Connection, ticks: float, target: str, buckets: Sequence[Bucket], places: Reservation
) -> None:
    rows = zip(buckets, places.debts, strict=True)
    connection.executemany(
        _WRITE,
        [
            {"target": target, "what": bucket.what, "per": bucket.per, "debt": debt, "at": ticks}
            for bucket, debt in rows
            if math.isfinite(debt)
        ],
    )
