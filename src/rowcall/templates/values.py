"""What the values of templates become: JSON where they keep their type, text where they are part of a text.

As text, null is empty, booleans are ``true`` and ``false``, numbers are as they were written, lists and tables are
JSON. NaN, Infinity and values that JSON does not have are errors, never words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2

from rowcall.model import json_values


def text_of(value: Any) -> str:
    """Return a value as the text that goes into a template.

    Raises:
        ValueError: NaN, Infinity, or a value that JSON does not have.
    """
    if isinstance(value, str):
        return str.__str__(value)  # a plain str: Jinja's Markup would escape what is joined to it
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises: the sandbox uses StrictUndefined
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(_finite(value))
    return json_values.dumps(plain(value)).decode()


def plain(value: Any) -> Any:
    """Return the value of an expression as JSON: generators become lists, a missing value is an error.

    Raises:
        ValueError: NaN, Infinity, or a value that JSON does not have.
    """
    if type(value) is str or value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | jinja2.Undefined):
        return text_of(value)
    if isinstance(value, int | float):
        return _finite(value)
    if isinstance(value, Mapping):
        return {text_of(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range | Iterator):
        return [plain(item) for item in value]
    raise ValueError(f"the value is a {type(value).__name__}, which JSON does not have")


def _finite(number: float) -> float:
    # ``type``, not ``isinstance``: a ``json_values.Number`` such as 1e999 is infinite as a float, but has its own text
    if type(number) is float and not math.isfinite(number):
        raise ValueError(f"the value is {number}, which JSON does not have")
    return number
