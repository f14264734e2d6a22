"""The openai provider: chat completions as OpenAI and those who copy it speak them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from providerkit import make_provider

from rowcall.config import Secret
from rowcall.model import json_values
from rowcall.model.errors import ConfigError
from rowcall.model.outcome import Failure, FailureClass, Reply, Success, Usage
from rowcall.providers import CallContext

BODY = {"model": "m", "temperature": 0.5, "messages": [{"role": "user", "content": "{{ row.text }}"}]}
USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 7,
    "total_tokens": 19,
    "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
SPENT = Usage(input=12, output=7, cached=8, reasoning=5)


def provider(**keys):
    return make_provider("openai", **{"body": BODY, **keys})


def completion(content="fine", finish="stop", **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": USAGE}


def read(document, headers=None, status=200, **keys):
    body = document if isinstance(document, bytes) else json_values.dumps(document)
    return provider(**keys).read(Reply(status, {"content-type": "application/json", **(headers or {})}, body, 0.25))


def test_request():
    """The request goes to chat/completions with the key as a bearer, types kept."""
    request = provider(api_key=Secret("KEY", "sk-1")).build({"text": "hi"}, CallContext("k"))
    assert (request.method, str(request.url)) == ("POST", "https://api.openai.com/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer sk-1"
    assert provider(path="").build({"text": "hi"}, CallContext("k")).url == request.url
    assert json.loads(request.content) == {**BODY, "messages": [{"role": "user", "content": "hi"}]}


def test_other_server():
    """Any base_url and path will do, without a key too."""
    request = provider(base_url="http://127.0.0.1:8000/v1/", path="chat/completions?x=1").build(
        {"text": "hi"}, CallContext("k")
    )
    assert str(request.url) == "http://127.0.0.1:8000/v1/chat/completions?x=1"
    assert "authorization" not in request.headers


def test_mock_speaks_the_same():
    """The mock preset needs an address and speaks OpenAI's chat."""
    made = make_provider("mock", base_url="http://127.0.0.1:9/v1", body=BODY)
    assert str(made.build({"text": "x"}, CallContext("k")).url) == "http://127.0.0.1:9/v1/chat/completions"
    assert made.read(Reply(200, {}, json_values.dumps(completion()), 0.1)).value == "fine"
    with pytest.raises(ConfigError, match=r"api\.base_url"):
        make_provider("mock", body=BODY)


def test_body_is_needed():
    """A chat without a body is refused at the start."""
    with pytest.raises(ConfigError, match=r"request\.body"):
        make_provider("openai")


def test_answer():
    """The content is the answer, with request id and tokens."""
    assert read(completion(), {"x-request-id": "req_1"}) == Success("fine", 200, "req_1", 0.25, SPENT)


def test_request_id_of_the_document():
    """Where no header has a request id the completion's own id stands in."""
    assert read(completion()).request_id == "chatcmpl-1"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (completion("cut", "length"), "truncated"),
        (completion(None, "length"), "truncated"),
        (completion("", "content_filter"), "filtered"),
        (completion(None, refusal="I cannot"), "filtered"),
        (completion(None), "empty"),
        (completion(""), "empty"),
        (completion(" \n"), "empty"),
        (completion(None, "tool_calls", tool_calls=[{"id": "c", "function": {"name": "f"}}]), "empty"),
        ({**completion(), "choices": []}, "empty"),
        ({**completion(), "choices": None}, "empty"),
        ({**completion(), "choices": [None]}, "empty"),
        ({"usage": USAGE}, "empty"),
        ({**completion(), "choices": [{"finish_reason": "error"}]}, "error_reply"),
        ({**completion(), "error": {"message": "odd", "code": None}}, "error_reply"),
        ({**completion(), "error": "odd"}, "error_reply"),
    ],
)
def test_answer_that_breaks_the_contract(document, reason):
    """An answer cut, filtered, empty or reported as an error is a failure by reason, and its tokens count."""
    failure = read(document)
    assert (failure.cls, failure.reason) == (FailureClass.ANSWER, reason)
    assert failure.usage == SPENT


@pytest.mark.parametrize(
    ("error", "cls", "reason"),
    [
        ({"code": 502, "message": "Provider returned error"}, FailureClass.SERVER, "http_502"),
        ({"code": "502", "message": "no"}, FailureClass.SERVER, "http_502"),
        ({"code": 429, "message": "slow"}, FailureClass.PACE, "rate_limited"),
        ({"code": "rate_limit_exceeded"}, FailureClass.PACE, "rate_limited"),
        ({"code": "insufficient_quota"}, FailureClass.MONEY, "no_credit"),
        ({"code": 402}, FailureClass.MONEY, "no_credit"),
        ({"code": 401}, FailureClass.SETUP, "bad_key"),
        ({"code": 403, "metadata": {"flagged_input": "x"}}, FailureClass.RECORD, "content_filter"),
        ({"code": 502, "metadata": {"code": 400}}, FailureClass.SERVER, "http_502"),
        ({"code": "context_length_exceeded"}, FailureClass.RECORD, "context_length"),
        ({"type": "server_error", "code": None}, FailureClass.SERVER, "http_500"),
        ({"type": "overloaded_error"}, FailureClass.SERVER, "overloaded"),
    ],
)
@pytest.mark.parametrize("inside", ["document", "choice"])
def test_error_inside_a_200(error, cls, reason, inside):
    """An error inside a 200 is classed by its own code, beside the choices or inside one."""
    document = {"usage": USAGE, "error": error}
    if inside == "choice":
        document = {
            "usage": USAGE,
            "choices": [{"finish_reason": "error", "error": error, "message": {"content": "pa"}}],
        }
    failure = read(document)
    assert (failure.cls, failure.reason, failure.status, failure.usage) == (cls, reason, 200, SPENT)
    assert failure.message.startswith("HTTP 200 with an error ")


def test_web_page():
    """A web page where the completion should be may have been sent."""
    failure = read(b"<html>log in</html>")
    assert (failure.cls, failure.reason) == (FailureClass.MAYBE_SENT, "html_reply")


def test_error_status():
    """An error status goes through the failure table."""
    failure = read({"error": {"message": "no", "code": "insufficient_quota"}}, status=429)
    assert (failure.cls, failure.message) == (FailureClass.MONEY, "HTTP 429: no")


def test_json_answer():
    """The text of an answer may be JSON, held against a schema; tokens count when it breaks it."""
    keys = {"parse": "json", "schema": {"required": ["label"]}}
    assert read(completion('```json\n{"label": "good"}\n```'), **keys).value == {"label": "good"}
    failure = read(completion('{"lab": 1}'), **keys)
    assert (failure.reason, failure.usage) == ("schema", SPENT)


def test_tool_call_that_is_asked_for():
    """Where extract asks for a tool call's arguments they are the answer."""
    calls = [{"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    keys = {"extract": "choices[0].message.tool_calls[0].function.arguments", "parse": "json"}
    assert read(completion(None, "tool_calls", tool_calls=calls), **keys).value == {"a": 1}


@pytest.mark.parametrize(
    "usage", [None, [], "x", {"prompt_tokens": None}, {"prompt_tokens": -1}, {"prompt_tokens": "7"}]
)
def test_usage_of_any_shape(usage):
    """A usage that says nothing counts nothing."""
    assert read({**completion(), "usage": usage}).usage == Usage()


PARTS = st.sampled_from(["error", "choices", "message", "content", "finish_reason", "usage", "refusal", "code", "id"])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["length", "error", "stop"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PARTS, inner, max_size=4),
    max_leaves=10,
)
READERS = [provider(), provider(parse="json", schema={"type": "object"})]


@given(
    st.sampled_from(READERS), st.sampled_from([200, 201, 204, 404, 500]), JUNK.map(json.dumps) | st.text(max_size=50)
)
@settings(deadline=None, max_examples=300)
def test_nothing_raises_whatever_the_document(reader, status, text):
    """Whatever a reply holds, it gives an outcome."""
    outcome = reader.read(Reply(status, {}, text.encode("utf-8", "surrogatepass"), 0.1))
    assert isinstance(outcome, Success | Failure)


def test_embeddings_give_the_vector_and_its_usage():
    """At ``/embeddings`` the answer is the vector, and the tokens of the prompt are counted."""
    provider = make_provider("openai", path="/embeddings", body={"model": "m", "input": "{{ row.text }}"})
    request = provider.build({"text": "hello"}, CallContext("k"))
    assert str(request.url) == "https://api.openai.com/v1/embeddings"
    assert json.loads(request.content) == {"model": "m", "input": "hello"}
    document = {"data": [{"index": 0, "embedding": [0.5, -0.5]}], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    outcome = provider.read(Reply(200, {}, json.dumps(document).encode(), 0.1))
    assert outcome.value == [0.5, -0.5]
    assert (outcome.usage.input, outcome.usage.output) == (7, 0)


@pytest.mark.parametrize("document", [{"data": []}, {"data": [{}]}, {}, [], {"error": {"message": "no"}}])
def test_embeddings_without_a_vector_are_no_answer(document):
    """A 200 of embeddings without a vector is a failure, whatever it holds."""
    provider = make_provider("openai", path="/embeddings", body={"model": "m", "input": "x"})
    assert isinstance(provider.read(Reply(200, {}, json.dumps(document).encode(), 0.1)), Failure)
