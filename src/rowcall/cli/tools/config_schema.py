"""The JSON Schema of a config file; ``config.example.toml`` gives the description of each key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import rowcall
from rowcall.config import Config, KeyPath, key_lines

_OFF = re.compile(r"^# (?=\[[a-z.]+\]|[A-Za-z_-]+ = )", re.MULTILINE)
"""Marks a key of the example that is commented out because it is off by default."""
_DERIVED = {"Config": ("name", "store", "request"), "StoreTable": ("path",)}
"""Keys that a loaded config always has, but a file may leave out."""


def config_schema() -> dict[str, Any]:
    """Return the schema, with a description for each key."""
    schema = Config.model_json_schema(by_alias=True)
    for model, names in _DERIVED.items():
        table = schema if model == "Config" else schema["$defs"][model]
        table["required"] = [name for name in table.get("required", []) if name not in names]
    for path, words in _descriptions().items():
        found = _property(schema, path)
        if found is not None:
            found["description"] = words
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A config of rowcall"}


def _property(schema: dict[str, Any], path: KeyPath) -> dict[str, Any] | None:
    """Return the part of the schema that describes a key."""
    node: dict[str, Any] | None = schema
    for name in path:
        node = _table(schema, node or {}).get("properties", {}).get(name)
    return node


def _table(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return the table that a property holds, following references and ``Table | None``."""
    for option in (node, *node.get("anyOf", ())):
        if name := option.get("$ref", "").rpartition("/")[2]:
            found: dict[str, Any] = schema["$defs"][name]
            return found
    return node


def _descriptions() -> dict[KeyPath, str]:
    """Return the comment behind each key of the example, by its path; also for keys that are commented out."""
    text = _OFF.sub("", _example().read_text(encoding="utf-8"))
    lines = text.splitlines()
    behind = {path: lines[number - 1].partition("  # ")[2] for path, number in key_lines(text).items()}
    return {path: words.strip() for path, words in behind.items() if words}


def _example() -> Path:
    """Return the example file: inside the installed package, or in the checkout of an editable install."""
    package = Path(rowcall.__file__).parent
    installed = package / "config.example.toml"
    return installed if installed.is_file() else package.parents[1] / "config.example.toml"
