"""What a line of an OpenAI batch file must hold to be called: custom_id, method, url, body.

Source: the Batch API's guide; the same lines are read by vLLM's and SGLang's batch runners.
"""

from __future__ import annotations

import re
from typing import Any

from rowcall.model.errors import InputError
from rowcall.sources.bad_lines import LineFault
from rowcall.sources.base import Source
from rowcall.system.disk_index import DiskIndex

_SHAPE = 'a line is {"custom_id": "...", "method": "POST", "url": "/v1/...", "body": {...}}'


def check_batch_line(line: dict[str, Any]) -> LineFault | None:
    """Find what keeps a line from being called. That each ``custom_id`` comes once: ``check_batch_file``."""
    for field, (kind, pattern, wanted) in _FIELDS.items():
        value = line.get(field)
        if not isinstance(value, kind) or not re.match(pattern, str(value)):
            return LineFault(f"{field} must be {wanted}" if field in line else f"{field} is missing", _SHAPE)
    if line["body"].get("stream"):
        return LineFault("stream: true cannot be answered in a file", "take stream out of the body")
    return None


_FIELDS: dict[str, tuple[type, str, str]] = {
    "custom_id": (str, "(?s).", "a text that is not empty"),
    "method": (str, r"POST\Z", '"POST"'),
    "url": (str, "/", 'a path such as "/v1/chat/completions"'),
    "body": (dict, "", "an object"),
}


def check_batch_file(source: Source) -> None:
    """See that each line can be called and each ``custom_id`` comes once, before anything is paid for.

    Raises:
        InputError: the first line that cannot be called, or a ``custom_id`` that came before, with both lines.
    """
    with DiskIndex() as places:
        for record in source:
            name = record.data["custom_id"]
            if place := places.note(name, record.where):
                remedy = "give each line a custom_id of its own: answers are found by it"
                raise InputError(record.where, f"custom_id {name!r} came before, at {place}", remedy=remedy)
