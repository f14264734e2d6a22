"""Projects whose store is in a database of a server that keeps what it confirmed."""

from __future__ import annotations

import contextlib

import pytest
from pgkit import Server, binaries
from pgrig import PgRig

from rowcall.mock import MockAPI


@pytest.fixture(scope="session")
def lasting_server():
    """A server that a test may stop at once and start again: nothing that it confirmed is lost by it."""
    if binaries() is None:
        pytest.skip("no binaries of a PostgreSQL server: install Debian's postgresql package, or put initdb into PATH")
    server = Server(fsync="on", full_page_writes="on", synchronous_commit="on").start()
    yield server
    server.throw_away()


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
async def rig(postgres_server):
    """Makes a project in a folder, whose calls reach an API; each has a database of its own."""
    async with contextlib.AsyncExitStack() as stack:

        def make(folder, api, server=postgres_server):
            project = PgRig(folder, api, server=server, database=stack.enter_context(server.database()))
            stack.push_async_callback(project.kill_all)
            return project

        yield make


@pytest.fixture
def project(rig, tmp_path, api):
    return rig(tmp_path, api)


@pytest.fixture
def place(database_url):
    """Where a store may be made."""
    return database_url
