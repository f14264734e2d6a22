"""Writes settings as the text of a config file."""

from __future__ import annotations

import json
from typing import Any


def as_toml(settings: dict[str, Any]) -> str:
    """Return settings as TOML: the plain keys first, then one table for each table of the settings.

    Args:
        settings: as ``tomllib`` returns them.
    """
    plain = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in settings.items() if isinstance(value, dict)}
    lines = [*_lines(plain)]
    for name, table in tables.items():
        lines += ["", f"[{json.dumps(name)}]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _lines(table: dict[str, Any]) -> list[str]:
    return [f"{_text(name)} = {_value(value)}" for name, value in table.items()]


def _value(value: Any) -> str:
    """Return a value on one line; tables in it are inline."""
    match value:
        case str():
            return _text(value)
        case dict():
            return "{" + ", ".join(f"{_text(name)} = {_value(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _text(text: str) -> str:
    """Return a basic string. It is a JSON string, except that TOML also wants U+007F escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
