"""Each way in which a call can break on the wire, over real sockets."""

import asyncio
import gzip
import re
import socket
import subprocess
import sys
import textwrap
import zlib

import httpx
import pytest
from wire_servers import OK, ScriptedServer, answer_once, replying, saying, then

from rowcall import client as wire
from rowcall.client import Client, failure_of, transport
from rowcall.model.outcome import FailureClass

pytestmark = pytest.mark.usefixtures("both_senders")

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
GZIP = HEAD + b"content-encoding: gzip\r\n"
SHORT = b"x" * 20


def sized(head: bytes, body: bytes) -> bytes:
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


async def dripping(talk):
    """Send a byte every 20 ms, without end."""
    await talk.request()
    await talk.send(HEAD + b"content-length: 100000\r\n\r\n")
    while not talk.writer.is_closing():
        await talk.send(b"x")
        await asyncio.sleep(0.02)


async def dripping_head(talk):
    """Send one header after the other, without end."""
    await talk.request()
    await talk.send(HEAD)
    while not talk.writer.is_closing():
        await talk.send(b"a: b\r\n")
        await asyncio.sleep(0.02)


def later(begin, rest):
    """Send the rest of a reply once the client waits for it."""

    async def act(talk):
        await saying(begin, "stay")(talk)
        await turns(9)
        await talk.send(rest)
        await talk.forever()

    return act


async def turns(number):
    """Let the event loop look at its sockets."""
    for _ in range(number):
        await asyncio.sleep(0)


async def leaving_unread(talk):
    """Close while the request lies unread, which makes an RST."""
    await talk.reader.readexactly(1)
    talk.reset()


BROKEN = {
    "reset before the reply": (saying(b"", "reset"), wire.Reset),
    "reset before the request was read": (leaving_unread, wire.Reset),
    "closed before the reply": (saying(b""), wire.ClosedEarly),
    "closed inside the status line": (saying(b"HTTP/1.1 20"), wire.ClosedEarly),
    "closed inside the headers": (saying(HEAD + b"content-le"), wire.ClosedEarly),
    "closed after a 103": (saying(b"HTTP/1.1 103 Early Hints\r\n\r\n"), wire.ClosedEarly),
    "reset inside a sized body": (saying(HEAD + b"content-length: 99\r\n\r\nxx", "reset"), wire.BodyCut),
    "reset inside a chunked body": (saying(CHUNKED + b"5\r\nxx", "reset"), wire.BodyCut),
    "reset between chunks": (saying(CHUNKED + b"2\r\nxx\r\n", "reset"), wire.BodyCut),
    "reset inside a body without a length": (saying(HEAD + b"\r\nxx", "reset"), wire.BodyCut),
    "closed inside a sized body": (saying(HEAD + b"content-length: 99\r\n\r\nxx"), wire.BodyCut),
    "closed before a sized body": (saying(HEAD + b"content-length: 99\r\n\r\n"), wire.BodyCut),
    "closed inside a chunk": (saying(CHUNKED + b"5\r\nxx"), wire.BodyCut),
    "closed between chunks": (saying(CHUNKED + b"2\r\nxx\r\n"), wire.BodyCut),
    "closed inside a gzip body": (
        saying(GZIP + b"content-length: 99\r\n\r\n" + gzip.compress(SHORT, mtime=0)),
        wire.BodyCut,
    ),
    "garbled status line": (saying(b"WHAT IS THIS\r\n\r\n"), wire.Garbled),
    "an HTTP/2 greeting": (saying(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18), wire.Garbled),
    "header without a colon": (saying(HEAD + b"nonsense\r\n\r\n"), wire.Garbled),
    "two lengths": (saying(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nxxx"), wire.Garbled),
    "bad chunk size": (saying(CHUNKED + b"zz\r\nxx\r\n0\r\n\r\n"), wire.Garbled),
    "bad chunk size later": (saying(CHUNKED + b"2\r\nxx\r\nzz\r\nxx\r\n0\r\n\r\n", "forever"), wire.Garbled),
    "bad chunk size in a later packet": (later(CHUNKED + b"2\r\nxx\r\n", b"zz\r\n"), wire.Garbled),
    "chunk without its end": (later(CHUNKED + b"2\r\nxx\r\n", b"2\r\nxxxx"), wire.Garbled),
    "bad gzip": (saying(sized(GZIP, b"this is no gzip"), "forever"), wire.Garbled),
    "gzip with a wrong checksum": (
        saying(sized(GZIP, gzip.compress(SHORT, mtime=0)[:-8] + b"\0" * 8), "forever"),
        wire.Garbled,
    ),
    "gzip without its end": (saying(sized(GZIP, gzip.compress(SHORT, mtime=0)[:-9]), "forever"), wire.Garbled),
    "bad deflate": (saying(sized(HEAD + b"content-encoding: deflate\r\n", b"\xff\xff"), "forever"), wire.Garbled),
    "gzip bomb": (saying(sized(GZIP, gzip.compress(bytes(2**24), mtime=0)), "forever"), wire.ReplyTooLarge),
    "body too large": (saying(sized(HEAD, bytes(2**20 + 1)), "forever"), wire.ReplyTooLarge),
    "endless body": (saying(HEAD + b"\r\n" + bytes(2**20 + 1), "forever"), wire.ReplyTooLarge),
    "no answer": (saying(b"", "forever"), wire.TimedOut),
    "no body": (saying(HEAD + b"content-length: 2\r\n\r\n", "forever"), wire.TimedOut),
    "slow drip": (dripping, wire.TimedOut),
    "slow drip of headers": (dripping_head, wire.TimedOut),
}

EXPECTED = {
    wire.Refused: (FailureClass.NOT_SENT, "refused", httpx.ConnectError),
    wire.NameNotFound: (FailureClass.NOT_SENT, "name_not_found", httpx.ConnectError),
    wire.NoRoute: (FailureClass.NOT_SENT, "no_route", httpx.ConnectError),
    wire.TooManyFiles: (FailureClass.NOT_SENT, "too_many_files", httpx.ConnectError),
    wire.CannotConnect: (FailureClass.NOT_SENT, "cannot_connect", httpx.ConnectError),
    wire.ConnectBroken: (FailureClass.NOT_SENT, "connect_broken", httpx.ConnectError),
    wire.ConnectTimedOut: (FailureClass.NOT_SENT, "connect_timeout", httpx.ConnectTimeout),
    wire.PoolTimedOut: (FailureClass.NOT_SENT, "pool_timeout", httpx.PoolTimeout),
    wire.ProxyAuth: (FailureClass.SETUP, "proxy_auth", httpx.ProxyError),
    wire.ProxyRefused: (FailureClass.SETUP, "proxy_refused", httpx.ProxyError),
    wire.ProxyFailed: (FailureClass.NOT_SENT, "proxy_failed", httpx.ProxyError),
    wire.TLSUntrusted: (FailureClass.SETUP, "tls_untrusted", httpx.ConnectError),
    wire.TLSExpired: (FailureClass.SETUP, "tls_expired", httpx.ConnectError),
    wire.TLSWrongHost: (FailureClass.SETUP, "tls_wrong_host", httpx.ConnectError),
    wire.TLSFailed: (FailureClass.SETUP, "tls_failed", httpx.ConnectError),
    wire.StaleConnection: (FailureClass.REUSED, "stale_connection", httpx.RemoteProtocolError),
    wire.Reset: (FailureClass.MAYBE_SENT, "reset", httpx.ReadError),
    wire.ClosedEarly: (FailureClass.MAYBE_SENT, "closed_early", httpx.RemoteProtocolError),
    wire.BodyCut: (FailureClass.MAYBE_SENT, "body_cut", httpx.ReadError),
    wire.Garbled: (FailureClass.MAYBE_SENT, "garbled", httpx.RemoteProtocolError),
    wire.TimedOut: (FailureClass.MAYBE_SENT, "timeout", httpx.ReadTimeout),
    wire.ReplyTooLarge: (FailureClass.RECORD, "reply_too_large", httpx.ReadError),
    wire.Unsendable: (FailureClass.RECORD, "unsendable", httpx.LocalProtocolError),
}


def secret_request(url: str, method: str = "POST", body: bytes = b"{}") -> httpx.Request:
    return httpx.Request(method, f"{url}/v1/x?key=SECRET", headers={"authorization": "Bearer SECRET"}, content=body)


def check(error: wire.WireError, kind: type[wire.WireError], place: str) -> None:
    """The class is exact, its message one line that names the place and no secret."""
    assert type(error) is kind, repr(error)
    cls, reason, public = EXPECTED[kind]
    failure = failure_of(error)
    assert (failure.cls, failure.reason) == (cls, reason)
    assert isinstance(error, public)
    assert failure.message == str(error)
    assert f"{place}/v1/x" in failure.message
    assert "\n" not in failure.message
    assert "SECRET" not in failure.message + repr(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


async def fail(client, url, kind, *, place=None, **options):
    """One exchange that must end in this class."""
    with pytest.raises(wire.WireError) as caught:
        await client.exchange(secret_request(url), **options)
    check(caught.value, kind, place or url)


@pytest.fixture
async def hasty():
    """A client whose attempts end after 0.6 s."""
    async with Client(concurrency=20, timeout=0.6, connect_timeout=0.5, max_reply=2**20) as made:
        yield made


def test_every_class_stands_in_the_table():
    """No error class is left without its class of payment, its reason and its httpx ancestor."""
    named = {value for value in vars(wire).values() if isinstance(value, type) and issubclass(value, wire.WireError)}
    assert named - {wire.WireError} == set(EXPECTED)


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_reply_has_its_class_and_is_asked_for_once(case, hasty):
    """Whatever breaks after connecting is classed exactly, and the server saw one request."""
    act, kind = BROKEN[case]
    async with ScriptedServer(act) as server:
        await fail(hasty, server.url, kind)
        assert server.connections == 1
        assert len(server.requests) == (0 if act is leaving_unread else 1)


@pytest.mark.parametrize("case", BROKEN)
async def test_send_raises_the_same_classes(case, hasty):
    """A handler's ``client.send`` and a streamed reply break exactly as an exchange does."""
    act, kind = BROKEN[case]
    for stream in (False, True):
        async with ScriptedServer(act) as server:
            with pytest.raises(kind) as caught:
                await (await hasty.send(secret_request(server.url), stream=stream)).aread()
            check(caught.value, kind, server.url)


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "HEAD"])
@pytest.mark.parametrize("leave", ["close", "reset"])
async def test_nothing_is_sent_twice_on_a_lost_connection(method, leave, client):
    """A kept connection that is lost after the request was read costs one request, idempotent or not."""
    async with ScriptedServer(then(answer_once, saying(b"", leave)), replying(OK)) as server:
        await client.exchange(httpx.Request("GET", server.url))
        with pytest.raises(wire.StaleConnection) as caught:
            await client.exchange(secret_request(server.url, method))
        check(caught.value, wire.StaleConnection, server.url)
        assert len(server.requests) == 2
        assert server.connections == 1


async def test_a_connection_closed_while_idle_is_not_used(client):
    """The close of an idle connection is noticed, and the next call is made on a new one."""
    async with ScriptedServer(answer_once) as server:
        await client.exchange(httpx.Request("GET", server.url))
        await server.talks[0].writer.wait_closed()
        await turns(5)
        reply = await client.exchange(httpx.Request("GET", server.url))
        assert reply.body == b"ok"
        assert server.connections == 2


async def test_a_connection_closed_in_the_moment_of_sending_is_stale(client):
    """A request that crosses the server's close is told apart from one that may have been carried out."""
    async with ScriptedServer(then(answer_once, saying(b"", "forever"))) as server:
        await client.exchange(httpx.Request("GET", server.url))
        server.talks[0].writer.transport.abort()
        await fail(client, server.url, wire.StaleConnection)


async def test_a_reply_begun_on_a_kept_connection_is_no_stale_connection(client):
    """Once the reply has begun the request was carried out, on a kept connection too."""
    for data in (b"HTTP/1.1 200 OK\r\ncontent", b"HTTP/1.1 20", HEAD + b"content-length: 9\r\n\r\nx"):
        async with ScriptedServer(then(answer_once, saying(data))) as server:
            await client.exchange(httpx.Request("GET", server.url))
            kind = wire.BodyCut if b"9" in data else wire.ClosedEarly
            await fail(client, server.url, kind)


async def test_refused(client):
    """Nobody listens on the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        await fail(client, f"http://127.0.0.1:{taken.getsockname()[1]}", wire.Refused)


async def test_a_name_refused_on_every_address(client):
    """Addresses that all refuse are one refusal, and the name stands in the message."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        await fail(client, f"http://localhost:{taken.getsockname()[1]}", wire.Refused)


@pytest.mark.parametrize("host", ["nothing.invalid", "a" * 64 + ".invalid"])
async def test_name_not_found(host, client):
    """A name without an address, or that can be none, is not sent."""
    await fail(client, f"http://{host}", wire.NameNotFound, place=f"http://{host}:80")


async def test_no_route(client):
    """An address that cannot be reached from here is not sent."""
    await fail(client, "http://255.255.255.255:9", wire.NoRoute)


async def test_connect_timeout(hasty):
    """A port that drops the greeting is not sent, in the connect timeout."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        full.setblocking(False)
        waiting = [await _knock(full.getsockname()) for _ in range(3)]
        await fail(hasty, f"http://127.0.0.1:{full.getsockname()[1]}", wire.ConnectTimedOut)
        for one in waiting:
            one.close()


async def test_a_fresh_connection_has_its_own_connect_timeout(monkeypatch):
    """A probe waits 5 s for its connection where others wait longer."""
    assert transport.PROBE_CONNECT_TIMEOUT == 5.0
    monkeypatch.setattr(transport, "PROBE_CONNECT_TIMEOUT", 0.1)

    async def mute(talk):
        await talk.forever()

    async with ScriptedServer(mute) as server, Client(concurrency=1) as patient:
        url = f"https://127.0.0.1:{server.port}"
        await fail(patient, url, wire.ConnectTimedOut, fresh=True)


async def test_a_timeout_without_a_connect_timeout(hasty):
    """The deadline of the attempt alone ends a connect that has no limit of its own."""

    async def mute(talk):
        await talk.forever()

    async with ScriptedServer(mute) as server:
        with pytest.raises(wire.ConnectTimedOut, match=r"0\.1 s"):
            await hasty.get(f"https://127.0.0.1:{server.port}", timeout=httpx.Timeout(0.1, connect=None))


@pytest.mark.parametrize(
    ("case", "detail"),
    [
        ("reset before the reply", "Connection reset by peer"),
        ("closed before the reply", "Server disconnected"),
        ("closed inside a sized body", r"Not enough data (to|for) satisfy content length header.*"),
        ("bad chunk size", "Invalid character in chunk size"),
        ("slow drip", r"0\.6 s"),
        ("body too large", "over 1,048,576 bytes"),
    ],
)
async def test_a_message_names_the_cause(case, detail, hasty):
    """The one line of a failure says why, where the wire knows."""
    act, kind = BROKEN[case]
    async with ScriptedServer(act) as server:
        with pytest.raises(kind) as caught:
            await hasty.exchange(secret_request(server.url))
        assert re.fullmatch(rf"{kind.what}: {server.url}/v1/x \({detail}\)", str(caught.value))


async def _knock(address):
    """Take a place in the queue of a server that never accepts."""
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(address)
    return one


async def test_a_mute_tls_server_is_a_connect_timeout(hasty, trusting):
    """The TLS handshake counts as connecting."""

    async def mute(talk):
        await talk.forever()

    async with ScriptedServer(mute) as server:
        await fail(hasty, f"https://127.0.0.1:{server.port}", wire.ConnectTimedOut)


async def test_a_hung_name_look_up_ends_with_the_connect_timeout(hasty, monkeypatch):
    """A resolver that does not come back costs the connect timeout, and one thread for all who wait."""
    asked = []
    gate = asyncio.Event()

    def hang(*where, **how):
        asked.append(where)
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        raise socket.gaierror(socket.EAI_AGAIN, "too late")

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    calls = (fail(hasty, "http://slow.test", wire.ConnectTimedOut, place="http://slow.test:80") for _ in range(5))
    await asyncio.gather(*calls)
    gate.set()
    assert len(asked) == 1


async def test_waiting_for_a_free_connection_is_not_sent():
    """A request that got no connection until its deadline did not leave; a deadline of its own counts."""
    async with ScriptedServer(saying(b"", "forever")) as server, Client(concurrency=1, timeout=0.3) as narrow:
        first = asyncio.create_task(narrow.exchange(secret_request(server.url)))
        await server.accepted.wait()
        short = secret_request(server.url)
        short.extensions["timeout"] = {"read": 0.1}
        with pytest.raises(wire.PoolTimedOut) as caught:
            await narrow.exchange(short)
        check(caught.value, wire.PoolTimedOut, server.url)
        with pytest.raises(wire.TimedOut):
            await first
        assert len(server.requests) == 1


async def test_tls(tls_server, trusting):
    """A trusted certificate carries a call."""
    async with (
        ScriptedServer(replying(OK), tls=tls_server()) as server,
        Client(concurrency=1, verify=trusting) as client,
    ):
        assert (await client.exchange(secret_request(server.url))).body == b"ok"


async def test_tls_expired(tls_server, trusting):
    """An expired certificate is a matter of the setup."""
    async with (
        ScriptedServer(replying(OK), tls=tls_server(expired=True)) as server,
        Client(concurrency=1, verify=trusting) as client,
    ):
        await fail(client, server.url, wire.TLSExpired)


async def test_tls_untrusted(tls_server):
    """A certificate of an unknown authority is a matter of the setup."""
    async with ScriptedServer(replying(OK), tls=tls_server()) as server, Client(concurrency=1) as client:
        await fail(client, server.url, wire.TLSUntrusted)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_tls_wrong_host(host, tls_server, trusting):
    """A certificate for another host is a matter of the setup, by name and by address."""
    async with (
        ScriptedServer(replying(OK), tls=tls_server("example.org")) as server,
        Client(concurrency=1, verify=trusting) as client,
    ):
        await fail(client, f"https://{host}:{server.port}", wire.TLSWrongHost)


async def test_tls_where_none_is_spoken(client):
    """Https to a port that speaks plain HTTP is a matter of the setup."""

    async def plain(talk):
        await talk.reader.read(9)
        await talk.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with ScriptedServer(plain) as server:
        await fail(client, f"https://127.0.0.1:{server.port}", wire.TLSFailed)


async def test_tls_refused_by_the_server(client):
    """A server that wants what we lack ends the handshake: a matter of the setup."""

    async def refuse(talk):
        await talk.reader.read(9)
        await talk.send(b"\x15\x03\x03\x00\x02\x02\x28")  # the alert handshake_failure

    async with ScriptedServer(refuse) as server:
        await fail(client, f"https://127.0.0.1:{server.port}", wire.TLSFailed)


@pytest.mark.parametrize(("leave", "kind"), [("close", wire.ConnectBroken), ("reset", wire.ConnectBroken)])
async def test_a_connection_lost_inside_the_handshake_is_not_sent(leave, kind, client):
    """What breaks before the request could leave did not send it."""

    async def break_off(talk):
        await talk.reader.read(9)
        getattr(talk, leave)()

    async with ScriptedServer(break_off) as server:
        await fail(client, f"https://127.0.0.1:{server.port}", kind)


@pytest.mark.parametrize(
    "headers", [{"x": "a\r\nb: c"}, {"x": "a\0b"}, {b"x": b"\xff\xfe"}, {"bad name": "x", "y\n": "z"}]
)
async def test_what_is_no_http_is_the_records_own_fault(headers, client):
    """A request that would break HTTP never leaves."""
    async with ScriptedServer(replying(OK)) as server:
        with pytest.raises(wire.WireError) as caught:
            await client.exchange(httpx.Request("GET", f"{server.url}/v1/x?key=SECRET", headers=headers))
        check(caught.value, wire.Unsendable, server.url)
        assert server.requests == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1", "http://127.1:80"])
async def test_a_url_that_is_not_spoken_never_leaves(url, client):
    """Another scheme or an odd address is the request's own fault."""
    await fail(client, url, wire.Unsendable)


def test_too_many_open_files(tmp_path):
    """A process without a free descriptor has not sent, and goes on when there is one again."""
    code = """
        import asyncio, os, resource, socket
        import httpx
        from rowcall.client import Client, TooManyFiles, failure_of

        async def main():
            server = await asyncio.start_server(reply, "127.0.0.1", 0)
            url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
            async with Client(concurrency=2) as client:
                resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
                taken = fill()
                try:
                    await client.exchange(httpx.Request("GET", url))
                except TooManyFiles as error:
                    print(failure_of(error).cls.value)
                for one in taken:
                    os.close(one)
                print((await client.exchange(httpx.Request("GET", url))).status)
            server.close()

        async def reply(reader, writer):
            await reader.readuntil(b"\\r\\n\\r\\n")
            writer.write(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
            writer.close()

        def fill():
            taken = []
            while True:
                try:
                    taken.append(os.dup(0))
                except OSError:
                    return taken

        asyncio.run(main())
    """
    assert run(code) == "not sent\n204\n"


def test_a_hung_look_up_does_not_hold_the_exit():
    """A process whose name look-up hangs leaves at once all the same."""
    code = """
        import asyncio, socket, time
        import httpx
        from rowcall.client import Client, ConnectTimedOut

        socket.getaddrinfo = lambda *where, **how: time.sleep(3600)

        async def main():
            async with Client(concurrency=1, connect_timeout=0.05) as client:
                try:
                    await client.exchange(httpx.Request("GET", "http://slow.test"))
                except ConnectTimedOut as error:
                    print(error.reason)

        asyncio.run(main())
    """
    assert run(code) == "connect_timeout\n"


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "given", "raised"),
    [(64, 64, 200, 32, 64), (64, 512, 200, 200, 232), (256, 512, 200, 200, 256), (20, 20, 5, 1, 20)],
)
def test_the_descriptor_limit_is_raised_or_the_concurrency_lowered(soft, hard, wanted, given, raised):
    """The limit rises as far as it must and may; what is told fits it."""
    code = f"""
        import resource
        from rowcall.client import raise_descriptor_limit

        resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
        print(raise_descriptor_limit({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE))
    """
    assert run(code) == f"{given} ({raised}, {hard})\n"


def run(code: str) -> str:
    """What a Python process with this code prints; it must leave no warning."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_errors_of_other_origin_have_a_failure_too():
    """An httpx error of another transport is classed by its kind, anything else is the record's; texts stay unread."""
    request = httpx.Request("GET", "http://user:SECRET@h/p?SECRET")
    refused = failure_of(httpx.ConnectError("SECRET", request=request))
    assert (refused.cls, refused.message) == (FailureClass.NOT_SENT, "ConnectError: http://h:80/p")
    assert failure_of(httpx.ReadError("SECRET")).cls is FailureClass.MAYBE_SENT
    odd = failure_of(RuntimeError("SECRET"))
    assert (odd.cls, odd.reason, odd.message) == (FailureClass.RECORD, "unexpected_error", "RuntimeError")


def test_deflate_is_tested_with_what_zlib_refuses():
    """The bad deflate body of the table is bad for zlib with and without a header."""
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        with pytest.raises(zlib.error):
            zlib.decompress(b"\xff\xff", bits)
