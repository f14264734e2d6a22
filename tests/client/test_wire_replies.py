"""Replies that arrive whole, and connections that are kept, counted and let go, over real sockets."""

import asyncio
import gc
import gzip
import tracemalloc
import zlib
from collections import Counter

import httpx
import pytest
from wire_servers import OK, ScriptedServer, answer_once, replying, saying, then

from rowcall.client import Client, Refused, ReplyTooLarge, TimedOut
from rowcall.client.reply_body import Body

pytestmark = pytest.mark.usefixtures("both_senders")

HEAD = b"HTTP/1.1 200 OK\r\n"
TEXT = b"caf\xc3\xa9 " * 1000


def sized(head: bytes, body: bytes) -> bytes:
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def chunks(body: bytes) -> bytes:
    return b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"


REPLIES = {
    "plain": (sized(HEAD, TEXT), 200, TEXT),
    "empty": (HEAD + b"content-length: 0\r\n\r\n", 200, b""),
    "empty gzip": (HEAD + b"content-encoding: gzip\r\ncontent-length: 0\r\n\r\n", 200, b""),
    "no length": (HEAD + b"\r\n" + TEXT, 200, TEXT),
    "chunked": (HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks(b"abc"), 200, b"abc"),
    "gzip": (sized(HEAD + b"content-encoding: gzip\r\n", gzip.compress(TEXT, mtime=0)), 200, TEXT),
    "gzip in chunks of one byte": (
        HEAD + b"content-encoding: GZIP\r\ntransfer-encoding: chunked\r\n\r\n" + chunks(gzip.compress(b"abc", mtime=0)),
        200,
        b"abc",
    ),
    "deflate": (sized(HEAD + b"content-encoding: deflate\r\n", zlib.compress(TEXT)), 200, TEXT),
    "deflate without a header": (
        sized(HEAD + b"content-encoding: deflate\r\n", zlib.compress(TEXT, wbits=-zlib.MAX_WBITS)),
        200,
        TEXT,
    ),
    "an unknown coding": (sized(HEAD + b"content-encoding: rot13\r\n", b"nop"), 200, b"nop"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "304 with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n", 304, b""),
    "after 100 and 103": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + sized(HEAD, b"x"),
        200,
        b"x",
    ),
    "a redirect": (b"HTTP/1.1 302 Found\r\nlocation: /else\r\ncontent-length: 0\r\n\r\n", 302, b""),
    "an error": (sized(b"HTTP/1.1 500 Oh\r\n", b"no"), 500, b"no"),
    "HTML": (sized(HEAD + b"content-type: text/html\r\n", b"<html>"), 200, b"<html>"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nold", 200, b"old"),
    "a switch of protocols": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", 101, b""),
    "a long header": (sized(HEAD + b"x: " + b"y" * 60_000 + b"\r\n", b"x"), 200, b"x"),
}


@pytest.mark.parametrize("case", REPLIES)
async def test_a_whole_reply_is_given_as_it_is(case, client):
    """Status and decoded body arrive, whatever the status and the framing, by exchange, send and stream."""
    raw, status, body = REPLIES[case]
    ends_with_connection = case in ("no length", "HTTP/1.0")
    async with ScriptedServer(saying(raw) if ends_with_connection else replying(raw)) as server:
        reply = await client.exchange(httpx.Request("GET", server.url))
        assert (reply.status, reply.body) == (status, body)
        assert reply.latency > 0
        response = await client.get(server.url)
        assert (response.status_code, response.content) == (status, body)
        assert response.elapsed.total_seconds() > 0
        async with client.stream("GET", server.url) as response:
            assert (response.status_code, await response.aread()) == (status, body)
        assert len(server.requests) == 3


async def test_head_has_no_body(client):
    """A HEAD ends with the head, whatever length it tells, and its connection is kept."""
    async with ScriptedServer(replying(HEAD + b"content-length: 99999999\r\n\r\n")) as server:
        for _ in range(2):
            assert (await client.exchange(httpx.Request("HEAD", server.url))).body == b""
        assert server.connections == 1


async def test_headers_of_a_reply(client):
    """Names are lower case, values of one name are joined, bytes outside ASCII are text, and none is a surrogate."""
    head = HEAD + b"X-A: 1\r\nx-a: 2\r\nX-Utf8: caf\xc3\xa9\r\nX-Latin: caf\xe9\r\n"
    async with ScriptedServer(replying(sized(head, b""))) as server:
        headers = (await client.exchange(httpx.Request("GET", server.url))).headers
    expected = {"x-a": "1, 2", "x-utf8": "café", "x-latin": "café", "content-length": "0"}
    assert headers == expected
    assert "".join(headers.values()).encode()


async def test_a_request_goes_out_as_httpx_made_it(client):
    """Path, query, headers and body reach the server byte by byte; credentials in the URL become a header."""
    async with ScriptedServer(replying(OK)) as server:
        request = httpx.Request(
            "PATCH",
            server.url.replace("//", "//user:p%40ss@") + "/a%2Fb/%2D%7e/../c?q=a%20b+c&q=%C3%A9&%27=%2d&&x#frag",
            headers=[("X-Two", "1"), ("X-Two", "2"), ("User-Agent", "mine"), (b"X-Raw", "é".encode())],
            content=b"\x00body",
        )
        await client.exchange(request)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    assert line == b"PATCH " + request.url.raw_path + b" HTTP/1.1"
    assert body == b"\x00body"
    for header in (b"X-Two: 1", b"X-Two: 2", b"User-Agent: mine", b"Content-Length: 5", "X-Raw: é".encode()):
        assert headers.count(header) == 1
    assert b"Authorization: Basic " + b"dXNlcjpwQHNz" in headers
    assert Counter(header.partition(b":")[0].lower() for header in headers)[b"host"] == 1
    assert not any(header.lower().startswith(b"content-type") for header in headers)


async def test_a_streamed_body_goes_out_in_chunks(client):
    """A body of unknown length and a multipart form both arrive."""

    async def parts():
        yield b"ab"
        yield b"c"

    async def read_chunks(talk):
        sent.append(await talk.reader.readuntil(b"0\r\n\r\n"))
        await talk.send(OK)

    sent = []
    async with ScriptedServer(read_chunks) as server:
        await client.exchange(httpx.Request("POST", server.url, content=parts()))
        assert sent[0].endswith(b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
    async with ScriptedServer(replying(OK)) as server:
        await client.post(server.url, files={"f": b"file"})
        assert b"file" in server.requests[0]


async def test_httpx_where_it_is_needed(client):
    """Auth, redirects, hooks and cookies work as in httpx, over the same wire."""
    moved = b"HTTP/1.1 302 Found\r\nlocation: /there\r\nset-cookie: a=1\r\ncontent-length: 0\r\n\r\n"
    seen = []
    async with ScriptedServer(replying(moved, OK)) as server:
        response = await client.get(server.url + "/here", follow_redirects=True, auth=("me", "pw"))
        assert (response.content, len(response.history)) == (b"ok", 1)
        await client.get(server.url.replace("//", "//me:pw@"))

        async def hook(request):
            seen.append(request.url.path)

        client.event_hooks = {"request": [hook]}
        await client.get(server.url + "/hooked")
    assert seen == ["/hooked"]
    assert [request.split(b" ")[1] for request in server.requests] == [b"/here", b"/there", b"/", b"/hooked"]
    assert all(b"Authorization: Basic bWU6cHc=" in request for request in server.requests[:3])
    assert b"a=1" in server.requests[1]


async def test_a_redirected_body_is_sent_again(client):
    """A 307 carries the same body to the new place, once."""
    moved = b"HTTP/1.1 307 Moved\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n"
    async with ScriptedServer(replying(moved, OK)) as server:
        await client.post(server.url + "/here", content=b'{"a":1}', follow_redirects=True)
    assert [request.rpartition(b"\r\n\r\n")[2] for request in server.requests] == [b'{"a":1}', b'{"a":1}']


async def test_a_cookie_is_kept_by_send_and_ignored_by_exchange(client):
    """A handler's client keeps cookies as httpx does; records share none."""
    async with ScriptedServer(replying(sized(HEAD + b"set-cookie: a=1\r\n", b""))) as server:
        await client.exchange(httpx.Request("GET", server.url))
        assert not client.cookies
        await client.get(server.url)
        assert client.cookies["a"] == "1"
        await client.exchange(httpx.Request("GET", server.url))
        await client.get(server.url)
    assert [b"cookie" in request.lower() for request in server.requests] == [False, False, False, True]


async def test_records_share_no_cookies(client):
    """What one exchange was told to remember, the next one does not say; a host name would be remembered."""
    async with ScriptedServer(replying(sized(HEAD + b"set-cookie: a=1\r\n", b""))) as server:
        for _ in range(2):
            await client.exchange(httpx.Request("GET", f"http://localhost:{server.port}/"))
    assert not any(b"cookie" in request.lower() for request in server.requests)


async def test_the_connect_timeout_ends_with_the_connection():
    """Once connected, a call has until its deadline, however short the connect timeout."""

    async def late(talk):
        await talk.request()
        await asyncio.sleep(0.4)
        await talk.send(OK)

    async with ScriptedServer(late) as server, Client(concurrency=1, connect_timeout=0.2) as client:
        assert (await client.exchange(httpx.Request("GET", server.url))).body == b"ok"


async def test_an_own_timeout_of_a_request_counts(client):
    """Httpx's ``timeout=`` is the deadline of the whole attempt, streamed or not."""
    async with ScriptedServer(saying(HEAD + b"content-length: 9\r\n\r\nx", "forever")) as server:
        with pytest.raises(TimedOut, match=r"0\.1 s"):
            await client.get(server.url, timeout=0.1)
        async with client.stream("GET", server.url, timeout=0.1) as response:
            with pytest.raises(TimedOut):
                await response.aread()


@pytest.mark.parametrize("length", [2**20, 2**20 + 1])
async def test_a_large_reply_up_to_the_limit(length, client):
    """A body of exactly the limit is whole, one byte more is too large."""
    async with ScriptedServer(replying(sized(HEAD, bytes(length)))) as server:
        call = client.exchange(httpx.Request("GET", server.url))
        if length > 2**20:
            with pytest.raises(ReplyTooLarge):
                await call
        else:
            assert len((await call).body) == length


@pytest.mark.parametrize("case", ["bomb", "endless"])
async def test_a_large_reply_stays_bounded_in_memory(case, client):
    """A bomb of 1,000:1 and an endless body take no more memory than the limit and some pieces."""
    bomb = sized(HEAD + b"content-encoding: gzip\r\n", gzip.compress(bytes(2**26), mtime=0))
    piece = bytes(2**16)

    async def endless(talk):
        await saying(HEAD + b"\r\n", "stay")(talk)
        while not talk.writer.is_closing():
            await talk.send(piece)

    async with ScriptedServer(saying(bomb, "forever") if case == "bomb" else endless) as server:
        tracemalloc.start()
        with pytest.raises(ReplyTooLarge):
            await client.exchange(httpx.Request("GET", server.url))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 6 * 2**20


async def test_connections_are_reused():
    """1,000 exchanges over a pool of 50 make 50 connections, and each request arrives once."""
    async with ScriptedServer(replying(OK)) as server, Client(concurrency=50) as client:
        replies = await asyncio.gather(
            *(client.exchange(httpx.Request("GET", f"{server.url}/{number}")) for number in range(1000))
        )
        assert {reply.status for reply in replies} == {200}
        assert server.connections == 50
        paths = Counter(request.split(b" ")[1] for request in server.requests)
        assert len(paths) == 1000


async def test_a_kept_connection_does_not_hold_on_to_replies(client):
    """Nothing of a reply stays with the connection it came by."""

    async def late_bodies(talk):
        while True:
            await talk.request()
            await talk.send(HEAD + b"content-length: 2\r\n\r\n")
            for _ in range(5):
                await asyncio.sleep(0)
            await talk.send(b"ok")

    async with ScriptedServer(late_bodies) as server:
        for _ in range(9):
            await client.exchange(httpx.Request("GET", server.url))
        assert server.connections == 1
        gc.collect()
        assert not [thing for thing in gc.get_objects() if isinstance(thing, Body)]


async def test_300_at_once_are_300():
    """As many requests are in flight as the client was made for."""
    everybody = asyncio.Barrier(300)

    async def wait_for_all(talk):
        await talk.request()
        await everybody.wait()
        await talk.send(OK)

    async with ScriptedServer(wait_for_all) as server, Client(concurrency=300, timeout=4.0) as client:
        await asyncio.gather(*(client.exchange(httpx.Request("GET", server.url)) for _ in range(300)))


async def test_a_fresh_exchange_uses_a_connection_of_its_own(client):
    """A probe neither takes a kept connection nor leaves one, and says so to the server."""
    async with ScriptedServer(replying(OK)) as server:
        await client.exchange(httpx.Request("GET", server.url))
        for _ in range(2):
            await client.exchange(httpx.Request("GET", server.url), fresh=True)
        await client.exchange(httpx.Request("GET", server.url))
        assert server.connections == 3
        await server.talks[1].writer.wait_closed()
    assert [b"Connection: close" in request for request in server.requests] == [False, True, True, False]


@pytest.mark.parametrize("act", ["mute", "half a head", "half a body"])
async def test_cancelled_exchanges_leave_the_pool_sound(act):
    """Wherever an exchange is cancelled, its connection is not used again and its place is free."""
    everybody = asyncio.Barrier(5)
    begin = {"mute": b"", "half a head": HEAD, "half a body": HEAD + b"content-length: 9\r\n\r\nx"}[act]

    async def stall_or_answer(talk):
        while True:
            if b"/good" not in await talk.request():
                await saying_only(talk)
            await everybody.wait()
            await talk.send(OK)

    async def saying_only(talk):
        await talk.send(begin)
        await talk.forever()
        raise ConnectionResetError

    async with ScriptedServer(stall_or_answer) as server, Client(concurrency=5, timeout=4.0) as client:
        for turns in range(30):
            calls = [
                asyncio.create_task(client.exchange(httpx.Request("POST", server.url, content=b"x"))) for _ in "1234567"
            ]
            for _ in range(turns):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(result) for result in results} == {asyncio.CancelledError}
        good = [client.exchange(httpx.Request("GET", f"{server.url}/good")) for _ in range(5)]
        assert [reply.body for reply in await asyncio.gather(*good)] == [b"ok"] * 5


async def test_closing_leaves_no_task_and_no_connection():
    """After the client is closed no task runs and the server sees the end of every connection."""
    async with ScriptedServer(then(answer_once, saying(b"", "forever"))) as server:
        before = asyncio.all_tasks()
        client = Client(concurrency=9)
        await asyncio.gather(*(client.exchange(httpx.Request("GET", server.url)) for _ in range(9)))
        await client.aclose()
        for talk in server.talks:
            await talk.writer.wait_closed()
        ours = {task for task in asyncio.all_tasks() - before if "_play" not in repr(task)}
        assert ours == set()
        for call in (client.get(server.url), client.exchange(httpx.Request("GET", server.url))):
            with pytest.raises(RuntimeError):
                await call


async def test_a_client_works_again_after_a_failure(client):
    """A refused call leaves nothing behind that the next one could meet."""
    async with ScriptedServer(replying(OK)) as server:
        port = server.port
    with pytest.raises(Refused):
        await client.exchange(httpx.Request("GET", f"http://127.0.0.1:{port}"))
    async with ScriptedServer(replying(OK)) as server:
        assert (await client.exchange(httpx.Request("GET", server.url))).status == 200
