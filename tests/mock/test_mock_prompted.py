"""The mock in the words of other APIs: what is wrong is refused, what was read and written is counted."""

import pytest
from aiohttp import ClientSession

from rowcall.mock import MockAPI

USER = {"role": "user", "content": "a good film"}
RIGHT = {
    "/v1/responses": {"model": "m", "input": "a good film", "instructions": "Judge."},
    "/v1/messages": {"model": "m", "max_tokens": 50, "system": "Judge.", "messages": [USER]},
    "/v1beta/models/m:generateContent": {"contents": [{"parts": [{"text": "a good film"}]}]},
}
WRONG = {
    "/v1/responses": [{"input": "x"}, {"model": "m"}, {"model": "m", "input": 7}, {"model": "m", "input": ["x"]}, []],
    "/v1/messages": [{"model": "m", "messages": [USER]}, {"model": "m", "max_tokens": 5}, {"max_tokens": 5}],
    "/v1beta/models/m:generateContent": [{}, {"contents": "x"}, {"contents": [{}]}, {"model": "m", "contents": []}],
}


@pytest.fixture
async def post():
    async with MockAPI(latency=0.001) as api, ClientSession() as session:

        async def post(path, body):
            async with session.post(f"{api.origin}{path}", json=body) as reply:
                return reply.status, await reply.json()

        yield post


@pytest.mark.parametrize("path", RIGHT)
async def test_what_is_right_is_judged(post, path):
    """The judgement of the user's text stands somewhere in the answer."""
    status, document = await post(path, RIGHT[path])
    assert status == 200
    assert '\\"positive\\"' in str(document) or '"positive"' in str(document)


@pytest.mark.parametrize(("path", "body"), [(path, body) for path, bodies in WRONG.items() for body in bodies])
async def test_what_is_wrong_is_refused(post, path, body):
    """A body that the API would not take is refused with 400 and a message."""
    status, document = await post(path, body)
    assert status == 400
    assert document["error"]["message"]


async def test_a_cached_prompt_is_counted_apart(post):
    """Anthropic's input tokens leave out what came from the cache: together they are what was read."""
    _, document = await post("/v1/messages", RIGHT["/v1/messages"])
    usage = document["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == -(-len("Judge.a good film") // 4)


async def test_embeddings_are_counted(post):
    """Each text has its vector, and what was read is counted."""
    status, document = await post("/v1/embeddings", {"model": "m", "input": ["good", "bad film"]})
    assert (status, len(document["data"])) == (200, 2)
    assert document["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
