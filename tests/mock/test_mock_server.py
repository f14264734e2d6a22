from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.mock import Faults, MockAPI
from rowcall.model.errors import RowcallError


async def ask(client, api, text, **headers):
    """The status of one POST, which the client never sends twice, or the name of the exception that came instead."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    try:
        async with client.post(f"{api.url}/chat/completions", json=body, headers=headers) as reply:
            await reply.read()
            return reply.status
    except aiohttp.ClientError as exc:
        return type(exc).__name__


async def ask_all(client, api, texts):
    return await asyncio.gather(*(ask(client, api, text) for text in texts))


@contextlib.asynccontextmanager
async def asking(client, api, count):
    """So many calls in flight; they are dropped at the end."""
    tasks = [asyncio.create_task(ask(client, api, f"text {n}")) for n in range(count)]
    try:
        await api.wait_in_flight(count)
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# what is seen


async def test_call_is_recorded(client):
    """A call is kept with its text, headers, body, times, connection, try and status."""
    async with MockAPI(latency=0.01) as api:
        async with client.post(f"{api.url}/chat/completions", json={"model": "m"}, headers={"X-Mine": "1"}) as reply:
            await reply.read()
        (call,) = api.calls
        assert (call.method, call.path, call.text, call.number, call.status) == (
            "POST",
            "/v1/chat/completions",
            "",
            1,
            400,
        )
        assert call.headers["x-mine"] == "1"
        assert call.json() == {"model": "m"}
        assert call.ended - call.arrived >= 0.01
        assert (api.arrived, api.in_flight, api.max_in_flight, api.served) == (1, 0, 1, {400: 1})


async def test_connections_are_told_apart(client):
    """Calls one after another share a connection, calls at a time do not."""
    async with MockAPI(latency=0.01) as api:
        await ask(client, api, "one")
        await ask(client, api, "two")
        await ask_all(client, api, ["three", "four"])
        one, two, three, four = (api.calls_of(text)[0].connection for text in ["one", "two", "three", "four"])
        assert one == two
        assert three != four


async def test_three_hundred_in_flight(client):
    """300 calls at a time are in flight at a time."""
    async with MockAPI(latency=60) as api:
        async with asking(client, api, 300):
            assert (api.in_flight, api.max_in_flight, api.arrived) == (300, 300, 300)
        await api.wait_in_flight(0)
        assert api.served == {"dropped": 300}


async def test_calls_can_be_forgotten(client):
    """Without keeping, calls are counted and nothing of them stays once they are answered."""
    async with MockAPI(latency=0, keep_calls=False) as api:
        await ask_all(client, api, map(str, range(20)))
        assert (api.calls, api.calls_of("1"), api.served) == ([], [], {200: 20})
        assert not api._tries


async def test_waiting_for_calls(client):
    """A test can wait for a number of calls, and for any condition, without sleeping."""
    async with MockAPI(latency=0) as api:
        waiting = asyncio.create_task(api.wait_for_calls(3))
        await ask_all(client, api, ["a", "b"])
        assert not waiting.done()
        await ask(client, api, "c")
        await waiting
        await api.until(lambda: api.served[200] == 3)


async def test_waiting_is_forgotten_when_cancelled(client):
    """A wait that was cancelled neither stays nor disturbs the calls after it."""
    async with MockAPI(latency=0) as api:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(api.wait_for_calls(1), 0.01)
        assert await ask(client, api, "a") == 200
        assert not api._waiting


# faults


async def test_faults_by_share(client):
    """Each kind of fault comes at about its share and is seen by the client as what it is."""
    faults = Faults(rate_limited=0.1, errors=0.1, resets=0.1, closed=0.1, html=0.1)
    async with MockAPI(latency=0, faults=faults) as api:
        seen = Counter(await ask_all(client, api, (f"text {n}" for n in range(600))))
        assert all(30 <= api.served[how] <= 90 for how in (429, 500, "reset", "closed", "html"))
        assert seen[429] == api.served[429]
        assert seen[500] == api.served[500]
        assert seen[200] == api.served[200] + api.served["html"]
        assert seen["ClientOSError"] == api.served["reset"]
        assert seen["ServerDisconnectedError"] == api.served["closed"]


async def test_same_faults_in_any_order(client):
    """Two servers with one seed give the same faults for the same tries, another seed gives others."""

    async def faults_of(seed, order):
        async with MockAPI(latency=0, faults=Faults(errors=0.5, seed=seed)) as api:
            for _ in range(3):
                await ask_all(client, api, (f"text {n}" for n in order))
            return {n: [call.status for call in api.calls_of(f"text {n}")] for n in range(20)}

    first = await faults_of(1, range(20))
    assert first == await faults_of(1, range(19, -1, -1))
    assert first != await faults_of(2, range(20))
    assert any(len(set(statuses)) == 2 for statuses in first.values())


async def test_tries_are_numbered(client):
    """The number of a try counts the record's calls since its last good answer."""
    async with MockAPI(latency=0) as api:
        api.poison = {"a"}
        for _ in range(3):
            await ask(client, api, "a")
        api.poison = ()
        await ask(client, api, "a")
        await ask(client, api, "a")
        assert [call.number for call in api.calls] == [1, 2, 3, 4, 1]


async def test_idempotency_key_names_the_record(client):
    """Calls with one Idempotency-Key are tries of one record, calls with two are two records."""
    async with MockAPI(latency=0) as api:
        api.poison = {"a"}
        for key in ["1", "2", "1"]:
            await ask(client, api, "a", **{"Idempotency-Key": key})
        assert [call.number for call in api.calls] == [1, 1, 2]


async def test_too_early(client):
    """A record that comes again before its Retry-After is counted; another record, or one that waited, is not."""
    async with MockAPI(latency=0, faults=Faults(rate_limited=1, retry_after=3600)) as api:
        await ask(client, api, "a")
        await ask(client, api, "a")
        assert (api.early, [call.early for call in api.calls]) == (1, [False, True])
        api.faults = Faults(rate_limited=1, retry_after=0.01)
        await ask(client, api, "b")
        await asyncio.sleep(0.02)
        await ask(client, api, "b")
        assert api.early == 1


async def test_retry_after_in_all_forms(client):
    """The wait is told in each form asked for, and none of them is shorter than the wait."""
    faults = Faults(rate_limited=1, retry_after=2, retry_forms=("seconds", "date", "ms"))
    seen = Counter()
    async with MockAPI(latency=0, faults=faults) as api:
        for n in range(30):
            before = datetime.now(UTC)
            async with client.get(f"{api.url}/words/w{n}") as reply:
                wait = reply.headers.get("Retry-After", "")
                if "GMT" in wait:
                    seen["date"] += 1
                    assert 2 <= (parsedate_to_datetime(wait) - before).total_seconds() < 60
                else:
                    seen["seconds" if wait else "ms"] += 1
                    assert wait == "2" or reply.headers["retry-after-ms"] == "2000"
    assert set(seen) == {"seconds", "date", "ms"}


@pytest.mark.parametrize("shares", [{"errors": -0.1}, {"errors": 1.1}, {"errors": 0.6, "resets": 0.6}])
def test_impossible_shares(shares):
    """Shares of faults that cannot be are refused."""
    with pytest.raises(ValueError, match="shares of faults"):
        Faults(**shares)


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=8, max_size=8), st.integers(1, 50), st.integers(0, 2**31))
def test_certain_faults(record, number, seed):
    """A share of 1.0 always strikes and a share of 0.0 never."""
    assert Faults(closed=1.0, seed=seed).draw(record, number) == "closed"
    assert Faults(seed=seed).draw(record, number) is None


# the test's hand on it


async def test_capacity(client):
    """Calls beyond the capacity get 429 without delay, those within are answered."""
    async with MockAPI(latency=60, capacity=2) as api, asking(client, api, 2):
        assert await ask(client, api, "one more") == 429
        assert api.served == {429: 1}


@pytest.mark.parametrize(("outage", "seen"), [("503", 503), ("html", 200), ("reset", "ClientOSError")])
async def test_outage(client, outage, seen):
    """An outage holds for every call until it is over."""
    async with MockAPI(latency=0) as api:
        api.outage = outage
        assert await ask_all(client, api, ["a", "b"]) == [seen, seen]
        api.outage = None
        assert await ask(client, api, "a") == 200
        assert api.served.total() == 3


async def test_html_outage_is_a_page(client):
    """The portal's page has status 200 and is HTML."""
    async with MockAPI(latency=0) as api:
        api.outage = "html"
        async with client.get(f"{api.url}/words/good") as reply:
            assert (reply.status, reply.content_type) == (200, "text/html")


async def test_blackhole(client):
    """A black hole takes calls and never answers, and the calls stay in flight until the client leaves."""
    async with MockAPI(latency=0) as api:
        api.outage = "blackhole"
        async with asking(client, api, 3) as tasks:
            done, _ = await asyncio.wait(tasks, timeout=0.05)
            assert not done
        await api.wait_in_flight(0)


async def test_closed_port(client):
    """A closed port drops open calls and refuses connections; opened again it serves on the same port."""
    async with MockAPI(latency=60) as api:
        url = api.url
        async with asking(client, api, 5) as tasks:
            await api.close_port()
            assert set(await asyncio.gather(*tasks)) <= {"ClientOSError", "ServerDisconnectedError"}
        assert api.in_flight == 0
        assert await ask(client, api, "refused") == "ClientConnectorError"
        await api.close_port()
        await api.open_port()
        api.latency = 0
        assert (await ask(client, api, "served"), api.url) == (200, url)
        assert api.served == {"dropped": 5, 200: 1}


async def test_closed_port_stays_ours():
    """While the port is closed, no other program is given it."""
    async with MockAPI() as api:
        await api.close_port()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", int(api.origin.rpartition(":")[2])))


async def test_out_of_files(client, caplog):
    """Out of file descriptors, the server says nothing and serves those who waited once there are some again."""
    async with MockAPI(latency=0) as api:
        waiting = socket.create_connection(("127.0.0.1", int(api.origin.rpartition(":")[2])))
        waiting.setblocking(False)
        with no_more_files():
            for _ in range(5):
                await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(sock=waiting)
        writer.write(b"GET /v1/words/good HTTP/1.1\r\nHost: here\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        assert not caplog.records


async def test_key_of_any_bytes():
    """An Idempotency-Key that is no UTF-8 names a record like any other."""
    async with MockAPI(latency=0) as api:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(api.origin.rpartition(":")[2]))
        writer.write(b"GET /v1/words/good HTTP/1.1\r\nHost: here\r\nIdempotency-Key: \xff\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()


@contextlib.contextmanager
def no_more_files():
    """A process that can open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_closed_port_ends_idle_connections(client):
    """A connection that idles when the port closes is gone, and is not served by the reopened port."""
    async with MockAPI(latency=0) as api:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(api.origin.rpartition(":")[2]))
        await ask(client, api, "a")
        await api.close_port()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()


def how_it_ends(connection):
    try:
        return connection.recv(1)
    except OSError as exc:
        return type(exc).__name__


@pytest.mark.parametrize("turns", range(6))
async def test_closed_port_ends_fresh_connections(turns):
    """A connection made just before the port closes is ended too, however far the loop is with taking it."""
    async with MockAPI(latency=60) as api:
        fresh = [socket.create_connection(("127.0.0.1", int(api.origin.rpartition(":")[2]))) for _ in range(5)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await api.close_port()
        seen = []
        for connection in fresh:
            with connection:
                connection.settimeout(1)
                seen.append(how_it_ends(connection))
        assert seen == ["ConnectionResetError"] * 5


async def test_poison(client):
    """A set of texts always gets 500; a function from texts decides the status, and spares where it gives None."""
    async with MockAPI(latency=0) as api:
        api.poison = {"bad"}
        assert await ask_all(client, api, ["bad", "good", "bad"]) == [500, 200, 500]
        api.poison = {"bad": 400, "key": 401}.get
        assert await ask_all(client, api, ["bad", "good", "key"]) == [400, 200, 401]


async def test_respond(client):
    """A function of the test may answer in the server's place, and leaves to the server what it does not answer."""

    def respond(call):
        return web.Response(status=418, headers={"X-Try": str(call.number)}) if call.text == "tea" else None

    async with MockAPI(latency=0) as api:
        api.respond = respond
        assert await ask_all(client, api, ["tea", "coffee"]) == [418, 200]


# start and stop


async def test_stops_at_once():
    """The server stops at once with calls in flight, and leaves no task or socket behind."""
    async with aiohttp.ClientSession() as client:
        tasks = asyncio.all_tasks()
        async with asyncio.timeout(2):
            async with MockAPI(latency=3600) as api:
                calls = [asyncio.create_task(ask(client, api, str(n))) for n in range(50)]
                await api.wait_in_flight(50)
            assert api.in_flight == 0
            assert asyncio.all_tasks() - set(calls) == tasks
            await asyncio.gather(*calls)
        assert api.served == {"dropped": 50}


async def test_port_in_use():
    """A port that somebody listens on is refused with the port's number."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RowcallError, match=str(port)):
            async with MockAPI(port=port):
                pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_serve_in_a_process(client, number):
    """In a process of its own it says where it is, serves, and ends cleanly on SIGINT and SIGTERM."""
    code = (
        "import asyncio; from rowcall.mock import MockAPI, serve\n"
        "asyncio.run(serve(MockAPI(latency=0), announce=lambda api: print(api.url, flush=True)))"
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=pipe, stderr=pipe)
    url = (await process.stdout.readline()).decode().strip()
    async with client.get(f"{url}/words/good") as reply:
        assert reply.status == 200
    process.send_signal(number)
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
