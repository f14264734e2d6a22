"""Formats numbers and times for people, and cleans text from outside."""

from __future__ import annotations

_MULTIPLES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def clean(text: str) -> str:
    """Return text from outside on one line, without characters that control the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def short_time(seconds: float) -> str:
    """Format seconds as ``8m12s``, ``1h05m``, ``40s`` or ``0.4s``."""
    if seconds < 9.95 and seconds % 1:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


def latency_text(seconds: float) -> str:
    """Format seconds as ``54ms`` or ``1.9s``."""
    return f"{seconds * 1000:.0f}ms" if seconds < 1 else f"{seconds:.1f}s"


def short_number(number: float) -> str:
    """Format a number with at most three digits: ``950``, ``4.1k``, ``412k``, ``1.2M``."""
    for size, letter in _MULTIPLES:
        if number >= size * 0.9995:
            share = number / size
            return f"{share:.1f}{letter}" if share < 9.95 else f"{share:.0f}{letter}"
    return f"{number:.0f}"


def rate_text(per_second: float) -> str:
    """Format a rate in the unit in which it is about 1 or more: ``190/s``, ``7.6/s``, ``12/min``."""
    if per_second >= 0.95:
        return f"{per_second:.1f}/s" if per_second < 99.95 else f"{per_second:,.0f}/s"
    return f"{per_second * 60:.1f}/min" if per_second * 60 >= 0.95 else f"{per_second * 3600:.1f}/h"


def counted(number: int, word: str, words: str = "") -> str:
    """Format a count: ``1 record``, ``2,000 records``; ``words`` is the plural if it is not formed with an s."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"
