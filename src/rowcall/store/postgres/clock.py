"""Times of a store, read as the text that the contract speaks of: ISO-8601, UTC, milliseconds, all of one width."""

from __future__ import annotations

from psycopg.abc import Buffer
from psycopg.adapt import Loader

LONGEST_WAIT = 1e9
"""Seconds, about 30 years: nothing waits for longer, since the text has four digits for the year."""


class IsoLoader(Loader):
    """Reads a timestamptz as such a text, rounded down. The connection's time zone is UTC, its style ISO."""

    def load(self, data: Buffer) -> str:
        """``2026-01-31 09:30:00.5+00`` as ``2026-01-31T09:30:00.500Z``."""
        day, time = bytes(data).decode().split(" ")
        whole, _, part = time.partition("+")[0].partition(".")
        return f"{day}T{whole}.{part[:3]:0<3}Z"
