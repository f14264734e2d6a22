"""What runs cost, against the server's own count."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from project import some_rows
from till import PRICES, completion, cost, tokens

import rowcall
from rowcall.cli.running.exit_code import exit_code
from rowcall.cli.setup.check_findings import find_problems
from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.model.errors import ConfigError
from rowcall.model.prices import nano
from rowcall.run.summary import summarise
from rowcall.store.sqlite import SQLiteReader


async def test_the_cost_is_what_the_server_served(project, till):
    """Failed tries count too, each once; jobs, results, tries and totals agree to the nano-dollar."""
    till.broken = lambda call: tokens(call.text)[0] % 3 == 0
    project.write(some_rows(60))
    report = await project.go()
    assert (report.done, report.failed) == (40, 20)
    assert project.spent() == till.billed == report.counts.cost == report.tally.usage.cost
    (parts,) = project.sql("SELECT (SELECT sum(cost) FROM results) + (SELECT sum(cost) FROM tries)")
    assert parts == (till.billed,)
    assert project.sql("SELECT id FROM jobs WHERE cost IS NULL") == []


async def test_a_retry_costs_again(project, till):
    """What was paid for before a retry by hand stays counted."""
    till.broken = lambda call: True
    project.write(some_rows(5))
    await project.go()
    till.broken = lambda call: False
    report = await project.go(Options(retry_failed=True))
    assert report.done == 5
    assert len(till.calls) > 5
    assert project.spent() == till.billed


async def test_the_cost_is_shown(project, till):
    """At the end of a run, in ``status``, for one record, and as dollars in the summary."""
    project.write(some_rows(3))
    report = await project.go()
    said = project.said(report)
    assert re.search(r"cost: \$0\.000\d+ this run, \$0\.000\d+ in all", said)
    async with await SQLiteReader.open(project.folder / "t.db") as reader:
        summary = await summarise(reader, "t")
        assert nano(summary.cost_usd) == till.billed
        assert (await reader.job("t", "k1")).cost == cost("1")
    shown = json.loads((await project.run("show", "k1", "--json")).out)
    assert nano(shown["cost_usd"]) == cost("1")


async def test_without_prices_no_cost_is_shown(project, till):
    """An unknown cost is not said to be nothing."""
    project.write(some_rows(3), prices="")
    report = await project.go()
    assert report.counts.cost is None
    assert "cost: " not in project.said(report)


async def test_a_reply_that_names_its_cost(project, till):
    """OpenRouter's replies say what they cost; no prices are needed."""
    till.respond = lambda call: completion(call.text, cost=0.00025)
    project.write(some_rows(4), prices="")
    assert (await project.go()).counts.cost == 4 * 250_000


async def test_a_price_per_call(project, till):
    """Each reply of 200 costs it, a 500 does not."""
    till.poison = {"sentence number 2 is good"}
    till.respond = None
    project.write(some_rows(6), prices="[price]\nper_call = 0.005\n")
    report = await project.go()
    assert (report.done, report.failed) == (5, 1)
    assert report.counts.cost == 5 * nano(0.005)


async def test_a_handler_pays_for_each_of_its_calls(tmp_path, till):
    """Tokens that its replies name are counted and priced, those of a failed run too."""

    async def twice(row, call):
        body = {"model": "m", "messages": [{"role": "user", "content": row["text"]}]}
        await call.post("/chat/completions", json=body)
        await call.post("/chat/completions", json=body)
        if row["id"] == 2:
            raise rowcall.Fail("no")
        return 1

    settings = {"price.input": 1.5, "price.output": 6, "price.cached": 0.15}
    async with rowcall.open(tmp_path / "t.db", base_url=till.url, settings=settings) as job:
        await job.add([{"id": n, "text": f"text {n}"} for n in range(5)], key="id")
        report = await job.run(twice)
    assert len(till.calls) == 10
    assert (report.counts.cost, report.failed) == (till.billed, 1)
    assert report.counts.input_tokens == sum(tokens(call.text)[0] for call in till.calls)


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_max_cost_stops_the_run(project, till, concurrency):
    """It is overshot by less than the calls in flight, says what was spent, and a raised limit goes on."""
    project.write(some_rows(80), concurrency=concurrency)
    limit = nano(0.006)
    most = max(cost(f"{n}") for n in range(80))
    report = await project.go(stop__max_cost=0.006)
    assert (report.ending.reason, exit_code(report)) == ("max_cost", 3)
    assert till.billed == project.spent()
    assert limit - concurrency * most < project.spent() < limit + concurrency * most
    assert set(project.statuses()) == {"done", "pending"}
    assert sum(project.attempts().values()) == len(till.calls)
    assert "max_cost = $0.0060000" in report.ending.message
    assert "rowcall run --max-cost 0.01" in project.said(report)
    calls = len(till.calls)
    again = await project.go(stop__max_cost=0.006)
    assert again.ending.reason == "max_cost"
    assert len(till.calls) <= calls + 1
    assert (await project.go(stop__max_cost=1)).done == 80
    assert project.spent() == till.billed


async def test_calls_in_flight_are_paid_for_beforehand(project, till):
    """With room for about three calls, no fourth leaves beside them, however long they take."""
    till.latency = 0.2
    project.write(some_rows(30), concurrency=20)
    report = await project.go(stop__max_cost=3.5 * cost("10") / nano(1))
    assert report.ending.reason == "max_cost"
    assert len(till.calls) <= 4


async def test_two_processes_share_one_budget(project, till):
    """What the other spends is seen with the next beat, so together they overshoot by little."""
    till.latency = 0.05
    prices = PRICES + '[store]\npath = "t.db"\nlease = "600ms"\n'
    project.write(some_rows(200), concurrency=4, prices=prices)
    limit = 0.03
    reports = await asyncio.gather(project.go(stop__max_cost=limit), project.go(stop__max_cost=limit))
    assert {report.ending.reason for report in reports} == {"max_cost"}
    most = max(cost(f"{n}") for n in range(200))
    assert nano(limit) - 8 * most < project.spent() < nano(limit) + 3 * 8 * most
    assert project.spent() == till.billed


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "needs the price of a call"),
        ("[price]\ncached = 1\n", "needs the price of a call"),
        ("[price]\ninput = -1\n", "must be an amount in dollars, such as 0.25"),
        ('[price]\nfrom = "thin air"\n', 'price.from must be "genai-prices" or "reply"'),
    ],
)
async def test_a_limit_needs_prices(project, table, said):
    """A limit that nothing counts towards is refused at the start."""
    project.write(some_rows(1), prices=table)
    with pytest.raises(ConfigError, match=said):
        await project.go(stop__max_cost=5.0)


async def test_a_model_without_a_price_is_refused_before_any_call(project, till):
    """``check`` finds it as well."""
    project.write(some_rows(1), prices='[price]\nfrom = "genai-prices"\nmodel = "no-such-model"\n')
    with pytest.raises(ConfigError, match="does not know the model"):
        await project.go()
    assert till.calls == []
    findings = find_problems(load(project.folder / "config.toml"))
    assert "no-such-model" in str(findings.problems[0])


async def test_listed_prices_with_one_of_the_users_own(project, till):
    """A number in the config goes before the list's."""
    pytest.importorskip("genai_prices")
    project.write(some_rows(1), prices='[price]\nfrom = "genai-prices"\nmodel = "gpt-4.1-mini"\noutput = 0\n')
    await project.go()
    used, _, cached = tokens("0")
    assert project.spent() == (used - cached) * 400 + cached * 100
