"""What [group] may stand beside."""

from __future__ import annotations

import pytest
from providerkit import make_provider

from rowcall.config import Secret
from rowcall.model.errors import ConfigError
from rowcall.model.outcome import Failure, Reply
from rowcall.providers import CallContext
from rowcall.providers.group_requests import Grouping

BODY = {"model": "m", "input": "{{ row.text }}"}
KEYS = {"body": BODY, "path": "/embeddings", "base_url": "http://h/v1"}


def grouping(preset="openai", **keys):
    keys = KEYS | keys
    return Grouping(make_provider(preset, **keys), keys["body"])


@pytest.mark.parametrize("preset", ["openai", "openrouter", "ollama", "vllm", "mock"])
def test_who_can(preset):
    """Embeddings of all that speak like OpenAI take many texts."""
    group = grouping(preset)
    assert group.text_of(group.provider.build({"text": "a"}, CallContext("k"))) == "a"


@pytest.mark.parametrize(
    ("preset", "keys", "where"),
    [
        ("openai", {"path": "/chat/completions"}, "group.size"),
        ("openai", {"path": ""}, "group.size"),
        ("http", {}, "group.size"),
        ("openai", {"body": {"model": "m"}}, "request.body.input"),
        ("openai", {"body": BODY | {"input": "the same"}}, "request.body.input"),
        ("openai", {"body": BODY | {"input": ["{{ row.text }}"]}}, "request.body.input"),
        ("openai", {"body": BODY | {"user": "{{ row.user }}"}}, "request.body"),
        ("openai", {"params": {"user": "{{ row.user }}"}}, "request.params"),
        ("openai", {"request_headers": {"X-User": "{{ row.user }}"}}, "request.headers.X-User"),
        ("openai", {"request_headers": {"X-Row": "{{ row }}"}}, "request.headers.X-Row"),
    ],
)
def test_who_cannot(preset, keys, where):
    """Whatever takes no list, or differs between records beside the text, is refused with its place and a remedy."""
    with pytest.raises(ConfigError) as refused:
        grouping(preset, **keys)
    [problem] = refused.value.problems
    assert problem.where == where
    assert problem.remedy


def test_the_request():
    """It is the single one with a list of texts, and a key made of those of its records."""
    group = grouping(request_headers={"Idempotency-Key": "{{ call.key }}", "X-Team": "a"}, api_key="sk-1")
    request = group.build({"text": "a"}, ["a", "b"], ["k1", "k2"])
    single = group.provider.build({"text": "a"}, CallContext("k1"))
    assert request.content == b'{"model":"m","input":["a","b"]}'
    assert (request.method, request.url) == (single.method, single.url)
    assert request.headers["content-length"] == str(len(request.content))
    names = set(single.headers) - {"content-length", "idempotency-key"}
    assert {name: request.headers[name] for name in names} == {name: single.headers[name] for name in names}
    other = group.build({"text": "a"}, ["a", "b"], ["k1", "k3"])
    assert request.headers["idempotency-key"] not in ("k1", "k2", other.headers["idempotency-key"])


def test_what_is_no_text_goes_by_itself():
    """Lists, numbers and null, as a template that is one expression gives them, stay as they are."""
    group = grouping()
    for value in (["a", "b"], 7, None):
        assert group.text_of(group.provider.build({"text": value}, CallContext("k"))) is None


def test_a_secret_is_not_repeated():
    """A failure of one record in a group shows no key that the reply gives back."""
    group = grouping(api_key=Secret("KEY", "sk-secret"))
    body = b'{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":null}],"note":"sk-secret"}'
    first, second = group.read(Reply(200, {}, body, 0.1), 2).value
    assert first.value == [1]
    assert isinstance(second, Failure)
    assert "secret" not in repr(second)


def test_a_status_that_is_an_answer_is_everybodys():
    """Where a status is an answer without a value, each record has it."""
    group = grouping(answer=["404"])
    assert [each.value for each in group.read(Reply(404, {}, b"", 0.1), 3).value] == [None] * 3
