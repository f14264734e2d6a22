"""Reads what a reply's headers say about the API's limits. Pure; no header can make it raise.

    x-ratelimit-{limit,remaining,reset}-requests    OpenAI and similar APIs; also -tokens. Reset: a Go duration, "6m0s"
    anthropic-ratelimit-requests-{limit,...}        also tokens, input-tokens, output-tokens. Reset is RFC 3339
    x-ratelimit-{limit,remaining,reset}             reset is epoch seconds, epoch ms, seconds from now, or a date
    ratelimit-{limit,remaining,reset}               draft-ietf-httpapi-ratelimit-headers-00 to 06
    ratelimit: limit=10, remaining=5, reset=30      the same draft, 07
    ratelimit: "name";r=5;t=30                      the same draft, from 08 on, with
    ratelimit-policy: "name";q=10;w=60;qu="..."     the limit, its window, and what it counts: requests by default

A moment is compared with the reply's own Date header where there is one, so that a wrong clock here does no harm.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import time

LONGEST_RESET = 30 * 86_400.0
"""Seconds; a later reset is taken to be at this time."""


@dataclass(frozen=True, slots=True)
class LimitHeaders:
    """One limit as a reply states it; no number is negative.

    Attributes:
        name: tells the limits of one API apart: ``requests``, ``input-tokens``, the name of a policy.
        remaining: how much of it is left.
        reset: seconds until all of it is there again.
        limit: all of it; None where the reply does not say.
        by_request: each request takes one of it.
    """

    name: str
    remaining: float
    reset: float
    limit: float | None = None
    by_request: bool = True


def limits_in(headers: Mapping[str, str]) -> tuple[LimitHeaders, ...]:
    """Return the limits in a reply's headers; names are lower case, and invalid values are left out.

    For a reply without limit headers this costs about half a microsecond.
    """
    names = [name for name in headers if "limit" in name]
    return tuple(_limits(names, headers)) if names else ()


def number(text: str | None) -> float | None:
    """Return a finite number; None for any other text."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def epoch(date: str) -> float | None:
    """Return the epoch seconds of an HTTP date (RFC 9110, 5.6.7) or an RFC 3339 time; None for any other text."""
    moment = _moment(parsedate_to_datetime, date)
    return _moment(datetime.fromisoformat, date) if moment is None else moment


def _moment(read: Callable[[str], datetime], date: str) -> float | None:
    try:
        moment = read(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _limits(names: list[str], headers: Mapping[str, str]) -> Iterator[LimitHeaders]:
    now = _now(headers)
    by_name: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for header in names:
        if found := _NAME.fullmatch(header):
            by_name[found["unit"] or found["before"] or ""][found["what"] or found["field"]] = headers[header]
    for unit, words in by_name.items():
        yield from _one(unit, words.get("limit"), words.get("remaining"), words.get("reset"), now)
    if "ratelimit" in headers:
        yield from _structured(headers["ratelimit"], headers.get("ratelimit-policy", ""), now)


_NAME = re.compile(
    r"(?:x-)?rate-?limit-(?P<what>limit|remaining|reset)(?:-(?P<unit>[a-z-]+))?"
    r"|anthropic-ratelimit-(?P<before>[a-z-]+)-(?P<field>limit|remaining|reset)"
)


def _now(headers: Mapping[str, str]) -> float:
    date = epoch(headers.get("date", ""))
    return time() if date is None else date


def _one(unit: str, limit: str | None, remaining: str | None, reset: str | None, now: float) -> Iterator[LimitHeaders]:
    """One limit from its three values; none unless what is left and the reset are valid."""
    left, renewed_in = _leading(remaining), _until(reset or "", now)
    if left is not None and renewed_in is not None:
        yield LimitHeaders(unit or "requests", left, renewed_in, _leading(limit), "token" not in unit)


def _leading(text: str | None) -> float | None:
    """The number at the start of a value: "100, 100;w=60" gives 100."""
    found = _NUMBER.match(text or "")
    return number(found[1]) if found else None


_NUMBER = re.compile(r"\s*(\d{1,18}(?:\.\d+)?)", re.ASCII)


def _until(reset: str, now: float) -> float | None:
    """Seconds until a reset, in any of its forms; None where it is invalid."""
    text = reset.strip()
    parts = _DURATION.findall(text) if _DURATIONS.fullmatch(text) else []
    if parts:
        return _bounded(sum(float(count) * _SECONDS[unit] for count, unit in parts))
    if (count := number(text)) is not None:
        return _bounded(_from_now(count, now))
    moment = epoch(text) if text else None
    return None if moment is None else _bounded(moment - now)


_DURATION = re.compile(r"(\d{1,18}(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)
_DURATIONS = re.compile(rf"(?:{_DURATION.pattern})+", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SMALLEST_EPOCH = 1e8
"""A number from here on is a time, not a wait: it would be a wait of three years."""
_NEAR = 400 * 86_400.0
"""Seconds from now within which a time is believable."""


def _from_now(count: float, now: float) -> float:
    """A number as seconds from now. It may be a time, in s or ms, if that is near the reply's own date."""
    if count >= _SMALLEST_EPOCH:
        waits = [moment - now for moment in (count, count / 1000) if abs(moment - now) < _NEAR]
        return waits[0] if waits else count
    return count


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_RESET)


def _structured(limits: str, policies: str, now: float) -> Iterator[LimitHeaders]:
    """The field ``RateLimit`` as a dictionary (draft 07) or as a list of named items (from 08 on)."""
    if found := dict(_PAIR.findall(limits.lower())):
        yield from _one("", found.get("limit"), found.get("remaining"), found.get("reset"), now)
        return
    known = dict(_items(policies))
    for name, words in _items(limits):
        policy = known.get(name, {})
        unit = policy.get("qu", "requests")
        if unit == "concurrent-requests":  # a limit of concurrency, not a rate
            continue
        for one in _one(name, policy.get("q"), words.get("r"), words.get("t", policy.get("w")), now):
            yield LimitHeaders(name, one.remaining, one.reset, one.limit, unit == "requests")


_PAIR = re.compile(r"\b(limit|remaining|reset)=([^,\s]+)")
_ITEM = re.compile(r'("[^"]*"|[^";,\s]+)((?:\s*;\s*[a-z]+=(?:"[^"]*"|[^";,\s]+))*)', re.IGNORECASE)
_PARAMETER = re.compile(r';\s*([a-z]+)=(?:"([^"]*)"|([^";,\s]+))', re.IGNORECASE)


def _items(field: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The items of a structured field's list (RFC 8941, 3.1), each with its parameters."""
    for name, parameters in _ITEM.findall(field):
        yield name.strip('"'), {key.lower(): quoted or plain for key, quoted, plain in _PARAMETER.findall(parameters)}
