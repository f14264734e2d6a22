"""Values of PostgreSQL, read as the contract has them."""

from __future__ import annotations

from psycopg.abc import Buffer
from psycopg.adapt import Loader

LONGEST_WAIT = 1e9
"""Seconds, about 30 years. No wait is longer, since the text of a time has four digits for the year."""


class IsoLoader(Loader):
    """Reads a timestamptz as ISO-8601 text in UTC with milliseconds, rounded down.

    The time zone of the connection has to be UTC, its date style ISO.
    """

    def load(self, data: Buffer) -> str:
        """``2026-01-31 09:30:00.5+00`` as ``2026-01-31T09:30:00.500Z``."""
        day, time = bytes(data).decode().split(" ")
        whole, _, part = time.partition("+")[0].partition(".")
        return f"{day}T{whole}.{part[:3]:0<3}Z"


class NumberLoader(Loader):
    """Reads a numeric as a whole number: the store has none but sums of whole numbers."""

    def load(self, data: Buffer) -> int:
        """``12`` as 12."""
        return int(bytes(data))
