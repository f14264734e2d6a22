"""Requests whose bodies are not yet all sent when the reply comes, over real sockets."""

import asyncio

import httpx
import pytest
from wire_servers import OK, ScriptedServer, replying

from rowcall.client import WireError

pytestmark = pytest.mark.usefixtures("both_senders")

REFUSED = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"


async def refuse_unread(talk):
    """Answer as soon as the head is there, and leave the body where it is."""
    await talk.reader.readuntil(b"\r\n\r\n")
    await talk.send(REFUSED)
    await asyncio.Event().wait()


async def test_a_connection_with_an_unsent_body_is_not_kept(client):
    """A large body that was refused unread would be taken for the next request."""
    async with ScriptedServer(refuse_unread, replying(OK)) as server:
        large = httpx.Request("POST", server.url, content=bytes(2**24))
        assert (await client.exchange(large)).status == 413
        assert (await client.exchange(httpx.Request("GET", server.url))).status == 200
        assert server.connections == 2


async def test_a_streamed_body_ends_with_the_reply(client):
    """Nobody goes on making a body that was refused; its connection is not kept."""
    made = []

    async def endless():
        try:
            while True:
                made.append(1)
                yield bytes(2**16)
        finally:
            made.append("ended")

    async with ScriptedServer(refuse_unread, replying(OK)) as server:
        assert (await client.exchange(httpx.Request("POST", server.url, content=endless()))).status == 413
        await asyncio.sleep(0)
        assert (await client.exchange(httpx.Request("GET", server.url))).status == 200
        assert server.connections == 2
    assert made[-1] == "ended"


async def test_a_streamed_body_of_a_known_length(client):
    """It goes out as it is, without chunks; an empty piece is not its end."""

    async def parts():
        yield b"ab"
        yield b""
        yield b"c"

    async with ScriptedServer(replying(OK)) as server:
        headers = {"Content-Length": "3"}
        await client.exchange(httpx.Request("POST", server.url, content=parts(), headers=headers))
        assert server.requests[0].endswith(b"\r\n\r\nabc")
        assert b"chunked" not in server.requests[0]


async def test_a_body_that_cannot_be_made(client):
    """What breaks while a body is made ends the attempt at once."""

    async def broken():
        yield b"ab"
        raise KeyError("no more")

    async with ScriptedServer(replying(OK)) as server:
        with pytest.raises(WireError):
            await client.exchange(httpx.Request("POST", server.url, content=broken()))


@pytest.mark.parametrize(("method", "said"), [("POST", True), ("GET", False)])
async def test_no_body(method, said, client):
    """That there is none is said where a body is usual (RFC 9110, 8.6), once."""
    async with ScriptedServer(replying(OK)) as server:
        await client.exchange(httpx.Request(method, server.url))
    assert server.requests[0].lower().count(b"content-length: 0\r\n") == said


async def test_a_length_that_does_not_fit_is_not_said(client):
    """The length that goes out is that of the body, whatever a header claims."""
    async with ScriptedServer(replying(OK)) as server:
        request = httpx.Request("POST", server.url, content=b"abc", headers={"content-length": "2"})
        assert (await client.exchange(request)).status == 200
        assert (await client.exchange(httpx.Request("GET", server.url))).status == 200
        assert server.connections == 1
    assert server.requests[0].endswith(b"abc")
