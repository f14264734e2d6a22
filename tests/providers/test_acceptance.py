"""What is held against a reply, and what a call that asks for a longer answer carries."""

import json

import pytest
from providerkit import make_provider

from rowcall.model import json_values
from rowcall.model.errors import ConfigError
from rowcall.model.outcome import Failure, Reply
from rowcall.providers import CallContext

LONGER = CallContext("k", longer=True)


def read(document, **keys):
    body = document if isinstance(document, bytes) else json_values.dumps(document)
    return make_provider("http", base_url="https://h", **keys).read(Reply(200, {}, body, 0.1))


@pytest.mark.parametrize(
    ("document", "holds"),
    [
        ({"status": "ok"}, True),
        ({"status": "error"}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_assertion(document, holds):
    """An expression must be true of the whole reply."""
    outcome = read(document, assertions=["status == 'ok'"])
    assert isinstance(outcome, Failure) is not holds
    if not holds:
        assert (outcome.reason, outcome.message) == ("assertion", "status == 'ok' does not hold")


@pytest.mark.parametrize(("value", "holds"), [(0, True), (7, True), ("", False), ([], False), ({}, False)])
def test_an_assertion_is_as_true_as_jmespath_says(value, holds):
    """What is empty is false, and 0 is true."""
    assert isinstance(read({"a": value}, assertions=["a"]), Failure) is not holds


def test_every_assertion_counts_and_comes_before_the_answer():
    """The first that does not hold is named, also where there is no answer at all."""
    keys = {"assertions": ["a == `1`", "b == `2`"], "extract": "c"}
    assert read({"a": 1, "b": 2, "c": 3}, **keys).value == 3
    assert read({"a": 1, "b": 3}, **keys).message == "b == `2` does not hold"
    assert read({"a": 1, "b": 2}, **keys).reason == "empty"


def test_an_assertion_that_cannot_be_applied():
    """A function that does not take such a value is a failure of its own reason, not a crash."""
    assert read({"a": 1}, assertions=["length(a) > `1`"]).reason == "extract_failed"


def test_an_assertion_that_is_none():
    """What is no JMESPath is refused at the start."""
    with pytest.raises(ConfigError, match=r"response\.assert"):
        make_provider("http", base_url="https://h", assertions=["a =="])


CHAT = {"model": "m", "messages": []}
LIMITS = {
    "openai, by either name": ("openai", None, {**CHAT, "max_tokens": 5}, "max_tokens"),
    "openai, by its own": ("openai", None, {**CHAT, "max_completion_tokens": 5}, "max_completion_tokens"),
    "openai, without": ("openai", None, CHAT, "max_completion_tokens"),
    "responses": ("openai", "/responses", {"model": "m", "input": "x"}, "max_output_tokens"),
    "openrouter": ("openrouter", None, CHAT, "max_tokens"),
    "ollama": ("ollama", None, CHAT, "max_tokens"),
    "vllm": ("vllm", None, CHAT, "max_tokens"),
    "anthropic": ("anthropic", None, {**CHAT, "max_tokens": 5}, "max_tokens"),
    "gemini": (
        "gemini",
        None,
        {"model": "m", "contents": [], "generationConfig": {"temperature": 0, "maxOutputTokens": 5}},
        "generationConfig.maxOutputTokens",
    ),
    "gemini, without": ("gemini", None, {"model": "m", "contents": []}, "generationConfig.maxOutputTokens"),
}


@pytest.mark.parametrize(("preset", "path", "body", "place"), LIMITS.values(), ids=LIMITS)
def test_a_longer_answer_is_asked_for(preset, path, body, place):
    """The larger limit stands where the preset has its own, and nothing else changes; other calls do not have it."""
    provider = make_provider(preset, path=path, body=body, longer=2000)
    plain = json.loads(provider.build({}, CallContext("k")).content)
    longer = json.loads(provider.build({}, LONGER).content)
    outer, _, inner = place.partition(".")
    expected = {**plain.get(outer, {}), inner: 2000} if inner else 2000
    assert longer == {**plain, outer: expected}
    assert "2000" not in json.dumps(plain)
    assert json.loads(provider.build({}, CallContext("k")).content) == plain


def test_a_longer_answer_without_a_limit():
    """Without on_truncated nothing changes."""
    provider = make_provider("openai", body={**CHAT, "max_tokens": 5})
    assert provider.build({}, LONGER).content == provider.build({}, CallContext("k")).content


@pytest.mark.parametrize(("preset", "path"), [("http", None), ("openai", "/embeddings")])
def test_a_longer_answer_where_nothing_is_limited(preset, path):
    """Calls whose limit nobody knows cannot have a larger one."""
    with pytest.raises(ConfigError, match=r"response\.on_truncated"):
        make_provider(preset, base_url="https://h", path=path, body=CHAT, longer=5)
