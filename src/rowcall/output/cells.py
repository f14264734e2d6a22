"""What a value becomes in a cell."""

from __future__ import annotations

from typing import Any

from rowcall.model import json_values


def cell(value: Any) -> str:
    """Text as it is, None as nothing, a number as it was written, other values as compact JSON.

    Raises:
        TypeError: it is no JSON: NaN, a date.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value) if type(value) is int else json_values.dumps(value).decode()
