"""Settings that can be changed during a run with ``rowcall set``, and how their text is parsed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rowcall.config.units import Rates, TokenLimits, parse_rates, parse_token_limits, quoted


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """Settings that override the config during a run; None: as in the config.

    Attributes:
        concurrency: the most calls in flight.
        requests: rate limits of calls; empty: no limit.
        tokens: rate limits of tokens; empty: no limit.
        max_cost: the most dollars that all runs of the kind may spend; infinite: no limit.
        pause: no new call is sent.
    """

    concurrency: int | None = None
    requests: Rates | None = None
    tokens: TokenLimits | None = None
    max_cost: float | None = None
    pause: bool = False

    def __str__(self) -> str:
        texts = {
            "concurrency": self.concurrency,
            "requests": None if self.requests is None else ", ".join(map(str, self.requests)) or OFF,
            "tokens": None if self.tokens is None else str(self.tokens) or OFF,
            "max_cost": self.max_cost and (OFF if math.isinf(self.max_cost) else f"{self.max_cost:g}"),
            "pause": "true" if self.pause else None,
        }
        return ", ".join(f"{name}={value}" for name, value in texts.items() if value is not None)


def parse_live(texts: Mapping[str, str]) -> LiveSettings:
    """Parse settings; names that this version of rowcall does not know are ignored.

    Raises:
        ValueError: a value is not valid; the text is the message.
    """
    return LiveSettings(**{name: LIVE[name](text) for name, text in texts.items() if name in LIVE})


def _concurrency(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise ValueError(f"must be a whole number of at least 1, not {quoted(text)}")
    return int(text)


def _requests(text: str) -> Rates:
    return () if text == OFF else parse_rates(_parts(text))


def _tokens(text: str) -> TokenLimits:
    if text == OFF:
        return TokenLimits()
    if "=" not in text:
        return parse_token_limits(_parts(text))
    pairs = (part.partition("=") for part in _parts(text))
    return parse_token_limits({name.strip(): rate.strip() for name, _, rate in pairs})


def _max_cost(text: str) -> float:
    try:
        dollars = math.inf if text == OFF else float(text)
    except ValueError:
        dollars = math.nan
    if not dollars > 0:
        raise ValueError(f"must be an amount in dollars above 0, such as 20 or 0.5, or off, not {quoted(text)}")
    return dollars


def _pause(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"must be true or false, not {quoted(text)}")
    return text == "true"


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


OFF = "off"
"""The text that means no limit."""
LIVE: dict[str, Callable[[str], Any]] = {
    "concurrency": _concurrency,
    "requests": _requests,
    "tokens": _tokens,
    "max_cost": _max_cost,
    "pause": _pause,
}
"""The parser of each setting."""
