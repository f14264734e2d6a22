"""The limit of open files: every connection takes one descriptor."""

from __future__ import annotations

import resource
from contextlib import suppress

RESERVED = 32
"""Descriptors reserved for the store, the input, the output and the event loop."""


def raise_descriptor_limit(concurrency: int) -> int:
    """Raise this process's limit of open files so that ``concurrency`` connections fit, if the hard limit allows.

    Returns:
        The concurrency that fits: ``concurrency`` itself, or less if the hard limit is lower, but at least 1.
    """
    needed = concurrency + RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _within(needed, soft):
        return concurrency
    with suppress(ValueError, OSError):  # macOS has a further limit that getrlimit does not report
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed if _within(needed, hard) else hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return concurrency if _within(needed, soft) else max(1, soft - RESERVED)


def _within(number: int, limit: int) -> bool:
    return limit == resource.RLIM_INFINITY or number <= limit
