"""Chooses the faults of the mock API, so that two runs meet the same faults in whatever order they call."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from email.utils import formatdate
from itertools import accumulate
from typing import Literal, get_args

Fault = Literal["rate_limited", "error", "reset", "closed", "html"]
RetryForm = Literal["seconds", "date", "ms"]


@dataclass(frozen=True, slots=True)
class Faults:
    """The shares of calls that end in a fault, from 0.0 to 1.0 and together at most 1.0. The default is no faults.

    Whether a call fails depends only on the seed, the record and the number of the try.

    Attributes:
        rate_limited: 429 with a wait of ``retry_after`` seconds.
        errors: 500.
        resets: the connection is reset (RST) instead of an answer.
        closed: the connection is closed (FIN) instead of an answer.
        html: status 200 with an HTML page, like the sign-in page of a hotel network.
        retry_after: seconds until a rate-limited record may be sent again; it does not apply to other records.
        retry_forms: how the wait is written, chosen for each 429: ``Retry-After`` in seconds or as an HTTP date
            (RFC 9110, 10.2.3; whole seconds, rounded up), or ``retry-after-ms``.
        seed: the seed of the choice; another seed gives other faults.
    """

    rate_limited: float = 0.0
    errors: float = 0.0
    resets: float = 0.0
    closed: float = 0.0
    html: float = 0.0
    retry_after: float = 1.0
    retry_forms: tuple[RetryForm, ...] = ("seconds",)
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self._shares()) < 0 or sum(self._shares()) > 1:
            raise ValueError("shares of faults must be from 0.0 to 1.0, together at most 1.0")

    def draw(self, record: bytes, number: int) -> Fault | None:
        """Return the fault of this try of a record; None without one."""
        point = self._chance(record, number) / 2**64
        ends = accumulate(self._shares())
        return next((fault for fault, end in zip(get_args(Fault), ends, strict=True) if point < end), None)

    def wait(self, record: bytes, number: int) -> dict[str, str]:
        """Return the headers that say when a rate-limited record may be sent again."""
        form = self.retry_forms[self._chance(record, number) % len(self.retry_forms)]
        return _wait_headers(form, self.retry_after)

    def _shares(self) -> tuple[float, ...]:
        return self.rate_limited, self.errors, self.resets, self.closed, self.html

    def _chance(self, record: bytes, number: int) -> int:
        drawn = hashlib.blake2b(b"%d/%d/" % (self.seed, number) + record, digest_size=8)
        return int.from_bytes(drawn.digest())


DEMO = Faults(rate_limited=0.003, errors=0.01)
"""The faults of ``[api] preset = "mock"`` and ``rowcall init --demo``."""


def _wait_headers(form: RetryForm, seconds: float) -> dict[str, str]:
    if form == "ms":
        return {"retry-after-ms": f"{seconds * 1000:g}"}
    if form == "date":
        return {"Retry-After": formatdate(math.ceil(time.time() + seconds), usegmt=True)}
    return {"Retry-After": f"{seconds:g}"}
