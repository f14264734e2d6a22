"""The library as a program uses it: open, add, run, results, export, map."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import rowcall
from rowcall.mock import MockAPI
from rowcall.mock.injected_faults import Faults


async def sentiment(row, call):
    return (await call.get("/sentiment", params={"text": row["text"]})).json()["label"]


async def other(row, call):
    return "other"


# The package


def test_importing_is_cheap():
    """``import rowcall`` loads none of its dependencies, and every name is there when it is used."""
    script = (
        "import rowcall, sys; heavy = {'httpx', 'aiohttp', 'pydantic', 'jinja2', 'click'};"
        "assert not heavy & set(sys.modules);"
        "assert {getattr(rowcall, name) for name in rowcall.__all__}; assert set(rowcall.__all__) < set(dir(rowcall))"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_an_unknown_name_is_an_attribute_error():
    """A name that is not there is missing as in any module."""
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        rowcall.opne  # noqa: B018


# add and run


async def test_run_again_goes_on(opened, rows, api):
    """A limited run does its number, the next one the rest, a third one nothing; each in one process."""
    async with opened() as job:
        counts = await job.add(rows(20), key="id")
        first = await job.run(sentiment, limit=5)
        second = await job.run(sentiment)
        third = await job.run()
    assert (counts.total, counts.new) == (20, 20)
    assert [(r.ending.reason, r.done, r.tally.calls) for r in (first, second, third)] == [
        ("limit", 5, 5),
        ("done", 20, 15),
        ("done", 20, 0),
    ]


async def test_another_process_goes_on(opened, rows, api):
    """What one opening left is done by the next, and add says how the records stand."""
    async with opened() as job:
        await job.add(rows(10), key="id")
        await job.run(sentiment, limit=4)
    async with opened() as job:
        edited = [row | {"text": "bad"} if row["id"] == 0 else row for row in rows(12)]
        counts = await job.add(edited, key="id")
        report = await job.run(sentiment)
    assert (counts.new, counts.changed, counts.done, counts.waiting) == (2, 1, 3, 6)
    assert (report.done, len(api.calls)) == (12, 13)


async def test_several_adds_are_one_pass(opened, rows, tmp_path):
    """Rows, a file, an async iterable and a source that were added are worked on together, in their order."""
    (tmp_path / "in.csv").write_text("id,text\n100,good\n101,bad\n")
    (tmp_path / "in.jsonl").write_text('{"id": "200", "text": "awful"}\n')

    async def coming():
        for n in (300, 301):
            await asyncio.sleep(0)
            yield {"id": n, "text": "fine"}

    async with opened() as job:
        added = [
            await job.add((row for row in rows(3)), key="id"),
            await job.add(tmp_path / "in.csv", key="id"),
            await job.add(coming(), key="id"),
            await job.add(rowcall.read(tmp_path / "in.jsonl"), key="id"),
            await job.add([], key="id"),
        ]
        report = await job.run(sentiment)
        keys = [result.key async for result in job.results()]
    assert [counts.total for counts in added] == [3, 2, 2, 1, 0]
    assert (report.done, report.strays) == (8, 0)
    assert keys == ["0", "1", "2", "100", "101", "300", "301", "200"]


async def test_records_of_the_next_run_are_their_own_pass(opened, rows):
    """What is added after a run is a new input: records of the old one that are pending are left alone, and named."""
    async with opened() as job:
        await job.add(rows(6), key="id")
        await job.run(sentiment, limit=2)
        await job.add([{"id": 50, "text": "good"}], key="id")
        report = await job.run(sentiment)
    assert (report.done, report.strays, report.total) == (3, 4, 7)


async def test_run_without_add_works_off_the_store(opened, rows):
    """A program that adds nothing goes on with what is pending, and reads the results from the store."""
    async with opened() as job:
        await job.add(rows(6), key="id")
        await job.run(sentiment, limit=2)
    async with opened() as job:
        report = await job.run(sentiment)
        results = [result async for result in job.results()]
    assert (report.done, report.total) == (6, 6)
    assert [(r.key, r.status, r.value, r.row["id"]) for r in results] == [
        (str(n), "done", "positive", n) for n in range(6)
    ]


async def test_rows_are_taken_when_they_are_added(opened, rows):
    """Neither changing the rows afterwards nor changing them in the handler changes what was added."""
    mine = rows(3)

    async def careless(row, call):
        row["text"] = "changed in the handler"
        return await sentiment({"text": "good"}, call)

    async with opened() as job:
        await job.add(mine, key="id")
        mine[0]["text"] = "changed by the program"
        await job.run(careless)
        assert [result.row async for result in job.results()] == rows(3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": 1}, "text"], "record 2: is a str, not a mapping"),
        ([{"id": 1, "when": {1, 2}}], "record 1: row.when is a set"),
        ([{"id": 1}, {"id": 2, "x": float("nan")}], "record 2: row.x is nan"),
        ([{"text": "no id"}], "records:1: .*id"),
    ],
)
async def test_a_row_that_cannot_be_kept_is_refused_when_it_is_added(opened, rows, message):
    """The message says which row and why; nothing of that add is worked on."""
    async with opened() as job:
        with pytest.raises(rowcall.InputError, match=message):
            await job.add(rows, key="id")
        assert (await job.run(other)).total == 0


async def test_two_records_with_one_key_stop_there(opened):
    """Rows that share a key and differ are an error; the same row twice is one record with two results."""
    async with opened() as job:
        await job.add([{"id": 1, "text": "a"}, {"id": 1, "text": "b"}], key="id")
        with pytest.raises(rowcall.InputError, match="is already that of a different record"):
            await job.run(other)
    async with opened(name="again") as job:
        await job.add([{"id": 1, "text": "a"}] * 2, key="id")
        assert (await job.run(other)).done == 1
        assert [result.value async for result in job.results()] == ["other", "other"]


async def test_without_a_key_records_are_known_by_their_content(opened, rows):
    """Rows without a key of their own are recognised in whatever order they come."""
    async with opened() as job:
        await job.add(rows(4))
        await job.run(other)
        counts = await job.add(rows(5)[::-1])
    assert (counts.done, counts.new) == (4, 1)


async def test_columns_are_what_the_handler_is_given(opened, rows, api):
    """With columns named, the handler sees those alone, and an edit of another column calls nothing."""
    seen = set()

    async def label(row, call):
        seen.update(row)
        return await sentiment(row, call)

    async with opened(columns=["text"]) as job:
        await job.add(rows(4), key="id")
        await job.run(label)
        await job.add([row | {"note": "edited"} for row in rows(4)], key="id")
        await job.run(label)
        assert [result.row["note"] async for result in job.results()] == ["edited"] * 4
    assert (seen, len(api.calls)) == ({"text"}, 4)
    async with opened(columns=["txt"], name="n") as job:
        await job.add(rows(1), key="id")
        with pytest.raises(rowcall.ConfigError, match="'txt', which the input does not have"):
            await job.run(label)


# Another handler


async def test_another_handler_does_nothing_unasked(opened, rows, api):
    """Records done by one handler are neither lost to another nor done again before the program says so."""
    async with opened() as job:
        await job.add(rows(5), key="id")
        await job.run(sentiment)
        with pytest.raises(rowcall.RequestChanged):
            await job.run(other)
        assert [result.value async for result in job.results()] == ["positive"] * 5
        kept = await job.run(other, if_changed="keep")
        assert (kept.done, kept.tally.done) == (5, 0)
        assert (await job.run(other)).tally.done == 0


async def test_another_version_is_another_handler(opened, rows):
    """Raising the version does the records again when the program says so."""
    for version in ("1", "2"):
        async with opened(version=version) as job:
            await job.add(rows(5), key="id")
            report = await job.run(other, if_changed="redo")
            assert report.tally.done == 5


async def test_failed_records_are_tried_again_when_asked(opened, rows, api):
    """A failed record stays failed, with its reason, until the program asks for another try."""
    api.poison = {"text 2 is good"}
    async with opened() as job:
        await job.add(rows(5), key="id")
        assert (await job.run(sentiment)).failed == 1
        assert (await job.run(sentiment)).tally.calls == 0
        (failed,) = [result async for result in job.results() if result.status == "failed"]
        assert (failed.key, failed.value, failed.reason) == ("2", None, "http_500")
        assert "500" in failed.error
        api.poison = set()
        assert (await job.run(sentiment, retry_failed=True)).done == 5


# What it gives


async def test_a_report_says_how_it_went(opened, rows):
    """The report can be read as it is printed."""
    async with opened() as job:
        await job.add(rows(3), key="id")
        report = await job.run(other, limit=2)
    assert repr(report).startswith("<Report t: limit; 3 records: 2 done, 0 failed, 1 left; ")
    assert "t in " in repr(job)


async def test_the_export_has_every_row(opened, rows, tmp_path):
    """The rows are written in their order, with columns read from the result."""

    async def both(row, call):
        return {"label": "x", "id": row["id"]}

    async with opened() as job:
        await job.add(rows(4), key="id")
        await job.run(both, limit=3)
        assert await job.export(tmp_path / "out.csv", columns={"label": "label", "twice": "[id, id]"}) == 4
        await job.export(tmp_path / "out.jsonl")
    with (tmp_path / "out.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == ["0", "1", "2", "3"]
    assert [row["label"] for row in written] == ["x", "x", "x", ""]
    assert written[1]["twice"] == "[1,1]"
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first == {"id": 0, "text": "text 0 is good", "result": {"label": "x", "id": 0}}


# Mistakes


def test_every_wrong_option_is_named_at_once(tmp_path):
    """Options are checked when they are given, all of them, in the words of the config."""
    with pytest.raises(rowcall.ConfigError) as caught:
        rowcall.open(tmp_path / "t.db", api="opnai", concurrency=0, requests="many", settings={"stop.grce": "5s"})
    assert [name for name in ("api.preset", "pace.concurrency", "pace.requests", "grce") if name in str(caught.value)]
    assert len(caught.value.problems) == 4
    assert not (tmp_path / "t.db").exists()


def test_a_secret_is_in_no_repr_and_no_message(tmp_path):
    """Neither the key nor a header that is one can be seen."""
    job = rowcall.open(tmp_path / "t.db", api_key="s3cret", headers={"X-Api-Key": "s3cret"}, base_url="http://a.test")
    assert "s3cret" not in repr(job) + repr(job._config) + json.dumps(job._config.settings())
    with pytest.raises(rowcall.ConfigError) as caught:
        rowcall.open(tmp_path / "t.db", api_key="s3cret", concurrency=0)
    assert "s3cret" not in str(caught.value)


async def test_the_key_of_an_api_comes_from_its_variable(tmp_path, rows, monkeypatch):
    """The key of openai is looked for in its variable; another host is never given it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with rowcall.open(tmp_path / "t.db", api="openai") as job:
        await job.add(rows(1), key="id")
        with pytest.raises(rowcall.ConfigError, match="OPENAI_API_KEY, which is not set"):
            await job.run(other)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    async with MockAPI() as api, rowcall.open(tmp_path / "t.db", api="openai", base_url=api.url) as job:
        await job.add(rows(1), key="id")
        await job.run(sentiment)
        assert "Authorization" not in api.calls[0].headers


@pytest.mark.parametrize("handler", [lambda row: row, lambda: None, lambda row, call, more: None, dict])
async def test_a_handler_takes_a_row_and_a_call(opened, rows, handler):
    """A function of another signature is refused before anything is done."""
    if handler is dict:
        handler = type("Callable", (), {"__call__": lambda self, row: row})()
    async with opened() as job:
        await job.add(rows(1), key="id")
        with pytest.raises(rowcall.ConfigError, match=r"does not take \(row, call\)"):
            await job.run(handler)


async def test_a_job_is_used_inside_its_block(opened, rows):
    """Outside of ``async with``, without a handler, and with two keys, the message says what to do."""
    with pytest.raises(RuntimeError, match=r"async with rowcall\.open"):
        await opened().add(rows(1))
    async with opened() as job:
        await job.add(rows(1), key="id")
        with pytest.raises(ValueError, match="needs a handler"):
            await job.run()
        with pytest.raises(ValueError, match="the same key"):
            await job.add(rows(1), key="text")


async def test_a_job_runs_once_at_a_time(opened, rows, api):
    """While a run is under way, no second one can be started; it can be stopped, and what is in flight ends."""
    api.latency = 0.05
    async with opened(concurrency=2) as job:
        await job.add(rows(50), key="id")
        running = asyncio.create_task(job.run(sentiment))
        await api.wait_for_calls(3)
        with pytest.raises(RuntimeError, match="still at work"):
            await job.run(other)
        job.stop()
        report = await running
    assert report.ending.reason == "interrupted"
    assert report.done == len(api.calls) < 50


# A good guest


async def test_nothing_is_printed_and_no_signal_is_taken(opened, rows, capfd):
    """A run, with failures in it, writes nothing to the terminal and leaves the signal handlers as they were."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    during = []

    async def handler(row, call):
        during.append([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)])
        if row["id"] == 3:
            raise ValueError("broken")
        return await sentiment(row, call)

    async with opened() as job:
        await job.add(rows(5), key="id")
        await job.run(handler)
    assert during == [before] * 5
    assert capfd.readouterr() == ("", "")


# map


def plain(row, call):
    return call.get("/sentiment", params={"text": row["text"]}).json()["label"]


def test_map_returns_results_in_order(tmp_path, rows, capfd):
    """A script gets a result for each row, in their order; called again, nothing is called."""
    store = tmp_path / "m.db"
    mixed = [{"id": n, "text": "awful" if n % 3 else "great"} for n in range(30)]
    for handler in (sentiment, sentiment):
        results = rowcall.map(handler, iter(mixed), "id", store=store, api="mock", settings={"api.mock.latency": "5ms"})
        assert [(r.key, r.value) for r in results] == [(str(n), "negative" if n % 3 else "positive") for n in range(30)]
    assert capfd.readouterr() == ("", "")


async def test_map_inside_a_running_loop(api, store, rows):
    """Inside a running loop, as in a notebook, it works all the same, with a plain handler and with an async one."""
    async with MockAPI(latency=0.0) as other_loop:
        url = other_loop.url
        served = asyncio.create_task(
            asyncio.to_thread(lambda: rowcall.map(plain, rows(5), "id", store=store.path, base_url=url))
        )
        assert [result.value for result in await served] == ["positive"] * 5
    results = rowcall.map(sentiment, rows(5), "id", store=store.path, api="mock", if_changed="redo")
    assert [result.value for result in results] == ["positive"] * 5


def test_map_from_a_thread_and_twice_at_once(tmp_path, rows):
    """Two threads of one program map over one store at once, and each gets its own results."""
    found = {}

    def work(name):
        settings = {"api.mock.latency": "2ms"}
        found[name] = rowcall.map(
            plain, rows(20), "id", store=tmp_path / "t.db", name=name, api="mock", settings=settings
        )

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert {name: len(results) for name, results in found.items()} == {"a": 20, "b": 20}


def test_map_says_why_it_stopped(tmp_path, rows):
    """A run that ends before its records do is an exception that says why and that nothing is lost."""

    async def poor(row, call):
        raise rowcall.StopRun("no credit")

    with pytest.raises(rowcall.RunStopped, match="stopped: no credit\n  Nothing is lost") as caught:
        rowcall.map(poor, rows(3), "id", store=tmp_path / "t.db", api="mock")
    assert (caught.value.reason, caught.value.exit_code) == ("stopped_by_handler", 3)


def test_ctrl_c_ends_map(tmp_path, rows):
    """Ctrl+C in a program that maps ends the run, and the program is told; the same call goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it

    def interrupted(row, call):
        if row["id"] == 2:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(1)
        return row["id"]

    try:
        with pytest.raises(KeyboardInterrupt):
            rowcall.map(interrupted, rows(5), "id", store=tmp_path / "t.db", api="mock", concurrency=1)
    finally:
        signal.signal(signal.SIGINT, before)
    results = rowcall.map(
        lambda row, call: row["id"], rows(5), "id", store=tmp_path / "t.db", api="mock", if_changed="keep"
    )
    assert [result.value for result in results] == [0, 1, 2, 3, 4]


async def test_faults_are_waited_out(opened, rows, api):
    """Rate limits, errors and resets in a fifth of the calls: every record is done."""
    api.faults = Faults(rate_limited=0.05, errors=0.1, resets=0.05, retry_after=0.1)
    async with opened(attempts=6) as job:
        await job.add(rows(100), key="id")
        report = await job.run(sentiment)
    assert (report.done, report.failed, api.early) == (100, 0, 0)
