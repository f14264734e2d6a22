"""Finds codes, message and wait in an error reply of any shape.

The body may come from the API, from a gateway in front of it or from a captive portal. No body makes this module raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from rowcall.failures.retries import retry_after
from rowcall.model import json_values
from rowcall.model.outcome import Reply

LONGEST_BODY = 1_000_000
"""Bytes. A longer body is not parsed."""
REDIRECTS = range(300, 400)
_LONGEST_MESSAGE = 500
_KEPT_OF_BODY = 2000


@dataclass(frozen=True, slots=True)
class ReplyFault:
    """What an error reply says.

    Attributes:
        status: the status of the reply, or of the error object inside it.
        codes: every code, type, status and reason in the body, in lower case.
        message: the API's own message, on one line; empty if it has none.
        html: the body is a web page.
        asked: seconds to wait, as the API asks (``Retry-After`` and others).
        location: the host to which a redirect leads.
    """

    status: int
    codes: frozenset[str]
    message: str
    html: bool = False
    asked: float | None = None
    location: str = ""


def fault_of(reply: Reply) -> ReplyFault:
    """Return what an error reply says."""
    document = _document(reply.body)
    html = document is None and is_html(reply)
    text = "" if html or document is not None else _decoded(reply.body[:_KEPT_OF_BODY])
    return ReplyFault(
        reply.status,
        frozenset(codes_in(document)),
        one_line(message_in(document) or text),
        html,
        retry_after(reply.headers, reply.body[:LONGEST_BODY]),
        _location(reply.headers.get("location", "")) if reply.status in REDIRECTS else "",
    )


def request_id(reply: Reply) -> str | None:
    """Return the id by which the provider finds this call in its logs, from a header or the body."""
    for name in ("x-request-id", "request-id"):
        if found := reply.headers.get(name):
            return found[:200]
    found_in_body = _REQUEST_ID.search(reply.body[:LONGEST_BODY])
    return found_in_body[1].decode() if found_in_body else None


def is_html(reply: Reply) -> bool:
    """Return whether the body is a web page."""
    start = reply.body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    said = reply.headers.get("content-type", "").lower()
    return start.startswith((b"<!doctype html", b"<html")) or said.startswith(("text/html", "application/xhtml"))


def start_of_body(body: bytes, most: int = _KEPT_OF_BODY) -> str:
    """Return the start of a body, by default 2,000 characters, for the record's history."""
    return _decoded(body[: 4 * most])[:most]  # a character has at most 4 bytes in UTF-8


def one_line(text: str) -> str:
    """Make foreign text fit for a message: one line of printable characters, at most 500."""
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_MESSAGE])
    line = " ".join(printable.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")  # PostgreSQL stores no NUL


_REQUEST_ID = re.compile(rb'"request_id"\s*:\s*"([\x21\x23-\x5b\x5d-\x7e]{1,200})"')


def _location(url: str) -> str:
    """Return only the host of a redirect: the rest of the URL may contain a token."""
    try:
        return urlsplit(url).hostname or ("another path of the same host" if url else "")
    except ValueError:
        return ""


def _document(body: bytes) -> Any:
    """Return the body as JSON, without the list that some APIs put around it; None if not JSON or over 1 MB."""
    if len(body) > LONGEST_BODY:
        return None
    try:
        document = json_values.loads(body)
    except (ValueError, RecursionError):
        return None
    return document[0] if isinstance(document, list) and document else document


def message_in(document: Any, depth: int = 0) -> str:
    """Return the message of an error body: the first text under a usual name, an inner error's before its wrapper's."""
    if isinstance(document, str):
        return document
    if isinstance(document, list):
        inside = document[:5]
    elif isinstance(document, dict):
        inside = [document.get(name) for name in _MESSAGE_NAMES]
    else:
        return ""
    return next(filter(None, (message_in(item, depth + 1) for item in inside)), "") if depth < _DEEPEST else ""


_DEEPEST = 6
_MESSAGE_NAMES = ("error", "errors", "message", "detail", "error_description", "msg", "description", "title")
_CODE_NAMES = ("code", "type", "status", "reason", "error_code", "quotaId", "limit_source", "finish_reason")


def codes_in(document: Any, depth: int = 0) -> Iterator[str]:
    """Yield every code, type and status in an error body, in lower case, at most six levels deep."""
    if depth > _DEEPEST:
        return
    if isinstance(document, list):
        for item in document[:20]:
            yield from codes_in(item, depth + 1)
    if not isinstance(document, dict):
        return
    for name, value in document.items():
        if isinstance(value, str | int) and (name in _CODE_NAMES or name == "error") and not isinstance(value, bool):
            yield str(value).lower()
        elif name == "flagged_input":  # OpenRouter's moderation
            yield name
        yield from codes_in(value, depth + 1)
