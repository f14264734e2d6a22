"""``rowcall report``: one page from the store alone, in which nothing of the data is ever markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from aiohttp import web

from rowcall.cli.shared.failure_hints import hint_for
from rowcall.model.errors import RowcallError
from rowcall.report import read_report, render
from rowcall.report.charts import TimeAxis, calls, failed_before, latencies, percentile
from rowcall.report.svg import Band, Bars, Chart, ChartLine, draw, legend, ticks
from rowcall.run.pipeline import Pipeline
from rowcall.store.call_history import History, Quiet, Slice, Span
from rowcall.store.sqlite import SQLiteReader, SQLiteStore

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></svg><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066 \u0000 \x1b[31m \u2028",
    "&lt;b&gt; &amp; 'quoted' `back`",
)


class Page(HTMLParser):
    """The tags of a page, their attributes, its text."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


async def page_of(config, **how):
    async with await SQLiteReader.open(config.store_location.path) as reader:
        return render(await read_report(reader, config.name, **how), hint_for, version="1")


def rows(count):
    return [{"id": f"k{n}", "text": f"number {n} is good", "n": 1} for n in range(count)]


async def test_what_is_on_the_page(job, api):
    """Counts, pictures, failures with their hint, slowest records, runs and limits; well under a megabyte."""
    api.poison = {"number 7 is good 1.0"}
    config = await job([*rows(60), {"id": "zero", "text": "x", "n": 0}])
    html = await page_of(config)
    page = Page(html)
    text = " ".join(" ".join(page.text).split())
    for words in ("61 records", "k7", "zero", "http_500", "template_error", "HTTP 500", "rowcall retry http_500"):
        assert words in text, words
    assert "59 done, 2 failed of 61" in html
    for title in ("Calls", "Latency", "Tokens", "Money", "Failed records by reason", "Slowest records", "Runs"):
        assert title in text
    assert html.count("<svg") == 4
    assert "pace.concurrency 32" in text
    assert len(html) < 200_000


async def test_no_network_and_no_script(job):
    """The page holds all that it shows, and forbids itself the rest."""
    html = await page_of(await job(rows(5)))
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "embed", "a", "form"} & page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("href", "src", "xlink:href")]
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert not [value for name, value in page.attributes if "http:" in (value or "") or "//" in (value or "")]


async def test_hostile_data_stays_text(job, api):
    """Keys, messages and reasons from the data and the API are text, whatever they hold; bidi marks are gone."""
    words = iter(HOSTILE * 100)

    def respond(call):
        if "number" in call.text:
            return None
        return web.json_response({"error": {"message": next(words), "code": next(words)}}, status=400)

    api.respond = respond
    hostile = [{"id": f"{text} {n}", "text": "bad", "n": 1} for n, text in enumerate(HOSTILE) if "\x00" not in text]
    config = await job([*rows(20), *hostile])
    html = await page_of(config)
    page = Page(html)
    assert not {"script", "img"} & page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert html.count("<svg") == html.count("</svg>") == 4
    assert "<script>alert(1)</script>" in "".join(page.text)
    assert "49" not in [words for words in page.text if "7 * 7" in words]
    assert not set("\u202e\u2066\u0000\x1b\u2028") & set(html)
    assert html.count("</style>") == 1
    assert html.count("</title>") == html.count("<title>")


async def test_the_key_is_not_on_the_page(job, api):
    """Neither a key that the API repeats, nor the name of its variable's value."""

    def respond(call):
        return web.json_response({"error": {"message": f"no: {call.headers['Authorization']}"}}, status=400)

    await job(rows(3))
    api.respond = respond
    config = await job([*rows(3), {"id": "more", "text": "x", "n": 1}])
    html = await page_of(config)
    assert "bad_request" in html
    assert "very-secret" not in html


async def test_the_last_run_that_made_calls_or_all(job):
    """A run that had nothing to do is not the picture; ``--all`` shows every run."""
    config = await job(rows(10))
    await Pipeline(config).run()
    async with await SQLiteReader.open(config.store_location.path) as reader:
        last, whole = await read_report(reader, "t"), await read_report(reader, "t", all_runs=True)
    assert [run.id for run in last.runs] == [1]
    assert [run.id for run in whole.runs] == [1, 2]
    assert sum(each.answered for each in last.history.slices.values()) == 10
    assert "run 2" in render(whole, hint_for, version="1")


async def test_without_a_run(tmp_path):
    """There is nothing to draw yet, which is said."""
    async with await SQLiteStore.open(tmp_path / "s.db") as store:
        await store.request("k", "ask")
        with pytest.raises(RowcallError, match="no run yet"):
            await read_report(store, "k")


async def test_history_counts_each_call_once(job, api):
    """Answers and failed calls of the slices add up to the calls that were made, with their tokens and cost."""
    api.poison = {"number 3 is good 1.0"}
    config = await job(rows(30))
    async with await SQLiteReader.open(config.store_location.path) as reader:
        facts = await read_report(reader, "t")
        counts = await reader.counts("t")
    slices = facts.history.slices.values()
    assert sum(each.answered for each in slices) == 29
    assert sum(sum(each.failed.values()) for each in slices) == 2
    assert sum(each.input_tokens for each in slices) == counts.input_tokens
    assert sum(each.cost or 0 for each in slices) == counts.cost
    assert sum(facts.history.latencies.values()) == 31
    assert len(facts.history.slowest) == 15


# The pictures


BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def stamp(seconds):
    return (BEGIN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def facts_with(**history):
    from types import SimpleNamespace

    whole = {"slices": {}, "latencies": {}, "quiet": (), "slowest": ()} | history
    run = SimpleNamespace(settings={"pace": {"requests": "600/min"}}, id=1, started_at=stamp(0))
    return SimpleNamespace(span=Span(stamp(0), stamp(100), 10.0), history=History(**whole), runs=(run,))


def test_calls_over_time():
    """A slice's bars are calls a second; rare reasons share one colour; the limit and the quiet stretches are drawn."""
    slices = {0: Slice(40, {f"r{n}": 10 - n for n in range(7)}), 9: Slice(10)}
    picture = calls(facts_with(slices=slices, quiet=(Quiet(stamp(20), stamp(60), 40.0),)))
    assert picture.slices == 10
    assert [bars.name for bars in picture.bars] == ["answered", "r0", "r1", "r2", "r3", "r4", "other reasons"]
    assert picture.bars[0].values[0] == 4.0
    assert picture.bars[-1].values[0] == pytest.approx((5 + 4) / 10)
    assert [(band.start, band.end) for band in picture.bands] == [(2.0, 6.0)]
    assert [mark.at for mark in picture.across] == [10.0]
    assert "answered: 40" in picture.tooltip(0)


def test_what_failed_before_a_quiet_stretch():
    """The reasons of the slice in which it began, and of the one before."""
    slices = {1: Slice(0, {"rate_limited": 3}), 2: Slice(0, {"http_500": 1}), 7: Slice(0, {"late": 9})}
    facts = facts_with(slices=slices)
    assert failed_before(facts, Quiet(stamp(25), stamp(60), 35.0)) == ["rate_limited", "http_500"]


def test_latencies_are_never_walls():
    """With few classes the picture is made wider, and every call is in it."""
    picture = latencies(facts_with(latencies={0: 3, 2: 1}))
    assert picture.slices > 40
    assert sum(picture.bars[0].values) == 4
    assert latencies(facts_with()) is None


def test_percentiles_of_classes():
    """The class that so many calls did not exceed."""
    assert [percentile({1: 50, 5: 45, 9: 5}, share) for share in (0.5, 0.51, 0.95, 0.99)] == [1, 5, 5, 9]


@pytest.mark.parametrize("highest", [0, 0.003, 0.9, 1, 7, 12, 99, 1234, 10**9])
def test_ticks_are_round_and_reach_the_top(highest):
    """At most six, from 0 to the first round number that is not below."""
    found = ticks(highest)
    assert found[0] == 0
    assert found[-1] >= highest
    assert 2 <= len(found) <= 6
    assert found[-2] < highest or highest == 0


def test_a_picture_stays_in_its_frame():
    """No shape begins left of the frame or ends right of it, and nothing is negative."""
    values = [0.0, 5.0, 2.5, 1e-9]
    picture = Chart(
        "a < b",
        [Bars("x", "c", values), Bars("<y>", "d", values[::-1])],
        str,
        str,
        lambda number: f"<{number}>",
        [Band(-3, 99, "<band>")],
        [ChartLine(4.0, "<limit>")],
        [ChartLine(2.0, "<run>")],
    )
    svg = str(draw(picture))
    for x, width in re.findall(r'<rect[^>]* x="([\d.]+)"[^>]* width="([\d.]+)"', svg):
        assert 56 <= float(x) <= float(x) + float(width) <= 888.01
    assert 'height="-' not in svg
    assert "<y>" not in svg + legend(picture.bars)
    assert "&lt;limit&gt;" in svg
    assert "&lt;band&gt;" in svg


def test_the_axis_of_a_long_picture_names_days():
    """Over more than a day a time is said with its date."""
    assert re.fullmatch(r"\d\d:\d\d:\d\d", TimeAxis(BEGIN, 10.0, 10).label(0))
    assert re.fullmatch(r"\d\d \w+ \d\d:\d\d", TimeAxis(BEGIN, 3600.0, 80).label(3))
