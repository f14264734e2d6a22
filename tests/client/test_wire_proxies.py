"""The wire through a proxy, with a private authority and a certificate of one's own: real sockets."""

from __future__ import annotations

import ssl

import httpx
import pytest
import trustme
from proxy_server import ProxyServer
from wire_servers import OK, ScriptedServer

from rowcall.client import (
    Client,
    Proxies,
    ProxyAuth,
    ProxyFailed,
    ProxyRefused,
    Refused,
    TLSUntrusted,
    UnusableFile,
    make_context,
)
from rowcall.model.outcome import FailureClass

pytestmark = pytest.mark.usefixtures("both_senders")

BASIC = "Basic bWU6c2VjcmV0"  # me:secret


async def answer(talk):
    while True:
        await talk.request()
        await talk.send(OK)


@pytest.fixture
def through(authority, tmp_path):
    """A client whose requests go through a proxy, and which trusts the test authority by its file."""
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)

    def through(proxy, **files):
        context = make_context({}, ca_file=ca_file, **files)
        return Client(concurrency=4, timeout=5, connect_timeout=2, verify=context, proxies=Proxies(proxy))

    return through


def get(url):
    return httpx.Request("GET", url)


async def test_a_plain_request(through):
    """It goes to the proxy with its whole URL, again and again over one connection."""
    async with ScriptedServer(answer) as api, ProxyServer(api.port) as proxy, through(proxy.url) as client:
        for _ in range(2):
            reply = await client.exchange(get("http://api.test/v1/x?a=1"))
            assert reply.body == b"ok"
    assert proxy.asked == [("GET http://api.test/v1/x?a=1 HTTP/1.1", None)]
    assert next(request.split(b"\r\n")[0] for request in api.requests) == b"GET /v1/x?a=1 HTTP/1.1"


async def test_a_tunnel(through, tls_server):
    """An https request goes through CONNECT; the proxy sees host and port, and the certificate is the server's."""
    async with (
        ScriptedServer(answer, tls=tls_server("api.test")) as api,
        ProxyServer(api.port) as proxy,
        through(proxy.url) as client,
    ):
        for fresh in (False, False, True):
            assert (await client.exchange(get("https://api.test/v1/x"), fresh=fresh)).body == b"ok"
    assert proxy.asked == [("CONNECT api.test:443 HTTP/1.1", None)] * 2


async def test_a_proxy_over_tls(through, tls_server):
    """The way to the proxy can be encrypted as well, with a tunnel inside."""
    async with (
        ScriptedServer(answer, tls=tls_server("api.test")) as api,
        ProxyServer(api.port, tls=tls_server()) as proxy,
        through(proxy.url) as client,
    ):
        assert (await client.exchange(get("https://api.test/"))).body == b"ok"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_credentials_go_to_the_proxy(through, tls_server, scheme):
    """For a tunnel to the proxy alone, never on to the API."""
    tls = tls_server("api.test") if scheme == "https" else None
    async with ScriptedServer(answer, tls=tls) as api, ProxyServer(api.port) as proxy:
        proxy.wants = BASIC
        async with through(proxy.url.replace("//", "//me:secret@")) as client:
            assert (await client.exchange(get(f"{scheme}://api.test/"))).status == 200
    assert proxy.asked[0][1] == BASIC
    assert scheme == "http" or b"roxy-" not in api.requests[0]


@pytest.mark.parametrize(
    ("status", "kind", "cls"),
    [
        (407, ProxyAuth, FailureClass.SETUP),
        (403, ProxyRefused, FailureClass.SETUP),
        (502, ProxyFailed, FailureClass.NOT_SENT),
        (503, ProxyFailed, FailureClass.NOT_SENT),
    ],
)
async def test_a_tunnel_that_is_refused(through, status, kind, cls):
    """Nothing was sent; a password that is asked for is set up by a person, a gateway's trouble passes."""
    async with ProxyServer(1) as proxy:
        proxy.says = status
        async with through(proxy.url.replace("//", "//me:secret@")) as client:
            with pytest.raises(kind) as caught:
                await client.exchange(get("https://api.test/v1"))
    assert caught.value.failure.cls is cls
    assert "secret" not in str(caught.value)
    assert status != 407 or "HTTPS_PROXY" in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_down(through, scheme):
    """Nothing was sent, and the message says that it was the proxy."""
    async with ProxyServer(1) as proxy:
        pass
    async with through(proxy.url) as client:
        with pytest.raises(Refused, match=rf"by the proxy 127.0.0.1:{proxy.port}") as caught:
            await client.exchange(get(f"{scheme}://api.test/"))
    assert caught.value.failure.cls is FailureClass.NOT_SENT


async def test_a_private_authority(tls_server, through):
    """Its file makes a server trusted that is not otherwise; without it the message names the setting."""
    async with ScriptedServer(answer, tls=tls_server()) as api:
        async with through(None) as client:
            assert (await client.exchange(get(f"https://127.0.0.1:{api.port}/"))).status == 200
        async with Client(concurrency=1) as client:
            with pytest.raises(TLSUntrusted, match=r"\[api\] ca_file"):
                await client.exchange(get(f"https://127.0.0.1:{api.port}/"))


def test_the_usual_authorities_stay():
    """A file of one's own comes beside them, that of SSL_CERT_FILE instead."""
    usual = len(make_context({}).get_ca_certs())
    assert usual > 50


def test_ssl_cert_file(tmp_path):
    """It replaces the usual authorities, and ``ca_file`` comes beside it."""
    one, other = tmp_path / "one.pem", tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(one)
    trustme.CA().cert_pem.write_to_path(other)
    assert len(make_context({"SSL_CERT_FILE": str(one)}).get_ca_certs()) == 1
    assert len(make_context({"SSL_CERT_FILE": str(one)}, ca_file=other).get_ca_certs()) == 2
    assert len(make_context({}, ca_file=other).get_ca_certs()) == len(make_context({}).get_ca_certs()) + 1


@pytest.mark.parametrize("apart", [True, False])
async def test_a_certificate_of_ones_own(tls_server, authority, through, tmp_path, apart):
    """A server that asks for one sees it, with its key beside it or in a file of its own."""
    mine = authority.issue_cert("me@client.test")
    cert, key = tmp_path / "me.pem", tmp_path / "me.key"
    mine.private_key_pem.write_to_path(key)
    for part in mine.cert_chain_pems if apart else [mine.private_key_and_cert_chain_pem]:
        part.write_to_path(cert, append=True)
    asking = tls_server()
    asking.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(asking)
    seen = []

    async def look(talk):
        seen.append(talk.writer.get_extra_info("peercert")["subjectAltName"])
        await answer(talk)

    async with (
        ScriptedServer(look, tls=asking) as api,
        through(None, client_cert=cert, client_key=key if apart else None) as client,
    ):
        assert (await client.exchange(get(f"https://127.0.0.1:{api.port}/"))).status == 200
    assert seen == [(("email", "me@client.test"),)]


@pytest.mark.parametrize("named", ["ca_file", "client_cert"])
def test_files_that_cannot_be_used(tmp_path, named):
    """Missing ones and others are named with their setting; a key with a password is not asked for."""
    wrong = tmp_path / "wrong.pem"
    with pytest.raises(UnusableFile, match=rf"api.{named}: .*wrong.pem cannot be read: No such file"):
        make_context({}, **{named: wrong})
    wrong.write_text("hello")
    with pytest.raises(UnusableFile, match=rf"api.{named}: .*wrong.pem"):
        make_context({}, **{named: wrong})
    with pytest.raises(UnusableFile, match="SSL_CERT_FILE: "):
        make_context({"SSL_CERT_FILE": str(wrong)})
