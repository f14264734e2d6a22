"""What a handler's calls are: paced, counted, classed, and sent to one host."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from aiohttp import web

import rowcall
from rowcall.mock import MockAPI
from rowcall.model.events import CallEnded, RequestEnded


async def sentiment(row, call):
    return (await call.get("/sentiment", params={"text": row["text"]})).json()["label"]


def chat(row):
    return {"model": "m", "messages": [{"role": "user", "content": row["text"]}]}


async def test_a_handler_answers_each_record(done, rows, store, api):
    """Each record is done with what the handler returned, charged once, with the reply's status beside it."""
    report = await done(sentiment, rows(30))
    assert (report.done, report.failed, report.total, report.ending.reason) == (30, 0, 30, "done")
    assert set(store.attempts().values()) == {1}
    assert len(api.calls) == 30
    assert store.sql("SELECT DISTINCT http_status, answer FROM records") == [(200, '"positive"')]


async def test_every_request_of_a_call_is_counted(done, rows, api, gate):
    """Two requests per record are two in the totals, and one call ended."""

    async def twice(row, call):
        await sentiment(row, call)
        reply = await call.post("/chat/completions", json=chat(row))
        return reply.json()["usage"]["prompt_tokens"]

    report = await done(twice, rows(20), on_event=gate)
    assert (len(api.calls), report.tally.calls, dict(report.tally.by_status)) == (40, 40, {"200": 40})
    assert sum(isinstance(event, RequestEnded) for event in gate.events) == 40
    assert sum(isinstance(event, CallEnded) for event in gate.events) == 20


async def test_every_request_of_a_call_is_paced(done, rows, api):
    """With 20 requests in half a second allowed, no such window holds more, though a record sends three."""

    async def thrice(row, call):
        return [await sentiment(row, call) for _ in range(3)]

    await done(thrice, rows(20), requests="20/500ms")
    arrived = [call.arrived for call in api.calls]
    assert len(arrived) == 60
    assert all(sum(start <= other < start + 0.45 for other in arrived) <= 21 for start in arrived)


async def test_no_more_requests_are_in_flight_than_allowed(done, rows, api):
    """A handler that sends ten requests at once does not get around the concurrency."""
    api.latency = 0.02

    async def at_once(row, call):
        return len(await asyncio.gather(*(sentiment(row, call) for _ in range(10))))

    await done(at_once, rows(8), concurrency=4)
    assert (len(api.calls), api.max_in_flight) == (80, 4)


async def test_waiting_for_a_slot_is_not_the_request_s_time(done, rows, api):
    """Thirty requests at once over two connections take longer than one may, and none of them times out."""
    api.latency = 0.04

    async def at_once(row, call):
        return len(await asyncio.gather(*(sentiment(row, call) for _ in range(30))))

    report = await done(at_once, rows(1), concurrency=2, timeout=0.4)
    assert (report.done, report.tally.calls) == (1, 30)


async def test_the_first_call_goes_alone(done, rows, api):
    """Until the first request is answered, no other record's leaves; so a wrong key costs one call."""
    async with MockAPI(latency=0.02, api_key="right") as api:
        report = await done(sentiment, rows(20), base_url=api.url, api_key="wrong")
    assert (report.ending.reason, report.done, report.failed) == ("bad_key", 0, 0)
    assert len(api.calls) == 1


async def test_the_key_goes_to_its_own_host_alone(done, rows, api):
    """The key and the headers of the API are added to its calls, and to no other host's."""
    async with MockAPI(latency=0.0) as other:

        async def both(row, call):
            await call.get(f"{other.url}/sentiment", params={"text": "good"})
            return (await call.get("/sentiment", params={"text": "good"}, headers={"X-Own": "1"})).status_code

        await done(both, rows(1), api_key="s3cret-key", headers={"X-Team": "research"})
        (elsewhere,), (here,) = other.calls, api.calls
    assert "authorization" not in {name.lower() for name in elsewhere.headers}
    assert "X-Team" not in elsewhere.headers
    assert here.headers["Authorization"] == "Bearer s3cret-key"
    assert (here.headers["X-Team"], here.headers["X-Own"]) == ("research", "1")


async def test_numbers_go_out_as_they_came_in(opened, api, tmp_path):
    """A number that a plain parser would change reaches the API with all of its digits."""
    (tmp_path / "in.jsonl").write_text('{"id": 12345678901234567890123456789012345678901, "text": "good", "n": 1e5}\n')

    async def send(row, call):
        return (await call.post("/chat/completions", json=chat(row) | {"user": [row["id"], row["n"]]})).status_code

    async with opened() as job:
        await job.add(rowcall.read(tmp_path / "in.jsonl"), key="id")
        await job.run(send)
    assert b"[12345678901234567890123456789012345678901,1e5]" in api.calls[0].body


async def test_the_key_of_a_call_is_stable_over_tries(done, rows, api, store):
    """A record's second and third try carry the key of its first, and their own numbers; other records other keys."""
    seen = {}
    api.poison = {"text 1 is good"}

    async def label(row, call):
        seen.setdefault(row["id"], []).append((call.key, call.number))
        return (await call.post("/chat/completions", json=chat(row))).status_code

    await done(label, rows(6))
    assert [number for _, number in seen[1]][-3:] == [1, 2, 3]
    assert len({key for key, _ in seen[1]}) == 1
    assert len({tries[0][0] for tries in seen.values()}) == 6
    assert store.job(1)["reason"] == "http_500"


async def test_statuses_that_are_answers(done, store, api):
    """A status named as an answer comes back as a response; any other that is no 2xx raises what httpx would."""
    seen = []

    async def look_up(row, call):
        reply = await call.get(f"/words/{row['word']}")
        try:
            await call.get("/nowhere/else", headers={"X-No": "1"}, timeout=2)
        except rowcall.CallFailed as failed:
            seen.append((isinstance(failed, httpx.HTTPStatusError), failed.failure.status, failed.failure.reason))
        return reply.status_code

    api.respond = lambda call: web.Response(status=422, text="{}") if "nowhere" in call.path else None
    await done(look_up, [{"id": 1, "word": "good"}, {"id": 2, "word": "zyzzyva"}], answer=["404"])
    assert store.statuses() == {"done": 2}
    assert seen == [(True, 422, "http_422")] * 2


async def test_wire_failures_are_httpx_errors_that_know_their_class(done, rows, api, store):
    """A refused connection can be caught as httpx's error and as rowcall's."""
    seen = []

    async def call_nobody(row, call):
        try:
            await call.get("http://127.0.0.1:1/")
        except httpx.ConnectError as failed:
            seen.append((isinstance(failed, rowcall.CallFailed), failed.failure.reason))

    await done(call_nobody, rows(1))
    assert seen == [(True, "refused")]
    assert store.sql("SELECT answer FROM records") == [("null",)]


def reraised(error):
    raise error


def chained(error):
    raise ValueError("while labelling") from error


def on_top(error):
    raise KeyError("bug in the except block")


def hidden(error):
    raise ValueError("while labelling") from None


@pytest.mark.parametrize("again", [reraised, chained, on_top, hidden])
async def test_a_closed_port_costs_nothing_whatever_is_raised_on_top(opened, rows, api, store, gate, again):
    """The port is closed for a while; all are done afterwards, each charged once, however the failure is raised."""

    async def label(row, call):
        try:
            return await sentiment(row, call)
        except rowcall.CallFailed as failed:
            again(failed)

    async with opened(on_event=gate) as job:
        await job.add(rows(60), key="id")
        running = asyncio.create_task(job.run(label))
        await api.wait_for_calls(20)
        await api.close_port()
        await gate.closed()
        await api.open_port()
        report = await running
    assert (report.done, report.failed) == (60, 0)
    assert set(store.attempts().values()) == {1}


async def test_a_failure_in_a_group_keeps_its_class(opened, rows, store):
    """What a task group wraps is looked into: a key that is refused stops the run, and fails nothing."""

    async def in_a_group(row, call):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(sentiment(row, call))
        return task.result()

    async with MockAPI(latency=0.0, api_key="right") as strict, opened(base_url=strict.url) as job:
        await job.add(rows(5), key="id")
        report = await job.run(in_a_group)
    assert (report.ending.reason, report.failed) == ("bad_key", 0)


async def test_an_answer_without_a_call_is_no_evidence(opened, rows, api, store, gate):
    """While the API is in trouble, records that need no call succeed; those that do are charged nothing for it."""

    async def label(row, call):
        return "even" if row["id"] % 2 == 0 else await sentiment(row, call)

    async with opened(on_event=gate, concurrency=2) as job:
        await job.add(rows(120), key="id")
        running = asyncio.create_task(job.run(label))
        await api.wait_for_calls(20)
        api.outage = "503"
        await gate.closed()
        api.outage = None
        report = await running
    assert (report.done, report.failed) == (120, 0)
    assert set(store.attempts().values()) == {1}


async def test_no_further_request_leaves_while_the_gate_is_closed(opened, rows, api, store, gate):
    """A handler in the middle of its work is refused its next request during an outage, and charged nothing."""
    waiting, released, refused = asyncio.Barrier(3), asyncio.Event(), []

    async def two_steps(row, call):
        label = await sentiment(row, call)
        if row["id"] in (1, 2) and not released.is_set():
            await waiting.wait()
            await released.wait()
            try:
                return await sentiment(row, call)
            except rowcall.CallFailed as failed:
                refused.append(failed.failure.reason)
                raise
        return label

    api.respond = lambda call: web.Response(status=503) if call.text[:6] in ("text 3", "text 4", "text 5") else None
    async with opened(on_event=gate, concurrency=6) as job:
        await job.add(rows(20), key="id")
        running = asyncio.create_task(job.run(two_steps))
        await waiting.wait()
        await gate.closed()
        released.set()
        api.respond = None
        report = await running
    assert refused == ["offline", "offline"]
    assert (report.done, report.failed) == (20, 0)
    assert set(store.attempts().values()) == {1}


async def test_a_portal_page_costs_nothing(opened, rows, api, store, gate):
    """A web page with status 200 that is taken for JSON is somebody in between, not the record."""
    async with opened(on_event=gate) as job:
        await job.add(rows(60), key="id")
        running = asyncio.create_task(job.run(sentiment))
        await api.wait_for_calls(20)
        api.outage = "html"
        await gate.closed()
        api.outage = None
        report = await running
    assert (report.done, report.failed) == (60, 0)
    assert set(store.attempts().values()) == {1}


async def test_a_reply_that_is_no_json_breaks_the_contract(done, rows, api, store):
    """Text where JSON was asked for is tried once more, then failed under its own reason."""
    api.respond = lambda call: web.Response(text="hello") if "text 3" in call.text else None
    await done(sentiment, rows(6))
    assert store.job(3)["reason"] == "not_json"
    assert len(api.calls_of("text 3 is good")) == 2


async def test_a_rest_is_kept_though_the_handler_swallows_the_429(done, rows, api):
    """A handler that catches a 429 and calls again at once is held until its Retry-After."""
    refused = []

    def respond(call):
        if not refused:
            refused.append(call.arrived)
            return web.Response(status=429, headers={"Retry-After": "0.3"})
        return None

    api.respond = respond

    async def stubborn(row, call):
        try:
            return await sentiment(row, call)
        except rowcall.CallFailed:
            return await sentiment(row, call)

    report = await done(stubborn, rows(4))
    assert report.done == 4
    assert api.calls[1].arrived - refused[0] >= 0.3


async def test_nothing_is_sent_after_the_handler_has_returned(done, rows, api):
    """A task that outlives its handler is refused its requests."""
    tasks = []

    async def leave_behind(row, call):
        async def late():
            await asyncio.sleep(0.02)
            await sentiment(row, call)

        tasks.append(asyncio.create_task(late()))
        return await sentiment(row, call)

    await done(leave_behind, rows(3))
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(error)[:17] for error in ended] == ["this call is over"] * 3
    assert len(api.calls) == 3
