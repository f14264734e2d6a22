"""Decides who pays for an error reply, and under which reason.

The decision is one table over status and body, because a status alone is not enough: 429 may mean "slow down" or "no
credit left", and 403 may be a rate limit. The first row whose condition holds decides. The codes come from the APIs'
own references: https://platform.openai.com/docs/guides/error-codes, https://docs.anthropic.com/en/api/errors,
https://ai.google.dev/gemini-api/docs/troubleshooting and https://openrouter.ai/docs/api-reference/errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from rowcall.failures.retries import retry_after
from rowcall.model.outcome import Failure, FailureClass, Reply
from rowcall.providers.parse_error_reply import (
    LONGEST_BODY,
    REDIRECTS,
    ReplyFault,
    codes_in,
    fault_of,
    message_in,
    one_line,
    request_id,
    start_of_body,
)


def classify(reply: Reply) -> Failure:
    """Say who pays for an error reply, and why. Never raises, whatever the reply contains."""
    return failure(reply, fault_of(reply))


def failure(reply: Reply, fault: ReplyFault) -> Failure:
    """Turn a fault into an outcome; ``fault`` may come from an error object inside the reply."""
    cls, reason = next((cls, reason) for holds, cls, reason in _TABLE if holds(fault))
    cls = _retried_on_request(cls, fault.status, reply.headers.get("x-should-retry", ""))
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


def embedded(error: Any, reply: Reply) -> ReplyFault | None:
    """Return the fault that an ``error`` inside a 2xx describes; None if its code is not known."""
    codes = frozenset(codes_in({"error": error}))
    own = str(error.get("code")).lower() if isinstance(error, dict) else ""
    status = next(filter(None, map(_status_of, (own, *sorted(codes)))), None)  # its own code before those inside it
    if status is None:
        return None
    asked = retry_after(reply.headers, reply.body[:LONGEST_BODY])
    return ReplyFault(status, codes, one_line(message_in({"error": error})), asked=asked)


def _status_of(code: str) -> int | None:
    return int(code) if re.fullmatch(r"[45]\d\d", code, re.ASCII) else _STATUS_OF.get(code)


def answer_failure(reply: Reply, reason: str, message: str, *, retry: bool = True) -> Failure:
    """Return the failure of a 2xx whose answer cannot be accepted."""
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
    """Return the failure of a reply that is a web page. A proxy may have sent it, so the API may have been called."""
    return replace(answer_failure(reply, "html_reply", _PAGE), cls=FailureClass.MAYBE_SENT)


_PAGE = "a web page came back instead of the API's reply"


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
_SERVER = frozenset({408, 409, 421, 425, 498, *range(500, 600)})
_REFUSED_BY_PAGE = frozenset({400, 402, 403, 406, 422, 451})
"""Statuses with which proxies and firewalls send their own pages. With 404, 405 and 413 APIs often do so too."""

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
    """Return a condition: the status is one of these (None: any) and a code is one of these (empty: any)."""
    return lambda fault: (statuses is None or fault.status in statuses) and (not codes or bool(codes & fault.codes))


def _no_credit(fault: ReplyFault) -> bool:
    if fault.codes & _NO_CREDIT or fault.message.lower().startswith(_NO_CREDIT_WORDS):
        return True
    if fault.status == 402:
        return fault.asked is None and not fault.html
    daily = any("perday" in code for code in fault.codes)  # Gemini's quota ids: a daily quota is not worth waiting for
    return fault.status == 429 and (daily or _NO_QUOTA.search(fault.message) is not None)


def _above_limit(fault: ReplyFault) -> bool:
    """Whether a 429 says that this request alone is larger than the limit, so that waiting cannot help."""
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


_C = FailureClass  # keeps each row of the table on one line
_TABLE: tuple[tuple[Callable[[ReplyFault], bool], FailureClass, str], ...] = (
    # condition                              who pays      reason ("" means http_<status>)
    (_by({511}), _C.MAYBE_SENT, "html_reply"),  # the network wants a login
    (_by(REDIRECTS), _C.SETUP, "redirected"),
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


def _retried_on_request(cls: FailureClass, status: int, should_retry: str) -> FailureClass:
    """Treat a 4xx as a server error if the API asks for a retry (``x-should-retry: true`` of OpenAI and Anthropic).

    A 4xx that is about the key stays what it is.
    """
    asked = should_retry.lower() == "true" and 400 <= status < 500 and status not in (401, 403, 407)
    return _C.SERVER if asked and cls in (_C.RECORD, _C.SETUP) else cls
