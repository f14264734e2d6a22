"""Times as text: ISO-8601, UTC, milliseconds, all of one width, so that the order of texts is the order of times."""

from __future__ import annotations

import math
import time
from datetime import datetime

_LAST = 253_402_300_799_999  # the last millisecond of the year 9999


def stamp(seconds: float) -> str:
    """The text of a moment, rounded down."""
    return _format(math.floor(_milliseconds(seconds)))


def due(seconds: float) -> str:
    """The text of the end of a wait, rounded up: never before its time."""
    return _format(math.ceil(_milliseconds(seconds)))


def seconds(text: str) -> float:
    """The moment that a text names, in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def _milliseconds(seconds: float) -> float:
    return min(round(seconds * 1000, 2), _LAST)


def _format(milliseconds: int) -> str:
    whole, part = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{part:03}Z"
