"""What a store with very many rows asks of the server's limits."""

from __future__ import annotations

import pytest
from storekit import Desk

from rowcall.store.postgres import PostgresStore, pool
from rowcall.store.types import Selection

pytestmark = pytest.mark.postgres


@pytest.fixture
async def desk(database_url, monkeypatch):
    """A desk at a store where a statement may take no longer than 50 ms."""
    monkeypatch.setitem(pool._SETTINGS, "statement_timeout", "50ms")
    async with await PostgresStore.open(database_url, busy_wait=0.5) as store:
        yield await Desk(store, None, None).sit()


@pytest.fixture
def execute(postgres_server, database_url):
    return lambda statement: postgres_server.execute(statement, database_url.rpartition("/")[2])


SLOW = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NEW; END';
    CREATE TRIGGER slow BEFORE UPDATE OF request ON rowcall.jobs FOR EACH ROW EXECUTE FUNCTION slow()
"""


async def test_a_changed_request_takes_all_along_that_was_set_back(desk, execute):
    """However many failed records were set back, a run with a changed request can begin."""
    await desk.bring(*(str(n) for n in range(10)))
    await desk.fail(*await desk.claim())
    assert await desk.store.retry("k", Selection()) == 10
    execute(SLOW)
    assert await desk.store.request("k", "another") != desk.request


MANY = """
    INSERT INTO rowcall.results (job, epoch, request, input_hash, batch, at, input_tokens, output_tokens, cached_tokens,
        reasoning_tokens, value)
    SELECT n, 1, 1, md5(n::text), 'b', now(), 0, 0, 0, 0, '1' FROM generate_series(1, 200000) AS n
"""


async def test_twins_are_looked_for_among_all_there_is(desk, execute):
    """However many answers there are, the first who looks for a twin's makes the indexes for it."""
    execute(MANY)
    await desk.bring("a")
    assert await desk.store.answer_claimed(await desk.claim()) == []
