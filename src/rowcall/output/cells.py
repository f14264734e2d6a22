"""Turns a JSON value into the text of a cell."""

from __future__ import annotations

from typing import Any

from rowcall.model import json_values


def cell(value: Any) -> str:
    """Return text as it is, None as an empty text, a number as it was written, other values as compact JSON.

    Raises:
        TypeError: JSON does not have the value, such as NaN or a date.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value) if type(value) is int else json_values.dumps(value).decode()
