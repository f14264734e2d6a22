"""Checks the lines of an OpenAI batch file: custom_id, method, url and body.

Source: https://platform.openai.com/docs/guides/batch. The batch runners of vLLM and SGLang read the same lines.
"""

from __future__ import annotations

import re
from typing import Any

from rowcall.model.errors import InputError
from rowcall.sources.bad_lines import LineFault
from rowcall.sources.base import Source
from rowcall.system.disk_index import DiskIndex

_SHAPE = 'write a line as {"custom_id": "...", "method": "POST", "url": "/v1/...", "body": {...}}'


def check_batch_line(line: dict[str, Any]) -> LineFault | None:
    """Return why a line cannot be called; None if it can. ``check_batch_file`` finds repeated ``custom_id``s."""
    for field, (kind, pattern, wanted) in _FIELDS.items():
        value = line.get(field)
        if not isinstance(value, kind) or not re.match(pattern, str(value)):
            return LineFault(f"{field} must be {wanted}" if field in line else f"{field} is missing", _SHAPE)
    if line["body"].get("stream"):
        return LineFault("stream: true is not possible in a batch file", "remove stream from the body")
    return None


_FIELDS: dict[str, tuple[type, str, str]] = {
    "custom_id": (str, "(?s).", "a text that is not empty"),
    "method": (str, r"POST\Z", '"POST"'),
    "url": (str, "/", 'a path such as "/v1/chat/completions"'),
    "body": (dict, "", "an object"),
}


def check_batch_file(source: Source) -> None:
    """Check that every line can be called and no ``custom_id`` is repeated, before anything is paid for.

    Raises:
        InputError: a line cannot be called, or two lines have the same ``custom_id``; the message names both.
    """
    with DiskIndex() as seen:
        for record in source:
            name = record.data["custom_id"]
            if first := seen.note(name, record.where):
                remedy = "give each line its own custom_id: answers are found by it"
                raise InputError(record.where, f"custom_id {name!r} is already used at {first}", remedy=remedy)
