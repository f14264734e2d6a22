"""A PostgreSQL server, and projects whose store is on it."""

from __future__ import annotations

import pgkit
import pytest
from project import Project

from rowcall.mock import MockAPI


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this test process."""
    yield pgkit.the_server()
    pgkit.throw_away()


@pytest.fixture
def database_url(postgres_server):
    """The URL of a database in which there is nothing yet."""
    with postgres_server.database() as name:
        yield postgres_server.url(name)


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.005) as api:
        yield Project(tmp_path, api)
