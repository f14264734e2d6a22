"""Every preset: where its calls go, what they carry, and what its documents mean."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from providerkit import make_provider

from rowcall.config import Secret
from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.config.tables import Preset
from rowcall.model import json_values
from rowcall.model.errors import ConfigError
from rowcall.model.outcome import Failure, FailureClass, Reply, Success, Usage
from rowcall.providers import BATCH_FILE, PRESETS, CallContext
from rowcall.providers.handler_endpoint import Endpoint

ROW = {"text": "hi", "model": "m 2"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "{{ row.text }}"}]}
MESSAGES = {**CHAT, "max_tokens": 100}
RESPONSE = {"model": "m", "input": "{{ row.text }}"}
CONTENTS = {"model": "gemini-2.5-flash", "contents": [{"parts": [{"text": "{{ row.text }}"}]}]}

ASKED = {
    "openai": (CHAT, None, "https://api.openai.com/v1/chat/completions", "authorization: Bearer sk-1"),
    "openai responses": (RESPONSE, "/responses", "https://api.openai.com/v1/responses", "authorization: Bearer sk-1"),
    "anthropic": (MESSAGES, None, "https://api.anthropic.com/v1/messages", "x-api-key: sk-1"),
    "gemini": (
        CONTENTS,
        None,
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
        "x-goog-api-key: sk-1",
    ),
    "openrouter": (CHAT, None, "https://openrouter.ai/api/v1/chat/completions", "authorization: Bearer sk-1"),
    "ollama": (CHAT, None, "http://localhost:11434/v1/chat/completions", "authorization: Bearer sk-1"),
    "vllm": (CHAT, None, "http://localhost:8000/v1/chat/completions", "authorization: Bearer sk-1"),
}
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")


def made(name, **keys):
    body, path, *_ = ASKED[name]
    return make_provider(name.split()[0], **{"path": path, "body": body, **keys})


def test_every_preset_of_the_config_has_its_place_and_its_meaning():
    """What a config may name is what there is."""
    assert set(get_args(Preset)) == set(PRESET_DEFAULTS) == {*PRESETS, BATCH_FILE}
    assert all(preset.defaults is PRESET_DEFAULTS[name] for name, preset in PRESETS.items())


@pytest.mark.parametrize("name", ASKED)
def test_request(name):
    """Each preset calls its own URL with its own header for the key, and no other."""
    *_, url, header = ASKED[name]
    request = made(name, api_key=Secret("KEY", "sk-1")).build(ROW, CallContext("k"))
    assert (request.method, str(request.url)) == ("POST", url)
    sent = [f"{key}: {value}" for key, value in request.headers.items() if key in KEY_HEADERS]
    assert sent == [header]
    assert "hi" in request.content.decode()


@pytest.mark.parametrize("name", ASKED)
def test_without_a_key(name):
    """No preset insists on a key: a local server has none, and a proxy may bring it."""
    request = made(name).build(ROW, CallContext("k"))
    assert not set(KEY_HEADERS) & set(request.headers)


def test_anthropic_names_its_version():
    """anthropic-version goes along, and the config may say another."""
    assert made("anthropic").build(ROW, CallContext("k")).headers["anthropic-version"] == "2023-06-01"
    request = made("anthropic", headers={"Anthropic-Version": "2024-01-01"}).build(ROW, CallContext("k"))
    assert request.headers["anthropic-version"] == "2024-01-01"


def test_gemini_takes_the_model_out_of_the_body():
    """The model stands in the path, escaped where it comes from the record, and not in the body."""
    provider = make_provider("gemini", body={**CONTENTS, "model": "{{ row.model }}"})
    request = provider.build(ROW, CallContext("k"))
    assert request.url.raw_path == b"/v1beta/models/m%202:generateContent"
    assert json.loads(request.content) == {"contents": [{"parts": [{"text": "hi"}]}]}
    assert provider.columns == {"text", "model"}


def test_gemini_without_a_model():
    """A path that needs a model, and a body without one, is refused at the start."""
    with pytest.raises(ConfigError, match=r"request\.body\.model"):
        make_provider("gemini", body={"contents": []})
    provider = make_provider("gemini", path="/models/g:generateContent", body={"contents": []})
    assert str(provider.build({}, CallContext("k")).url).endswith("/v1beta/models/g:generateContent")


@pytest.mark.parametrize(("preset", "header"), [("anthropic", "x-api-key"), ("gemini", "x-goog-api-key")])
def test_a_handler_has_the_same_headers(preset, header):
    """A handler's requests bring the key in the header of its preset."""
    endpoint = Endpoint(PRESET_DEFAULTS[preset].base_url, api_key=Secret("K", "sk-1"), preset=PRESETS[preset])
    headers = dict(endpoint.headers(endpoint.url("/x"), {}, "k"))
    assert headers[header.encode()] == b"sk-1"
    assert b"authorization" not in headers


# What a document means


def chat(text="fine", end="stop", usage=None, **message):
    choice = {"message": {"content": text, **message}, "finish_reason": end}
    return {"id": "id-1", "choices": [choice], "usage": usage}


def response(text="fine", usage=None, **more):
    think = {"type": "reasoning", "summary": []}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {"id": "id-1", "status": "completed", "error": None, "output": [think, said], "usage": usage, **more}


def message(text="fine", end="end_turn", usage=None):
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    return {"id": "id-1", "type": "message", "content": content, "stop_reason": end, "usage": usage}


def candidate(text="fine", end="STOP", usage=None, **more):
    parts = [{"text": "hm", "thought": True}, {"text": text}]
    return {
        "responseId": "id-1",
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": end}],
        "usageMetadata": usage,
        **more,
    }


SHAPES = {
    "openai": chat,
    "openai responses": response,
    "anthropic": message,
    "gemini": candidate,
    "openrouter": chat,
    "ollama": chat,
    "vllm": chat,
}


def reply(document, status=200):
    body = document if isinstance(document, bytes) else json_values.dumps(document)
    return Reply(status, {"content-type": "application/json"}, body, 0.25)


def read(name, document, **keys):
    return made(name, **keys).read(reply(document))


@pytest.mark.parametrize("name", SHAPES)
def test_answer(name):
    """The text that the model meant for the reader is the answer; what it thought is not."""
    assert read(name, SHAPES[name]()) == Success("fine", 200, "id-1", 0.25)


@pytest.mark.parametrize("name", SHAPES)
def test_answer_in_parts_and_as_json(name):
    """JSON in the answer is parsed, in a code fence too, and held against the schema."""
    keys = {"schema": {"required": ["label"]}}
    assert read(name, SHAPES[name]('```json\n{"label": "good"}\n```'), **keys).value == {"label": "good"}
    assert read(name, SHAPES[name]('{"lab": 1}'), **keys).reason == "schema"


def test_answer_in_several_parts():
    """Parts of an answer are put together."""
    parts = [{"type": "text", "text": "fi"}, {"type": "text", "text": "ne"}]
    assert read("anthropic", {**message(), "content": parts}).value == "fine"
    texts = [{"text": "fi"}, {"functionCall": {}}, {"text": "ne"}]
    assert read("gemini", {"candidates": [{"content": {"parts": texts}}]}).value == "fine"
    output = [{"type": "message", "content": [{"type": "output_text", "text": text}]} for text in ("fi", "ne")]
    assert read("openai responses", response(output=output)).value == "fine"


INCOMPLETE = {"status": "incomplete"}
REFUSED = [{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot"}]}]
TOOL = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
CALLED = [{"type": "function_call", "name": "f", "arguments": "{}"}]

REJECTED = {
    "chat cut": ("vllm", chat("cut", "length"), "truncated"),
    "chat filtered": ("openrouter", chat("", "content_filter"), "filtered"),
    "chat refused": ("ollama", chat(None, refusal="I cannot"), "filtered"),
    "chat null": ("vllm", chat(None), "empty"),
    "chat empty": ("vllm", chat(""), "empty"),
    "chat only a tool call": ("openai", chat(None, "tool_calls", tool_calls=[{"id": "c"}]), "empty"),
    "chat no choices": ("openrouter", {"choices": []}, "empty"),
    "chat ended by an error": ("openrouter", chat("pa", "error"), "error_reply"),
    "response cut": (
        "openai responses",
        response("cut", **INCOMPLETE, incomplete_details={"reason": "max_output_tokens"}),
        "truncated",
    ),
    "response filtered": (
        "openai responses",
        response("", **INCOMPLETE, incomplete_details={"reason": "content_filter"}),
        "filtered",
    ),
    "response refused": ("openai responses", response(output=REFUSED), "filtered"),
    "response null": ("openai responses", response(output=None), "empty"),
    "response empty": ("openai responses", response(" "), "empty"),
    "response only a tool call": ("openai responses", response(output=CALLED), "empty"),
    "response failed": ("openai responses", response(status="failed", output=[]), "error_reply"),
    "message cut": ("anthropic", message("cut", "max_tokens"), "truncated"),
    "message at the end of the window": ("anthropic", message("cut", "model_context_window_exceeded"), "truncated"),
    "message refused": ("anthropic", message("", "refusal"), "filtered"),
    "message null": ("anthropic", {**message(), "content": None}, "empty"),
    "message empty": ("anthropic", {**message(), "content": []}, "empty"),
    "message only a tool call": ("anthropic", {**message(end="tool_use"), "content": TOOL}, "empty"),
    "candidate cut": ("gemini", candidate("cut", "MAX_TOKENS"), "truncated"),
    "candidate cut while thinking": ("gemini", {"candidates": [{"finishReason": "MAX_TOKENS"}]}, "truncated"),
    **{f"candidate {end}": ("gemini", candidate("", end), "filtered") for end in ("SAFETY", "RECITATION", "SPII")},
    "candidate broken": ("gemini", candidate("", "MALFORMED_FUNCTION_CALL"), "error_reply"),
    "prompt blocked": ("gemini", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "filtered"),
    "no candidate": ("gemini", {"candidates": []}, "empty"),
    "candidate null": ("gemini", {"candidates": [{"content": None, "finishReason": "STOP"}]}, "empty"),
    "candidate only a call": (
        "gemini",
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
        "empty",
    ),
}


@pytest.mark.parametrize(("name", "document", "reason"), REJECTED.values(), ids=REJECTED)
def test_answer_that_breaks_the_contract(name, document, reason):
    """An answer cut, filtered, refused, empty or null is a failure of its own reason."""
    failure = read(name, document)
    assert (failure.cls, failure.reason, failure.status) == (FailureClass.ANSWER, reason, 200)


ERRORS = {
    "openrouter, by its code": ("openrouter", {"code": 429, "message": "slow"}, FailureClass.PACE, "rate_limited"),
    "openrouter, credits": ("openrouter", {"code": 402, "message": "more"}, FailureClass.MONEY, "no_credit"),
    "response, rate limit": ("openai responses", {"code": "rate_limit_exceeded"}, FailureClass.PACE, "rate_limited"),
    "response, server": ("openai responses", {"code": "server_error"}, FailureClass.SERVER, "http_500"),
    "anthropic, overloaded": ("anthropic", {"type": "overloaded_error"}, FailureClass.SERVER, "overloaded"),
    "anthropic, money": ("anthropic", {"type": "billing_error"}, FailureClass.MONEY, "no_credit"),
    "gemini, by its status": ("gemini", {"status": "UNAVAILABLE"}, FailureClass.SERVER, "http_500"),
    "gemini, by its code": ("gemini", {"code": 503, "message": "no"}, FailureClass.SERVER, "http_503"),
    "ollama, words": ("ollama", "model runner has unexpectedly stopped", FailureClass.ANSWER, "error_reply"),
}


@pytest.mark.parametrize(("name", "error", "cls", "reason"), ERRORS.values(), ids=ERRORS)
def test_error_inside_a_200(name, error, cls, reason):
    """An error inside a 200 is classed by its own code, whatever else the document holds."""
    failure = read(name, {**SHAPES[name](), "error": error})
    assert (failure.cls, failure.reason, failure.status) == (cls, reason, 200)


OPENAI_PLAIN = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}
RESPONSE_PLAIN = {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19}
GEMINI_PLAIN = {"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19}

USAGES = {
    "openai": (
        OPENAI_PLAIN,
        {"prompt_tokens_details": {"cached_tokens": 8}},
        {"completion_tokens_details": {"reasoning_tokens": 5}},
    ),
    "openai responses": (
        RESPONSE_PLAIN,
        {"input_tokens_details": {"cached_tokens": 8}},
        {"output_tokens_details": {"reasoning_tokens": 5}},
    ),
    "anthropic": (
        {"input_tokens": 12, "output_tokens": 7},
        {"input_tokens": 1, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 8},
        {"output_tokens_details": {"thinking_tokens": 5}},
    ),
    "gemini": (
        GEMINI_PLAIN,
        {"cachedContentTokenCount": 8},
        {"candidatesTokenCount": 2, "thoughtsTokenCount": 5},
    ),
    **{
        name: (
            OPENAI_PLAIN,
            {"prompt_tokens_details": {"cached_tokens": 8}},
            {"completion_tokens_details": {"reasoning_tokens": 5}},
        )
        for name in ("openrouter", "ollama", "vllm")
    },
}
SPENT = Usage(input=12, output=7)


@pytest.mark.parametrize("name", USAGES)
def test_usage_plain(name):
    """What was read and written is counted."""
    plain, _, _ = USAGES[name]
    assert read(name, SHAPES[name](usage=plain)).usage == SPENT


@pytest.mark.parametrize("name", USAGES)
def test_usage_with_cached_tokens(name):
    """Input includes what came from a cache, and what was written to one."""
    plain, cached, _ = USAGES[name]
    assert read(name, SHAPES[name](usage=plain | cached)).usage == replace(SPENT, cached=8)


@pytest.mark.parametrize("name", USAGES)
def test_usage_with_reasoning(name):
    """Output includes what the model thought."""
    plain, _, reasoning = USAGES[name]
    assert read(name, SHAPES[name](usage=plain | reasoning)).usage == replace(SPENT, reasoning=5)


@pytest.mark.parametrize("name", USAGES)
def test_usage_of_a_failed_try(name):
    """A rejected answer was billed for all the same: truncated, reported as an error, and no JSON."""
    plain, cached, reasoning = USAGES[name]
    document = SHAPES[name](usage=plain | cached | reasoning)
    spent = replace(SPENT, cached=8, reasoning=5)
    ends = {
        "openai responses": {"incomplete_details": {"reason": "max_output_tokens"}},
        "anthropic": {"stop_reason": "max_tokens"},
        "gemini": {"candidates": [{"finishReason": "MAX_TOKENS"}]},
    }
    cut = document | ends.get(name, {"choices": [{"finish_reason": "length"}]})
    failures = [read(name, cut), read(name, document | {"error": {"code": 500}}), read(name, document, parse="json")]
    assert [failure.reason for failure in failures] == ["truncated", "http_500", "not_json"]
    assert all(isinstance(failure, Failure) and failure.usage == spent for failure in failures)


@pytest.mark.parametrize(
    ("cost", "nano"),
    [(0.00123, 1_230_000), (0, 0), (None, None), ("1", None), (True, None), (-1, None), (10**9, None)],
)
def test_cost_of_openrouter(cost, nano):
    """A cost that the API names is taken over in nano-dollars; what is no sensible number is none."""
    assert read("openrouter", chat(usage=OPENAI_PLAIN | {"cost": cost})).usage == replace(SPENT, cost=nano)


@pytest.mark.parametrize(
    ("preset", "path", "usage"),
    [
        ("anthropic", "/v1/messages", {"usage": {"input_tokens": 4, "cache_read_input_tokens": 8, "output_tokens": 7}}),
        ("gemini", "/v1beta/models/m:generateContent", {"usageMetadata": GEMINI_PLAIN}),
        ("openai", "/v1/responses", {"usage": RESPONSE_PLAIN}),
        ("http", "/anything", {"usage": OPENAI_PLAIN}),
        ("http", "/anything", {"usage": RESPONSE_PLAIN}),
    ],
)
def test_a_handlers_replies_are_counted_as_its_preset_says(preset, path, usage):
    """A handler's call is billed for what its reply names; an unknown API most likely has OpenAI's names."""
    found = Endpoint("https://h", preset=PRESETS[preset]).dialect_at(path).usage(usage)
    assert (found.input, found.output) == (12, 7)


def test_embeddings_of_gemini():
    """The vector is the answer at ``:embedContent``."""
    path, body = "/models/{model}:embedContent", {"model": "e", "content": {"parts": [{"text": "x"}]}}
    provider = make_provider("gemini", path=path, body=body)
    assert provider.read(reply({"embedding": {"values": [0.5, 1]}})).value == [0.5, 1]


PARTS = st.sampled_from(
    [
        *("error", "choices", "message", "content", "finish_reason", "usage", "output", "type", "text", "status"),
        *("incomplete_details", "reason", "stop_reason", "candidates", "parts", "finishReason", "usageMetadata"),
        *("promptFeedback", "blockReason", "promptTokenCount", "input_tokens"),
    ]
)
WORDS = st.sampled_from(["message", "text", "output_text", "refusal", "max_tokens", "SAFETY", "failed"])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PARTS, inner, max_size=4),
    max_leaves=10,
)
READERS = [made(name, **keys) for name in SHAPES for keys in ({}, {"parse": "json"})]


@given(st.sampled_from(READERS), JUNK)
@settings(deadline=None, max_examples=400)
def test_nothing_raises_whatever_the_document(reader, document):
    """Whatever a reply holds, it gives an outcome, and its tokens are numbers of 0 or more."""
    outcome = reader.read(reply(json.dumps(document).encode()))
    assert isinstance(outcome, Success | Failure)
    assert min(outcome.usage.input, outcome.usage.output, outcome.usage.cached, outcome.usage.reasoning) >= 0
