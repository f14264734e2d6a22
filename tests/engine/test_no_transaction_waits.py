"""No transaction is open while a template renders, a request is on the wire, or a reply is read."""

from __future__ import annotations

import sqlite3

import pytest


@pytest.fixture
def lockable(tmp_path):
    """Takes the database's write lock from outside, and gives it back; fails when somebody keeps it for a second."""

    def check():
        connection = sqlite3.connect(tmp_path / "k.db", timeout=1.0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        finally:
            connection.close()

    return check


async def test_no_transaction_is_open_around_a_call(engine, lockable, monkeypatch):
    """While this thread builds a request or reads a reply, and while the server holds it, the file can be locked.

    The event loop stands still in each of these checks, so a transaction that spans an await would hold the lock for
    longer than the check waits.
    """
    run = await engine(40, concurrency=4)
    provider = run.caller._provider
    checked = {"build": 0, "read": 0, "wire": 0}

    def around(name, method):
        def checking(*args):
            lockable()
            checked[name] += 1
            return method(*args)

        return checking

    def on_the_wire(call):
        lockable()
        checked["wire"] += 1

    monkeypatch.setattr(provider, "build", around("build", provider.build))
    monkeypatch.setattr(provider, "read", around("read", provider.read))
    run.api.respond = on_the_wire
    await run.worker.run()
    assert checked == {"build": 40, "read": 40, "wire": 40}
