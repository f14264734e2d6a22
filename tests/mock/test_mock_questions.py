from __future__ import annotations

import json

import pytest

from rowcall.mock import MockAPI
from rowcall.mock.sentiment import sentiment


def chat(text, **more):
    return {"model": "small", "messages": [{"role": "user", "content": text}], **more}


@pytest.fixture
async def api():
    async with MockAPI(latency=0) as api:
        yield api


async def ask(client, api, body):
    async with client.post(f"{api.url}/chat/completions", json=body) as reply:
        return reply.status, await reply.json(), reply.headers


async def test_chat_judges_the_text(client, api):
    """A chat answer is computed from the last user message, as JSON text in OpenAI's envelope."""
    text = "i love this player, it is great"
    messages = [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "awful"},
        {"role": "assistant", "content": "negative"},
        {"role": "user", "content": text},
    ]
    status, reply, headers = await ask(client, api, {"model": "small", "messages": messages})
    (choice,) = reply["choices"]
    assert status == 200
    assert json.loads(choice["message"]["content"]) == {"label": "positive", "score": sentiment(text).score}
    assert choice["finish_reason"] == "stop"
    assert reply["model"] == "small"
    assert headers["x-request-id"] == api.calls[0].id
    assert api.calls_of(text) == api.calls


async def test_content_in_parts(client, api):
    """A message in parts is read like the same words in one string."""
    parts = [{"type": "text", "text": "a terrible"}, {"type": "image_url"}, {"type": "text", "text": " toy"}]
    _, reply, _ = await ask(client, api, chat(parts))
    assert json.loads(reply["choices"][0]["message"]["content"])["label"] == "negative"
    assert api.calls[0].text == "a terrible toy"


async def test_usage(client, api):
    """Usage counts a token for every four characters begun, of all messages and of the answer."""
    _, reply, _ = await ask(client, api, chat("x" * 401))
    content = reply["choices"][0]["message"]["content"]
    assert reply["usage"]["prompt_tokens"] == 101
    assert reply["usage"]["completion_tokens"] == -(-len(content) // 4)
    assert reply["usage"]["total_tokens"] == 101 + reply["usage"]["completion_tokens"]


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_truncation(client, api, name):
    """An answer longer than the limit is cut off there and says so."""
    _, reply, _ = await ask(client, api, chat("good", **{name: 3}))
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["content"]) == 12
    assert reply["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({}, "model"),
        ({"model": 3, "messages": []}, "model"),
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": ["hi"]}, "messages[0]"),
        ({"model": "m", "messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"model": "m", "messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        (chat("hi", max_tokens=0), "max_tokens"),
        (chat("hi", max_tokens="many"), "max_tokens"),
    ],
)
async def test_malformed_chat(client, api, body, param):
    """A malformed request gets 400 in OpenAI's shape, naming the parameter."""
    status, reply, _ = await ask(client, api, body)
    assert status == 400
    assert set(reply["error"]) == {"message", "type", "param", "code"}
    assert reply["error"]["type"] == "invalid_request_error"
    assert reply["error"]["param"] == param


async def test_body_that_is_no_json(client, api):
    """A body that is no JSON gets 400 in OpenAI's shape."""
    async with client.post(f"{api.url}/chat/completions", data=b"{") as reply:
        assert reply.status == 400
        assert (await reply.json())["error"]["code"] == "invalid_json"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "unknown_url"),
        ("POST", "/chat/completions", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, "method_not_supported"),
        ("POST", "/v1/words/good", 405, "method_not_supported"),
        ("DELETE", "/v1/sentiment", 405, "method_not_supported"),
        ("GET", "/v1/words/", 404, "unknown_url"),
        ("GET", "/v1/words/zzz", 404, "unknown_word"),
    ],
)
async def test_wrong_address(client, api, method, path, status, code):
    """An unknown path, method or word gets its status in OpenAI's shape."""
    async with client.request(method, f"{api.origin}{path}") as reply:
        assert reply.status == status
        assert (await reply.json())["error"]["code"] == code


async def test_word(client, api):
    """A word is looked up by GET, other forms of it too, whatever its spelling in the URL."""
    async with client.get(f"{api.url}/words/l%6Fved") as reply:
        assert await reply.json() == {"word": "loved", "kind": "valence", "entry": "love", "valence": 2.8}
    assert api.calls[0].text == "loved"


async def test_sentence(client, api):
    """A sentence is judged by GET, and a missing one is a 400."""
    text = "50% caf\u00e9 & great + cheap?"
    async with client.get(f"{api.url}/sentiment", params={"text": text}) as reply:
        judged = sentiment(text)
        assert await reply.json() == {"text": text, "label": judged.label, "score": judged.score}
    async with client.get(f"{api.url}/sentiment") as reply:
        assert reply.status == 400


async def test_api_key(client):
    """With a key required, another one or none gets 401 in OpenAI's shape, which does not repeat what was sent."""
    async with MockAPI(latency=0, api_key="right") as api:
        for sent, status in [
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Bearer right"}, 200),
        ]:
            async with client.get(f"{api.url}/words/good", headers=sent) as reply:
                assert reply.status == status
                assert "wrong" not in await reply.text()
        assert "right" not in repr(api.calls)


async def test_hostile_text(client, api):
    """Any text in a chat or in a URL reaches the record of calls unchanged."""
    text = 'NUL\x00 \u202e "quotes" \\ \n\r\t {{ row }} <b> \U0001f600'
    await ask(client, api, chat(text))
    async with client.get(f"{api.url}/sentiment", params={"text": text}):
        pass
    assert [call.text for call in api.calls] == [text, text]
