"""What an error reply means: one table, by status and body, since a status alone lies.

The first row of the table that holds decides. Bodies come in any shape, from the API, from a gateway before it or from
a captive portal, and none of them crashes the reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from rowcall.failures.retries import retry_after
from rowcall.model import json_values
from rowcall.model.outcome import Failure, FailureClass, Reply

REASONS: Mapping[str, str] = {
    "rate_limited": "Too many calls or tokens at a time; it is waited for. Lower [pace] if it happens often.",
    "no_credit": "Credit or quota is used up: top it up or raise the limit with the provider, then run again.",
    "bad_key": "The API does not know the key: check [api] api_key and the variable or file behind it.",
    "forbidden": "The key may not do this: check its permissions, project and region.",
    "not_found": "Nothing is at this URL: check [api] base_url and [request] path.",
    "model_not_found": "The API does not know the model, or the key may not use it: check its name in [request].",
    "redirected": "The API has moved, or the URL is wrong: check [api] base_url (http or https, www, trailing parts).",
    "proxy_auth": "A proxy asks for a password: check [api] proxy or HTTPS_PROXY.",
    "bad_request": "The API refuses what this record sends; the message says what. See it with: rowcall show KEY",
    "request_too_large": "This record alone is above the limit: shorten it, or ask for a higher one.",
    "context_length": "The text is longer than the model takes: shorten it, or use a model with more context.",
    "content_filter": "The API's content rules refuse this record.",
    "overloaded": "The API has too much to do; it was tried again.",
    "html_reply": "A web page came instead of a reply: a login page of the network, a proxy, or a wrong base_url.",
    "not_json": "The reply, or the text in it, is no JSON: ask for JSON in the prompt, or leave out [response] parse.",
    "empty": "The reply holds no answer where [response] extract looks for it.",
    "truncated": "The answer was cut at its limit of tokens: raise it in [request.body], or set on_truncated.",
    "filtered": "The model or its content filter refused to answer; [response.retry] filtered = 1 asks once more.",
    "schema": "The answer does not follow [response] schema; look at one with: rowcall show KEY",
    "assertion": "An expression of [response] assert does not hold for the reply; see one with: rowcall show KEY",
    "extract_failed": "[response] extract or assert cannot be applied to this reply.",
    "attachment": "A file that this record names is missing, too large or cannot be read; the message says which.",
    "error_reply": "The API reported an error inside a reply of 200.",
}
"""Every reason that a reply can get, and what to do about it; others are ``http_`` and the status."""

_LONGEST_BODY = 1_000_000
_LONGEST_MESSAGE = 500
_KEPT_OF_BODY = 2000


@dataclass(frozen=True, slots=True)
class ReplyFault:
    """What an error reply says, whatever its shape.

    Attributes:
        status: of the reply, or the one embedded in it.
        codes: every code, type, status and reason in the body, in lower case.
        message: the API's own words, on one line; empty where it has none.
        html: it is a web page.
        asked: seconds that it asks to wait.
        location: the host that a redirect leads to.
    """

    status: int
    codes: frozenset[str]
    message: str
    html: bool = False
    asked: float | None = None
    location: str = ""


def classify(reply: Reply) -> Failure:
    """Who pays for an error reply, under which reason. Never raises, whatever the reply holds."""
    return failure(reply, fault_of(reply))


def failure(reply: Reply, fault: ReplyFault) -> Failure:
    """A fault as an outcome; ``fault`` may be one that was embedded in the reply."""
    cls, reason = next((cls, reason) for holds, cls, reason in _TABLE if holds(fault))
    cls = _as_asked(cls, fault.status, reply.headers.get("x-should-retry", ""))
    return Failure(
        cls,
        reason or f"http_{fault.status}",
        _message(reply, fault),
        status=reply.status,
        request_id=request_id(reply),
        latency=reply.latency,
        retry_after=fault.asked,
        retry=reply.headers.get("x-should-retry", "").lower() != "false",
        body=start_of_body(reply.body),
    )


def fault_of(reply: Reply) -> ReplyFault:
    """What an error reply says."""
    document = _document(reply.body)
    html = document is None and is_html(reply)
    text = "" if html or document is not None else _decoded(reply.body[:_KEPT_OF_BODY])
    return ReplyFault(
        reply.status,
        frozenset(_codes(document)),
        one_line(_words(document) or text),
        html,
        retry_after(reply.headers, reply.body[:_LONGEST_BODY]),
        _location(reply.headers.get("location", "")) if reply.status in _REDIRECTS else "",
    )


def embedded(error: Any, reply: Reply) -> ReplyFault | None:
    """The fault that an ``error`` inside a 2xx describes, by its own code; None where the code says nothing."""
    codes = frozenset(_codes({"error": error}))
    own = str(error.get("code")).lower() if isinstance(error, dict) else ""
    status = next(filter(None, map(_status_of, (own, *sorted(codes)))), None)
    if status is None:
        return None
    asked = retry_after(reply.headers, reply.body[:_LONGEST_BODY])
    return ReplyFault(status, codes, one_line(_words({"error": error})), asked=asked)


def _status_of(code: str) -> int | None:
    return int(code) if re.fullmatch(r"[45]\d\d", code, re.ASCII) else _STATUS_OF.get(code)


def answer_failure(reply: Reply, reason: str, message: str, *, retry: bool = True) -> Failure:
    """A 2xx that breaks the acceptance contract."""
    return Failure(
        FailureClass.ANSWER,
        reason,
        one_line(message),
        status=reply.status,
        request_id=request_id(reply),
        latency=reply.latency,
        retry=retry,
        body=start_of_body(reply.body),
    )


def html_failure(reply: Reply) -> Failure:
    """A web page where the API's reply was expected."""
    return replace(answer_failure(reply, "html_reply", _PAGE), cls=FailureClass.MAYBE_SENT)


def request_id(reply: Reply) -> str | None:
    """The number by which the API's makers find this call."""
    for name in ("x-request-id", "request-id"):
        if found := reply.headers.get(name):
            return found[:200]
    found_in_body = _REQUEST_ID.search(reply.body[:_LONGEST_BODY])
    return found_in_body[1].decode() if found_in_body else None


def is_html(reply: Reply) -> bool:
    """Whether a reply is a web page."""
    start = reply.body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    said = reply.headers.get("content-type", "").lower()
    return start.startswith((b"<!doctype html", b"<html")) or said.startswith(("text/html", "application/xhtml"))


def start_of_body(body: bytes, most: int = _KEPT_OF_BODY) -> str:
    """The start of a reply for the record's history, at most 2,000 characters."""
    return _decoded(body[: 4 * most])[:most]


def one_line(text: str) -> str:
    """A text of somebody else for a message: one line, printable, at most 500 characters."""
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_MESSAGE])
    line = " ".join(printable.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")


_REQUEST_ID = re.compile(rb'"request_id"\s*:\s*"([\x21\x23-\x5b\x5d-\x7e]{1,200})"')
_PAGE = "a web page came instead of the API's reply"


def _message(reply: Reply, fault: ReplyFault) -> str:
    where = f"HTTP {reply.status}"
    if reply.status != fault.status:
        where += f" with an error {fault.status} inside"
    words = fault.message or (_PAGE if fault.html else _phrase(fault.status))
    if fault.location:
        words = f"redirected to {fault.location}"
    return one_line(f"{where}: {words}")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no message"


def _location(url: str) -> str:
    """Only the host of a redirect: the rest may hold what nobody else should read."""
    try:
        return urlsplit(url).hostname or ("another path of the same host" if url else "")
    except ValueError:
        return ""


def _document(body: bytes) -> Any:
    """The body as JSON, out of the list that some APIs put around it; None where it is none, or over 1 MB."""
    if len(body) > _LONGEST_BODY:
        return None
    try:
        document = json_values.loads(body)
    except (ValueError, RecursionError):
        return None
    return document[0] if isinstance(document, list) and document else document


def _words(document: Any, depth: int = 0) -> str:
    """The message in an error body: the first text under the names that APIs use, the innermost error first."""
    if isinstance(document, str):
        return document
    if isinstance(document, list):
        inside = document[:5]
    elif isinstance(document, dict):
        inside = [document.get(name) for name in _MESSAGE_NAMES]
    else:
        return ""
    return next(filter(None, (_words(item, depth + 1) for item in inside)), "") if depth < _DEEPEST else ""


_DEEPEST = 6
_MESSAGE_NAMES = ("error", "errors", "message", "detail", "error_description", "msg", "description", "title")
_CODE_NAMES = ("code", "type", "status", "reason", "error_code", "quotaId", "limit_source", "finish_reason")


def _codes(document: Any, depth: int = 0) -> Iterator[str]:
    """Every code in an error body, at most six levels down."""
    if depth > _DEEPEST:
        return
    if isinstance(document, list):
        for item in document[:20]:
            yield from _codes(item, depth + 1)
    if not isinstance(document, dict):
        return
    for name, value in document.items():
        if isinstance(value, str | int) and (name in _CODE_NAMES or name == "error") and not isinstance(value, bool):
            yield str(value).lower()
        elif name == "flagged_input":  # OpenRouter's moderation
            yield name
        yield from _codes(value, depth + 1)


_NO_CREDIT = frozenset(
    {
        *("insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded"),
        *("project_spend_limit_exceeded", "organization_usage_limit_exceeded", "enforced_spend_limit_reached"),
        *("billing_error", "billing_hard_limit_reached", "billing_not_active"),
    }
)
_NO_CREDIT_WORDS = ("you have reached your specified api usage limits", "your credit balance is too low")
_BAD_KEY = frozenset({"invalid_api_key", "api_key_invalid"})
_TOO_FAST = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "ratelimitexceeded", "userratelimitexceeded"}
)
_OVERLOADED = frozenset({"overloaded_error", "overloaded"})
_NO_MODEL = frozenset({"model_not_found"})
_FILTERED = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "flagged_input"})
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})  # the second is llama.cpp's
_TOO_LONG_WORDS = re.compile(r"maximum context length|prompt is too long|input token count .* exceeds", re.IGNORECASE)
_NO_MODEL_WORDS = {
    404: re.compile(r"^model:|\bmodels?\b.*(not found|does not exist)", re.IGNORECASE),
    400: re.compile(r"is not a valid model"),  # OpenRouter's
}
_NO_QUOTA = re.compile(r"\blimit:? 0\b", re.IGNORECASE)
_LIMIT = re.compile(r"limit:? (\d+)\b.*\brequested:? (\d+)", re.IGNORECASE)
_REDIRECTS = range(300, 400)
_SERVER = frozenset({408, 409, 421, 425, 498, *range(500, 600)})
_REFUSED_BY_PAGE = frozenset({400, 402, 403, 406, 422, 451})
"""Statuses that proxies and firewalls give with a page of their own; for 404, 405, 413 a page is the usual body."""

_STATUS_OF = {
    **dict.fromkeys(_NO_CREDIT, 429),
    **dict.fromkeys(_TOO_FAST, 429),
    **dict.fromkeys(_BAD_KEY, 401),
    **dict.fromkeys(_OVERLOADED, 529),
    **dict.fromkeys(_NO_MODEL, 404),
    **dict.fromkeys(_FILTERED | _TOO_LONG, 400),
    **dict.fromkeys(("server_error", "api_error", "internal", "unavailable", "timeout"), 500),
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
}


def _by(statuses: Container[int] | None = None, codes: frozenset[str] = frozenset()) -> Callable[[ReplyFault], bool]:
    """Holds for one of these statuses (None: any) with one of these codes (none given: whatever it says)."""
    return lambda fault: (statuses is None or fault.status in statuses) and (not codes or bool(codes & fault.codes))


def _no_credit(fault: ReplyFault) -> bool:
    if fault.codes & _NO_CREDIT or fault.message.lower().startswith(_NO_CREDIT_WORDS):
        return True
    if fault.status == 402:
        return fault.asked is None and not fault.html
    daily = any("perday" in code for code in fault.codes)  # Gemini's quota ids
    return fault.status == 429 and (daily or _NO_QUOTA.search(fault.message) is not None)


def _above_limit(fault: ReplyFault) -> bool:
    """A 429 by which this request alone is larger than the limit: waiting does not help."""
    if fault.status != 429:
        return False
    found = _LIMIT.search(fault.message.replace(",", ""))
    return int(found[2]) > int(found[1]) if found else fault.message.lower().startswith("request too large")


def _too_fast(fault: ReplyFault) -> bool:
    if fault.status in (402, 403) and not fault.html:
        return fault.asked is not None or bool(fault.codes & _TOO_FAST)
    return fault.status == 429


def _web_page(fault: ReplyFault) -> bool:
    return fault.html and (fault.status < 300 or fault.status in _REFUSED_BY_PAGE)


def _no_model(fault: ReplyFault) -> bool:
    words = _NO_MODEL_WORDS.get(fault.status)
    return bool(fault.codes & _NO_MODEL) or (words is not None and words.search(fault.message) is not None)


def _too_long(fault: ReplyFault) -> bool:
    return bool(fault.codes & _TOO_LONG) or _TOO_LONG_WORDS.search(fault.message) is not None


_C = FailureClass
_TABLE: tuple[tuple[Callable[[ReplyFault], bool], FailureClass, str], ...] = (
    # holds for                              who pays      reason ("" = http_<status>)
    (_by({511}), _C.MAYBE_SENT, "html_reply"),  # network login needed
    (_by(_REDIRECTS), _C.SETUP, "redirected"),
    (_web_page, _C.MAYBE_SENT, "html_reply"),
    (_no_credit, _C.MONEY, "no_credit"),
    (_above_limit, _C.RECORD, "request_too_large"),
    (_too_fast, _C.PACE, "rate_limited"),
    (_by(codes=_OVERLOADED), _C.SERVER, "overloaded"),
    (_by({529}), _C.SERVER, "overloaded"),
    (_by({501, 505}), _C.SETUP, ""),
    (_by(_SERVER), _C.SERVER, ""),
    (_by({401}), _C.SETUP, "bad_key"),
    (_by(codes=_BAD_KEY), _C.SETUP, "bad_key"),
    (_no_model, _C.SETUP, "model_not_found"),
    (_by(codes=_FILTERED), _C.RECORD, "content_filter"),
    (_by({403}), _C.SETUP, "forbidden"),
    (_by({404}), _C.SETUP, "not_found"),
    (_by({407}), _C.SETUP, "proxy_auth"),
    (_by({413}), _C.RECORD, "request_too_large"),
    (_too_long, _C.RECORD, "context_length"),
    (_by({400}), _C.RECORD, "bad_request"),
    (_by(), _C.RECORD, ""),
)


def _as_asked(cls: FailureClass, status: int, should_retry: str) -> FailureClass:
    """``x-should-retry: true`` (OpenAI, Anthropic) makes a 4xx that is not about the key one to try again."""
    asked = should_retry.lower() == "true" and 400 <= status < 500 and status not in (401, 403, 407)
    return _C.SERVER if asked and cls in (_C.RECORD, _C.SETUP) else cls
