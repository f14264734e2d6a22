"""What a server says on a kept connection that nobody asked for, over real sockets."""

import asyncio

import httpx
import pytest
from wire_servers import OK, ScriptedServer, replying

pytestmark = pytest.mark.usefixtures("both_senders")

UNASKED = {
    "a whole reply": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "an announcement": b"HTTP/1.1 100 Continue\r\n\r\n",
    "more than was announced": b"ok",
    "a reply that is still coming": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\not",
}


@pytest.mark.parametrize("unasked", UNASKED.values(), ids=UNASKED)
async def test_what_came_unasked_is_no_reply(client, unasked):
    """A reply that came before its request is another's: the connection is given up."""
    heard = asyncio.Event()

    async def tell_more(talk):
        await talk.request()
        await talk.send(OK)
        await heard.wait()
        await talk.send(unasked)
        await talk.forever()

    async with ScriptedServer(tell_more, replying(OK)) as server:
        await client.exchange(httpx.Request("GET", server.url))
        heard.set()
        await asyncio.sleep(0.05)
        reply = await client.exchange(httpx.Request("GET", server.url))
        assert reply.body == b"ok"
        assert server.connections == 2
