"""Decides how requests are sent with the installed version of aiohttp. This is the only place that decides it."""

from __future__ import annotations

import os
import re
import ssl
from typing import Literal

import aiohttp

from rowcall.client.aiohttp_session import SessionSender
from rowcall.client.sender import Sender

TESTED_INTERNALS = ((3, 14, 1), (3, 15))
"""The aiohttp versions whose internals were tested: from the first one to just before the second one."""
FORCE = "ROWCALL_AIOHTTP"
"""Environment variable that forces one of the two, for tests: ``direct`` or ``session``."""


def sender_kind() -> Literal["direct", "session"]:
    """``direct`` if aiohttp's internals are used, ``session`` if its public session is: slower, the same otherwise."""
    forced = os.environ.get(FORCE)
    if forced in ("direct", "session"):
        return "direct" if forced == "direct" else "session"
    first, end = TESTED_INTERNALS
    return "direct" if first <= _version(aiohttp.__version__) < end else "session"


def described() -> str:
    """The installed version and how it is used, in words."""
    how = "its internals" if sender_kind() == "direct" else "its public session, which takes 0.2 ms of CPU a call more"
    return f"aiohttp {aiohttp.__version__}, used through {how}"


def make_sender(*, concurrency: int, verify: ssl.SSLContext | bool) -> Sender:
    """The sender for the installed version.

    Args:
        concurrency: how many connections there may be at once; a request that finds none free waits.
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or a context.
    """
    if sender_kind() == "session":
        return SessionSender(concurrency=concurrency, verify=verify)
    from rowcall.client.aiohttp_internals import DirectSender  # with another version even the import may fail

    return DirectSender(concurrency=concurrency, verify=verify)


def _version(text: str) -> tuple[int, ...]:
    """The numbers at the start of a version: 3.14.1 and 3.14.1rc2 are (3, 14, 1)."""
    return tuple(int(number) for number in re.match(r"[\d.]*\d|", text)[0].split(".") if number)  # type: ignore[index]
