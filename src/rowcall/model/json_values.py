"""Reads and writes JSON without changing how numbers are written.

An ordinary parser turns ``1e5`` into ``100000.0`` and an id of 40 digits into ``1.2e39``. Here a number that Python
would write differently keeps its text.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

_WIDEST = range(-(2**63), 2**64)  # what orjson writes as an integer


class Number(float):
    """A number with the text it was written with; ``str`` and ``dumps`` give that text back."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:  # noqa: D102  the class says it
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.text,)


def loads(text: str | bytes) -> Any:
    """Parse JSON strictly.

    Raises:
        ValueError: not valid JSON, or it holds NaN, Infinity or a lone surrogate, which other readers reject.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            _refuse_surrogates(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def read_back(text: str) -> Any:
    """Parse JSON as ``loads`` does, in a quarter of the time if ``dumps`` wrote the text, as it wrote all stored JSON.

    Raises:
        ValueError: as ``loads``.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return loads(text)
    # If orjson writes the same text again, it has changed no number, and the exact parser is not needed.
    exact = orjson.dumps(value) == text.encode() and "0.0000" not in text and not _EXPONENT.search(text)
    return value if exact else loads(text)


def dumps(value: Any) -> bytes:
    """Write compact JSON as UTF-8 bytes; a ``Number`` keeps its text.

    Raises:
        TypeError: a value that JSON does not have (a date, a set, NaN, Infinity), a cycle or a lone surrogate.
    """
    return _finite(value, orjson.dumps(value, default=_default, option=_OPTIONS))


def canonical(value: Any) -> bytes:
    """Write JSON with sorted keys, for hashing: equal values give equal bytes."""
    return _finite(value, orjson.dumps(value, default=_default, option=_OPTIONS | orjson.OPT_SORT_KEYS))


# Without these options orjson would write a subclass such as Number, a date or a dataclass in its own way.
_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def _integer(text: str) -> int | Number:
    number = int(text) if len(text) < 20 else None
    return number if number is not None and str(number) == text and number in _WIDEST else Number(text)


def _decimal(text: str) -> float:
    number = float(text)
    return number if repr(number) == text else Number(text)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _refuse_surrogates(value: Any) -> None:
    json.dumps(value, ensure_ascii=False, default=str).encode()  # UnicodeEncodeError is a ValueError


_EXPONENT = re.compile("e[-+0-9]")  # Python writes 1e-05 where orjson writes 0.00001, and may write 1e+16 for 1e16
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_decimal, parse_constant=_refuse)


def _finite(value: Any, written: bytes) -> bytes:
    """Refuse NaN and Infinity, which orjson writes as null."""
    if b"null" in written:
        _refuse_not_finite(value)
    return written


def _refuse_not_finite(value: Any) -> None:
    if isinstance(value, float):
        if not math.isfinite(value) and not isinstance(value, Number):
            raise TypeError(f"{value} is not JSON")
    elif isinstance(value, dict):
        for item in value.values():
            _refuse_not_finite(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_not_finite(item)


def _default(value: Any) -> Any:
    if isinstance(value, Number):
        return orjson.Fragment(value.text)
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
