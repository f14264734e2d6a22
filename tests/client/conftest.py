import ssl
from datetime import UTC, datetime, timedelta

import pytest
import trustme

from rowcall.client import Client
from rowcall.client.aiohttp_version import FORCE, sender_kind

INTERNALS_TESTED = sender_kind() == "direct"


@pytest.fixture(params=["direct", "session"])
def both_senders(request, monkeypatch):
    """Runs a test twice: over aiohttp's internals, if they were tested for the installed version, and its session."""
    if request.param == "direct" and not INTERNALS_TESTED:
        pytest.skip("the internals of this version of aiohttp are not used")
    monkeypatch.setenv(FORCE, request.param)


@pytest.fixture
async def client(both_senders):
    async with Client(concurrency=20, timeout=3.0, connect_timeout=1.0, max_reply=2**20) as made:
        yield made


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture(scope="session")
def trusting(authority):
    """A client's TLS context that trusts the test authority and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


@pytest.fixture(scope="session")
def tls_server(authority):
    """Makes a server's TLS context with a certificate for a name."""

    def make(name="127.0.0.1", *, expired=False):
        until = datetime.now(UTC) - timedelta(days=1) if expired else None
        since = datetime.now(UTC) - timedelta(days=9) if expired else None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name, not_before=since, not_after=until).configure_cert(context)
        return context

    return make
