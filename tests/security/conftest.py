import pgkit
import pytest


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this process's own, for the tests that ask for one."""
    yield pgkit.the_server()
    pgkit.throw_away()
