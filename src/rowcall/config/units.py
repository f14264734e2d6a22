"""Parses durations, rates, sizes and shares as people write them: ``"90s"``, ``"500/min"``, ``"20MB"``, ``"0.3%"``.

The text of every ``ValueError`` follows the name of the key in a message: "api.timeout must be ...".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_RATE_SECONDS = _SECONDS | {"min": Decimal(60), "hour": Decimal(3600), "day": Decimal(86400)}
_MULTIPLES = {"": 1, "k": 1_000, "M": 1_000_000}
_NUMBER = r"\d+(?:\.\d+)?"
_DURATION = re.compile(rf"({_NUMBER}) ?(ms|s|m|h|d)?", re.ASCII)
_RATE = re.compile(rf"({_NUMBER}) ?([kM]?) ?/ ?({_NUMBER})? ?(ms|s|min|m|hour|h|day|d)", re.ASCII)
_SHARE = re.compile(rf"({_NUMBER}) ?%", re.ASCII)
_SIZE = re.compile(rf"({_NUMBER}) ?(B|kB|MB|GB)?", re.ASCII | re.IGNORECASE)
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_UNIT_NAMES = {1.0: "s", 60.0: "min", 3600.0: "h", 86400.0: "day"}


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``count`` in ``per`` seconds; ``parse_rate`` reads back what ``str`` writes."""

    count: float
    per: float

    def __str__(self) -> str:
        return f"{_plain(self.count)}/{_UNIT_NAMES.get(self.per) or _plain(self.per) + 's'}"


Rates = tuple[Rate, ...]
"""Rates that all apply."""


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """Rate limits of tokens: input and output together, and each alone."""

    total: Rates = ()
    input: Rates = ()
    output: Rates = ()

    def __str__(self) -> str:
        return ", ".join(f"{rate} {word}" for word, rates in self._named() for rate in rates)

    def written(self) -> Any:
        """Return a value that ``parse_token_limits`` reads back."""
        if self.total:
            return written_rates(self.total)
        return {word.removesuffix(" tokens"): written_rates(rates) for word, rates in self._named() if rates}

    def _named(self) -> tuple[tuple[str, Rates], ...]:
        return ("tokens", self.total), ("input tokens", self.input), ("output tokens", self.output)


def parse_duration(value: Any) -> float:
    """Return the seconds of ``"50ms"``, ``"90s"``, ``"5m"``, ``"2h"``, ``"1d"`` or a plain number of seconds.

    Raises:
        ValueError: it is anything else.
    """
    text = _text(value)
    found = _DURATION.fullmatch(text)
    seconds = float(Decimal(found[1]) * _SECONDS[found[2] or "s"]) if found else math.inf
    if not math.isfinite(seconds):
        raise ValueError(f'must be a duration, such as "90s", "50ms", "5m" or "2h", not {quoted(value)}')
    return seconds


def parse_rate(value: Any) -> Rate:
    """Return the rate of ``"500/min"``, ``"10/s"``, ``"1000/h"``, ``"10000/day"``, ``"30/10s"`` or ``"200k/min"``.

    Raises:
        ValueError: it is anything else, or a rate of 0.
    """
    if isinstance(value, Rate):
        return value
    found = _RATE.fullmatch(_text(value))
    count = float(Decimal(found[1]) * _MULTIPLES[found[2]]) if found else 0.0
    per = float(Decimal(found[3] or 1) * _RATE_SECONDS[found[4]]) if found else 0.0
    if not (0 < count < math.inf and 0 < per < math.inf):
        raise ValueError(f'must be a rate above 0, such as "500/min", "10/s" or "200k/day", not {quoted(value)}')
    return Rate(count, per)


def parse_rates(value: Any) -> Rates:
    """Return one rate or several that all apply: ``"500/min"``, ``["10/s", "10000/day"]``.

    Raises:
        ValueError: it is anything else, or an empty list.
    """
    if isinstance(value, tuple):
        return value
    if isinstance(value, list) and not value:
        raise ValueError("must not be empty; for no limit, remove the key")
    return tuple(map(parse_rate, value if isinstance(value, list) else [value]))


def parse_token_limits(value: Any) -> TokenLimits:
    """Return the token limits of rates for all tokens, or of a table ``{ input = ..., output = ... }``.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, TokenLimits):
        return value
    if not isinstance(value, dict):
        return TokenLimits(total=parse_rates(value))
    if not value or not value.keys() <= {"input", "output"}:
        raise ValueError('must be a rate, such as "200k/min", or a table with input and output')
    return TokenLimits(**{name: parse_rates(rates) for name, rates in value.items()})


def written_rates(rates: Rates) -> str | list[str]:
    """Return a value that ``parse_rates`` reads back."""
    texts = list(map(str, rates))
    return texts[0] if len(texts) == 1 else texts


def parse_size(value: Any) -> int:
    """Return the bytes of ``"20MB"``, ``"500kB"``, ``"1GB"`` (powers of 1000) or a plain number of bytes.

    Raises:
        ValueError: it is anything else.
    """
    found = _SIZE.fullmatch(_text(value))
    if not found:
        raise ValueError(f'must be a size, such as "20MB" or "500kB", not {quoted(value)}')
    return int(Decimal(found[1]) * _BYTES[(found[2] or "b").lower()])


def parse_share(value: Any) -> float:
    """Return the share, from 0 to 1, of ``"0.3%"`` or of a plain number from 0 to 1.

    Raises:
        ValueError: it is anything else.
    """
    text = _text(value)
    found = _SHARE.fullmatch(text)
    plain = float(text or "nan") if not isinstance(value, str) else math.nan
    share = float(Decimal(found[1]) / 100) if found else plain
    if not 0 <= share <= 1:
        raise ValueError(f'must be a share, such as "0.3%", from "0%" to "100%", not {quoted(value)}')
    return share


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """The most failed records: a ``count``, or a ``share`` (0 to 1) of the records that ended."""

    count: int | None = None
    share: float | None = None

    COUNTS_FROM: ClassVar[int] = 100
    """A share is not checked before this number of records has ended: the first failure of ten would be 10 %."""

    def passed(self, failed: int, ended: int) -> bool:
        """Return whether ``failed`` of ``ended`` records are more than the limit."""
        if self.count is not None:
            return failed > self.count
        return ended >= self.COUNTS_FROM and failed > (self.share or 0.0) * ended

    def __str__(self) -> str:
        return str(self.count) if self.count is not None else f"{_plain((self.share or 0.0) * 100)}%"


def parse_failure_limit(value: Any) -> FailureLimit:
    """Return the limit of ``50`` or ``"5%"`` failed records.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, FailureLimit):
        return value
    text = _text(value)
    if re.fullmatch(r"\d{1,12}", text, re.ASCII):
        return FailureLimit(count=int(text))
    found = _SHARE.fullmatch(text)
    if not found or Decimal(found[1]) > 100:
        raise ValueError(f'must be a number, such as 50, or a share, such as "5%", not {quoted(value)}')
    return FailureLimit(share=float(Decimal(found[1]) / 100))


def quoted(value: Any) -> str:
    """Return a value of the config for a message: one short line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        shown = "".join(letter if letter.isprintable() else " " for letter in value)
        return f'"{shown}"' if len(shown) <= 40 else f'"{shown[:37]}..."'
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return str(value)[:40]


def _text(value: Any) -> str:
    """Return the text of a string or a number; for anything else the empty text, which no unit matches."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(value) if isinstance(value, int) else _plain(value)


def _plain(number: float) -> str:
    text = format(Decimal(repr(number)), "f")
    return text.removesuffix(".0")


_TEXT_OR_NUMBER = WithJsonSchema({"type": ["string", "number"]})

Duration = Annotated[float, BeforeValidator(parse_duration), _TEXT_OR_NUMBER]
"""Seconds, 0 or more."""

_RATES: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

RateLimits = Annotated[Rates, BeforeValidator(parse_rates), PlainSerializer(written_rates), WithJsonSchema(_RATES)]
"""One ``Rate`` or several."""

TokenRateLimits = Annotated[
    TokenLimits,
    BeforeValidator(parse_token_limits),
    PlainSerializer(TokenLimits.written),
    WithJsonSchema({"anyOf": [*_RATES["anyOf"], {"type": "object", "additionalProperties": _RATES}]}),
]
"""``TokenLimits``."""

MaxFailures = Annotated[FailureLimit, BeforeValidator(parse_failure_limit), PlainSerializer(str), _TEXT_OR_NUMBER]
"""A ``FailureLimit``."""

Size = Annotated[int, BeforeValidator(parse_size), _TEXT_OR_NUMBER]
"""Bytes."""

Share = Annotated[float, BeforeValidator(parse_share), _TEXT_OR_NUMBER]
"""A number from 0 to 1."""
