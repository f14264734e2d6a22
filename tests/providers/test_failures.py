"""The failure table: status and body of a reply to the class that pays and the reason."""

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowcall.model import json_values
from rowcall.model.outcome import Failure, FailureClass, Reply
from rowcall.providers.classify_error_reply import classify
from rowcall.providers.reply_reasons import REASONS

MAYBE_SENT, SERVER = FailureClass.MAYBE_SENT, FailureClass.SERVER
PACE, MONEY, SETUP, RECORD = FailureClass.PACE, FailureClass.MONEY, FailureClass.SETUP, FailureClass.RECORD

PAGE = "<!DOCTYPE html><html><head><title>Log in to the network</title></head></html>"


def reply(status, body=b"", **headers):
    raw = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw, 0.25)


def openai(message="no", type_=None, code=None):
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def anthropic(type_, message="no", **details):
    return {"type": "error", "error": {"type": type_, "message": message, "details": details}, "request_id": "req_1"}


def gemini(code, status, *details, message="no"):
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def quota(quota_id):
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}
TOO_LARGE = "Request too large for m in organization o on tokens per min (TPM): Limit 10000, Requested 22000."
TOO_FAST = (
    "Rate limit reached for m on tokens per min (TPM): Limit 30,000, Used 29,000, Requested 2,000. Try again in 2s."
)

ROWS = {
    # server
    **{
        f"{status}": (reply(status), SERVER, f"http_{status}")
        for status in (408, 409, 421, 425, 498, 500, 502, 503, 504)
    },
    **{f"{status} of a CDN": (reply(status), SERVER, f"http_{status}") for status in (520, 521, 522, 523, 524)},
    "529": (reply(529), SERVER, "overloaded"),
    "529 overloaded_error": (reply(529, anthropic("overloaded_error")), SERVER, "overloaded"),
    "503 UNAVAILABLE": (reply(503, gemini(503, "UNAVAILABLE")), SERVER, "http_503"),
    "503 UNAVAILABLE in a list": (reply(503, [gemini(503, "UNAVAILABLE")]), SERVER, "http_503"),
    "500 INTERNAL": (reply(500, gemini(500, "INTERNAL")), SERVER, "http_500"),
    "500 api_error": (reply(500, anthropic("api_error")), SERVER, "http_500"),
    "504 timeout_error": (reply(504, anthropic("timeout_error")), SERVER, "http_504"),
    "502 of OpenRouter": (reply(502, {"error": {"code": 502, "message": "no", "metadata": {}}}), SERVER, "http_502"),
    "503 overloaded": (reply(503, anthropic("overloaded_error")), SERVER, "overloaded"),
    "500 server_error": (reply(500, openai(type_="server_error")), SERVER, "http_500"),
    "503 slow_down": (reply(503, openai(code="slow_down")), SERVER, "http_503"),
    "502 page of a gateway": (reply(502, PAGE, content_type="text/html"), SERVER, "http_502"),
    "503 page of a gateway": (reply(503, PAGE, content_type="text/html"), SERVER, "http_503"),
    "504 page of a gateway": (reply(504, PAGE, content_type="text/html"), SERVER, "http_504"),
    "400 x-should-retry true": (reply(400, openai(), x_should_retry="true"), SERVER, "bad_request"),
    "404 x-should-retry true": (reply(404, openai(), x_should_retry="true"), SERVER, "not_found"),
    # pace
    "429 no body": (reply(429), PACE, "rate_limited"),
    "429 page": (reply(429, PAGE, content_type="text/html"), PACE, "rate_limited"),
    "429 broken body": (reply(429, b'{"error": {"mess\xff'), PACE, "rate_limited"),
    "429 rate_limit_exceeded": (reply(429, openai(TOO_FAST, "tokens", "rate_limit_exceeded")), PACE, "rate_limited"),
    "429 slow_down": (reply(429, openai(code="slow_down")), PACE, "rate_limited"),
    "429 rate_limit_error": (reply(429, anthropic("rate_limit_error")), PACE, "rate_limited"),
    "429 RESOURCE_EXHAUSTED a minute": (
        reply(429, gemini(429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerMinutePerProjectPerModel"), RETRY_INFO)),
        PACE,
        "rate_limited",
    ),
    "429 x-should-retry false": (reply(429, x_should_retry="false"), PACE, "rate_limited"),
    "402 in-flight budget": (
        reply(
            402, {"error": {"code": 402, "metadata": {"limit_source": "openrouter_in_flight_budget"}}}, retry_after="5"
        ),
        PACE,
        "rate_limited",
    ),
    "403 with Retry-After": (reply(403, {"message": "secondary rate limit"}, retry_after="60"), PACE, "rate_limited"),
    "403 rateLimitExceeded": (
        reply(403, {"error": {"errors": [{"reason": "rateLimitExceeded"}], "code": 403}}),
        PACE,
        "rate_limited",
    ),
    "429 in a list": (reply(429, [gemini(429, "RESOURCE_EXHAUSTED", RETRY_INFO)]), PACE, "rate_limited"),
    "402 with Retry-After": (
        reply(402, {"error": {"code": 402, "message": "no"}}, retry_after="3"),
        PACE,
        "rate_limited",
    ),
    # the 429 that is the record's
    "429 request too large": (
        reply(429, openai(TOO_LARGE, "tokens", "rate_limit_exceeded")),
        RECORD,
        "request_too_large",
    ),
    "429 requested above limit": (
        reply(429, openai("TPM: Limit 10,000, Used 0, Requested 10,001", "tokens", "rate_limit_exceeded")),
        RECORD,
        "request_too_large",
    ),
    # money
    **{
        f"429 {code}": (reply(429, openai(type_=code, code=code)), MONEY, "no_credit")
        for code in (
            "insufficient_quota",
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
        )
    },
    "429 only the type is insufficient_quota": (reply(429, openai(type_="insufficient_quota")), MONEY, "no_credit"),
    "403 insufficient_quota": (reply(403, openai(code="insufficient_quota")), MONEY, "no_credit"),
    "429 enforced_spend_limit_reached": (
        reply(429, anthropic("rate_limit_error", error_code="enforced_spend_limit_reached")),
        MONEY,
        "no_credit",
    ),
    "402 billing_error": (reply(402, anthropic("billing_error")), MONEY, "no_credit"),
    "402 of OpenRouter": (
        reply(402, {"error": {"code": 402, "message": "This request requires more credits"}}),
        MONEY,
        "no_credit",
    ),
    "402 bare": (reply(402), MONEY, "no_credit"),
    "400 usage limits": (
        reply(
            400, anthropic("invalid_request_error", "You have reached your specified API usage limits. You will ...")
        ),
        MONEY,
        "no_credit",
    ),
    "400 credit balance": (
        reply(400, anthropic("invalid_request_error", "Your credit balance is too low to access the API.")),
        MONEY,
        "no_credit",
    ),
    "429 a quota per day": (
        reply(429, gemini(429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"))),
        MONEY,
        "no_credit",
    ),
    "429 a quota of 0": (
        reply(429, gemini(429, "RESOURCE_EXHAUSTED", message="Quota exceeded for metric: x, limit: 0, model: y")),
        MONEY,
        "no_credit",
    ),
    # setup
    "401": (reply(401), SETUP, "bad_key"),
    "401 invalid_api_key": (reply(401, openai(code="invalid_api_key")), SETUP, "bad_key"),
    "401 page": (reply(401, PAGE, content_type="text/html"), SETUP, "bad_key"),
    "401 x-should-retry true": (reply(401, x_should_retry="true"), SETUP, "bad_key"),
    "400 API_KEY_INVALID": (
        reply(400, gemini(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"})),
        SETUP,
        "bad_key",
    ),
    "401 authentication_error": (reply(401, anthropic("authentication_error")), SETUP, "bad_key"),
    "403": (reply(403, openai()), SETUP, "forbidden"),
    "403 permission_error": (reply(403, anthropic("permission_error")), SETUP, "forbidden"),
    "403 PERMISSION_DENIED": (reply(403, gemini(403, "PERMISSION_DENIED")), SETUP, "forbidden"),
    "404 wrong base URL, text": (reply(404, "404 page not found"), SETUP, "not_found"),
    "404 wrong base URL, page": (reply(404, PAGE, content_type="text/html"), SETUP, "not_found"),
    "404 model_not_found": (reply(404, openai(code="model_not_found")), SETUP, "model_not_found"),
    "403 model_not_found": (reply(403, openai(code="model_not_found")), SETUP, "model_not_found"),
    "404 model of Anthropic": (reply(404, anthropic("not_found_error", "model: claude-x")), SETUP, "model_not_found"),
    "404 model of Gemini": (
        reply(404, gemini(404, "NOT_FOUND", message="models/x is not found for API version v1beta")),
        SETUP,
        "model_not_found",
    ),
    "400 model_not_found": (reply(400, openai(code="model_not_found")), SETUP, "model_not_found"),
    "400 model of OpenRouter": (
        reply(400, {"error": {"code": 400, "message": "x/y is not a valid model ID"}}),
        SETUP,
        "model_not_found",
    ),
    "404 model of vLLM": (
        reply(404, {"object": "error", "message": "The model `x` does not exist."}),
        SETUP,
        "model_not_found",
    ),
    "404 model of Ollama": (
        reply(404, {"error": "model 'x' not found, try pulling it first"}),
        SETUP,
        "model_not_found",
    ),
    "301": (reply(301, location="https://www.example.com/v1?key=abc"), SETUP, "redirected"),
    "302 to a login page": (reply(302, PAGE, location="http://portal/", content_type="text/html"), SETUP, "redirected"),
    "407": (reply(407, PAGE, content_type="text/html"), SETUP, "proxy_auth"),
    "501": (reply(501), SETUP, "http_501"),
    # record
    "400": (reply(400, openai(type_="invalid_request_error")), RECORD, "bad_request"),
    "400 INVALID_ARGUMENT": (reply(400, gemini(400, "INVALID_ARGUMENT")), RECORD, "bad_request"),
    "400 invalid_request_error": (reply(400, anthropic("invalid_request_error")), RECORD, "bad_request"),
    "413 request_too_large": (reply(413, anthropic("request_too_large")), RECORD, "request_too_large"),
    "400 JSON that is called a page": (reply(400, openai(), content_type="text/html"), RECORD, "bad_request"),
    "422 of FastAPI": (reply(422, {"detail": [{"loc": ["body"], "msg": "field required"}]}), RECORD, "http_422"),
    "405": (reply(405), RECORD, "http_405"),
    "410": (reply(410), RECORD, "http_410"),
    "413": (reply(413, PAGE, content_type="text/html"), RECORD, "request_too_large"),
    "422": (reply(422), RECORD, "http_422"),
    "400 context_length_exceeded": (reply(400, openai(code="context_length_exceeded")), RECORD, "context_length"),
    "400 prompt is too long": (
        reply(400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
        RECORD,
        "context_length",
    ),
    "400 context length of vLLM": (
        reply(400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
        RECORD,
        "context_length",
    ),
    "400 input tokens of Gemini": (
        reply(
            400,
            gemini(
                400,
                "INVALID_ARGUMENT",
                message="The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
        ),
        RECORD,
        "context_length",
    ),
    "400 context of llama.cpp": (
        reply(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "request (3031 tokens) exceeds the available context size (512 tokens)",
                    "type": "exceed_context_size_error",
                }
            },
        ),
        RECORD,
        "context_length",
    ),
    "400 content_filter": (reply(400, openai(code="content_filter")), RECORD, "content_filter"),
    "403 moderation": (
        reply(403, {"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "..."}}}),
        RECORD,
        "content_filter",
    ),
    # maybe sent
    "511": (reply(511, PAGE, content_type="text/html"), MAYBE_SENT, "html_reply"),
    "403 page of a firewall": (reply(403, PAGE, content_type="text/html"), MAYBE_SENT, "html_reply"),
    "400 page of a proxy": (reply(400, PAGE), MAYBE_SENT, "html_reply"),
}


@pytest.mark.parametrize(("answer", "cls", "reason"), ROWS.values(), ids=ROWS)
def test_row_of_the_table(answer, cls, reason):
    """Every row of the failure table has its class and its reason."""
    failure = classify(answer)
    assert (failure.cls, failure.reason) == (cls, reason)
    assert failure.reason in REASONS or re.fullmatch(r"http_\d{3}", failure.reason)
    assert (failure.status, failure.latency) == (answer.status, 0.25)


SHAPES = {
    "nothing": b"",
    "{}": b"{}",
    "[]": b"[]",
    "text": b'"text"',
    "null": b"null",
    "a number": b"7",
    "error is text": b'{"error": "text"}',
    "error is null": b'{"error": null}',
    "error is a list": b'{"error": [[], {}, 1, null]}',
    "error with a number": b'{"error": {"code": 429, "message": 5, "type": ["x"]}}',
    "errors": b'{"errors": [{"message": "text"}]}',
    "in a list": b'[{"error": {"code": 503, "message": "text", "status": "UNAVAILABLE"}}]',
    "5 MB": b'{"error": {"message": "' + b"x" * 5_000_000 + b'"}}',
    "5 MB of text": b"\xff" * 5_000_000,
    "broken UTF-8": b'{"error": {"message": "\xff\xfe"}}',
    "UTF-16": '{"error": "text"}'.encode("utf-16"),
    "lone surrogate": b'{"error": {"message": "\\ud800"}}',
    "deep": b'{"error":' * 900 + b"1" + b"}" * 900,
    "too deep": b"[" * 100_000,
    "deep with an escape": b'{"error":' * 900 + b'"\\u0041"' + b"}" * 900,
    "NaN": b'{"error": {"message": NaN}}',
    "NUL": b"\0\0\0",
    "long number": b'{"error": {"code": ' + b"9" * 10_000 + b"}}",
}


@pytest.mark.parametrize("status", [200, 302, 400, 402, 403, 404, 429, 500, 503, 599])
@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_body_of_any_shape(body, status):
    """No shape of a body crashes the classifier, and the message is one short line that has the status."""
    failure = classify(reply(status, body))
    assert isinstance(failure, Failure)
    assert failure.message.startswith(f"HTTP {status}: ")
    assert failure.message.isprintable()
    assert len(failure.message) <= 500
    assert len(failure.body) <= 2000


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "code", "message", "status", "details", "type", "detail"]), inner)
    ),
    max_leaves=12,
)
HEADER = st.sampled_from(
    ["retry-after", "retry-after-ms", "x-should-retry", "location", "content-type", "request-id", "date"]
)


@given(
    status=st.integers(100, 999),
    body=st.binary(max_size=200) | JUNK.map(lambda junk: json.dumps(junk).encode()),
    headers=st.dictionaries(HEADER, st.text(max_size=30) | st.just("text/html")),
)
@example(status=302, body=b"", headers={"location": "http://[::1"})
@example(status=429, body=b"", headers={"retry-after": "9" * 30, "retry-after-ms": "nan"})
@settings(deadline=None, max_examples=300)
def test_nothing_raises(status, body, headers):
    """Whatever comes back is some failure."""
    failure = classify(Reply(status, headers, body, 0.0))
    assert failure.cls in FailureClass
    assert failure.retry_after is None or failure.retry_after >= 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (openai("Incorrect key\nprovided"), "HTTP 400: Incorrect key provided"),
        ({"error": "text"}, "HTTP 400: text"),
        ({"error": {"message": "", "detail": "deeper"}}, "HTTP 400: deeper"),
        ({"detail": [{"loc": ["body", "x"], "msg": "field required"}]}, "HTTP 400: field required"),
        ({"title": "Bad", "detail": "why", "status": 400}, "HTTP 400: why"),
        ([{"error": {"message": "in a list"}}], "HTTP 400: in a list"),
        (b"plain words", "HTTP 400: plain words"),
        (b"", "HTTP 400: Bad Request"),
        (b"{}", "HTTP 400: Bad Request"),
        ("\x1b[31mred\x1b[0m \u202e", "HTTP 400: [31mred [0m"),
        ("x" * 900, f"HTTP 400: {'x' * 487}..."),
    ],
)
def test_message(body, message):
    """The message is the API's own, on one line without control characters, at most 500 characters."""
    assert classify(reply(400, body)).message == message


def test_large_body_is_not_parsed():
    """A body over 1 MB costs no time: its status alone speaks."""
    body = json_values.dumps({"error": {"message": "words", "code": "insufficient_quota", "rest": "x" * 1_000_000}})
    failure = classify(reply(429, body))
    assert (failure.reason, failure.message[:20]) == ("rate_limited", 'HTTP 429: {"error":{')


def test_redirect_shows_only_the_host():
    """A redirect names where it leads, without the query."""
    failure = classify(reply(301, location="https://www.example.com/v1/chat?key=abc"))
    assert failure.message == "HTTP 301: redirected to www.example.com"


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (reply(500, x_request_id="req_a"), "req_a"),
        (reply(500, request_id="req_b"), "req_b"),
        (reply(529, anthropic("overloaded_error")), "req_1"),
        (reply(500, {"id": 7}), None),
    ],
)
def test_request_id(answer, number):
    """The request id comes from a header, else from the body."""
    assert classify(answer).request_id == number


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (reply(429, retry_after="7"), 7.0),
        (reply(503, retry_after_ms="250"), 0.25),
        (reply(429, gemini(429, "RESOURCE_EXHAUSTED", RETRY_INFO)), 38.0),
        (reply(429), None),
    ],
)
def test_retry_after(answer, seconds):
    """What the server asks to wait is on the failure."""
    assert classify(answer).retry_after == seconds


def test_should_retry():
    """x-should-retry false means that trying again is of no use."""
    assert classify(reply(500, x_should_retry="false")).retry is False
    assert classify(reply(500)).retry is True
